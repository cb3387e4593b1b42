// SPDX-License-Identifier: BSD-3-Clause
/// Outgoing populations of the regularised collision (Latt and Chopard 2006): a quadratic polynomial in the lattice
/// vector, given by ten coefficients (theory/flow, eqs. 41 and 42).
#pragma once
#include "moments.hpp"

namespace seiche {

/// f*_q = w_q (rest + c.j + c c:a): the ten coefficients of the populations, which are shifted by the weight.
template <class Real>
struct Quadratic {
  Real rest, jx, jy, jz;
  Symmetric<Real> a;
};

/// c c:a, omitting the products by zero.
template <class Lattice, int q, class Real>
SEICHE_FN Real along_twice(const Symmetric<Real>& a) {
  constexpr int X = Lattice::cx(q), Y = Lattice::cy(q), Z = Lattice::cz(q);
  Real sum = Real(0);
  if constexpr (X != 0 && Y == 0 && Z == 0) {
    sum = a.xx;
  } else if constexpr (X == 0 && Y != 0 && Z == 0) {
    sum = a.yy;
  } else if constexpr (X == 0 && Y == 0 && Z != 0) {
    sum = a.zz;
  } else if constexpr (X != 0 && Y != 0 && Z == 0) {
    sum = a.xx + a.yy;
  } else if constexpr (X != 0 && Y == 0 && Z != 0) {
    sum = a.xx + a.zz;
  } else if constexpr (X == 0 && Y != 0 && Z != 0) {
    sum = a.yy + a.zz;
  } else if constexpr (X != 0 && Y != 0 && Z != 0) {
    sum = (a.xx + a.yy) + a.zz;
  }
  add<X * Y>(sum, a.xy + a.xy);
  add<X * Z>(sum, a.xz + a.xz);
  add<Y * Z>(sum, a.yz + a.yz);
  return sum;
}

/// Outgoing population along c_q. Opposite directions share the even and the odd part.
template <class Lattice, int q, class Real>
SEICHE_FN Real population(const Quadratic<Real>& m) {
  constexpr Real w = static_cast<Real>(Lattice::weight(q));
  if constexpr (q == 0) {
    return w * m.rest;
  } else {
    constexpr int first = q % 2 ? q : q - 1;
    const Real even = m.rest + along_twice<Lattice, first>(m.a), odd = along<Lattice, first>(m.jx, m.jy, m.jz);
    return w * (q == first ? even + odd : even - odd);
  }
}

/// The coefficients after the collision, from Pi (eq. 5): a = 9/2 (rho u u + (1 - omega) Pi + (u g + g u)/2),
/// j = 3 (rho u + g/2), rest = rho - 1 - tr(a)/3.
template <class Real, class Force>
SEICHE_FN Quadratic<Real> regularised(const Moments<Real>& m, const Symmetric<Real>& p, Real omega,
                                      const Force& force) {
  const Real retained = Real(1) - omega;
  Real jx = m.rho * m.ux, jy = m.rho * m.uy, jz = m.rho * m.uz;
  Symmetric<Real> a = {jx * m.ux + retained * p.xx, jy * m.uy + retained * p.yy, jz * m.uz + retained * p.zz,
                       jx * m.uy + retained * p.xy, jx * m.uz + retained * p.xz, jy * m.uz + retained * p.yz};
  add_force_stress(m, force, a);
  add_half_force(force, jx, jy, jz);
  constexpr Real scale = Real(4.5);
  a = {scale * a.xx, scale * a.yy, scale * a.zz, scale * a.xy, scale * a.xz, scale * a.yz};
  const Real third = Real(1.0 / 3) * ((a.xx + a.yy) + a.zz);
  return {m.excess - third, Real(3) * jx, Real(3) * jy, Real(3) * jz, a};
}

}  // namespace seiche
