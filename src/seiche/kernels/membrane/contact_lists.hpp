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
  static constexpr int stale = 0;    ///< 1 a vertex has moved too far for its list; 2 the lists of a group are too long
  static constexpr int entries = 1;  ///< points in the bins
  static constexpr int pairs = 2;    ///< blocks of entries of the lists
  static constexpr int rebuilt = 3;  ///< the lists were built in the previous step
  static constexpr int kept = 4;     ///< blocks of the present lists
  static constexpr int taken = 5;    ///< entries of the lists of bricks
  static constexpr int skin = 6;     ///< the skin of the next lists, ContactSkins
  static constexpr int built = 7;    ///< the skin of the lists
};

/// The skins from which a device chooses, from the longest to the shortest.
struct ContactSkins {
  static constexpr int number = 5;
  float moved[number];  ///< squared displacement after which the lists are invalid
  float reach[number];  ///< squared reach of the lists
};

/// A point: the upper 21 bits of its coordinates in units of ContactUnits. The lower bits of x and y are not zero,
/// which changes a coordinate by less than one in the last stored bit.
struct ContactPoint {
  static constexpr u32 stored = ~0u << 11;
  u64 bits;  ///< x from bit 43, y from bit 22, z from bit 1

  SEICHE_FN u32 at(int axis) const {
    return axis == 2 ? static_cast<u32>(bits) << 10 : static_cast<u32>(bits >> (axis == 0 ? 32 : 11));
  }
};

/// Number of bins along the axes, in 2^32 units each.
struct ContactGrid {
  u32 bins[3];

  SEICHE_FN u32 bin(const ContactPoint& point, int axis) const {
    return static_cast<u32>(static_cast<u64>(point.at(axis)) * bins[axis] >> 32);
  }
  /// The bin one step up or down, or the same.
  SEICHE_FN u32 neighbour(u32 bin, int step, int axis) const {
    const u32 last = bins[axis] - 1;
    return step < 0 ? (bin == 0 ? last : bin - 1) : step > 0 ? (bin == last ? 0 : bin + 1) : bin;
  }
};

/// Coordinates as 32-bit integers, of which points store 21 bits. A periodic axis has 2^32 units per period, any other
/// at least 2^19 units per bin, so differences modulo 2^32 are shortest distances.
struct ContactUnits {
  double per_length[3];  ///< units per length
  float length[3];       ///< of a unit
  ContactGrid grids[ContactSkins::number];

  SEICHE_FN u32 integer(double x, int axis) const {
    const double scaled = x * per_length[axis];
    return static_cast<u32>(static_cast<Index>(scaled > -9e18 && scaled < 9e18 ? scaled : 0.0));
  }
  SEICHE_FN ContactPoint point(double x, double y, double z) const {
    const u64 high = integer(x, 0) & ContactPoint::stored, middle = integer(y, 1) & ContactPoint::stored;
    return {high << 32 | middle << 11 | (integer(z, 2) & ContactPoint::stored) >> 10};
  }
  SEICHE_FN float squared_distance(const ContactPoint& from, const ContactPoint& to) const {
    float squares = 0;
    for (int axis = 0; axis < 3; ++axis) {
      const float difference = static_cast<float>(static_cast<i32>(to.at(axis) - from.at(axis))) * length[axis];
      squares += difference * difference;
    }
    return squares;
  }
};

/// Bins at least as large as the reach of the lists, which contain points by their index.
struct ContactBins {
  static constexpr int group = 256;
  u32* first;  ///< [bound(slot)]: first entry of a slot; the next number is the end of its entries
  u32* tally;  ///< [slot]: zero between builds
  u32* entries;
  u32 mask;  ///< number of slots, a power of two, minus one

  /// Each group of slots has one number more, the end of its entries.
  SEICHE_FN static Index bound(Index slot) { return slot + slot / group; }

  /// Bins along the last axis are consecutive, so three neighbours are contiguous in memory.
  SEICHE_FN u32 slot(u32 i, u32 j, u32 k) const { return (i * 73856093u + j * 19349663u + k) & mask; }
  SEICHE_FN u32 slot(const ContactPoint& point, const ContactGrid& grid) const {
    return slot(grid.bin(point, 0), grid.bin(point, 1), grid.bin(point, 2));
  }
};

/// Item v: a vertex. Stores its place, and tests whether it has moved too far since the lists were built. If that was
/// in the previous step, its place in that step is the reference. The lists of moving points have their bins in the
/// memory of the reference, which is not needed while they are built.
struct ContactMoved {
  const double* positions;  ///< [3][stride]
  ContactPoint* reference;  ///< the places when the lists were built
  ContactPoint* places;
  u32* state;
  Index stride;
  ContactUnits units;
  ContactSkins skins;
  static constexpr int bytes = 40;
  SEICHE_FN void operator()(Index v) const {
    const bool rebuilt = state[ContactState::rebuilt] != 0;
    const ContactPoint before = rebuilt ? places[v] : reference[v];
    if (rebuilt) reference[v] = before;
    const double x = positions[v], y = positions[v + stride], z = positions[v + 2 * stride];
    const ContactPoint now = units.point(x, y, z);
    const bool finite = x - x == 0.0 && y - y == 0.0 && z - z == 0.0;
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
    const ContactPoint point = units.point(positions[k], positions[k + stride], positions[k + 2 * stride]);
    points[k] = point;
    add_atomically(bins.tally + bins.slot(point, units.grids[state[ContactState::skin]]), 1u);
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

/// Memory of contact lists, in blocks from the end. The lists of bricks (ibm/lists.hpp) take its first entries.
struct ContactMemory {
  static constexpr u32 block = 4;
  u32* state;  ///< ContactState; null: the lists of bricks have their own memory
  u32 blocks;

  /// Blocks that contact lists may use: not those of the lists of bricks, nor those for which these may grow.
  SEICHE_FN u32 available() const {
    const u32 taken = state[ContactState::taken], reserved = (taken + taken / 32 + block - 1) / block;
    return reserved < blocks ? blocks - reserved : 0;
  }
  /// Notes that the lists of bricks have overwritten the first entries. The contact lists are built again if theirs are
  /// among them.
  SEICHE_FN void take(u32 entries) const {
    if (state == nullptr) return;
    state[ContactState::taken] = entries;
    if (entries > (blocks - state[ContactState::kept]) * block) state[ContactState::stale] = 1;
  }
};

/// Item: one. Resets the flag and the counts. If the lists have not found space, they are built again in the next step,
/// with a shorter skin unless theirs was the shortest.
struct ContactReset {
  ContactMemory memory;
  static constexpr int bytes = 16;
  SEICHE_FN void operator()(Index) const {
    u32* state = memory.state;
    const u32 skin = state[ContactState::skin], stale = state[ContactState::stale];
    const bool exceeded = stale > 1 || state[ContactState::pairs] > memory.available();
    state[ContactState::rebuilt] = stale;
    if (stale != 0) state[ContactState::kept] = exceeded ? 0 : state[ContactState::pairs];
    state[ContactState::skin] = exceeded && skin + 1 < ContactSkins::number ? skin + 1 : skin;
    state[ContactState::stale] = exceeded ? 1 : 0;
    state[ContactState::entries] = 0;
    state[ContactState::pairs] = 0;
  }
};

/// Item: a group of slots. Allocates space for their entries.
struct ContactPlace {
  static constexpr int group = ContactBins::group;
  using Scratch = Offsets<group>;
  ContactBins bins;
  u32* state;
  static constexpr int bytes = 0;
  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    if (state[ContactState::stale] == 0) return;
    const Index begin = item * group;
    team.for_each(group, [&](int k) SEICHE_INLINED { scratch.value[k] = bins.tally[begin + k]; });
    scratch.take(team, state + ContactState::entries, 1);
    u32* first = bins.first + ContactBins::bound(begin);
    team.for_each(group, [&](int k) SEICHE_INLINED { first[k] = scratch.begin + scratch.at(k); });
    team.for_each(1, [&](int) SEICHE_INLINED { first[group] = scratch.begin + scratch.sum; });
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
    bins.entries[bins.first[ContactBins::bound(slot)] + add_atomically(bins.tally + slot, ~0u) - 1] =
        static_cast<u32>(k);
  }
};

/// The vertices of a cell.
struct ContactCell {
  u32 first, vertices;
  SEICHE_FN bool contains(u32 point) const { return point - first < vertices; }
};

/// Cells of all types: the points that are vertices of the same cell exert no forces on each other.
struct ContactCells {
  const u32* blocks;  ///< [type][3]: first vertex of the type, its end, vertices of a cell
  i32 types;          ///< 0 if the points are not vertices

  SEICHE_FN ContactCell of(u32 v) const {
    for (i32 type = 0; type < types; ++type) {
      const u32* block = blocks + 3 * type;
      if (v < block[1]) return {v - (v - block[0]) % block[2], block[2]};
    }
    return {0, 0};
  }
};

/// Vertices and their possible contacts. The lists of a group of vertices are contiguous, from entry `block` *
/// groups[group]. If they exceeded the capacity, the bins, which are then built in every step, are searched.
struct ContactLists {
  static constexpr int group = 128;
  static constexpr u32 block = ContactMemory::block, over_capacity = ~0u, longest = 65535;
  const ContactPoint* places;  ///< of the vertices
  const ContactPoint* other;   ///< places of the points
  u32* groups;
  u16* ends;  ///< [vertex]: end of its list, counted from the first entry of the group
  u32* pairs;
  ContactUnits units;
  ContactBins bins;
  ContactCells cells;
  ContactMemory memory;  ///< that of `pairs`
  float touching;        ///< squared reach of the forces, and more than the rounding of coordinates

  /// f(p) for the points p of other cells within the squared distance `within` of vertex v, from the bins.
  template <class F>
  SEICHE_FN void for_near(Index v, const ContactGrid& grid, float within, F&& f) const {
    const ContactPoint vertex = places[v];
    const ContactCell own = cells.of(static_cast<u32>(v));
    u32 vertex_bin[3];
    for (int axis = 0; axis < 3; ++axis) vertex_bin[axis] = grid.bin(vertex, axis);
    SEICHE_ONE_BY_ONE
    for (int n = 0; n < 27; ++n) {
      const int step[3] = {n / 9 - 1, n / 3 % 3 - 1, n % 3 - 1};
      u32 b[3];
      for (int axis = 0; axis < 3; ++axis) b[axis] = grid.neighbour(vertex_bin[axis], step[axis], axis);
      const u32* bounds = bins.first + ContactBins::bound(bins.slot(b[0], b[1], b[2]));
      const u32 begin = bounds[0], end = bounds[1];
      for (u32 e = begin; e < end; ++e) {
        const u32 p = bins.entries[e];
        if (own.contains(p)) continue;
        const ContactPoint point = other[p];
        if (units.squared_distance(vertex, point) >= within) continue;
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
  Index count;  ///< number of vertices
  static constexpr int bytes = 0;
  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    u32* state = lists.memory.state;
    if (state[ContactState::stale] == 0) return;
    const u32 skin = state[ContactState::skin], available = lists.memory.available();
    const float reach = skins.reach[skin];
    const ContactGrid grid = lists.units.grids[skin];
    if (team.thread == 0 && item == 0) state[ContactState::built] = skin;
    const Index begin = item * group;
    const int number = static_cast<int>(count - begin < group ? count - begin : group);
    team.for_each(group, [&](int k) SEICHE_INLINED {
      u32 pair_count = 0;
      if (k < number) {
        lists.for_near(begin + k, grid, reach, [&](u32 p) SEICHE_INLINED {
          if (pair_count < kept) scratch.found[pair_count][k] = p;
          ++pair_count;
        });
      }
      scratch.counts.value[k] = pair_count;
    });
    scratch.counts.take(team, state + ContactState::pairs, ContactLists::block);
    const u32 sum = scratch.counts.sum, before = scratch.counts.begin;
    const u32 blocks = (sum + ContactLists::block - 1) / ContactLists::block;
    const bool fits = sum <= ContactLists::longest && blocks <= available && before <= available - blocks;
    const u32 first = fits ? lists.memory.blocks - before - blocks : ContactLists::over_capacity;
    team.for_each(1, [&](int) SEICHE_INLINED {
      lists.groups[item] = first;
      if (sum > ContactLists::longest) state[ContactState::stale] = 2;
    });
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
