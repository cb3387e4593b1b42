// SPDX-License-Identifier: BSD-3-Clause
/// Iolets: after the collision, the population that leaves along an iolet link is replaced by the returning one
/// (theory/flow, eqs. 14 to 16). The bulk kernel processes an iolet link as a wall link and reads the value there in
/// the next step. One item per site. Sites of iolets are few, so the bytes (2 Q populations) are negligible.
#pragma once
#include "layout_list.hpp"
#include "layout_tiles.hpp"
#include "moments.hpp"

namespace seiche {

/// The sites of one kind of iolet, and the time series of every iolet: values[clock][value_count].
template <class Real>
struct IoletSites {
  const Index* sites;  ///< item of the layout
  const u32* links;    ///< bit q: the link c_q crosses the iolet
  const i32* iolet;    ///< index of the iolet
  Real* inflow;        ///< mass that entered at this site in the last step
  const Real* values;  ///< one row per step
  const Index* clock;  ///< current row of `values`
  Index value_count;

  /// Stores the inflow at site k: the sum of the masses that f.operator()<q>() returns for the links of the site.
  template <class Lattice, class F>
  SEICHE_FN void sum_inflow(Index k, F&& f) const {
    Real sum = Real(0);
    const u32 crossing = links[k];
    static_for<1, Lattice::Q>([&]<int q>() SEICHE_INLINED {
      if (crossing >> q & 1u) sum += f.template operator()<q>();
    });
    inflow[k] = sum;
  }
};

/// A site after the collision: outgoing populations, density and velocity. Their first moment is rho u + g/2.
template <class Layout>
struct CollidedSite {
  using Lattice = typename Layout::Lattice;
  using Real = typename Layout::Real;
  typename Layout::Site site;
  Real f[Lattice::Q];
  Moments<Real> m;

  template <class Force>
  SEICHE_FN CollidedSite(const Layout& layout, Index item, const Force& force) : site(layout.site(item)) {
    static_for<0, Lattice::Q>([&]<int q>() SEICHE_INLINED { f[q] = decode<Real>(layout.template outgoing<q>(site)); });
    m = moments<Lattice>(f, force);
    if constexpr (Force::present) {
      m.ux -= force.x() / m.rho;
      m.uy -= force.y() / m.rho;
      m.uz -= force.z() / m.rho;
    }
  }
};

/// Pressure rule of Nash et al. 2014: the returning population is the equilibrium at the density of the iolet. Its
/// velocity is the component of the velocity of the site along the normal of the iolet.
/// values: the density excess rho - 1 of each iolet.
template <class Layout, class Force>
struct NashPressure {
  using Real = typename Layout::Real;
  Layout layout;
  IoletSites<Real> at;
  const Real* normals;  ///< [iolet][3]
  Force force;
  static constexpr int bytes = 0;
  SEICHE_FN void operator()(Index k) const {
    using L = typename Layout::Lattice;
    const CollidedSite<Layout> collided(layout, at.sites[k], force.at(at.sites[k]));
    const i32 iolet = at.iolet[k];
    const Real nx = normals[3 * iolet], ny = normals[3 * iolet + 1], nz = normals[3 * iolet + 2];
    const Real un = collided.m.ux * nx + collided.m.uy * ny + collided.m.uz * nz;
    const Real excess = at.values[at.clock[0] * at.value_count + iolet], rho = Real(1) + excess;
    const Real rest = excess - rho * (Real(1.5) * un * un);
    at.template sum_inflow<L>(k, [&]<int q>() SEICHE_INLINED {
      const Real cu = -along<L, q>(nx, ny, nz) * un;
      const Real returning = static_cast<Real>(L::weight(q)) * (rest + rho * (Real(3) * cu + Real(4.5) * cu * cu));
      encode(layout.template outgoing<q>(collided.site), returning);
      return returning - collided.f[q];
    });
  }
};

/// Moments of a site before the collision, as written by `Observe`.
template <class Real>
struct SiteMoments {
  Real excess, ux, uy, uz, xx, yy, zz, xy, xz, yz, third;
  SEICHE_FN SiteMoments(const Real* column, Index stride)
      : excess(column[0]),
        ux(column[stride]),
        uy(column[2 * stride]),
        uz(column[3 * stride]),
        xx(column[4 * stride]),
        yy(column[5 * stride]),
        zz(column[6 * stride]),
        xy(column[7 * stride]),
        xz(column[8 * stride]),
        yz(column[9 * stride]),
        third((xx + yy + zz) * Real(1.0 / 3)) {}
  /// Adds a stress that damps the velocity tangential to the plane of normal n.
  SEICHE_FN void damp_tangential(const Real* n, Real damping) {
    const Real un = ux * n[0] + uy * n[1] + uz * n[2];
    const Real tx = damping * (ux - un * n[0]), ty = damping * (uy - un * n[1]), tz = damping * (uz - un * n[2]);
    xx += Real(2) * tx * n[0];
    yy += Real(2) * ty * n[1];
    zz += Real(2) * tz * n[2];
    xy += tx * n[1] + ty * n[0];
    xz += tx * n[2] + tz * n[0];
    yz += ty * n[2] + tz * n[1];
  }
  /// Twice the even part of the equilibrium at density excess `e`, and of the stress, along c_q (eq. 21).
  template <class L, int q>
  SEICHE_FN Real even(Real e) const {
    constexpr int X = L::cx(q), Y = L::cy(q), Z = L::cz(q);
    const Real cu = along<L, q>(ux, uy, uz);
    Real stress = -third;
    add<X * X>(stress, xx);
    add<Y * Y>(stress, yy);
    add<Z * Z>(stress, zz);
    add<X * Y>(stress, xy + xy);
    add<X * Z>(stress, xz + xz);
    add<Y * Z>(stress, yz + yz);
    const Real square = Real(1.5) * (ux * ux + uy * uy + uz * uz);
    return static_cast<Real>(2 * L::weight(q)) *
           (e + (Real(1) + e) * (Real(4.5) * cu * cu - square) - Real(4.5) * stress);
  }
};

/// Pressure by anti-bounce-back with the stress of the site (Ginzburg et al. 2008). It prescribes the even part of the
/// outgoing and the returning population. This part is the sum of the equilibrium, at the density of the iolet and the
/// velocity of the site, and the contribution of the viscous stress. values: the density excess rho - 1 of each iolet.
template <class Layout>
struct AntiBounceBackPressure {
  using Real = typename Layout::Real;
  Layout layout;
  IoletSites<Real> at;
  const Real* observed;  ///< columns of Observe of these sites before the collision
  Index stride;
  static constexpr int bytes = 0;
  SEICHE_FN void operator()(Index k) const {
    using L = typename Layout::Lattice;
    const auto site = layout.site(at.sites[k]);
    const SiteMoments<Real> moments(observed + k, stride);
    const Real excess = at.values[at.clock[0] * at.value_count + at.iolet[k]];
    at.template sum_inflow<L>(k, [&]<int q>() SEICHE_INLINED {
      const Real outgoing = decode<Real>(layout.template outgoing<q>(site));
      const Real returning = moments.template even<L, q>(excess) - outgoing;
      encode(layout.template outgoing<q>(site), returning);
      return returning - outgoing;
    });
  }
};

/// Velocity by Ladd's rule: the returning population is the outgoing one plus the momentum 2 w rho u.c/cs^2. This is
/// the momentum of a wall that moves through the middle of the link.
/// weights[link][mode] = -6 w (n.c) profile_mode(middle of the link).
template <class Layout, class Force>
struct LaddVelocity {
  using Real = typename Layout::Real;
  Layout layout;
  IoletSites<Real> at;
  const Real* weights;
  const i32* first_link;   ///< first link of this site in `weights`
  const i32* first_value;  ///< [iolet] first of its modes in a row of values
  i32 modes;               ///< number of modes of every iolet (unused modes have zero weights)
  Force force;
  static constexpr int bytes = 0;
  SEICHE_FN void operator()(Index k) const {
    using L = typename Layout::Lattice;
    const CollidedSite<Layout> collided(layout, at.sites[k], force.at(at.sites[k]));
    const Real* values = at.values + at.clock[0] * at.value_count + first_value[at.iolet[k]];
    const Real* weight = weights + static_cast<Index>(first_link[k]) * modes;
    at.template sum_inflow<L>(k, [&]<int q>() SEICHE_INLINED {
      Real push = Real(0);
      for (i32 mode = 0; mode < modes; ++mode) push += weight[mode] * values[mode];
      weight += modes;
      encode(layout.template outgoing<q>(collided.site), collided.f[q] + collided.m.rho * push);
      return collided.m.rho * push;
    });
  }
};

/// End of a step: advances the clock, the current row of values of the iolets.
struct Tick {
  Index* clock;
  static constexpr int bytes = 0;
  SEICHE_FN void operator()(Index) const { clock[0] += 1; }
};

}  // namespace seiche
