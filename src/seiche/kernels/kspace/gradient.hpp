// SPDX-License-Identifier: BSD-3-Clause
/// Spectra of the derivatives of one field at the staggered points (theory/ultrasound, eq. 6). The spectrum of the
/// field is the last component of `work`, which is overwritten.
/// Bytes a half row: a spectrum and kappa read, D spectra written.
#pragma once
#include "rows.hpp"

namespace seiche::kspace {

template <class Real, int D>
struct SpectralGradient {
  Complex<Real>* work;
  const Complex<Real>* derivative;
  const Real* kappa;
  Rows rows;
  using Scratch = NoScratch;
  static constexpr int bytes = (2 * D + 3) * sizeof(Real);

  SEICHE_FN void operator()(const Team& team, Index row, Scratch&) const {
    const Index base = row * rows.half;
    const Complex<Real>* const field = work + (D - 1) * rows.spectrum + base;
    const Real* const correction = kappa + base;
    const Complex<Real>* const last = derivative + rows.template entry<2>(row);
    const Complex<Real> first = D > 2 ? derivative[rows.template entry<0>(row)] : Complex<Real>{};
    const Complex<Real> middle = D > 1 ? derivative[rows.template entry<1>(row)] : Complex<Real>{};
    Complex<Real>* const out = work + base;
    const Index stride = rows.spectrum;
    team.each(rows.half, [&](int c) SEICHE_INLINED {
      const Complex<Real> corrected = correction[c] * field[c];
      if constexpr (D > 2) out[c] = first * corrected;
      if constexpr (D > 1) out[(D - 2) * stride + c] = middle * corrected;
      out[(D - 1) * stride + c] = last[c] * corrected;
    });
  }
};

}  // namespace seiche::kspace
