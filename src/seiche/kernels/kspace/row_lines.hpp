// SPDX-License-Identifier: BSD-3-Clause
/// Rows of real fields, transformed along the last axis by the teams that update them. The inverse transform ends, and
/// the forward transform begins, in the kernel of velocity or density (theory/ultrasound, section 3).
#pragma once
#include "density.hpp"
#include "row_batch.hpp"
#include "velocity.hpp"

namespace seiche::kspace {

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
  /// `rate(registers)` and `density(registers)` read the rows of a batch.
  template <class Batch, class Rate, class Density>
  SEICHE_FN void onward(const Batch& batch, Rate&& rate, Density&& density) const {
    typename Batch::Registers rows;
    if constexpr (losses) {
      rate(rows);
      batch.afresh().forward(rows, rates);
    }
    if constexpr (dispersion) {
      density(rows);
      batch.afresh().forward(rows, densities);
    }
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
  /// Numbers of every thread in shared memory, or of one thread in its registers, if `used`.
  template <bool used, bool shared>
  struct Kept {
    static constexpr int radix = Registers::radix;
    Real of[used ? 2 * Registers::loops * radix : 1][used && shared ? Transform::threads : 1];
    template <int part>
    SEICHE_FN Real& at(int thread, int l, int t) {
      return of[2 * (l * radix + t) + part][shared ? thread : 0];
    }
  };
  template <bool shared>
  struct Sums {
    Kept<nonlinear, shared> before;  ///< sum of the densities before the step
    Kept<true, shared> after;        ///< and after it
    Kept<Finish::uses_rate, shared> divergence;
  };
  /// More than one sum in registers would be spilled. Two teams should fit the memory of a multiprocessor.
  static constexpr bool shared =
      (nonlinear || Finish::uses_rate) && sizeof(Sums<true>) + sizeof(typename Transform::Scratch) <= 112 * 1024;
  struct Scratch {
    typename Transform::Scratch transform;
    Sums<shared> sums;
  };
  static constexpr int bytes = 2 * Transform::n * Transform::lanes *
                               (3 * D * sizeof(Real) + Finish::bytes + Finish::template medium_bytes<Medium>);

  static constexpr int n = Transform::n;
  struct Place {
    Index first;
    Real is_row_axis;
    const Real* layer;
  };

  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    const auto begin =
        Batch::of(team, roots, scratch.transform, item, static_cast<Index>(rows.planes) * rows.middle, rows.half);
    const auto first = [](Index row) SEICHE_INLINED { return row * n; };
    const int thread = thread_of(team);
    Sums<false> own;
    auto& sums = [&]() SEICHE_INLINED -> auto& {
      if constexpr (shared) {
        return scratch.sums;
      } else {
        return own;
      }
    }();
    auto& before = sums.before;
    auto& after = sums.after;
    auto& divergence = sums.divergence;
    if constexpr (nonlinear) {
      Registers total = {};
      begin.update(total, first, [&](Real sum, int m, Index at) SEICHE_INLINED {
        static_for<0, D>([&]<int j>() SEICHE_INLINED { sum += rho[j * rows.points + at + m]; });
        return sum;
      });
      begin.each_value(total, first, [&]<int part>(Real& sum, int l, int t, int, Index, bool) SEICHE_INLINED {
        before.template at<part>(thread, l, t) = sum;
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
        batch.each_value(slopes, position,
                         [&]<int part>(Real& value, int l, int t, int m, const Place& row, bool present)
                             SEICHE_INLINED {
                               const Index i = row.first + m;
                               const Real remaining = medium.density(i);
                               Real mass = remaining;
                               if constexpr (nonlinear) mass += Real(2) * before.template at<part>(thread, l, t);
                               mass *= dt;
                               const Real last = unchanging(row.layer + m), f = axis == 2 ? last : row.is_row_axis;
                               const auto add = [&](auto& sum) SEICHE_INLINED {
                                 Real& kept = sum.template at<part>(thread, l, t);
                                 kept = (j > 0 ? kept : Real(0)) + (present ? value : Real(0));
                               };
                               if constexpr (Finish::uses_rate) add(divergence);
                               value = f * (f * rho[j * rows.points + i] - mass * value);
                               add(after);
                             });
        batch.store(slopes, rho + j * rows.points);
      });
    });
    const Batch batch = begin.afresh();
    if constexpr (Finish::uses_rate) {
      batch.each_number(first, [&]<int part>(int l, int t, int m, Index at, bool present) SEICHE_INLINED {
        Real& rate = divergence.template at<part>(thread, l, t);
        rate = present ? medium.density(at + m) * rate : Real(0);
      });
    }
    const auto end = [&](auto all) SEICHE_INLINED {
      batch.each_number([](Index row) SEICHE_INLINED { return row; },
                        [&]<int part>(int l, int t, int m, Index row, bool present) SEICHE_INLINED {
                          if (!all.value && !present) return;
                          Real rate = Real(0);
                          if constexpr (Finish::uses_rate) rate = divergence.template at<part>(thread, l, t);
                          finish(medium, row * n + m, 2 * row * rows.half + m, after.template at<part>(thread, l, t),
                                 rate);
                        });
    };
    batch.count == 2 * Batch::lanes ? end(ConstantBool<true>{}) : end(ConstantBool<false>{});
    if constexpr (requires { finish.onward(batch, divergence, after); }) {
      const auto take = [&](auto& kept) SEICHE_INLINED {
        return [&](Registers& rows) SEICHE_INLINED {
          batch.each_value(rows, first, [&]<int part>(Real& value, int l, int t, int, Index, bool) SEICHE_INLINED {
            value = kept.template at<part>(thread, l, t);
          });
        };
      };
      finish.onward(batch, take(divergence), take(after));
    }
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
