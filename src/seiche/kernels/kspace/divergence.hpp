// SPDX-License-Identifier: BSD-3-Clause
/// Products of spectra with tables, in place.
#pragma once
#include "rows.hpp"

namespace seiche::kspace {

/// Derivatives of the D components, each along its axis, from the staggered points (theory/ultrasound, eq. 8).
/// Bytes a half row: D spectra read and written, kappa.
template <class Real, int D>
struct SpectralDivergence {
  Complex<Real>* work;
  const Complex<Real>* derivative;
  const Real* kappa;
  Rows rows;
  using Scratch = NoScratch;
  static constexpr int bytes = (4 * D + 1) * sizeof(Real);

  SEICHE_FN void operator()(const Team& team, Index row, Scratch&) const {
    const Index base = row * rows.half;
    const Real* const correction = kappa + base;
    const Complex<Real>* const last = derivative + rows.template entry<2>(row);
    const Complex<Real> first = D > 2 ? derivative[rows.template entry<0>(row)] : Complex<Real>{};
    const Complex<Real> middle = D > 1 ? derivative[rows.template entry<1>(row)] : Complex<Real>{};
    Complex<Real>* const spectra = work + base;
    const Index stride = rows.spectrum;
    team.each(rows.half, [&](int c) SEICHE_INLINED {
      const Real k = correction[c];
      if constexpr (D > 2) spectra[c] = first * (k * spectra[c]);
      if constexpr (D > 1) spectra[(D - 2) * stride + c] = middle * (k * spectra[(D - 2) * stride + c]);
      spectra[(D - 1) * stride + c] = last[c] * (k * spectra[(D - 1) * stride + c]);
    });
  }
};

/// A spectrum times a complex table along one axis: a shift by half a cell (theory/ultrasound, eq. 19).
template <class Real, int axis>
struct SpectralShift {
  Complex<Real>* spectrum;
  const Complex<Real>* shift;
  Rows rows;
  using Scratch = NoScratch;
  static constexpr int bytes = 4 * sizeof(Real);

  SEICHE_FN void operator()(const Team& team, Index row, Scratch&) const {
    Complex<Real>* const out = spectrum + row * rows.half;
    const Complex<Real>* const table = shift + rows.template entry<axis>(row);
    const Complex<Real> same = table[0];
    team.each(rows.half, [&](int c) SEICHE_INLINED { out[c] = (axis == 2 ? table[c] : same) * out[c]; });
  }
};

/// A spectrum times a real table of the same shape: the correction of additive sources (theory/ultrasound, eq. 16).
template <class Real>
struct SpectralFilter {
  Complex<Real>* spectrum;
  const Real* factor;
  Rows rows;
  using Scratch = NoScratch;
  static constexpr int bytes = 5 * sizeof(Real);

  SEICHE_FN void operator()(const Team& team, Index row, Scratch&) const {
    Complex<Real>* const out = spectrum + row * rows.half;
    const Real* const factors = factor + row * rows.half;
    team.each(rows.half, [&](int c) SEICHE_INLINED { out[c] = factors[c] * out[c]; });
  }
};

}  // namespace seiche::kspace
