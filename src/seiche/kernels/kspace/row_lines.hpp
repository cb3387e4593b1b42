// SPDX-License-Identifier: BSD-3-Clause
/// Rows of real fields, transformed along the last axis by the teams that update them. The inverse transform ends, and
/// the forward transform begins, in the kernel of velocity or density (theory/ultrasound, section 3). Two rows, `lanes`
/// apart, are the parts of a complex line. Rows of all components are consecutive, in fields and in spectra.
#pragma once
#include "density.hpp"
#include "fixed_fft.hpp"
#include "velocity.hpp"

namespace seiche::kspace {

/// A compile-time condition.
template <bool value_>
struct ConstantBool {
  static constexpr bool value = value_;
};

/// Rows of one batch: `count` rows from `begin`.
template <class Transform>
struct RowBatch {
  using Real = typename Transform::Real;
  static constexpr int n = Transform::n, half = n / 2 + 1, lanes = Transform::lanes;
  /// Half rows rounded up to whole sectors of memory, so that the threads of a warp share no sector with another.
  static constexpr int sector = 32 / static_cast<int>(sizeof(Complex<Real>));
  static constexpr int whole = (half + sector - 1) / sector * sector;
  using Registers = typename Transform::template Registers<Transform::first_radix>;
  /// Number of elements of half rows for each thread.
  static constexpr int halves = (whole * lanes + Transform::threads - 1) / Transform::threads;
  const Team& team;
  Transform transform;
  Index begin, pitch;    // the first row; the distance of half rows
  int component, count;  // the field of these rows, and their number

  /// Batch number `item` of fields of `rows` rows each. Rows of two fields, whose magnitudes may differ strongly, are
  /// never parts of the same complex line.
  SEICHE_FN static RowBatch of(const Team& team, const Complex<Real>* roots, typename Transform::Scratch& scratch,
                               Index item, Index rows, Index pitch) {
    const Index batches = (rows + 2 * lanes - 1) / (2 * lanes), field = item / batches;
    const Index first = item % batches * (2 * lanes), remaining = rows - first;
    return {team,
            Transform{roots, scratch, thread_of(team)},
            field * rows + first,
            pitch,
            static_cast<int>(field),
            static_cast<int>(remaining < 2 * lanes ? remaining : 2 * lanes)};
  }
  /// Prefetches these rows, `each` numbers a row.
  template <class T>
  SEICHE_FN void ask(const T* field, Index each) const {
    const char* const first = reinterpret_cast<const char*>(field + begin * each);
    const int size = count * static_cast<int>(each) * static_cast<int>(sizeof(T));
    transform.each_line_of_memory(size, [&](int k) SEICHE_INLINED { prefetch_line_ahead(first + k); });
  }
  SEICHE_FN RowBatch afresh() const { return {team, transform.afresh(), begin, pitch, component, count}; }
  SEICHE_FN bool has_row(int lane, int part) const { return lane + part * lanes < count; }
  /// Row of a lane. A lane without a row has the last one, so loads need no branch.
  SEICHE_FN Index row(int lane, int part) const {
    const int number = lane + part * lanes;
    return begin + (number < count ? number : count - 1);
  }

  /// value <- f(value, m, place) for every number of a row in this thread, where position = at_row(row). f loads but
  /// does not store, so that no load waits for a store. Lanes without a row are zero: round-off of a large previous
  /// field there could exceed the values of the next field.
  template <class AtRow, class F>
  SEICHE_FN void update(Registers& registers, AtRow&& at_row, F&& f) const {
    each_value(registers, at_row,
               [&]<int part>(Real& value, int, int, int m, const auto& position, bool present) SEICHE_INLINED {
                 const Real result = f(value, m, position);
                 value = present ? result : Real(0);
               });
  }
  /// Stores rows to a field whose rows are n apart.
  SEICHE_FN void store(Registers& registers, Real* field) const {
    each_value(
        registers, [&](Index row) SEICHE_INLINED { return field + row * n; },
        [&]<int part>(Real& value, int, int, int m, Real* target, bool present) SEICHE_INLINED {
          if (present) target[m] = value;
        });
  }
  /// f<part>(value, l, t, m, place, present) for every number of a lane: `position` of its row, and `present` if the
  /// row exists.
  template <class AtRow, class F>
  SEICHE_FN void each_value(Registers& registers, AtRow&& at_row, F&& f) const {
    constexpr int r = Registers::radix;
    transform.template each_butterfly<r>([&](int l, int i, int lane) SEICHE_INLINED {
      static_for<0, 2>([&]<int part>() SEICHE_INLINED {
        const auto position = at_row(row(lane, part));
        const bool present = has_row(lane, part);
        static_for<0, r>([&]<int t>() SEICHE_INLINED {
          f.template operator()<part>(of<part>(registers, l, t), l, t, i + t * (n / r), position, present);
        });
      });
    });
  }
  template <int part>
  SEICHE_FN static Real& of(Registers& registers, int l, int t) {
    return part == 0 ? registers.x[l][t].re : registers.x[l][t].im;
  }
  /// f(slot, k, lane) for the numbers of half rows. Neighbouring threads access neighbouring memory.
  template <class F>
  SEICHE_FN void each_half(F&& f) const {
    SEICHE_UNROLLED
    for (int slot = 0; slot < halves; ++slot) {
      const int j = transform.thread + slot * Transform::threads;
      const int k = j % whole, lane = j / whole;
      if (k < half && lane < lanes) f(slot, k, lane);
    }
  }

  /// Inverse transform of the rows of a spectrum: then(registers).
  template <class F>
  SEICHE_FN void back(const Complex<Real>* spectrum, F&& then) const {
    constexpr int r = Transform::last_radix;
    Complex<Real>* const z = transform.scratch.z;
    Complex<Real> first[halves], second[halves];
    each_half([&](int slot, int k, int lane) SEICHE_INLINED {
      first[slot] = spectrum[row(lane, 0) * pitch + k];
      second[slot] = spectrum[row(lane, 1) * pitch + k];
    });
    team.barrier();
    each_half([&](int slot, int k, int lane) SEICHE_INLINED {
      const Complex<Real> a = first[slot], b = second[slot];
      const bool is_real = k == 0 || 2 * k == n;  // these are real for real rows: their imaginary part is ignored
      z[Transform::at(k, lane)] = is_real ? Complex<Real>{a.re, b.re} : Complex<Real>{a.re - b.im, a.im + b.re};
      if (!is_real) z[Transform::at(n - k, lane)] = {a.re + b.im, b.re - a.im};
    });
    team.barrier();
    typename Transform::template Registers<r> registers;
    transform.take(registers);
    transform.template run<true>(team, registers, then);
  }
  /// Forward transform of the rows in registers to rows of a spectrum.
  SEICHE_FN void forward(Registers& registers, Complex<Real>* spectrum) const {
    const Complex<Real>* const z = transform.scratch.z;
    transform.template run<false>(team, registers, [&](auto& whole) SEICHE_INLINED { transform.put(team, whole); });
    each_half([&](int, int k, int lane) SEICHE_INLINED {
      const Complex<Real> x = z[Transform::at(k, lane)], y = z[Transform::at(k == 0 ? 0 : n - k, lane)];
      const Real h = Real(0.5);
      if (has_row(lane, 0)) spectrum[row(lane, 0) * pitch + k] = {h * (x.re + y.re), h * (x.im - y.im)};
      if (has_row(lane, 1)) spectrum[row(lane, 1) * pitch + k] = {h * (x.im + y.im), h * (y.re - x.re)};
    });
  }
};

/// Rows without a weight.
struct Even {
  u8 unused;
  struct Row {
    template <class Real>
    SEICHE_FN Real operator()(Real value, int) const {
      return value;
    }
  };
  SEICHE_FN Row of(Index) const { return {}; }
};
/// Rows of one block of a grid times the bell of its overlaps (theory/ultrasound, eq. 32).
template <class Real>
struct Tapered {
  const Real* bell;  // numbers along the axes one after another
  Rows rows;
  struct Row {
    Real across_rows;
    const Real* along;
    SEICHE_FN Real operator()(Real value, int m) const { return (across_rows * unchanging(along + m)) * value; }
  };
  SEICHE_FN Row of(Index row) const {
    return {unchanging(bell + rows.template entry<0>(row)) * unchanging(bell + rows.template entry<1>(row)),
            bell + rows.template entry<2>(row)};
  }
};

/// Transforms rows of real fields, `apart` numbers each, to spectra. Rows padded to half rows are transformed in place.
/// Bytes per point: one read, one written.
template <class Transform, class Weight>
struct RowForward {
  using Real = typename Transform::Real;
  const Real* fields;
  Complex<Real>* spectra;
  const Complex<Real>* roots;
  Index count, apart, pitch;  // rows of a field; the distance of rows, and of half rows
  Weight weight;
  Range range;
  using Scratch = typename Transform::Scratch;
  static constexpr int bytes = 4 * Transform::n * Transform::lanes * sizeof(Real);

  struct Place {
    const Real* field;
    typename Weight::Row weight;
  };
  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    const auto batch = RowBatch<Transform>::of(team, roots, scratch, range.of(item), count, pitch);
    const Index first = batch.component * count;
    typename RowBatch<Transform>::Registers registers = {};
    batch.update(
        registers, [&](Index row) SEICHE_INLINED { return Place{fields + row * apart, weight.of(row - first)}; },
        [](Real, int m, const Place& row) SEICHE_INLINED { return row.weight(row.field[m], m); });
    batch.forward(registers, spectra);
  }
};

/// Momentum (eq. 7) for rows of all components from the spectra of their gradients. With `onward`, the spectra of the
/// new velocity replace them. Bytes per point and component: a spectrum and the velocity read and written, the density.
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

  /// A row of component j, whose axis may be the axis of the row.
  struct Place {
    Index first, component, next;
    Real is_row_axis;
    const Real* layer;
    bool along;
  };
  SEICHE_FN Place position(int j, Index row) const {
    const int axis = 3 - D + j;
    const Real* const across_rows = pml + (axis == 0 ? rows.template entry<0>(row) : rows.template entry<1>(row));
    return {row * Transform::n,
            j * rows.points,
            axis == 1 ? rows.template to_next<1>(row) : rows.template to_next<0>(row),
            unchanging(across_rows),
            pml + rows.template entry<2>(row),
            axis == 2};
  }
  SEICHE_FN Real advanced(Real slope, int m, const Place& row) const {
    const Index i = row.first + m, next = row.along ? (m + 1 < Transform::n ? 1 : 0) : row.next;
    const Real last = unchanging(row.layer + m), s = row.along ? last : row.is_row_axis;
    return s * (s * u[row.component + i] - dt * inverse_of(density.between(i, next, row.component)) * slope);
  }
  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    const Index count = static_cast<Index>(rows.planes) * rows.middle;
    const auto batch = RowBatch<Transform>::of(team, roots, scratch, item, count, rows.half);
    batch.ask(u, Transform::n);
    batch.back(work, [&](auto& slope) SEICHE_INLINED {
      const int j = batch.component;
      batch.update(
          slope, [&](Index row) SEICHE_INLINED { return position(j, row - j * count); },
          [&](Real value, int m, const Place& row) SEICHE_INLINED { return advanced(value, m, row); });
      batch.store(slope, u);
      if constexpr (onward) batch.afresh().forward(slope, work);
    });
  }
};

/// Inputs of the fractional Laplacians (eq. 12) as spectra of rows: the rate first, the density last. p has the
/// compression.
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
  SEICHE_FN void onward(const Batch& batch, typename Batch::Registers& rate, typename Batch::Registers& density) const {
    if constexpr (losses) batch.afresh().forward(rate, rates);
    if constexpr (dispersion) batch.afresh().forward(density, densities);
  }
};

/// Conservation of mass (eq. 9) for rows from the spectra of the derivatives of all components, followed by `Finish`.
/// Bytes per point: D spectra read, D densities read and written, the medium, and the writes of `Finish`.
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
  using Registers = typename Batch::Registers;
  using Scratch = typename Transform::Scratch;
  static constexpr int bytes = 2 * Transform::n * Transform::lanes *
                               (3 * D * sizeof(Real) + Finish::bytes + Finish::template medium_bytes<Medium>);

  static constexpr int n = Transform::n;
  struct Place {
    Index first;
    Real is_row_axis;
    const Real* layer;
  };

  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    const auto begin = Batch::of(team, roots, scratch, item, static_cast<Index>(rows.planes) * rows.middle, rows.half);
    const auto first = [](Index row) SEICHE_INLINED { return row * n; };
    Registers before = {}, after = {}, divergence = {};
    if constexpr (nonlinear) {
      begin.update(before, first, [&](Real sum, int m, Index at) SEICHE_INLINED {
        static_for<0, D>([&]<int j>() SEICHE_INLINED { sum += rho[j * rows.points + at + m]; });
        return sum;
      });
    }
    one_by_one<D>([&](int j) SEICHE_INLINED {
      const Batch batch = begin.afresh();
      const int axis = 3 - D + j;
      const auto position = [&](Index row) SEICHE_INLINED {
        const int entry = axis == 0 ? rows.template entry<0>(row) : rows.template entry<1>(row);
        return Place{row * n, unchanging(pml + entry), pml + rows.template entry<2>(row)};
      };
      batch.ask(rho + j * rows.points, n);
      if (j + 1 < D) batch.ask(work + (j + 1) * rows.spectrum, rows.half);
      batch.back(work + j * rows.spectrum, [&](Registers& slopes) SEICHE_INLINED {
        batch.each_value(
            slopes, position,
            [&]<int part>(Real& value, int l, int t, int m, const Place& row, bool present) SEICHE_INLINED {
              const Index i = row.first + m;
              const Real remaining = medium.density(i);
              const Real mass =
                  dt * (nonlinear ? remaining + Real(2) * Batch::template of<part>(before, l, t) : remaining);
              const Real last = unchanging(row.layer + m), f = axis == 2 ? last : row.is_row_axis;
              if constexpr (Finish::uses_rate) Batch::template of<part>(divergence, l, t) += present ? value : Real(0);
              value = f * (f * rho[j * rows.points + i] - mass * value);
              Batch::template of<part>(after, l, t) += present ? value : Real(0);
            });
        batch.store(slopes, rho + j * rows.points);
      });
    });
    const Batch batch = begin.afresh();
    if constexpr (Finish::uses_rate) {
      batch.update(divergence, first,
                   [&](Real rate, int m, Index at) SEICHE_INLINED { return medium.density(at + m) * rate; });
    }
    const auto end = [&](auto all) SEICHE_INLINED {
      batch.each_value(
          after, [](Index row) SEICHE_INLINED { return row; },
          [&]<int part>(Real& sum, int l, int t, int m, Index row, bool present) SEICHE_INLINED {
            if (!all.value && !present) return;
            const Real rate = Batch::template of<part>(divergence, l, t);
            finish(medium, row * n + m, 2 * row * rows.half + m, sum, rate);
          });
    };
    batch.count == 2 * Batch::lanes ? end(ConstantBool<true>{}) : end(ConstantBool<false>{});
    if constexpr (requires { finish.onward(batch, divergence, after); }) finish.onward(batch, divergence, after);
  }
};

/// Pressure of a power-law medium (eq. 12). p has the compression, `work` the spectra of the Laplacians: first that of
/// the losses, if there are `losses`, last that of the dispersion. Bytes per point: three numbers read, one written,
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
  using Registers = typename Batch::Registers;
  using Scratch = typename Transform::Scratch;
  static constexpr int bytes =
      2 * Transform::n * Transform::lanes * (2 + losses + dispersion + 2 * Medium::fields) * sizeof(Real);

  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    const auto batch = Batch::of(team, roots, scratch, item, static_cast<Index>(rows.planes) * rows.middle, rows.half);
    Registers lost = {}, delayed = {};
    if constexpr (losses) batch.back(work, [&](Registers& values) SEICHE_INLINED { lost = values; });
    if constexpr (dispersion) {
      batch.afresh().back(work + rows.spectrum, [&](Registers& values) SEICHE_INLINED { delayed = values; });
    }
    batch.each_value(
        lost, [](Index row) SEICHE_INLINED { return row * Transform::n; },
        [&]<int part>(Real& value, int l, int t, int m, Index first, bool) SEICHE_INLINED {
          const Index i = first + m;
          value = power_law_pressure(medium, i, p[i], value, tangent * Batch::template of<part>(delayed, l, t));
        });
    batch.store(lost, p);
  }
};

}  // namespace seiche::kspace
