// SPDX-License-Identifier: BSD-3-Clause
/// Copies from memory into the memory of a team while its threads go on with other work (GPUs only).
#pragma once
#include "../nodes.hpp"

namespace seiche {

#if defined(__CUDACC__)

/// Copies 4, 8 or 16 aligned bytes; they have come after `wait_for_copies` and a barrier.
template <int bytes>
SEICHE_FN void copy_behind(const void* from, void* to) {
  const auto target = static_cast<u32>(__cvta_generic_to_shared(to));
  if constexpr (bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(target), "l"(from) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(target), "l"(from), "n"(bytes) : "memory");
  }
}
SEICHE_FN void wait_for_copies() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}

#else

template <int bytes>
SEICHE_FN void copy_behind(const void*, void*) {}
SEICHE_FN void wait_for_copies() {}

#endif

}  // namespace seiche
