// SPDX-License-Identifier: BSD-3-Clause
/// Sites stored as runs along z, sorted by row (x, y) and by z: run r has the nodes begin[r] <= z < end[r] and the
/// sites from site[r] on. Row i has the runs first[i] ... first[i + 1] - 1.
#pragma once
#include "../launch.hpp"

namespace seiche {

struct Rows {
  const Index* first;
  const i32 *begin, *end;
  const Index* site;
  const Index* row;  ///< of each run
  i32 shape[3], periodic[3];

  /// The row at (x, y), which wraps along periodic axes; -1 outside the box.
  SEICHE_FN Index at(Index x, Index y) const {
    if (x < 0 || x >= shape[0]) {
      if (!periodic[0]) return -1;
      x += x < 0 ? shape[0] : -shape[0];
    }
    if (y < 0 || y >= shape[1]) {
      if (!periodic[1]) return -1;
      y += y < 0 ? shape[1] : -shape[1];
    }
    return x * shape[1] + y;
  }
  /// The first run of row i that ends after z; first[i + 1] if there is none.
  SEICHE_FN Index from(Index i, Index z) const {
    Index low = first[i], high = first[i + 1];
    while (low < high) {
      const Index middle = low + (high - low) / 2;
      if (end[middle] > z) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }
};

/// Coordinates [3] of the sites of a run, minus `low`. Bytes per item: not counted, since runs have any length.
struct RunCoords {
  Rows rows;
  i32 low[3];
  i32* out;
  static constexpr int bytes = 0;
  SEICHE_FN void operator()(Index r) const {
    const i32 x = static_cast<i32>(rows.row[r] / rows.shape[1]) - low[0];
    const i32 y = static_cast<i32>(rows.row[r] % rows.shape[1]) - low[1];
    i32* to = out + 3 * rows.site[r];
    for (i32 z = rows.begin[r]; z < rows.end[r]; ++z, to += 3) {
      to[0] = x;
      to[1] = y;
      to[2] = z - low[2];
    }
  }
};

}  // namespace seiche
