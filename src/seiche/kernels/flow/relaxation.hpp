// SPDX-License-Identifier: BSD-3-Clause
/// Relaxation rates of a site: constant for a Newtonian fluid, from the shear rate for blood (theory/flow, eqs. 8 and
/// 12).
#pragma once
#include "../math.hpp"
#include "moments.hpp"

namespace seiche {

/// Rates of the even and the odd part of the populations; equal rates are the BGK collision.
template <class Real>
struct Rates {
  Real even, odd;
};

/// omega- that belongs to omega+: (1/omega+ - 1/2)(1/omega- - 1/2) = magic; magic = 0 stands for BGK, omega- = omega+.
template <class Real>
SEICHE_FN Real odd_rate(Real even, Real magic) {
  const Real half_even = Real(2) - even;  // 2 omega+ (tau+ - 1/2)
  const Real odd = Real(2) * half_even / (Real(4) * magic * even + half_even);
  return magic > Real(0) ? odd : even;
}

/// Newtonian fluid: the same rates everywhere. No bytes.
template <class R>
struct ConstantRates {
  using Real = R;
  Real even, odd;
  static constexpr int bytes = 0;
  template <class Lattice, class Force>
  SEICHE_FN Rates<Real> operator()(Index, const Real (&)[Lattice::Q], const Moments<Real>&, const Force&) const {
    return {even, odd};
  }
};

/// Carreau-Yasuda fluid, nu(g) = nu_inf + (nu_0 - nu_inf)(1 + (lambda g)^a)^((n - 1)/a), with the shear rate g taken
/// from the populations and the rate of the last step (lagged by one step). Reads and writes one rate a site.
template <class R>
struct CarreauYasudaRates {
  using Real = R;
  Real* omega;  ///< rate of the even part in the last step, one a site
  Real viscosity_infinity, viscosity_range, relaxation_time, a, exponent, magic;
  static constexpr int bytes = 2 * sizeof(Real);
  SEICHE_FN Real viscosity(Real shear) const {
    const Real thinning = pow_positive(Real(1) + pow_positive(relaxation_time * shear, a), exponent);
    return viscosity_infinity + viscosity_range * thinning;
  }
  template <class Lattice, class Force>
  SEICHE_FN Rates<Real> operator()(Index i, const Real (&f)[Lattice::Q], const Moments<Real>& m,
                                   const Force& force) const {
    const Real shear = shear_rate(nonequilibrium<Lattice>(f, m, force), omega[i], m.rho);
    const Real even = Real(1) / (Real(0.5) + Real(3) * viscosity(shear));
    omega[i] = even;
    return {even, odd_rate(even, magic)};
  }
};

}  // namespace seiche
