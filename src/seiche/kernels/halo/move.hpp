// SPDX-License-Identifier: BSD-3-Clause
/// The two ends of a halo message: slots of an array into a buffer, and a buffer into slots (replaced or added).
/// Bytes an item: one value read, one written, one slot number.
#pragma once
#include "../launch.hpp"

namespace seiche {

template <class T>
struct Pack {
  const T* array;
  const u32* slots;
  T* buffer;
  static constexpr int bytes = 2 * sizeof(T) + 4;
  SEICHE_FN void operator()(Index k) const { buffer[k] = array[slots[k]]; }
};

template <class T>
struct Unpack {
  const T* buffer;
  const u32* slots;
  T* array;
  static constexpr int bytes = 2 * sizeof(T) + 4;
  SEICHE_FN void operator()(Index k) const { array[slots[k]] = buffer[k]; }
};

/// Slots of one message are distinct; messages are added one after another, so that the order of the sums is fixed.
template <class T>
struct UnpackAdd {
  const T* buffer;
  const u32* slots;
  T* array;
  static constexpr int bytes = 3 * sizeof(T) + 4;
  SEICHE_FN void operator()(Index k) const { array[slots[k]] += buffer[k]; }
};

}  // namespace seiche
