// SPDX-License-Identifier: BSD-3-Clause
/// All messages of an exchange in one launch, each with a separate buffer. One launch for each neighbour would take
/// longer than most messages. Bytes per item as in move.hpp; the starts of the parts are cached.
#pragma once
#include "move.hpp"

namespace seiche {

template <class T>
struct PackParts {
  using Value = T;
  const T* array;
  const u32* slots;
  const u64* buffers;   ///< [part] address of the message
  const Index* starts;  ///< [part] its first item
  i32 parts;
  static constexpr int bytes = 2 * sizeof(T) + 4;
  SEICHE_FN T taken(Index k) const { return array[slots[k]]; }
  SEICHE_FN void put(Index k, T value) const {
    int part = 0;
    while (part + 1 < parts && k >= starts[part + 1]) ++part;
    reinterpret_cast<T*>(buffers[part])[k - starts[part]] = value;
  }
  SEICHE_FN void operator()(Index k) const { put(k, taken(k)); }
};

}  // namespace seiche
