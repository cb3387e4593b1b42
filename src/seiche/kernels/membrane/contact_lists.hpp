// SPDX-License-Identifier: BSD-3-Clause
/// Lists of the points near each vertex, for short-range forces (theory/cells, section 7). Every vertex has a list of
/// points within the reach of the forces plus a skin. Lists remain valid until a vertex has moved by half the skin. If
/// the lists do not fit into their memory, the next ones have a shorter skin.
#pragma once
#include "../atomics.hpp"
#include "../batches.hpp"

namespace seiche {

/// State words shared by the kernels.
struct ContactState {
  static constexpr int stale = 0;    ///< a vertex has moved too far for its list
  static constexpr int entries = 1;  ///< points in the bins
  static constexpr int pairs = 2;    ///< blocks of entries of the lists
  static constexpr int skin = 3;     ///< the skin of the next lists, ContactSkins
  static constexpr int built = 4;    ///< the skin of the lists
};

/// The skins from which a device chooses, from the longest to the shortest.
struct ContactSkins {
  static constexpr int number = 5;
  float moved[number];  ///< squared displacement after which the lists are invalid
  float reach[number];  ///< squared reach of the lists
};

/// A point: its coordinates in units of ContactUnits, and its cell.
struct alignas(16) ContactPoint {
  u32 at[3];
  i32 owner;
};

/// Number of bins along the axes, in 2^32 units each.
struct ContactGrid {
  u32 bins[3];

  SEICHE_FN u32 bin(const ContactPoint& point, int axis) const {
    return static_cast<u32>(static_cast<u64>(point.at[axis]) * bins[axis] >> 32);
  }
  /// The bin one step up or down, or the same.
  SEICHE_FN u32 neighbour(u32 bin, int step, int axis) const {
    const u32 last = bins[axis] - 1;
    return step < 0 ? (bin == 0 ? last : bin - 1) : step > 0 ? (bin == last ? 0 : bin + 1) : bin;
  }
};

/// Coordinates as 32-bit integers. A periodic axis has 2^32 units per period, any other at least 2^16 units per bin, so
/// differences modulo 2^32 are shortest distances.
struct ContactUnits {
  double per_length[3];  ///< units per length
  float length[3];       ///< of a unit
  ContactGrid grids[ContactSkins::number];

  SEICHE_FN u32 integer(double x, int axis) const {
    const double scaled = x * per_length[axis];
    return static_cast<u32>(static_cast<Index>(scaled > -9e18 && scaled < 9e18 ? scaled : 0.0));
  }
  SEICHE_FN float squared_distance(const ContactPoint& from, const ContactPoint& to) const {
    float squares = 0;
    for (int axis = 0; axis < 3; ++axis) {
      const float difference = static_cast<float>(static_cast<i32>(to.at[axis] - from.at[axis])) * length[axis];
      squares += difference * difference;
    }
    return squares;
  }
};

/// Bins at least as large as the reach of the lists, which contain points by their index.
struct ContactBins {
  u32* first;  ///< [slot]: its first entry
  u32* count;  ///< [slot]
  u32* tally;  ///< [slot]: zero between builds
  u32* entries;
  u32 mask;  ///< number of slots, a power of two, minus one

  /// Bins along the last axis are consecutive, so three neighbours are contiguous in memory.
  SEICHE_FN u32 slot(u32 i, u32 j, u32 k) const { return (i * 73856093u + j * 19349663u + k) & mask; }
  SEICHE_FN u32 slot(const ContactPoint& point, const ContactGrid& grid) const {
    return slot(grid.bin(point, 0), grid.bin(point, 1), grid.bin(point, 2));
  }
};

/// Item v: a vertex. Stores its place, and tests whether it has moved too far since the lists were built.
struct ContactMoved {
  const double* positions;        ///< [3][stride]
  const ContactPoint* reference;  ///< the places when the lists were built
  ContactPoint* places;
  u32* state;
  Index stride;
  ContactUnits units;
  ContactSkins skins;
  static constexpr int bytes = 56;
  SEICHE_FN void operator()(Index v) const {
    const ContactPoint before = reference[v];
    ContactPoint now;
    now.owner = before.owner;
    bool finite = true;
    for (int axis = 0; axis < 3; ++axis) {
      const double x = positions[v + axis * stride];
      now.at[axis] = units.integer(x, axis);
      finite = finite && x - x == 0.0;
    }
    const float limit = skins.moved[state[ContactState::skin]];
    if (!finite || units.squared_distance(before, now) > limit) state[ContactState::stale] = 1;
    places[v] = now;
  }
};

/// Item k: stores the coordinates of point k, and counts it in its bin.
struct ContactCount {
  const double* positions;  ///< [3][stride]
  ContactPoint* points;
  const u32* state;
  Index stride;
  ContactUnits units;
  ContactBins bins;
  static constexpr int bytes = 40;
  SEICHE_FN bool idle() const { return state[ContactState::stale] == 0; }
  SEICHE_FN void operator()(Index k) const {
    if (idle()) return;
    for (int axis = 0; axis < 3; ++axis) points[k].at[axis] = units.integer(positions[k + axis * stride], axis);
    add_atomically(bins.tally + bins.slot(points[k], units.grids[state[ContactState::skin]]), 1u);
  }
};

/// Prefix sums of `count` numbers by a team.
template <int count>
struct Offsets {
  static constexpr int groups = 16, group = count / groups;
  u32 value[count];
  u32 before[groups];
  u32 begin, sum;

  /// Computes the sum of all numbers and allocates space for it in blocks of `block`. `at(k)` is then the sum of the
  /// numbers before k, and `begin` the first block.
  SEICHE_FN void take(const Team& team, u32* total, u32 block) {
    team.barrier();
    team.for_each(groups, [&](int g) SEICHE_INLINED {
      u32 part = 0;
      for (int k = 0; k < group; ++k) part += value[g * group + k];
      before[g] = part;
    });
    team.barrier();
    team.for_each(1, [&](int) SEICHE_INLINED {
      u32 all = 0;
      for (int g = 0; g < groups; ++g) {
        const u32 part = before[g];
        before[g] = all;
        all += part;
      }
      sum = all;
      begin = all > 0 ? add_atomically(total, (all + block - 1) / block) : 0;
    });
    team.barrier();
  }
  SEICHE_FN u32 at(int k) const {
    u32 part = before[k / group];
    for (int j = k / group * group; j < k; ++j) part += value[j];
    return part;
  }
};

/// Item: one. Resets the flag and the counts. If the lists have taken more than `blocks`, they are built again in the
/// next step, with a shorter skin unless theirs was the shortest.
struct ContactReset {
  u32* state;
  u32 blocks;
  static constexpr int bytes = 16;
  SEICHE_FN void operator()(Index) const {
    const u32 skin = state[ContactState::skin];
    const bool exceeded = state[ContactState::pairs] > blocks;
    state[ContactState::skin] = exceeded && skin + 1 < ContactSkins::number ? skin + 1 : skin;
    state[ContactState::stale] = exceeded ? 1 : 0;
    state[ContactState::entries] = 0;
    state[ContactState::pairs] = 0;
  }
};

/// Item: a group of slots. Allocates space for their entries.
struct ContactPlace {
  static constexpr int group = 256;
  using Scratch = Offsets<group>;
  ContactBins bins;
  u32* state;
  static constexpr int bytes = 0;
  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    if (state[ContactState::stale] == 0) return;
    const Index begin = item * group;
    team.for_each(group, [&](int k) SEICHE_INLINED { scratch.value[k] = bins.tally[begin + k]; });
    scratch.take(team, state + ContactState::entries, 1);
    team.for_each(group, [&](int k) SEICHE_INLINED {
      bins.first[begin + k] = scratch.begin + scratch.at(k);
      bins.count[begin + k] = scratch.value[k];
    });
  }
};

/// Item k: adds point k to its bin.
struct ContactFill {
  const ContactPoint* points;
  const u32* state;
  ContactUnits units;
  ContactBins bins;
  static constexpr int bytes = 16;
  SEICHE_FN bool idle() const { return state[ContactState::stale] == 0; }
  SEICHE_FN void operator()(Index k) const {
    if (idle()) return;
    const u32 slot = bins.slot(points[k], units.grids[state[ContactState::skin]]);
    bins.entries[bins.first[slot] + add_atomically(bins.tally + slot, ~0u) - 1] = static_cast<u32>(k);
  }
};

/// Vertices and their possible contacts. The lists of a group of vertices are contiguous, from entry `block` *
/// groups[group]. If they exceeded the capacity, the bins, which are then built in every step, are searched.
struct ContactLists {
  static constexpr int group = 128;
  static constexpr u32 block = 4, over_capacity = ~0u, longest = 65535;
  const ContactPoint* places;  ///< of the vertices
  const ContactPoint* other;   ///< places of the points
  u32* groups;
  u16* ends;  ///< [vertex]: end of its list, counted from the first entry of the group
  u32* pairs;
  ContactUnits units;
  ContactBins bins;
  float touching;  ///< squared reach of the forces, and more than the rounding of coordinates
  u32 blocks;      ///< capacity of `pairs` in blocks

  /// f(p) for the points p of other owners within the squared distance `within` of vertex v, from the bins.
  template <class F>
  SEICHE_FN void for_near(Index v, const ContactGrid& grid, float within, F&& f) const {
    const ContactPoint vertex = places[v];
    u32 vertex_bin[3];
    for (int axis = 0; axis < 3; ++axis) vertex_bin[axis] = grid.bin(vertex, axis);
    SEICHE_ONE_BY_ONE
    for (int n = 0; n < 27; ++n) {
      const int step[3] = {n / 9 - 1, n / 3 % 3 - 1, n % 3 - 1};
      u32 b[3];
      for (int axis = 0; axis < 3; ++axis) b[axis] = grid.neighbour(vertex_bin[axis], step[axis], axis);
      const u32 slot = bins.slot(b[0], b[1], b[2]), begin = bins.first[slot], end = begin + bins.count[slot];
      for (u32 e = begin; e < end; ++e) {
        const u32 p = bins.entries[e];
        const ContactPoint point = other[p];
        if (units.squared_distance(vertex, point) >= within || point.owner == vertex.owner) continue;
        // Another bin may share the slot. It is visited separately.
        bool same_bin = true;
        for (int axis = 0; axis < 3; ++axis) same_bin = same_bin && grid.bin(point, axis) == b[axis];
        if (same_bin) f(p);
      }
    }
  }
  /// True if a vertex at `place` may be in contact with `point`.
  SEICHE_FN bool touches(const ContactPoint& place, const ContactPoint& point) const {
    return units.squared_distance(place, point) < touching;
  }
  /// Entries of the list of vertex v in `pairs`: the first one in the result, their number in `number`.
  SEICHE_FN Index list(Index v, u32 first_block, u32& number) const {
    const u32 from = v % group > 0 ? ends[v - 1] : 0;
    number = ends[v] - from;
    return static_cast<Index>(first_block) * block + from;
  }
};

/// Item: a group of vertices. Builds their lists.
struct ContactSearch {
  static constexpr int group = ContactLists::group, kept = 16;
  struct Scratch {
    Offsets<group> counts;
    u32 found[kept][group];  ///< first points of each list
  };
  ContactLists lists;
  ContactSkins skins;
  ContactPoint* reference;  ///< receives the places of the vertices
  u32* state;
  Index count;  ///< number of vertices
  static constexpr int bytes = 0;
  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    if (state[ContactState::stale] == 0) return;
    const u32 skin = state[ContactState::skin];
    const float reach = skins.reach[skin];
    const ContactGrid grid = lists.units.grids[skin];
    if (team.thread == 0 && item == 0) state[ContactState::built] = skin;
    const Index begin = item * group;
    const int number = static_cast<int>(count - begin < group ? count - begin : group);
    team.for_each(group, [&](int k) SEICHE_INLINED {
      u32 pair_count = 0;
      if (k < number) {
        const Index v = begin + k;
        reference[v] = lists.places[v];
        lists.for_near(v, grid, reach, [&](u32 p) SEICHE_INLINED {
          if (pair_count < kept) scratch.found[pair_count][k] = p;
          ++pair_count;
        });
      }
      scratch.counts.value[k] = pair_count;
    });
    scratch.counts.take(team, state + ContactState::pairs, ContactLists::block);
    const u32 sum = scratch.counts.sum, first = scratch.counts.begin;
    const u32 blocks = (sum + ContactLists::block - 1) / ContactLists::block;
    const bool fits = sum <= ContactLists::longest && blocks <= lists.blocks && first <= lists.blocks - blocks;
    team.for_each(1, [&](int) SEICHE_INLINED { lists.groups[item] = fits ? first : ContactLists::over_capacity; });
    team.for_each(number, [&](int k) SEICHE_INLINED {
      const u32 from = scratch.counts.at(k), pair_count = fits ? scratch.counts.value[k] : 0;
      lists.ends[begin + k] = static_cast<u16>(fits ? from + pair_count : 0);
      u32* to = lists.pairs + static_cast<Index>(first) * ContactLists::block + from;
      if (pair_count > kept) {
        lists.for_near(begin + k, grid, reach, [&](u32 p) SEICHE_INLINED { *to++ = p; });
      } else {
        for (u32 e = 0; e < pair_count; ++e) to[e] = scratch.found[e][k];
      }
    });
  }
};

}  // namespace seiche
