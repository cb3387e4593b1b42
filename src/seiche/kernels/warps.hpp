// SPDX-License-Identifier: BSD-3-Clause
/// What the 32 threads of a warp tell each other. On the GPU only.
#pragma once
#include "portable.hpp"

#if defined(__CUDACC__)
namespace seiche {

inline constexpr int warp_threads = 32;

/// Bit k: what thread k of the warp says.
SEICHE_FN u32 votes(bool yes) {
  return __ballot_sync(0xffffffffu, yes);
}
/// The words of all threads of the warp, or-ed.
SEICHE_FN u64 united(u64 word) {
  const u32 low = __reduce_or_sync(0xffffffffu, static_cast<u32>(word));
  return low | static_cast<u64>(__reduce_or_sync(0xffffffffu, static_cast<u32>(word >> 32))) << 32;
}
/// Calls f(k) for every bit k of a word, the lowest first.
template <class F>
SEICHE_FN void for_bits(u32 word, F&& f) {
  for (; word != 0; word &= word - 1) f(__ffs(static_cast<int>(word)) - 1);
}

}  // namespace seiche
#endif
