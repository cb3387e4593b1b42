// SPDX-License-Identifier: BSD-3-Clause
/// Neighbours of the sites of a rank, and the tables of list layouts that follow from them. Sites are runs
/// (`rows.hpp`), so the neighbours of a run along one direction are parts of a few runs.
#pragma once
#include "rows.hpp"

namespace seiche {

/// Starts of the runs of ascending sites at `coords` [3]. Item: a block of sites. With `fill`, writes the first site of
/// each run from first[i] on, otherwise counts. Bytes per item: the coordinates of the block.
template <bool fill>
struct RunStarts {
  const i32* coords;
  Index count;
  const Index* first;
  i32* counts;
  Index* starts;
  static constexpr Index block = 4096;
  static constexpr int bytes = 4096 * 3 * sizeof(i32);
  SEICHE_FN void operator()(Index i) const {
    const Index end = (i + 1) * block < count ? (i + 1) * block : count;
    Index number = 0;
    if constexpr (fill) number = first[i];
    for (Index k = i * block; k < end; ++k) {
      const i32* at = coords + 3 * k;
      if (k > 0 && at[2] == at[-1] + 1 && at[1] == at[-2] && at[0] == at[-3]) continue;
      if constexpr (fill) starts[number] = k;
      ++number;
    }
    if constexpr (!fill) counts[i] = static_cast<i32>(number);
  }
};

/// Number among `all` sites of the neighbours along `vector` of the `own` sites, -1 without one. Item: a run of `own`.
/// Bytes per item: not counted, since runs have any length; a site takes 4 B.
struct RunNeighbours {
  Rows own, all;
  i32 vector[3];
  i32* out;
  static constexpr int bytes = 0;
  SEICHE_FN void operator()(Index r) const {
    const Index x = own.row[r] / own.shape[1], y = own.row[r] % own.shape[1];
    const i32 begin = own.begin[r], end = own.end[r];
    i32* to = out + own.site[r];
    for (i32 k = 0; k < end - begin; ++k) to[k] = -1;
    const Index row = all.at(x + vector[0], y + vector[1]);
    if (row < 0) return;
    const i32 images = all.periodic[2] ? 1 : 0;
    for (i32 image = -images; image <= images; ++image) {
      // Site z of the other row is the neighbour of site z + shift.
      const i32 shift = image * all.shape[2] - vector[2];
      for (Index other = all.from(row, begin - shift); other < all.first[row + 1]; ++other) {
        const i32 low = all.begin[other] + shift > begin ? all.begin[other] + shift : begin;
        const i32 high = all.end[other] + shift < end ? all.end[other] + shift : end;
        if (low >= end) break;
        const i32 first = static_cast<i32>(all.site[other]) + (low - shift - all.begin[other]);
        for (i32 k = 0; k < high - low; ++k) to[low - begin + k] = first + k;
      }
    }
  }
};

/// Items of sites in tiles of `edge`^3 nodes: edge^3 number + x + edge (y + edge z), with coordinates within the tile.
/// A tile has the key x + extent[0] (y + extent[1] z) in the box of tiles; `keys` are ascending. Item: a run. Bytes per
/// item: not counted, since runs have any length; a site takes 8 B.
struct TileItems {
  Rows rows;
  i32 edge, extent[3];
  const Index* keys;
  Index tiles;
  const Index* number;
  Index* item;
  static constexpr int bytes = 0;
  SEICHE_FN void operator()(Index r) const {
    const Index x = rows.row[r] / rows.shape[1], y = rows.row[r] % rows.shape[1];
    Index* to = item + rows.site[r];
    for (i32 z = rows.begin[r]; z < rows.end[r];) {
      const Index key = x / edge + extent[0] * (y / edge + extent[1] * Index(z / edge));
      Index low = 0, high = tiles;
      while (low < high) {
        const Index middle = low + (high - low) / 2;
        if (keys[middle] < key) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      const Index first = number[low] * edge * edge * edge + x % edge + edge * (y % edge);
      do {
        *to++ = first + Index(edge) * edge * (z % edge);
      } while (++z < rows.end[r] && z % edge != 0);
    }
  }
};

/// Tables of runs of `lanes` sites in an adjacency (`flow/runs.py`). Item: a run. With `fill`, writes its row and its
/// pieces from number first[i] on, otherwise counts its pieces. Bytes per item: the slots of the run.
template <bool fill>
struct SlotRuns {
  const u32* adjacency;
  Index stride;
  i32 directions;
  const Index* first;
  i32* counts;
  u32 *rows, *pieces;
  static constexpr int lanes_of_run = 16;
  static constexpr int bytes = 18 * 4 * lanes_of_run;
  SEICHE_FN void operator()(Index i) const {
    Index number = 0;
    if constexpr (fill) number = first[i];
    u32 broken = 0;
    for (int d = 0; d < directions; ++d) {
      const u32* slots = adjacency + d * stride + i * lanes_of_run;
      int breaks = 0;
      for (int k = 1; k < lanes_of_run; ++k) breaks += slots[k] != slots[k - 1] + 1;
      if constexpr (fill) rows[i * (directions + 1) + d + 1] = breaks ? static_cast<u32>(number) : slots[0];
      if (breaks == 0) continue;
      broken |= 2u << d;
      if constexpr (fill) {
        for (int k = 0; k < lanes_of_run; ++k) {
          if (k > 0 && slots[k] == slots[k - 1] + 1) continue;
          if (k > 0) pieces[2 * number - 1] = static_cast<u32>(k);
          pieces[2 * number] = slots[k];
          ++number;
        }
        pieces[2 * number - 1] = lanes_of_run;
      } else {
        number += breaks + 1;
      }
    }
    if constexpr (fill) {
      rows[i * (directions + 1)] = broken;
    } else {
      counts[i] = static_cast<i32>(number);
    }
  }
};

}  // namespace seiche
