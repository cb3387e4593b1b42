// SPDX-License-Identifier: BSD-3-Clause
/// Short-range forces between vertices of different cells, or of cells and walls (theory/cells, eqs. 13 and 14). Every
/// vertex has a list of points within the reach of the forces plus a skin. Lists remain valid until a vertex has moved
/// by half the skin. Forces are summed as integer multiples of a unit, so the sum is independent of the order of the
/// points.
#pragma once
#include "../atomics.hpp"
#include "../math.hpp"
#include "vector.hpp"

namespace seiche {

/// State words shared by the kernels.
struct ContactState {
  static constexpr int stale = 0;    ///< a vertex has moved too far for its list
  static constexpr int entries = 1;  ///< points in the bins
  static constexpr int pairs = 2;    ///< entries of the lists
};

/// A point in a bin: its index, its position in the bin in units of 1/65535, and the bin, modulo 2^16 along each axis.
struct alignas(16) BinEntry {
  u32 point;
  u16 at[3], bin[3];
};

/// Bins at least as large as the reach of the lists. A periodic axis has a whole number of bins, at least three and
/// less than 2^16.
struct ContactBins {
  u32* first;  ///< [slot]: its first entry
  u32* count;  ///< [slot]
  u32* tally;  ///< [slot]: zero between builds
  BinEntry* entries;
  double per_length[3];
  double lengths[3];          ///< period of periodic axes, else 0
  double inverse_lengths[3];  ///< inverse of the period, or 0
  i32 counts[3];              ///< bins along periodic axes, else 0
  u32 mask;                   ///< number of slots, a power of two, minus one

  SEICHE_FN i32 wrapped(Index bin, int axis) const {
    const Index n = counts[axis];
    const Index remainder = n > 0 ? bin % n : bin;
    return static_cast<i32>(n > 0 && remainder < 0 ? remainder + n : remainder);
  }
  /// The bin of a coordinate, and the position in the bin.
  SEICHE_FN i32 bin(double x, int axis, u16& at) const {
    const double scaled = x > -1e12 && x < 1e12 ? x * per_length[axis] : 0.0;
    const Index integer = static_cast<Index>(scaled);
    const Index floor_index = scaled < static_cast<double>(integer) ? integer - 1 : integer;
    at = static_cast<u16>((scaled - static_cast<double>(floor_index)) * 65535.0);
    return wrapped(floor_index, axis);
  }
  /// Bins along the last axis are consecutive, so three neighbours are contiguous in memory.
  SEICHE_FN u32 slot(i32 i, i32 j, i32 k) const {
    return (static_cast<u32>(i) * 73856093u + static_cast<u32>(j) * 19349663u + static_cast<u32>(k)) & mask;
  }
  /// The bin one step up or down, or the same.
  SEICHE_FN i32 neighbour(i32 bin, int step, int axis) const {
    const i32 n = counts[axis], neighbour_bin = bin + step;
    return n > 0 && neighbour_bin < 0    ? neighbour_bin + n
           : n > 0 && neighbour_bin >= n ? neighbour_bin - n
                                         : neighbour_bin;
  }
  /// Shortest difference of two coordinates.
  SEICHE_FN double shortest_difference(double start, double end, int axis) const {
    const double difference = end - start, periods = difference * inverse_lengths[axis];
    const Index shift = static_cast<Index>(periods < 0 ? periods - 0.5 : periods + 0.5);
    return difference - static_cast<double>(shift) * lengths[axis];
  }
};

/// Item v: a vertex. Tests whether it has moved too far since the lists were built.
struct ContactMoved {
  const double* positions;  ///< [3][stride]
  const double* reference;  ///< [3][stride]: position at that time
  u32* state;
  Index stride;
  double limit;  ///< squared limit of the displacement
  static constexpr int bytes = 48;
  SEICHE_FN void operator()(Index v) const {
    double squares = 0;
    for (int axis = 0; axis < 3; ++axis) {
      const double displacement = positions[v + axis * stride] - reference[v + axis * stride];
      squares += displacement * displacement;
    }
    if (!(squares <= limit)) state[ContactState::stale] = 1;
  }
};

/// Item k: counts point k in its bin.
struct ContactCount {
  const double* positions;  ///< [3][stride]
  const u32* state;
  Index stride;
  ContactBins bins;
  static constexpr int bytes = 4;
  SEICHE_FN bool idle() const { return state[ContactState::stale] == 0; }
  SEICHE_FN void operator()(Index k) const {
    if (idle()) return;
    i32 b[3];
    u16 at;
    for (int axis = 0; axis < 3; ++axis) b[axis] = bins.bin(positions[k + axis * stride], axis, at);
    add_atomically(bins.tally + bins.slot(b[0], b[1], b[2]), 1u);
  }
};

/// Prefix sums of `count` numbers by a team.
template <int count>
struct Offsets {
  static constexpr int groups = 16, group = count / groups;
  u32 value[count];
  u32 group_offset[groups];
  u32 begin;

  /// Allocates space for all numbers from `total`. `at(k)` is then the beginning of number k.
  SEICHE_FN void take(const Team& team, u32* total) {
    team.barrier();
    team.for_each(groups, [&](int g) SEICHE_INLINED {
      u32 sum = 0;
      for (int k = 0; k < group; ++k) sum += value[g * group + k];
      group_offset[g] = sum;
    });
    team.barrier();
    team.for_each(1, [&](int) SEICHE_INLINED {
      u32 sum = 0;
      for (int g = 0; g < groups; ++g) {
        const u32 part = group_offset[g];
        group_offset[g] = sum;
        sum += part;
      }
      begin = sum > 0 ? add_atomically(total, sum) : 0;
    });
    team.barrier();
  }
  SEICHE_FN u32 at(int k) const {
    u32 sum = begin + group_offset[k / group];
    for (int j = k / group * group; j < k; ++j) sum += value[j];
    return sum;
  }
};

/// Item: one. Resets all flags and counts.
struct ContactReset {
  u32* state;
  static constexpr int bytes = 12;
  SEICHE_FN void operator()(Index) const {
    for (int word = 0; word < 3; ++word) state[word] = 0;
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
    scratch.take(team, state + ContactState::entries);
    team.for_each(group, [&](int k) SEICHE_INLINED {
      bins.first[begin + k] = scratch.at(k);
      bins.count[begin + k] = scratch.value[k];
    });
  }
};

/// Item k: adds point k to its bin.
struct ContactFill {
  const double* positions;  ///< [3][stride]
  const u32* state;
  Index stride;
  ContactBins bins;
  static constexpr int bytes = 40;
  SEICHE_FN bool idle() const { return state[ContactState::stale] == 0; }
  SEICHE_FN void operator()(Index k) const {
    if (idle()) return;
    BinEntry entry;
    entry.point = static_cast<u32>(k);
    i32 b[3];
    for (int axis = 0; axis < 3; ++axis) {
      b[axis] = bins.bin(positions[k + axis * stride], axis, entry.at[axis]);
      entry.bin[axis] = static_cast<u16>(b[axis]);
    }
    const u32 slot = bins.slot(b[0], b[1], b[2]);
    bins.entries[bins.first[slot] + add_atomically(bins.tally + slot, ~0u) - 1] = entry;
  }
};

/// Vertices and their possible contacts: the `pair_counts[v]` points from pairs[first[v]]. If they exceeded the
/// capacity, these are all points in the surrounding bins.
struct ContactLists {
  static constexpr u32 over_capacity = ~0u;
  const double* positions;  ///< [3][stride]
  double* reference;        ///< [3][stride]: positions when the lists were built
  const i32* owner;
  u32* first;
  u32* pair_counts;
  u32* pairs;
  const i32* other_owner;
  ContactBins bins;  ///< bins of the other points
  Index stride;
  float bin_unit[3];  ///< size of the bins over 65535
  float reach;        ///< squared reach of the lists
  u32 capacity;       ///< capacity of `pairs`

  /// f(p) for the points p that were near vertex v when the lists were built.
  template <class F>
  SEICHE_FN void for_near(Index v, F&& f) const {
    i32 vertex_bin[3];
    u16 at[3];
    for (int axis = 0; axis < 3; ++axis) vertex_bin[axis] = bins.bin(reference[v + axis * stride], axis, at[axis]);
    const i32 cell = owner[v];
    for (int n = 0; n < 27; ++n) {
      const int step[3] = {n / 9 - 1, n / 3 % 3 - 1, n % 3 - 1};
      i32 b[3];
      for (int axis = 0; axis < 3; ++axis) b[axis] = bins.neighbour(vertex_bin[axis], step[axis], axis);
      const u32 slot = bins.slot(b[0], b[1], b[2]), begin = bins.first[slot], end = begin + bins.count[slot];
      for (u32 e = begin; e < end; ++e) {
        const BinEntry entry = bins.entries[e];
        // Another bin may share the slot. It is visited separately.
        bool same_bin = true;
        float squares = 0;
        for (int axis = 0; axis < 3; ++axis) {
          const int units = entry.at[axis] - at[axis] + 65535 * step[axis];
          const float difference = static_cast<float>(units) * bin_unit[axis];
          squares += difference * difference;
          same_bin = same_bin && entry.bin[axis] == static_cast<u16>(b[axis]);
        }
        if (same_bin && squares < reach && other_owner[entry.point] != cell) f(static_cast<Index>(entry.point));
      }
    }
  }
};

/// Item: a group of vertices. Builds their lists.
struct ContactSearch {
  static constexpr int group = 128;
  using Scratch = Offsets<group>;
  ContactLists lists;
  u32* state;
  Index count;  ///< number of vertices
  static constexpr int bytes = 0;
  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    if (state[ContactState::stale] == 0) return;
    const Index begin = item * group;
    const int number = static_cast<int>(count - begin < group ? count - begin : group);
    team.for_each(group, [&](int k) SEICHE_INLINED {
      const Index v = begin + k;
      u32 pair_count = 0;
      if (k < number) {
        for (int axis = 0; axis < 3; ++axis) {
          lists.reference[v + axis * lists.stride] = lists.positions[v + axis * lists.stride];
        }
        lists.for_near(v, [&](Index) SEICHE_INLINED { ++pair_count; });
      }
      scratch.value[k] = pair_count;
    });
    scratch.take(team, state + ContactState::pairs);
    team.for_each(number, [&](int k) SEICHE_INLINED {
      const Index v = begin + k;
      const u32 pair_count = scratch.value[k];
      u32 to = pair_count > 0 ? scratch.at(k) : 0;
      const bool fits = pair_count == 0 || (to < lists.capacity && pair_count <= lists.capacity - to);
      lists.first[v] = to;
      lists.pair_counts[v] = fits ? pair_count : ContactLists::over_capacity;
      if (fits && pair_count > 0)
        lists.for_near(v, [&](Index p) SEICHE_INLINED { lists.pairs[to++] = static_cast<u32>(p); });
    });
  }
};

/// Repulsion strength ((reach/d)^exponent - 1) for d < reach, and Morse's force with `depth`, `steepness` and
/// `remainder` up to its own reach. `units` is the number of integer units in a force of one.
struct ContactLaw {
  double strength, reach, exponent;
  double depth, steepness, remainder, morse_reach;
  double units;

  /// Force over distance, positive if repulsive (d2 is the squared distance).
  SEICHE_FN double over_distance(double d2) const {
    const double nearest = 1e-2 * (reach > morse_reach ? reach : morse_reach);
    const double d = d2 < nearest * nearest ? nearest : square_root(d2);
    double force = 0;
    if (d < reach) {
      const double excess = pow_positive(reach / d, exponent) - 1.0;
      force = strength * (excess < 65536.0 ? excess : 65536.0);  // bounded, to avoid integer overflow of sums
    }
    if (d < morse_reach) {
      const double power = 1.4426950408889634 * (steepness * (remainder - d));
      const double e = exp2_clamped(power < 8.0 ? power : 8.0);
      force += 2.0 * (depth * steepness) * (e * e - e);
    }
    return force / d;
  }
};

/// Item v: a vertex. Sums the forces exerted by points of other owners.
template <class Real>
struct ContactForce {
  Real* force;          ///< [3][stride]; added to
  const double* other;  ///< [3][other_stride]
  Index other_stride;
  ContactLists lists;
  ContactLaw law;
  u32* state;
  static constexpr int bytes = 4;

  SEICHE_FN void operator()(Index v) const {
    if (v == 0) ContactReset{state}(0);
    const u32 number = lists.pair_counts[v];
    if (number == 0) return;
    const Index stride = lists.stride;
    const double x[3] = {lists.positions[v], lists.positions[v + stride], lists.positions[v + 2 * stride]};
    Index sums[3] = {0, 0, 0};
    if (number == ContactLists::over_capacity) {
      lists.for_near(v, [&](Index p) SEICHE_INLINED { add(x, p, sums); });
    } else {
      const u32* pairs = lists.pairs + lists.first[v];
      for (u32 k = 0; k < number; ++k) add(x, pairs[k], sums);
    }
    for (int axis = 0; axis < 3; ++axis) {
      force[v + axis * stride] += static_cast<Real>(static_cast<double>(sums[axis]) / law.units);
    }
  }
  /// Adds the force of point p on a vertex at x.
  SEICHE_FN void add(const double (&x)[3], Index p, Index (&sums)[3]) const {
    const double y[3] = {other[p], other[p + other_stride], other[p + 2 * other_stride]};
    const ContactBins& bins = lists.bins;
    const Vector<double> separation{bins.shortest_difference(y[0], x[0], 0), bins.shortest_difference(y[1], x[1], 1),
                                    bins.shortest_difference(y[2], x[2], 2)};
    const double d2 = dot(separation, separation), cutoff = law.reach > law.morse_reach ? law.reach : law.morse_reach;
    if (d2 >= cutoff * cutoff) return;
    const double scaled = law.units * law.over_distance(d2);
    sums[0] += rounded(scaled * separation.x);
    sums[1] += rounded(scaled * separation.y);
    sums[2] += rounded(scaled * separation.z);
  }
  SEICHE_FN static Index rounded(double x) { return static_cast<Index>(x + (x < 0 ? -0.5 : 0.5)); }
};

}  // namespace seiche
