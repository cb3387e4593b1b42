// SPDX-License-Identifier: BSD-3-Clause
/// Memory layout of grids for kernels whose items are rows, that is, lines along the last of three axes. A grid of D <
/// 3 dimensions has extent 1 along the first 3 - D axes. A spectrum has half rows of length/2 + 1 complex numbers,
/// which begin `half` numbers apart: as many, or more for kernels that transform lines, whose half rows then begin at
/// whole lines of memory. An in-place transform stores a row of reals in the memory of a half row, so such rows are
/// 2 half apart ("padded").
#pragma once
#include "../launch.hpp"

namespace seiche::kspace {

template <class Real>
struct Complex {
  Real re, im;
};
template <class Real>
SEICHE_FN Complex<Real> operator*(Complex<Real> a, Complex<Real> b) {
  return {fused(a.re, b.re, -(a.im * b.im)), fused(a.re, b.im, a.im * b.re)};
}
template <class Real>
SEICHE_FN Complex<Real> operator*(Real a, Complex<Real> b) {
  return {a * b.re, a * b.im};
}

/// True if a team consists of several threads, that is, on a GPU.
template <class T>
concept ManyThreads = !T::single_thread;
template <class T>
SEICHE_FN int thread_of(const T& team) {
  if constexpr (ManyThreads<T>) {
    return team.thread;
  } else {
    return 0;
  }
}

struct Rows {
  i32 planes, middle, length, half;
  Index points, spectrum;  // numbers of a real field, complex numbers of a spectrum

  SEICHE_FN int plane_of(Index row) const { return static_cast<int>(static_cast<u32>(row) / static_cast<u32>(middle)); }
  SEICHE_FN int middle_of(Index row) const {
    return static_cast<int>(static_cast<u32>(row) % static_cast<u32>(middle));
  }
  /// Position of the entry of a row in tables that have the numbers of axis 0, then 1, then 2.
  template <int axis>
  SEICHE_FN int entry(Index row) const {
    if constexpr (axis == 0) return plane_of(row);
    if constexpr (axis == 1) return planes + middle_of(row);
    return planes + middle;
  }
  /// Entry of number m of a row, for an axis known only at run time.
  SEICHE_FN int entry(int axis, Index row, int m) const {
    return axis == 2 ? entry<2>(row) + m : axis == 1 ? entry<1>(row) : entry<0>(row);
  }
  /// Distance from a point of the row to the next one along axis 0 or 1, zero in the last plane.
  template <int axis>
  SEICHE_FN Index to_next(Index row) const {
    if constexpr (axis == 0) return plane_of(row) + 1 < planes ? static_cast<Index>(middle) * length : 0;
    return middle_of(row) + 1 < middle ? length : 0;
  }
};

/// f(j) for j < count, in sequence by the same instructions. Unrolled copies would be interleaved and use additional
/// registers.
template <int count, class F>
SEICHE_FN void one_by_one(F&& f) {
  SEICHE_ONE_BY_ONE
  for (int j = 0; j < count; ++j) f(j);
}

/// The axis of component j of D.
template <int D, int j>
inline constexpr int axis_of = 3 - D + j;

}  // namespace seiche::kspace
