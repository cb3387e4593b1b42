// SPDX-License-Identifier: BSD-3-Clause
/// Atomic operations on one word of memory.
#pragma once
#include "portable.hpp"

namespace seiche {

/// All return the previous value. Only the word itself is ordered.
#if defined(__CUDACC__)
SEICHE_FN u32 add_atomically(u32* word, u32 value) {
  return atomicAdd(word, value);
}
SEICHE_FN Index add_atomically(Index* word, Index value) {
  return static_cast<Index>(atomicAdd(reinterpret_cast<u64*>(word), static_cast<u64>(value)));
}
SEICHE_FN u32 or_atomically(u32* word, u32 value) {
  return atomicOr(word, value);
}
SEICHE_FN u64 xor_atomically(u64* word, u64 value) {
  return atomicXor(word, value);
}
SEICHE_FN i32 min_atomically(i32* word, i32 value) {
  return atomicMin(word, value);
}
#else
SEICHE_FN u32 add_atomically(u32* word, u32 value) {
  return __atomic_fetch_add(word, value, __ATOMIC_RELAXED);
}
SEICHE_FN Index add_atomically(Index* word, Index value) {
  return __atomic_fetch_add(word, value, __ATOMIC_RELAXED);
}
SEICHE_FN u32 or_atomically(u32* word, u32 value) {
  return __atomic_fetch_or(word, value, __ATOMIC_RELAXED);
}
SEICHE_FN u64 xor_atomically(u64* word, u64 value) {
  return __atomic_fetch_xor(word, value, __ATOMIC_RELAXED);
}
SEICHE_FN i32 min_atomically(i32* word, i32 value) {
  i32 previous = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (value < previous &&
         !__atomic_compare_exchange_n(word, &previous, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return previous;
}
#endif

}  // namespace seiche
