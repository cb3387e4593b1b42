// SPDX-License-Identifier: BSD-3-Clause
/// The two halves of a leapfrog step with the central flux (theory/waves, section 11, eqs. 24 and 25): velocities from
/// stresses, then stresses from velocities. Each half reads one half of the traces and writes the other, so one buffer
/// of traces is enough. Words per node: all unknowns once, the updated unknowns a second time, the traces.
#pragma once
#include "element.hpp"

namespace seiche {

enum class Half { velocities, stresses };

/// Bits of `tuning`, as in FusedStage: unrolled nodes, early loads of the updated fields, prefetch of later elements,
/// streaming stores.
template <class Elements, Half half, int elements, int layers, int tuning>
struct Leap {
  using Real = typename Elements::Real;
  using Fields = typename Elements::Fields;
  using Flux = typename Elements::Flux;
  using Box = typename Elements::Box;
  using Line = typename Elements::Line;
  static_assert(Flux::words == 2, "only averages know velocities and tractions apart");
  static constexpr int n = Box::n, dim = Box::dim, waves = Fields::waves, size = Elements::size;
  static constexpr bool velocities = half == Half::velocities;
  static constexpr bool unrolled = tuning & 1, early = tuning & 2, prefetches = tuning & 4, streams = tuning & 8;
  /// First field and number of fields that are read, and of those that are updated. Velocities precede or follow the
  /// stresses.
  static constexpr int first_velocity = Fields::velocity(0, 0), first_stress = first_velocity == 0 ? dim : 0;
  static constexpr int stresses = Fields::count - dim;
  static constexpr int first_read = velocities ? first_stress : first_velocity, read = velocities ? stresses : dim;
  static constexpr int first_new = velocities ? first_velocity : first_stress, changed = velocities ? dim : stresses;
  /// Number of words of a slot that are read and written, and their offsets.
  static constexpr int words = waves * Box::face, record = Elements::record, words_read = velocities ? words : 0,
                       words_new = words - words_read;
  static constexpr int bytes =
      elements * static_cast<int>(sizeof(Real)) * ((read + 2 * changed) * Box::nodes + 2 * Box::faces * words);
  static constexpr int elements_per_pass = vector_lanes ? 1 : elements;
  Elements scheme;
  Real* u;
  Real* trace;
  Index prefetch_distance;  ///< prefetch distance in items
  Real dt;

  struct Scratch {
    alignas(64) Real fields[elements_per_pass][read * Box::nodes];
    alignas(64) Real faces[elements_per_pass][Box::faces][waves][Box::face];
    Real coefficients[Elements::by_node ? 1 : elements_per_pass][Box::faces][record];
  };
  /// Updated values of a node, loaded before the barrier of the team.
  struct Loaded {
    Real of[early ? changed : 1];
  };

  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    for_elements<elements, elements_per_pass>(item, scheme.count, [&](Index first, int active) SEICHE_INLINED {
      load(team, first, active, scratch);
      for_nodes<Box, elements_per_pass, layers, unrolled>(
          team, active,
          [&](int element, int i, int j) SEICHE_INLINED { return scheme.line(clamped_index(first + element), i, j); },
          [&](int element, int i, int j, int k)
              SEICHE_INLINED { return loaded(clamped_index(first + element), i + n * j + Box::face * k); },
          [&]() SEICHE_INLINED {
            team.barrier();
            for_faces<dim>([&]<int axis, int side>() SEICHE_INLINED {
              team.for_each(active * Box::face, [&](int q) SEICHE_INLINED {
                face<axis, side>(scratch, q / Box::face, first + q / Box::face, q % Box::face);
              });
            });
            team.barrier();
          },
          [&](const Line& line, const Loaded& loaded, int element, int i, int j, int k) SEICHE_INLINED {
            node(line, loaded, scratch.fields[element], scratch.faces[element], first + element, i, j, k);
          });
      if constexpr (vector_lanes) all_traces(team, first);
    });
  }
  SEICHE_FN Index clamped_index(Index element) const {
    return elements_per_pass == 1 || element < scheme.count ? element : scheme.count - 1;
  }

  SEICHE_FN Loaded loaded(Index element, int node) const {
    Loaded result{};
    if constexpr (early) {
      static_for<0, changed>(
          [&]<int f>() SEICHE_INLINED { result.of[f] = u[element * size + (first_new + f) * Box::nodes + node]; });
    }
    return result;
  }

  /// Prefetches later elements into the second-level cache.
  SEICHE_FN void ask_ahead(const Team& team, Index first) const {
    if (first + elements_per_pass > scheme.count) return;
    prefetch_ahead(team, u + first * size, elements_per_pass * size * static_cast<int>(sizeof(Real)));
    constexpr int parts = (words * static_cast<int>(sizeof(Real)) + 127) / 128;
    team.for_each(elements_per_pass * Box::faces * parts, [&](int q) SEICHE_INLINED {
      const i32 source_slot = scheme.in_slots[first * Box::faces + q / parts];
      if (source_slot >= 0) {
        prefetch_line_ahead(trace + Index{source_slot} * Elements::slot + words_read +
                            q % parts * (128 / static_cast<int>(sizeof(Real))));
      }
    });
  }

  SEICHE_FN void load(const Team& team, Index first, int active, Scratch& scratch) const {
    constexpr int per_element = read * Box::nodes, face_words = Box::faces * words, numbers = Box::faces * record;
    if constexpr (prefetches) ask_ahead(team, first + prefetch_distance * elements_per_pass);
    if constexpr (elements_per_pass == 1) {
      copy_aligned<per_element>(team, u + first * size + first_read * Box::nodes, scratch.fields[0]);
    } else {
      team.for_each(active * per_element, [&](int q) SEICHE_INLINED {
        scratch.fields[q / per_element][q % per_element] =
            u[(first + q / per_element) * size + first_read * Box::nodes + q % per_element];
      });
    }
    const auto source = [&](int q) SEICHE_INLINED {
      const i32 source_slot = scheme.in_slots[first * Box::faces + q];
      return (Elements::hangs && source_slot < 0 ? scheme.corrections + Index{-1 - source_slot} * 2 * words
                                                 : trace + Index{source_slot} * Elements::slot) +
             words_read;
    };
    if constexpr (vector_lanes) {  // a face is contiguous in memory
      for (int q = 0; q < active * Box::faces; ++q) {
        const Real* source_words = source(q);
        Real* target = scratch.faces[q / Box::faces][q % Box::faces][0];
        team.for_each(words, [&](int w) SEICHE_INLINED { target[w] = source_words[w]; });
      }
    } else {
      team.for_each(active * face_words, [&](int q) SEICHE_INLINED {
        (&scratch.faces[q / face_words][0][0][0])[q % face_words] = source(q / words)[q % words];
      });
    }
    if constexpr (!Elements::by_node) {
      team.for_each(active * numbers, [&](int q) SEICHE_INLINED {
        (&scratch.coefficients[q / numbers][0][0])[q % numbers] = scheme.faces[first * numbers + q];
      });
    }
  }

  /// Contribution of a face to the derivatives at one of its nodes (eq. 7). It overwrites the input of the face.
  template <int axis, int side>
  SEICHE_FN void face(Scratch& scratch, int local, Index element, int face_node) const {
    constexpr int number = 2 * axis + side, outward = 2 * side - 1;
    const bool corrected = Elements::hangs && scheme.in_slots[element * Box::faces + number] < 0;
    const Real* q = Elements::by_node ? scheme.coefficients(element, number, face_node)
                                      : scratch.coefficients[Elements::by_node ? 0 : local][number];
    const Real* fields = scratch.fields[local] + Elements::on_face(axis, side, face_node);
    static_for<0, waves>([&]<int c>() SEICHE_INLINED {
      constexpr int field = (velocities ? Fields::stress(axis, c) : Fields::velocity(axis, c)) - first_read;
      constexpr int at = Flux::coefficients * Fields::kind(axis, c) + (velocities ? 3 : 0);
      constexpr int sign = velocities ? Fields::sign * outward : 1, lift = velocities ? 1 : outward;
      Real& there = scratch.faces[local][number][c][face_node];
      const Real jump = q[at] * (there - Real(sign) * fields[field * Box::nodes]);
      there = Real(lift * Elements::lift) * (corrected ? there : jump);
    });
  }

  SEICHE_FN void node(const Line& line, const Loaded& loaded, const Real* fields,
                      const Real (&faces)[Box::faces][waves][Box::face], Index element, int i, int j, int k) const {
    const int node = i + n * j + Box::face * k;
    Real dv[dim][waves], ds[dim][waves], m[Fields::moduli], r[Fields::count], updated[changed];
    static_for<0, dim>([&]<int axis>() SEICHE_INLINED {
      const int index = axis == 0         ? i
                        : axis == dim - 1 ? k
                                          : j,
                face_node = Elements::template face_node<axis>(i, j, k);
      const int start = axis == 0 ? n * j + Box::face * k : axis == dim - 1 ? i + n * j : i + Box::face * k;
      scheme.template derivatives<axis, !velocities, velocities, first_read>(line, fields + start, k, dv[axis],
                                                                             ds[axis]);
      const auto &low = faces[2 * axis], &high = faces[2 * axis + 1];
      static_for<0, waves>([&]<int c>() SEICHE_INLINED {
        Real& changing = velocities ? ds[axis][c] : dv[axis][c];
        changing = with_faces<n, axis == 0>(changing, index, low, high, c, face_node) * line.scale[axis];
      });
    });
    scheme.moduli_of(line, element, node, m);
    Fields::rates(dv, ds, m, r);
    static_for<0, changed>([&]<int f>() SEICHE_INLINED {
      Real& at = u[element * size + (first_new + f) * Box::nodes + node];
      updated[f] = multiply_add(dt, r[first_new + f], early ? loaded.of[early ? f : 0] : at);
      store<streams>(&at, updated[f]);
    });
    if constexpr (!vector_lanes) {
      static_for<0, dim>([&]<int axis>() SEICHE_INLINED {
        const int index = axis == 0         ? i
                          : axis == dim - 1 ? k
                                            : j,
                  face_node = Elements::template face_node<axis>(i, j, k);
        if (index == 0) new_trace<axis, 0>(updated, 1, element, face_node);
        if (index == n - 1) new_trace<axis, 1>(updated, 1, element, face_node);
      });
    }
  }

  /// Writes one half of a trace from the new values of a node, `step` apart.
  template <int axis, int side>
  SEICHE_FN void new_trace(const Real* values, int step, Index element, int face_node) const {
    constexpr int number = 2 * axis + side, outward = 2 * side - 1;
    Real* target =
        trace + Index{scheme.out_slots[element * Box::faces + number]} * Elements::slot + words_new + face_node;
    static_for<0, waves>([&]<int c>() SEICHE_INLINED {
      constexpr int field = (velocities ? Fields::velocity(axis, c) : Fields::stress(axis, c)) - first_new;
      constexpr int sign = velocities ? 1 : -Fields::sign * outward;
      target[c * Box::face] = Real(sign) * values[field * step];
    });
  }
  SEICHE_FN void all_traces(const Team& team, Index element) const {
    for_faces<dim>([&]<int axis, int side>() SEICHE_INLINED {
      team.for_each(Box::face, [&](int face_node) SEICHE_INLINED {
        const Real* values = u + element * size + first_new * Box::nodes + Elements::on_face(axis, side, face_node);
        new_trace<axis, side>(values, Box::nodes, element, face_node);
      });
    });
  }
};

}  // namespace seiche
