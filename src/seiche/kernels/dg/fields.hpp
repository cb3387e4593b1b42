// SPDX-License-Identifier: BSD-3-Clause
/// The unknowns of a medium and their rates of change (theory/waves, eqs. 1 to 3).
///
/// Along an axis, velocity and traction of a face are coupled in the components c: the normal component in a fluid, all
/// components in a solid. `velocity` and `stress` return field numbers; `sign` is the sign of the stress in the stored
/// field.
#pragma once
#include "../launch.hpp"

namespace seiche {

/// Fluid: p, v_x, v_y (, v_z). Moduli: kappa, 1/rho (eq. 1).
template <int dimension>
struct Acoustic {
  static constexpr int dim = dimension, count = dim + 1, waves = 1, kinds = 1, moduli = 2;
  static constexpr int sign = -1;  // the stress is -p
  static constexpr int velocity(int axis, int) { return 1 + axis; }
  static constexpr int stress(int, int) { return 0; }
  static constexpr int kind(int, int) { return 0; }
  /// Modulus that multiplies a source of a field, -1: none.
  static constexpr int source_modulus(int field) { return field == 0 ? 0 : 1; }

  /// Rates from the derivatives along axis a of v_c and S_ca, with c in the order of the components.
  template <class Real>
  SEICHE_FN static void rates(const Real (&dv)[dim][waves], const Real (&ds)[dim][waves], const Real (&m)[moduli],
                              Real (&r)[count]) {
    Real divergence = dv[0][0];
    static_for<1, dim>([&]<int a>() SEICHE_INLINED { divergence += dv[a][0]; });
    r[0] = -m[0] * divergence;
    static_for<0, dim>([&]<int a>() SEICHE_INLINED { r[1 + a] = m[1] * ds[a][0]; });
  }
};

/// Solid, or fluid if mu = 0: velocities, then S_xx, S_yy (, S_zz, S_yz, S_xz), S_xy. Moduli: lambda, mu, 1/rho (eqs. 2
/// and 3); plane strain in two dimensions.
template <int dimension>
struct Elastic {
  static constexpr int dim = dimension, count = dim + dim * (dim + 1) / 2, waves = dim, kinds = 2, moduli = 3;
  static constexpr int sign = 1;
  static constexpr int velocity(int, int c) { return c; }
  static constexpr int stress(int axis, int c) { return axis == c ? dim + c : dim == 2 ? 4 : 9 - axis - c; }
  /// 0: longitudinal, 1: transverse.
  static constexpr int kind(int axis, int c) { return axis == c ? 0 : 1; }
  static constexpr int source_modulus(int field) { return field < dim ? 2 : -1; }

  template <class Real>
  SEICHE_FN static void rates(const Real (&dv)[dim][waves], const Real (&ds)[dim][waves], const Real (&m)[moduli],
                              Real (&r)[count]) {
    Real divergence = dv[0][0];
    static_for<1, dim>([&]<int a>() SEICHE_INLINED { divergence += dv[a][a]; });
    const Real pressure = m[0] * divergence, twice = m[1] + m[1];
    static_for<0, dim>([&]<int c>() SEICHE_INLINED {
      Real force = ds[0][c];
      static_for<1, dim>([&]<int a>() SEICHE_INLINED { force += ds[a][c]; });
      r[c] = m[2] * force;
      r[dim + c] = pressure + twice * dv[c][c];
      static_for<c + 1, dim>([&]<int a>() SEICHE_INLINED { r[stress(a, c)] = m[1] * (dv[a][c] + dv[c][a]); });
    });
  }
};

}  // namespace seiche
