// SPDX-License-Identifier: BSD-3-Clause
/// Properties of the medium at a point, uniform or from arrays, and the equation of state.
#pragma once
#include "rows.hpp"

namespace seiche::kspace {

template <class R>
struct UniformMedium {
  using Real = R;
  Real rho0, c0, BonA, tau;
  static constexpr int fields = 0;
  SEICHE_FN Real density(Index) const { return rho0; }
  SEICHE_FN Real sound_speed(Index) const { return c0; }
  SEICHE_FN Real nonlinearity(Index) const { return BonA; }
  SEICHE_FN Real absorption(Index) const { return tau; }
};

template <class R>
struct VaryingMedium {
  using Real = R;
  const Real *rho0, *c0, *BonA, *tau;
  static constexpr int fields = 1;
  SEICHE_FN Real density(Index i) const { return unchanging(rho0 + i); }
  SEICHE_FN Real sound_speed(Index i) const { return unchanging(c0 + i); }
  SEICHE_FN Real nonlinearity(Index i) const { return unchanging(BonA + i); }
  SEICHE_FN Real absorption(Index i) const { return unchanging(tau + i); }
};

/// rho + (B/A) rho^2/(2 rho0), or rho alone: the factor of c0^2 in a lossless medium (theory/ultrasound, eq. 10).
template <bool nonlinear, class Medium, class Real>
SEICHE_FN Real compression(const Medium& medium, Index i, Real rho) {
  if constexpr (nonlinear) {
    return rho + medium.nonlinearity(i) * rho * rho * inverse_of(Real(2) * medium.density(i));
  } else {
    return rho;
  }
}

/// Computes the pressure from the new density rho and from rate = rho0 div u (theory/ultrasound, eqs. 10 to 12), with
/// Stokes absorption or without. `padded` is the position of point i in the work arrays.
template <class Real, bool nonlinear, bool absorbing>
struct StateEquation {
  Real* p;
  static constexpr bool uses_rate = absorbing;
  static constexpr int bytes = sizeof(Real);
  template <class Medium>
  static constexpr int medium_bytes =
      Medium::fields * ((nonlinear ? 3 : 1) + (absorbing ? nonlinear ? 1 : 2 : 0)) * sizeof(Real);
  template <class Medium>
  SEICHE_FN void operator()(const Medium& medium, Index i, Index, Real rho, Real rate) const {
    const Real c = medium.sound_speed(i);
    Real terms = compression<nonlinear>(medium, i, rho);
    if constexpr (absorbing) terms += medium.absorption(i) * rate;
    p[i] = c * c * terms;
  }
};
template <class Real, bool nonlinear>
using Lossless = StateEquation<Real, nonlinear, false>;
template <class Real, bool nonlinear>
using Stokes = StateEquation<Real, nonlinear, true>;

/// Stores the inputs of the fractional Laplacians. p has the compression until the Laplacians are computed.
template <class Real, bool nonlinear>
struct PowerLawInputs {
  Real *p, *rate_out, *rho_out;
  static constexpr bool uses_rate = true;
  static constexpr int bytes = 3 * sizeof(Real);
  template <class Medium>
  static constexpr int medium_bytes = Medium::fields * (nonlinear ? 2 : 1) * sizeof(Real);
  template <class Medium>
  SEICHE_FN void operator()(const Medium& medium, Index i, Index padded, Real rho, Real rate) const {
    p[i] = compression<nonlinear>(medium, i, rho);
    rate_out[padded] = rate;
    rho_out[padded] = rho;
  }
};

/// Stores the rate for `StateOfDensity`, in steps whose sources change the density before the pressure is computed, or
/// the density alone.
template <class Real, bool rate>
struct StoreTerm {
  Real* term;
  static constexpr bool uses_rate = rate;
  static constexpr int bytes = sizeof(Real);
  template <class Medium>
  static constexpr int medium_bytes = rate ? Medium::fields * sizeof(Real) : 0;
  template <class Medium>
  SEICHE_FN void operator()(const Medium&, Index i, Index padded, Real density, Real change) const {
    term[rate ? padded : i] = rate ? change : density;
  }
};

}  // namespace seiche::kspace
