// SPDX-License-Identifier: BSD-3-Clause
/// Neighbouring items that a thread of a team handles side by side: one on the GPU, where its neighbours do the others,
/// a vector's worth on the CPU, where a team is one thread.
#pragma once
#include "launch.hpp"

namespace seiche {

#if defined(__CUDACC__)
template <class Real>
inline constexpr int batch_lanes = 1;

/// f(0) ... f(lanes - 1).
template <int lanes, class F>
SEICHE_FN void side_by_side(F&& f) {
  for (int k = 0; k < lanes; ++k) f(k);
}
#else
template <class Real>
inline constexpr int batch_lanes = 64 / sizeof(Real);

template <int lanes, class F>
SEICHE_FN void side_by_side(F&& f) {
  for_lanes<lanes>(static_cast<F&&>(f));
}
#endif

}  // namespace seiche
