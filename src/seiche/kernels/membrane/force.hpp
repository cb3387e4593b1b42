// SPDX-License-Identifier: BSD-3-Clause
/// Forces of membranes on their vertices (theory/cells, eqs. 1 to 11), and the resulting slip. A team processes a cell
/// in its scratch memory. Elements write forces on their control points, chunk by chunk; vertices then add up their
/// entries. There are no atomics and the order of sums is fixed. Results are bitwise equal on every device and for any
/// number of threads.
#pragma once
#include "shells.hpp"

namespace seiche {

/// Item i: cell i of a type, whose vertices begin at first + vertices i. `positions` and `force` are [3][stride].
/// Bytes of a vertex: three coordinates read, six components written; the lists of a type remain cached.
template <class Shell, int Capacity>
struct MembraneForce {
  using Real = typename Shell::Real;
  static constexpr int chunk = Shell::chunk, lanes = batch_lanes<Real>;
  static constexpr int bytes = Capacity * 3 * (8 + 2 * static_cast<int>(sizeof(Real)));

  struct Scratch {
    Vectors<Real, Capacity> positions;  ///< relative to the first vertex of the cell
    Vectors<Real, Capacity> force;
    Real part[3][Shell::slots * chunk];  ///< forces of a chunk on its control points, ordered by vertex
    Real sums[2][128 + 8 + 1];           ///< area and volume: of 128 lanes, of eight groups, of the cell

    SEICHE_FN void put(int entry, Vector<Real> value) {
      part[0][entry] = value.x;
      part[1][entry] = value.y;
      part[2][entry] = value.z;
    }
  };

  const double* positions;
  Real* force;
  Real* slip;        ///< velocities that the sites do not resolve; null: not needed
  double* measures;  ///< [cell][2]: area and volume of the polyhedron of control points
  Index stride, first;
  Shell shell;
  const i32* chunk_first;         ///< [chunk]: row of its first vertex in `touched`
  const u16* touched;             ///< vertices that receive forces of a chunk
  const u16* entry_end;           ///< [row of touched]: end of its entries in `part` and beginning of the next
  const i32* ring_first;          ///< [vertex]: its first entry in `ring`
  const u16* ring;                ///< neighbours of a vertex, counter-clockwise from outside
  const Real* ring_area;          ///< inverse of twice the rest area between a neighbour and the next
  const Real* share;              ///< [vertex]: mean rest area of vertices over its own
  const u16* faces;               ///< [3][element]
  Real area, volume, local_area;  ///< moduli of the penalties
  Real mobility;                  ///< slip over the sum of differences of forces between neighbours
  Real rest_area, rest_volume;
  i32 vertices, chunks;

  SEICHE_CALLED void operator()(Team team, Index cell, Scratch& s) const {
    const Index begin = first + vertices * cell;
    const double* x = positions + begin;
    const double* y = x + stride;
    const double* z = y + stride;
    const double x0 = x[0], y0 = y[0], z0 = z[0];
    team.for_each(vertices, [&](int v) SEICHE_INLINED {
      s.positions.set(v, {static_cast<Real>(x[v] - x0), static_cast<Real>(y[v] - y0), static_cast<Real>(z[v] - z0)});
    });
    team.barrier();
    measure(team, s);
    const Real cell_area = s.sums[0][136], cell_volume = s.sums[1][136];
    const Real on_area = area * ((cell_area - rest_area) / rest_area);
    const Real on_volume = volume * ((cell_volume - rest_volume) / rest_volume);
    if constexpr (vector_lanes) {
      for (int v = 0; v < vertices; v += lanes) penalties_by_vectors(s, v, on_area, on_volume);
    } else {
      team.for_each(vertices, [&](int v) SEICHE_INLINED { s.force.set(v, penalties(s, v, on_area, on_volume)); });
    }
    for (int c = 0; c < chunks; ++c) {
      const int first_element = c * chunk,
                count = shell.elements - first_element < chunk ? shell.elements - first_element : chunk;
      team.for_each((count + lanes - 1) / lanes,
                    [&](int k) SEICHE_INLINED { shell.forces(begin, first_element + k * lanes, s); });
      team.barrier();
      const i32 row = chunk_first[c];
      team.for_each(chunk_first[c + 1] - row, [&](int k) SEICHE_INLINED {
        const int v = touched[row + k];
        Vector<Real> total = s.force[v];
        const int end = entry_end[row + k];
        for (int e = k > 0 ? entry_end[row + k - 1] : 0; e < end; ++e) {
          total = total + Vector<Real>{s.part[0][e], s.part[1][e], s.part[2][e]};
        }
        s.force.set(v, total);
      });
      team.barrier();
    }
    if (slip != nullptr) {
      team.for_each(vertices, [&](int v) SEICHE_INLINED {
        const Vector<Real> slip_velocity = (mobility * share[v]) * differences(s, v);
        Real* out = slip + begin + v;
        out[0] = slip_velocity.x;
        out[stride] = slip_velocity.y;
        out[2 * stride] = slip_velocity.z;
      });
    }
    Real* out = force + begin;
    team.for_each(vertices, [&](int v) SEICHE_INLINED {
      out[v] = s.force.x[v];
      out[v + stride] = s.force.y[v];
      out[v + 2 * stride] = s.force.z[v];
    });
    team.for_each(2, [&](int k) SEICHE_INLINED { measures[2 * cell + k] = static_cast<double>(s.sums[k][136]); });
    team.barrier();
  }

  /// Area and volume of the polyhedron (eq. 10), summed in a fixed tree.
  SEICHE_FN void measure(Team team, Scratch& s) const {
    if constexpr (vector_lanes) {
      for (int lane = 0; lane < 128; ++lane) s.sums[0][lane] = s.sums[1][lane] = Real(0);
      for (int first = 0; first < shell.elements; first += 128) {
        team.for_each(shell.elements - first < 128 ? shell.elements - first : 128, [&](int lane) SEICHE_INLINED {
          measure_triangle(s, first + lane, s.sums[0][lane], s.sums[1][lane]);
        });
      }
    } else {
      team.for_each(128, [&](int lane) SEICHE_INLINED {
        Real surface = 0, enclosed_volume = 0;
        for (int f = lane; f < shell.elements; f += 128) measure_triangle(s, f, surface, enclosed_volume);
        s.sums[0][lane] = surface;
        s.sums[1][lane] = enclosed_volume;
      });
    }
    team.barrier();
    team.for_each(16, [&](int k) SEICHE_INLINED { add(s.sums[k / 8] + 16 * (k % 8), 16, s.sums[k / 8][128 + k % 8]); });
    team.barrier();
    team.for_each(2, [&](int k) SEICHE_INLINED { add(s.sums[k] + 128, 8, s.sums[k][136]); });
    team.barrier();
  }

  /// Adds the contributions of a triangle.
  SEICHE_FN void measure_triangle(const Scratch& s, int f, Real& surface, Real& enclosed_volume) const {
    const Vector<Real> a = s.positions[faces[f]], b = s.positions[faces[f + shell.elements]];
    const Vector<Real> c = s.positions[faces[f + 2 * shell.elements]], normal = cross(b - a, c - a);
    surface = surface + Real(0.5) * square_root(dot(normal, normal));
    enclosed_volume = enclosed_volume + dot(a, cross(b, c)) / Real(6);
  }

  SEICHE_FN static void add(const Real* values, int count, Real& sum) {
    Real total = 0;
    for (int k = 0; k < count; ++k) total = total + values[k];
    sum = total;
  }

  /// Sum over neighbours of the force per area of a vertex minus that of the neighbour.
  SEICHE_FN Vector<Real> differences(const Scratch& s, int v) const {
    const i32 begin = ring_first[v], end = ring_first[v + 1];
    const Vector<Real> own_force = share[v] * s.force[v];
    Vector<Real> total{};
    for (i32 k = begin; k < end; ++k) total = total + (own_force - share[ring[k]] * s.force[ring[k]]);
    return total;
  }

  /// Penalty forces of area and volume on a vertex, from the triangles around it (eq. 11).
  SEICHE_FN Vector<Real> penalties(const Scratch& s, int v, Real on_area, Real on_volume) const {
    const Vector<Real> at = s.positions[v];
    const i32 begin = ring_first[v], end = ring_first[v + 1];
    Vector<Real> total{};
    Vector<Real> b = s.positions[ring[begin]];
    for (i32 k = begin; k < end; ++k) {
      const Vector<Real> a = b;
      b = s.positions[ring[k + 1 < end ? k + 1 : begin]];
      total = with_penalty(at, a, b, ring_area[k], on_area, on_volume, total);
    }
    return total;
  }
  /// Adds the penalty force on the vertex `at` of the triangle of `at`, `a` and `b` to `total`.
  SEICHE_FN Vector<Real> with_penalty(Vector<Real> at, Vector<Real> a, Vector<Real> b, Real inverse_rest, Real on_area,
                                      Real on_volume, Vector<Real> total) const {
    const Vector<Real> normal = cross(a - at, b - at);
    const Real double_area = square_root(dot(normal, normal));
    const Real tension = multiply_add(local_area, multiply_add(double_area, inverse_rest, Real(-1)), on_area);
    total = multiply_add(Real(-0.5) * (tension / double_area), cross(normal, b - a), total);
    return multiply_add(on_volume / Real(-6), cross(a, b), total);
  }
  /// The same for `lanes` vertices from v on. Their neighbours are collected first, because a vector cannot be loaded
  /// soon after its parts were stored.
  SEICHE_FN void penalties_by_vectors(Scratch& s, int v, Real on_area, Real on_volume) const {
    constexpr int pass = 8;  // neighbours at a time
    Real at[3][lanes], near[pass + 1][3][lanes], inverse_rest[pass][lanes], total[3][lanes] = {};
    i32 begin[lanes], most = 0;
    Real count[lanes];
    const auto collect = [&](Real(&of)[3][lanes], int k, i32 vertex) SEICHE_INLINED {
      const Vector<Real> x = s.positions[vertex];
      of[0][k] = x.x;
      of[1][k] = x.y;
      of[2][k] = x.z;
    };
    for (int k = 0; k < lanes; ++k) {
      const int vertex = v + k < vertices ? v + k : vertices - 1;  // the last batch is padded with copies
      const i32 number = ring_first[vertex + 1] - ring_first[vertex];
      begin[k] = ring_first[vertex];
      count[k] = static_cast<Real>(number);
      most = number > most ? number : most;
      collect(at, k, vertex);
    }
    for (i32 first = 0; first < most; first += pass) {
      const i32 passed = most - first < pass ? most - first : pass;
      for (int k = 0; k < lanes; ++k) {
        const i32 number = static_cast<i32>(count[k]);
        for (i32 n = 0; n <= passed; ++n) {
          const i32 entry = begin[k] + (first + n < number ? first + n : 0);
          collect(near[n], k, ring[entry]);
          if (n < pass) inverse_rest[n][k] = ring_area[entry];
        }
      }
      for (i32 n = 0; n < passed; ++n) {
        vector_loop<lanes>([&](int k) SEICHE_INLINED {
          const Vector<Real> x{at[0][k], at[1][k], at[2][k]}, a{near[n][0][k], near[n][1][k], near[n][2][k]};
          const Vector<Real> b{near[n + 1][0][k], near[n + 1][1][k], near[n + 1][2][k]};
          const Vector<Real> before{total[0][k], total[1][k], total[2][k]};
          const Vector<Real> after = with_penalty(x, a, b, inverse_rest[n][k], on_area, on_volume, before);
          const bool counts = static_cast<Real>(first + n) < count[k];
          total[0][k] = counts ? after.x : before.x;
          total[1][k] = counts ? after.y : before.y;
          total[2][k] = counts ? after.z : before.z;
        });
      }
    }
    for (int k = 0; k < lanes && v + k < vertices; ++k) s.force.set(v + k, {total[0][k], total[1][k], total[2][k]});
  }
};

}  // namespace seiche
