// SPDX-License-Identifier: BSD-3-Clause
/// Launch loops for CPU and GPU. A kernel is a functor. Its operator()(i) processes item i; the form operator()(team,
/// i, scratch) uses a whole team of threads.
#pragma once
#include "storage.hpp"

namespace seiche {

/// A functor with a member `Scratch` processes an item by a team: a block of threads on the GPU, one thread on the CPU.
/// The threads of the team share one Scratch, which is initially undefined.
template <class Functor>
concept Teamed = requires { typename Functor::Scratch; };

/// For teams that share no memory.
struct NoScratch {};

template <class Functor>
inline constexpr int scratch_bytes = 0;
template <Teamed Functor>
inline constexpr int scratch_bytes<Functor> = sizeof(typename Functor::Scratch);

/// The threads that process one item of a teamed functor. Their work between two barriers must be independent.
struct Team {
#if defined(__CUDACC__)
  /// True if the team is a single thread, which then uses vectors in place of threads.
  static constexpr bool single_thread = false;
  int thread, threads;

  /// f(0) ... f(n - 1), distributed over the threads.
  template <class F>
  SEICHE_FN void for_each(int n, F&& f) const {
    for (int k = thread; k < n; k += threads) f(k);
  }
  /// The same by one of `parts` equal parts of the team, number `part` modulo `parts`. Parts thus share several loops.
  template <int parts, class F>
  SEICHE_FN void for_each_in(int part, int n, F&& f) const {
    const int size = threads / parts;
    if (parts > 1 && thread / size != part % parts) return;
    for (int k = parts > 1 ? thread % size : thread; k < n; k += size) f(k);
  }
  /// After the barrier, all threads see all earlier writes.
  SEICHE_FN void barrier() const { __syncthreads(); }
#else
  static constexpr bool single_thread = true;
  static constexpr int thread = 0, threads = 1;

  template <class F>
  SEICHE_FN void for_each(int n, F&& f) const {
#pragma omp simd
    for (int k = 0; k < n; ++k) f(k);
  }
  template <int parts, class F>
  SEICHE_FN void for_each_in(int, int n, F&& f) const {
    for_each(n, f);
  }
  SEICHE_FN void barrier() const {}
#endif
};

#if defined(__CUDACC__)

/// A functor with a member `Staging<items>` first loads data of its items into shared memory by all threads of a block.
template <class Functor>
concept Staged = requires { typename Functor::template Staging<32>; };

/// GPU: `Items` neighbouring items per thread, processed together. The functor is passed by value as the first
/// argument. `Blocks` is the number of resident blocks per multiprocessor, which bounds the registers (0: the choice of
/// the compiler). A teamed functor has one block per item.
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

/// A functor with a constant `lanes` also has batch(first), which processes this number of items, stage by stage. The
/// first one is a multiple of `lanes`.
template <class Functor>
concept Batched = requires { Functor::lanes; };

inline constexpr Index few_items = 1024;

/// CPU: threads divide the range equally, each in a vector loop. Items must be independent.
template <class Functor>
void for_each(const void* arguments, Index begin, Index end, int threads) {
  const Functor functor = *static_cast<const Functor*>(arguments);
  if (!Teamed<Functor> && end - begin < few_items) threads = 1;  // starting threads would take longer than the work
  if constexpr (Teamed<Functor>) {
#pragma omp parallel num_threads(threads)
    {
      typename Functor::Scratch scratch;
#pragma omp for schedule(static)
      for (Index i = begin; i < end; ++i) functor(Team{}, i, scratch);
    }
  } else if constexpr (Batched<Functor>) {
    constexpr Index lanes = Functor::lanes;
    const Index aligned = (begin + lanes - 1) / lanes * lanes, first = aligned < end ? aligned : end;
    const Index batches = first + (end - first) / lanes * lanes;
#pragma omp parallel num_threads(threads)
    {
#pragma omp for schedule(static) nowait
      for (Index i = first; i < batches; i += lanes) functor.batch(i);
      stream_fence();
    }
    // One loop for the items before and after the batches, because each copy of the functor takes time to compile.
    for (Index i = begin < first ? begin : batches; i < end; i = i + 1 == first ? batches : i + 1) functor(i);
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

#if defined(__CUDACC__)
/// Calls f.operator()<q>() for q = First ... Last - 1 with q known at compile time.
template <int First, int Last, class F>
SEICHE_FN void static_for(F&& f) {
  if constexpr (First < Last) {
    f.template operator()<First>();
    static_for<First + 1, Last>(f);
  }
}
#else
/// The integers 0 ... n - 1 as template arguments: CountTo<n>::Type.
template <int... q>
struct Integers {};
template <int n, int... q>
struct CountTo : CountTo<n - 1, n - 1, q...> {};
template <int... q>
struct CountTo<0, q...> {
  using Type = Integers<q...>;
};
template <int First, class F, int... q>
SEICHE_FN void call_each(F& f, Integers<q...>) {
  (f.template operator()<First + q>(), ...);
}
/// The same on the CPU. GCC generates the same code as from the recursion, in four fifths of the time.
template <int First, int Last, class F>
SEICHE_FN void static_for(F&& f) {
  if constexpr (First < Last) call_each<First>(f, typename CountTo<Last - First>::Type{});
}
#endif

}  // namespace seiche
