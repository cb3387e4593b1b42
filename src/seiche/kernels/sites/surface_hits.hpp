// SPDX-License-Identifier: BSD-3-Clause
/// First intersections of lattice links with triangles. Coordinates are in spacings: nodes are at integers.
///
/// A link from x along c meets the triangle (a, b, d) at x + t c. Let e = b - a, g = d - a, s = x - a and N = e x g.
/// Cramer's rule gives t = -(s.N)/(c.N), u = -(c.(g x s))/(c.N), v = -(c.(s x e))/(c.N). Hits have u, v and 1 - u - v
/// not negative. Edges have a tolerance, since lattice links often meet them exactly.
#pragma once
#include "links.hpp"
#include "triangles.hpp"

namespace seiche {

/// Cells of 4^3 nodes whose links may meet a triangle. The triangle is bisected at its longest edge until no edge
/// exceeds `longest`; links reach one spacing from the box around a piece. With `fill`, writes the numbers of the cells
/// of each piece from first[face] on (with repetitions), otherwise counts them and the pieces.
/// Bytes per item: the triangle; cells are not counted.
template <bool fill>
struct TriangleCells {
  Triangles surface;
  i32 shape[3];
  double longest, margin;
  const Index* first;
  Index *counts, *pieces, *cells;
  static constexpr int bytes = 9 * sizeof(double);
  static constexpr int depth = 96;

  SEICHE_FN void operator()(Index face) const {
    double stack[depth][9];
    int height = 1;
    for (int k = 0; k < 9; ++k) stack[0][k] = surface.corners[9 * face + k];
    Index number = 0, parts = 0;
    if constexpr (fill) number = first[face];
    while (height > 0) {
      double (&piece)[9] = stack[height - 1];
      const int edge = longest_edge(piece);
      if (edge < 0 || height == depth) {
        --height;
        ++parts;
        add(piece, number);
        continue;
      }
      const int a = 3 * edge, b = 3 * ((edge + 1) % 3), c = 3 * ((edge + 2) % 3);
      double (&other)[9] = stack[height];
      double kept[9];
      for (int axis = 0; axis < 3; ++axis) {
        const double middle = 0.5 * (piece[a + axis] + piece[b + axis]);
        kept[axis] = piece[a + axis];
        kept[3 + axis] = other[axis] = middle;
        other[3 + axis] = piece[b + axis];
        kept[6 + axis] = other[6 + axis] = piece[c + axis];
      }
      for (int k = 0; k < 9; ++k) piece[k] = kept[k];
      ++height;
    }
    if constexpr (!fill) {
      counts[face] = number;
      pieces[face] = parts;
    }
  }

 private:
  /// The first of the longest edges (from corner k to k + 1), -1 if none exceeds the limit.
  SEICHE_FN int longest_edge(const double (&piece)[9]) const {
    int edge = -1;
    double most = longest;
    for (int k = 0; k < 3; ++k) {
      const int next = 3 * ((k + 1) % 3);
      const double x = piece[next] - piece[3 * k], y = piece[next + 1] - piece[3 * k + 1],
                   z = piece[next + 2] - piece[3 * k + 2];
      const double length = square_root(x * x + y * y + z * z);
      if (length > most) {
        most = length;
        edge = k;
      }
    }
    return edge;
  }
  SEICHE_FN void add(const double (&piece)[9], Index& number) const {
    Index low[3], high[3];
    for (int axis = 0; axis < 3; ++axis) {
      const double least = lesser_of(piece[axis], lesser_of(piece[3 + axis], piece[6 + axis])) - margin;
      const double most = greater_of(piece[axis], greater_of(piece[3 + axis], piece[6 + axis])) + margin;
      if (!(most >= 0.0 && least <= shape[axis] - 1.0)) return;
      low[axis] = ceil_of(greater_of(least, 0.0)) / 4;
      high[axis] = floor_of(lesser_of(most, shape[axis] - 1.0)) / 4;
    }
    const Index ny = (shape[1] + 3) / 4, nz = (shape[2] + 3) / 4;
    for (Index x = low[0]; x <= high[0]; ++x) {
      for (Index y = low[1]; y <= high[1]; ++y) {
        for (Index z = low[2]; z <= high[2]; ++z) {
          if constexpr (fill) cells[number] = (x * ny + y) * nz + z;
          ++number;
        }
      }
    }
  }
};

/// First hits of the links of a node. Item: a node, whose links are first[i] ... first[i + 1] - 1. `cells` (ascending)
/// have the triangles cell_first[c] ... cell_first[c + 1] - 1 of `faces`. Of two triangles that a link meets at the
/// same distance the later one counts if both have the same `group`, otherwise the earlier one. Bytes per item: an
/// offset; a link takes 50 B, and the triangles of a cell are shared by its nodes.
struct SurfaceLinkHits {
  Triangles surface;
  i32 shape[3];
  const i32* coords;
  const Index *node, *direction, *first;
  const Index *cells, *cell_first;
  Index cell_count;
  const i32 *faces, *group;
  const double* unit;  ///< normal of each triangle
  const i16* label;    ///< opening that it closes, -1 for the wall
  double edge_tolerance, reach, margin;
  double *fraction, *normal;
  i16* iolet;
  static constexpr int bytes = sizeof(Index);
  static constexpr double flat = 1e-12;

  SEICHE_FN void operator()(Index i) const {
    double distance[26];
    i32 face[26];
    for (int k = 0; k < 26; ++k) {
      distance[k] = bit_cast<double>(0x7ff0000000000000ull);
      face[k] = -1;
    }
    const i32* at = coords + 3 * node[first[i]];
    const Index cell = find((Index(at[0] / 4) * ((shape[1] + 3) / 4) + at[1] / 4) * ((shape[2] + 3) / 4) + at[2] / 4);
    if (cell >= 0) {
      const double x[3] = {double(at[0]), double(at[1]), double(at[2])};
      for (Index k = cell_first[cell]; k < cell_first[cell + 1]; ++k) meet(faces[k], x, distance, face);
    }
    for (Index p = first[i]; p < first[i + 1]; ++p) {
      const int k = static_cast<int>(direction[p]);
      const i32 hit = face[k];
      fraction[p] = hit < 0 ? bit_cast<double>(0x7ff8000000000000ull) : lesser_of(distance[k], 1.0);
      for (int axis = 0; axis < 3; ++axis) normal[3 * p + axis] = hit < 0 ? 0.0 : unit[3 * hit + axis];
      iolet[p] = hit < 0 ? i16(-1) : label[hit];
    }
  }

 private:
  SEICHE_FN Index find(Index cell) const {
    Index low = 0, high = cell_count;
    while (low < high) {
      const Index middle = low + (high - low) / 2;
      if (cells[middle] < cell) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low < cell_count && cells[low] == cell ? low : -1;
  }
  static SEICHE_FN void cross(const double (&u)[3], const double (&v)[3], double (&out)[3]) {
    out[0] = u[1] * v[2] - u[2] * v[1];
    out[1] = u[2] * v[0] - u[0] * v[2];
    out[2] = u[0] * v[1] - u[1] * v[0];
  }
  static SEICHE_FN double along(const double (&u)[3], int k) {
    return u[0] * link_x(k) + u[1] * link_y(k) + u[2] * link_z(k);
  }
  SEICHE_FN void meet(i32 triangle, const double (&x)[3], double (&distance)[26], i32 (&face)[26]) const {
    const double *a = surface.corner(triangle, 0), *b = surface.corner(triangle, 1), *d = surface.corner(triangle, 2);
    for (int axis = 0; axis < 3; ++axis) {
      if (lesser_of(a[axis], lesser_of(b[axis], d[axis])) > x[axis] + margin) return;
      if (greater_of(a[axis], greater_of(b[axis], d[axis])) < x[axis] - margin) return;
    }
    const double e[3] = {b[0] - a[0], b[1] - a[1], b[2] - a[2]}, g[3] = {d[0] - a[0], d[1] - a[1], d[2] - a[2]};
    const double s[3] = {x[0] - a[0], x[1] - a[1], x[2] - a[2]};
    double normal_of[3], gs[3], se[3];
    cross(e, g, normal_of);
    const double height = s[0] * normal_of[0] + s[2] * normal_of[2] + s[1] * normal_of[1];
    const double size =
        square_root(normal_of[0] * normal_of[0] + normal_of[1] * normal_of[1] + normal_of[2] * normal_of[2]);
    if (!(absolute(height) <= square_root(3.0) * reach * size)) return;
    cross(g, s, gs);
    cross(s, e, se);
    SEICHE_ONE_BY_ONE
    for (int k = 13; k < 26; ++k) {
      const double denominator = -along(normal_of, k);
      if (!(absolute(denominator) > flat * size)) continue;
      const double u = along(gs, k) / denominator, v = along(se, k) / denominator, t = height / denominator;
      if (!(u >= -edge_tolerance && v >= -edge_tolerance && u + v <= 1.0 + edge_tolerance)) continue;
      const double length = absolute(t);
      if (!(length <= reach) || t == 0.0) continue;
      const int direction_of = t > 0.0 ? k : 25 - k;
      const bool nearer = length < distance[direction_of] ||
                          (length == distance[direction_of] && group[triangle] == group[face[direction_of]]);
      if (!nearer) continue;
      distance[direction_of] = length;
      face[direction_of] = triangle;
    }
  }
};

}  // namespace seiche
