// SPDX-License-Identifier: BSD-3-Clause
/// Spectra of derivatives, each along the axis of its component, in place (theory/ultrasound, eqs. 6 and 8).
#pragma once
#include "rows.hpp"

namespace seiche::kspace {

/// Derivatives of one field, the last component of `work` (`of_one`), or of every component.
/// Bytes per half row: the spectra read, kappa, D spectra written.
template <class Real, int D, bool of_one>
struct SpectralDerivatives {
  Complex<Real>* work;
  const Complex<Real>* derivative;
  const Real* kappa;
  Rows rows;
  using Scratch = NoScratch;
  static constexpr int bytes = (2 * (of_one ? 1 : D) + 1 + 2 * D) * sizeof(Real);

  SEICHE_FN void operator()(const Team& team, Index row, Scratch&) const {
    const Index base = row * rows.half;
    const Real* const correction = kappa + base;
    const Complex<Real>* const last = derivative + rows.template entry<2>(row);
    const Complex<Real> first = D > 2 ? derivative[rows.template entry<0>(row)] : Complex<Real>{};
    const Complex<Real> middle = D > 1 ? derivative[rows.template entry<1>(row)] : Complex<Real>{};
    Complex<Real>* const spectra = work + base;
    const Index stride = rows.spectrum;
    team.for_each(rows.half, [&](int c) SEICHE_INLINED {
      const Real k = correction[c];
      const Complex<Real> one = k * spectra[(D - 1) * stride + c];
      if constexpr (D > 2) spectra[c] = first * (of_one ? one : k * spectra[c]);
      if constexpr (D > 1) {
        Complex<Real>& along_middle = spectra[(D - 2) * stride + c];
        along_middle = middle * (of_one ? one : k * along_middle);
      }
      spectra[(D - 1) * stride + c] = last[c] * one;
    });
  }
};

/// At the staggered points (eq. 6).
template <class Real, int D>
using SpectralGradient = SpectralDerivatives<Real, D, true>;
/// From the staggered points (eq. 8).
template <class Real, int D>
using SpectralDivergence = SpectralDerivatives<Real, D, false>;

}  // namespace seiche::kspace
