// SPDX-License-Identifier: BSD-3-Clause
/// Graph of cubes of edge^3 nodes that contain sites: their weights and the links between them, and the owners of sites
/// that follow from the owners of cubes. Sites and cubes are runs (`rows.hpp`); a cube has a vertex number.
#pragma once
#include "rows.hpp"

namespace seiche {

/// One of each two opposite vectors of D3Q19.
inline constexpr int half_vectors[9][3] = {{0, 0, 1},  {0, 1, -1}, {0, 1, 0}, {0, 1, 1}, {1, -1, 0},
                                           {1, 0, -1}, {1, 0, 0},  {1, 0, 1}, {1, 1, 0}};

/// The number of the cube at height z of a column of `blocks`.
SEICHE_FN Index vertex_at(const Rows& blocks, Index column, Index z) {
  const Index run = blocks.from(column, z);
  return blocks.site[run] + z - blocks.begin[run];
}

/// Weights of the cubes of a column, and numbers of links to cubes at (dx, dy, dz) from them in `links` [vertex][18],
/// column 9 dx + 3 (dy + 1) + dz + 1, for dx = 0 or 1; links wrap along periodic axes. Item: a column of cubes, which
/// alone writes its vertices. `site_weights` may be null, for weights of 1. Bytes per item: not counted, since columns
/// have any number of runs.
struct BlockLinks {
  Rows rows, blocks;
  i32 edge;
  const double* site_weights;
  double* weights;
  u32* links;
  static constexpr int offsets = 18, bytes = 0;

  SEICHE_FN void operator()(Index column) const {
    if (blocks.first[column] == blocks.first[column + 1]) return;
    const Index bx = column / blocks.shape[1], by = column % blocks.shape[1];
    for (Index x = bx * edge; x < (bx + 1) * edge && x < rows.shape[0]; ++x) {
      for (Index y = by * edge; y < (by + 1) * edge && y < rows.shape[1]; ++y) {
        const Index row = x * rows.shape[1] + y;
        for (Index run = rows.first[row]; run < rows.first[row + 1]; ++run) {
          weigh(column, run);
          for (const auto& vector : half_vectors) link(column, run, x, y, vector);
        }
      }
    }
  }

  SEICHE_FN void weigh(Index column, Index run) const {
    for (i32 z = rows.begin[run]; z < rows.end[run];) {
      const Index block = z / edge;
      const i32 end = upper(block, rows.end[run]);
      double sum = 0.0;
      if (site_weights == nullptr) sum = end - z;
      for (i32 k = z; site_weights != nullptr && k < end; ++k) {
        sum += site_weights[rows.site[run] + (k - rows.begin[run])];
      }
      weights[vertex_at(blocks, column, block)] += sum;
      z = end;
    }
  }

  /// The smaller of `end` and the end of a layer of cubes.
  SEICHE_FN i32 upper(Index block, i32 end) const {
    const Index limit = (block + 1) * edge;
    return limit < end ? static_cast<i32>(limit) : end;
  }
  /// The step between two cubes along an axis, of which a link goes one site along `direction`.
  static SEICHE_FN int step(Index from, Index to, int direction) { return from == to ? 0 : direction; }

  SEICHE_FN void link(Index column, Index run, Index x, Index y, const int (&vector)[3]) const {
    const Index row = rows.at(x + vector[0], y + vector[1]);
    if (row < 0) return;
    const Index bx = row / rows.shape[1] / edge, by = row % rows.shape[1] / edge;
    const Index other_column = bx * blocks.shape[1] + by;
    if (other_column == column && vector[2] == 0) return;
    const int dx = step(column / blocks.shape[1], bx, vector[0]), dy = step(column % blocks.shape[1], by, vector[1]);
    const i32 images = rows.periodic[2] ? 1 : 0, begin = rows.begin[run], end = rows.end[run];
    for (i32 image = -images; image <= images; ++image) {
      const i32 shift = image * rows.shape[2] - vector[2];  // site z of the other row is the neighbour of z + shift
      for (Index other = rows.from(row, begin - shift); other < rows.first[row + 1]; ++other) {
        i32 z = rows.begin[other] + shift > begin ? rows.begin[other] + shift : begin;
        const i32 high = rows.end[other] + shift < end ? rows.end[other] + shift : end;
        if (z >= end) break;
        while (z < high) {
          const Index block = z / edge, other_block = (z - shift) / edge;
          const i32 own_end = upper(block, high), other_end = upper(other_block, high - shift) + shift;
          const i32 next = own_end < other_end ? own_end : other_end;
          if (other_column != column || other_block != block) {
            const int offset = 9 * dx + 3 * (dy + 1) + step(block, other_block, vector[2]) + 1;
            links[vertex_at(blocks, column, block) * offsets + offset] += static_cast<u32>(next - z);
          }
          z = next;
        }
      }
    }
  }
};

/// Pieces of runs whose sites have one owner, which is that of their cubes. Item: a run. With `fill`, writes the first
/// site and the owner of each piece from number first[i] on, otherwise counts. Bytes per item: not counted.
template <bool fill>
struct OwnerPieces {
  Rows rows, blocks;
  i32 edge;
  const i32* owner;  ///< of each cube
  const Index* first;
  i32* counts;
  Index* starts;
  i32* owners;
  static constexpr int bytes = 0;
  SEICHE_FN void operator()(Index run) const {
    const Index x = rows.row[run] / rows.shape[1] / edge, y = rows.row[run] % rows.shape[1] / edge;
    const Index column = x * blocks.shape[1] + y;
    Index number = 0;
    if constexpr (fill) number = first[run];
    i32 previous = -1;
    for (Index block = rows.begin[run] / edge; block * edge < rows.end[run]; ++block) {
      const i32 present = owner[vertex_at(blocks, column, block)];
      if (present == previous) continue;
      if constexpr (fill) {
        const Index begin = block * edge > rows.begin[run] ? block * edge : rows.begin[run];
        starts[number] = rows.site[run] + begin - rows.begin[run];
        owners[number] = present;
      }
      previous = present;
      ++number;
    }
    if constexpr (!fill) counts[run] = static_cast<i32>(number);
  }
};

}  // namespace seiche
