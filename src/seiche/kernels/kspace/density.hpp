// SPDX-License-Identifier: BSD-3-Clause
/// Conservation of mass with the split-field absorbing layer (theory/ultrasound, eq. 9), and quantities computed from
/// the density in the same pass over memory. Bytes per point: D densities read and written, D derivatives, the medium,
/// and the writes of `Finish`.
#pragma once
#include "medium.hpp"

namespace seiche::kspace {

template <int D, bool nonlinear, class Medium, class Finish>
struct Density {
  using Real = typename Medium::Real;
  Real* rho;
  const Real* derivative;  // padded
  const Real* pml;
  Medium medium;
  Finish finish;
  Rows rows;
  Real dt;
  using Scratch = NoScratch;
  static constexpr int bytes = 3 * D * sizeof(Real) + Finish::bytes + Finish::template medium_bytes<Medium>;

  SEICHE_FN void operator()(const Team& team, Index row, Scratch&) const {
    const Index base = row * rows.length, padded = 2 * row * rows.half;
    const Index points = rows.points, padded_points = 2 * rows.spectrum;
    Real* const densities = rho + base;
    const Real* const slopes = derivative + padded;
    const Real first = pml[rows.template entry<0>(row)], middle = pml[rows.template entry<1>(row)];
    const Real* const last = pml + rows.template entry<2>(row);
    const Real step = dt;
    team.for_each(rows.length, [&](int c) SEICHE_INLINED {
      const Index i = base + c;
      const Real ambient = medium.density(i);
      Real density[D], total_before = 0, total_after = 0, divergence = 0;
      static_for<0, D>([&]<int j>() SEICHE_INLINED {
        density[j] = densities[j * points + c];
        total_before += density[j];
      });
      const Real mass = step * (nonlinear ? ambient + Real(2) * total_before : ambient);
      static_for<0, D>([&]<int j>() SEICHE_INLINED {
        constexpr int axis = axis_of<D, j>;
        const Real m = axis == 0 ? first : axis == 1 ? middle : last[c];
        const Real slope = slopes[j * padded_points + c];
        density[j] = m * (m * density[j] - mass * slope);
        densities[j * points + c] = density[j];
        total_after += density[j];
        divergence += slope;
      });
      finish(medium, i, padded + c, total_after, ambient * divergence);
    });
  }
};

/// The same `Finish` for given densities and a stored rate, in rows `rate_row` apart. If `total` is not null, it
/// receives their sum. Bytes per point: D densities, the medium, reads and writes of `Finish`.
template <int D, class Medium, class Finish>
struct StateOfDensity {
  using Real = typename Medium::Real;
  const Real *rho, *rate;
  Real* total;
  Medium medium;
  Finish finish;
  Rows rows;
  Index rate_row;
  using Scratch = NoScratch;
  static constexpr int bytes =
      (D + Finish::uses_rate) * sizeof(Real) + Finish::bytes + Finish::template medium_bytes<Medium>;

  SEICHE_FN void operator()(const Team& team, Index row, Scratch&) const {
    const Index base = row * rows.length, padded = 2 * row * rows.half, points = rows.points;
    const Real* const densities = rho + base;
    const Real* const rates = rate + row * rate_row;
    Real* const sums = total;
    team.for_each(rows.length, [&](int c) SEICHE_INLINED {
      Real sum = 0;
      static_for<0, D>([&]<int j>() SEICHE_INLINED { sum += densities[j * points + c]; });
      if (sums != nullptr) sums[base + c] = sum;
      finish(medium, base + c, padded + c, sum, Finish::uses_rate ? rates[c] : Real(0));
    });
  }
};

/// c0^2 (compression + tau (lost + c0 delayed)) of a power-law medium (theory/ultrasound, eq. 12).
template <class Medium, class Real>
SEICHE_FN Real power_law_pressure(const Medium& medium, Index i, Real compressed, Real lost, Real delayed) {
  const Real speed = medium.sound_speed(i);
  const Real terms = lost + delayed * speed;
  return speed * speed * (compressed + medium.absorption(i) * terms);
}

/// Pressure of a power-law medium (theory/ultrasound, eq. 12) from the compression in p and the two Laplacians. The
/// tangent is that of the dispersion, eta = -tau c0 tan(pi y/2). Bytes per point: five numbers read with the medium,
/// one written.
template <class Medium>
struct PowerLawPressure {
  using Real = typename Medium::Real;
  Real* p;
  const Real *absorbed, *dispersed;  // padded
  Medium medium;
  Rows rows;
  Real absorption, tangent;  // 1 or 0; tan(pi y/2) or 0
  using Scratch = NoScratch;
  static constexpr int bytes = (4 + 2 * Medium::fields) * sizeof(Real);

  SEICHE_FN void operator()(const Team& team, Index row, Scratch&) const {
    const Index base = row * rows.length, padded = 2 * row * rows.half;
    Real* const out = p + base;
    const Real* const loss_rates = absorbed + padded;
    const Real* const dispersive_terms = dispersed + padded;
    const Real losses = absorption, dispersion = tangent;
    team.for_each(rows.length, [&](int c) SEICHE_INLINED {
      const Index i = base + c;
      out[c] = power_law_pressure(medium, i, out[c], losses * loss_rates[c], dispersion * dispersive_terms[c]);
    });
  }
};

/// Density of an initial pressure, in equal parts (theory/ultrasound, eq. 14). Bytes per point: pressure, D densities.
template <int D, class Medium>
struct InitialDensity {
  using Real = typename Medium::Real;
  const Real* p;
  Real* rho;
  Medium medium;
  Rows rows;
  using Scratch = NoScratch;
  static constexpr int bytes = (D + 1 + Medium::fields) * sizeof(Real);

  SEICHE_FN void operator()(const Team& team, Index row, Scratch&) const {
    const Index base = row * rows.length, points = rows.points;
    team.for_each(rows.length, [&](int c) SEICHE_INLINED {
      const Real speed = medium.sound_speed(base + c);
      const Real component = p[base + c] / (Real(D) * speed * speed);
      static_for<0, D>([&]<int j>() SEICHE_INLINED { rho[j * points + base + c] = component; });
    });
  }
};

}  // namespace seiche::kspace
