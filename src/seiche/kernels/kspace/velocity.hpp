// SPDX-License-Identifier: BSD-3-Clause
/// Momentum equation with the split-field absorbing layer (theory/ultrasound, eq. 7): D components of a point.
/// Bytes per point: velocity read and written, gradient read, density where it varies.
#pragma once
#include "rows.hpp"

namespace seiche::kspace {

/// Density half a cell further along an axis; `step` is the distance to the next point.
template <class R>
struct UniformDensity {
  using Real = R;
  Real rho0;
  static constexpr int bytes = 0;
  SEICHE_FN Real between(Index, Index, Index) const { return rho0; }
};
/// The mean of the densities at two points (eq. 5).
template <class R>
struct MeanDensity {
  using Real = R;
  const Real* rho0;
  static constexpr int bytes = sizeof(Real);
  SEICHE_FN Real between(Index i, Index step, Index) const {
    return Real(0.5) * (unchanging(rho0 + i) + unchanging(rho0 + i + step));
  }
};
/// Density given at the staggered points, one component after another.
template <class R>
struct StaggeredDensity {
  using Real = R;
  const Real* rho0;
  static constexpr int bytes = sizeof(Real);
  SEICHE_FN Real between(Index i, Index, Index component) const { return unchanging(rho0 + component + i); }
};

template <int D, class Density>
struct Velocity {
  using Real = typename Density::Real;
  Real* u;
  const Real* gradient;  // padded
  const Real* pml;
  Density density;
  Rows rows;
  Real dt;
  using Scratch = NoScratch;
  static constexpr int bytes = 3 * D * sizeof(Real) + Density::bytes;

  SEICHE_FN void operator()(const Team& team, Index row, Scratch&) const {
    static_for<0, D>([&]<int j>() SEICHE_INLINED {
      constexpr int axis = axis_of<D, j>;
      const Index base = row * rows.length, component = j * rows.points;
      Real* const out = u + component + base;
      const Real* const slope = gradient + 2 * (j * rows.spectrum + row * rows.half);
      const Real* const factors = pml + rows.template entry<axis>(row);
      const Real cross_factor = factors[0], step = dt;
      const int length = rows.length;
      const auto advance = [&](int c, Index next) SEICHE_INLINED {
        const Real s = axis == 2 ? factors[c] : cross_factor;
        out[c] = s * (s * out[c] - step / density.between(base + c, next, component) * slope[c]);
      };
      if constexpr (axis == 2) {
        team.for_each(length - 1, [&](int c) SEICHE_INLINED { advance(c, 1); });
        team.for_each(1, [&](int c) SEICHE_INLINED { advance(length - 1 + c, 0); });
      } else {
        const Index next = rows.template to_next<axis>(row);
        team.for_each(length, [&](int c) SEICHE_INLINED { advance(c, next); });
      }
    });
  }
};

}  // namespace seiche::kspace
