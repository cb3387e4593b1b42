// SPDX-License-Identifier: BSD-3-Clause
/// Volume and faces in separate kernels, as integrals that the integration divides by the mass (theory/waves, section
/// 8). This variant moves the most bytes and serves as reference.
#pragma once
#include "stage.hpp"

namespace seiche {

/// Moduli of a node without those included in the inverse mass of its velocities (and, in a fluid, of its pressure).
template <class Elements, class Line, class Real>
SEICHE_FN void weighed_moduli(const Elements& scheme, const Line& line, Index element, int node,
                              Real (&m)[Elements::Fields::moduli]) {
  using Fields = typename Elements::Fields;
  scheme.moduli_of(line, element, node, m);
  static_for<0, Fields::count>([&]<int f>() SEICHE_INLINED {
    constexpr int modulus = Fields::source_modulus(f);
    if constexpr (modulus >= 0) m[modulus < 0 ? 0 : modulus] = Real(1);
  });
}

/// The integrals over elements.
template <class Elements, int elements, int layers>
struct Volume {
  using Real = typename Elements::Real;
  using Fields = typename Elements::Fields;
  using Box = typename Elements::Box;
  using Line = typename Elements::Line;
  static constexpr int n = Box::n, dim = Box::dim, waves = Fields::waves, size = Elements::size;
  static constexpr int bytes = elements * static_cast<int>(sizeof(Real)) * 2 * size;
  static constexpr int elements_per_pass = vector_lanes ? 1 : elements;
  Elements scheme;
  const Real* u;
  Real* contributions;
  Real weights[n];

  struct Scratch {
    alignas(64) Real u[elements_per_pass][size];
  };
  struct Nothing {};

  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    for_elements<elements, elements_per_pass>(item, scheme.count, [&](Index first, int active) SEICHE_INLINED {
      team.for_each(elements_per_pass * size, [&](int q) SEICHE_INLINED {
        scratch.u[q / size][q % size] = u[clamped_index(first + q / size) * size + q % size];
      });
      for_nodes<Box, elements_per_pass, layers, false>(
          team, active,
          [&](int element, int i, int j) SEICHE_INLINED { return scheme.line(clamped_index(first + element), i, j); },
          [&](int, int, int, int) SEICHE_INLINED { return Nothing{}; }, [&]() SEICHE_INLINED { team.barrier(); },
          [&](const Line& line, Nothing, int element, int i, int j, int k)
              SEICHE_INLINED { node(line, scratch.u[element], first + element, i, j, k); });
    });
  }
  SEICHE_FN Index clamped_index(Index element) const {
    return elements_per_pass == 1 || element < scheme.count ? element : scheme.count - 1;
  }

  SEICHE_FN void node(const Line& line, const Real* state, Index element, int i, int j, int k) const {
    const int node = i + n * j + Box::face * k;
    Real dv[dim][waves], ds[dim][waves], m[Fields::moduli], r[Fields::count];
    Real mass = weights[i] * weights[k];
    if constexpr (dim == 3) mass *= weights[j];
    static_for<0, dim>([&]<int axis>() SEICHE_INLINED {
      const int start = axis == 0 ? n * j + Box::face * k : axis == dim - 1 ? i + n * j : i + Box::face * k;
      scheme.template derivatives<axis>(line, state + start, k, dv[axis], ds[axis]);
      static_for<0, waves>([&]<int c>() SEICHE_INLINED {
        dv[axis][c] *= line.scale[axis];
        ds[axis][c] *= line.scale[axis];
      });
      mass /= line.scale[axis];
    });
    weighed_moduli(scheme, line, element, node, m);
    Fields::rates(dv, ds, m, r);
    static_for<0, Fields::count>(
        [&]<int f>() SEICHE_INLINED { contributions[element * size + f * Box::nodes + node] = mass * r[f]; });
  }
};

/// Integrals over faces, one axis after another, because nodes on edges belong to several faces.
template <class Elements>
struct FaceFlux {
  using Real = typename Elements::Real;
  using Fields = typename Elements::Fields;
  using Box = typename Elements::Box;
  using Line = typename Elements::Line;
  using FaceInput = typename Elements::template FaceInput<false>;
  static constexpr int n = Box::n, dim = Box::dim, waves = Fields::waves, size = Elements::size;
  /// True if a face across an axis changes a field.
  static constexpr bool changes(int axis, int field) {
    bool is_changed = waves > 1 && field >= dim && field < 2 * dim;  // normal stresses, all by the divergence
    for (int c = 0; c < waves; ++c)
      is_changed = is_changed || field == Fields::velocity(axis, c) || field == Fields::stress(axis, c);
    return is_changed;
  }
  static constexpr int changed() {
    int changed = 0;
    for (int f = 0; f < Fields::count; ++f) changed += changes(0, f) ? 1 : 0;
    return changed;
  }
  static constexpr int bytes =
      static_cast<int>(sizeof(Real)) * Box::faces * (Elements::slot + (2 * waves + 2 * changed()) * Box::face);
  Elements scheme;
  const Real* u;
  const Real* trace;
  Real* contributions;
  Real weights[n];

  struct Scratch {
    FaceInput face_input[1];
  };

  SEICHE_FN void operator()(const Team& team, Index element, Scratch& scratch) const {
    scheme.load_faces(team, element, 1, trace, scratch.face_input, []() SEICHE_INLINED {});
    wait_for_copies();
    team.barrier();
    const Line line = scheme.line(element, 0, 0);
    static_for<0, dim>([&]<int axis>() SEICHE_INLINED {
      static_for<0, 2>([&]<int side>() SEICHE_INLINED {
        team.for_each(Box::face, [&](int face_node) SEICHE_INLINED {
          node<axis, side>(line, scratch.face_input[0], element, face_node);
        });
      });
      team.barrier();
    });
  }

  template <int axis, int side>
  SEICHE_FN void node(const Line& line, const FaceInput& face_input, Index element, int face_node) const {
    const int node = Elements::on_face(axis, side, face_node);
    Real v[waves], s[waves], jump_v[waves], jump_t[waves], m[Fields::moduli], r[Fields::count];
    Real dv[dim][waves] = {}, ds[dim][waves] = {};
    Elements::template side_of<axis>(u + element * size, node, v, s);
    scheme.template jumps<axis, side>(face_input, element, face_node, v, s, jump_v, jump_t);
    Real mass = weights[face_node % n];
    if constexpr (dim == 3) mass *= weights[face_node / n];
    static_for<0, dim>([&]<int transverse>() SEICHE_INLINED {
      if constexpr (transverse != axis) mass /= line.scale[transverse];
    });
    static_for<0, waves>([&]<int c>() SEICHE_INLINED {
      dv[axis][c] = Real(2 * side - 1) * jump_v[c];
      ds[axis][c] = jump_t[c];
    });
    weighed_moduli(scheme, line, element, node, m);
    Fields::rates(dv, ds, m, r);
    static_for<0, Fields::count>([&]<int f>() SEICHE_INLINED {
      if constexpr (changes(axis, f)) contributions[element * size + f * Box::nodes + node] += mass * r[f];
    });
  }
};

}  // namespace seiche
