// SPDX-License-Identifier: BSD-3-Clause
/// Assignment of cells to ranks, and transfer of cells within and between ranks (docs/decisions/0019).
#pragma once
#include "../atomics.hpp"
#include "bricks.hpp"

namespace seiche {

/// Bit masks of ranks are words of 32 bits.
inline constexpr int rank_words = 16;

/// Item: a cell of a type. Finds the ranks with sites in the bricks that overlap its bounding box, widened by three
/// margins. The widest margin is for the next redistribution. The other margins are used to test whether the
/// present ranks are sufficient, now and for some more steps.
template <class Real>
struct FindHolders {
  static constexpr int lanes = 64;
  struct Scratch {
    i32 low[3], high[3];  ///< `high` is negated
    i32 slowest;          ///< the greatest speed as an integer, negated
    double sum[lanes][3];
    u32 holders[3][rank_words];
  };
  Bricks bricks;
  const i32* sets;          ///< [z][y][x] as the rows of bricks: index of the set of ranks of the brick, -1: no site
  const u32* ranks;         ///< [set][word]: bit mask of its ranks
  const i32* homes;         ///< [set]: rank with the most sites
  const double* positions;  ///< [3][stride]
  const Real* velocity;     ///< [3][stride]
  const u32* holders;       ///< [cell][word]: ranks that have it
  u32* needed;              ///< [cell][word]: ranks that need it, by the widest margin
  i32* home;                ///< [cell]: rank that contains its centroid, -1: no site there
  i32* result;  ///< 1 a cell is missing on a rank; 2 one may soon be missing; greatest speed of a vertex as the bits of
                ///< a float
  Index stride, first;
  i32 vertices, words;
  i32 margins[3];
  static constexpr int bytes = 0;

  SEICHE_FN void operator()(const Team& team, Index cell, Scratch& s) const {
    const Index begin = first + cell * vertices;
    team.for_each(3, [&](int axis) SEICHE_INLINED { s.low[axis] = s.high[axis] = 1 << 30; });
    team.for_each(1, [&](int) SEICHE_INLINED { s.slowest = 0; });
    team.for_each(3 * rank_words, [&](int k) SEICHE_INLINED { s.holders[k / rank_words][k % rank_words] = 0; });
    team.barrier();
    team.for_each(lanes, [&](int lane) SEICHE_INLINED {
      for (int axis = 0; axis < 3; ++axis) {
        double sum = 0, low = 1e9, high = -1e9, fastest = 0;
        for (int v = lane; v < vertices; v += lanes) {
          const double at = positions[axis * stride + begin + v];
          const double speed = static_cast<double>(velocity[axis * stride + begin + v]);
          sum = sum + at;
          low = at < low ? at : low;
          high = at > high ? at : high;
          fastest = speed > fastest ? speed : (-speed > fastest ? -speed : fastest);
        }
        s.sum[lane][axis] = sum;
        min_atomically(s.low + axis, round_down(low > -1e9 ? low : -1e9));
        min_atomically(s.high + axis, -round_down(high < 1e9 ? high : 1e9) - 1);
        min_atomically(&s.slowest, -bit_cast<i32>(static_cast<float>(fastest)));
      }
    });
    team.barrier();
    for (int margin_index = 0; margin_index < 3; ++margin_index)
      find(team, margins[margin_index], s, s.holders[margin_index]);
    team.barrier();
    team.for_each(1, [&](int) SEICHE_INLINED {
      for (int word = 0; word < words; ++word) {
        const u32 present = holders[cell * words + word];
        if ((s.holders[0][word] & ~present) != 0) result[0] = 1;
        if ((s.holders[1][word] & ~present) != 0) result[1] = 1;
        needed[cell * words + word] = s.holders[2][word];
      }
      min_atomically(result + 2, s.slowest);
      i32 at[3];
      for (int axis = 0; axis < 3; ++axis) {
        double sum = 0;
        for (int lane = 0; lane < lanes; ++lane) sum = sum + s.sum[lane][axis];
        const double middle = sum / vertices + 0.5;
        const i32 x = bricks.wrapped(axis, round_down(middle > -1e9 && middle < 1e9 ? middle : -1e9));
        at[axis] = x >= 0 && x < bricks.shape[axis] ? x / brick_edge : bricks.count(axis);
      }
      const i32 set = number(at[0], at[1], at[2]);
      home[cell] = set < 0 ? -1 : homes[set];
    });
    team.barrier();
  }
  SEICHE_FN i32 number(i32 x, i32 y, i32 z) const {
    return sets[(z * (bricks.count(1) + 1) + y) * (bricks.count(0) + 1) + x];
  }
  SEICHE_FN void find(const Team& team, i32 margin, const Scratch& s, u32 (&holder_bits)[rank_words]) const {
    i32 begin[3], extent[3];
    for (int axis = 0; axis < 3; ++axis) {
      const i32 low = s.low[axis] - margin, high = -s.high[axis] + margin, last = bricks.shape[axis] - 1;
      if (bricks.periodic[axis] == 0) {
        begin[axis] = (low < 0 ? 0 : (low > last ? last : low)) / brick_edge;
        extent[axis] = (high < 0 ? 0 : (high > last ? last : high)) / brick_edge - begin[axis] + 1;
      } else if (high - low >= last) {
        begin[axis] = 0;
        extent[axis] = bricks.count(axis);
      } else {
        begin[axis] = bricks.wrapped(axis, low) / brick_edge;
        const i32 end = bricks.wrapped(axis, high) / brick_edge;
        // A box that wraps around and ends in the brick in which it begins overlaps all bricks of the axis.
        const bool wraps = bricks.wrapped(axis, high) < bricks.wrapped(axis, low);
        const i32 count = bricks.count(axis), length = end - begin[axis] + 1 + (wraps ? count : 0);
        extent[axis] = length < count ? length : count;
      }
    }
    team.for_each(extent[0] * extent[1] * extent[2], [&](int k) SEICHE_INLINED {
      i32 at[3] = {begin[0] + k % extent[0], begin[1] + k / extent[0] % extent[1],
                   begin[2] + k / (extent[0] * extent[1])};
      for (int axis = 0; axis < 3; ++axis) at[axis] -= at[axis] >= bricks.count(axis) ? bricks.count(axis) : 0;
      const i32 set = number(at[0], at[1], at[2]);
      if (set < 0) return;
      for (int word = 0; word < words; ++word) or_atomically(holder_bits + word, ranks[set * words + word]);
    });
  }
};

/// Item: a cell of a message, or the unused end of a message. Writes the slots of the vertices of the cell, or a dummy
/// slot.
struct WriteSlots {
  using Scratch = NoScratch;
  u32* slots;
  const Index*
      entries;  ///< [item][4]: first slot to write, number of slots, first vertex, vertices of the cell (0: dummy)
  Index stride;
  static constexpr int bytes = 0;
  SEICHE_FN void operator()(const Team& team, Index item, Scratch&) const {
    const Index* entry = entries + 4 * item;
    const Index from = entry[0], first = entry[2];
    const int vertices = static_cast<int>(entry[3]);
    team.for_each(static_cast<int>(entry[1]), [&](int k) SEICHE_INLINED {
      slots[from + k] = static_cast<u32>(vertices == 0 ? first : k / vertices * stride + first + k % vertices);
    });
  }
};

/// Item: a cell. Copies three numbers of each vertex to new columns.
template <class T>
struct MoveCells {
  using Scratch = NoScratch;
  const T* source;
  T* target;
  const Index* entries;  ///< [item][3]: first source vertex, first target vertex, number of vertices
  Index source_stride, stride;
  static constexpr int bytes = 0;
  SEICHE_FN void operator()(const Team& team, Index item, Scratch&) const {
    const Index* entry = entries + 3 * item;
    const Index source_vertex = entry[0], target_vertex = entry[1];
    const int vertices = static_cast<int>(entry[2]);
    team.for_each(3 * vertices, [&](int k) SEICHE_INLINED {
      target[k / vertices * stride + target_vertex + k % vertices] =
          source[k / vertices * source_stride + source_vertex + k % vertices];
    });
  }
};

}  // namespace seiche
