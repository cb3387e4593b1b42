// SPDX-License-Identifier: BSD-3-Clause
/// The two ends of a halo message: packing slots of an array into a buffer, and unpacking a buffer into slots (replaced
/// or added).
/// Bytes per item: one value read, one written, one slot number.
#pragma once
#include "../launch.hpp"

namespace seiche {

/// Copies slots of an array into a message (`packs`), or a message into slots.
template <class T, bool packs, class Slot = u32>
struct SlotCopy {
  using Value = T;
  T* array;
  const Slot* slots;
  T* buffer;
  static constexpr int bytes = 2 * sizeof(T) + sizeof(Slot);
  SEICHE_FN T taken(Index k) const { return packs ? array[slots[k]] : buffer[k]; }
  SEICHE_FN void put(Index k, T value) const { (packs ? buffer[k] : array[slots[k]]) = value; }
  SEICHE_FN void operator()(Index k) const { put(k, taken(k)); }
};
template <class T>
using Pack = SlotCopy<T, true>;
template <class T>
using Unpack = SlotCopy<T, false>;

/// The slots of one message are distinct. Messages are added in sequence, so the order of sums is fixed.
template <class T>
struct UnpackAdd {
  T* array;
  const u32* slots;
  const T* buffer;
  static constexpr int bytes = 3 * sizeof(T) + 4;
  SEICHE_FN void operator()(Index k) const { array[slots[k]] += buffer[k]; }
};

/// Items: `per_thread` values for each of `threads` threads. A thread loads all its values before it stores the first.
/// Few teams then saturate a link between devices and leave the device free for concurrent kernels.
template <class Move, int threads, int per_thread>
struct Several {
  using Scratch = NoScratch;
  Move move;
  Index end;  ///< end of the values
  static constexpr int bytes = threads * per_thread * Move::bytes;
  SEICHE_FN void operator()(const Team& team, Index item, Scratch&) const {
    const Index begin = item * (threads * per_thread);
    team.for_each(threads, [&](int thread) SEICHE_INLINED {
      typename Move::Value values[per_thread];
      for (int k = 0; k < per_thread; ++k) {
        const Index at = begin + k * threads + thread;
        if (at < end) values[k] = move.taken(at);
      }
      for (int k = 0; k < per_thread; ++k) {
        const Index at = begin + k * threads + thread;
        if (at < end) move.put(at, values[k]);
      }
    });
  }
};

}  // namespace seiche
