// SPDX-License-Identifier: BSD-3-Clause
/// Collisions with two rates and Guo's force (theory/flow, eqs. 7 to 10; equal rates are BGK), and with many (eq. 31).
#pragma once
#include "relaxation.hpp"

namespace seiche {

struct Trt {
  /// f+- = f+- - omega+- (f+- - feq+-) + h+- for each pair of opposite directions. Populations are shifted by the
  /// weight. Products that directions share are formed first: feq+ = w (rest + c.3j c.(3/2)u), feq- = w c.3j.
  template <class Lattice, class Real, class Force>
  static SEICHE_FN void collide(Real (&f)[Lattice::Q], const Moments<Real>& m, const Symmetric<Real>&,
                                const Rates<Real>& rates, const Force& force) {
    const Real jx = m.rho * m.ux, jy = m.rho * m.uy, jz = m.rho * m.uz;
    const Real vx = Real(1.5) * m.ux, vy = Real(1.5) * m.uy, vz = Real(1.5) * m.uz;
    const Real rest = m.excess - (jx * vx + jy * vy + jz * vz);
    const Real half_even = Real(0.5) * rates.even, half_odd = Real(0.5) * rates.odd;
    Real work = Real(0), keep_even = Real(0), keep_odd = Real(0);
    if constexpr (Force::present) {
      work = Real(3) * (m.ux * force.x() + m.uy * force.y() + m.uz * force.z());
      keep_even = Real(1) - half_even;
      keep_odd = Real(1) - half_odd;
    }
    constexpr Real w0 = static_cast<Real>(Lattice::weight(0));
    f[0] -= rates.even * (f[0] - w0 * rest);
    if constexpr (Force::present) f[0] -= keep_even * w0 * work;
    static_for<0, (Lattice::Q - 1) / 2>([&]<int pair>() SEICHE_INLINED {
      constexpr int a = 2 * pair + 1, b = 2 * pair + 2;
      constexpr Real w = static_cast<Real>(Lattice::weight(a));
      const Real cj = along<Lattice, a>(Real(3) * jx, Real(3) * jy, Real(3) * jz), cv = along<Lattice, a>(vx, vy, vz);
      // A GPU adds them once more than needed: the sums of the moments would occupy twice the registers of f.
      const Real fa = anew(f[a]), fb = anew(f[b]);
      Real even = half_even * ((fa + fb) - (Real(2) * w) * (rest + cj * cv));
      Real odd = half_odd * ((fa - fb) - (Real(2) * w) * cj);
      if constexpr (Force::present) {
        const Real cg = along<Lattice, a>(force.x(), force.y(), force.z());
        even -= keep_even * (w * (Real(6) * cv * cg - work));
        odd -= keep_odd * ((Real(3) * w) * cg);
      }
      f[a] = fa - (even + odd);
      f[b] = fb - (even - odd);
    });
  }
};

/// Multiple relaxation rates. The even part first relaxes with the rate of its higher moments. The stress is then
/// corrected to its own two rates through its Hermite polynomials: f -= 9/2 w (c c - I/3):T with T = (omega_s -
/// omega_e)(Pi - I tr Pi/3) + (omega_b - omega_e) I tr Pi/3. Equal rates reduce to Trt.
struct Mrt {
  template <class Lattice, class Real, class Force>
  static SEICHE_FN void collide(Real (&f)[Lattice::Q], const Moments<Real>& m, const Symmetric<Real>& p,
                                const MomentRates<Real>& rates, const Force& force) {
    const Real third = Real(1.0 / 3) * (p.xx + p.yy + p.zz), shear = rates.shear - rates.even;
    const Real trace = (rates.bulk - rates.even) * third;
    const Symmetric<Real> t = {shear * (p.xx - third) + trace,
                               shear * (p.yy - third) + trace,
                               shear * (p.zz - third) + trace,
                               shear * p.xy,
                               shear * p.xz,
                               shear * p.yz};
    Trt::collide<Lattice>(f, m, p, Rates<Real>{rates.even, rates.odd}, force);
    f[0] += static_cast<Real>(4.5 * Lattice::weight(0)) * trace;
    static_for<0, (Lattice::Q - 1) / 2>([&]<int pair>() SEICHE_INLINED {
      constexpr int a = 2 * pair + 1, X = Lattice::cx(a), Y = Lattice::cy(a), Z = Lattice::cz(a);
      Real diagonal_part = -trace, off_diagonal_part = Real(0);
      add<X * X>(diagonal_part, t.xx);
      add<Y * Y>(diagonal_part, t.yy);
      add<Z * Z>(diagonal_part, t.zz);
      add<X * Y>(off_diagonal_part, t.xy);
      add<X * Z>(off_diagonal_part, t.xz);
      add<Y * Z>(off_diagonal_part, t.yz);
      const Real change = static_cast<Real>(4.5 * Lattice::weight(a)) * (diagonal_part + Real(2) * off_diagonal_part);
      f[a] -= change;
      f[a + 1] -= change;
    });
  }
};

}  // namespace seiche
