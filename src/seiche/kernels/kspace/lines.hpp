// SPDX-License-Identifier: BSD-3-Clause
/// Batches of lines along one axis, and what the axis-wise schemes do with them (theory/ultrasound, section 4): items
/// are batches of 2 `lanes` real lines.
#pragma once
#include "line_fft.hpp"
#include "medium.hpp"
#include "velocity.hpp"

namespace seiche::kspace {

/// Lines along an axis of a field: `outer` blocks of `inner` lines; a line's numbers are `inner` apart. Lines along the
/// last axis (inner 1) follow each other.
template <class Real>
struct Lines {
  Index outer, inner, batches;  // batches: of a block; where inner is 1, all blocks together
  LinePlan<Real> plan;
};

/// A batch: where line `l` begins, how far its numbers are apart, and how many lines there are.
template <bool last_axis>
struct Batch {
  Index begin, step, between;
  int count;

  template <class Real>
  SEICHE_FN static Batch of(const Lines<Real>& lines, Index item, int size) {
    const Index length = lines.plan.length;
    if constexpr (last_axis) {
      const Index first = item * size, left = lines.outer - first;
      return {first * length, 1, length, static_cast<int>(left < size ? left : size)};
    } else {
      const Index block = item / lines.batches, first = item % lines.batches * size, left = lines.inner - first;
      return {block * length * lines.inner + first, lines.inner, 1, static_cast<int>(left < size ? left : size)};
    }
  }
  SEICHE_FN Index at(int k, int line) const { return begin + k * step + line * between; }
};

/// f(k, lane, place) for the numbers k of every line of a batch: `lane` and `part` (0 real, 1 imaginary) say where it
/// is in the scratch, `place` where in the field. Neighbours in memory are side by side.
template <int lanes, bool last_axis, class T, class F>
SEICHE_FN void each_point(const T& team, const Batch<last_axis>& batch, int length, F&& f) {
  each<0, 2>([&]<int part>() SEICHE_INLINED {
    const int whole = batch.count - part * lanes, here = whole < lanes ? whole : lanes;
    if constexpr (last_axis && ManyThreads<T>) {
      for (int line = 0; line < here; ++line) {
        for (int k = team.thread; k < length; k += team.threads) {
          f.template operator()<part>(k, line, batch.at(k, line + part * lanes));
        }
      }
    } else if constexpr (ManyThreads<T>) {
      for (int j = team.thread; j < length * lanes; j += team.threads) {
        const int k = j / lanes, lane = j % lanes;
        if (lane < here) f.template operator()<part>(k, lane, batch.at(k, lane + part * lanes));
      }
    } else if constexpr (last_axis) {
      for (int line = 0; line < here; ++line) {
        const Index from = batch.at(0, line + part * lanes);
        team.each(length, [&](int k) SEICHE_INLINED { f.template operator()<part>(k, line, from + k); });
      }
    } else {
      for (int k = 0; k < length; ++k) {
        const Index from = batch.at(k, part * lanes);
        team.each(here, [&](int lane) SEICHE_INLINED { f.template operator()<part>(k, lane, from + lane); });
      }
    }
  });
  team.barrier();
}

template <class Real, int capacity, int lanes, bool last_axis>
struct LineWork {
  using Batch = kspace::Batch<last_axis>;
  LineTransform<Real, capacity, lanes> transform;
  const Team& team;
  Batch batch;
  int length;

  SEICHE_FN LineWork(const Team& team, Index item, const Lines<Real>& lines,
                     LineScratch<Real, capacity, lanes>& scratch)
      : transform{lines.plan, scratch},
        team(team),
        batch(Batch::of(lines, item, 2 * lanes)),
        length(lines.plan.length) {}

  SEICHE_FN Real* part_of(int part) const {
    return part == 0 ? transform.scratch.re[transform.now] : transform.scratch.im[transform.now];
  }
  /// Brings lines of a field into the scratch.
  SEICHE_FN void load(const Real* field) const {
    Real* const halves[2] = {part_of(0), part_of(1)};
    clear_rest();
    each_point<lanes, last_axis>(team, batch, length, [&]<int part>(int k, int lane, Index place) SEICHE_INLINED {
      halves[part][k * lanes + lane] = field[place];
    });
  }
  /// Places without a line hold zero. What is left there of one field's round-off could outweigh the next field.
  SEICHE_FN void clear_rest() const {
    if (batch.count == 2 * lanes) return;
    Real *const re = part_of(0), *const im = part_of(1);
    const int lines = batch.count;
    each_lane<lanes>(team, length, [&](int k, int lane) SEICHE_INLINED {
      if (lane >= lines) re[k * lanes + lane] = Real(0);
      if (lane + lanes >= lines) im[k * lanes + lane] = Real(0);
    });
    team.barrier();
  }
  /// value <- f(k, value, place) for every number.
  template <class F>
  SEICHE_FN void update(F&& f) const {
    Real* const halves[2] = {part_of(0), part_of(1)};
    each_point<lanes, last_axis>(team, batch, length, [&]<int part>(int k, int lane, Index place) SEICHE_INLINED {
      Real& value = halves[part][k * lanes + lane];
      value = f(k, value, place);
    });
    clear_rest();
  }
};

/// A field with a factor on the spectrum of its lines: the separable correction (eq. 21).
/// Bytes a point: one read, one written.
template <class R, int capacity, int lanes, bool last_axis>
struct LineFilter {
  using Real = R;
  const Real* in;
  Real* out;
  const Complex<Real>* factor;
  Lines<Real> lines;
  using Scratch = LineScratch<Real, capacity, lanes>;
  static constexpr int bytes = 2 * 2 * lanes * sizeof(Real);

  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    LineWork<Real, capacity, lanes, last_axis> work(team, item, lines, scratch);
    work.load(in);
    work.transform.apply(team, factor);
    Real* const target = out;
    work.update([&](int, Real value, Index place) SEICHE_INLINED {
      target[place] = value;
      return value;
    });
  }
};

/// The share of one axis in div(grad p/rho0), added to `sum` unless it is the first; after the last one `sum` becomes
/// p + dt^2/12 c0^2 rho0 sum (eq. 22). Bytes a point: p and the sum read, the sum written, the medium.
template <class Density, class Medium, int capacity, int lanes, bool last_axis>
struct LineCorrection {
  using Real = typename Density::Real;
  const Real* p;
  Real* sum;
  const Complex<Real>*forward, *back;
  Density density;
  Medium medium;
  Lines<Real> lines;
  Index component;
  Real scale;  // dt^2/12 for the last axis, else 0
  i32 first;
  using Scratch = LineScratch<Real, capacity, lanes>;
  static constexpr int bytes = 2 * lanes * (3 * sizeof(Real) + Density::bytes);

  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    LineWork<Real, capacity, lanes, last_axis> work(team, item, lines, scratch);
    work.load(p);
    work.transform.apply(team, forward);
    const int last = lines.plan.length - 1;
    const Index step = work.batch.step;
    work.update([&](int k, Real value, Index place)
                    SEICHE_INLINED { return value / density.between(place, k < last ? step : 0, component); });
    work.transform.apply(team, back);
    Real* const sums = sum;
    const Real* const pressure = p;
    const Real weight = scale;
    const bool begins = first != 0, ends = scale != Real(0);
    work.update([&](int, Real value, Index place) SEICHE_INLINED {
      const Real total = begins ? value : sums[place] + value;
      if (ends) {
        const Real c = medium.sound_speed(place);
        sums[place] = pressure[place] + weight * c * c * medium.density(place) * total;
      } else {
        sums[place] = total;
      }
      return value;
    });
  }
};

/// One axis of a step (eqs. 7 and 9 without kappa): the derivative of the corrected pressure, the velocity, its
/// derivative, the density. `momentum` and `mass` switch the halves, for a step in which a source acts in between.
/// Bytes a point: pressure, velocity and density read, the latter two written; what the medium has.
template <class Density, class Medium, bool nonlinear, int capacity, int lanes, bool last_axis, bool momentum,
          bool mass>
struct LineStep {
  using Real = typename Density::Real;
  const Real* p;
  Real *u, *rho;      // of this axis
  const Real* total;  // density excess of all axes before the step, for nonlinear acoustics
  Real* rate;         // sum over axes of rho0 times the derivatives; null where nothing needs it
  const Complex<Real>*forward, *back;
  const Real *pml, *pml_staggered;  // of this axis
  Density density;
  Medium medium;
  Lines<Real> lines;
  Index component;
  Real dt;
  i32 first;  // whether this axis begins the sum of the rate
  using Scratch = LineScratch<Real, capacity, lanes>;
  static constexpr int bytes =
      2 * lanes * ((momentum ? 3 : 1) + (mass ? 2 + Medium::fields + nonlinear : 0)) * sizeof(Real) +
      2 * lanes * Density::bytes * momentum;

  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    LineWork<Real, capacity, lanes, last_axis> work(team, item, lines, scratch);
    Real* const velocities = u;
    const Real step_time = dt;
    if constexpr (momentum) {
      work.load(p);
      work.transform.apply(team, forward);
      const int last = lines.plan.length - 1;
      const Index step = work.batch.step;
      const Real* const layer = pml_staggered;
      work.update([&](int k, Real slope, Index place) SEICHE_INLINED {
        const Real s = layer[k];
        const Real rest = density.between(place, k < last ? step : 0, component);
        const Real value = s * (s * velocities[place] - step_time / rest * slope);
        velocities[place] = value;
        return value;
      });
    } else {
      work.load(velocities);
    }
    if constexpr (mass) {
      work.transform.apply(team, back);
      Real *const densities = rho, *const rates = rate;
      const Real *const before = total, *const layer = pml;
      const bool begins = first != 0;
      work.update([&](int k, Real slope, Index place) SEICHE_INLINED {
        const Real m = layer[k], rest = medium.density(place);
        const Real moved = step_time * (nonlinear ? rest + Real(2) * before[place] : rest);
        densities[place] = m * (m * densities[place] - moved * slope);
        if (rates != nullptr) rates[place] = begins ? rest * slope : rates[place] + rest * slope;
        return slope;
      });
    }
  }
};

}  // namespace seiche::kspace
