// SPDX-License-Identifier: BSD-3-Clause
/// Fluid nodes of a shape, as runs: maximal sequences of fluid nodes along z in a row (x, y) of the box.
#pragma once
#include "shapes.hpp"

namespace seiche {

/// The lattice in a box: node (i, j, k) is at origin + spacing (i, j, k).
struct Grid {
  double origin[3];
  double spacing;
  i32 shape[3];
};

/// Runs of the nodes where the wall and the ends are both below -`tolerance`. Item: a row. With `fill`, writes the runs
/// of row i from number first[i] on, otherwise their number. Bytes per item: its offset; runs are far fewer than nodes.
template <class Wall, bool fill>
struct FluidRuns {
  Grid grid;
  Wall wall;
  Ends ends;
  double tolerance;
  const Index* first;
  i32 *counts, *begin, *end;
  static constexpr int bytes = sizeof(Index);
  static constexpr int width = 64;

  SEICHE_FN void operator()(Index i) const {
    const double x = grid.origin[0] + grid.spacing * static_cast<double>(i / grid.shape[1]);
    const double y = grid.origin[1] + grid.spacing * static_cast<double>(i % grid.shape[1]);
    Index number = 0;
    if constexpr (fill) number = first[i];
    u8 inside[width];
    bool open = false;
    const i32 nz = grid.shape[2];
    for (i32 z0 = 0; z0 < nz; z0 += width) {
      for (int k = 0; k < width; ++k) {
        const double z = grid.origin[2] + grid.spacing * static_cast<double>(z0 + k);
        inside[k] = wall(x, y, z) < -tolerance && ends(x, y, z) < -tolerance;
      }
      const i32 count = nz - z0 < width ? nz - z0 : width;
      int sum = 0;
      for (int k = 0; k < count; ++k) sum += inside[k];
      if (sum == (open ? count : 0)) continue;
      for (int k = 0; k < count; ++k) {
        if (open == static_cast<bool>(inside[k])) continue;
        if constexpr (fill) (open ? end : begin)[number] = z0 + k;
        number += open;
        open = !open;
      }
    }
    if (open) {
      if constexpr (fill) end[number] = nz;
      ++number;
    }
    if constexpr (!fill) counts[i] = static_cast<i32>(number);
  }
};

}  // namespace seiche
