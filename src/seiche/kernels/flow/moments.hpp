// SPDX-License-Identifier: BSD-3-Clause
/// Moments of the shifted populations f_q - w_q, and their stress (theory/flow, eqs. 3 to 6).
#pragma once
#include "lattice.hpp"

namespace seiche {

/// No body force; `unused` is the byte that an empty struct occupies.
template <class Real>
struct NoForce {
  u8 unused;
  static constexpr bool present = false;
  static constexpr int bytes = 0;
  SEICHE_FN const NoForce& at(Index) const { return *this; }
  SEICHE_FN Real x() const { return Real(0); }
  SEICHE_FN Real y() const { return Real(0); }
  SEICHE_FN Real z() const { return Real(0); }
};

/// A uniform body force density g (Guo, Zheng and Shi 2002), or the body force density at a site.
template <class Real>
struct UniformForce {
  Real g[3];
  static constexpr bool present = true;
  static constexpr int bytes = 0;
  SEICHE_FN const UniformForce& at(Index) const { return *this; }
  SEICHE_FN Real x() const { return g[0]; }
  SEICHE_FN Real y() const { return g[1]; }
  SEICHE_FN Real z() const { return g[2]; }
};

/// A body force density for each item of the layout.
template <class Real>
struct SiteForce {
  const Real* gx;
  const Real* gy;
  const Real* gz;
  static constexpr int bytes = 3 * sizeof(Real);
  SEICHE_FN UniformForce<Real> at(Index i) const { return {{gx[i], gy[i], gz[i]}}; }
};

/// Density excess rho - 1, density and velocity at a site.
template <class Real>
struct Moments {
  Real excess, rho, ux, uy, uz;
};

/// A symmetric tensor: xx, yy, zz, xy, xz, yz.
template <class Real>
struct Symmetric {
  Real xx, yy, zz, xy, xz, yz;
};

/// Adds g/2 to the momentum j (eqs. 3 and 42).
template <class Real, class Force>
SEICHE_FN void add_half_force(const Force& force, Real& jx, Real& jy, Real& jz) {
  if constexpr (Force::present) {
    jx += Real(0.5) * force.x();
    jy += Real(0.5) * force.y();
    jz += Real(0.5) * force.z();
  }
}

/// Adds (u g + g u)/2 to the stress p (eqs. 5 and 42).
template <class Real, class Force>
SEICHE_FN void add_force_stress(const Moments<Real>& m, const Force& force, Symmetric<Real>& p) {
  if constexpr (Force::present) {
    p.xx += m.ux * force.x();
    p.yy += m.uy * force.y();
    p.zz += m.uz * force.z();
    p.xy += Real(0.5) * (m.ux * force.y() + force.x() * m.uy);
    p.xz += Real(0.5) * (m.ux * force.z() + force.x() * m.uz);
    p.yz += Real(0.5) * (m.uy * force.z() + force.y() * m.uz);
  }
}

/// Density and velocity from rho = sum f, rho u = sum c f + g/2 (eq. 3). The sum of shifted populations is rho - 1.
/// Opposite populations are added and subtracted first, as in the collision, so that these sums are formed once.
template <class Lattice, class Real, class Force>
SEICHE_FN Moments<Real> moments(const Real (&f)[Lattice::Q], const Force& force) {
  Real excess = f[0], jx = Real(0), jy = Real(0), jz = Real(0);
  static_for<0, (Lattice::Q - 1) / 2>([&]<int pair>() SEICHE_INLINED {
    constexpr int a = 2 * pair + 1, b = 2 * pair + 2;
    const Real difference = f[a] - f[b];
    excess += f[a] + f[b];
    add<Lattice::cx(a)>(jx, difference);
    add<Lattice::cy(a)>(jy, difference);
    add<Lattice::cz(a)>(jz, difference);
  });
  add_half_force(force, jx, jy, jz);
  const Real rho = Real(1) + excess, inverse = Real(1) / rho;
  return {excess, rho, jx * inverse, jy * inverse, jz * inverse};
}

/// Non-equilibrium stress Pi = sum c c (f - feq) + (u g + g u)/2 (eq. 5); the strain rate is S = -Pi/(2 rho cs^2 tau).
template <class Lattice, class Real, class Force>
SEICHE_FN Symmetric<Real> nonequilibrium(const Real (&f)[Lattice::Q], const Moments<Real>& m, const Force& force) {
  Symmetric<Real> p{};
  static_for<0, (Lattice::Q - 1) / 2>([&]<int pair>() SEICHE_INLINED {
    constexpr int a = 2 * pair + 1, b = 2 * pair + 2;
    constexpr int X = Lattice::cx(a), Y = Lattice::cy(a), Z = Lattice::cz(a);
    const Real sum = anew(f[a]) + f[b];  // formed again on a GPU, which lacks the registers to keep it
    add<X * X>(p.xx, sum);
    add<Y * Y>(p.yy, sum);
    add<Z * Z>(p.zz, sum);
    add<X * Y>(p.xy, sum);
    add<X * Z>(p.xz, sum);
    add<Y * Z>(p.yz, sum);
  });
  const Real pressure = m.excess * Real(1.0 / 3);
  const Real jx = m.rho * m.ux, jy = m.rho * m.uy, jz = m.rho * m.uz;
  p.xx -= pressure + jx * m.ux;
  p.yy -= pressure + jy * m.uy;
  p.zz -= pressure + jz * m.uz;
  p.xy -= jx * m.uy;
  p.xz -= jx * m.uz;
  p.yz -= jy * m.uz;
  add_force_stress(m, force, p);
  return p;
}

/// Returns p with its trace multiplied by `factor`.
template <class Real>
SEICHE_FN Symmetric<Real> with_trace_times(Symmetric<Real> p, Real factor) {
  const Real change = (factor - Real(1)) * Real(1.0 / 3) * (p.xx + p.yy + p.zz);
  p.xx += change;
  p.yy += change;
  p.zz += change;
  return p;
}

/// Shear rate sqrt(2 S:S) with S = -Pi omega/(2 rho cs^2) (eq. 6).
template <class Real>
SEICHE_FN Real shear_rate(const Symmetric<Real>& p, Real omega, Real rho) {
  const Real contraction =
      p.xx * p.xx + p.yy * p.yy + p.zz * p.zz + Real(2) * (p.xy * p.xy + p.xz * p.xz + p.yz * p.yz);
  return Real(1.5) * omega / rho * square_root(Real(2) * contraction);
}

}  // namespace seiche
