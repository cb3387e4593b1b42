// SPDX-License-Identifier: BSD-3-Clause
/// Lattice nodes inside a closed triangulated surface. Coordinates are in spacings: nodes are at integers.
///
/// The winding number of a node is the sum of the signed crossings of the lattice line through it, along z, below it. A
/// line crosses a triangle if it is on the same side of its three edges, projected to (x, y). The side of an edge is
/// evaluated from its vertex of lower number, so both triangles of an edge agree even with round-off, and points on an
/// edge are moved by (e, e^2) with an infinitesimal e: the crossings of a closed surface then cancel.
#pragma once
#include "shapes.hpp"

namespace seiche {

/// Corners [face][corner][axis] of triangles, and the numbers of their vertices [face][corner].
struct Triangles {
  const double* corners;
  const i32* vertices;
  SEICHE_FN const double* corner(Index face, int k) const { return corners + 9 * face + 3 * k; }
};

SEICHE_FN Index floor_of(double x) {
  const Index whole = static_cast<Index>(x);
  return whole - (static_cast<double>(whole) > x);
}
SEICHE_FN Index ceil_of(double x) {
  return -floor_of(-x);
}
SEICHE_FN Index within(Index value, Index low, Index high) {
  return value < low ? low : value > high ? high : value;
}

/// Crossings of a triangle with the lattice lines along z. With `fill`, writes row x ny + y, z and the sign of the
/// normal along z from first[face] on, otherwise counts. Bytes per item: the triangle; crossings are not counted.
template <bool fill>
struct LineCrossings {
  Triangles surface;
  i32 shape[3];
  const Index* first;
  Index *counts, *row;
  double* height;
  i32* sign;
  static constexpr int bytes = 9 * sizeof(double) + 3 * sizeof(i32);

  SEICHE_FN void operator()(Index face) const {
    const double *a = surface.corner(face, 0), *b = surface.corner(face, 1), *c = surface.corner(face, 2);
    Index low[2], high[2], number = 0;
    for (int axis = 0; axis < 2; ++axis) {
      const double least = lesser_of(a[axis], lesser_of(b[axis], c[axis]));
      const double most = greater_of(a[axis], greater_of(b[axis], c[axis]));
      low[axis] = ceil_of(greater_of(least, 0.0));
      high[axis] = floor_of(lesser_of(most, shape[axis] - 1.0));
    }
    if constexpr (fill) number = first[face];
    for (Index x = low[0]; x <= high[0]; ++x) {
      for (Index y = low[1]; y <= high[1]; ++y) {
        double value[3];
        const int sides =
            side(face, 1, 2, x, y, value[0]) + side(face, 2, 0, x, y, value[1]) + side(face, 0, 1, x, y, value[2]);
        if (sides != 3 && sides != -3) continue;
        if constexpr (fill) {
          row[number] = x * shape[1] + y;
          height[number] = interpolated(a[2], b[2], c[2], value);
          sign[number] = sides / 3;
        }
        ++number;
      }
    }
    if constexpr (!fill) counts[face] = number;
  }

 private:
  /// The side of the edge between two corners on which (x, y) is: 1 on the left.
  SEICHE_FN int side(Index face, int from, int to, Index x, Index y, double& value) const {
    const bool swapped = surface.vertices[3 * face + from] > surface.vertices[3 * face + to];
    const double* u = surface.corner(face, swapped ? to : from);
    const double* v = surface.corner(face, swapped ? from : to);
    const double ex = v[0] - u[0], ey = v[1] - u[1];
    const double px = static_cast<double>(x) - u[0], py = static_cast<double>(y) - u[1];
    double area = ex * py - ey * px;
    value = swapped ? -area : area;
    if (area == 0.0) area = ey != 0.0 ? -ey : ex;
    return (area >= 0.0) == swapped ? -1 : 1;
  }
  static SEICHE_FN double interpolated(double a, double b, double c, const double (&weight)[3]) {
    const double sum = weight[0] + weight[1] + weight[2];
    const double z = sum != 0.0 ? (weight[0] * a + weight[1] * b + weight[2] * c) / sum : a;
    return lesser_of(greater_of(z, lesser_of(a, lesser_of(b, c))), greater_of(a, greater_of(b, c)));
  }
};

/// Runs of nodes with a positive winding number. Item: a row, with its crossings first[i] ... first[i + 1] - 1 by
/// ascending height. With `fill`, writes the runs from target[i] on, otherwise counts them. `open` is set where the
/// crossings of a row do not cancel. Bytes per item: two offsets; crossings are not counted.
template <bool fill>
struct WoundRuns {
  const Index* first;
  const double* height;
  const i32* sign;
  i32 nz;
  const Index* target;
  i32 *counts, *begin, *end;
  u8* open;
  static constexpr int bytes = 2 * sizeof(Index);

  SEICHE_FN void operator()(Index i) const {
    Index number = 0, start = 0;
    if constexpr (fill) number = target[i];
    int winding = 0;
    for (Index k = first[i]; k < first[i + 1]; ++k) {
      const Index z = within(ceil_of(within_reach(height[k])), 0, nz);
      const int before = winding;
      winding -= sign[k];
      if (before <= 0 && winding > 0) start = z;
      if (before > 0 && winding <= 0 && z > start) {
        if constexpr (fill) {
          begin[number] = static_cast<i32>(start);
          end[number] = static_cast<i32>(z);
        }
        ++number;
      }
    }
    if constexpr (!fill) {
      counts[i] = static_cast<i32>(number);
      open[i] = winding != 0;
    }
  }

 private:
  SEICHE_FN double within_reach(double z) const { return lesser_of(greater_of(z, -1.0), nz + 1.0); }
};

/// Nodes closer than `reach` to a triangle. With `fill`, writes (x ny + y) nz + z from first[face] on, otherwise
/// counts. Bytes per item: the triangle; nodes are not counted.
template <bool fill>
struct NodesOnSurface {
  Triangles surface;
  i32 shape[3];
  double reach;
  const Index* first;
  Index *counts, *nodes;
  static constexpr int bytes = 9 * sizeof(double);

  SEICHE_FN void operator()(Index face) const {
    const double *a = surface.corner(face, 0), *b = surface.corner(face, 1), *c = surface.corner(face, 2);
    const double e[3] = {b[0] - a[0], b[1] - a[1], b[2] - a[2]}, g[3] = {c[0] - a[0], c[1] - a[1], c[2] - a[2]};
    const double n[3] = {e[1] * g[2] - e[2] * g[1], e[2] * g[0] - e[0] * g[2], e[0] * g[1] - e[1] * g[0]};
    const double size[3] = {absolute(n[0]), absolute(n[1]), absolute(n[2])};
    // Along the main axis of the normal a node is at most sqrt(3) `reach` from the plane.
    const int d = size[0] >= size[1] && size[0] >= size[2] ? 0 : size[1] >= size[2] ? 1 : 2;
    const int p = (d + 1) % 3, q = (d + 2) % 3;
    Index number = 0;
    if constexpr (fill) number = first[face];
    if (size[d] > 0.0) {
      Index low[3], high[3], node[3];
      for (int axis = 0; axis < 3; ++axis) {
        const double least = lesser_of(a[axis], lesser_of(b[axis], c[axis])) - reach;
        const double most = greater_of(a[axis], greater_of(b[axis], c[axis])) + reach;
        low[axis] = ceil_of(greater_of(least, 0.0));
        high[axis] = floor_of(lesser_of(most, shape[axis] - 1.0));
      }
      for (node[p] = low[p]; node[p] <= high[p]; ++node[p]) {
        for (node[q] = low[q]; node[q] <= high[q]; ++node[q]) {
          const double plane = a[d] - (n[p] * (node[p] - a[p]) + n[q] * (node[q] - a[q])) / n[d];
          if (!(plane > -1.0 && plane < shape[d])) continue;
          node[d] = floor_of(plane + 0.5);
          if (absolute(node[d] - plane) > 2.0 * reach || node[d] < 0 || node[d] >= shape[d]) continue;
          const double x[3] = {double(node[0]), double(node[1]), double(node[2])};
          if (squared_distance(x, a, e, g) >= reach * reach) continue;
          if constexpr (fill) nodes[number] = (node[0] * shape[1] + node[1]) * shape[2] + node[2];
          ++number;
        }
      }
    }
    if constexpr (!fill) counts[face] = number;
  }

 private:
  static SEICHE_FN double dot(const double (&u)[3], const double (&v)[3]) {
    return u[0] * v[0] + u[1] * v[1] + u[2] * v[2];
  }
  /// Squared distance of x from the segment from a along e.
  static SEICHE_FN double from_segment(const double (&s)[3], const double (&e)[3]) {
    const double length = dot(e, e);
    const double share = length > 0.0 ? lesser_of(greater_of(dot(s, e) / length, 0.0), 1.0) : 0.0;
    const double r[3] = {s[0] - share * e[0], s[1] - share * e[1], s[2] - share * e[2]};
    return dot(r, r);
  }
  /// Squared distance of x from the triangle (a, a + e, a + g).
  static SEICHE_FN double squared_distance(const double (&x)[3], const double* a, const double (&e)[3],
                                           const double (&g)[3]) {
    const double s[3] = {x[0] - a[0], x[1] - a[1], x[2] - a[2]};
    const double ee = dot(e, e), eg = dot(e, g), gg = dot(g, g), es = dot(e, s), gs = dot(g, s);
    const double area = ee * gg - eg * eg, u = gg * es - eg * gs, v = ee * gs - eg * es;
    if (area > 0.0 && u >= 0.0 && v >= 0.0 && u + v <= area) {
      const double r[3] = {s[0] - (u * e[0] + v * g[0]) / area, s[1] - (u * e[1] + v * g[1]) / area,
                           s[2] - (u * e[2] + v * g[2]) / area};
      return dot(r, r);
    }
    const double t[3] = {s[0] - e[0], s[1] - e[1], s[2] - e[2]}, h[3] = {g[0] - e[0], g[1] - e[1], g[2] - e[2]};
    return lesser_of(from_segment(s, e), lesser_of(from_segment(s, g), from_segment(t, h)));
  }
};

}  // namespace seiche
