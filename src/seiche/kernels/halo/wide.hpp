// SPDX-License-Identifier: BSD-3-Clause
/// Copies between slots and a message as in move.hpp, with 64-bit slot numbers: for arrays of more than 2^32 values.
/// Bytes per item: one value read, one written, one slot number.
#pragma once
#include "move.hpp"

namespace seiche {

template <class T, bool packs>
struct WideSlotCopy {
  using Value = T;
  T* array;
  const Index* slots;
  T* buffer;
  static constexpr int bytes = 2 * sizeof(T) + sizeof(Index);
  SEICHE_FN T taken(Index k) const { return packs ? array[slots[k]] : buffer[k]; }
  SEICHE_FN void put(Index k, T value) const { (packs ? buffer[k] : array[slots[k]]) = value; }
  SEICHE_FN void operator()(Index k) const { put(k, taken(k)); }
};
template <class T>
using WidePack = WideSlotCopy<T, true>;
template <class T>
using WideUnpack = WideSlotCopy<T, false>;

}  // namespace seiche
