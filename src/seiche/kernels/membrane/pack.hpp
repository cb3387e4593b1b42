// SPDX-License-Identifier: BSD-3-Clause
/// Separation of growing rigid cells that overlap each other or a wall (theory/cells, eq. 12). Item i: a cell, which
/// sums the contributions of its neighbours in a fixed order.
#pragma once
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

  struct Sums {
    Vector<double> push{}, turn{};
    double contacts = 0, levers = 0, depth = 0, overlap = 0;
    SEICHE_FN void add(Vector<double> lever, Vector<double> normal, double penetration, double gap) {
      push = push + penetration * normal;
      turn = turn + penetration * cross(lever, normal);
      contacts += 1;
      levers += dot(lever, lever);
      depth = penetration > depth ? penetration : depth;
      overlap = penetration - gap > overlap ? penetration - gap : overlap;
    }
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

  /// Points of the cell `cell` (rotation m) that overlap the cell `other` (rotation n), at distance `separation`.
  SEICHE_FN void pierce(const RigidKind& cell, const double* m, const RigidKind& other, const double* n,
                        Vector<double> separation, double sign, Sums& sums) const {
    const double reach = other.radius * scale + gap;
    for (Index p = cell.first_point; p < cell.first_point + cell.points; ++p) {
      const Vector<double> lever = scale * rotated(m, at(points, p)), from_other = lever + separation;
      if (dot(from_other, from_other) > reach * reach) continue;
      Vector<double> gradient;
      const double distance =
          scale * other.grid.distance(nodes, (1.0 / scale) * rotated_back(n, from_other), gradient) - gap;
      if (distance < 0) sums.add(sign > 0 ? lever : from_other, sign * rotated(n, gradient), -distance, gap);
    }
  }

  SEICHE_FN void operator()(Index i) const {
    Sums sums;
    const double* m = rotations + 9 * i;
    const RigidKind& cell = kinds[kind[i]];
    const Vector<double> center = at(centers, i);
    for (i32 row = first[i]; row < first[i + 1]; ++row) {
      const Index j = neighbors[row];
      const RigidKind& other = kinds[kind[j]];
      const Vector<double> separation = center - (at(centers, j) + at(shifts, row));
      pierce(cell, m, other, rotations + 9 * j, separation, 1, sums);
      pierce(other, rotations + 9 * j, cell, m, Vector<double>{} - separation, -1, sums);
    }
    if (wall.spacing > 0) {
      for (Index p = cell.first_point; p < cell.first_point + cell.points; ++p) {
        const Vector<double> lever = scale * rotated(m, at(points, p));
        Vector<double> gradient;
        const double penetration = wall.distance(nodes, center + lever, gradient) + gap;
        if (penetration > 0) sums.add(lever, -1.0 * gradient, penetration, gap);
      }
    }
    const double result[10] = {sums.push.x, sums.push.y,   sums.push.z, sums.turn.x, sums.turn.y,
                               sums.turn.z, sums.contacts, sums.levers, sums.depth,  sums.overlap};
    for (int c = 0; c < 10; ++c) out[10 * i + c] = result[c];
  }
};

}  // namespace seiche
