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

/// Hash of the kernel headers that the table was built from.
__attribute__((visibility("default"))) const char* seiche_headers_hash() {
  return seiche::headers_hash;
}

/// Runs a row over the items begin ... end - 1 with the given number of threads.
__attribute__((visibility("default"))) void seiche_launch(const seiche::Row* row, const void* arguments,
                                                          long long begin, long long end, int threads) {
  row->launch(arguments, begin, end, threads);
}

/// Copies n bytes with the given number of threads, to measure the memory bandwidth.
__attribute__((visibility("default"))) void seiche_copy(double* to, const double* from, long long n, int threads) {
#pragma omp parallel for simd schedule(static) num_threads(threads)
  for (long long i = 0; i < n; ++i) to[i] = from[i];
}

}  // extern "C"
