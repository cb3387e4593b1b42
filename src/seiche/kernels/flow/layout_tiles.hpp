// SPDX-License-Identifier: BSD-3-Clause
/// Tile layout: blocks of B^3 sites, the populations of a tile contiguous, slot = (tile Q + q) B^3 + lane, two copies.
/// table[tile][28]: the 27 tiles around (x fastest; -1 where there is none) and the tile's row in `walls`, -1 for a
/// tile whose sites are all fluid with no wall link. walls[row][lane]: bit q = the link c_q leaves the fluid, bit 0 =
/// not fluid. Bytes: 38 s + 112/B^3 a site, 4 more in tiles with walls.
#pragma once
#include "lattice.hpp"

namespace seiche {

template <class L, class R, class S, int B>
struct Tiles {
  using Lattice = L;
  using Real = R;
  const S* f_in;
  S* f_out;
  const i32* table;
  const u32* walls;
  static constexpr int V = B * B * B, row = 28;
  static constexpr int bytes = 2 * L::Q * sizeof(S);
  static constexpr u32 not_fluid = 1u, all_links = (1u << L::Q) - 1u;

  struct Site {
    Index tile;
    int lane;
    u32 wall;
  };
  SEICHE_FN Site site(Index i) const {
    const Index tile = i / V;
    const int lane = static_cast<int>(i % V);
    const i32 wall_row = table[tile * row + 27];
    return {tile, lane, wall_row < 0 ? 0u : walls[static_cast<Index>(wall_row) * V + lane]};
  }
  static SEICHE_FN bool solid(const Site& s) { return (s.wall & not_fluid) != 0; }

  static SEICHE_FN Index slot(Index tile, int q, int lane) { return (tile * L::Q + q) * V + lane; }

  /// Where the population that arrives along q was left: the upwind site's slot, or the own opposite one at a wall.
  template <int q>
  SEICHE_FN Index upwind(const Site& s) const {
    constexpr int X = L::cx(q), Y = L::cy(q), Z = L::cz(q);
    const int x = s.lane % B - X, y = s.lane / B % B - Y, z = s.lane / (B * B) - Z;
    int around = 13;
    if constexpr (X > 0) around -= (x < 0);
    if constexpr (X < 0) around += (x >= B);
    if constexpr (Y > 0) around -= 3 * (y < 0);
    if constexpr (Y < 0) around += 3 * (y >= B);
    if constexpr (Z > 0) around -= 9 * (z < 0);
    if constexpr (Z < 0) around += 9 * (z >= B);
    const int lane = (x & (B - 1)) + B * ((y & (B - 1)) + B * (z & (B - 1)));
    const bool wall = (s.wall >> opposite(q)) & 1u;
    return wall ? slot(s.tile, opposite(q), s.lane) : slot(table[s.tile * row + around], q, lane);
  }
  SEICHE_FN void load(const Site& s, Real (&f)[L::Q]) const {
    f[0] = decode<Real>(f_in[slot(s.tile, 0, s.lane)]);
    each<1, L::Q>([&]<int q>() { f[q] = decode<Real>(f_in[upwind<q>(s)]); });
  }
  SEICHE_FN void store(const Site& s, const Real (&f)[L::Q]) const {
    each<0, L::Q>([&]<int q>() { encode(f_out[slot(s.tile, q, s.lane)], f[q]); });
  }
  template <int q>
  SEICHE_FN S& leaving(const Site& s) const {
    return f_out[slot(s.tile, q, s.lane)];
  }

  /// The rows of B sites of a batch, one direction: a run of one tile, and at one end a site of the tile beside it.
  template <int q, int lanes>
  SEICHE_FN void load_rows(Index tile, int first, Real (&f)[lanes]) const {
    constexpr int X = L::cx(q), Y = L::cy(q), Z = L::cz(q);
    for (int r = 0; r < lanes / B; ++r) {
      const int y = (first / B + r) % B - Y, z = (first / B + r) / B - Z;
      const int around = 13 + 3 * ((y >= B) - (y < 0)) + 9 * ((z >= B) - (z < 0));
      const int lane = B * ((y & (B - 1)) + B * (z & (B - 1)));
      const i32* tiles = table + tile * row + around;
      const S* here = f_in + slot(tiles[0], q, lane);
      Real* to = f + r * B;
      for (int x = (X > 0); x < B - (X < 0); ++x) to[x] = decode<Real>(here[x - X]);
      if constexpr (X > 0) to[0] = decode<Real>(f_in[slot(tiles[-1], q, lane + B - 1)]);
      if constexpr (X < 0) to[B - 1] = decode<Real>(f_in[slot(tiles[1], q, lane)]);
    }
  }
  template <int lanes>
  SEICHE_FN void load_lanes(Index i, int, Real (&f)[L::Q][lanes]) const {
    const Index tile = i / V;
    const int first = static_cast<int>(i % V);
    each<0, L::Q>([&]<int q>() { load_rows<q>(tile, first, f[q]); });
    const i32 wall_row = table[tile * row + 27];
    if (wall_row < 0) return;
    const u32* wall = walls + static_cast<Index>(wall_row) * V + first;
    each<1, L::Q>([&]<int q>() {
      const S* own = f_in + slot(tile, opposite(q), first);
      for (int k = 0; k < lanes; ++k) f[q][k] = wall[k] >> opposite(q) & 1u ? decode<Real>(own[k]) : f[q][k];
    });
  }
  template <int lanes>
  SEICHE_FN void store_lanes(Index i, int, const Real (&f)[L::Q][lanes]) const {
    S* to = f_out + slot(i / V, 0, static_cast<int>(i % V));
    each<0, L::Q>([&]<int q>() {
      for (int k = 0; k < lanes; ++k) encode(to[q * V + k], f[q][k]);
    });
  }
};

}  // namespace seiche
