// SPDX-License-Identifier: BSD-3-Clause
/// Elastic media (theory/ultrasound, section 20): derivatives of stresses and velocities along one axis, and the rates
/// that they cause. Items are batches of 2 `lanes` lines.
#pragma once
#include "line_work.hpp"

namespace seiche::kspace {

/// A coefficient of the medium.
template <class R>
struct UniformNumber {
  using Real = R;
  Real number;
  static constexpr int bytes = 0;
  SEICHE_FN Real at(Index) const { return number; }
};
template <class R>
struct VaryingNumber {
  using Real = R;
  const Real* numbers;
  static constexpr int bytes = sizeof(Real);
  SEICHE_FN Real at(Index i) const { return unchanging(numbers + i); }
};

/// The absorbing layers at both ends of an axis (eqs. 67 and 68). `memory` has the numbers of the layers only: of
/// `before` points of a line from `begin` on, and of `after` points up to `end`. Tables have a number for each point
/// along the axis. Without memory there are no layers.
template <class Real>
struct ElasticLayer {
  Real* memory;
  const Real *decay, *increase, *damping;
  i32 begin, before, after, end;

  /// The derivative in stretched coordinates.
  SEICHE_FN Real stretched(const Lines<Real>& lines, int k, Index position, Real slope) const {
    const bool first = k >= begin && k < begin + before, last = k >= end - after && k < end;
    if (memory == nullptr || !(first || last)) return slope;
    const int length = lines.plan.length, stored = before + after;
    const Index block = static_cast<u32>(position) / static_cast<u32>(length * lines.inner);
    const Index skipped = block * (length - stored) + (first ? begin : end - stored);
    Real* const past = memory + (position - skipped * lines.inner);
    const Real next = unchanging(decay + k) * *past + unchanging(increase + k) * slope;
    *past = next;
    return slope + next;
  }
  SEICHE_FN Real factor(int k) const { return damping == nullptr ? Real(1) : unchanging(damping + k); }
};

/// A velocity changes by the derivative of a stress over the density (eq. 63). With `stores_rate` the sum over axes is
/// stored as well. Bytes per point: stress and volume read, velocity read and written, and the rate likewise.
template <class Volume, bool stores_rate>
struct Accelerate {
  using Real = typename Volume::Real;
  Real *velocity, *rate;
  Volume volume;
  i32 first;  // true for the first axis of the sum
  static constexpr int bytes = (stores_rate ? 5 : 3) * sizeof(Real) + Volume::bytes;

  SEICHE_FN void operator()(Index i, Real slope, Real dt, Real factor) const {
    const Real term = volume.at(i) * slope;
    velocity[i] = factor * (velocity[i] + dt * term);
    if constexpr (stores_rate) rate[i] = first != 0 ? term : rate[i] + term;
  }
};

/// All D normal stresses change by the derivative of velocity `component` along its own axis (eq. 64). Bytes per point:
/// velocity and two moduli read, the stresses read and written.
template <class Modulus, int D>
struct Compress {
  using Real = typename Modulus::Real;
  Real* stress;
  Modulus lambda, mu;
  Index points;
  i32 component;
  static constexpr int bytes = (1 + 2 * D) * sizeof(Real) + 2 * Modulus::bytes;

  SEICHE_FN void operator()(Index i, Real slope, Real dt, Real factor) const {
    const Real bulk = lambda.at(i), shear = mu.at(i);
    static_for<0, D>([&]<int j>() SEICHE_INLINED {
      Real& target = stress[j * points + i];
      const Real modulus = j == component ? bulk + Real(2) * shear : bulk;
      target = factor * (target + dt * (modulus * slope));
    });
  }
};

/// A shear stress changes by the derivative of a velocity along another axis (eq. 64). Bytes per point: velocity and
/// modulus read, the stress read and written.
template <class Modulus>
struct Shear {
  using Real = typename Modulus::Real;
  Real* stress;
  Modulus mu;
  static constexpr int bytes = 3 * sizeof(Real) + Modulus::bytes;

  SEICHE_FN void operator()(Index i, Real slope, Real dt, Real factor) const {
    stress[i] = factor * (stress[i] + dt * (mu.at(i) * slope));
  }
};

/// The derivative of a field along one axis, and the rate that it causes. If `tapered`, the field is multiplied by a
/// bell function along the axis first (eq. 32). Bytes: those of `Rate`, without the layers.
template <class Rate, class Work, bool tapered>
struct ElasticPass {
  using Real = typename Work::Real;
  const Real *field, *bell;
  const Complex<Real>* derivative;
  ElasticLayer<Real> layer;
  Rate rate;
  Lines<Real> lines;
  Real dt;
  using Scratch = typename Work::Scratch;
  static constexpr int bytes = 2 * Work::lanes * Rate::bytes;

  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    Work work(team, item, lines, scratch);
    work.load(field);
    if constexpr (tapered) {
      work.update([&](int k, Real value, Index) SEICHE_INLINED { return unchanging(bell + k) * value; });
    }
    work.apply(derivative);
    work.each([&](int k, Real slope, Index position)
                  SEICHE_INLINED { rate(position, layer.stretched(lines, k, position, slope), dt, layer.factor(k)); });
  }
};

/// The pressure, minus the mean of the D normal stresses (eq. 65). Bytes: D + 1 numbers.
template <class Real, int D>
struct MeanPressure {
  const Real* stress;
  Real* p;
  Index points;
  static constexpr int bytes = (D + 1) * sizeof(Real);

  SEICHE_FN void operator()(Index i) const {
    Real sum = 0;
    static_for<0, D>([&]<int j>() SEICHE_INLINED { sum += stress[j * points + i]; });
    p[i] = -sum / Real(D);
  }
};

/// Normal stresses of an initial pressure. Bytes: D + 1 numbers.
template <class Real, int D>
struct InitialStress {
  const Real* p;
  Real* stress;
  Index points;
  static constexpr int bytes = (D + 1) * sizeof(Real);

  SEICHE_FN void operator()(Index i) const {
    static_for<0, D>([&]<int j>() SEICHE_INLINED { stress[j * points + i] = -p[i]; });
  }
};

}  // namespace seiche::kspace
