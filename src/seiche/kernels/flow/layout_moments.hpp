// SPDX-License-Identifier: BSD-3-Clause
/// Moment storage (Vardhan, Gounley and Randles 2019; theory/flow, section 9): tiles of B^3 sites, two copies. A site
/// stores the ten coefficients of its outgoing populations. Numbers are stored in groups of at most 16 bytes, which a
/// thread transfers together.
/// Slot of number `first + k` in a group of `width` numbers that begins with `first`: (tile M + first) B^3 + lane width
/// + k, lanes with x fastest.
/// Groups: 2 2 2 2 2 doubles, or 4 4 2 floats. Storage in half precision has 14 halves per site in groups of 8 4 2; the
/// first four coefficients remain floats.
/// Table of tiles, table[tile][28]: the first slots of the 27 surrounding tiles divided by B^3 (x fastest; that of the
/// tile itself where there is none). Slots have 64 bits, since a device may hold more than 2^32 numbers. The last entry
/// is the row of the tile in `walls`. It is `no_walls` for a tile whose sites are all fluid and whose links all meet
/// fluid. Bits of walls[row][lane]: bit q = the link c_q leaves the fluid, bit 0 = not fluid, bit 31 = some link has a
/// value of its own in `link_values`, given by an iolet or an interpolated wall. All bits = no data stored here. Bytes:
/// 20 s + 112/B^3 per site, 4 more in tiles with walls, and the reads of sites at faces from surrounding tiles.
#pragma once
#include "../groups.hpp"
#include "lanes.hpp"
#include "quadratic.hpp"

namespace seiche {

/// Values of links are floats where the coefficients are halves, because reflected populations transfer momentum.
template <class Store>
struct LinkValue {
  using Type = Store;
};
template <>
struct LinkValue<f16> {
  using Type = float;
};

/// Outgoing population of a site along c_q: computed from its coefficients, or replaced by its own value in
/// `link_values`.
template <class Layout, int q>
struct MomentLink {
  const typename Layout::Store* tile;
  int lane;
  typename Layout::Value* value;
};

template <class L, class R, class S, int Edge>
struct MomentTiles {
  using Lattice = L;
  using Real = R;
  using Store = S;
  using Value = typename LinkValue<S>::Type;
  const S* f_in;
  S* f_out;
  const u32* table;
  const u32* walls;
  const u32* link_rows;   ///< [row of walls][lane]: row in `link_values` of a site with bit 31
  const u32* link_masks;  ///< [row] bit q: the link c_q has a value; bit 0: the rest population has one
  Value* link_values;     ///< [row][Q] outgoing populations of such links
  static constexpr bool words = sizeof(S) == 2;
  static constexpr int M = words ? 14 : 10, B = Edge, V = B * B * B;
  /// Entries of a row of the table: 27 adjacent tiles with the tile itself in the middle, then the row in `walls`.
  static constexpr int own_entry = 13, wall_entry = 27, row = 28;
  static constexpr int bytes = 2 * M * sizeof(S);
  static constexpr u32 not_fluid = 1u, has_link_values = 1u << 31, empty = 0xffffffffu, no_walls = 0xffffffffu;

  static constexpr SEICHE_FN int lane(int x, int y, int z) { return x + B * (y + B * z); }
  /// Numbers of the site at `lane` of the tile at `tile`, from number `first`: groups of `width`, then smaller ones.
  template <int width, int count, class T>
  static SEICHE_FN void get(const T* tile, int first, int lane, T (&numbers)[count]) {
    static_for<0, (count + width - 1) / width>([&]<int g>() SEICHE_INLINED {
      constexpr int begin = g * width, n = count - begin < width ? count - begin : width;
      const auto group = load_group<n>(tile + (first + begin) * V + lane * n);
      static_for<0, n>([&]<int k>() SEICHE_INLINED { numbers[begin + k] = group.of[k]; });
    });
  }
  template <int width, int count, class T>
  static SEICHE_FN void put(T* tile, int first, int lane, const T (&numbers)[count]) {
    static_for<0, (count + width - 1) / width>([&]<int g>() SEICHE_INLINED {
      constexpr int begin = g * width, n = count - begin < width ? count - begin : width;
      Group<T, n> group;
      static_for<0, n>([&]<int k>() SEICHE_INLINED { group.of[k] = numbers[begin + k]; });
      store_group<n>(tile + (first + begin) * V + lane * n, group);
    });
  }
  /// Half-precision storage has density and momentum as words, because their change in one step may be below the
  /// resolution of a half.
  static SEICHE_FN Quadratic<Real> coefficients(const S* tile, int lane) {
    Real of[10];
    if constexpr (words) {
      Word c[4];
      S a[6];
      get<4>(reinterpret_cast<const Word*>(tile), 0, lane, c);
      get<4>(tile, 8, lane, a);
      static_for<0, 4>([&]<int k>() SEICHE_INLINED { of[k] = static_cast<Real>(c[k]); });
      static_for<0, 6>([&]<int k>() SEICHE_INLINED { of[4 + k] = decode<Real>(a[k]); });
    } else {
      S n[10];
      get<16 / sizeof(S)>(tile, 0, lane, n);
      static_for<0, 10>([&]<int k>() SEICHE_INLINED { of[k] = decode<Real>(n[k]); });
    }
    return {of[0], of[1], of[2], of[3], {of[4], of[5], of[6], of[7], of[8], of[9]}};
  }
  static SEICHE_FN void store_coefficients(S* tile, int lane, const Quadratic<Real>& m) {
    const Real of[10] = {m.rest, m.jx, m.jy, m.jz, m.a.xx, m.a.yy, m.a.zz, m.a.xy, m.a.xz, m.a.yz};
    if constexpr (words) {
      Word c[4];
      S a[6];
      static_for<0, 4>([&]<int k>() SEICHE_INLINED { c[k] = static_cast<float>(of[k]); });
      static_for<0, 6>([&]<int k>() SEICHE_INLINED { encode(a[k], of[4 + k]); });
      put<4>(reinterpret_cast<Word*>(tile), 0, lane, c);
      put<4>(tile, 8, lane, a);
    } else {
      S n[10];
      static_for<0, 10>([&]<int k>() SEICHE_INLINED { encode(n[k], of[k]); });
      put<16 / sizeof(S)>(tile, 0, lane, n);
    }
  }

  /// First slot of a tile with this entry of the table. On a CPU, a factor that is no power of two took 3 % more
  /// time.
  static SEICHE_FN Index first_slot(u32 entry) { return static_cast<Index>(entry) * V; }

  struct Site {
    Index tile;  ///< first slot of the tile
    int lane;
    const u32* adjacent_tiles;  ///< the tile's row of the table
    u32 wall;
    u32 mask;     ///< links that have a value
    Index value;  ///< first value of the site
  };
  SEICHE_FN Site site(Index i) const {
    const int lane = static_cast<int>(i % V);
    const u32* adjacent_tiles = table + i / V * row;
    const u32 wall_row = adjacent_tiles[wall_entry];
    const Index position = static_cast<Index>(wall_row) * V + lane;
    const u32 wall = wall_row == no_walls ? 0u : walls[position];
    const u32 links = wall & has_link_values ? link_rows[position] : 0u;
    return {first_slot(adjacent_tiles[own_entry]),
            lane,
            adjacent_tiles,
            wall,
            wall & has_link_values ? link_masks[links] : 0u,
            static_cast<Index>(links) * L::Q};
  }
  static SEICHE_FN bool solid(const Site& s) { return (s.wall & not_fluid) != 0; }

  /// Incoming populations of a site, from the copy that a step reads.
  SEICHE_FN void load(const Site& s, Real (&f)[L::Q]) const {
    const auto m = coefficients(f_in + s.tile, s.lane);
    f[0] = s.mask & 1u ? decode<Real>(link_values[s.value]) : population<L, 0>(m);
    static_for<1, L::Q>([&]<int q>() SEICHE_INLINED {
      constexpr int reverse = opposite(q);
      if (s.mask >> reverse & 1u) {
        f[q] = decode<Real>(link_values[s.value + reverse]);
      } else if (s.wall >> reverse & 1u) {
        f[q] = population<L, reverse>(m);
      } else {
        f[q] = population<L, q>(upwind<q>(s));
      }
    });
  }
  /// Coefficients of the upwind site along q.
  template <int q>
  SEICHE_FN Quadratic<Real> upwind(const Site& s) const {
    const int x = s.lane % B - L::cx(q), y = s.lane / B % B - L::cy(q), z = s.lane / (B * B) - L::cz(q);
    const int tile = own_entry + ((x >= B) - (x < 0)) + 3 * ((y >= B) - (y < 0)) + 9 * ((z >= B) - (z < 0));
    return coefficients(f_in + first_slot(s.adjacent_tiles[tile]), lane(x & (B - 1), y & (B - 1), z & (B - 1)));
  }
  /// Outgoing population of this step. Only a link with its own value in `link_values` can be assigned.
  template <int q>
  SEICHE_FN MomentLink<MomentTiles, q> outgoing(const Site& s) const {
    return {f_out + s.tile, s.lane, link_values + s.value + q};
  }
};

template <class Real, class Layout, int q>
SEICHE_FN Real decode(const MomentLink<Layout, q>& link) {
  return population<typename Layout::Lattice, q>(Layout::coefficients(link.tile, link.lane));
}
template <class Layout, int q>
SEICHE_FN void encode(const MomentLink<Layout, q>& link, typename Layout::Real x) {
  encode(*link.value, x);
}

/// State of sites: out[q][item] = outgoing population along c_q, including values of links.
template <class Layout>
struct OutgoingPopulations {
  using Real = typename Layout::Real;
  Layout layout;
  const Index* sites;
  Real* out;
  Index stride;
  static constexpr int bytes = Layout::bytes / 2 + Layout::Lattice::Q * sizeof(Real) + 8;
  SEICHE_FN void operator()(Index k) const {
    using L = typename Layout::Lattice;
    const auto site = layout.site(sites[k]);
    const auto m = Layout::coefficients(layout.f_in + site.tile, site.lane);
    static_for<0, L::Q>([&]<int q>() SEICHE_INLINED {
      const bool value = site.mask >> q & 1u;
      out[q * stride + k] = value ? decode<Real>(layout.link_values[site.value + q]) : population<L, q>(m);
    });
  }
};

}  // namespace seiche
