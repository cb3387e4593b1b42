// SPDX-License-Identifier: BSD-3-Clause
/// Products of spectra with tables, in place: shifts and filters.
#pragma once
#include "rows.hpp"

namespace seiche::kspace {

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
    team.for_each(rows.half, [&](int c) SEICHE_INLINED { out[c] = (axis == 2 ? table[c] : same) * out[c]; });
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
    team.for_each(rows.half, [&](int c) SEICHE_INLINED { out[c] = factors[c] * out[c]; });
  }
};

}  // namespace seiche::kspace
