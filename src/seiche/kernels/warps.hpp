// SPDX-License-Identifier: BSD-3-Clause
/// Communication between the threads of a warp: 32 on a GPU, one on a CPU.
#pragma once
#include "portable.hpp"

namespace seiche {

#if defined(__CUDACC__)
inline constexpr int warp_threads = 32;

/// Bit k: the value of thread k of the warp.
SEICHE_FN u32 votes(bool yes) {
  return __ballot_sync(0xffffffffu, yes);
}
SEICHE_FN int bit_count(u32 word) {
  return __popc(word);
}
/// The value of the first thread of the warp.
SEICHE_FN u32 of_first(u32 value) {
  return __shfl_sync(0xffffffffu, value, 0);
}
/// The value of thread `lane` of the warp.
template <class T>
SEICHE_FN T of_lane(T value, int lane) {
  return __shfl_sync(0xffffffffu, value, lane);
}
/// After this barrier, the threads of the warp see the earlier writes of each other.
SEICHE_FN void warp_barrier() {
  __syncwarp();
}
/// Sum of the values of the threads of the warp up to this one, `lane`.
SEICHE_FN u32 sum_up_to(u32 value, int lane) {
  for (int step = 1; step < warp_threads; step *= 2) {
    const u32 below = __shfl_up_sync(0xffffffffu, value, static_cast<u32>(step));
    value += lane >= step ? below : 0;
  }
  return value;
}
/// Bitwise or of the words of all threads of the warp.
SEICHE_FN u64 combined_bits(u64 word) {
  const u32 low = __reduce_or_sync(0xffffffffu, static_cast<u32>(word));
  return low | static_cast<u64>(__reduce_or_sync(0xffffffffu, static_cast<u32>(word >> 32))) << 32;
}
/// Calls f(k) for every bit k of a word, the lowest first.
template <class F>
SEICHE_FN void for_bits(u32 word, F&& f) {
  for (; word != 0; word &= word - 1) f(__ffs(static_cast<int>(word)) - 1);
}
#else
inline constexpr int warp_threads = 1;

SEICHE_FN u32 votes(bool yes) {
  return yes ? 1u : 0u;
}
SEICHE_FN u32 of_first(u32 value) {
  return value;
}
template <class T>
SEICHE_FN T of_lane(T value, int) {
  return value;
}
SEICHE_FN void warp_barrier() {}
SEICHE_FN u32 sum_up_to(u32 value, int) {
  return value;
}
SEICHE_FN int bit_count(u32 word) {
  return __builtin_popcount(word);
}
SEICHE_FN u64 combined_bits(u64 word) {
  return word;
}
template <class F>
SEICHE_FN void for_bits(u32 word, F&& f) {
  for (; word != 0; word &= word - 1) f(__builtin_ctz(word));
}
#endif

}  // namespace seiche
