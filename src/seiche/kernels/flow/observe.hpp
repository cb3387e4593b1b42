// SPDX-License-Identifier: BSD-3-Clause
/// Density, velocity, stress and shear rate of sites (theory/flow, eqs. 3 to 6), and the wall shear stress (eq. 13).
#pragma once
#include "layout_list.hpp"
#include "layout_tiles.hpp"
#include "relaxation.hpp"

namespace seiche {

/// Columns of `out`, each `stride` long: rho - 1, ux, uy, uz, stress xx yy zz xy xz yz, shear rate.
/// The stress is deviatoric, 2 rho nu S = -(1 - omega/2) Pi (eqs. 6 and 33). Bytes per site: Q populations and 11
/// results.
template <class Layout, class Relaxation, class Force>
struct Observe {
  using Real = typename Layout::Real;
  Layout layout;
  Relaxation relaxation;
  Force force;
  const Index* sites;
  Real* out;
  Index stride;
  static constexpr int bytes = Layout::bytes / 2 + 11 * sizeof(Real) + 8 + Force::bytes;
  SEICHE_FN void operator()(Index k) const {
    using L = typename Layout::Lattice;
    const Index i = sites[k];
    Real f[L::Q];
    layout.load(layout.site(i), f);
    const auto g = force.at(i);
    const auto m = moments<L>(f, g);
    const auto p = relaxation.strain(nonequilibrium<L>(f, m, g), i);
    const Real omega = relaxation.omega_before(i), factor = -(Real(1) - Real(0.5) * omega);
    const Real column[11] = {m.excess,
                             m.ux,
                             m.uy,
                             m.uz,
                             factor * p.xx,
                             factor * p.yy,
                             factor * p.zz,
                             factor * p.xy,
                             factor * p.xz,
                             factor * p.yz,
                             shear_rate(p, omega, m.rho)};
    static_for<0, 11>([&]<int c>() SEICHE_INLINED { out[c * stride + k] = column[c]; });
  }
};

/// Wall shear stress t - (t.n) n with t = sigma n; n is the outward normal of the fluid. Item k: row of `walls` and of
/// `normals` [k][3].
template <class Real>
struct WallShearStress {
  const Real* observed;  ///< columns of Observe
  Index stride;
  const Index* walls;  ///< row of the site in `observed`
  const Real* normals;
  Real* out;  ///< [k][3]
  static constexpr int bytes = 12 * sizeof(Real) + 8;
  SEICHE_FN void operator()(Index k) const {
    const Real* s = observed + 4 * stride + walls[k];
    const Real nx = normals[3 * k], ny = normals[3 * k + 1], nz = normals[3 * k + 2];
    const Real tx = s[0] * nx + s[3 * stride] * ny + s[4 * stride] * nz;
    const Real ty = s[3 * stride] * nx + s[stride] * ny + s[5 * stride] * nz;
    const Real tz = s[4 * stride] * nx + s[5 * stride] * ny + s[2 * stride] * nz;
    const Real tn = tx * nx + ty * ny + tz * nz;
    out[3 * k] = tx - tn * nx;
    out[3 * k + 1] = ty - tn * ny;
    out[3 * k + 2] = tz - tn * nz;
  }
};

}  // namespace seiche
