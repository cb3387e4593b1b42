// SPDX-License-Identifier: BSD-3-Clause
/// Traces as messages of half precision. Every slot has its own scale, a power of two, in the first of its `slot` + 1
/// words. The largest word of the slot thus uses the full precision of a half (theory/waves, eq. 20). The precision of
/// the state is unchanged.
#pragma once
#include "../launch.hpp"
#include "../math.hpp"

namespace seiche {

/// The largest word of a slot is scaled to 2^14 to 2^15.
inline constexpr float half_headroom = 16384.0f;

/// 2^(e - 127), the power of two for a biased float exponent e.
SEICHE_FN float power_of_two(u32 e) {
  return bit_cast<float>(e << 23);
}

template <class Real, int slot>
struct HalveTraces {
  const Real* trace;
  const u32* slots;  ///< slots of all pieces
  u16* messages;
  static constexpr int bytes = slot * static_cast<int>(sizeof(Real)) + 2 * (slot + 1) + 4;
  using Scratch = NoScratch;
  SEICHE_FN void operator()(const Team& team, Index item, Scratch&) const {
    const Real* source = trace + Index{slots[item]} * slot;
    float largest = 0.0f;
    for (int q = 0; q < slot; ++q) {
      const float size = static_cast<float>(source[q] < Real(0) ? -source[q] : source[q]);
      largest = size > largest ? size : largest;
    }
    const u32 exponent = bit_cast<u32>(largest) >> 23, e = exponent < 16 ? 16 : exponent;
    const float unit = half_headroom * power_of_two(254 - e);
    u16* target = messages + item * (slot + 1);
    team.for_each(slot + 1, [&](int q) SEICHE_INLINED {
      target[q] = q == 0 ? static_cast<u16>(e) : float_to_half(static_cast<float>(source[q == 0 ? 0 : q - 1]) * unit);
    });
  }
};

template <class Real, int slot>
struct RestoreTraces {
  const u16* messages;
  const u32* slots;
  Real* trace;
  static constexpr int bytes = slot * static_cast<int>(sizeof(Real)) + 2 * (slot + 1) + 4;
  using Scratch = NoScratch;
  SEICHE_FN void operator()(const Team& team, Index item, Scratch&) const {
    const u16* source = messages + item * (slot + 1);
    const Real unit = static_cast<Real>(power_of_two(source[0])) / Real(half_headroom);
    Real* target = trace + Index{slots[item]} * slot;
    team.for_each(slot,
                  [&](int q) SEICHE_INLINED { target[q] = static_cast<Real>(half_to_float(source[q + 1])) * unit; });
  }
};

}  // namespace seiche
