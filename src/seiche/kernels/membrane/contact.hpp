// SPDX-License-Identifier: BSD-3-Clause
/// Short-range forces between vertices of different cells, or of cells and walls (theory/cells, eqs. 13 and 14). Forces
/// are summed as integer multiples of a unit, so the sum is independent of the order of the points.
#pragma once
#include "../math.hpp"
#include "../resident.hpp"
#include "../warps.hpp"
#include "contact_lists.hpp"
#include "vector.hpp"

namespace seiche {

/// Repulsion strength ((reach/d)^exponent - 1) for d < reach, and Morse's force with `depth`, `steepness` and `rest` up
/// to its own reach. `units` is the number of integer units in a force of one.
struct ContactLaw {
  double strength, reach, exponent;
  double depth, steepness, rest, morse_reach;
  double units;

  SEICHE_FN double cutoff() const { return reach > morse_reach ? reach : morse_reach; }
  /// Force over distance, positive if repulsive (d2 is the squared distance).
  SEICHE_FN double over_distance(double d2) const {
    const double nearest = 1e-2 * cutoff();
    const double d = d2 < nearest * nearest ? nearest : square_root(d2);
    double force = 0;
    if (d < reach) {
      const double excess = pow_positive(reach / d, exponent) - 1.0;
      force = strength * (excess < 65536.0 ? excess : 65536.0);  // bounded, to avoid integer overflow of sums
    }
    if (d < morse_reach) {
      const double power = 1.4426950408889634 * (steepness * (rest - d));
      const double e = exp2_clamped(power < 8.0 ? power : 8.0);
      force += 2.0 * (depth * steepness) * (e * e - e);
    }
    return force / d;
  }
};

/// Periods of the space, by which differences of coordinates are shortened.
struct ContactPeriods {
  double lengths[3];   ///< period of periodic axes, else 0
  double inverses[3];  ///< inverse of the period, or 0
  double within[3];    ///< differences below this length, almost half a period, are the shortest ones

  SEICHE_FN double between(double from, double to, int axis) const {
    const double difference = to - from;
    if (difference > -within[axis] && difference < within[axis]) return difference;
    const double periods = difference * inverses[axis];
    const Index shift = static_cast<Index>(periods < 0 ? periods - 0.5 : periods + 0.5);
    return difference - static_cast<double>(shift) * lengths[axis];
  }
};

/// Item: a group of vertices. Sums the forces exerted by points that are not of the same cell.
template <class Real>
struct ContactForce {
  static constexpr int group = ContactLists::group, chunk = 256, rounds = 4;
  /// Memory of a warp for the lists of its vertices, a chunk of entries at a time.
  struct Warp {
    ContactPoint places[warp_threads];
    Index list[warp_threads];  ///< first entry of a vertex in `pairs`, minus the entries of the vertices before it
    u32 low[3][warp_threads], high[3][warp_threads];  ///< sums
    u32 queue[chunk];                                 ///< points that may be in contact
    u8 queue_vertex[chunk];                           ///< and the vertices with which they may be
    u8 vertex[chunk];                                 ///< vertices of the entries
  };
  struct Warps {
    Warp of[group / warp_threads];
  };
  using Scratch = typename Either<Team::single_thread, NoScratch, Warps>::Type;

  Real* force;              ///< [3][stride]; added to
  const double* positions;  ///< [3][stride] of the vertices
  const double* other;      ///< [3][other_stride]
  Index stride, other_stride;
  ContactLists lists;
  ContactPeriods periods;
  ContactLaw law;
  Index count;  ///< number of vertices
  static constexpr int bytes = 0;

  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    const Index begin = item * group;
    add_forces(team, begin, static_cast<int>(count - begin < group ? count - begin : group), scratch,
               [](Index) SEICHE_INLINED { return true; });
    if (item == 0 && team.thread == 0) ContactReset{lists.memory}(0);
  }
  /// Adds the forces on those of the `number` vertices from `begin` for which chosen(v).
  template <class Selection>
  SEICHE_FN void add_forces(const Team& team, Index begin, int number, Scratch& scratch,
                            const Selection& chosen) const {
    if constexpr (Team::single_thread) {
      for (int k = 0; k < number; ++k) {
        if (chosen(begin + k)) by_vertex(begin + k);
      }
    } else {
      const int warp = team.thread / warp_threads;
      by_warp(team.thread % warp_threads, begin + warp * warp_threads,
              team.thread < number && chosen(begin + team.thread), scratch.of[warp]);
    }
  }

  SEICHE_FN void by_vertex(Index v) const {
    const u32 first_block = lists.groups[v / group];
    const ContactPoint place = lists.places[v];
    Index sums[3] = {0, 0, 0};
    const auto add = [&](u32 p) SEICHE_INLINED {
      if (!lists.touches(place, lists.other[p])) return;
      Index parts[3];
      if (!contact(v, p, parts)) return;
      for (int axis = 0; axis < 3; ++axis) sums[axis] += parts[axis];
    };
    if (first_block == ContactLists::over_capacity) {
      search(v, add);
    } else {
      u32 entries;
      const u32* pairs = lists.pairs + lists.list(v, first_block, entries);
      for (u32 k = 0; k < entries; ++k) add(pairs[k]);
    }
    store(v, sums);
  }

  /// The threads of a warp test the entries of all their lists, one after another, so that all have equal work. Then
  /// they compute the contacts among them. In a loop over the list of its vertex, a thread would have a contact in few
  /// rounds.
  SEICHE_FN void by_warp(int lane, Index begin, bool active, Warp& s) const {
    const Index v = begin + lane;
    u32 first_block = 0, entries = 0;
    Index list = 0;
    if (active) {
      first_block = lists.groups[v / group];
      list = lists.list(v, first_block, entries);
      s.places[lane] = lists.places[v];
      if (first_block == ContactLists::over_capacity) entries = 0;
    }
    for (int axis = 0; axis < 3; ++axis) s.low[axis][lane] = s.high[axis][lane] = 0;
    const u32 end = sum_up_to(entries, lane), total = of_lane(end, warp_threads - 1);
    s.list[lane] = list - (end - entries);
    warp_barrier();
    if (first_block == ContactLists::over_capacity) {
      search(v, [&](u32 p) { add(v, p, lane, s); });
    }
    for (u32 from = 0; from < total; from += chunk) {
      const u32 number = total - from < chunk ? total - from : chunk;
      const u32 queued = test(lane, from, number, end - entries, end, s);
      for (u32 q = lane; q < queued; q += warp_threads) {
        const int k = s.queue_vertex[q];
        add(begin + k, s.queue[q], k, s);
      }
      warp_barrier();
    }
    warp_barrier();
    Index sums[3];
    for (int axis = 0; axis < 3; ++axis) {
      sums[axis] = static_cast<Index>(static_cast<u64>(s.high[axis][lane]) << 32 | s.low[axis][lane]);
    }
    if (active) store(v, sums);
  }
  /// Queues those of the `number` entries from `from` that may be in contact, and returns how many. The entries of the
  /// vertex of this thread are those from `first` to `end`.
  SEICHE_FN u32 test(int lane, u32 from, u32 number, u32 first, u32 end, Warp& s) const {
    const u32 low = first > from ? first - from : 0, high = end < from ? 0 : end - from < number ? end - from : number;
    for (u32 e = low; e < high; ++e) s.vertex[e] = static_cast<u8>(lane);
    warp_barrier();
    u32 queued = 0;
    for (u32 base = 0; base < number; base += rounds * warp_threads) {
      u32 points[rounds];  // all are loaded before the first is used
      int vertices[rounds];
      ContactPoint places[rounds];
      static_for<0, rounds>([&]<int r>() {
        const u32 e = base + r * warp_threads + lane;
        vertices[r] = e < number ? s.vertex[e] : -1;
        points[r] = e < number ? lists.pairs[s.list[vertices[r]] + from + e] : 0;
      });
      static_for<0, rounds>([&]<int r>() {
        if (vertices[r] >= 0) places[r] = lists.other[points[r]];
      });
      static_for<0, rounds>([&]<int r>() {
        const bool near = vertices[r] >= 0 && lists.touches(s.places[vertices[r]], places[r]);
        const u32 all = votes(near), at = queued + bit_count(all & ((1u << lane) - 1));
        if (near) {
          s.queue[at] = points[r];
          s.queue_vertex[at] = static_cast<u8>(vertices[r]);
        }
        queued += bit_count(all);
      });
    }
    warp_barrier();
    return queued;
  }
  /// Adds the force of point p on vertex v, number k of the warp, to its sums.
  SEICHE_FN void add(Index v, u32 p, int k, Warp& s) const {
    Index parts[3];
    if (!contact(v, p, parts)) return;
    for (int axis = 0; axis < 3; ++axis) {
      const u32 low = static_cast<u32>(parts[axis]), before = add_atomically(&s.low[axis][k], low);
      const u32 carried = before + low < before ? 1 : 0;
      add_atomically(&s.high[axis][k], static_cast<u32>(static_cast<u64>(parts[axis]) >> 32) + carried);
    }
  }
  /// f(p) for the points p in the bins that may be in contact with vertex v.
  template <class F>
  SEICHE_FN void search(Index v, F&& f) const {
    lists.for_near(v, lists.units.grids[lists.memory.state[ContactState::built]], lists.touching, f);
  }
  /// The force of point p on vertex v in units; false if they are not in contact.
  SEICHE_FN bool contact(Index v, u32 p, Index (&parts)[3]) const {
    const double x[3] = {positions[v], positions[v + stride], positions[v + 2 * stride]};
    const Vector<double> way = separation(x, p);
    const double squares = dot(way, way), cutoff = law.cutoff();
    if (!(squares < cutoff * cutoff)) return false;
    const double scaled = law.units * law.over_distance(squares);
    parts[0] = rounded(scaled * way.x);
    parts[1] = rounded(scaled * way.y);
    parts[2] = rounded(scaled * way.z);
    return true;
  }

  /// From point p to x.
  SEICHE_FN Vector<double> separation(const double (&x)[3], Index p) const {
    const double y[3] = {other[p], other[p + other_stride], other[p + 2 * other_stride]};
    return {periods.between(y[0], x[0], 0), periods.between(y[1], x[1], 1), periods.between(y[2], x[2], 2)};
  }
  SEICHE_FN void store(Index v, const Index (&sums)[3]) const {
    if ((sums[0] | sums[1] | sums[2]) == 0) return;
    const Real before[3] = {force[v], force[v + stride], force[v + 2 * stride]};  // all before the first store
    for (int axis = 0; axis < 3; ++axis) {
      force[v + axis * stride] = before[axis] + static_cast<Real>(static_cast<double>(sums[axis]) / law.units);
    }
  }
  SEICHE_FN static Index rounded(double x) { return static_cast<Index>(x + (x < 0 ? -0.5 : 0.5)); }
};

/// Item: a group of vertices, limited to those of the selected cells.
template <class Real>
struct ResidentContactForce {
  using Scratch = typename ContactForce<Real>::Scratch;
  ContactForce<Real> inner;
  Chosen chosen;
  Index end;  ///< end of the vertices of the type
  static constexpr int bytes = 0;
  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    constexpr int group = ContactForce<Real>::group;
    const Index begin = chosen.first + item * group;
    const int number = static_cast<int>(end - begin < group ? end - begin : group);
    if (chosen.any(begin, number)) inner.add_forces(team, begin, number, scratch, chosen);
  }
};

}  // namespace seiche
