// SPDX-License-Identifier: BSD-3-Clause
/// Walls that lie anywhere on their links, or move (theory/flow, eqs. 36 to 38): before the sweep, what left along a
/// wall link is replaced by what comes back, which the sweep then reads as half-way bounce-back reads it.
/// Links name their slots, so that no layout is needed.
#pragma once
#include "lattice.hpp"

namespace seiche {

/// Item: a link. What comes back is a share of what left along it and the rest of one more population: of the one that
/// arrives along the link (wall before its middle), or of the one that left the other way (wall beyond).
/// Bytes a link: three populations, two slots, the share.
template <class R, class S>
struct WallReturn {
  using Real = R;
  S* f;
  const u32* own;    ///< slot of what left along the link
  const u32* other;  ///< slot of the other population; no wall link's own
  const Real* share;
  static constexpr int bytes = 3 * sizeof(S) + 8 + sizeof(Real);
  SEICHE_FN Real back(Index k) const {
    return share[k] * decode<Real>(f[own[k]]) + (Real(1) - share[k]) * decode<Real>(f[other[k]]);
  }
  SEICHE_FN void operator()(Index k) const { encode(f[own[k]], back(k)); }
};

/// The same into a buffer, to be put in place when the iolets have seen what left.
template <class R, class S>
struct WallKept {
  using Real = R;
  WallReturn<R, S> wall;
  S* kept;
  static constexpr int bytes = WallReturn<R, S>::bytes;
  SEICHE_FN void operator()(Index k) const { encode(kept[k], wall.back(k)); }
};

/// The same as the first for a wall that moves: the momentum that it gives, times the density of the site, comes on
/// top.
template <class R, class S>
struct MovingWallReturn {
  using Real = R;
  WallReturn<R, S> wall;
  const Real* push;    ///< -6 w u.c, over twice the fraction of the link where the wall lies beyond its middle
  const u32* row;      ///< of the site in `excess`
  const Real* excess;  ///< density excess of the sites with moving walls
  static constexpr int bytes = WallReturn<R, S>::bytes + 2 * sizeof(Real) + 4;
  SEICHE_FN void operator()(Index k) const {
    encode(wall.f[wall.own[k]], wall.back(k) + push[k] * (Real(1) + excess[row[k]]));
  }
};

/// Density excess of chosen sites, the sum of what left each: the collision of the last step conserved it.
template <class Lattice, class R, class S>
struct LeavingDensity {
  using Real = R;
  const S* f;
  const u32* slots;  ///< [q][item]
  Real* excess;
  Index stride;
  static constexpr int bytes = Lattice::Q * (sizeof(S) + 4) + sizeof(Real);
  SEICHE_FN void operator()(Index k) const {
    Real sum = decode<Real>(f[slots[k]]);
    each<1, Lattice::Q>([&]<int q>() SEICHE_INLINED { sum += decode<Real>(f[slots[q * stride + k]]); });
    excess[k] = sum;
  }
};

}  // namespace seiche
