// SPDX-License-Identifier: BSD-3-Clause
/// Common base of all element kernels: arrays, derivatives along lines, and contributions of faces.
#pragma once
#include "../nodes.hpp"
#include "fields.hpp"
#include "flux.hpp"

namespace seiche {

/// a if `yes`, else zero.
template <class Bits, class Real>
SEICHE_FN Real value_if_bits(bool yes, Real a) {
  return bit_cast<Real>(bit_cast<Bits>(a) & (Bits(0) - Bits(yes)));
}
SEICHE_FN float value_if(bool yes, float a) {
  return value_if_bits<u32>(yes, a);
}
SEICHE_FN double value_if(bool yes, double a) {
  return value_if_bits<u64>(yes, a);
}

/// Derivative at node `index` of a line of n nodes, including the contribution of the face at its low or high end.
/// `first`: the line is along the first axis, where the lanes of the CPU are its nodes. The CPU adds both faces in all
/// lanes, because a conditional load would prevent vectorisation.
template <int n, bool first, class Real, class Rows>
SEICHE_FN Real with_faces(Real value, int index, const Rows& low, const Rows& high, int row, int face_node) {
  if constexpr (!vector_lanes) {
    const bool at_high = index == n - 1;
    const Real sum = value + (at_high ? high : low)[row][face_node];
    return at_high || index == 0 ? sum : value;
  } else if constexpr (first) {
    value = multiply_add(Real(index == 0), low[row][face_node], value);
    return multiply_add(Real(index == n - 1), high[row][face_node], value);
  } else {
    return value + (value_if(index == 0, low[row][face_node]) + value_if(index == n - 1, high[row][face_node]));
  }
}

/// All time-independent data of the right-hand side. Face number: 2 axis + (0: low, 1: high). Storage order of the
/// state: element, field, node. Storage order of traces: slot, word, face node.
template <class Medium, int nodes_a_direction, class FluxRule, class RealType, bool nodal, bool hanging>
struct Elements {
  using Fields = Medium;
  using Flux = FluxRule;
  using Real = RealType;
  using Box = seiche::Box<Fields::dim, nodes_a_direction>;
  static constexpr int n = Box::n, dim = Fields::dim, waves = Fields::waves, size = Fields::count * Box::nodes;
  static constexpr int words = Flux::words * waves, slot = words * Box::face,
                       record = Flux::coefficients * Fields::kinds;
  static constexpr bool by_node = nodal, hangs = hanging;
  /// 1/w_0, exactly: w_0 = 2/(n (n - 1)).
  static constexpr int lift = n * (n - 1) / 2;

  const i32* in_slots;      ///< slot of the neighbour's trace, or -1 - c: correction c of a hanging face
  const i32* out_slots;     ///< slot of the own trace
  const Real* scales;       ///< 2/h for each axis
  const Real* moduli;       ///< per element or per node
  const Real* faces;        ///< coefficients of the flux, per face or per face node
  const Real* rows;         ///< D transposed: rows[m n + i] = D_im
  const Real* corrections;  ///< v* - v-, then t* - t-, at the nodes of large faces
  Index count;              ///< number of elements
  Real derivative[n * n];   ///< D_im

  /// Data that the nodes of a column share: rows of D, scales and moduli of the element.
  struct Line {
    Real x[n], y[dim == 3 ? n : 1], scale[dim], moduli[Fields::moduli];
  };
  SEICHE_FN Line line(Index element, int i, int j) const {
    Line l;
    static_for<0, n>([&]<int m>() SEICHE_INLINED {
      l.x[m] = rows[m * n + i];
      if constexpr (dim == 3) l.y[m] = rows[m * n + j];
    });
    static_for<0, dim>([&]<int a>() SEICHE_INLINED { l.scale[a] = scales[element * dim + a]; });
    if constexpr (!nodal) {
      static_for<0, Fields::moduli>([&]<int a>()
                                        SEICHE_INLINED { l.moduli[a] = moduli[element * Fields::moduli + a]; });
    }
    return l;
  }
  SEICHE_FN void moduli_of(const Line& l, Index element, int node, Real (&m)[Fields::moduli]) const {
    static_for<0, Fields::moduli>([&]<int a>() SEICHE_INLINED {
      m[a] = nodal ? moduli[(element * Fields::moduli + a) * Box::nodes + node] : l.moduli[a];
    });
  }

  /// D along the line of nodes that begins at `start`, applied to velocities, to stresses, or to both. `first` is the
  /// first field of the array that contains `start`.
  template <int axis, bool velocities = true, bool stresses = true, int first = 0>
  SEICHE_FN void derivatives(const Line& line, const Real* start, int k, Real (&dv)[waves], Real (&ds)[waves]) const {
    constexpr int stride = Box::stride(axis);
    static_for<0, waves>([&]<int c>() SEICHE_INLINED {
      const Real* v = start + (velocities ? Fields::velocity(axis, c) - first : 0) * Box::nodes;
      const Real* s = start + (stresses ? Fields::stress(axis, c) - first : 0) * Box::nodes;
      Real sum_v = 0, sum_s = 0;
      static_for<0, n>([&]<int q>() SEICHE_INLINED {
        const Real d = axis == 0 ? line.x[q] : axis == dim - 1 ? derivative[k * n + q] : line.y[q];
        if constexpr (velocities) sum_v = multiply_add(d, v[q * stride], sum_v);
        if constexpr (stresses) sum_s = multiply_add(d, s[q * stride], sum_s);
      });
      dv[c] = sum_v;
      ds[c] = Real(Fields::sign) * sum_s;
    });
  }

  /// Input of the faces of an element: traces of neighbours or corrections, and the coefficients of the flux. `both`
  /// reserves room for the jumps of velocity and of traction.
  template <bool both>
  struct FaceInput {
    static constexpr int words = hanging || both ? 2 * waves : Elements::words;
    alignas(64) Real trace[Box::faces][words][Box::face];
    Real coefficients[nodal ? 1 : Box::faces][record];
    i32 source_slot[Box::faces];
    i32 out_slot[Box::faces];  ///< of `out_slots`, on GPUs
  };
  /// Loads this input from memory, asynchronously (cp.async) on GPUs. `wait_for_copies` and a barrier must follow.
  /// `meanwhile` is called between the loads of the slots and the copies that need them.
  template <class FaceInput, class Meanwhile>
  SEICHE_FN void load_faces(const Team& team, Index first, int active, const Real* trace, FaceInput* input,
                            Meanwhile&& meanwhile) const {
    constexpr int numbers = Box::faces * record;
    if constexpr (vector_lanes) {  // a face is contiguous in memory
      meanwhile();
      for (int q = 0; q < active * Box::faces; ++q) {
        const i32 source_slot = in_slots[first * Box::faces + q];
        Real* target = input[q / Box::faces].trace[q % Box::faces][0];
        if (!hanging || source_slot >= 0) {
          const Real* neighbour_trace = trace + Index{source_slot} * slot;
          team.for_each(slot, [&](int node) SEICHE_INLINED { target[node] = neighbour_trace[node]; });
        }
      }
    } else {
      constexpr int real = static_cast<int>(sizeof(Real)), max_words = 16 / real;
      constexpr int vector_words = slot % max_words == 0  ? max_words
                                   : slot * real % 8 == 0 ? 8 / real
                                                          : 1,
                    parts = slot / vector_words;
      constexpr int batch = 4;  // slots loaded at a time
      const int total = active * Box::faces * parts;
      for (int begin = team.thread; begin == team.thread || begin < total; begin += batch * team.threads) {
        i32 slots[batch];
        static_for<0, batch>([&]<int b>() SEICHE_INLINED {
          const int q = begin + b * team.threads;
          slots[b] = q < total ? in_slots[first * Box::faces + q / parts] : -1;
        });
        if (begin == team.thread) meanwhile();
        static_for<0, batch>([&]<int b>() SEICHE_INLINED {
          const int q = begin + b * team.threads;
          const int e = q / (Box::faces * parts), face = q / parts % Box::faces, node = q % parts * vector_words;
          if (q < total && (!hanging || slots[b] >= 0))
            copy_behind<vector_words * real>(trace + Index{slots[b]} * slot + node, &input[e].trace[face][0][0] + node);
        });
      }
    }
    if constexpr (hanging) {
      constexpr int both = 2 * waves * Box::face;
      team.for_each(active * Box::faces * both, [&](int q) SEICHE_INLINED {
        const int e = q / (Box::faces * both), face = q / both % Box::faces, node = q % both;
        const i32 source_slot = in_slots[first * Box::faces + q / both];
        input[e].source_slot[face] = source_slot;
        if (source_slot < 0) (&input[e].trace[face][0][0])[node] = corrections[Index{-1 - source_slot} * both + node];
      });
    }
    if constexpr (!nodal) {
      team.for_each(active * numbers, [&](int q) SEICHE_INLINED {
        Real* target = &input[q / numbers].coefficients[0][0] + q % numbers;
        if constexpr (!vector_lanes) {
          copy_behind<static_cast<int>(sizeof(Real))>(faces + first * numbers + q, target);
        } else {
          *target = faces[first * numbers + q];
        }
      });
    }
  }
  /// Coefficients of the flux at a face node, from memory or from the loaded input.
  SEICHE_FN const Real* coefficients(Index element, int face, int node) const {
    return faces + ((element * Box::faces + face) * (nodal ? Box::face : 1) + (nodal ? node : 0)) * record;
  }
  template <class FaceInput>
  SEICHE_FN const Real* coefficients(const FaceInput& face_input, Index element, int face, int node) const {
    if constexpr (nodal) return coefficients(element, face, node);
    return face_input.coefficients[nodal ? 0 : face];
  }

  /// v* - v- and t* - t- of a face node.
  template <int axis, int side, class FaceInput>
  SEICHE_FN void jumps(const FaceInput& face_input, Index element, int node, const Real (&v)[waves],
                       const Real (&s)[waves], Real (&dv)[waves], Real (&dt)[waves]) const {
    constexpr int face = 2 * axis + side, outward = 2 * side - 1;
    const Real* trace = face_input.trace[face][0] + node;
    if constexpr (hanging) {
      if (face_input.source_slot[face] < 0) {
        static_for<0, waves>([&]<int c>() SEICHE_INLINED {
          dv[c] = trace[c * Box::face];
          dt[c] = trace[(waves + c) * Box::face];
        });
        return;
      }
    }
    const Real* q = coefficients(face_input, element, face, node);
    static_for<0, waves>([&]<int c>() SEICHE_INLINED {
      Flux::jump(trace + c * Box::face, waves * Box::face, q + Flux::coefficients * Fields::kind(axis, c), outward,
                 v[c], s[c], dv[c], dt[c]);
    });
  }

  /// Writes the trace that the neighbour across a face will read.
  template <int axis, int side>
  SEICHE_FN void write(const Real* q, Index element, int node, Real* trace, const Real (&v)[waves],
                       const Real (&s)[waves]) const {
    write_to<axis, side>(q, out_slots[element * Box::faces + 2 * axis + side], node, trace, v, s);
  }
  template <int axis, int side>
  SEICHE_FN void write_to(const Real* q, i32 out_slot, int node, Real* trace, const Real (&v)[waves],
                          const Real (&s)[waves]) const {
    constexpr int outward = 2 * side - 1;
    Real* target = trace + Index{out_slot} * slot + node;
    static_for<0, waves>([&]<int c>() SEICHE_INLINED {
      const Real z = Flux::impedance(q + Flux::coefficients * Fields::kind(axis, c));
      Flux::write(target + c * Box::face, waves * Box::face, z, outward, v[c], s[c]);
    });
  }

  /// Writes all traces of an element from its state in memory.
  SEICHE_CALLED void write_all(const Team& team, Index element, const Real* u, Real* trace) const {
    static_for<0, dim>([&]<int axis>() SEICHE_INLINED {
      static_for<0, 2>([&]<int side>() SEICHE_INLINED {
        team.for_each(Box::face, [&](int face_node) SEICHE_INLINED {
          Real v[waves], s[waves];
          side_of<axis>(u + element * size, on_face(axis, side, face_node), v, s);
          write<axis, side>(coefficients(element, 2 * axis + side, face_node), element, face_node, trace, v, s);
        });
      });
    });
  }

  /// Factor of a source of field f at a node.
  template <int f>
  SEICHE_FN Real source_factor(Index element, int node) const {
    constexpr int m = Fields::source_modulus(f);
    if constexpr (m < 0) {
      return Real(1);
    } else {
      return nodal ? moduli[(element * Fields::moduli + m) * Box::nodes + node] : moduli[element * Fields::moduli + m];
    }
  }

  /// v_c and S_ca of a node.
  template <int axis>
  SEICHE_FN static void side_of(const Real* u, int node, Real (&v)[waves], Real (&s)[waves]) {
    static_for<0, waves>([&]<int c>() SEICHE_INLINED {
      v[c] = u[Fields::velocity(axis, c) * Box::nodes + node];
      s[c] = Real(Fields::sign) * u[Fields::stress(axis, c) * Box::nodes + node];
    });
  }

  /// The node of an element at face_node `node` of a face.
  SEICHE_FN static constexpr int on_face(int axis, int side, int node) {
    const int offset = side * (n - 1) * Box::stride(axis);
    return axis == dim - 1 ? offset + node : axis == 0 ? offset + node * n : offset + node % n + node / n * Box::face;
  }
  /// The face_node on a face across `axis` of the node (i, j, k).
  template <int axis>
  SEICHE_FN static int face_node(int i, int j, int k) {
    return axis == 0 ? (dim == 3 ? j + n * k : k) : axis == dim - 1 ? i + n * j : i + n * k;
  }
};

}  // namespace seiche
