// SPDX-License-Identifier: BSD-3-Clause
/// Exact classification of sites inside cells (theory/coupling, eqs. 11 and 12). Along every line of sites parallel to
/// x, each triangle that is crossed inverts all sites beyond it. A line is a word, so a crossing is one exclusive or.
#pragma once
#include "../atomics.hpp"
#include "bricks.hpp"

namespace seiche {

/// Item: a word of 64 sites. Marks all as outside.
struct ClearInside {
  u64* inside;
  static constexpr int bytes = 8;
  SEICHE_FN void operator()(Index word) const { inside[word] = 0; }
};

/// Item: a cell. Its sites are processed in windows of 64^3 sites; one window is usually enough.
struct MarkInside {
  static constexpr int edge = 64, longest = 1024;
  struct Scratch {
    u64 line[edge * edge];  ///< [z][y]: bit x
    i32 low[3], high[3];    ///< bounds of the sites around the cell; `high` is negated
  };
  Bricks bricks;
  u64* inside;              ///< [row][8]: bit x + 8 y of plane z
  const double* positions;  ///< [3][stride]
  const i32* faces;         ///< [3][count]: vertices of the triangles of a cell of this type
  Index stride, first;      ///< first vertex of the first cell
  i32 vertices, count;
  static constexpr int bytes = 0;
  /// Small offsets of the lines from the sites: no line passes through an edge.
  static constexpr double aside_y = 1.32471795e-9, aside_z = 1.75487766e-9;

  SEICHE_FN void operator()(const Team& team, Index cell, Scratch& scratch) const {
    const double* x = positions + (first + cell * vertices);
    team.for_each(3, [&](int axis) SEICHE_INLINED { scratch.low[axis] = scratch.high[axis] = 1 << 30; });
    team.barrier();
    team.for_each(vertices, [&](int v) SEICHE_INLINED {
      for (int axis = 0; axis < 3; ++axis) {
        const double at = x[axis * stride + v];
        const i32 lower_site = round_down(at > -1e9 && at < 1e9 ? at : -1e9);
        min_atomically(scratch.low + axis, lower_site);
        min_atomically(scratch.high + axis, -lower_site - 1);
      }
    });
    team.barrier();
    const i32 x0 = scratch.low[0], y0 = scratch.low[1], z0 = scratch.low[2];
    const i32 x1 = -scratch.high[0], y1 = -scratch.high[1], z1 = -scratch.high[2];
    if (x1 - x0 >= longest || y1 - y0 >= longest || z1 - z0 >= longest)
      return;  // a vertex is lost: reported by another kernel
    for (i32 z = z0; z <= z1; z += edge) {
      for (i32 y = y0; y <= y1; y += edge) {
        for (i32 begin = x0; begin <= x1; begin += edge) {
          team.for_each(edge * edge, [&](int k) SEICHE_INLINED { scratch.line[k] = 0; });
          team.barrier();
          team.for_each(count, [&](int face) SEICHE_INLINED { cross(x, face, begin, y, z, scratch); });
          team.barrier();
          team.for_each(edge * edge, [&](int k) SEICHE_INLINED {
            if (scratch.line[k] != 0) write(scratch.line[k], begin, y + k % edge, z + k / edge);
          });
          team.barrier();
        }
      }
    }
  }
  /// Twice the area spanned in the y-z plane by the edge between two vertices and a point. Its magnitude is bitwise
  /// equal for both triangles of the edge.
  SEICHE_FN double span(const double* x, i32 a, i32 b, double y, double z) const {
    const i32 lower_index = a < b ? a : b, upper_index = a < b ? b : a;
    const double ay = x[stride + lower_index], az = x[2 * stride + lower_index];
    const double twice = (x[stride + upper_index] - ay) * (z - az) - (x[2 * stride + upper_index] - az) * (y - ay);
    return a < b ? twice : -twice;
  }
  static SEICHE_FN double minimum(double p, double q, double r) {
    const double smaller = p < q ? p : q;
    return smaller < r ? smaller : r;
  }
  /// Inverts the sites beyond a triangle.
  SEICHE_FN void cross(const double* x, int face, i32 x0, i32 y0, i32 z0, Scratch& scratch) const {
    const i32 a = faces[face], b = faces[count + face], c = faces[2 * count + face];
    const double *ys = x + stride, *zs = x + 2 * stride;
    i32 y_begin = round_down(minimum(ys[a], ys[b], ys[c])), y_end = round_down(-minimum(-ys[a], -ys[b], -ys[c]));
    i32 z_begin = round_down(minimum(zs[a], zs[b], zs[c])), z_end = round_down(-minimum(-zs[a], -zs[b], -zs[c]));
    y_begin = y_begin < y0 ? y0 : y_begin;
    z_begin = z_begin < z0 ? z0 : z_begin;
    y_end = y_end < y0 + edge ? y_end : y0 + edge - 1;
    z_end = z_end < z0 + edge ? z_end : z0 + edge - 1;
    for (i32 line_z = z_begin; line_z <= z_end; ++line_z) {
      for (i32 line_y = y_begin; line_y <= y_end; ++line_y) {
        const double y = line_y + aside_y, z = line_z + aside_z;
        const double ab = span(x, a, b, y, z), bc = span(x, b, c, y, z), ca = span(x, c, a, y, z);
        const bool hit = (ab > 0 && bc > 0 && ca > 0) || (ab < 0 && bc < 0 && ca < 0);
        if (!hit) continue;
        const double at = (bc * x[a] + ca * x[b] + ab * x[c]) / (ab + bc + ca);
        const i32 first_inside = -round_down(-at) - x0;
        if (first_inside >= edge) continue;
        xor_atomically(scratch.line + ((line_z - z0) * edge + (line_y - y0)),
                       first_inside <= 0 ? ~u64{0} : ~u64{0} << first_inside);
      }
    }
  }
  /// Marks the sites of one line, brick by brick.
  SEICHE_FN void write(u64 line, i32 x0, i32 y0, i32 z0) const {
    const i32 y = bricks.site(1, bricks.wrapped(1, y0), 0), z = bricks.site(2, bricks.wrapped(2, z0), 0);
    if (y < 0 || z < 0) return;
    const Index bricks_before =
        (static_cast<Index>(z / brick_edge) * (bricks.count(1) + 1) + y / brick_edge) * (bricks.count(0) + 1);
    const i32 place_of_y = y % brick_edge;
    i32 x = bricks.wrapped(0, x0), brick = -1;
    u32 bits = 0;
    auto flush = [&] {
      if (bits == 0) return;
      const Index row = bricks.row(brick, y / brick_edge, z / brick_edge) >> 1;
      u32* words = reinterpret_cast<u32*>(inside) + (8 * row + z % brick_edge) * 2;
      or_atomically(words + place_of_y / 4, bits << (place_of_y % 4 * brick_edge));
      bits = 0;
    };
    for (; line != 0; line >>= 1, ++x) {
      if (bricks.periodic[0] != 0 && x == bricks.shape[0]) x = 0;
      if ((line & 1u) == 0 || x < 0 || x >= bricks.shape[0]) continue;
      if (x / brick_edge != brick) {
        flush();
        brick = x / brick_edge;
      }
      bits |= 1u << (x % brick_edge);
    }
    flush();
  }
};

}  // namespace seiche
