// SPDX-License-Identifier: BSD-3-Clause
/// Copies between slots and a message as in move.hpp, with 64-bit slot numbers: for arrays of more than 2^32 values.
/// Bytes per item: one value read, one written, one slot number.
#pragma once
#include "move.hpp"

namespace seiche {

template <class T>
using WidePack = SlotCopy<T, true, Index>;
template <class T>
using WideUnpack = SlotCopy<T, false, Index>;

}  // namespace seiche
