// SPDX-License-Identifier: BSD-3-Clause
/// The C ABI of the CPU kernel table.
#include <cstring>

#include "row.hpp"

extern "C" {

/// Row of the kernel with this C++ type, or null.
__attribute__((visibility("default"))) const seiche::Row* seiche_find(const char* type) {
  for (int part = 0; part < seiche::table_count; ++part) {
    for (int k = 0; k < *seiche::table_sizes[part]; ++k) {
      if (std::strcmp(seiche::tables[part][k].type, type) == 0) return seiche::tables[part] + k;
    }
  }
  return nullptr;
}

/// Names of the kernel headers that the table was built from, separated by spaces.
__attribute__((visibility("default"))) const char* seiche_headers() {
  return seiche::headers;
}

/// Hash of these headers and of all that they include.
__attribute__((visibility("default"))) const char* seiche_headers_hash() {
  return seiche::headers_hash;
}

/// Runs a row over the items begin ... end - 1 with the given number of threads.
__attribute__((visibility("default"))) void seiche_launch(const seiche::Row* row, const void* arguments,
                                                          long long begin, long long end, int threads) {
  row->launch(arguments, begin, end, threads);
}

/// Moves n numbers (a multiple of 8) with the given number of threads, to measure the memory bandwidth. Ways: 0 copies
/// by ordinary stores, 1 past the caches with prefetched reads, 2 updates `to` in place, 3 adds `from` to `to`; any
/// other way overwrites both, so that the threads place their pages.
__attribute__((visibility("default"))) void seiche_move(double* to, double* from, long long n, int way, int threads) {
  constexpr int line = 8, ahead = 64 * line;
#pragma omp parallel num_threads(threads)
  {
#pragma omp for schedule(static) nowait
    for (long long i = 0; i < n; i += line) {
      double* target = to + i;
      double* source = from + i;
      if (way == 1) {
        seiche::prefetch_line(source + ahead);
        seiche::stream_out(target, source, line * sizeof(double));
      } else if (way == 2) {
        seiche::prefetch_line(target + ahead);
        seiche::for_lanes<line>([&](int k) { target[k] = 1.0 - target[k]; });
      } else if (way == 3) {
        seiche::for_lanes<line>([&](int k) { target[k] += source[k]; });
      } else if (way == 0) {
        seiche::for_lanes<line>([&](int k) { target[k] = source[k]; });
      } else {
        seiche::for_lanes<line>([&](int k) { target[k] = source[k] = 0.25; });
      }
    }
    seiche::stream_fence();
  }
}

}  // extern "C"
