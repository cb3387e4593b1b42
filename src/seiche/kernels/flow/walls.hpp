// SPDX-License-Identifier: BSD-3-Clause
/// Walls at any position on their links, or moving walls (theory/flow, eqs. 36 to 38). Before the sweep, the outgoing
/// population of a wall link is replaced by the returning one. The sweep then reads it as for half-way bounce-back.
/// Links store slots, so no layout is needed.
#pragma once
#include "../atomics.hpp"
#include "lattice.hpp"

namespace seiche {

/// Units in a mass of one: changes of mass are summed as integers of this unit, independently of order and ranks.
inline constexpr double wall_mass_scale = 0x1p44;
/// Links (or sites) of a block, whose change is added to the total in one operation, and threads of a block.
inline constexpr int wall_block = 1024, wall_lanes = 128;

/// A change of mass as an integer. Values that are not finite or exceed 64 are processed as zero; the totals of the
/// fields then reveal the error. Adding 3/2 2^52 rounds to an integer without 64-bit integer instructions.
SEICHE_FN Index in_units(double mass) {
  constexpr double rounding = 0x1.8p52;
  const bool usable = mass > -64.0 && mass < 64.0;
  return bit_cast<Index>((usable ? mass * wall_mass_scale : 0.0) + rounding) - bit_cast<Index>(rounding);
}

/// The returning population of link k is a weighted mean of the outgoing one and of a second population. The second
/// population is the incoming one along the link if the wall is before the middle of the link, otherwise the outgoing
/// one in the opposite direction. Bytes per link: three populations, two slots, the weight.
template <class R, class S>
struct WallReturn {
  using Real = R;
  S* f;
  const u32* outgoing_slots;  ///< slot of the outgoing population
  const u32* second_slots;    ///< slot of the second population; never that of a wall link
  const Real* weight;
  static constexpr int bytes = 3 * sizeof(S) + 8 + sizeof(Real);
  SEICHE_FN Real back(Index k) const {
    return weight[k] * decode<Real>(f[outgoing_slots[k]]) + (Real(1) - weight[k]) * decode<Real>(f[second_slots[k]]);
  }
  /// The mass that the link creates, for populations as rounded by storage.
  SEICHE_FN double put(S& to, Real outgoing, Real value) const {
    encode(to, value);
    return static_cast<double>(decode<Real>(to)) - static_cast<double>(outgoing);
  }
  SEICHE_FN double change(Index k, Index) const {
    return put(f[outgoing_slots[k]], decode<Real>(f[outgoing_slots[k]]), back(k));
  }
};

/// The same, written to a buffer that is copied to the slots after the iolets have read the outgoing populations.
template <class R, class S>
struct StoreWallReturn {
  using Real = R;
  WallReturn<R, S> wall;
  S* returned;
  static constexpr int bytes = WallReturn<R, S>::bytes;
  SEICHE_FN double change(Index k, Index) const {
    return wall.put(returned[k], decode<Real>(wall.f[wall.outgoing_slots[k]]), wall.back(k));
  }
};

/// As `WallReturn` for a moving wall: adds the momentum of the wall times the density of the site.
template <class R, class S>
struct MovingWallReturn {
  using Real = R;
  WallReturn<R, S> wall;
  const Real* wall_term;  ///< -6 w u.c; divided by twice the wall fraction if the wall is beyond the middle of the link
  const u32* row;         ///< row of the site in `excess`
  const Real* excess;     ///< density excess of the sites with moving walls
  static constexpr int bytes = WallReturn<R, S>::bytes + 2 * sizeof(Real) + 4;
  SEICHE_FN double change(Index k, Index) const {
    S& population = wall.f[wall.outgoing_slots[k]];
    return wall.put(population, decode<Real>(population), wall.back(k) + wall_term[k] * (Real(1) + excess[row[k]]));
  }
};

/// Subtracts the mass created by walls from the rest populations of the wall sites, which does not change momentum. The
/// amount at a site of component c is amount[c].
template <class R, class S>
struct MassCorrection {
  using Real = R;
  S* f;
  const u32* rest;       ///< slot of the rest population
  const double* amount;  ///< per site, in this step
  static constexpr int bytes = 2 * sizeof(S) + 4;
  SEICHE_FN double change(Index k, Index component) const {
    S& population = f[rest[k]];
    const Real outgoing = decode<Real>(population);
    encode(population, static_cast<Real>(static_cast<double>(outgoing) - amount[component]));
    return static_cast<double>(decode<Real>(population)) - static_cast<double>(outgoing);
  }
};

/// Item b: block b of the links or sites of a rule, all of one fluid component. The change of mass is added to the sum
/// of this component.
template <class Rule>
struct SummedChange {
  struct Scratch {
    Index units[wall_lanes];
  };
  Rule rule;
  const Index* first;    ///< first link of each block, and the end of the last
  const u32* component;  ///< of each block
  Index* sums;           ///< [component]
  static constexpr int bytes = wall_block * Rule::bytes;
  SEICHE_FN void operator()(const Team& team, Index b, Scratch& scratch) const {
    const Index begin = first[b], end = first[b + 1], part = component[b];
    team.for_each(wall_lanes, [&](int lane) SEICHE_INLINED { scratch.units[lane] = 0; });
    for (Index from = begin; from < end; from += wall_lanes) {
      const int count = end - from < wall_lanes ? static_cast<int>(end - from) : wall_lanes;
      team.for_each(count,
                    [&](int lane) SEICHE_INLINED { scratch.units[lane] += in_units(rule.change(from + lane, part)); });
    }
    for (int half = wall_lanes / 2; half > 0; half /= 2) {
      team.barrier();
      team.for_each(half, [&](int lane) SEICHE_INLINED { scratch.units[lane] += scratch.units[lane + half]; });
    }
    team.barrier();
    team.for_each(1, [&](int) SEICHE_INLINED { add_atomically(sums + part, scratch.units[0]); });
  }
};

/// Density excess of selected sites from the sum of their outgoing populations, since the last collision conserved it.
template <class Lattice, class R, class S>
struct OutgoingDensity {
  using Real = R;
  const S* f;
  const u32* slots;  ///< [q][item]
  Real* excess;
  Index stride;
  static constexpr int bytes = Lattice::Q * (sizeof(S) + 4) + sizeof(Real);
  SEICHE_FN void operator()(Index k) const {
    Real sum = decode<Real>(f[slots[k]]);
    static_for<1, Lattice::Q>([&]<int q>() SEICHE_INLINED { sum += decode<Real>(f[slots[q * stride + k]]); });
    excess[k] = sum;
  }
};

}  // namespace seiche
