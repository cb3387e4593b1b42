// SPDX-License-Identifier: BSD-3-Clause
/// Groups of numbers that are contiguous in memory.
#pragma once
#include "launch.hpp"

namespace seiche {

/// Contiguous numbers that a thread of a GPU moves together.
template <class T, int n>
struct alignas(n * sizeof(T)) Group {
  T of[n];
};

#if defined(__CUDACC__)
/// A float stored in memory of another type.
using Word = float;

/// Reads the group at `source`, and writes `group` to `target`.
template <int n, class T>
SEICHE_FN Group<T, n> load_group(const T* source) {
  return *reinterpret_cast<const Group<T, n>*>(source);
}
template <int n, class T>
SEICHE_FN void store_group(T* target, const Group<T, n>& group) {
  *reinterpret_cast<Group<T, n>*>(target) = group;
}
#else
using Word __attribute__((may_alias)) = float;
template <int n, class T>
SEICHE_FN Group<T, n> load_group(const T* source) {
  Group<T, n> group;
  static_for<0, n>([&]<int k>() SEICHE_INLINED { group.of[k] = source[k]; });
  return group;
}
template <int n, class T>
SEICHE_FN void store_group(T* target, const Group<T, n>& group) {
  static_for<0, n>([&]<int k>() SEICHE_INLINED { target[k] = group.of[k]; });
}
#endif

}  // namespace seiche
