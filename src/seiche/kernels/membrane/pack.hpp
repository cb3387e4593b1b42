// SPDX-License-Identifier: BSD-3-Clause
/// Separation of growing rigid cells that overlap each other or a wall (theory/cells, eq. 12). Item i: a cell, which
/// sums the contributions of its neighbours in a fixed order. The threads of a team test points; contacts are then
/// added in the order of the points.
#pragma once
#include "../warps.hpp"
#include "vector.hpp"

namespace seiche {

/// Distance from a surface on a regular lattice, negative inside. It is linear between nodes and clamped at the border.
struct DistanceGrid {
  Vector<double> origin;
  double spacing;
  Index first;  ///< first of its nodes among those of all grids, x slowest
  i32 shape[4];

  SEICHE_FN static double cell_coordinate(double x, i32 nodes, Index& cell) {
    const double last = static_cast<double>(nodes - 1), clamped = x < 0 ? 0 : x > last ? last : x;
    cell = static_cast<Index>(clamped);
    if (cell > nodes - 2) cell = nodes - 2;
    return clamped - static_cast<double>(cell);
  }

  SEICHE_FN double distance(const double* nodes, Vector<double> at, Vector<double>& gradient) const {
    const Vector<double> x = (1.0 / spacing) * (at - origin);
    Index i, j, k;
    const double u = cell_coordinate(x.x, shape[0], i), v = cell_coordinate(x.y, shape[1], j),
                 w = cell_coordinate(x.z, shape[2], k);
    const Index row = shape[2], sheet = row * shape[1];
    const double* n = nodes + first + sheet * i + row * j + k;
    const double a = n[0] + w * (n[1] - n[0]), b = n[row] + w * (n[row + 1] - n[row]);
    const double c = n[sheet] + w * (n[sheet + 1] - n[sheet]);
    const double d = n[sheet + row] + w * (n[sheet + row + 1] - n[sheet + row]);
    const double e = a + v * (b - a), f = c + v * (d - c);
    const double near_w = (n[1] - n[0]) + v * ((n[row + 1] - n[row]) - (n[1] - n[0]));
    const double far_w =
        (n[sheet + 1] - n[sheet]) + v * ((n[sheet + row + 1] - n[sheet + row]) - (n[sheet + 1] - n[sheet]));
    gradient =
        (1.0 / spacing) * Vector<double>{f - e, (b - a) + u * ((d - c) - (b - a)), near_w + u * (far_w - near_w)};
    return e + u * (f - e);
  }
};

/// A type of cells: its grid, its points among those of all types, and the radius of the sphere around it.
struct RigidKind {
  DistanceGrid grid;
  Index first_point, points;
  double radius;
};

struct PackPush {
  const double* centers;    ///< [cell][3]
  const double* rotations;  ///< [cell][9], rows of the matrix from the reference frame of a cell
  const u16* kind;
  const RigidKind* kinds;
  const double* points;  ///< [point][3] on the surfaces
  const double* nodes;   ///< of all grids
  const i32* first;      ///< [cell]: first row of `neighbors`
  const i32* neighbors;
  const double* shifts;  ///< [row][3]: from the neighbour to its periodic image near the cell
  double* out;           ///< [cell][10]: push, turn, contacts, sum of squared levers, greatest depth, deepest overlap
  DistanceGrid wall;     ///< distance from the wall, negative inside the vessel
  double scale, gap;
  static constexpr int bytes = 256;

  /// A point in contact: its lever, the direction of the push, and the depth.
  struct Touch {
    Vector<double> lever, normal;
    double penetration;
  };
  struct Sums {
    Vector<double> push{}, turn{};
    double contacts = 0, levers = 0, depth = 0;
  };
  static constexpr int group = 128, kept = 128, parts = 9;
  /// Contacts of a team in order, by component of `Sums`.
  struct Scratch {
    double value[parts][kept + group];
    int totals[group / warp_threads];
  };

  SEICHE_FN static Vector<double> at(const double* a, Index k) { return {a[3 * k], a[3 * k + 1], a[3 * k + 2]}; }
  SEICHE_FN static Vector<double> rotated(const double* m, Vector<double> a) {
    return {m[0] * a.x + m[1] * a.y + m[2] * a.z, m[3] * a.x + m[4] * a.y + m[5] * a.z,
            m[6] * a.x + m[7] * a.y + m[8] * a.z};
  }
  SEICHE_FN static Vector<double> rotated_back(const double* m, Vector<double> a) {
    return {m[0] * a.x + m[3] * a.y + m[6] * a.z, m[1] * a.x + m[4] * a.y + m[7] * a.z,
            m[2] * a.x + m[5] * a.y + m[8] * a.z};
  }

  /// Point p of the cell `cell` (rotation m), which may overlap the cell `other` (rotation n) at distance `separation`.
  SEICHE_FN bool pierces(const RigidKind& cell, const double* m, const RigidKind& other, const double* n,
                         Vector<double> separation, double sign, Index p, Touch& touch) const {
    const double reach = other.radius * scale + gap;
    const Vector<double> lever = scale * rotated(m, at(points, cell.first_point + p)), from_other = lever + separation;
    if (dot(from_other, from_other) > reach * reach) return false;
    Vector<double> gradient;
    const double away = scale * other.grid.distance(nodes, (1.0 / scale) * rotated_back(n, from_other), gradient) - gap;
    if (away < 0) touch = {sign > 0 ? lever : from_other, sign * rotated(n, gradient), -away};
    return away < 0;
  }
  /// Point p of a cell, which may overlap the wall.
  SEICHE_FN bool leaves(const RigidKind& cell, const double* m, Vector<double> center, Index p, Touch& touch) const {
    const Vector<double> lever = scale * rotated(m, at(points, cell.first_point + p));
    Vector<double> gradient;
    const double inside = wall.distance(nodes, center + lever, gradient) + gap;
    if (inside > 0) touch = {lever, -1.0 * gradient, inside};
    return inside > 0;
  }

  SEICHE_FN void operator()(const Team& team, Index i, Scratch& scratch) const {
    if constexpr (Team::single_thread) {
      Sums sums;
      for_points(i, [&](Index number, auto&& test) SEICHE_INLINED {
        for (Index p = 0; p < number; ++p) {
          Touch touch;
          if (test(p, touch)) add(touch, sums);
        }
      });
      const double values[parts] = {sums.push.x, sums.push.y,   sums.push.z, sums.turn.x, sums.turn.y,
                                    sums.turn.z, sums.contacts, sums.levers, sums.depth};
      for (int c = 0; c < parts; ++c) store(i, c, values[c]);
    } else {
      int count = 0;   // contacts in `scratch`
      double sum = 0;  // of one component, in each of the first threads
      for_points(i, [&](Index number, auto&& test) { collect(team, number, test, scratch, count, sum); });
      flush(team, scratch, count, sum);
      if (team.thread < parts) store(i, team.thread, sum);
    }
  }
  /// f(number, test) for groups of points that cell i may touch, in order; test(p, touch) tests point p.
  template <class F>
  SEICHE_FN void for_points(Index i, F&& f) const {
    const double* m = rotations + 9 * i;
    const RigidKind& cell = kinds[kind[i]];
    const Vector<double> center = at(centers, i);
    for (i32 row = first[i]; row < first[i + 1]; ++row) {
      const Index j = neighbors[row];
      const double* n = rotations + 9 * j;
      const RigidKind& other = kinds[kind[j]];
      const Vector<double> separation = center - (at(centers, j) + at(shifts, row));
      f(cell.points,
        [&](Index p, Touch& touch) SEICHE_INLINED { return pierces(cell, m, other, n, separation, 1, p, touch); });
      f(other.points, [&](Index p, Touch& touch) SEICHE_INLINED {
        return pierces(other, n, cell, m, Vector<double>{} - separation, -1, p, touch);
      });
    }
    if (wall.spacing > 0) {
      f(cell.points, [&](Index p, Touch& touch) SEICHE_INLINED { return leaves(cell, m, center, p, touch); });
    }
  }
  SEICHE_FN static void add(const Touch& touch, Sums& sums) {
    sums.push = sums.push + touch.penetration * touch.normal;
    sums.turn = sums.turn + touch.penetration * cross(touch.lever, touch.normal);
    sums.contacts += 1;
    sums.levers += dot(touch.lever, touch.lever);
    sums.depth = touch.penetration > sums.depth ? touch.penetration : sums.depth;
  }
  /// Stores component c of the sums of cell i; the last one also gives the deepest overlap.
  SEICHE_FN void store(Index i, int c, double value) const {
    out[10 * i + c] = value;
    if (c == parts - 1) out[10 * i + parts] = value - gap > 0 ? value - gap : 0;
  }

  /// Tests points, one per thread, and keeps the contacts in order.
  template <class Test>
  SEICHE_FN void collect(const Team& team, Index number, Test&& test, Scratch& s, int& count, double& sum) const {
    const int lane = team.thread % warp_threads, warp = team.thread / warp_threads;
    for (Index begin = 0; begin < number; begin += group) {
      Touch touch{};
      const bool found = begin + team.thread < number && test(begin + team.thread, touch);
      const u32 all = votes(found);
      if (lane == 0) s.totals[warp] = bit_count(all);
      team.barrier();
      int place = count + bit_count(all & ((1u << lane) - 1));
      for (int w = 0; w < group / warp_threads; ++w) {
        place += w < warp ? s.totals[w] : 0;
        count += s.totals[w];
      }
      if (found) {
        Sums one;
        add(touch, one);
        const double values[parts] = {one.push.x, one.push.y,   one.push.z, one.turn.x, one.turn.y,
                                      one.turn.z, one.contacts, one.levers, one.depth};
        for (int c = 0; c < parts; ++c) s.value[c][place] = values[c];
      }
      team.barrier();
      if (count > kept) flush(team, s, count, sum);
    }
  }
  /// Adds the kept contacts in order, one component per thread.
  SEICHE_FN void flush(const Team& team, Scratch& s, int& count, double& sum) const {
    if (team.thread < parts) {
      for (int k = 0; k < count; ++k) {
        const double value = s.value[team.thread][k];
        sum = team.thread < parts - 1 ? sum + value : value > sum ? value : sum;
      }
    }
    team.barrier();
    count = 0;
  }
};

}  // namespace seiche
