// SPDX-License-Identifier: BSD-3-Clause
/// Streaming and collision of moment storage (theory/flow, eqs. 1 to 6, 11, 41 and 42): an item is a tile. Populations
/// are rebuilt from the coefficients of the tile and of one layer of surrounding sites. Each is written to its
/// destination in the scratch memory of the team. Every site then reads its populations, collides, and stores its
/// coefficients.
#pragma once
#include "../batches.hpp"
#include "layout_moments.hpp"
#include "relaxation.hpp"

namespace seiche {

/// A tile adjacent to another one, at (dx, dy, dz): directions that stream from there into the tile, and the number of
/// their sites.
template <class L, int B, int r>
struct Around {
  static constexpr int dx = r % 3 - 1, dy = r / 3 % 3 - 1, dz = r / 9 - 1;
  static constexpr bool enters(int q) {
    return (dx == 0 || L::cx(q) == -dx) && (dy == 0 || L::cy(q) == -dy) && (dz == 0 || L::cz(q) == -dz);
  }
  static constexpr int sites() {
    int directions = 0;
    for (int q = 1; q < L::Q; ++q) directions += enters(q);
    const int number = (dx == 0 ? B : 1) * (dy == 0 ? B : 1) * (dz == 0 ? B : 1);
    return directions > 0 && r != 13 ? number : 0;
  }
};

/// Bytes are per site.
template <class Layout, class Relaxation, class Force>
struct MomentSweep {
  using L = typename Layout::Lattice;
  using Real = typename Layout::Real;
  using Store = typename Layout::Store;
  static constexpr int V = Layout::V, M = Layout::M, Q = L::Q, B = Layout::B;
  Layout layout;
  Relaxation relaxation;
  Force force;
  static constexpr int bytes = Layout::bytes + Relaxation::bytes + Force::bytes;

  /// Maps the arriving populations of a site to its outgoing coefficients.
  SEICHE_FN Quadratic<Real> update(Index item, const Real (&f)[Q]) const {
    const auto g = force.at(item);
    const auto m = moments<L>(f, g);
    if constexpr (requires { g.store_velocity(m); }) g.store_velocity(m);  // stores the velocity for other kernels
    const auto p = nonequilibrium<L>(f, m, g);
    return regularised(m, p, relaxation(item, p, m.rho).even, g);
  }
  /// True if x + step is inside the tile, for a coordinate x of the tile.
  template <int step>
  static SEICHE_FN bool within(int x) {
    return step == 0 || (step > 0 ? x < B - 1 : x > 0);
  }

  struct ThreadScratch {
    Real f[Q][V];
  };
  /// The scratch includes a layer around the tile for populations that leave it, which are discarded.
  static constexpr int wide = B + 2;
  struct RowScratch {
    alignas(64) Real f[Q][wide * wide * wide];
    alignas(64) Store out[M * V];
  };
  using Scratch = typename Either<Team::single_thread, RowScratch, ThreadScratch>::Type;

  SEICHE_FN void operator()(const Team& team, Index tile, Scratch& scratch) const {
    if constexpr (Team::single_thread) {
      by_rows(tile, scratch);
    } else {
      by_threads(team, tile, scratch);
    }
  }

  /// Many threads: each processes a site of the tile, then one of the surrounding sites.
  SEICHE_FN void by_threads(const Team& team, Index tile, Scratch& scratch) const {
    const u32* around = layout.table + tile * Layout::row;
    if (around[27] == Layout::no_walls) {
      run<false>(team, tile, around, 0, scratch);
    } else {
      run<true>(team, tile, around, static_cast<Index>(around[27]) * V, scratch);
    }
  }
  template <bool walled>
  SEICHE_FN void run(const Team& team, Index tile, const u32* around, Index masks, Scratch& scratch) const {
    const u32 first = static_cast<u32>(tile) * (M * V);
    team.for_each(V, [&](int lane) {
      const u32 wall = walled ? layout.walls[masks + lane] : 0u;
      if (wall & Layout::not_fluid) return;
      leave<walled>(layout.coefficients(layout.f_in + first, lane), lane, wall, scratch);
      if (wall & Layout::valued) take_values(layout.link_rows[masks + lane], lane, scratch);
    });
    team.for_each(sites_around<27>(), [&](int item) { enter<walled, 0>(item, around, layout.walls + masks, scratch); });
    team.barrier();
    team.for_each(V, [&](int lane) {
      Store* to = layout.f_out + first;
      const u32 wall = walled ? layout.walls[masks + lane] : 0u;
      if (wall & Layout::not_fluid) {
        if (wall != Layout::empty)
          layout.store_coefficients(to, lane, Quadratic<Real>{});  // shares a contiguous block with fluid sites
        return;
      }
      Real f[Q];
      static_for<0, Q>([&]<int q>() { f[q] = scratch.f[q][lane]; });
      layout.store_coefficients(to, lane, update(tile * V + lane, f));
    });
  }
  /// Streams the populations of a site inside this tile. Those that meet a wall return to the site.
  template <bool walled>
  SEICHE_FN void leave(const Quadratic<Real>& m, int lane, u32 wall, Scratch& scratch) const {
    const int x = lane % B, y = lane / B % B, z = lane / (B * B);
    scratch.f[0][lane] = population<L, 0>(m);
    static_for<1, Q>([&]<int q>() {
      constexpr int X = L::cx(q), Y = L::cy(q), Z = L::cz(q);
      const Real leaves = population<L, q>(m);
      if (walled && (wall >> q & 1u)) {
        scratch.f[opposite(q)][lane] = leaves;
      } else if (within<X>(x) && within<Y>(y) && within<Z>(z)) {
        scratch.f[q][lane + Layout::lane(X, Y, Z)] = leaves;
      }
    });
  }
  /// Surrounding tiles in the order in which threads process their sites: faces, edges, corners.
  static constexpr int ranked(int k) {
    constexpr int order[27] = {12, 14, 10, 16, 4, 22, 9, 11, 15, 17, 3,  5,  21, 23,
                               1,  7,  19, 25, 0, 2,  6, 8,  18, 20, 24, 26, 13};
    return order[k];
  }
  /// Number of adjacent sites in the first k of them.
  template <int k>
  static constexpr int sites_around() {
    if constexpr (k == 0) {
      return 0;
    } else {
      return sites_around<k - 1>() + Around<L, B, ranked(k - 1)>::sites();
    }
  }
  /// Populations that enter from surrounding site number `item`.
  template <bool walled, int k>
  SEICHE_FN void enter(int item, const u32* around, const u32* walls, Scratch& scratch) const {
    if constexpr (k < 27) {
      constexpr int r = ranked(k);
      if constexpr (Around<L, B, r>::sites() == 0) {
        enter<walled, k + 1>(item, around, walls, scratch);
      } else if (item < sites_around<k + 1>()) {
        enter_from<walled, r>(item - sites_around<k>(), around[r], walls, scratch);
      } else {
        enter<walled, k + 1>(item, around, walls, scratch);
      }
    }
  }
  /// Coordinates, in the system of this tile, of site number `item` of an adjacent tile.
  template <int r>
  static SEICHE_FN void adjacent(u32 item, int& x, int& y, int& z) {
    using From = Around<L, B, r>;
    constexpr int still = (From::dx == 0) + (From::dy == 0) + (From::dz == 0);
    const int first = static_cast<int>(still == 2 ? item % B : item), second = static_cast<int>(item / B);
    x = From::dx == 0 ? first : (From::dx < 0 ? -1 : B);
    y = From::dy == 0 ? (From::dx == 0 ? second : first) : (From::dy < 0 ? -1 : B);
    z = From::dz == 0 ? (still == 2 ? second : first) : (From::dz < 0 ? -1 : B);
  }
  template <bool walled, int r>
  SEICHE_FN void enter_from(int item, u32 first, const u32* walls, Scratch& scratch) const {
    using From = Around<L, B, r>;
    int x, y, z;
    adjacent<r>(item, x, y, z);
    const auto m = layout.coefficients(layout.f_in + first, Layout::lane(x & (B - 1), y & (B - 1), z & (B - 1)));
    static_for<1, Q>([&]<int q>() {
      constexpr int X = L::cx(q), Y = L::cy(q), Z = L::cz(q);
      if constexpr (From::enters(q)) {
        if ((From::dx != 0 || within<X>(x)) && (From::dy != 0 || within<Y>(y)) && (From::dz != 0 || within<Z>(z))) {
          const int to = Layout::lane(x + X, y + Y, z + Z);
          if (!(walled && (walls[to] >> opposite(q) & 1u))) scratch.f[q][to] = population<L, q>(m);
        }
      }
    });
  }

  /// A single thread: rows of sites are vectors.
  static constexpr int index(int x, int y, int z) { return (x + 1) + wide * ((y + 1) + wide * (z + 1)); }
  template <class F>
  static SEICHE_FN void rows(F&& f) {
    for (int z = 0; z < B; ++z) {
      for (int y = 0; y < B; ++y) f(y, z, B * (y + B * z));
    }
  }

  SEICHE_FN void by_rows(Index tile, Scratch& scratch) const {
    const u32* around = layout.table + tile * Layout::row;
    const Index first = tile * (M * V);
    rows([&](int y, int z, int lane) SEICHE_INLINED {
      vector_loop<B>([&](int x) SEICHE_INLINED {
        const auto m = layout.coefficients(layout.f_in + first, lane + x);
        static_for<0, Q>([&]<int q>() SEICHE_INLINED {
          scratch.f[q][index(L::cx(q), y + L::cy(q), z + L::cz(q)) + x] = population<L, q>(m);
        });
      });
    });
    static_for<0, 27>([&]<int r>() SEICHE_INLINED { enter_rows_from<r>(around[r], scratch); });
    const bool walled = around[27] != Layout::no_walls;
    const Index masks = walled ? static_cast<Index>(around[27]) * V : 0;
    if (walled) bounce(first, masks, scratch);
    rows([&](int y, int z, int lane) SEICHE_INLINED {
      vector_loop<B>([&](int x) SEICHE_INLINED {
        Real f[Q];
        static_for<0, Q>([&]<int q>() SEICHE_INLINED { f[q] = scratch.f[q][index(0, y, z) + x]; });
        layout.store_coefficients(scratch.out, lane + x, update(tile * V + lane + x, f));
      });
    });
    if (walled) clear(layout.walls + masks, scratch);
    Store* to = layout.f_out + first;
    if (can_stream(to)) {
      stream_out(to, scratch.out, sizeof scratch.out);
      stream_fence();
    } else {
      for (int k = 0; k < M * V; ++k) to[k] = scratch.out[k];
    }
  }
  template <int r>
  SEICHE_FN void enter_rows_from(u32 first, Scratch& scratch) const {
    using From = Around<L, B, r>;
    constexpr int sites = From::sites(), along = From::dx == 0 ? B : 1;
    for (int row = 0; row < sites; row += along) {
      // the slower axis of the sites: a row is along x if x is among their axes
      const int slow = From::dx == 0 ? row / B % B : row % B, slowest = row / B;
      const int y = From::dy == 0 ? slow : (From::dy < 0 ? -1 : B);
      const int z = From::dz != 0 ? (From::dz < 0 ? -1 : B) : (From::dy == 0 && From::dx != 0 ? slowest : slow);
      const int x = From::dx == 0 ? 0 : (From::dx < 0 ? -1 : B);
      const int from = Layout::lane(x & (B - 1), y & (B - 1), z & (B - 1));
      const int to = index(x, y, z);
      vector_loop<along>([&](int k) SEICHE_INLINED {
        const auto m = layout.coefficients(layout.f_in + first, from + k);
        static_for<1, Q>([&]<int q>() SEICHE_INLINED {
          if constexpr (From::enters(q)) {
            scratch.f[q][to + index(L::cx(q), L::cy(q), L::cz(q)) - index(0, 0, 0) + k] = population<L, q>(m);
          }
        });
      });
    }
  }
  /// Reflects populations at walls, and replaces those with separate values.
  SEICHE_FN void bounce(Index first, Index masks, Scratch& scratch) const {
    rows([&](int y, int z, int lane) SEICHE_INLINED {
      const u32* wall = layout.walls + masks + lane;
      u32 wall_links = 0;  // links that leave the fluid at a fluid site
      for (int x = 0; x < B; ++x) wall_links |= wall[x] & Layout::not_fluid ? 0u : wall[x];
      if (wall_links == 0) return;
      static_for<1, Q>([&]<int q>() SEICHE_INLINED {
        if ((wall_links >> q & 1u) == 0) return;
        Real* to = scratch.f[opposite(q)] + index(0, y, z);
        vector_loop<B>([&](int x) SEICHE_INLINED {
          const Real outgoing = population<L, q>(layout.coefficients(layout.f_in + first, lane + x));
          to[x] = wall[x] >> q & 1u ? outgoing : to[x];
        });
      });
      if ((wall_links & Layout::valued) == 0) return;
      for (int x = 0; x < B; ++x) {
        const bool has_value = (wall[x] & Layout::valued) != 0 && (wall[x] & Layout::not_fluid) == 0;
        if (has_value) take_values(layout.link_rows[masks + lane + x], index(x, y, z), scratch);
      }
    });
  }
  /// Sets solid sites to the rest state.
  SEICHE_FN void clear(const u32* wall, Scratch& scratch) const {
    for (int k = 0; k < V; ++k) {
      if (wall[k] & Layout::not_fluid) layout.store_coefficients(scratch.out, k, Quadratic<Real>{});
    }
  }

  /// Copies the separate values of links to the site whose populations arrive at `index`.
  SEICHE_FN void take_values(u32 row, int index, Scratch& scratch) const {
    const u32 mask = layout.link_masks[row];
    const auto* values = layout.link_values + static_cast<Index>(row) * Q;
    for (int q = 0; q < Q; ++q) {
      if (mask >> q & 1u) scratch.f[opposite(q)][index] = decode<Real>(values[q]);
    }
  }
};

}  // namespace seiche
