// SPDX-License-Identifier: BSD-3-Clause
/// Rows of real fields, transformed along the last axis by the teams that update them: a transform back ends, and one
/// forward begins, where velocity and density are computed (theory/ultrasound, section 3). Two rows, `lanes` apart, are
/// the parts of a complex line; rows of all components follow each other, in fields and in spectra.
#pragma once
#include "density.hpp"
#include "fixed_fft.hpp"
#include "velocity.hpp"

namespace seiche::kspace {

/// The rows of one batch: `count` from `begin` on.
template <class Transform>
struct RowBatch {
  using Real = typename Transform::Real;
  static constexpr int n = Transform::n, half = n / 2 + 1, lanes = Transform::lanes;
  using Held = typename Transform::template Held<Transform::first_radix>;
  const Team& team;
  Transform transform;
  Index begin;
  int count;

  /// Batch number `item` of fields of `rows` rows each; rows of two fields, one perhaps far larger, are never parts of
  /// the same complex line.
  SEICHE_FN static RowBatch of(const Team& team, const Complex<Real>* roots, typename Transform::Scratch& scratch,
                               Index item, Index rows) {
    const Index batches = (rows + 2 * lanes - 1) / (2 * lanes), field = item / batches;
    const Index first = item % batches * (2 * lanes), left = rows - first;
    return {team, Transform{roots, scratch, thread_of(team)}, field * rows + first,
            static_cast<int>(left < 2 * lanes ? left : 2 * lanes)};
  }
  SEICHE_FN bool has(int lane, int part) const { return lane + part * lanes < count; }
  SEICHE_FN Index row(int lane, int part) const { return begin + lane + part * lanes; }

  /// f(value, m, row) for every number that this thread has of a row. Where there is no row stays zero: what is left
  /// there of one field's round-off could outweigh the next field.
  template <class F>
  SEICHE_FN void each_value(Held& held, F&& f) const {
    transform.each_number(held, [&](Complex<Real>& z, int m, int lane) SEICHE_INLINED {
      has(lane, 0) ? f(z.re, m, row(lane, 0)) : void(z.re = Real(0));
      has(lane, 1) ? f(z.im, m, row(lane, 1)) : void(z.im = Real(0));
    });
  }
  /// f(k, lane) for the numbers of half rows: neighbours in memory are side by side.
  template <class F>
  SEICHE_FN void each_half(F&& f) const {
    for (int j = transform.thread; j < half * lanes; j += Transform::threads) f(j % half, j / half);
  }

  /// The rows of a spectrum, transformed back: then(held).
  template <class F>
  SEICHE_FN void back(const Complex<Real>* spectrum, F&& then) const {
    constexpr int r = Transform::last_radix;
    Complex<Real>* const z = transform.scratch.z;
    team.barrier();
    each_half([&](int k, int lane) SEICHE_INLINED {
      const Complex<Real> none{0, 0};
      const Complex<Real> a = has(lane, 0) ? spectrum[row(lane, 0) * half + k] : none;
      const Complex<Real> b = has(lane, 1) ? spectrum[row(lane, 1) * half + k] : none;
      const bool alone = k == 0 || 2 * k == n;  // of real rows these are real: what else is there is left out
      z[Transform::at(k, lane)] = alone ? Complex<Real>{a.re, b.re} : Complex<Real>{a.re - b.im, a.im + b.re};
      if (!alone) z[Transform::at(n - k, lane)] = {a.re + b.im, b.re - a.im};
    });
    team.barrier();
    typename Transform::template Held<r> held;
    transform.each_number(held,
                          [&](Complex<Real>& x, int k, int lane) SEICHE_INLINED { x = z[Transform::at(k, lane)]; });
    transform.template run<true>(team, held, then);
  }
  /// The rows held, transformed into those of a spectrum.
  SEICHE_FN void forward(Held& held, Complex<Real>* spectrum) const {
    const Complex<Real>* const z = transform.scratch.z;
    transform.template run<false>(team, held, [&](auto& whole) SEICHE_INLINED { transform.put(team, whole); });
    each_half([&](int k, int lane) SEICHE_INLINED {
      const Complex<Real> x = z[Transform::at(k, lane)], y = z[Transform::at(k == 0 ? 0 : n - k, lane)];
      const Real h = Real(0.5);
      if (has(lane, 0)) spectrum[row(lane, 0) * half + k] = {h * (x.re + y.re), h * (x.im - y.im)};
      if (has(lane, 1)) spectrum[row(lane, 1) * half + k] = {h * (x.im + y.im), h * (y.re - x.re)};
    });
  }
};

/// Rows of real fields, `apart` numbers each, into spectra; rows padded to half rows are transformed in place.
/// Bytes a point: one read, one written.
template <class Transform>
struct RowForward {
  using Real = typename Transform::Real;
  const Real* fields;
  Complex<Real>* spectra;
  const Complex<Real>* roots;
  Index count, apart;  // rows of a field
  using Scratch = typename Transform::Scratch;
  static constexpr int bytes = 4 * Transform::n * Transform::lanes * sizeof(Real);

  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    const auto batch = RowBatch<Transform>::of(team, roots, scratch, item, count);
    typename RowBatch<Transform>::Held held = {};
    batch.each_value(held, [&](Real& value, int m, Index row) SEICHE_INLINED { value = fields[row * apart + m]; });
    batch.forward(held, spectra);
  }
};

/// Momentum (eq. 7) of rows of all components from their gradients' spectra; with `onward` the new velocity's spectra
/// take their place. Bytes a point and component: a spectrum and the velocity read and written, the density.
template <class Transform, int D, class Density, bool onward>
struct RowVelocity {
  using Real = typename Transform::Real;
  Real* u;
  Complex<Real>* work;
  const Complex<Real>* roots;
  const Real* pml;
  Density density;
  Rows rows;
  Real dt;
  using Scratch = typename Transform::Scratch;
  static constexpr int bytes = 2 * Transform::n * Transform::lanes * ((onward ? 4 : 3) * sizeof(Real) + Density::bytes);

  SEICHE_FN Real advanced(Real slope, int m, Index place_row) const {
    constexpr int n = Transform::n;
    const Index count = static_cast<Index>(rows.planes) * rows.middle;
    const int j = static_cast<int>(place_row / count), axis = 3 - D + j;
    const Index row = place_row - j * count, i = row * n + m;
    const Index next = axis == 2   ? (m + 1 < n ? 1 : 0)
                       : axis == 1 ? rows.template to_next<1>(row)
                                   : rows.template to_next<0>(row);
    const Real s = pml[axis == 2   ? rows.template entry<2>(row) + m
                       : axis == 1 ? rows.template entry<1>(row)
                                   : rows.template entry<0>(row)];
    Real& value = u[place_row * n + m];
    value = s * (s * value - dt / density.between(i, next, j * rows.points) * slope);
    return value;
  }
  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    const Index count = static_cast<Index>(rows.planes) * rows.middle;
    const auto batch = RowBatch<Transform>::of(team, roots, scratch, item, count);
    batch.back(work, [&](auto& slope) SEICHE_INLINED {
      batch.each_value(slope, [&](Real& value, int m, Index row) SEICHE_INLINED { value = advanced(value, m, row); });
      if constexpr (onward) batch.forward(slope, work);
    });
  }
};

/// What the fractional Laplacians act on (eq. 12), left as spectra of its rows: the rate first, the density last; p
/// keeps the compression.
template <class Real, bool nonlinear, bool losses, bool dispersion>
struct PowerLawSpectra {
  Real* p;
  Complex<Real>*rates, *densities;
  static constexpr bool uses_rate = losses;
  static constexpr int bytes = (1 + losses + dispersion) * sizeof(Real);
  template <class Medium>
  static constexpr int medium_bytes = Medium::fields * (nonlinear ? 2 : 1) * sizeof(Real);
  template <class Medium>
  SEICHE_FN void operator()(const Medium& medium, Index i, Index, Real rho, Real) const {
    p[i] = compression<nonlinear>(medium, i, rho);
  }
  template <class Batch>
  SEICHE_FN void onward(const Batch& batch, typename Batch::Held& rate, typename Batch::Held& density) const {
    if constexpr (losses) batch.forward(rate, rates);
    if constexpr (dispersion) batch.forward(density, densities);
  }
};

/// Conservation of mass (eq. 9) of rows from the spectra of the derivatives of all components, and what follows.
/// Bytes a point: D spectra read, D densities read and written, the medium, and what `Finish` writes.
template <class Transform, int D, bool nonlinear, class Medium, class Finish>
struct RowDensity {
  using Real = typename Transform::Real;
  Real* rho;
  const Complex<Real>*work, *roots;
  const Real* pml;
  Medium medium;
  Finish finish;
  Rows rows;
  Real dt;
  using Batch = RowBatch<Transform>;
  using Held = typename Batch::Held;
  using Scratch = typename Transform::Scratch;
  static constexpr int bytes = 2 * Transform::n * Transform::lanes *
                               (3 * D * sizeof(Real) + Finish::bytes + Finish::template medium_bytes<Medium>);

  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    constexpr int n = Transform::n;
    const auto batch = Batch::of(team, roots, scratch, item, static_cast<Index>(rows.planes) * rows.middle);
    Held before = {}, after = {}, divergence = {};
    if constexpr (nonlinear) {
      batch.each_value(before, [&](Real& value, int m, Index row) SEICHE_INLINED {
        each<0, D>([&]<int j>() SEICHE_INLINED { value += rho[j * rows.points + row * n + m]; });
      });
    }
    each<0, D>([&]<int j>() SEICHE_INLINED {
      constexpr int axis = axis_of<D, j>;
      batch.back(work + j * rows.spectrum, [&](Held& slopes) SEICHE_INLINED {
        batch.transform.each_butterfly_number(slopes, [&](int l, int t, int m, int lane) SEICHE_INLINED {
          each<0, 2>([&]<int part>() SEICHE_INLINED {
            if (!batch.has(lane, part)) return;
            const Index row = batch.row(lane, part), i = row * n + m;
            const auto of = [&](Held& held)
                                SEICHE_INLINED -> Real& { return part == 0 ? held.x[l][t].re : held.x[l][t].im; };
            const Real rest = medium.density(i), slope = of(slopes);
            const Real mass = dt * (nonlinear ? rest + Real(2) * of(before) : rest);
            const Real f = pml[rows.template entry<axis>(row) + (axis == 2 ? m : 0)];
            Real& density = rho[j * rows.points + i];
            density = f * (f * density - mass * slope);
            of(after) += density;
            if constexpr (Finish::uses_rate) of(divergence) += slope;
          });
        });
      });
    });
    batch.transform.each_butterfly_number(after, [&](int l, int t, int m, int lane) SEICHE_INLINED {
      each<0, 2>([&]<int part>() SEICHE_INLINED {
        if (!batch.has(lane, part)) return;
        const Index row = batch.row(lane, part), i = row * n + m;
        const Complex<Real> sum = after.x[l][t];
        Real& rate = part == 0 ? divergence.x[l][t].re : divergence.x[l][t].im;
        rate = medium.density(i) * rate;
        finish(medium, i, 2 * row * rows.half + m, part == 0 ? sum.re : sum.im, rate);
      });
    });
    if constexpr (requires { finish.onward(batch, divergence, after); }) finish.onward(batch, divergence, after);
  }
};

/// Pressure of a power-law medium (eq. 12): the compression is in p, the spectra of the Laplacians in `work`, that of
/// the losses first if there are `losses`, that of the dispersion last. Bytes a point: three numbers read, one written,
/// the medium.
template <class Transform, class Medium, bool losses, bool dispersion>
struct RowPowerLaw {
  using Real = typename Transform::Real;
  Real* p;
  const Complex<Real>*work, *roots;
  Medium medium;
  Rows rows;
  Real tangent;  // tan(pi y/2)
  using Batch = RowBatch<Transform>;
  using Held = typename Batch::Held;
  using Scratch = typename Transform::Scratch;
  static constexpr int bytes =
      2 * Transform::n * Transform::lanes * (2 + losses + dispersion + 2 * Medium::fields) * sizeof(Real);

  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    const auto batch = Batch::of(team, roots, scratch, item, static_cast<Index>(rows.planes) * rows.middle);
    Held lost = {}, delayed = {};
    if constexpr (losses) batch.back(work, [&](Held& values) SEICHE_INLINED { lost = values; });
    if constexpr (dispersion) {
      batch.back(work + rows.spectrum, [&](Held& values) SEICHE_INLINED { delayed = values; });
    }
    batch.transform.each_butterfly_number(lost, [&](int l, int t, int m, int lane) SEICHE_INLINED {
      each<0, 2>([&]<int part>() SEICHE_INLINED {
        if (!batch.has(lane, part)) return;
        const Index i = batch.row(lane, part) * Transform::n + m;
        const Complex<Real> one = lost.x[l][t], two = delayed.x[l][t];
        p[i] =
            power_law_pressure(medium, i, p[i], part == 0 ? one.re : one.im, tangent * (part == 0 ? two.re : two.im));
      });
    });
  }
};

}  // namespace seiche::kspace
