// SPDX-License-Identifier: BSD-3-Clause
/// Tile layout: blocks of B^3 sites, two copies. The populations of a tile are contiguous: slot = (tile Q + q) B^3 +
/// lane.
/// Table of tiles, table[tile][28]: the first slots of the 27 surrounding tiles (x fastest; that of the tile itself
/// where there is none). The last entry is the row of the tile in `walls`. It is `no_walls` for a tile whose sites are
/// all fluid and whose links all meet fluid. Bits of walls[row][lane]: bit q = the link c_q leaves the fluid, bit 0 =
/// not fluid. Bytes: 38 s + 112/B^3 per site, 4 more in tiles with walls.
#pragma once
#include "lanes.hpp"

namespace seiche {

template <class L, class R, class S, int B>
struct Tiles {
  using Lattice = L;
  using Real = R;
  const S* f_in;
  S* f_out;
  const u32* table;
  const u32* walls;
  /// Entries of a row of the table: 27 adjacent tiles with the tile itself in the middle, then the row in `walls`.
  static constexpr int V = B * B * B, own_entry = 13, wall_entry = 27, row = 28;
  static constexpr int bytes = 2 * L::Q * sizeof(S);
  static constexpr u32 not_fluid = 1u, no_walls = 0xffffffffu;

  struct Site {
    u32 rest;  ///< slot of population 0
    int lane;
    const u32* adjacent_tiles;  ///< the tile's row of the table
    u32 wall;
  };
  SEICHE_FN Site site(Index i, const u32* adjacent_tiles) const {
    const int lane = static_cast<int>(i % V);
    const u32 wall_row = adjacent_tiles[wall_entry];
    return {adjacent_tiles[own_entry] + lane, lane, adjacent_tiles,
            wall_row == no_walls ? 0u : walls[static_cast<Index>(wall_row) * V + lane]};
  }
  SEICHE_FN Site site(Index i) const { return site(i, table + i / V * row); }

  /// Rows of the table for the items of a block.
  template <int items>
  struct Staging {
    static constexpr int tiles = items > V ? items / V : 1;
    u32 rows[tiles * row];
  };
  template <int items>
  SEICHE_FN void stage(Staging<items>& staging, Index first, Index end, int thread, int threads) const {
    static_assert(items % V == 0 || V % items == 0, "a block's items are whole tiles, or a whole part of one");
    const Index begin = first / V * row, limit = end / V * row;
    for (int k = thread; k < Staging<items>::tiles * row; k += threads) {
      if (begin + k < limit) staging.rows[k] = table[begin + k];
    }
  }
  template <int items>
  SEICHE_FN Site site(Index i, int item, const Staging<items>& staging) const {
    return site(i, staging.rows + item / V * row);
  }

  static SEICHE_FN bool solid(const Site& s) { return (s.wall & not_fluid) != 0; }

  /// Population 0 of the upwind site along q.
  template <int q>
  SEICHE_FN u32 upwind(const Site& s) const {
    constexpr int X = L::cx(q), Y = L::cy(q), Z = L::cz(q);
    const int x = s.lane % B - X, y = s.lane / B % B - Y, z = s.lane / (B * B) - Z;
    int adjacent = own_entry;
    if constexpr (X > 0) adjacent -= (x < 0);
    if constexpr (X < 0) adjacent += (x >= B);
    if constexpr (Y > 0) adjacent -= 3 * (y < 0);
    if constexpr (Y < 0) adjacent += 3 * (y >= B);
    if constexpr (Z > 0) adjacent -= 9 * (z < 0);
    if constexpr (Z < 0) adjacent += 9 * (z >= B);
    return s.adjacent_tiles[adjacent] + ((x & (B - 1)) + B * ((y & (B - 1)) + B * (z & (B - 1))));
  }
  SEICHE_FN void load(const Site& s, Real (&f)[L::Q]) const {
    f[0] = decode<Real>(f_in[s.rest]);
    if (s.wall == 0) {
      static_for<1, L::Q>([&]<int q>() SEICHE_INLINED { f[q] = decode<Real>((f_in + upwind<q>(s))[q * V]); });
    } else {  // bounce-back: read from a slot of the site itself
      static_for<1, L::Q>([&]<int q>() SEICHE_INLINED {
        const bool wall = (s.wall >> opposite(q)) & 1u;
        f[q] = decode<Real>(f_in[wall ? s.rest + opposite(q) * V : upwind<q>(s) + q * V]);
      });
    }
  }
  SEICHE_FN void store(const Site& s, const Real (&f)[L::Q]) const {
    S* target = f_out + s.rest;
    static_for<0, L::Q>([&]<int q>() SEICHE_INLINED { encode(target[q * V], f[q]); });
  }
  template <int q>
  SEICHE_FN S& outgoing(const Site& s) const {
    return (f_out + s.rest)[q * V];
  }

  /// Two neighbours along x, the first at an even x. Populations with c_x = 0, and all outgoing ones, move as pairs.
  /// Incoming values of a solid site are arbitrary; its outgoing values are never read.
  struct alignas(2 * sizeof(S)) Two {
    S of[2];
  };
  SEICHE_FN void load_two(const Site& s, const Site& t, Two (&f)[L::Q]) const {
    static_for<0, L::Q>([&]<int q>() SEICHE_INLINED {
      if constexpr (q == 0) {
        f[q] = reinterpret_cast<const Two&>(f_in[s.rest]);
      } else if constexpr (L::cx(q) == 0) {
        f[q] = reinterpret_cast<const Two&>((f_in + upwind<q>(s))[q * V]);
      } else {
        f[q] = {{(f_in + upwind<q>(s))[q * V], (f_in + upwind<q>(t))[q * V]}};
      }
    });
    static_for<0, 2>([&]<int k>() SEICHE_INLINED {
      const Site& site = k == 0 ? s : t;
      if (site.wall == 0) return;
      static_for<1, L::Q>([&]<int q>() SEICHE_INLINED {
        if (site.wall >> opposite(q) & 1u) f[q].of[k] = f_in[site.rest + opposite(q) * V];
      });
    });
  }
  SEICHE_FN void store_two(const Site& s, const Two (&f)[L::Q]) const {
    static_for<0, L::Q>([&]<int q>() SEICHE_INLINED { reinterpret_cast<Two&>((f_out + s.rest)[q * V]) = f[q]; });
  }

  /// Reads `rows` rows of B sites of one layer, from the adjacent tile along y and z, beginning at `first`. They are
  /// one contiguous block, shifted by X. The end of each row, which the shift makes invalid, is read from the adjacent
  /// tile along x.
  template <int q, int rows>
  static SEICHE_FN void load_rows(const S* f_in, const u32* tiles, int first, Real* target) {
    constexpr int X = L::cx(q);
    const S* source = f_in + tiles[0] + q * V + first;
    for (int k = 0; k < rows * B; ++k) target[k] = decode<Real>(source[k - X]);
    if constexpr (X != 0) {
      constexpr int end = X > 0 ? 0 : B - 1;
      const S* neighbour = f_in + tiles[-X] + q * V + first + (B - 1 - end);
      for (int r = 0; r < rows; ++r) target[r * B + end] = decode<Real>(neighbour[r * B]);
    }
  }
  /// One layer of B^2 sites, at height z of a tile.
  template <int q>
  SEICHE_FN void load_layer(const u32* adjacent_tiles, int z, Real* target) const {
    constexpr int Y = L::cy(q), Z = L::cz(q);
    const int upwind_z = z - Z, first = B * B * (upwind_z & (B - 1));
    const u32* tiles = adjacent_tiles + own_entry + 9 * ((upwind_z >= B) - (upwind_z < 0));
    if constexpr (Y == 0) {
      load_rows<q, B>(f_in, tiles, first, target);
    } else if constexpr (Y > 0) {
      load_rows<q, 1>(f_in, tiles - 3, first + B * (B - 1), target);
      load_rows<q, B - 1>(f_in, tiles, first, target + B);
    } else {
      load_rows<q, B - 1>(f_in, tiles, first + B, target);
      load_rows<q, 1>(f_in, tiles + 3, first, target + B * (B - 1));
    }
  }
  /// True if no site is fluid.
  template <int lanes>
  SEICHE_FN bool solid_lanes(Index i) const {
    const u32 wall_row = table[i / V * row + wall_entry];
    if (wall_row == no_walls) return false;
    const u32* wall = walls + static_cast<Index>(wall_row) * V + i % V;
    u32 all = not_fluid;
    for (int k = 0; k < lanes; ++k) all &= wall[k];
    return all != 0;
  }
  template <int lanes>
  SEICHE_FN void load_lanes(Index i, Real (&f)[L::Q][lanes]) const {
    const Index tile = i / V;
    const int first = static_cast<int>(i % V);
    const u32* adjacent_tiles = table + tile * row;
    static_for<0, L::Q>([&]<int q>() SEICHE_INLINED {
      const int next = first + lanes - L::cz(q) * B * B;  // read by the next batch, in this or the next tile
      prefetch<lanes>(f_in + adjacent_tiles[own_entry] + q * V + (next < V ? next : (L::Q - 1) * V + next));
      for (int k = 0; k < lanes; k += B * B) load_layer<q>(adjacent_tiles, (first + k) / (B * B), f[q] + k);
    });
    const u32 wall_row = adjacent_tiles[wall_entry];
    if (wall_row == no_walls) return;
    const u32* wall = walls + static_cast<Index>(wall_row) * V + first;
    u32 wall_links = 0;  // of fluid sites
    for (int k = 0; k < lanes; ++k) wall_links |= wall[k] & not_fluid ? 0u : wall[k];
    for (int q = 1; q < L::Q; ++q) {
      if ((wall_links >> opposite(q) & 1u) == 0) continue;
      const S* outgoing = f_in + adjacent_tiles[own_entry] + opposite(q) * V + first;
      for (int k = 0; k < lanes; ++k) f[q][k] = wall[k] >> opposite(q) & 1u ? decode<Real>(outgoing[k]) : f[q][k];
    }
  }
  template <int lanes>
  SEICHE_FN void store_lanes(Index i, const Real (&f)[L::Q][lanes]) const {
    S* target = f_out + table[i / V * row + own_entry] + i % V;
    for (int q = 0; q < L::Q; ++q) put_lanes<lanes>(f[q], target + q * V);
  }
};

}  // namespace seiche
