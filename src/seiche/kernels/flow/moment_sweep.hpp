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

/// Adjacent tile number r, at (dx, dy, dz) from the tile (r = 13: the tile itself): the directions in which populations
/// stream from it into the tile, and the number of its sites from which they do.
template <class L, int B, int r>
struct AdjacentTile {
  static constexpr int dx = r % 3 - 1, dy = r / 3 % 3 - 1, dz = r / 9 - 1;
  static constexpr bool streams_into_tile(int q) {
    return (dx == 0 || L::cx(q) == -dx) && (dy == 0 || L::cy(q) == -dy) && (dz == 0 || L::cz(q) == -dz);
  }
  static constexpr int sites() {
    int directions = 0;
    for (int q = 1; q < L::Q; ++q) directions += streams_into_tile(q);
    const int number = (dx == 0 ? B : 1) * (dy == 0 ? B : 1) * (dz == 0 ? B : 1);
    return directions > 0 && r != 13 ? number : 0;
  }
};

/// Streaming and collision of one tile; `bytes` is the memory traffic per site.
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

  /// Maps the incoming populations of a site to its outgoing coefficients.
  SEICHE_FN Quadratic<Real> update(Index site, const Real (&f)[Q]) const {
    const auto g = force.at(site);
    const auto m = moments<L>(f, g);
    if constexpr (requires { g.store_velocity(m); }) g.store_velocity(m);  // stores the velocity for other kernels
    const auto p = nonequilibrium<L>(f, m, g);
    return regularised(m, p, relaxation(site, p, m.rho).even, g);
  }
  /// True if x + step is inside the tile, for a coordinate x of the tile.
  template <int step>
  static SEICHE_FN bool stays_in_tile(int x) {
    return step == 0 || (step > 0 ? x < B - 1 : x > 0);
  }

  struct ThreadScratch {
    Real f[Q][V];
  };
  /// The scratch includes a layer around the tile for populations that leave it, which are discarded.
  static constexpr int padded_edge = B + 2;
  struct RowScratch {
    alignas(64) Real f[Q][padded_edge * padded_edge * padded_edge];
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
    const u32* adjacent_tiles = layout.table + tile * Layout::row;
    if (adjacent_tiles[Layout::wall_entry] == Layout::no_walls) {
      run<false>(team, tile, adjacent_tiles, 0, scratch);
    } else {
      run<true>(team, tile, adjacent_tiles, static_cast<Index>(adjacent_tiles[Layout::wall_entry]) * V, scratch);
    }
  }
  template <bool walled>
  SEICHE_FN void run(const Team& team, Index tile, const u32* adjacent_tiles, Index mask_offset,
                     Scratch& scratch) const {
    const u32 own_entry = static_cast<u32>(tile) * M;  // 32 bits: fewer registers until it is used
    team.for_each(V, [&](int site) {
      const u32 wall = walled ? layout.walls[mask_offset + site] : 0u;
      if (wall & Layout::not_fluid) return;
      stream_inside_tile<walled>(layout.coefficients(layout.f_in + Layout::first_slot(own_entry), site), site, wall,
                                 scratch);
      if (wall & Layout::has_link_values) take_values(layout.link_rows[mask_offset + site], site, scratch);
    });
    team.for_each(neighbour_sites<27>(), [&](int neighbour) {
      stream_from_neighbours<walled, 0>(neighbour, adjacent_tiles, layout.walls + mask_offset, scratch);
    });
    team.barrier();
    team.for_each(V, [&](int site) {
      Store* target = layout.f_out + Layout::first_slot(own_entry);
      const u32 wall = walled ? layout.walls[mask_offset + site] : 0u;
      if (wall & Layout::not_fluid) {
        if (wall != Layout::empty)
          layout.store_coefficients(target, site,
                                    Quadratic<Real>{});  // written too, so that whole cache lines are stored
        return;
      }
      Real f[Q];
      static_for<0, Q>([&]<int q>() { f[q] = scratch.f[q][site]; });
      layout.store_coefficients(target, site, update(tile * V + site, f));
    });
  }
  /// Streams the populations of a site inside this tile. Those that meet a wall return to the site.
  template <bool walled>
  SEICHE_FN void stream_inside_tile(const Quadratic<Real>& m, int site, u32 wall, Scratch& scratch) const {
    const int x = site % B, y = site / B % B, z = site / (B * B);
    scratch.f[0][site] = population<L, 0>(m);
    static_for<1, Q>([&]<int q>() {
      constexpr int X = L::cx(q), Y = L::cy(q), Z = L::cz(q);
      const Real outgoing = population<L, q>(m);
      if (walled && (wall >> q & 1u)) {
        scratch.f[opposite(q)][site] = outgoing;
      } else if (stays_in_tile<X>(x) && stays_in_tile<Y>(y) && stays_in_tile<Z>(z)) {
        scratch.f[q][site + Layout::lane(X, Y, Z)] = outgoing;
      }
    });
  }
  /// Surrounding tiles in the order in which threads process their sites: faces, edges, corners.
  static constexpr int neighbour_order(int k) {
    constexpr int order[27] = {12, 14, 10, 16, 4, 22, 9, 11, 15, 17, 3,  5,  21, 23,
                               1,  7,  19, 25, 0, 2,  6, 8,  18, 20, 24, 26, 13};
    return order[k];
  }
  /// Number of adjacent sites in the first k surrounding tiles.
  template <int k>
  static constexpr int neighbour_sites() {
    if constexpr (k == 0) {
      return 0;
    } else {
      return neighbour_sites<k - 1>() + AdjacentTile<L, B, neighbour_order(k - 1)>::sites();
    }
  }
  /// Streams the populations of surrounding site number `neighbour` into the tile.
  template <bool walled, int k>
  SEICHE_FN void stream_from_neighbours(int neighbour, const u32* adjacent_tiles, const u32* walls,
                                        Scratch& scratch) const {
    if constexpr (k < 27) {
      constexpr int r = neighbour_order(k);
      if constexpr (AdjacentTile<L, B, r>::sites() == 0) {
        stream_from_neighbours<walled, k + 1>(neighbour, adjacent_tiles, walls, scratch);
      } else if (neighbour < neighbour_sites<k + 1>()) {
        stream_from<walled, r>(neighbour - neighbour_sites<k>(), adjacent_tiles[r], walls, scratch);
      } else {
        stream_from_neighbours<walled, k + 1>(neighbour, adjacent_tiles, walls, scratch);
      }
    }
  }
  /// Coordinates, in the system of this tile, of site number `neighbour` of an adjacent tile.
  template <int r>
  static SEICHE_FN void adjacent(u32 neighbour, int& x, int& y, int& z) {
    using Neighbour = AdjacentTile<L, B, r>;
    constexpr int shared_axes = (Neighbour::dx == 0) + (Neighbour::dy == 0) + (Neighbour::dz == 0);
    const int first = static_cast<int>(shared_axes == 2 ? neighbour % B : neighbour),
              second = static_cast<int>(neighbour / B);
    x = Neighbour::dx == 0 ? first : (Neighbour::dx < 0 ? -1 : B);
    y = Neighbour::dy == 0 ? (Neighbour::dx == 0 ? second : first) : (Neighbour::dy < 0 ? -1 : B);
    z = Neighbour::dz == 0 ? (shared_axes == 2 ? second : first) : (Neighbour::dz < 0 ? -1 : B);
  }
  template <bool walled, int r>
  SEICHE_FN void stream_from(int neighbour, u32 entry, const u32* walls, Scratch& scratch) const {
    using Neighbour = AdjacentTile<L, B, r>;
    int x, y, z;
    adjacent<r>(neighbour, x, y, z);
    const int lane = Layout::lane(x & (B - 1), y & (B - 1), z & (B - 1));
    const auto m = layout.coefficients(layout.f_in + Layout::first_slot(entry), lane);
    static_for<1, Q>([&]<int q>() {
      constexpr int X = L::cx(q), Y = L::cy(q), Z = L::cz(q);
      if constexpr (Neighbour::streams_into_tile(q)) {
        if ((Neighbour::dx != 0 || stays_in_tile<X>(x)) && (Neighbour::dy != 0 || stays_in_tile<Y>(y)) &&
            (Neighbour::dz != 0 || stays_in_tile<Z>(z))) {
          const int target = Layout::lane(x + X, y + Y, z + Z);
          if (!(walled && (walls[target] >> opposite(q) & 1u))) scratch.f[q][target] = population<L, q>(m);
        }
      }
    });
  }

  /// Index of a site in the padded scratch. With a single thread, each row of sites is processed as a vector.
  static constexpr int index(int x, int y, int z) { return (x + 1) + padded_edge * ((y + 1) + padded_edge * (z + 1)); }
  template <class F>
  static SEICHE_FN void rows(F&& f) {
    for (int z = 0; z < B; ++z) {
      for (int y = 0; y < B; ++y) f(y, z, B * (y + B * z));
    }
  }

  SEICHE_FN void by_rows(Index tile, Scratch& scratch) const {
    const u32* adjacent_tiles = layout.table + tile * Layout::row;
    const Index first = tile * (M * V);
    rows([&](int y, int z, int lane) SEICHE_INLINED {
      vector_loop<B>([&](int x) SEICHE_INLINED {
        const auto m = layout.coefficients(layout.f_in + first, lane + x);
        static_for<0, Q>([&]<int q>() SEICHE_INLINED {
          scratch.f[q][index(L::cx(q), y + L::cy(q), z + L::cz(q)) + x] = population<L, q>(m);
        });
      });
    });
    static_for<0, 27>([&]<int r>()
                          SEICHE_INLINED { stream_rows_from<r>(Layout::first_slot(adjacent_tiles[r]), scratch); });
    const bool walled = adjacent_tiles[Layout::wall_entry] != Layout::no_walls;
    const Index mask_offset = walled ? static_cast<Index>(adjacent_tiles[Layout::wall_entry]) * V : 0;
    if (walled) bounce(first, mask_offset, scratch);
    rows([&](int y, int z, int lane) SEICHE_INLINED {
      vector_loop<B>([&](int x) SEICHE_INLINED {
        Real f[Q];
        static_for<0, Q>([&]<int q>() SEICHE_INLINED { f[q] = scratch.f[q][index(0, y, z) + x]; });
        layout.store_coefficients(scratch.out, lane + x, update(tile * V + lane + x, f));
      });
    });
    if (walled) clear(layout.walls + mask_offset, scratch);
    Store* target = layout.f_out + first;
    if (can_stream(target)) {
      stream_out(target, scratch.out, sizeof scratch.out);
      stream_fence();
    } else {
      for (int k = 0; k < M * V; ++k) target[k] = scratch.out[k];
    }
  }
  template <int r>
  SEICHE_FN void stream_rows_from(Index first, Scratch& scratch) const {
    using Neighbour = AdjacentTile<L, B, r>;
    constexpr int sites = Neighbour::sites(), row_length = Neighbour::dx == 0 ? B : 1;
    for (int row = 0; row < sites; row += row_length) {
      // second and third coordinate of the row within the face; a row is along x if the face extends along x
      const int second_coordinate = Neighbour::dx == 0 ? row / B % B : row % B, third_coordinate = row / B;
      const int y = Neighbour::dy == 0 ? second_coordinate : (Neighbour::dy < 0 ? -1 : B);
      const int z = Neighbour::dz != 0
                        ? (Neighbour::dz < 0 ? -1 : B)
                        : (Neighbour::dy == 0 && Neighbour::dx != 0 ? third_coordinate : second_coordinate);
      const int x = Neighbour::dx == 0 ? 0 : (Neighbour::dx < 0 ? -1 : B);
      const int source = Layout::lane(x & (B - 1), y & (B - 1), z & (B - 1));
      const int target = index(x, y, z);
      vector_loop<row_length>([&](int k) SEICHE_INLINED {
        const auto m = layout.coefficients(layout.f_in + first, source + k);
        static_for<1, Q>([&]<int q>() SEICHE_INLINED {
          if constexpr (Neighbour::streams_into_tile(q)) {
            scratch.f[q][target + index(L::cx(q), L::cy(q), L::cz(q)) - index(0, 0, 0) + k] = population<L, q>(m);
          }
        });
      });
    }
  }
  /// Reflects populations at walls, and replaces those given by iolets and interpolated walls.
  SEICHE_FN void bounce(Index first, Index mask_offset, Scratch& scratch) const {
    rows([&](int y, int z, int lane) SEICHE_INLINED {
      const u32* wall = layout.walls + mask_offset + lane;
      u32 wall_links = 0;  // links that leave the fluid at a fluid site
      for (int x = 0; x < B; ++x) wall_links |= wall[x] & Layout::not_fluid ? 0u : wall[x];
      if (wall_links == 0) return;
      static_for<1, Q>([&]<int q>() SEICHE_INLINED {
        if ((wall_links >> q & 1u) == 0) return;
        Real* target = scratch.f[opposite(q)] + index(0, y, z);
        vector_loop<B>([&](int x) SEICHE_INLINED {
          const Real outgoing = population<L, q>(layout.coefficients(layout.f_in + first, lane + x));
          target[x] = wall[x] >> q & 1u ? outgoing : target[x];
        });
      });
      if ((wall_links & Layout::has_link_values) == 0) return;
      for (int x = 0; x < B; ++x) {
        const bool uses_link_values = (wall[x] & Layout::has_link_values) != 0 && (wall[x] & Layout::not_fluid) == 0;
        if (uses_link_values) take_values(layout.link_rows[mask_offset + lane + x], index(x, y, z), scratch);
      }
    });
  }
  /// Sets solid sites to the rest state.
  SEICHE_FN void clear(const u32* wall, Scratch& scratch) const {
    for (int k = 0; k < V; ++k) {
      if (wall[k] & Layout::not_fluid) layout.store_coefficients(scratch.out, k, Quadratic<Real>{});
    }
  }

  /// Copies the link values that iolets and interpolated walls have set to the site with incoming populations at
  /// `index`.
  SEICHE_FN void take_values(u32 row, int index, Scratch& scratch) const {
    const u32 mask = layout.link_masks[row];
    const auto* values = layout.link_values + static_cast<Index>(row) * Q;
    for (int q = 0; q < Q; ++q) {
      if (mask >> q & 1u) scratch.f[opposite(q)][index] = decode<Real>(values[q]);
    }
  }
};

}  // namespace seiche
