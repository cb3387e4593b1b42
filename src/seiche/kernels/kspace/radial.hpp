// SPDX-License-Identifier: BSD-3-Clause
/// Axisymmetric grids (theory/ultrasound, section 15): fields continued beyond both ends of the radial axis, which is
/// the last one, and the spectra of the divergence in cylindrical coordinates.
#pragma once
#include "rows.hpp"

namespace seiche::kspace {

/// Writes numbers `first` to `period` - 1 of padded rows: number m is `factor[m]` times number `index[m]` of the row of
/// a field with `row_stride` numbers. The field may be the beginning of the padded rows, if it is shorter than `first`.
/// Bytes per complex number of a half row: two numbers read at most, two written; the tables remain in the cache.
template <class Real>
struct ContinueRows {
  const Real* field;
  Real* padded;
  const u32* index;
  const Real* factor;
  Rows rows;
  Index row_stride;
  i32 first, period;
  using Scratch = NoScratch;
  static constexpr int bytes = 4 * sizeof(Real);

  SEICHE_FN void operator()(const Team& team, Index row, Scratch&) const {
    const Real* const in = field + row * row_stride;
    Real* const out = padded + 2 * row * rows.half;
    const u32* const source = index;
    const Real* const factors = factor;
    const int start = first;
    team.for_each(period - start,
                  [&](int c) SEICHE_INLINED { out[start + c] = factors[start + c] * in[source[start + c]]; });
  }
};

/// Spectra of du_x/dx and du_r/dr + u_r/r, in place in the first two of three spectra: those of u_x, u_r and u_r/r
/// (theory/ultrasound, eq. 35). `derivative` has the factors i k exp(-i k d/2)/N of both axes, `shift` those of the
/// radial axis without i k. Bytes per complex number: three spectra and kappa read, two spectra written.
template <class Real>
struct AxisymmetricDivergence {
  Complex<Real>* work;
  const Complex<Real>*derivative, *shift;
  const Real* kappa;
  Rows rows;
  using Scratch = NoScratch;
  static constexpr int bytes = 11 * sizeof(Real);

  SEICHE_FN void operator()(const Team& team, Index row, Scratch&) const {
    const Index base = row * rows.half, stride = rows.spectrum;
    const Real* const correction = kappa + base;
    const Complex<Real> axial = derivative[rows.template entry<1>(row)];
    const Complex<Real>* const radial = derivative + rows.template entry<2>(row);
    const Complex<Real>* const shift_factors = shift;
    Complex<Real>* const spectra = work + base;
    team.for_each(rows.half, [&](int c) SEICHE_INLINED {
      const Real k = correction[c];
      const Complex<Real> slope = radial[c] * spectra[stride + c],
                          quotient = shift_factors[c] * spectra[2 * stride + c];
      spectra[c] = axial * (k * spectra[c]);
      spectra[stride + c] = k * Complex<Real>{slope.re + quotient.re, slope.im + quotient.im};
    });
  }
};

}  // namespace seiche::kspace
