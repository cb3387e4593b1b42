// SPDX-License-Identifier: BSD-3-Clause
/// Neighbouring items that a thread of a team handles side by side: one on the GPU, where its neighbours do the others,
/// a vector's worth on the CPU, where a team is one thread; and what a thread of a team keeps for itself.
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

/// A number of each of the `threads` threads of a team, which keep it between two calls of `each(threads, ...)`.
template <class T, int threads>
struct Private {
  T own;
  SEICHE_FN T& operator[](int) { return own; }
};
#else
template <class Real>
inline constexpr int batch_lanes = 64 / sizeof(Real);

template <int lanes, class F>
SEICHE_FN void side_by_side(F&& f) {
  for_lanes<lanes>(static_cast<F&&>(f));
}

template <class T, int threads>
struct Private {
  alignas(64) T all[threads];
  SEICHE_FN T& operator[](int thread) { return all[thread]; }
};
#endif

/// `group` items of another functor, one after the other by the threads of a team: where most calls have nothing to do,
/// few teams are launched sooner than many. A functor may say by `idle()` that none of them has.
template <class Each, int group>
struct Grouped {
  struct Scratch {
    u8 unused;
  };
  Each item;
  Index count;  ///< of the items
  static constexpr int bytes = group * Each::bytes;
  SEICHE_FN void operator()(const Team& team, Index number, Scratch&) const {
    if constexpr (requires { item.idle(); }) {
      if (item.idle()) return;
    }
    const Index begin = number * group;
    team.each(static_cast<int>(count - begin < group ? count - begin : group),
              [&](int k) SEICHE_INLINED { item(begin + k); });
  }
};

}  // namespace seiche
