// SPDX-License-Identifier: BSD-3-Clause
/// Two-relaxation-time collision with Guo's force (theory/flow, eqs. 7 to 10); equal rates are BGK.
#pragma once
#include "relaxation.hpp"

namespace seiche {

struct Trt {
  /// f+- = f+- - omega+- (f+- - feq+-) + h+-, pair by pair of opposite directions; populations are shifted by the
  /// weight.
  template <class Lattice, class Real, class Force>
  static SEICHE_FN void collide(Real (&f)[Lattice::Q], const Moments<Real>& m, const Rates<Real>& rates,
                                const Force& force) {
    const Real square = Real(1.5) * (m.ux * m.ux + m.uy * m.uy + m.uz * m.uz);
    const Real rest = m.excess - m.rho * square;
    Real work = Real(0), keep_even = Real(0), keep_odd = Real(0);
    if constexpr (Force::present) {
      work = Real(3) * (m.ux * force.x() + m.uy * force.y() + m.uz * force.z());
      keep_even = Real(1) - Real(0.5) * rates.even;
      keep_odd = Real(1) - Real(0.5) * rates.odd;
    }
    constexpr Real w0 = static_cast<Real>(Lattice::weight(0));
    f[0] -= rates.even * (f[0] - w0 * rest);
    if constexpr (Force::present) f[0] -= keep_even * w0 * work;
    each<0, (Lattice::Q - 1) / 2>([&]<int pair>() SEICHE_INLINED {
      constexpr int a = 2 * pair + 1, b = 2 * pair + 2;
      constexpr Real w = static_cast<Real>(Lattice::weight(a));
      const Real cu = along<Lattice, a>(m.ux, m.uy, m.uz);
      const Real even_equilibrium = w * (rest + m.rho * (Real(4.5) * cu * cu));
      const Real odd_equilibrium = (Real(3) * w) * (m.rho * cu);
      Real even = rates.even * (Real(0.5) * (f[a] + f[b]) - even_equilibrium);
      Real odd = rates.odd * (Real(0.5) * (f[a] - f[b]) - odd_equilibrium);
      if constexpr (Force::present) {
        const Real cg = along<Lattice, a>(force.x(), force.y(), force.z());
        even -= keep_even * (w * (Real(9) * cu * cg - work));
        odd -= keep_odd * ((Real(3) * w) * cg);
      }
      f[a] -= even + odd;
      f[b] -= even - odd;
    });
  }
};

}  // namespace seiche
