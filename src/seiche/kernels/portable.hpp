// SPDX-License-Identifier: BSD-3-Clause
/// The only file that knows which compiler is running: a host C++20 compiler or NVRTC. Kernels include nothing else.
#pragma once

#if defined(__CUDACC__)
#define SEICHE_FN __device__ __forceinline__
#define SEICHE_FLATTEN
/// Leave this item alone; on the CPU all lanes of a vector go on instead, so the work must then be harmless.
#define SEICHE_SKIP_IF(condition) \
  if (condition) return
#else
#define SEICHE_FN inline __attribute__((always_inline))
#define SEICHE_FLATTEN __attribute__((flatten))
#define SEICHE_SKIP_IF(condition)
#endif

namespace seiche {

using Index = long long;
using u8 = unsigned char;
using i16 = short;
using u16 = unsigned short;
using i32 = int;
using u32 = unsigned int;
using u64 = unsigned long long;

/// IEEE binary16 of scaled values: what is stored is 2^15 x, so that |x| < 2 and the resolution at rest is 2^-39.
struct f16 {
  u16 bits;
};
inline constexpr float f16_scale = 32768.0f;

#if defined(__CUDACC__)
SEICHE_FN float half_to_float(u16 h) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
  return x;
}
SEICHE_FN u16 float_to_half(float x) {
  u16 h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
}
template <class To, class From>
SEICHE_FN To bit_cast(From x) {
  To y;
  memcpy(&y, &x, sizeof y);
  return y;
}
SEICHE_FN double square_root(double x) {
  return __dsqrt_rn(x);
}
SEICHE_FN float square_root(float x) {
  return __fsqrt_rn(x);
}
#else
template <class To, class From>
SEICHE_FN To bit_cast(From x) {
  return __builtin_bit_cast(To, x);
}
/// binary16 to binary32 and back (to nearest, ties to even) in integer steps that vectorise; the same bits as the
/// GPU's.
SEICHE_FN float half_to_float(u16 h) {
  const float x = bit_cast<float>((h & 0x7fffu) << 13) * 0x1p112f;
  const u32 bits = bit_cast<u32>(x) | (x >= 65536.0f ? 0x7f800000u : 0u);
  return bit_cast<float>(bits | (h & 0x8000u) << 16);
}
SEICHE_FN u16 float_to_half(float value) {
  const u32 bits = bit_cast<u32>(value), x = bits & 0x7fffffffu;
  const u32 normal = (x - 0x38000000u + 0xfffu + (x >> 13 & 1u)) >> 13;
  const u32 small = bit_cast<u32>(bit_cast<float>(x) + 0.5f) - 0x3f000000u;
  const u32 huge = x > 0x7f800000u ? 0x7fffu : 0x7c00u;
  const u32 finite = x < 0x38800000u ? small : normal;
  return static_cast<u16>((x >= 0x47800000u ? huge : finite) | (bits >> 16 & 0x8000u));
}
SEICHE_FN double square_root(double x) {
  return __builtin_sqrt(x);
}
SEICHE_FN float square_root(float x) {
  return __builtin_sqrtf(x);
}
#endif

/// What storage `Store` keeps of a value, and back: plain conversion, or scaled halves.
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
