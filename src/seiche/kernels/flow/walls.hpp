// SPDX-License-Identifier: BSD-3-Clause
/// Walls that lie anywhere on their links, or move (theory/flow, eqs. 36 to 38): before the sweep, what left along a
/// wall link is replaced by what comes back, which the sweep then reads as half-way bounce-back reads it.
/// Links name their slots, so that no layout is needed.
#pragma once
#include "../atomics.hpp"
#include "lattice.hpp"

namespace seiche {

/// Multiples of the unit of mass in which changes are summed: such a sum is the same in any order, on any ranks.
inline constexpr double wall_mass_scale = 0x1p44;
/// Links (or sites) a block, added to a sum of the run at once, and threads that share them.
inline constexpr int wall_block = 1024, wall_lanes = 128;

/// A change of mass in whole units. One that is not finite or beyond 64 counts as none: the totals of the fields show
/// what is wrong. Adding 3/2 2^52 rounds to a whole number, without an instruction for 64-bit integers.
SEICHE_FN Index in_units(double mass) {
  constexpr double rounding = 0x1.8p52;
  const bool usable = mass > -64.0 && mass < 64.0;
  return bit_cast<Index>((usable ? mass * wall_mass_scale : 0.0) + rounding) - bit_cast<Index>(rounding);
}

/// What comes back along link k is a share of what left along it and the rest of one more population: of the one that
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
  /// The mass that the link creates, of populations as they are stored.
  SEICHE_FN double put(S& to, Real left, Real value) const {
    encode(to, value);
    return static_cast<double>(decode<Real>(to)) - static_cast<double>(left);
  }
  SEICHE_FN double change(Index k, Index) const { return put(f[own[k]], decode<Real>(f[own[k]]), back(k)); }
};

/// The same into a buffer, to be put in place when the iolets have read what left.
template <class R, class S>
struct WallKept {
  using Real = R;
  WallReturn<R, S> wall;
  S* kept;
  static constexpr int bytes = WallReturn<R, S>::bytes;
  SEICHE_FN double change(Index k, Index) const {
    return wall.put(kept[k], decode<Real>(wall.f[wall.own[k]]), wall.back(k));
  }
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
  SEICHE_FN double change(Index k, Index) const {
    S& own = wall.f[wall.own[k]];
    return wall.put(own, decode<Real>(own), wall.back(k) + push[k] * (Real(1) + excess[row[k]]));
  }
};

/// The mass that walls created is taken back from the populations at rest of the wall sites, which move nothing: of
/// site k of component c the amount [c].
template <class R, class S>
struct MassCorrection {
  using Real = R;
  S* f;
  const u32* rest;       ///< slot of the population at rest
  const double* amount;  ///< of a site, in this step
  static constexpr int bytes = 2 * sizeof(S) + 4;
  SEICHE_FN double change(Index k, Index component) const {
    S& own = f[rest[k]];
    const Real left = decode<Real>(own);
    encode(own, static_cast<Real>(static_cast<double>(left) - amount[component]));
    return static_cast<double>(decode<Real>(own)) - static_cast<double>(left);
  }
};

/// Item b: block b of the links or sites of a rule, all of one component of the fluid, to whose sum the change of mass
/// is added.
template <class Rule>
struct SummedChange {
  struct Scratch {
    Index units[wall_lanes];
  };
  Rule rule;
  const Index* first;    ///< where blocks begin, and the last one ends
  const u32* component;  ///< of each block
  Index* sums;           ///< [component]
  static constexpr int bytes = wall_block * Rule::bytes;
  SEICHE_FN void operator()(const Team& team, Index b, Scratch& scratch) const {
    const Index begin = first[b], end = first[b + 1], part = component[b];
    team.each(wall_lanes, [&](int lane) SEICHE_INLINED { scratch.units[lane] = 0; });
    for (Index from = begin; from < end; from += wall_lanes) {
      const int count = end - from < wall_lanes ? static_cast<int>(end - from) : wall_lanes;
      team.each(count,
                [&](int lane) SEICHE_INLINED { scratch.units[lane] += in_units(rule.change(from + lane, part)); });
    }
    for (int half = wall_lanes / 2; half > 0; half /= 2) {
      team.barrier();
      team.each(half, [&](int lane) SEICHE_INLINED { scratch.units[lane] += scratch.units[lane + half]; });
    }
    team.barrier();
    team.each(1, [&](int) SEICHE_INLINED { add_atomically(sums + part, scratch.units[0]); });
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
