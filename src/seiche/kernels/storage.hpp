// SPDX-License-Identifier: BSD-3-Clause
/// Conversion of values to and from storage: plain conversion, or scaled halves.
#pragma once
#include "portable.hpp"

namespace seiche {

/// IEEE binary16 of scaled values: the stored number is 2^15 x, so |x| < 2 and the resolution near zero is 2^-39.
struct f16 {
  u16 bits;
};
inline constexpr float f16_scale = 32768.0f;

template <class Real>
SEICHE_FN Real decode(double x) {
  return static_cast<Real>(x);
}
template <class Real>
SEICHE_FN Real decode(float x) {
  return static_cast<Real>(x);
}
template <class Real>
SEICHE_FN Real decode(f16 x) {
  return static_cast<Real>(half_to_float(x.bits) * (1.0f / f16_scale));
}
SEICHE_FN void encode(double& slot, double x) {
  slot = x;
}
SEICHE_FN void encode(float& slot, double x) {
  slot = static_cast<float>(x);
}
SEICHE_FN void encode(f16& slot, double x) {
  slot.bits = float_to_half(static_cast<float>(x) * f16_scale);
}
SEICHE_FN void encode(float& slot, float x) {
  slot = x;
}
SEICHE_FN void encode(f16& slot, float x) {
  slot.bits = float_to_half(x * f16_scale);
}

}  // namespace seiche
