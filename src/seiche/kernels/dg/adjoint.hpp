// SPDX-License-Identifier: BSD-3-Clause
/// The adjoint of a Runge-Kutta stage together with the derivatives with respect to the media (theory/waves, section
/// 10, eqs. 22 and 23).
///
/// u and k of the stage are b and a with the sign of velocities reversed. Words per node: those of an inner stage, the
/// forward register once, the forward state and its traces at the faces.
#pragma once
#include "adjoint_sums.hpp"
#include "mortar.hpp"
#include "stage.hpp"

namespace seiche {

/// Derivative of the face terms with respect to an impedance. An absorbing side has the impedance of its element on
/// both sides.
template <class Flux, class Real>
SEICHE_FN Real impedance_slope(bool absorbing, Real v, Real dv, Real adjoint_v, Real adjoint_dv) {
  return absorbing ? multiply_add(v + dv, adjoint_v + adjoint_dv, dv * adjoint_dv) : Flux::slope(dv, adjoint_dv);
}

/// One stage of whole elements. The sums are the invariants of a and the change of the forward state, then for each
/// kind of wave the derivative with respect to its impedance; by node without the quadrature weights, by element
/// without the volume.
template <class Elements, int elements, int layers, int tuning>
struct AdjointStage {
  using Step = FusedStage<Elements, Position::adjoint, elements, layers, tuning>;
  using Real = typename Elements::Real;
  using Fields = typename Elements::Fields;
  using Flux = typename Elements::Flux;
  using Box = typename Elements::Box;
  using FaceInput = typename Step::FaceInput;
  using Line = typename Step::Line;
  static constexpr int n = Box::n, dim = Box::dim, waves = Fields::waves, size = Elements::size;
  static constexpr int products = invariants<Fields>, sums = products + Fields::kinds,
                       elements_per_pass = Step::elements_per_pass;
  static constexpr int threads = Box::face * elements * layers;
  static constexpr bool early = Step::early;
  static constexpr int bytes =
      Step::bytes +
      elements * static_cast<int>(sizeof(Real)) * (size + Box::faces * (Elements::slot + 2 * waves * Box::face)) +
      elements * 2 * static_cast<int>(sizeof(double)) * sums * (Elements::by_node ? Box::nodes : 1);

  Step step;
  const Real* tape_u;      ///< forward state before the stage
  const Real* tape_k;      ///< forward register after it
  const Real* tape_trace;  ///< forward traces before it
  double* gradient_terms;
  Real weights[n];
  Real stage_b;       ///< B of this stage
  i32 boundary_slot;  ///< slot that boundary faces read
  i32 absorbing;      ///< bit f: absorbing boundary at faces f

  struct Scratch {
    typename Step::Scratch step;
    Real slopes[elements_per_pass][Box::faces][Fields::kinds][Box::face];
  };
  using Partial = PartialSums<sums, n>;
  static_assert(vector_lanes || sizeof(typename Step::Scratch) >= sums * threads * sizeof(double));

  /// Forward and adjoint register of a node.
  struct Loaded {
    Real old[early ? Fields::count : 1], taped[early ? Fields::count : 1];
  };
  SEICHE_FN Loaded loaded(Index element, int node) const {
    Loaded result{};
    if constexpr (early) {
      static_for<0, Fields::count>([&]<int f>() SEICHE_INLINED {
        result.old[f] = step.k[element * size + f * Box::nodes + node];
        result.taped[f] = tape_k[element * size + f * Box::nodes + node];
      });
    }
    return result;
  }

  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    for_elements<elements, elements_per_pass>(item, step.scheme.count, [&](Index first, int active) SEICHE_INLINED {
      Partial partial{};
      step.load(team, first, active, scratch.step);
      if constexpr (Step::prefetches) ask_ahead(team, first + step.prefetch_distance * elements_per_pass);
      for_nodes<Box, elements_per_pass, layers, Step::unrolled>(
          team, active,
          [&](int element, int i, int j)
              SEICHE_INLINED { return step.scheme.line(step.clamped_index(first + element), i, j); },
          [&](int element, int i, int j, int k) SEICHE_INLINED {
            return early ? loaded(step.clamped_index(first + element), i + n * j + Box::face * k) : Loaded{};
          },
          [&]() SEICHE_INLINED {
            wait_for_copies();
            team.barrier();
            all_faces(team, first, active, scratch);
            team.barrier();
          },
          [&](const Line& line, const Loaded& loaded, int element, int i, int j, int k)
              SEICHE_INLINED { node(line, loaded, scratch, partial, first, element, i, j, k); });
      if constexpr (vector_lanes) step.all_traces(team, first, scratch.step.face_input[0]);
      if constexpr (!Elements::by_node) {
        sum_groups<threads, Box::face * layers>(team, partial, reinterpret_cast<double*>(&scratch.step),
                                                [&](int group, int quantity, double sum) SEICHE_INLINED {
                                                  if (group < active)
                                                    gradient_terms[(first + group) * sums + quantity] += sum;
                                                });
      }
    });
  }

  SEICHE_FN void ask_ahead(const Team& team, Index first) const {
    constexpr int bytes = elements_per_pass * size * static_cast<int>(sizeof(Real));
    if (first + elements_per_pass > step.scheme.count || step.prefetch_distance == 0) return;
    prefetch_ahead(team, tape_u + first * size, bytes);
    prefetch_ahead(team, tape_k + first * size, bytes);
    step.prefetch_traces(team, first, tape_trace);
  }

  SEICHE_FN void node(const Line& line, const Loaded& loaded, Scratch& scratch, Partial& partial, Index first,
                      int element, int i, int j, int k) const {
    const FaceInput& face_input = scratch.step.face_input[element];
    const Real* state = Step::state_of(scratch.step, first, element);
    const int node = i + n * j + Box::face * k;
    const Index begin = (first + element) * size + node;
    Real old[Fields::count], taped[Fields::count], r[Fields::count], value[products];
    step.rates_at(line, state, face_input, first + element, i, j, k, r);
    static_for<0, Fields::count>([&]<int f>() SEICHE_INLINED {
      old[f] = early ? loaded.old[early ? f : 0] : step.k[begin + f * Box::nodes];
      taped[f] = early ? loaded.taped[early ? f : 0] : tape_k[begin + f * Box::nodes];
    });
    invariants_of<Fields>(old, taped, value);
    step.update([&]<int f>(Index) SEICHE_INLINED { return old[f]; }, state, face_input, first + element, i, j, k, r);
    Real weight = Real(1);
    if constexpr (!Elements::by_node)
      weight = dim == 3 ? weights[i] * weights[j] * weights[k] : weights[i] * weights[k];
    static_for<0, products>(
        [&]<int q>() SEICHE_INLINED { add(partial, first + element, node, i, q, weight * (stage_b * value[q])); });
    static_for<0, Fields::kinds>([&]<int q>() SEICHE_INLINED {
      const Real slope = slope_at<q>(line, scratch.slopes[element], i, j, k);
      add(partial, first + element, node, i, products + q, weight * (step.dt * Real(Elements::lift) * slope));
    });
  }
  SEICHE_FN void add(Partial& partial, Index element, int node, int lane, int q, Real value) const {
    if constexpr (Elements::by_node) {
      gradient_terms[(element * sums + q) * Box::nodes + node] += static_cast<double>(value);
    } else {
      partial.at(q, lane) += static_cast<double>(value);
    }
  }
  /// Sum over the faces of a node, divided by the lengths that the weights of faces lack.
  template <int q>
  SEICHE_FN Real slope_at(const Line& line, const Real (&slopes)[Box::faces][Fields::kinds][Box::face], int i, int j,
                          int k) const {
    Real sum = Real(0);
    static_for<0, dim>([&]<int axis>() SEICHE_INLINED {
      const int index = axis == 0 ? i : axis == dim - 1 ? k : j;
      const int face_node = Elements::template face_node<axis>(i, j, k);
      const Real both = value_if(index == 0, slopes[2 * axis][q][face_node]) +
                        value_if(index == n - 1, slopes[2 * axis + 1][q][face_node]);
      sum = multiply_add(line.scale[axis], both, sum);
    });
    return sum;
  }

  /// Contributions of all faces to the adjoint stage, and the derivatives with respect to impedances, shared by the
  /// layers of threads.
  SEICHE_FN void all_faces(const Team& team, Index first, int active, Scratch& scratch) const {
    for_faces<dim>([&]<int axis, int side>() SEICHE_INLINED {
      team.template for_each_in<Step::face_parts>(2 * axis + side, active * Box::face, [&](int q) SEICHE_INLINED {
        face<axis, side>(scratch, first, q / Box::face, q % Box::face);
      });
    });
  }
  template <int axis, int side>
  SEICHE_FN void face(Scratch& scratch, Index first, int element, int face_node) const {
    constexpr int number = 2 * axis + side, outward = 2 * side - 1;
    FaceInput& face_input = scratch.step.face_input[element];
    const int node = Elements::on_face(axis, side, face_node);
    const i32 slot = step.scheme.in_slots[(first + element) * Box::faces + number];
    Real v[waves], s[waves], dv[waves], dt[waves], slopes[Fields::kinds] = {};
    Elements::template side_of<axis>(Step::state_of(scratch.step, first, element), node, v, s);
    step.scheme.template jumps<axis, side>(face_input, first + element, face_node, v, s, dv, dt);
    if (!Elements::hangs || slot >= 0) {
      const Real* q = step.scheme.coefficients(face_input, first + element, number, face_node);
      const Real* trace = tape_trace + Index{slot} * Elements::slot + face_node;
      const bool absorbs = slot == boundary_slot && (absorbing >> number & 1);
      Real tape_v[waves], tape_s[waves], tape_dv, tape_dt;
      Elements::template side_of<axis>(tape_u + (first + element) * size, node, tape_v, tape_s);
      static_for<0, waves>([&]<int c>() SEICHE_INLINED {
        constexpr int kind = Fields::kind(axis, c);
        Flux::jump(trace + c * Box::face, waves * Box::face, q + Flux::coefficients * kind, outward, tape_v[c],
                   tape_s[c], tape_dv, tape_dt);
        slopes[kind] += impedance_slope<Flux>(absorbs, tape_v[c], tape_dv, v[c], dv[c]);
      });
    }
    static_for<0, Fields::kinds>([&]<int q>()
                                     SEICHE_INLINED { scratch.slopes[element][number][q][face_node] = slopes[q]; });
    static_for<0, waves>([&]<int c>() SEICHE_INLINED {
      face_input.trace[number][c][face_node] = dv[c] * Real(outward * Elements::lift);
      face_input.trace[number][waves + c][face_node] = dt[c] * Real(Elements::lift);
    });
  }
};

/// Derivatives with respect to the impedances of the coarse sides of hanging faces, at the nodes of the fine sides:
/// gradient_terms[(side, child, kind), node].
template <class Elements, bool nodal>
struct MortarGradients {
  using Sides = Mortars<Elements>;
  using Real = typename Elements::Real;
  using Fields = typename Elements::Fields;
  using Flux = typename Elements::Flux;
  using Box = typename Elements::Box;
  static constexpr int waves = Fields::waves, half = waves * Box::face, kinds = Fields::kinds;
  static constexpr int bytes =
      static_cast<int>(sizeof(Real)) * 2 * (Sides::numbers + Sides::children * Elements::slot) +
      2 * static_cast<int>(sizeof(double)) * Sides::children * kinds * Box::face;
  Sides mortars;
  const Real* u;
  const Real* trace;
  const Real* tape_u;
  const Real* tape_trace;
  double* gradient_terms;
  Real dt;

  struct Scratch {
    alignas(64) Real large[2][Sides::numbers];
    Real middle[Sides::numbers], fine[Sides::numbers], jump[2][half];
  };

  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    const int face = mortars.sides[2 * item + 1];
    mortars.load(team, u, mortars.sides[2 * item], face, scratch.large[0]);
    mortars.load(team, tape_u, mortars.sides[2 * item], face, scratch.large[1]);
    for (int child = 0; child < Sides::children; ++child) {
      jumps(team, item, child, trace, scratch.large[0], scratch.jump[0], scratch);
      jumps(team, item, child, tape_trace, scratch.large[1], scratch.jump[1], scratch);
      double* target = gradient_terms + (item * Sides::children + child) * kinds * Box::face;
      team.for_each(Box::face, [&](int node) SEICHE_INLINED {
        static_for<0, kinds>([&]<int kind>() SEICHE_INLINED {
          Real slope = Real(0);
          for (int c = 0; c < waves; ++c) {
            const int at = c * Box::face + node;
            if (Fields::kind(face / 2, c) == kind) slope += Flux::slope(scratch.jump[1][at], scratch.jump[0][at]);
          }
          target[kind * Box::face + node] += static_cast<double>(dt * slope);
        });
      });
      team.barrier();
    }
  }

  /// v* - v- of the coarse side at the nodes of a child.
  SEICHE_FN void jumps(const Team& team, Index item, int child, const Real* traces, const Real* large, Real* target,
                       Scratch& scratch) const {
    const int face = mortars.sides[2 * item + 1], axis = face / 2, outward = face % 2 * 2 - 1;
    mortars.template apply<false>(team, Sides::of(mortars.halves, child, 0), Sides::of(mortars.halves, child, 1), large,
                                  scratch.middle, scratch.fine);
    const Real* face_input = traces + Index{mortars.fine_slots[item * Sides::children + child]} * Elements::slot;
    team.for_each(half, [&](int q) SEICHE_INLINED {
      const int c = q / Box::face, node = q % Box::face;
      const Real* record = mortars.coefficients(item, child, node, nodal);
      Real dt_unused;
      Flux::jump(face_input + q, half, record + Flux::coefficients * Fields::kind(axis, c), outward, scratch.fine[q],
                 scratch.fine[half + q], target[q], dt_unused);
    });
    team.barrier();
  }
};

}  // namespace seiche
