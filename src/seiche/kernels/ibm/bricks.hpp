// SPDX-License-Identifier: BSD-3-Clause
/// Map from coordinates to slots of lattice sites: bricks of 8^3 sites, numbered by rows. The slot of a site in its
/// brick is 512 row + x + 8 (y + 8 z) (theory/coupling, section 3).
#pragma once
#include "delta.hpp"

namespace seiche {

inline constexpr int brick_edge = 8, brick_volume = 512;

/// Assumptions about sites. `open`: all sites are fluid, and a row of up to eight sites spans at most two bricks (a
/// periodic axis has a whole number of bricks). `walled`: there are other sites. `odd`: a row may span three bricks.
enum class Space { open, walled, odd };

/// Four numbers that are loaded and stored together.
template <class Real>
struct alignas(16) Four {
  Real x, y, z, w;
};

struct Bricks {
  const i32* rows;   ///< [z][y][x]: 2 row + (all its sites are fluid); beyond the last brick of an axis: an empty one
  const u64* fluid;  ///< [row][8]: bit x + 8 y of plane z
  double inverse_shape[3];  ///< inverse of the sites of the box
  i32 shape[3];             ///< sites of the box
  i32 periodic[3];

  SEICHE_FN i32 count(int axis) const { return (shape[axis] + brick_edge - 1) / brick_edge; }
  /// Coordinate of a site wrapped into the box along periodic axes.
  SEICHE_FN i32 wrapped(int axis, i32 x) const {
    const i32 length = shape[axis];
    if (periodic[axis] == 0 || (x >= 0 && x < length)) return x;
    x -= length * round_down(static_cast<double>(x) * inverse_shape[axis]);
    return x < 0 ? x + length : (x >= length ? x - length : x);
  }
  /// Coordinate `step` sites after a wrapped one, -1 outside the box.
  SEICHE_FN i32 site(int axis, i32 first, int step) const {
    const i32 length = shape[axis];
    i32 x = first + step;
    if (periodic[axis] != 0) x -= x >= length ? length : 0;
    return x >= 0 && x < length ? x : -1;
  }
  SEICHE_FN i32 row(i32 x, i32 y, i32 z) const { return rows[(z * (count(1) + 1) + y) * (count(0) + 1) + x]; }
  /// 1 if the site of a slot is fluid, else 0.
  template <class Real>
  SEICHE_FN Real is_fluid(i32 slot) const {
    return static_cast<Real>(fluid[slot / 64] >> (slot % 64) & 1u);
  }
};

/// The sites around a coordinate: the first one, and the distance of the coordinate to its anchor.
template <class Delta, class Real>
struct AxisStencil {
  i32 first;
  Real t;
  bool finite;

  SEICHE_FN explicit AxisStencil(double x) {
    finite = x > -1e9 && x < 1e9;  // false for a NaN too
    const double at = finite ? x : -1e9;
    const i32 anchor = Delta::anchor(at);
    first = anchor - Delta::sites_before;
    t = static_cast<Real>(at - static_cast<double>(anchor));
  }
};

/// The same along each axis.
template <class Delta, class Real>
struct Stencil {
  static constexpr int P = Delta::support;
  i32 first[3];
  Real t[3];
  bool finite;

  SEICHE_FN explicit Stencil(const double (&x)[3]) {
    finite = true;
    for (int axis = 0; axis < 3; ++axis) {
      const AxisStencil<Delta, Real> stencil(x[axis]);
      first[axis] = stencil.first;
      t[axis] = stencil.t;
      finite = finite && stencil.finite;
    }
  }
};

/// Positions of P neighbouring sites along an axis, the first of which is wrapped: brick, and position in the brick.
template <int P, Space space>
struct AxisBricks {
  i32 first_brick, next_brick, first, turn;

  SEICHE_FN AxisBricks(const Bricks& bricks, int axis, i32 first_site) {
    const i32 count = bricks.count(axis);
    const i32 brick = first_site >> 3, next = brick + 1;
    first = first_site;
    turn = brick_edge - (first_site & 7);
    first_brick = brick < 0 || brick > count ? count : brick;
    next_brick = next > count ? count : (next == count && bricks.periodic[axis] != 0 ? 0 : (next < 0 ? count : next));
  }
  SEICHE_FN i32 brick(int k) const { return k >= turn ? next_brick : first_brick; }
  SEICHE_FN i32 offset(int k) const { return (first + k) & 7; }
};

/// The same for rows that may span three bricks.
template <int P>
struct AxisBricks<P, Space::odd> {
  i32 bricks_of[P], offsets[P];

  SEICHE_FN AxisBricks(const Bricks& bricks, int axis, i32 first_site) {
    for (int k = 0; k < P; ++k) {
      const i32 x = bricks.site(axis, first_site, k);
      bricks_of[k] = x < 0 ? bricks.count(axis) : x / brick_edge;
      offsets[k] = x < 0 ? 0 : x % brick_edge;
    }
  }
  SEICHE_FN i32 brick(int k) const { return bricks_of[k]; }
  SEICHE_FN i32 offset(int k) const { return offsets[k]; }
};

/// f(slot) with compile-time k, j for the P^2 sites of a stencil in the plane x = i; `first` is wrapped.
template <int P, Space space, class F>
SEICHE_FN void for_plane(const Bricks& bricks, const i32 (&first)[3], int i, F&& f) {
  const AxisBricks<P, space> y(bricks, 1, first[1]), z(bricks, 2, first[2]);
  i32 brick, offset;
  if constexpr (space == Space::odd) {
    const i32 x = bricks.site(0, first[0], i);
    brick = x < 0 ? bricks.count(0) : x / brick_edge;
    offset = x < 0 ? 0 : x % brick_edge;
  } else {
    const AxisBricks<P, space> x(bricks, 0, first[0]);
    brick = x.brick(i);
    offset = x.offset(i);
  }
  if constexpr (space == Space::odd) {
    static_for<0, P>([&]<int k>() SEICHE_INLINED {
      static_for<0, P>([&]<int j>() SEICHE_INLINED {
        const i32 row = bricks.row(brick, y.brick(j), z.brick(k)) >> 1;
        f.template operator()<k, j>(row * brick_volume + (z.offset(k) * 8 + y.offset(j)) * 8 + offset);
      });
    });
  } else {
    i32 rows[2][2];
    for (int k = 0; k < 2; ++k) {
      for (int j = 0; j < 2; ++j) {
        rows[k][j] =
            (bricks.row(brick, j == 0 ? y.first_brick : y.next_brick, k == 0 ? z.first_brick : z.next_brick) >> 1) *
                brick_volume +
            offset;
      }
    }
    static_for<0, P>([&]<int k>() SEICHE_INLINED {
      const i32 low = k >= z.turn ? rows[1][0] : rows[0][0], high = k >= z.turn ? rows[1][1] : rows[0][1];
      static_for<0, P>([&]<int j>() SEICHE_INLINED {
        f.template operator()<k, j>((j >= y.turn ? high : low) + z.offset(k) * 64 + y.offset(j) * 8);
      });
    });
  }
}

/// True if all bricks of the P^3 sites of a stencil are entirely fluid.
template <int P, Space space>
SEICHE_FN bool all_full(const Bricks& bricks, const i32 (&first)[3]) {
  const AxisBricks<P, space> x(bricks, 0, first[0]), y(bricks, 1, first[1]), z(bricks, 2, first[2]);
  constexpr int step = space == Space::odd ? 1 : P - 1;  // else the end sites of a row are in its bricks
  i32 all = 1;
  for (int k = 0; k < P; k += step) {
    for (int j = 0; j < P; j += step) {
      for (int i = 0; i < P; i += step) all &= bricks.row(x.brick(i), y.brick(j), z.brick(k));
    }
  }
  return (all & 1) != 0;
}

}  // namespace seiche
