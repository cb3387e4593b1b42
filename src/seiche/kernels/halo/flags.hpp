// SPDX-License-Identifier: BSD-3-Clause
/// Messages between devices that map each other's memory: item k is neighbour number k. A word in the memory of the
/// receiver has the number of the last message that arrived. Kernels before `Publish` in the stream wrote the message.
#pragma once
#include "../launch.hpp"

namespace seiche {

/// Signals to every neighbour that one more message has arrived in its memory.
struct Publish {
  const u64* flags;  ///< [k] address of this device's word in the neighbour's memory
  u32* sent;         ///< [k] messages sent to it
  static constexpr int bytes = 0;
  SEICHE_FN void operator()(Index k) const { store_release(reinterpret_cast<u32*>(flags[k]), ++sent[k]); }
};

/// Waits for one more message of every neighbour, at most `timeout` (ns). After a time-out, `failed` is 1 + k and
/// later waits return immediately.
struct Await {
  const u32* flags;  ///< [k] the neighbour's word in this device's memory
  u32* received;     ///< [k] messages received from it
  u32* failed;
  u64 timeout;
  static constexpr int bytes = 0;
  SEICHE_FN void operator()(Index k) const {
    const u32 expected = ++received[k];
    const u64 begin = nanoseconds();
    // Signed difference, because the count may wrap around.
    while (static_cast<i32>(load_acquire(flags + k) - expected) < 0) {
      if (load_acquire(failed) != 0) return;
      if (nanoseconds() - begin > timeout) {
        store_release(failed, static_cast<u32>(k) + 1);
        return;
      }
    }
  }
};

}  // namespace seiche
