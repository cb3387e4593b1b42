// SPDX-License-Identifier: BSD-3-Clause
/// Where the sites of the lattice lie for whoever knows only their coordinates: bricks of 8^3 sites, numbered by rows,
/// slot = 512 row + x + 8 (y + 8 z) of a site inside its brick (theory/coupling, section 3).
#pragma once
#include "delta.hpp"

namespace seiche {

inline constexpr int brick_edge = 8, brick_volume = 512;

/// What may be taken for granted. `open`: all sites are fluid, and a row of up to eight sites lies in two bricks (an
/// axis that repeats itself does so after whole bricks); `walled`: there are others; `odd`: a row may lie in three
/// bricks.
enum class Space { open, walled, odd };

/// Four numbers that move as one.
template <class Real>
struct alignas(16) Four {
  Real x, y, z, w;
};

struct Bricks {
  const i32* rows;   ///< [z][y][x]: 2 row + (all its sites are fluid); beyond the last brick of an axis: an empty one
  const u64* fluid;  ///< [row][8]: bit x + 8 y of plane z
  double each[3];    ///< one over the sites of the box
  i32 shape[3];      ///< sites of the box
  i32 periodic[3];

  SEICHE_FN i32 count(int axis) const { return (shape[axis] + brick_edge - 1) / brick_edge; }
  /// The site inside the box that a site is, where the axis repeats itself.
  SEICHE_FN i32 wrapped(int axis, i32 x) const {
    if (periodic[axis] == 0) return x;
    const i32 length = shape[axis];
    x -= length * round_down(static_cast<double>(x) * each[axis]);
    return x < 0 ? x + length : (x >= length ? x - length : x);
  }
  /// The site `step` after a wrapped one, -1 outside the box.
  SEICHE_FN i32 site(int axis, i32 first, int step) const {
    const i32 length = shape[axis];
    i32 x = first + step;
    if (periodic[axis] != 0) x -= x >= length ? length : 0;
    return x >= 0 && x < length ? x : -1;
  }
  SEICHE_FN i32 row(i32 x, i32 y, i32 z) const { return rows[(z * (count(1) + 1) + y) * (count(0) + 1) + x]; }
  /// 1 where the site of a slot is fluid, else 0.
  template <class Real>
  SEICHE_FN Real is_fluid(i32 slot) const {
    return static_cast<Real>(fluid[slot / 64] >> (slot % 64) & 1u);
  }
};

/// The sites around a point: the first of them, and the distance of the point to its anchor along each axis.
template <class Delta, class Real>
struct Stencil {
  static constexpr int P = Delta::support;
  i32 first[3];
  Real t[3];
  bool finite;

  SEICHE_FN explicit Stencil(const double (&x)[3]) {
    finite = true;
    for (int axis = 0; axis < 3; ++axis) {
      const bool fits = x[axis] > -1e9 && x[axis] < 1e9;  // false for a NaN too
      const double at = fits ? x[axis] : -1e9;
      const i32 anchor = Delta::anchor(at);
      first[axis] = anchor - Delta::before;
      t[axis] = static_cast<Real>(at - static_cast<double>(anchor));
      finite = finite && fits;
    }
  }
};

/// f(slot) with compile-time k, j, i for the P^3 sites of a stencil whose first one is wrapped; returns whether all are
/// fluid.
template <int P, Space space, class F>
SEICHE_FN bool for_sites(const Bricks& bricks, const i32 (&first)[3], F&& f) {
  if constexpr (space != Space::odd) {
    i32 brick[3][2], turn[3];  // the two bricks of a row, and its first site in the second one
    for (int axis = 0; axis < 3; ++axis) {
      const i32 count = bricks.count(axis), near = first[axis] >> 3, far = near + 1;
      turn[axis] = brick_edge - (first[axis] & 7);
      brick[axis][0] = near < 0 || near > count ? count : near;
      brick[axis][1] = far > count ? count : (far == count && bricks.periodic[axis] != 0 ? 0 : (far < 0 ? count : far));
    }
    i32 rows[2][2][2], all = 1;
    for (int z = 0; z < 2; ++z) {
      for (int y = 0; y < 2; ++y) {
        for (int x = 0; x < 2; ++x) {
          const i32 row = bricks.row(brick[0][x], brick[1][y], brick[2][z]);
          const bool met = (x == 0 || turn[0] < P) && (y == 0 || turn[1] < P) && (z == 0 || turn[2] < P);
          all &= met ? row : 1;
          rows[z][y][x] = row >> 1;
        }
      }
    }
    each<0, P>([&]<int k>() SEICHE_INLINED {
      each<0, P>([&]<int j>() SEICHE_INLINED {
        const i32 lane = ((first[2] + k) & 7) * 64 + ((first[1] + j) & 7) * 8;
        const bool high = k >= turn[2], right = j >= turn[1];
        i32 from[2];
        for (int x = 0; x < 2; ++x) {
          const i32 low_row = right ? rows[0][1][x] : rows[0][0][x], high_row = right ? rows[1][1][x] : rows[1][0][x];
          from[x] = (high ? high_row : low_row) * brick_volume + lane;
        }
        each<0, P>([&]<int i>() SEICHE_INLINED {
          f.template operator()<k, j, i>((i >= turn[0] ? from[1] : from[0]) + ((first[0] + i) & 7));
        });
      });
    });
    return all != 0;
  } else {
    i32 brick[3][P], lane[3][P], all = 1;
    for (int axis = 0; axis < 3; ++axis) {
      for (int k = 0; k < P; ++k) {
        const i32 x = bricks.site(axis, first[axis], k);
        brick[axis][k] = x < 0 ? bricks.count(axis) : x / brick_edge;
        lane[axis][k] = x < 0 ? 0 : x % brick_edge;
      }
    }
    each<0, P>([&]<int k>() SEICHE_INLINED {
      each<0, P>([&]<int j>() SEICHE_INLINED {
        each<0, P>([&]<int i>() SEICHE_INLINED {
          const i32 row = bricks.row(brick[0][i], brick[1][j], brick[2][k]);
          all &= row;
          f.template operator()<k, j, i>((row >> 1) * brick_volume + (lane[2][k] * 8 + lane[1][j]) * 8 + lane[0][i]);
        });
      });
    });
    return all != 0;
  }
}

}  // namespace seiche
