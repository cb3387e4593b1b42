// SPDX-License-Identifier: BSD-3-Clause
/// Batches of neighbouring items that one thread of a team processes, and values private to a thread. A batch is one
/// item on the GPU and one vector of items on the CPU, where a team is one thread.
#pragma once
#include "launch.hpp"

namespace seiche {

#if defined(__CUDACC__)
template <class Real>
inline constexpr int batch_lanes = 1;

/// f(0) ... f(lanes - 1).
template <int lanes, class F>
SEICHE_FN void vector_loop(F&& f) {
  for (int k = 0; k < lanes; ++k) f(k);
}

/// One value for each of the `threads` threads of a team. It persists between two calls of `for_each(threads, ...)`.
template <class T, int threads>
struct Private {
  T value;
  SEICHE_FN T& operator[](int) { return value; }
};
#else
template <class Real>
inline constexpr int batch_lanes = 64 / sizeof(Real);

template <int lanes, class F>
SEICHE_FN void vector_loop(F&& f) {
  for_lanes<lanes>(static_cast<F&&>(f));
}

template <class T, int threads>
struct Private {
  alignas(64) T all[threads];
  SEICHE_FN T& operator[](int thread) { return all[thread]; }
};
#endif

/// `group` items of another functor, processed in sequence by the threads of one team. If most items are empty,
/// launching fewer teams is faster. A functor may report by `idle()` that no item of the group has work.
template <class Functor, int group>
struct Grouped {
  using Scratch = NoScratch;
  Functor item;
  Index count;  ///< number of items
  static constexpr int bytes = group * Functor::bytes;
  SEICHE_FN void operator()(const Team& team, Index number, Scratch&) const {
    if constexpr (requires { item.idle(); }) {
      if (item.idle()) return;
    }
    const Index begin = number * group;
    team.for_each(static_cast<int>(count - begin < group ? count - begin : group),
                  [&](int k) SEICHE_INLINED { item(begin + k); });
  }
};

}  // namespace seiche
