// SPDX-License-Identifier: BSD-3-Clause
/// Sums over groups of the threads of a team, in an order that depends on the numbers of threads only.
#pragma once
#include "launch.hpp"

namespace seiche {

#if defined(__CUDACC__)

/// Partial sums of `count` quantities. A thread of a GPU has one of each, the single thread of the CPU one in each
/// lane.
template <int count, int lanes>
struct PartialSums {
  double of[count];
  SEICHE_FN double& at(int quantity, int) { return of[quantity]; }
};

/// f(group, quantity, sum) for each group of `size` consecutive threads; `threads` is the number of threads of the
/// team. `shared` is common memory for count * threads numbers that no thread uses any more.
template <int threads, int size, int count, int lanes, class F>
SEICHE_FN void sum_groups(const Team& team, const PartialSums<count, lanes>& own, double* shared, F&& f) {
  static_assert(threads >= 32 && threads % size == 0);
  constexpr int warps = threads / 32, groups = threads / size;
  team.barrier();
  static_for<0, count>([&]<int q>() { shared[q * threads + team.thread] = own.of[q]; });
  team.barrier();
  const int warp = team.thread / 32, lane = team.thread % 32;
  if (warp >= warps) return;
  for (int task = warp; task < groups * count; task += warps) {
    const int group = task / count, quantity = task % count;
    const double* part = shared + quantity * threads + group * size;
    double sum = 0;
    for (int k = lane; k < size; k += 32) sum += part[k];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (lane == 0) f(group, quantity, sum);
  }
}

#else

template <int count, int lanes>
struct PartialSums {
  double of[count][lanes];
  SEICHE_FN double& at(int quantity, int lane) { return of[quantity][lane]; }
};

template <int threads, int size, int count, int lanes, class F>
SEICHE_FN void sum_groups(const Team&, const PartialSums<count, lanes>& own, double*, F&& f) {
  for (int quantity = 0; quantity < count; ++quantity) {
    double sum = 0;
    for (int lane = 0; lane < lanes; ++lane) sum += own.of[quantity][lane];
    f(0, quantity, sum);
  }
}

#endif

}  // namespace seiche
