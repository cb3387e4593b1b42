// SPDX-License-Identifier: BSD-3-Clause
/// One Runge-Kutta stage of whole elements in one sweep: volume, faces, integration and the new traces (theory/waves,
/// eqs. 4 to 12 and 15). The state is updated in place; only traces are double-buffered.
/// Words per node: the state twice, the register twice (once in the first and in the last stage), the traces twice.
#pragma once
#include "element.hpp"

namespace seiche {

/// Position of the stage. The first does not read the register y (A = 0), the last need not write it. `rates` only
/// stores L(u) in place of the register; another kernel then updates the state and its traces (integrate.hpp).
/// `tape_first`, `tape` and `tape_last` leave state and register as they are and write the new ones elsewhere, for the
/// adjoint of the step; the last state is not written. `adjoint` is the stage of the adjoint (theory/waves, eq. 22).
enum class Position { first, inner, last, rates, tape_first, tape, tape_last, adjoint };

/// Bits of `tuning`: unrolled nodes, early loads of the register, prefetch of later elements, streaming stores, copy of
/// the register in shared memory (registry/dg_teams.py, Team).
template <class Elements, Position position, int elements, int layers, int tuning>
struct FusedStage {
  using Real = typename Elements::Real;
  using Fields = typename Elements::Fields;
  using Box = typename Elements::Box;
  static constexpr bool unrolled = tuning & 1, prefetches = tuning & 4, streams = tuning & 8;
  static constexpr bool rates_only = position == Position::rates, is_adjoint = position == Position::adjoint;
  static constexpr bool begins = position == Position::first || position == Position::tape_first;
  static constexpr bool ends = position == Position::tape_last;
  static constexpr bool taped = ends || position == Position::tape_first || position == Position::tape;
  static constexpr bool reads_register = !begins && !rates_only;
  /// The register is copied after the state and awaited after the faces.
  static constexpr bool copies_register = !vector_lanes && (tuning & 16) && reads_register && !is_adjoint;
  /// Disabled on the CPU, where it would prevent vectorisation of the loop over a line of nodes.
  static constexpr bool early = !vector_lanes && (tuning & 2) && !copies_register;
  static constexpr bool writes_register = position != Position::last && !rates_only;
  static constexpr bool writes_state = !rates_only && !ends;
  /// The layers of threads of one element share its faces.
  static constexpr int face_parts = elements == 1 ? layers : 1;
  using FaceInput = typename Elements::template FaceInput<true>;
  using Line = typename Elements::Line;
  static constexpr int n = Box::n, dim = Box::dim, waves = Fields::waves, size = Elements::size;
  static constexpr int states = 1 + (rates_only || writes_state) + reads_register + writes_register;
  static constexpr int traces = writes_state ? 2 : 1;
  static constexpr int bytes =
      elements * static_cast<int>(sizeof(Real)) * (states * size + traces * Box::faces * Elements::slot);
  Elements scheme;
  Real* u;
  Real* k;
  const Real* trace;
  Real* next_trace;
  Real* next_u;  ///< taped stages: new state and register
  Real* next_k;
  Index prefetch_distance;  ///< prefetch distance in items
  Real a, b, dt;

  SEICHE_FN Real* new_u() const { return taped ? next_u : u; }
  SEICHE_FN Real* new_k() const { return taped ? next_k : k; }

  /// The CPU processes the elements of an item one by one.
  static constexpr int elements_per_pass = vector_lanes ? 1 : elements;
  /// A GPU copies 16 bytes at a time, so loaded data may include values of other elements, `misalignment` of them at
  /// the start.
  static constexpr int vector_words = vector_lanes ? 1 : 16 / static_cast<int>(sizeof(Real));
  static constexpr int numbers = elements_per_pass * size + 2 * (vector_words - 1);
  struct Scratch {
    alignas(64) Real u[numbers];
    FaceInput face_input[elements_per_pass];
    alignas(16) Real k[copies_register ? numbers : 1];
  };
  SEICHE_FN static int misalignment(Index first) { return static_cast<int>(first * size % vector_words); }
  SEICHE_FN static Real* state_of(Scratch& scratch, Index first, int element) {
    return scratch.u + misalignment(first) + element * size;
  }
  SEICHE_FN static const Real* register_of(const Scratch& scratch, Index first, int element) {
    return scratch.k + misalignment(first) + element * size;
  }

  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    for_elements<elements, elements_per_pass>(item, scheme.count, [&](Index first, int active) SEICHE_INLINED {
      load(team, first, active, scratch);
      for_nodes<Box, elements_per_pass, layers, unrolled>(
          team, active,
          [&](int element, int i, int j) SEICHE_INLINED { return scheme.line(clamped_index(first + element), i, j); },
          [&](int element, int i, int j, int k) SEICHE_INLINED {
            return early ? loaded(clamped_index(first + element), i + n * j + Box::face * k) : Loaded{};
          },
          [&]() SEICHE_INLINED {
            if constexpr (copies_register) {
              wait_for_earlier_copies();
            } else {
              wait_for_copies();
            }
            team.barrier();
            all_faces(team, first, active, scratch);
            if constexpr (copies_register) wait_for_copies();
            team.barrier();
          },
          [&](const Line& line, const Loaded& loaded, int element, int i, int j, int k) SEICHE_INLINED {
            node(line, loaded, state_of(scratch, first, element), register_of(scratch, first, element),
                 scratch.face_input[element], first + element, i, j, k);
          });
      if constexpr (vector_lanes && writes_state) all_traces(team, first, scratch.face_input[0]);
    });
  }

  /// The register y of a node, loaded before the barrier of the team.
  struct Loaded {
    Real of[reads_register && early ? Fields::count : 1];
  };
  SEICHE_FN Loaded loaded(Index element, int node) const {
    Loaded result{};
    if constexpr (reads_register && early) {
      static_for<0, Fields::count>([&]<int f>()
                                       SEICHE_INLINED { result.of[f] = k[element * size + f * Box::nodes + node]; });
    }
    return result;
  }
  /// Index of an existing element. Threads beyond the last element repeat its work without writing.
  SEICHE_FN Index clamped_index(Index element) const {
    return elements_per_pass == 1 || element < scheme.count ? element : scheme.count - 1;
  }

  /// Prefetches later elements into the second-level cache.
  SEICHE_FN void ask_ahead(const Team& team, Index first) const {
    constexpr int bytes = elements_per_pass * size * static_cast<int>(sizeof(Real));
    if (first + elements_per_pass > scheme.count) return;
    if (prefetch_distance > 0) prefetch_ahead(team, u + first * size, bytes);
    if constexpr (reads_register) prefetch_ahead(team, k + first * size, bytes);
    if (prefetch_distance > 0) prefetch_traces(team, first, trace);
  }
  /// Prefetches the traces of the neighbours of later elements.
  SEICHE_FN void prefetch_traces(const Team& team, Index first, const Real* traces) const {
    constexpr int slot = Elements::slot, line = 128 / static_cast<int>(sizeof(Real)), parts = (slot + line - 1) / line;
    team.for_each(elements_per_pass * Box::faces * parts, [&](int q) SEICHE_INLINED {
      const i32 source_slot = scheme.in_slots[first * Box::faces + q / parts];
      if (source_slot >= 0) prefetch_line_ahead(traces + Index{source_slot} * slot + q % parts * line);
    });
  }

  SEICHE_FN void load(const Team& team, Index first, int active, Scratch& scratch) const {
    scheme.load_faces(team, first, active, trace, scratch.face_input, [&]() SEICHE_INLINED {
      if constexpr (vector_lanes) {
        copy_aligned<size>(team, u + first * size, scratch.u);
      } else {
        copy_elements(team, u, first, active, scratch.u);
      }
    });
    if constexpr (!vector_lanes && writes_state) {
      team.for_each(active * Box::faces, [&](int q) SEICHE_INLINED {
        copy_behind<4>(scheme.out_slots + first * Box::faces + q,
                       scratch.face_input[q / Box::faces].out_slot + q % Box::faces);
      });
    }
    if constexpr (copies_register) {
      end_copies();
      copy_elements(team, k, first, active, scratch.k);
      end_copies();
    }
    if constexpr (prefetches) ask_ahead(team, first + prefetch_distance * elements_per_pass);
  }
  /// Copies the values of elements asynchronously, 16 bytes at a time.
  SEICHE_FN static void copy_elements(const Team& team, const Real* values, Index first, int active, Real* target) {
    const int runs = (misalignment(first) + active * size + vector_words - 1) / vector_words;
    const Real* source = values + first * size - misalignment(first);
    team.for_each(runs,
                  [&](int q) SEICHE_INLINED { copy_behind<16>(source + q * vector_words, target + q * vector_words); });
  }

  SEICHE_FN void node(const Line& line, const Loaded& loaded, const Real* state, const Real* copied,
                      const FaceInput& face_input, Index element, int i, int j, int k) const {
    Real r[Fields::count];
    rates_at(line, state, face_input, element, i, j, k, r);
    update(
        [&]<int f>(Index at) SEICHE_INLINED {
          if constexpr (copies_register) return copied[f * Box::nodes + i + n * j + Box::face * k];
          return early ? loaded.of[reads_register && early ? f : 0] : this->k[at];
        },
        state, face_input, element, i, j, k, r);
  }

  /// L(u) at a node.
  SEICHE_FN void rates_at(const Line& line, const Real* state, const FaceInput& face_input, Index element, int i, int j,
                          int k, Real (&r)[Fields::count]) const {
    const int node = i + n * j + Box::face * k;
    Real dv[dim][waves], ds[dim][waves], m[Fields::moduli];
    static_for<0, dim>([&]<int axis>() SEICHE_INLINED {
      const int index = axis == 0 ? i : axis == dim - 1 ? k : j;
      const int start = axis == 0 ? n * j + Box::face * k : axis == dim - 1 ? i + n * j : i + Box::face * k;
      scheme.template derivatives<axis>(line, state + start, k, dv[axis], ds[axis]);
      const int face_node = Elements::template face_node<axis>(i, j, k);
      const auto &low = face_input.trace[2 * axis], &high = face_input.trace[2 * axis + 1];
      static_for<0, waves>([&]<int c>() SEICHE_INLINED {
        dv[axis][c] = with_faces<n, axis == 0>(dv[axis][c], index, low, high, c, face_node) * line.scale[axis];
        ds[axis][c] = with_faces<n, axis == 0>(ds[axis][c], index, low, high, waves + c, face_node) * line.scale[axis];
      });
    });
    scheme.moduli_of(line, element, node, m);
    Fields::rates(dv, ds, m, r);
  }

  /// Integration of a node (eq. 15, or eq. 22 with u = b and k = a), and its new traces on the GPU. `old` returns the
  /// register.
  template <class Old>
  SEICHE_FN void update(Old&& old, const Real* state, const FaceInput& face_input, Index element, int i, int j, int k,
                        const Real (&r)[Fields::count]) const {
    const int node = i + n * j + Box::face * k;
    Real updated[Fields::count];
    static_for<0, Fields::count>([&]<int f>() SEICHE_INLINED {
      const Index at = element * size + f * Box::nodes + node;
      if constexpr (rates_only) {
        store<streams>(this->k + at, r[f]);
      } else {
        Real change;
        if constexpr (is_adjoint) {
          change = multiply_add(dt, r[f], old.template operator()<f>(at));
        } else {
          change = dt * r[f];
          if constexpr (reads_register) change = multiply_add(a, old.template operator()<f>(at), change);
        }
        if constexpr (writes_register) store<streams>(new_k() + at, change);
        if constexpr (writes_state) {
          const Real previous = state[f * Box::nodes + node];
          updated[f] = multiply_add(b, change, is_adjoint ? a * previous : previous);
          store<streams>(new_u() + at, updated[f]);
        }
      }
    });
    if constexpr (!vector_lanes && writes_state) {
      static_for<0, dim>([&]<int axis>() SEICHE_INLINED {
        const int index = axis == 0         ? i
                          : axis == dim - 1 ? k
                                            : j,
                  face_node = Elements::template face_node<axis>(i, j, k);
        if (index == 0) new_trace<axis, 0>(updated, 1, face_input, element, face_node);
        if (index == n - 1) new_trace<axis, 1>(updated, 1, face_input, element, face_node);
      });
    }
  }

  /// Contribution of a face to the derivatives at one of its nodes (eq. 7).
  template <int axis, int side>
  SEICHE_FN void lift(const Real* state, const FaceInput& face_input, Index element, int node, int face_node,
                      Real (&add_v)[waves], Real (&add_s)[waves]) const {
    Real v[waves], s[waves];
    Elements::template side_of<axis>(state, node, v, s);
    scheme.template jumps<axis, side>(face_input, element, face_node, v, s, add_v, add_s);
    static_for<0, waves>([&]<int c>() SEICHE_INLINED {
      add_v[c] *= Real((2 * side - 1) * Elements::lift);
      add_s[c] *= Real(Elements::lift);
    });
  }

  template <int axis, int side>
  SEICHE_FN void new_trace(const Real* updated, int step, const FaceInput& face_input, Index element,
                           int face_node) const {
    Real v[waves], s[waves];
    static_for<0, waves>([&]<int c>() SEICHE_INLINED {
      v[c] = updated[Fields::velocity(axis, c) * step];
      s[c] = Real(Fields::sign) * updated[Fields::stress(axis, c) * step];
    });
    const Real* q = scheme.coefficients(face_input, element, 2 * axis + side, face_node);
    if constexpr (vector_lanes) {
      scheme.template write<axis, side>(q, element, face_node, next_trace, v, s);
    } else {
      scheme.template write_to<axis, side>(q, face_input.out_slot[2 * axis + side], face_node, next_trace, v, s);
    }
  }

  /// Contributions of all faces. They overwrite the input of the faces.
  SEICHE_FN void all_faces(const Team& team, Index first, int active, Scratch& scratch) const {
    for_faces<dim>([&]<int axis, int side>() SEICHE_INLINED {
      team.template for_each_in<face_parts>(2 * axis + side, active * Box::face, [&](int q) SEICHE_INLINED {
        const int element = q / Box::face, face_node = q % Box::face;
        FaceInput& face_input = scratch.face_input[element];
        Real add_v[waves], add_s[waves];
        const int node = Elements::on_face(axis, side, face_node);
        lift<axis, side>(state_of(scratch, first, element), face_input, first + element, node, face_node, add_v, add_s);
        static_for<0, waves>([&]<int c>() SEICHE_INLINED {
          face_input.trace[2 * axis + side][c][face_node] = add_v[c];
          face_input.trace[2 * axis + side][waves + c][face_node] = add_s[c];
        });
      });
    });
  }
  SEICHE_FN void all_traces(const Team& team, Index element, const FaceInput& face_input) const {
    for_faces<dim>([&]<int axis, int side>() SEICHE_INLINED {
      team.for_each(Box::face, [&](int face_node) SEICHE_INLINED {
        const Real* updated = new_u() + element * size + Elements::on_face(axis, side, face_node);
        new_trace<axis, side>(updated, Box::nodes, face_input, element, face_node);
      });
    });
  }
};

}  // namespace seiche
