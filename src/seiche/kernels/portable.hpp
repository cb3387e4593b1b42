// SPDX-License-Identifier: BSD-3-Clause
/// Differences between a host C++20 compiler and NVRTC: attributes, instructions and built-in functions. Cooperation of
/// threads is in launch.hpp, warps.hpp and atomics.hpp. Only headers of this folder test for the compiler; other
/// headers test `Team::single_thread` or `vector_lanes`.
#pragma once

#if !defined(__CUDACC__)
#include <time.h>
#endif

#if defined(__CUDACC__)
#define SEICHE_FN __device__ __forceinline__
/// A long function that several kernels call. On the CPU it is compiled once for all kernels of a source file.
#define SEICHE_CALLED SEICHE_FN
#define SEICHE_INLINED
/// Skips this item. On the CPU all lanes of a vector continue, so their work must be harmless.
#define SEICHE_SKIP_IF(condition) \
  if (condition) return
/// Before a loop: unroll it completely, not at all, or `n` times.
#define SEICHE_UNROLLED _Pragma("unroll")
#define SEICHE_ONE_BY_ONE _Pragma("unroll 1")
#define SEICHE_PRAGMA(text) _Pragma(#text)
#define SEICHE_UNROLLED_BY(n) SEICHE_PRAGMA(unroll(n))
#else
#define SEICHE_FN inline __attribute__((always_inline))
#define SEICHE_CALLED __attribute__((noinline))
#define SEICHE_INLINED __attribute__((always_inline))
#define SEICHE_SKIP_IF(condition)
#define SEICHE_UNROLLED
#define SEICHE_ONE_BY_ONE
#define SEICHE_UNROLLED_BY(n)
#endif

namespace seiche {

/// One of two types.
template <bool first, class First, class Second>
struct Either {
  using Type = First;
};
template <class First, class Second>
struct Either<false, First, Second> {
  using Type = Second;
};

using Index = long long;
using u8 = unsigned char;
using i16 = short;
using u16 = unsigned short;
using i32 = int;
using u32 = unsigned int;
using u64 = unsigned long long;

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
template <class Target, class Source>
SEICHE_FN Target bit_cast(Source x) {
  Target y;
  memcpy(&y, &x, sizeof y);
  return y;
}
/// Words that another device may write or read. Writes before a release are visible after its acquire.
SEICHE_FN void store_release(u32* target, u32 value) {
  __threadfence_system();
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(target), "r"(value) : "memory");
}
SEICHE_FN u32 load_acquire(const u32* source) {
  u32 value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(source) : "memory");
  return value;
}
SEICHE_FN u64 nanoseconds() {
  u64 time;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
  return time;
}
SEICHE_FN double square_root(double x) {
  return __dsqrt_rn(x);
}
SEICHE_FN float square_root(float x) {
  return __fsqrt_rn(x);
}
/// True if the lanes of a vector execute a loop together. Work of few lanes is then better done separately.
inline constexpr bool vector_lanes = false;

/// a b + c, rounded once: the same bits on every device.
SEICHE_FN float multiply_add(float a, float b, float c) {
  return __fmaf_rn(a, b, c);
}
SEICHE_FN double multiply_add(double a, double b, double c) {
  return __fma_rn(a, b, c);
}
/// a b + c, rounded once on a GPU, and twice on a CPU, where a fused operation may be a function call.
template <class Real>
SEICHE_FN Real fused(Real a, Real b, Real c) {
  return multiply_add(a, b, c);
}
/// 1/x of a number that is neither tiny nor huge, without the branches of a division on a GPU.
template <class Real>
SEICHE_FN Real inverse_of(Real x) {
  if constexpr (sizeof(Real) == 4) {
    float guess;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(guess) : "f"(x));
    return __fmaf_rn(__fmaf_rn(-x, guess, 1.0f), guess, guess);
  } else {
    return Real(1) / x;
  }
}
/// Returns its argument and hides its origin from the optimiser.
SEICHE_FN int anew(int value) {
  asm volatile("" : "+r"(value));
  return value;
}
SEICHE_FN float anew(float value) {
  asm("" : "+f"(value));
  return value;
}
SEICHE_FN double anew(double value) {
  asm("" : "+d"(value));
  return value;
}

/// A number, or a pair, that is constant while the kernel runs. A GPU may load it ahead of earlier stores.
template <class T>
SEICHE_FN T unchanging(const T* source) {
  if constexpr (requires { __ldg(source); }) {
    return __ldg(source);
  } else if constexpr (sizeof(T) == 8) {
    const float2 z = __ldg(reinterpret_cast<const float2*>(source));
    return {z.x, z.y};
  } else {
    const double2 z = __ldg(reinterpret_cast<const double2*>(source));
    return {z.x, z.y};
  }
}
/// Prefetches a cache line.
SEICHE_FN void prefetch_line_ahead(const void* source) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(source));
}
/// Copies 4, 8 or 16 aligned bytes into the memory of a team asynchronously. They are available after `wait_for_copies`
/// and a barrier.
template <int bytes>
SEICHE_FN void copy_behind(const void* source, void* target) {
  const auto address = static_cast<u32>(__cvta_generic_to_shared(target));
  if constexpr (bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(source) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(source), "n"(bytes) : "memory");
  }
}
SEICHE_FN void wait_for_copies() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}
/// Ends a group of copies. `wait_for_earlier_copies` waits for all groups but the last one.
SEICHE_FN void end_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
SEICHE_FN void wait_for_earlier_copies() {
  asm volatile("cp.async.wait_group 1;" ::: "memory");
}
/// Stores a value. With `streams`, the value will not be read soon and need not remain in a cache.
template <bool streams, class Real>
SEICHE_FN void store(Real* target, Real value) {
  if constexpr (streams) {
    __stcs(target, value);
  } else {
    *target = value;
  }
}
#else
template <class Target, class Source>
SEICHE_FN Target bit_cast(Source x) {
  return __builtin_bit_cast(Target, x);
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
SEICHE_FN void prefetch_line(const void* source) {
  __builtin_prefetch(source, 0, 2);
}
/// Prefetches a line to the first-level cache.
SEICHE_FN void prefetch_line_soon(const void* source) {
  __builtin_prefetch(source, 0, 3);
}
SEICHE_FN void store_release(u32* target, u32 value) {
  __atomic_store_n(target, value, __ATOMIC_RELEASE);
}
SEICHE_FN u32 load_acquire(const u32* source) {
  return __atomic_load_n(source, __ATOMIC_ACQUIRE);
}
SEICHE_FN u64 nanoseconds() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<u64>(time.tv_sec) * 1000000000u + static_cast<u64>(time.tv_nsec);
}
SEICHE_FN double square_root(double x) {
  return __builtin_sqrt(x);
}
SEICHE_FN float square_root(float x) {
  return __builtin_sqrtf(x);
}
inline constexpr bool vector_lanes = true;
SEICHE_FN float multiply_add(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
SEICHE_FN double multiply_add(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}
template <class Real>
SEICHE_FN Real fused(Real a, Real b, Real c) {
  return a * b + c;
}
template <class Real>
SEICHE_FN Real inverse_of(Real x) {
  return Real(1) / x;
}
template <class T>
SEICHE_FN T anew(T value) {
  return value;
}
template <class T>
SEICHE_FN T unchanging(const T* source) {
  return *source;
}
SEICHE_FN void prefetch_line_ahead(const void*) {}
template <int bytes>
SEICHE_FN void copy_behind(const void*, void*) {}
SEICHE_FN void wait_for_copies() {}
SEICHE_FN void end_copies() {}
SEICHE_FN void wait_for_earlier_copies() {}
template <bool streams, class Real>
SEICHE_FN void store(Real* target, Real value) {
  *target = value;
}
#endif

/// Copies bytes (a multiple of 16) past the caches if the processor can; `stream_fence` makes them visible.
#if defined(__SSE2__) && !defined(__CUDACC__)
SEICHE_FN bool can_stream(const void* target) {
  return (reinterpret_cast<unsigned long>(target) & 15u) == 0;
}
SEICHE_FN void stream_out(void* target, const void* source, int bytes) {
  using Pair = double __attribute__((vector_size(16), may_alias));
  for (int k = 0; k < bytes / 16; ++k) {
    __builtin_ia32_movntpd(static_cast<double*>(target) + 2 * k, static_cast<const Pair*>(source)[k]);
  }
}
SEICHE_FN void stream_fence() {
  __builtin_ia32_sfence();
}
#else
SEICHE_FN bool can_stream(const void*) {
  return false;
}
SEICHE_FN void stream_out(void* target, const void* source, int bytes) {
  for (int k = 0; k < bytes; ++k) static_cast<u8*>(target)[k] = static_cast<const u8*>(source)[k];
}
SEICHE_FN void stream_fence() {}
#endif

}  // namespace seiche
