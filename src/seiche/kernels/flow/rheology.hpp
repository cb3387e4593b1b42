// SPDX-License-Identifier: BSD-3-Clause
/// Kinematic viscosity for a shear rate: the laws of shear-thinning blood (theory/flow, eq. 12; eqs. 34 and 35).
#pragma once
#include "../math.hpp"

namespace seiche {

/// nu(g) = nu_inf + (nu_0 - nu_inf)(1 + (lambda g)^a)^((n - 1)/a), exponent = (n - 1)/a.
template <class R>
struct CarreauYasuda {
  using Real = R;
  Real viscosity_infinity, viscosity_range, relaxation_time, a, exponent;
  SEICHE_FN Real viscosity(Real shear) const {
    const Real thinning = pow_positive(Real(1) + pow_positive(relaxation_time * shear, a), exponent);
    return viscosity_infinity + viscosity_range * thinning;
  }
};

/// nu(g) = (sqrt(tau_y) + sqrt(nu_inf g))^2/g, at most nu_0; the members are the roots of tau_y and of nu_inf.
template <class R>
struct Casson {
  using Real = R;
  Real root_yield_stress, root_viscosity_infinity, viscosity_zero;
  SEICHE_FN Real viscosity(Real shear) const {
    const Real root = root_yield_stress + root_viscosity_infinity * square_root(shear);
    const Real viscosity = root * root / shear;
    return viscosity < viscosity_zero ? viscosity
                                      : viscosity_zero;  // also for 0/0, a fluid at rest without yield stress
  }
};

/// nu(g) = m g^(n - 1) with g clamped between two limits, exponent = n - 1.
template <class R>
struct PowerLaw {
  using Real = R;
  Real consistency, exponent, shear_lowest, shear_highest;
  SEICHE_FN Real viscosity(Real shear) const {
    shear = shear > shear_lowest ? shear : shear_lowest;
    shear = shear < shear_highest ? shear : shear_highest;
    return consistency * pow_positive(shear, exponent);
  }
};

}  // namespace seiche
