// SPDX-License-Identifier: BSD-3-Clause
/// Lists of the vertices that act on each brick (theory/coupling, section 3): count, allocate, fill, sort. They are
/// rebuilt only after a vertex has left the support + 1 sites for which it is listed. Sorted lists fix the order of the
/// sums of forces.
#pragma once
#include "../atomics.hpp"
#include "../batches.hpp"
#include "../membrane/contact_lists.hpp"
#include "vertices.hpp"

namespace seiche {

/// The lists: entries[first[row]] ... are the `count[row]` vertices of a brick.
struct Lists {
  u32* first;
  u32* count;
  u32* tally;  ///< zero between builds
  u32* entries;
};

/// f(row) for every brick that contains one of the support + 1 sites around a listed vertex. Along an axis these are
/// the bricks of the first and the last site, and an incomplete last brick between them.
template <int sites, class F>
SEICHE_FN void for_bricks(const Bricks& bricks, const i32 (&first)[3], F&& f) {
  i32 at[3][3], counts[3];
  for (int axis = 0; axis < 3; ++axis) {
    const i32 begin = bricks.wrapped(axis, first[axis]), count = bricks.count(axis);
    i32 first_brick = count, middle_brick = count, last_brick = count;  // none
    for (int step = 0; step < sites; ++step) {
      const i32 x = bricks.site(axis, begin, step), brick = x < 0 ? count : x / brick_edge;
      first_brick = first_brick == count ? brick : first_brick;
      last_brick = brick == count ? last_brick : brick;
      middle_brick = brick == count - 1 ? brick : middle_brick;
    }
    middle_brick = middle_brick == first_brick || middle_brick == last_brick ? count : middle_brick;
    at[axis][0] = first_brick;
    at[axis][1] = last_brick == first_brick ? middle_brick : last_brick;
    at[axis][2] = middle_brick;
    counts[axis] = first_brick == count ? 0
                                        : 1 + (at[axis][1] != count ? 1 : 0) +
                                              (last_brick != first_brick && middle_brick != count ? 1 : 0);
  }
  static_for<0, 3>([&]<int k>() SEICHE_INLINED {
    static_for<0, 3>([&]<int j>() SEICHE_INLINED {
      static_for<0, 3>([&]<int i>() SEICHE_INLINED {
        if (i < counts[0] && j < counts[1] && k < counts[2]) f(bricks.row(at[0][i], at[1][j], at[2][k]) >> 1);
      });
    });
  });
}

/// The first of the sites for which a vertex is listed.
template <class Delta>
struct Listing {
  i32 first[3];
  SEICHE_FN Listing(const double* positions, Index stride, Index v) {
    const double x[3] = {positions[v], positions[stride + v], positions[2 * stride + v]};
    const Stencil<Delta, double> stencil(x);
    for (int axis = 0; axis < 3; ++axis) {
      first[axis] = stencil.first[axis] - (stencil.t[axis] < Delta::middle ? 1 : 0);
    }
  }
};

/// Item: a vertex. Selects the sites for which it is listed and counts it in their bricks.
template <class Delta>
struct CountVertices {
  Bricks bricks;
  Lists lists;
  const double* positions;
  u8* listed;
  const u32* state;
  Index stride;
  static constexpr int bytes = 0;
  SEICHE_FN bool idle() const { return state[VertexState::stale] == 0; }
  SEICHE_FN void operator()(Index v) const {
    if (idle()) return;
    const auto [first] = Listing<Delta>(positions, stride, v);
    for (int axis = 0; axis < 3; ++axis) listed[axis * stride + v] = static_cast<u8>(first[axis]);
    for_bricks<Delta::support + 1>(bricks, first,
                                   [&](i32 row) SEICHE_INLINED { add_atomically(lists.tally + row, 1u); });
  }
};

/// Item: a brick. Allocates its list.
struct PlaceLists {
  Lists lists;
  u32* state;
  static constexpr int bytes = 0;
  SEICHE_FN void operator()(Index row) const {
    if (state[VertexState::stale] == 0) return;
    const u32 vertex_count = lists.tally[row];
    lists.tally[row] = 0;
    lists.count[row] = vertex_count;
    if (vertex_count > 0) lists.first[row] = add_atomically(state + VertexState::used, vertex_count);
  }
};

/// Item: a vertex. Adds it to its lists.
template <class Delta>
struct FillLists {
  Bricks bricks;
  Lists lists;
  const double* positions;
  const u32* state;
  Index stride;
  static constexpr int bytes = 0;
  SEICHE_FN bool idle() const { return state[VertexState::stale] == 0; }
  SEICHE_FN void operator()(Index v) const {
    if (idle()) return;
    const auto [first] = Listing<Delta>(positions, stride, v);
    for_bricks<Delta::support + 1>(bricks, first, [&](i32 row) SEICHE_INLINED {
      lists.entries[lists.first[row] + add_atomically(lists.tally + row, 1u)] = static_cast<u32>(v);
    });
  }
};

/// Item: a group of bricks. Sorts their lists: first parts of a list, by counting smaller entries, then neighbouring
/// parts are merged repeatedly until the list is sorted.
struct SortLists {
  static constexpr int part = 256, group = 16;
  struct Scratch {
    u32 value[2 * part];
  };
  Lists lists;
  u32* state;
  Index count;           ///< number of bricks
  ContactMemory memory;  ///< of which the entries are a part
  static constexpr int bytes = 0;
  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    if (state[VertexState::stale] == 0) return;
    const Index end = (item + 1) * group < count ? (item + 1) * group : count;
    for (Index row = item * group; row < end; ++row) sort(team, row, scratch);
  }
  SEICHE_FN void sort(const Team& team, Index row, Scratch& scratch) const {
    const int total = static_cast<int>(lists.count[row]);
    team.for_each(1, [&](int) SEICHE_INLINED {
      if (row == 0) {
        memory.take(state[VertexState::used]);
        state[VertexState::used] = 0;
      }
      lists.tally[row] = 0;
    });
    if (total == 0) return;
    u32* list = lists.entries + lists.first[row];
    const int parts = (total + part - 1) / part;
    for (int p = 0; p < parts; ++p) {
      const int count = total - p * part < part ? total - p * part : part;
      u32* source = list + p * part;
      load(team, source, count, scratch);
      team.for_each(count, [&](int k) SEICHE_INLINED {
        const u32 value = scratch.value[k];
        int rank_in_part = 0;
        for (int j = 0; j < count; ++j) rank_in_part += scratch.value[j] < value ? 1 : 0;
        source[rank_in_part] = value;
      });
    }
    for (int round = 0; round < parts; ++round) {
      for (int p = round % 2; p + 1 < parts; p += 2) {
        const int remaining = total - p * part, count = remaining < 2 * part ? remaining : 2 * part;
        u32* source = list + p * part;
        load(team, source, count, scratch);
        team.for_each(count, [&](int k) SEICHE_INLINED {
          const u32 value = scratch.value[k];
          int low = k < part ? part : 0, high = k < part ? count : part;
          while (low < high) {  // entries of the other part below this one
            const int middle = (low + high) / 2;
            const bool is_less = scratch.value[middle] < value;
            low = is_less ? middle + 1 : low;
            high = is_less ? high : middle;
          }
          source[k < part ? k + low - part : k - part + low] = value;
        });
      }
    }
  }
  SEICHE_FN void load(const Team& team, const u32* source, int count, Scratch& scratch) const {
    team.barrier();
    team.for_each(count, [&](int k) SEICHE_INLINED { scratch.value[k] = source[k]; });
    team.barrier();
  }
};

}  // namespace seiche
