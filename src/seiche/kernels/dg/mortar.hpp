// SPDX-License-Identifier: BSD-3-Clause
/// Hanging faces: one coarse side and 2^(dim - 1) fine sides (theory/waves, section 4, eqs. 13 and 14). Fine sides
/// read traces interpolated to their nodes and need no special case. The coarse side reads corrections.
#pragma once
#include "element.hpp"

namespace seiche {

/// Positions of the coarse sides, and transfer of values between their nodes and those of the fine sides.
template <class Elements>
struct Mortars {
  using Real = typename Elements::Real;
  using Fields = typename Elements::Fields;
  using Box = typename Elements::Box;
  static constexpr int n = Box::n, dim = Box::dim, waves = Fields::waves, children = dim == 3 ? 4 : 2;
  static constexpr int quantities = 2 * waves, numbers = quantities * Box::face;

  const i32* sides;         ///< element and face of every coarse side
  const i32* fine_slots;    ///< slots of the traces of the fine sides, per child
  const i32* coarse_slots;  ///< slots of the traces of the coarse side for the fine sides
  const Real* faces;        ///< coefficients of the flux for the coarse side, per child (and node)
  const Real* halves;       ///< interpolation to the lower and the upper half, of velocities, then of tractions
  const Real* projections;  ///< their adjoints, first for tractions, then for velocities (eq. 14)

  struct Scratch {
    alignas(64) Real large[numbers];
    Real middle[numbers], fine[numbers], sum[numbers];
  };

  SEICHE_FN const Real* coefficients(Index side, int child, int node, bool nodal) const {
    const Index at = side * children + child;
    return faces + (nodal ? at * Box::face + node : at) * Elements::record;
  }

  /// v and S at the nodes of the coarse side.
  SEICHE_FN void load(const Team& team, const Real* u, Index element, int face, Real* large) const {
    const int axis = face / 2, side = face % 2;
    const Real* source = u + element * Elements::size;
    team.for_each(waves * Box::face, [&](int q) SEICHE_INLINED {
      const int c = q / Box::face, node = Elements::on_face(axis, side, q % Box::face);
      large[q] = source[Fields::velocity(axis, c) * Box::nodes + node];
      large[waves * Box::face + q] = Real(Fields::sign) * source[Fields::stress(axis, c) * Box::nodes + node];
    });
    team.barrier();
  }

  /// to (+)= (first x second) from, for all quantities; `middle` is overwritten.
  template <bool add>
  SEICHE_CALLED void apply(const Team& team, const Real* first, const Real* second, const Real* source, Real* middle,
                           Real* target) const {
    const Real* lines = source;
    if constexpr (dim == 3) {
      team.for_each(numbers, [&](int q) SEICHE_INLINED {
        middle[q] = dot(rows(first, q / Box::face) + q % n * n, source + q / n * n, 1);
      });
      team.barrier();
      lines = middle;
    }
    team.for_each(numbers, [&](int q) SEICHE_INLINED {
      const int quantity = q / Box::face, node = q % Box::face;
      const Real value = dim == 3
                             ? dot(rows(second, quantity) + node / n * n, lines + quantity * Box::face + node % n, n)
                             : dot(rows(first, quantity) + node * n, lines + quantity * Box::face, 1);
      target[q] = add ? target[q] + value : value;
    });
    team.barrier();
  }
  /// Velocities and tractions have separate matrices, in this order.
  SEICHE_FN static const Real* rows(const Real* matrix, int quantity) {
    return quantity < waves ? matrix : matrix + 2 * n * n;
  }
  SEICHE_FN static Real dot(const Real* row, const Real* values, int stride) {
    Real sum = 0;
    static_for<0, n>([&]<int m>() SEICHE_INLINED { sum = multiply_add(row[m], values[m * stride], sum); });
    return sum;
  }
  /// The matrix of a child along the first or second direction of the face.
  SEICHE_FN static const Real* of(const Real* matrices, int child, int direction) {
    return matrices + (child >> direction & 1) * n * n;
  }
};

/// Traces for the fine sides: the trace of the coarse side at their nodes. Words per coarse side: its nodes, its
/// traces.
template <class Elements, bool nodal>
struct MortarTraces {
  using Sides = Mortars<Elements>;
  using Real = typename Elements::Real;
  using Fields = typename Elements::Fields;
  using Box = typename Elements::Box;
  using Scratch = typename Sides::Scratch;
  static constexpr int bytes = static_cast<int>(sizeof(Real)) * (Sides::numbers + Sides::children * Elements::slot);
  Sides mortars;
  const Real* u;
  Real* trace;

  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    const int face = mortars.sides[2 * item + 1], axis = face / 2, outward = face % 2 * 2 - 1;
    mortars.load(team, u, mortars.sides[2 * item], face, scratch.large);
    for (int child = 0; child < Sides::children; ++child) {
      mortars.template apply<false>(team, Sides::of(mortars.halves, child, 0), Sides::of(mortars.halves, child, 1),
                                    scratch.large, scratch.middle, scratch.fine);
      Real* target = trace + Index{mortars.coarse_slots[item * Sides::children + child]} * Elements::slot;
      team.for_each(Fields::waves * Box::face, [&](int q) SEICHE_INLINED {
        const int c = q / Box::face, node = q % Box::face;
        const Real* record = mortars.coefficients(item, child, node, nodal);
        const Real z = Elements::Flux::impedance(record + Elements::Flux::coefficients * Fields::kind(axis, c));
        Elements::Flux::write(target + q, Fields::waves * Box::face, z, outward, scratch.fine[q],
                              scratch.fine[Fields::waves * Box::face + q]);
      });
      team.barrier();
    }
  }
};

/// Contribution of the coarse side: velocities by the projected jump, tractions by the projected star state (eq. 14).
template <class Elements, bool nodal>
struct MortarCorrections {
  using Sides = Mortars<Elements>;
  using Real = typename Elements::Real;
  using Fields = typename Elements::Fields;
  using Box = typename Elements::Box;
  using Scratch = typename Sides::Scratch;
  static constexpr int half = Fields::waves * Box::face;
  static constexpr int bytes = static_cast<int>(sizeof(Real)) * (2 * Sides::numbers + Sides::children * Elements::slot);
  Sides mortars;
  const Real* u;
  const Real* trace;
  Real* corrections;

  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    const int face = mortars.sides[2 * item + 1], axis = face / 2, outward = face % 2 * 2 - 1;
    mortars.load(team, u, mortars.sides[2 * item], face, scratch.large);
    team.for_each(Sides::numbers, [&](int q) SEICHE_INLINED { scratch.sum[q] = Real(0); });
    for (int child = 0; child < Sides::children; ++child) {
      mortars.template apply<false>(team, Sides::of(mortars.halves, child, 0), Sides::of(mortars.halves, child, 1),
                                    scratch.large, scratch.middle, scratch.fine);
      const Real* small_trace = trace + Index{mortars.fine_slots[item * Sides::children + child]} * Elements::slot;
      team.for_each(half, [&](int q) SEICHE_INLINED {
        const int c = q / Box::face, node = q % Box::face;
        const Real* record = mortars.coefficients(item, child, node, nodal);
        const Real s = scratch.fine[half + q];
        Real dv, dt;
        Elements::Flux::jump(small_trace + q, half, record + Elements::Flux::coefficients * Fields::kind(axis, c),
                             outward, scratch.fine[q], s, dv, dt);
        scratch.fine[q] = dv;
        scratch.fine[half + q] = Real(outward) * s + dt;
      });
      team.barrier();
      mortars.template apply<true>(team, Sides::of(mortars.projections, child, 0),
                                   Sides::of(mortars.projections, child, 1), scratch.fine, scratch.middle, scratch.sum);
    }
    Real* target = corrections + item * Sides::numbers;
    team.for_each(half, [&](int q) SEICHE_INLINED {
      target[q] = scratch.sum[q];
      target[half + q] = scratch.sum[half + q] - Real(outward) * scratch.large[half + q];
    });
  }
};

}  // namespace seiche
