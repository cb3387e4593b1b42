// SPDX-License-Identifier: BSD-3-Clause
/// Vectors with one number of each of several lines, on CPUs; their transposition, and complex numbers.
#pragma once
#include "butterfly.hpp"

namespace seiche::kspace {

/// The numbers of `lanes` lines.
template <class Real, int lanes>
struct VectorOfLines {
  typedef Real Vector __attribute__((vector_size(lanes * sizeof(Real))));
  Vector of;
  SEICHE_FN friend VectorOfLines operator+(VectorOfLines a, VectorOfLines b) { return {a.of + b.of}; }
  SEICHE_FN friend VectorOfLines operator-(VectorOfLines a, VectorOfLines b) { return {a.of - b.of}; }
  SEICHE_FN friend VectorOfLines operator-(VectorOfLines a) { return {-a.of}; }
  SEICHE_FN friend VectorOfLines operator*(Real a, VectorOfLines b) { return {a * b.of}; }
  SEICHE_FN friend VectorOfLines fused(Real a, VectorOfLines b, VectorOfLines c) { return {a * b.of + c.of}; }
  SEICHE_FN static VectorOfLines at(const Real* source) {
    VectorOfLines result;
    __builtin_memcpy(&result.of, source, sizeof result.of);
    return result;
  }
  SEICHE_FN void put(Real* target) const { __builtin_memcpy(target, &of, sizeof of); }
};
template <class Real_, int lanes>
struct ScalarOf<VectorOfLines<Real_, lanes>> {
  using Type = Real_;
};

/// The numbers 0 ... count - 1.
template <int... k>
struct Numbered {};
template <int count, int... k>
struct NumbersTo : NumbersTo<count - 1, count - 1, k...> {};
template <int... k>
struct NumbersTo<0, k...> {
  using Type = Numbered<k...>;
};

/// Transposes a square of vectors: exchanges numbers at distance `step`, then at twice that distance.
template <int step, class Real, int lanes, int... k>
SEICHE_FN void transpose_from(VectorOfLines<Real, lanes>* rows, Numbered<k...> numbers) {
  if constexpr (step < lanes) {
    for (int i = 0; i < lanes; ++i) {
      if ((i & step) == 0) {
        const auto a = rows[i].of, b = rows[i + step].of;
        rows[i].of = __builtin_shufflevector(a, b, ((k & step) == 0 ? k : k - step + lanes)...);
        rows[i + step].of = __builtin_shufflevector(a, b, ((k & step) == 0 ? k + step : k + lanes)...);
      }
    }
    transpose_from<2 * step>(rows, numbers);
  }
}
template <class Real, int lanes>
SEICHE_FN void transpose(VectorOfLines<Real, lanes>* rows) {
  transpose_from<1>(rows, typename NumbersTo<lanes>::Type{});
}

/// Converts between complex numbers and vectors of their real and imaginary parts.
template <class Real, int lanes>
SEICHE_FN Complex<VectorOfLines<Real, lanes>> separated(const Real* source) {
  Real re[lanes], im[lanes];
#pragma omp simd
  for (int lane = 0; lane < lanes; ++lane) {
    re[lane] = source[2 * lane];
    im[lane] = source[2 * lane + 1];
  }
  return {VectorOfLines<Real, lanes>::at(re), VectorOfLines<Real, lanes>::at(im)};
}
template <class Real, int lanes>
SEICHE_FN void interleave(Real* target, const Complex<VectorOfLines<Real, lanes>>& z, int count = lanes) {
  Real re[lanes], im[lanes];
  z.re.put(re);
  z.im.put(im);
  if (count == lanes) {
#pragma omp simd
    for (int lane = 0; lane < lanes; ++lane) {
      target[2 * lane] = re[lane];
      target[2 * lane + 1] = im[lane];
    }
  } else {
    for (int lane = 0; lane < count; ++lane) {
      target[2 * lane] = re[lane];
      target[2 * lane + 1] = im[lane];
    }
  }
}
/// The same for `count` numbers, padded by zero.
template <class Real, int lanes>
SEICHE_FN Complex<VectorOfLines<Real, lanes>> separated(const Real* source, int count) {
  if (count == lanes) return separated<Real, lanes>(source);
  Real re[lanes] = {}, im[lanes] = {};
  for (int lane = 0; lane < count; ++lane) {
    re[lane] = source[2 * lane];
    im[lane] = source[2 * lane + 1];
  }
  return {VectorOfLines<Real, lanes>::at(re), VectorOfLines<Real, lanes>::at(im)};
}

}  // namespace seiche::kspace
