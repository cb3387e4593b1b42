// SPDX-License-Identifier: BSD-3-Clause
/// The two ends of a halo message: packing slots of an array into a buffer, and unpacking a buffer into slots (replaced
/// or added).
/// Bytes an item: one value read, one written, one slot number.
#pragma once
#include "../launch.hpp"

namespace seiche {

template <class T>
struct Pack {
  using Value = T;
  const T* array;
  const u32* slots;
  T* buffer;
  static constexpr int bytes = 2 * sizeof(T) + 4;
  SEICHE_FN T taken(Index k) const { return array[slots[k]]; }
  SEICHE_FN void put(Index k, T value) const { buffer[k] = value; }
  SEICHE_FN void operator()(Index k) const { put(k, taken(k)); }
};

template <class T>
struct Unpack {
  using Value = T;
  const T* buffer;
  const u32* slots;
  T* array;
  static constexpr int bytes = 2 * sizeof(T) + 4;
  SEICHE_FN T taken(Index k) const { return buffer[k]; }
  SEICHE_FN void put(Index k, T value) const { array[slots[k]] = value; }
  SEICHE_FN void operator()(Index k) const { put(k, taken(k)); }
};

/// The slots of one message are distinct. Messages are added in sequence, so the order of sums is fixed.
template <class T>
struct UnpackAdd {
  const T* buffer;
  const u32* slots;
  T* array;
  static constexpr int bytes = 3 * sizeof(T) + 4;
  SEICHE_FN void operator()(Index k) const { array[slots[k]] += buffer[k]; }
};

/// Items: `many` values for each of `threads` threads. A thread loads all its values before it stores the first. Few
/// teams then saturate a link between devices and leave the device free for concurrent kernels.
template <class Move, int threads, int many>
struct Several {
  struct Scratch {
    u8 unused;
  };
  Move move;
  Index end;  ///< end of the values
  static constexpr int bytes = threads * many * Move::bytes;
  SEICHE_FN void operator()(const Team& team, Index item, Scratch&) const {
    const Index begin = item * (threads * many);
    team.each(threads, [&](int thread) SEICHE_INLINED {
      typename Move::Value values[many];
      for (int k = 0; k < many; ++k) {
        const Index at = begin + k * threads + thread;
        if (at < end) values[k] = move.taken(at);
      }
      for (int k = 0; k < many; ++k) {
        const Index at = begin + k * threads + thread;
        if (at < end) move.put(at, values[k]);
      }
    });
  }
};

}  // namespace seiche
