// SPDX-License-Identifier: BSD-3-Clause
/// Relaxation rates of a site (theory/flow, eqs. 8 and 12): constant for a Newtonian fluid, from a viscosity law for
/// blood. The collision with many rates has further rates (eq. 31).
#pragma once
#include "moments.hpp"
#include "rheology.hpp"

namespace seiche {

/// Rates of the even and the odd part of the populations. Equal rates give the BGK collision.
template <class Real>
struct Rates {
  Real even, odd;
};

/// Multiple rates: of the shear stress, its trace, the other even moments, and the odd moments.
template <class Real>
struct MomentRates {
  Real shear, bulk, even, odd;
};

/// omega- for a given omega+: (1/omega+ - 1/2)(1/omega- - 1/2) = magic. magic = 0 selects BGK, omega- = omega+.
template <class Real>
SEICHE_FN Real odd_rate(Real even, Real magic) {
  const Real half_even = Real(2) - even;  // 2 omega+ (tau+ - 1/2)
  const Real odd = Real(2) * half_even / (Real(4) * magic * even + half_even);
  return magic > Real(0) ? odd : even;
}

/// A policy returns the rates of item i from Pi (eq. 5) and the density. `omega_before` is the rate of the shear stress
/// in the last step. `strain` is proportional to S (eq. 6).

/// Newtonian fluid: the same rates everywhere. No bytes.
template <class R>
struct ConstantRates {
  using Real = R;
  Real even, odd;
  static constexpr int bytes = 0;
  SEICHE_FN Real omega_before(Index) const { return even; }
  SEICHE_FN Symmetric<Real> strain(const Symmetric<Real>& p, Index) const { return p; }
  SEICHE_FN Rates<Real> operator()(Index, const Symmetric<Real>&, Real) const { return {even, odd}; }
};

/// A fluid whose viscosity depends on the shear rate. The shear rate is computed from the populations and the rate of
/// the last step (lagged by one step). Reads and writes one rate per site.
template <class Law>
struct LaggedRates {
  using Real = typename Law::Real;
  Real* omega;  ///< rate of the shear stress in the last step, one per site
  Law law;
  Real magic;
  static constexpr int bytes = 2 * sizeof(Real);
  SEICHE_FN Real omega_before(Index i) const { return omega[i]; }
  SEICHE_FN Symmetric<Real> strain(const Symmetric<Real>& p, Index) const { return p; }
  SEICHE_FN Rates<Real> operator()(Index i, const Symmetric<Real>& p, Real rho) const {
    const Real even = Real(1) / (Real(0.5) + Real(3) * law.viscosity(shear_rate(p, omega[i], rho)));
    omega[i] = even;
    return {even, odd_rate(even, magic)};
  }
};

/// The rates of `Shear` for the shear stress and the odd moments, and constant rates for the trace of the stress and
/// the other even moments (eq. 31). A constant of 0 selects the rate of the shear stress. S uses the rate of each part
/// (eq. 33).
template <class Shear>
struct ManyRates {
  using Real = typename Shear::Real;
  Shear shear;
  Real bulk, even;
  static constexpr int bytes = Shear::bytes;
  SEICHE_FN Real omega_before(Index i) const { return shear.omega_before(i); }
  SEICHE_FN Symmetric<Real> strain(const Symmetric<Real>& p, Index i) const {
    const Real omega = shear.omega_before(i);
    return with_trace_times(p, (bulk > Real(0) ? bulk : omega) / omega);
  }
  SEICHE_FN MomentRates<Real> operator()(Index i, const Symmetric<Real>& p, Real rho) const {
    const Rates<Real> rates = shear(i, strain(p, i), rho);
    return {rates.even, bulk > Real(0) ? bulk : rates.even, even > Real(0) ? even : rates.even, rates.odd};
  }
};

}  // namespace seiche
