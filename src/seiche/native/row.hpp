// SPDX-License-Identifier: BSD-3-Clause
/// One row of the CPU kernel table: name, loop, size of the argument struct, bytes an item.
#pragma once
#include "launch.hpp"

namespace seiche {

struct Row {
  const char* type;
  void (*launch)(const void* arguments, Index begin, Index end, int threads);
  int size;
  int bytes;
};

extern const Row* const tables[];
extern const int* const table_sizes[];
extern const int table_count;
extern const char* const headers;
extern const char* const headers_hash;

}  // namespace seiche

#define SEICHE_ROW(...)                                                           \
  Row {                                                                           \
    #__VA_ARGS__, &for_each<__VA_ARGS__>, sizeof(__VA_ARGS__), __VA_ARGS__::bytes \
  }
