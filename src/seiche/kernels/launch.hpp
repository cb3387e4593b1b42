// SPDX-License-Identifier: BSD-3-Clause
/// The loops: one for the CPU, one for the GPU. A kernel is a functor whose operator()(i) handles item i, or, with a
/// whole team of threads, operator()(team, i, scratch).
#pragma once
#include "storage.hpp"

namespace seiche {

/// Functors that name a `Scratch` have a team handle an item: a block of threads on the GPU, one thread on the CPU.
/// The team's threads share one Scratch, whose content is undefined at first.
template <class Functor>
concept Teamed = requires { typename Functor::Scratch; };

template <class Functor>
inline constexpr int scratch_bytes = 0;
template <Teamed Functor>
inline constexpr int scratch_bytes<Functor> = sizeof(typename Functor::Scratch);

/// The threads that handle one item of a teamed functor. Their work between two barriers must not depend on each other.
struct Team {
#if defined(__CUDACC__)
  /// Whether a single thread is the team: its vectors then do what threads would.
  static constexpr bool alone = false;
  int thread, threads;

  /// f(0) ... f(n - 1), spread over the threads.
  template <class F>
  SEICHE_FN void each(int n, F&& f) const {
    for (int k = thread; k < n; k += threads) f(k);
  }
  /// What the threads wrote before is seen by all of them after.
  SEICHE_FN void barrier() const { __syncthreads(); }
#else
  static constexpr bool alone = true;
  static constexpr int thread = 0, threads = 1;

  template <class F>
  SEICHE_FN void each(int n, F&& f) const {
#pragma omp simd
    for (int k = 0; k < n; ++k) f(k);
  }
  SEICHE_FN void barrier() const {}
#endif
};

#if defined(__CUDACC__)

/// Functors that name a `Staging<items>` have the threads of a block bring into shared memory what its items need.
template <class Functor>
concept Staged = requires { typename Functor::template Staging<32>; };

/// GPU: `Items` neighbouring items a thread, handled as one; the functor travels by value as the first argument.
/// `Blocks` to be resident on a multiprocessor bound the registers (0: the compiler's choice). A teamed functor has a
/// block an item.
template <class Functor, int Threads, int Blocks, int Items>
__global__ void __launch_bounds__(Threads, Blocks) for_each(const Functor functor, Index begin, Index end) {
  const int thread = static_cast<int>(threadIdx.x);
  if constexpr (Teamed<Functor>) {
    extern __shared__ __align__(16) unsigned char scratch[];
    functor(Team{thread, Threads}, begin + blockIdx.x, *reinterpret_cast<typename Functor::Scratch*>(scratch));
  } else {
    const Index first = begin + blockIdx.x * static_cast<Index>(Threads * Items), i = first + thread * Items;
    if constexpr (Staged<Functor>) {
      __shared__ typename Functor::template Staging<Threads * Items> staging;
      functor.stage(staging, first, end, thread, Threads);
      __syncthreads();
      if (i < end) functor.template handle<Items>(i, thread * Items, staging);
    } else {
      static_assert(Items == 1, "only functors with a table handle several items as one");
      if (i < end) functor(i);
    }
  }
}

#else

/// Functors that name a number of `lanes` also have batch(first): so many items at once, stage by stage.
template <class Functor>
concept Batched = requires { Functor::lanes; };

inline constexpr Index few_items = 1024;

/// CPU: threads share the range in equal parts, each a vector loop; items must not depend on each other.
template <class Functor>
void for_each(const void* arguments, Index begin, Index end, int threads) {
  const Functor functor = *static_cast<const Functor*>(arguments);
  if (!Teamed<Functor> && end - begin < few_items) threads = 1;  // waking threads would take longer than the work
  if constexpr (Teamed<Functor>) {
#pragma omp parallel num_threads(threads)
    {
      typename Functor::Scratch scratch;
#pragma omp for schedule(static)
      for (Index i = begin; i < end; ++i) functor(Team{}, i, scratch);
    }
  } else if constexpr (Batched<Functor>) {
    constexpr Index lanes = Functor::lanes;
    const Index batches = begin + (end - begin) / lanes * lanes;
#pragma omp parallel num_threads(threads)
    {
#pragma omp for schedule(static) nowait
      for (Index i = begin; i < batches; i += lanes) functor.batch(i);
      stream_fence();
    }
    for (Index i = batches; i < end; ++i) functor(i);
  } else {
#pragma omp parallel for simd schedule(static) num_threads(threads)
    for (Index i = begin; i < end; ++i) functor(i);
  }
}

/// f(0) ... f(lanes - 1) as one vector loop.
template <int lanes, class F>
SEICHE_FN void for_lanes(F&& f) {
#pragma omp simd
  for (int k = 0; k < lanes; ++k) f(k);
}

#endif

/// Calls f.operator()<q>() for q = First ... Last - 1 with q known at compile time.
template <int First, int Last, class F>
SEICHE_FN void each(F&& f) {
  if constexpr (First < Last) {
    f.template operator()<First>();
    each<First + 1, Last>(f);
  }
}

}  // namespace seiche
