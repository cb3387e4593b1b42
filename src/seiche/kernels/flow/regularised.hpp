// SPDX-License-Identifier: BSD-3-Clause
/// Regularised collision for layouts that store populations (theory/flow, eqs. 41 and 42). Results are bitwise equal to
/// those of moment storage.
#pragma once
#include "quadratic.hpp"
#include "stream_collide.hpp"

namespace seiche {

struct Regularised {
  template <class Lattice, class Real, class Force>
  static SEICHE_FN void collide(Real (&f)[Lattice::Q], const Moments<Real>& m, const Symmetric<Real>& p,
                                const Rates<Real>& rates, const Force& force) {
    const Quadratic<Real> after = regularised(m, p, rates.even, force);
    static_for<0, Lattice::Q>([&]<int q>() SEICHE_INLINED { f[q] = population<Lattice, q>(after); });
  }
};

}  // namespace seiche
