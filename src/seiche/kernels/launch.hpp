// SPDX-License-Identifier: BSD-3-Clause
/// The loops: one for the CPU, one for the GPU. A kernel is a functor whose operator()(i) handles item i.
#pragma once
#include "portable.hpp"

namespace seiche {

#if defined(__CUDACC__)

/// GPU: one thread an item; the functor travels by value as the kernel's first argument.
template <class Functor, int Threads>
__global__ void __launch_bounds__(Threads) for_each(const Functor functor, Index begin, Index end) {
  const Index i = begin + blockIdx.x * static_cast<Index>(Threads) + threadIdx.x;
  if (i < end) functor(i);
}

#else

/// Functors that name a number of `lanes` also have operator()(first, count): so many items at once, stage by stage.
template <class Functor>
concept Batched = requires { Functor::lanes; };

/// CPU: threads share the range in equal parts, each a vector loop; items must not depend on each other.
template <class Functor>
SEICHE_FLATTEN void for_each(const void* arguments, Index begin, Index end, int threads) {
  const Functor functor = *static_cast<const Functor*>(arguments);
  if constexpr (Batched<Functor>) {
    constexpr Index lanes = Functor::lanes;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (Index i = begin; i < end; i += lanes) functor(i, static_cast<int>(end - i < lanes ? end - i : lanes));
  } else {
#pragma omp parallel for simd schedule(static) num_threads(threads)
    for (Index i = begin; i < end; ++i) functor(i);
  }
}

/// f(0) ... f(count - 1) as one vector loop; a full batch has its length known at compile time.
template <int lanes, class F>
SEICHE_FN void for_lanes(int count, F&& f) {
  if (count == lanes) {
#pragma omp simd
    for (int k = 0; k < lanes; ++k) f(k);
  } else {
#pragma omp simd
    for (int k = 0; k < count; ++k) f(k);
  }
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
