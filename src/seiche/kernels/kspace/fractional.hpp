// SPDX-License-Identifier: BSD-3-Clause
/// The fractional Laplacians of power-law absorption (theory/ultrasound, eq. 12): spectrum 0 of `work` times k^(y-2),
/// spectrum 1 times k^(y-1), zero at k = 0. Bytes per half row: two spectra read and written.
#pragma once
#include "../math.hpp"
#include "rows.hpp"

namespace seiche::kspace {

/// Falls from 1 at the square `passband` of the wave number to 0 at 1/`slope` beyond it (eq. 52); 1 if `slope` is 0.
template <class Real>
SEICHE_FN Real taper(Real k2, Real passband, Real slope) {
  const Real fall = slope * (passband - k2), rest = Real(1) + (fall < Real(0) ? fall : Real(0));
  const Real inside = rest > Real(0) ? rest : Real(0);
  return inside * inside * (Real(3) - Real(2) * inside);
}

/// k^(y-2) over the number of points.
template <class Real>
SEICHE_FN Real laplacian_power(Real k2, Real exponent, Real scale) {
  return k2 > Real(0) ? scale * pow_positive(k2, exponent) : Real(0);
}

template <class Real>
struct FractionalLaplacians {
  Complex<Real>* work;
  const Real* squares;  // of the wave numbers along each axis
  Rows rows;
  Real exponent, scale;  // (y - 2)/2; 1 over the number of points
  Real passband, slope;  // of the taper
  using Scratch = NoScratch;
  static constexpr int bytes = 8 * sizeof(Real);

  SEICHE_FN void operator()(const Team& team, Index row, Scratch&) const {
    Complex<Real>* const absorbed = work + row * rows.half;
    Complex<Real>* const dispersed = absorbed + rows.spectrum;
    const Real* const last = squares + rows.template entry<2>(row);
    const Real across = squares[rows.template entry<0>(row)] + squares[rows.template entry<1>(row)];
    const Real power = exponent, number = scale, low = passband, fall = slope;
    team.for_each(rows.half, [&](int c) SEICHE_INLINED {
      const Real k2 = across + last[c];
      const Real window = taper(k2, low, fall);
      const Real lower = laplacian_power(k2, power, number);
      absorbed[c] = window * lower * absorbed[c];
      dispersed[c] = window * (lower * square_root(k2)) * dispersed[c];
    });
  }
};

}  // namespace seiche::kspace
