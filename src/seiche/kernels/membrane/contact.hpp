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

/// Item: a group of vertices. Sums the forces exerted by points of other owners.
template <class Real>
struct ContactForce {
  static constexpr int group = ContactLists::group, chunk = 1024;
  /// Memory of a team of threads for the lists of its vertices, a chunk of entries at a time.
  struct Threads {
    ContactPoint places[group];
    Index list[group];  ///< first entry of a vertex in `pairs`, minus the number of entries of the vertices before it
    u32 low[3][group], high[3][group];  ///< sums
    u32 totals[group / warp_threads];   ///< entries of the vertices of a warp
    u32 queued;
    u16 queue[chunk];  ///< entries that may be in contact
    u8 vertex[chunk];  ///< vertices of the entries
  };
  using Scratch = typename Either<Team::single_thread, NoScratch, Threads>::Type;

  Real* force;              ///< [3][stride]; added to
  const double* positions;  ///< [3][stride] of the vertices
  const double* other;      ///< [3][other_stride]
  Index stride, other_stride;
  ContactLists lists;
  ContactPeriods periods;
  ContactLaw law;
  ContactReset reset;
  Index count;  ///< number of vertices
  static constexpr int bytes = 0;

  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    const Index begin = item * group;
    add_forces(team, begin, static_cast<int>(count - begin < group ? count - begin : group), scratch,
               [](Index) SEICHE_INLINED { return true; });
    if (item == 0 && team.thread == 0) reset(0);
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
      by_threads(team, begin, team.thread < number && chosen(begin + team.thread), scratch);
    }
  }

  SEICHE_FN void by_vertex(Index v) const {
    const u32 first_block = lists.groups[v / group];
    const ContactPoint place = lists.places[v];
    Index sums[3] = {0, 0, 0};
    const auto add = [&](u32 p) SEICHE_INLINED {
      if (!lists.touches(place, p)) return;
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

  /// The threads test the entries of all lists, one after another, so that all have equal work. Then they compute the
  /// contacts among them. In a loop over the list of its vertex, a thread would have a contact in few rounds.
  SEICHE_FN void by_threads(const Team& team, Index begin, bool active, Threads& s) const {
    const int thread = team.thread, lane = thread % warp_threads, warp = thread / warp_threads;
    const Index v = begin + thread;
    const u32 first_block = active ? lists.groups[v / group] : 0;
    u32 entries = 0;
    Index list = 0;
    if (active && first_block != ContactLists::over_capacity) list = lists.list(v, first_block, entries);
    if (active) s.places[thread] = lists.places[v];
    for (int axis = 0; axis < 3; ++axis) s.low[axis][thread] = s.high[axis][thread] = 0;
    u32 end = sum_up_to(entries, lane);
    if (lane == warp_threads - 1) s.totals[warp] = end;
    team.barrier();
    u32 total = 0;
    for (int w = 0; w < group / warp_threads; ++w) {
      end += w < warp ? s.totals[w] : 0;
      total += s.totals[w];
    }
    s.list[thread] = list - (end - entries);
    if (first_block == ContactLists::over_capacity) {
      search(v, [&](u32 p) { add(v, p, thread, s); });
    }
    for (u32 from = 0; from < total; from += chunk) {
      const u32 number = total - from < chunk ? total - from : chunk;
      test(team, from, number, end - entries, end, s);
      for (u32 q = thread; q < s.queued; q += team.threads) {
        const u32 e = s.queue[q];
        const int k = s.vertex[e];
        add(begin + k, lists.pairs[s.list[k] + from + e], k, s);
      }
      team.barrier();
    }
    if (total == 0) team.barrier();
    Index sums[3];
    for (int axis = 0; axis < 3; ++axis) {
      sums[axis] = static_cast<Index>(static_cast<u64>(s.high[axis][thread]) << 32 | s.low[axis][thread]);
    }
    if (active) store(v, sums);
  }
  /// Queues those of the `number` entries from `from` that may be in contact. The entries of the vertex of this thread
  /// are those from `first` to `end`.
  SEICHE_FN void test(const Team& team, u32 from, u32 number, u32 first, u32 end, Threads& s) const {
    const int thread = team.thread, lane = thread % warp_threads;
    const u32 low = first > from ? first - from : 0, high = end < from ? 0 : end - from < number ? end - from : number;
    for (u32 e = low; e < high; ++e) s.vertex[e] = static_cast<u8>(thread);
    if (thread == 0) s.queued = 0;
    team.barrier();
    for (u32 base = 0; base < number; base += group) {
      const u32 e = base + thread;
      bool near = false;
      if (e < number) {
        const int k = s.vertex[e];
        near = lists.touches(s.places[k], lists.pairs[s.list[k] + from + e]);
      }
      const u32 all = votes(near);
      if (all == 0) continue;
      u32 at = 0;
      if (lane == 0) at = add_atomically(&s.queued, static_cast<u32>(bit_count(all)));
      at = of_first(at);
      if (near) s.queue[at + bit_count(all & ((1u << lane) - 1))] = static_cast<u16>(e);
    }
    team.barrier();
  }
  /// Adds the force of point p on vertex v, number k of the team, to its sums.
  SEICHE_FN void add(Index v, u32 p, int k, Threads& s) const {
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
    lists.for_near(v, lists.units.grids[reset.state[ContactState::built]], lists.touching, f);
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
    for (int axis = 0; axis < 3; ++axis) {
      force[v + axis * stride] += static_cast<Real>(static_cast<double>(sums[axis]) / law.units);
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
