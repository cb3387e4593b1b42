// SPDX-License-Identifier: BSD-3-Clause
/// Operations of the axis-wise schemes on lines along one axis (theory/ultrasound, section 4). Items are batches of 2
/// `lanes` lines.
#pragma once
#include "line_work.hpp"
#include "medium.hpp"
#include "velocity.hpp"

namespace seiche::kspace {

/// Multiplies the spectra of lines by a factor: the separable correction (eq. 21).
/// Bytes per point: one read, one written.
template <class Work>
struct LineFilter {
  using Real = typename Work::Real;
  const Real* in;
  Real* out;
  const Complex<Real>* factor;
  Lines<Real> lines;
  using Scratch = typename Work::Scratch;
  static constexpr int bytes = 2 * 2 * Work::lanes * sizeof(Real);

  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    Work work(team, item, lines, scratch);
    work.load(in);
    work.apply(factor);
    Real* const target = out;
    work.update([](int, Real value, Index) SEICHE_INLINED { return value; },
                [&](Real value, Index position) SEICHE_INLINED { target[position] = value; });
  }
};

/// Contribution of one axis to div(grad p/rho0). It is added to `sum`, or replaces it for the first axis. After the
/// last axis `sum` becomes p + dt^2/12 c0^2 rho0 sum (eq. 22). Bytes per point: p and the sum read, the sum written,
/// the medium.
template <class Density, class Medium, class Work>
struct LineCorrection {
  using Real = typename Density::Real;
  const Real* p;
  Real* sum;
  const Complex<Real>*forward, *backward;
  Density density;
  Medium medium;
  Lines<Real> lines;
  Index component;
  Real scale;  // dt^2/12 for the last axis, else 0
  i32 first;
  using Scratch = typename Work::Scratch;
  static constexpr int bytes = 2 * Work::lanes * (3 * sizeof(Real) + Density::bytes);

  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    Work work(team, item, lines, scratch);
    work.load(p);
    work.apply(forward);
    const int last = lines.plan.length - 1;
    const Index step = work.batch.step;
    work.update([&](int k, Real value, Index position) SEICHE_INLINED {
      return value * inverse_of(density.between(position, k < last ? step : 0, component));
    });
    work.apply(backward);
    Real* const sums = sum;
    const Real* const pressure = p;
    const Real weight = scale;
    const bool begins = first != 0, ends = scale != Real(0);
    if (!begins) {
      work.update([&](int, Real value, Index position) SEICHE_INLINED { return sums[position] + value; });
    }
    if (ends) {
      work.update([&](int, Real total, Index position) SEICHE_INLINED {
        const Real c = medium.sound_speed(position);
        return unchanging(pressure + position) + weight * c * c * medium.density(position) * total;
      });
    }
    work.update([](int, Real value, Index) SEICHE_INLINED { return value; },
                [&](Real value, Index position) SEICHE_INLINED { sums[position] = value; });
  }
};

/// One axis of a step (eqs. 7 and 9 without kappa): derivative of the corrected pressure, velocity, its derivative,
/// density. `momentum` and `mass` enable the two halves; they run separately if a source acts between them.
/// Bytes per point: pressure, velocity and density read, the latter two written; the arrays of the medium.
template <class Density, class Medium, bool nonlinear, class Work, bool momentum, bool mass>
struct LineStep {
  using Real = typename Density::Real;
  const Real* p;
  Real *u, *rho;      // of this axis
  const Real* total;  // density excess of all axes before the step, for nonlinear acoustics
  Real* rate;         // sum over axes of rho0 times the derivatives; null if not needed
  const Complex<Real>*forward, *backward;
  const Real *pml, *pml_staggered;  // of this axis
  Density density;
  Medium medium;
  Lines<Real> lines;
  Index component;
  Real dt;
  i32 first;  // true if this axis is the first in the sum of the rate
  using Scratch = typename Work::Scratch;
  static constexpr int bytes =
      2 * Work::lanes * ((momentum ? 3 : 1) + (mass ? 2 + Medium::fields + nonlinear : 0)) * sizeof(Real) +
      2 * Work::lanes * Density::bytes * momentum;

  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    Work work(team, item, lines, scratch);
    Real* const velocities = u;
    const Real step_time = dt;
    if constexpr (momentum) {
      work.ask(velocities);
      if constexpr (Density::bytes > 0) work.ask(density.rho0);
      work.load(p);
      work.apply(forward);
      const int last = lines.plan.length - 1;
      const Index step = work.batch.step;
      const Real* const layer = pml_staggered;
      work.update(
          [&](int k, Real slope, Index position) SEICHE_INLINED {
            const Real s = unchanging(layer + k);
            const Real ambient = density.between(position, k < last ? step : 0, component);
            return s * (s * velocities[position] - step_time * inverse_of(ambient) * slope);
          },
          [&](Real value, Index position) SEICHE_INLINED { velocities[position] = value; });
    } else {
      work.load(velocities);
    }
    if constexpr (mass) {
      work.ask(rho);
      work.apply(backward);
      Real *const densities = rho, *const rates = rate;
      const Real *const total_before = total, *const layer = pml;
      const bool begins = first != 0;
      if (rates != nullptr) {
        work.update([](int, Real slope, Index) SEICHE_INLINED { return slope; },
                    [&](Real slope, Index position) SEICHE_INLINED {
                      const Real ambient = medium.density(position);
                      rates[position] = begins ? ambient * slope : rates[position] + ambient * slope;
                    });
      }
      work.update(
          [&](int k, Real slope, Index position) SEICHE_INLINED {
            const Real m = unchanging(layer + k), ambient = medium.density(position);
            const Real factor =
                step_time * (nonlinear ? ambient + Real(2) * unchanging(total_before + position) : ambient);
            return m * (m * densities[position] - factor * slope);
          },
          [&](Real value, Index position) SEICHE_INLINED { densities[position] = value; });
    }
  }
};

}  // namespace seiche::kspace
