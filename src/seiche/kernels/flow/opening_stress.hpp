// SPDX-License-Identifier: BSD-3-Clause
/// Density and stress of sites at openings for the collision with many rates (theory/flow, eqs. 40 and 40a).
#pragma once
#include "observe.hpp"

namespace seiche {

/// Rates with which `Observe` multiplies each part of Pi by -(1 - omega/2) with the rate of this part. `ManyRates`
/// gives 2 rho nu S instead, whose trace has another factor.
template <class Shear>
struct ManyRatesAtOpening : ManyRates<Shear> {
  using Real = typename Shear::Real;
  /// Returns the rate of the trace of the stress at item i.
  SEICHE_FN Real bulk_rate(Index i) const { return this->bulk > Real(0) ? this->bulk : this->omega_before(i); }
  SEICHE_FN Symmetric<Real> strain(const Symmetric<Real>& p, Index i) const {
    return with_trace_times(p, (Real(2) - bulk_rate(i)) / (Real(2) - this->omega_before(i)));
  }
};

/// Columns of `Observe`; the density excess is replaced by the one that is uniform over a section in developed flow
/// (eq. 40a). No further bytes.
template <class Layout, class Relaxation, class Force>
struct ObserveOpening : Observe<Layout, Relaxation, Force> {
  using Real = typename Layout::Real;
  SEICHE_FN void operator()(Index k) const {
    Observe<Layout, Relaxation, Force>::operator()(k);
    const Index i = this->sites[k];
    const Real bulk = this->relaxation.bulk_rate(i);
    const Real share = (this->relaxation.omega_before(i) - bulk) / (Real(2) - bulk);
    Real* column = this->out + k;
    column[0] -= share * (column[4 * this->stride] + column[5 * this->stride] + column[6 * this->stride]);
  }
};

}  // namespace seiche
