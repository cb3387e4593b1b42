// SPDX-License-Identifier: BSD-3-Clause
/// Spectra of grids, transformed along any axis but the last: teams process neighbouring lines. Multipliers of a
/// spectrum are applied between its last forward and its first inverse transform (theory/ultrasound, section 3).
#pragma once
#include "fixed_fft.hpp"
#include "fractional.hpp"

namespace seiche::kspace {

/// Lines along an axis of consecutive spectra. Numbers of a line are `inner` apart. A block has n inner numbers, and
/// `count` lines in `batches` batches.
struct SpectralLines {
  Index inner, count, batches;
};

/// The lines of one batch.
template <class Transform>
struct SpectralBatch {
  using Real = typename Transform::Real;
  Index begin, inner;
  int first, count;  // lines of the block before this batch, and in it

  SEICHE_FN static SpectralBatch of(const SpectralLines& lines, Index item) {
    const Index block = item / lines.batches, first = item % lines.batches * Transform::lanes;
    const Index remaining = lines.count - first;
    return {block * lines.inner * Transform::n + first, lines.inner, static_cast<int>(first),
            static_cast<int>(remaining < Transform::lanes ? remaining : Transform::lanes)};
  }
  /// Position of a number. A lane without a line has the position of the last line.
  SEICHE_FN Index at(int k, int lane) const { return begin + k * inner + (lane < count ? lane : count - 1); }

  SEICHE_FN int column(int lane) const { return first + (lane < count ? lane : count - 1); }

  template <class H>
  SEICHE_FN void load(const Transform& transform, H& registers, const Complex<Real>* spectrum) const {
    transform.each_number(registers,
                          [&](Complex<Real>& z, int k, int lane) SEICHE_INLINED { z = spectrum[at(k, lane)]; });
  }
  template <class H>
  SEICHE_FN void store(const Transform& transform, H& registers, Complex<Real>* spectrum) const {
    transform.each_number(registers, [&](Complex<Real>& z, int k, int lane) SEICHE_INLINED {
      if (lane < count) spectrum[at(k, lane)] = z;
    });
  }
};

/// Transforms along one axis, in place. Bytes per number of a spectrum: one read, one written.
template <class Transform, bool inverse>
struct SideTransform {
  using Real = typename Transform::Real;
  Complex<Real>* spectra;
  const Complex<Real>* roots;
  SpectralLines lines;
  Range range;
  using Scratch = typename Transform::Scratch;
  static constexpr int bytes = 4 * Transform::n * Transform::lanes * sizeof(Real);

  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    const auto batch = SpectralBatch<Transform>::of(lines, range.of(item));
    const Transform transform{roots, scratch, thread_of(team)};
    typename Transform::template Registers<inverse ? Transform::last_radix : Transform::first_radix> registers;
    batch.load(transform, registers, spectra);
    transform.template run<inverse>(
        team, registers, [&](auto& transformed) SEICHE_INLINED { batch.store(transform, transformed, spectra); });
  }
};

/// Position of a number of a spectrum of D dimensions in tables of all axes, one after another: `k` along the axis of
/// the pass, the first one, and `column` across it.
template <int D>
struct SpectralPlace {
  int first, middle, last;
  SEICHE_FN static SpectralPlace of(const Rows& rows, int k, int column) {
    const int across = rows.planes + rows.middle;
    if constexpr (D == 3) {
      const u32 half = static_cast<u32>(rows.half), c = static_cast<u32>(column);
      return {k, rows.planes + static_cast<int>(c / half), across + static_cast<int>(c % half)};
    } else {
      return {0, rows.planes + k, across + column};
    }
  }
  /// The entry of the axis of component j.
  SEICHE_FN int of_component(int j) const {
    const int axis = 3 - D + j;
    return axis == 0 ? first : axis == 1 ? middle : last;
  }
};

/// Spectra of the derivatives of one field (eq. 6). The last component of `work` is the spectrum of the field, complete
/// except for this axis. It is replaced by the spectra of the derivatives, ready for the inverse transforms along the
/// other axes. Bytes per number of a spectrum: one read with kappa, D written.
template <class Transform, int D>
struct GradientPass {
  using Real = typename Transform::Real;
  Complex<Real>* work;
  const Complex<Real>*derivative, *roots;
  const Real* kappa;
  Rows rows;
  SpectralLines lines;
  using Scratch = typename Transform::Scratch;
  static constexpr int bytes = (2 * D + 3) * Transform::n * Transform::lanes * sizeof(Real);

  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    const auto batch = SpectralBatch<Transform>::of(lines, item);
    const Transform transform{roots, scratch, thread_of(team)};
    typename Transform::template Registers<Transform::first_radix> registers;
    batch.load(transform, registers, work + (D - 1) * rows.spectrum);
    transform.template run<false>(team, registers, [&](auto& spectrum) SEICHE_INLINED {
      transform.each_number(spectrum, [&](Complex<Real>& z, int k, int lane)
                                          SEICHE_INLINED { z = unchanging(kappa + batch.at(k, lane)) * z; });
      one_by_one<D>([&](int j) SEICHE_INLINED {
        auto slope = spectrum;
        transform.each_number(slope, [&](Complex<Real>& z, int k, int lane) SEICHE_INLINED {
          z = unchanging(derivative + SpectralPlace<D>::of(rows, k, batch.column(lane)).of_component(j)) * z;
        });
        transform.afresh().template run<true>(team, slope, [&](auto& transformed) SEICHE_INLINED {
          batch.store(transform, transformed, work + j * rows.spectrum);
        });
      });
    });
  }
};

/// Multiplier of the spectra of the components, a different derivative for each (eq. 8).
template <class Real, int D>
struct DivergenceFactor {
  const Complex<Real>* derivative;
  const Real* kappa;
  static constexpr int bytes = sizeof(Real);
  SEICHE_FN Complex<Real> operator()(const Rows& rows, int component, int k, int column, Index position) const {
    return unchanging(kappa + position) *
           unchanging(derivative + SpectralPlace<D>::of(rows, k, column).of_component(component));
  }
};

/// The operators of power-law absorption: k^(y-2) for the first spectrum, k^(y-1) for the second, zero at k = 0.
template <class Real, int D>
struct LaplacianFactor {
  const Real* squares;
  Real exponent, scale;  // (y - 2)/2; 1 over the number of points
  Real passband, slope;  // of the taper
  i32 first;             // 1 if the first spectrum is absent
  static constexpr int bytes = 0;
  SEICHE_FN Real operator()(const Rows& rows, int component, int k, int column, Index) const {
    const auto at = SpectralPlace<D>::of(rows, k, column);
    const Real k2 = unchanging(squares + at.first) + unchanging(squares + at.middle) + unchanging(squares + at.last);
    return taper(k2, passband, slope) * laplacian_factor(k2, exponent, scale, component + first != 0);
  }
};

/// Multiplies spectra, complete except for this axis, by a factor, ready for the inverse transforms along the other
/// axes. Items are the batches of one component after another. Bytes per number: one read, one written, the factor.
template <class Transform, class Factor>
struct ProductPass {
  using Real = typename Transform::Real;
  Complex<Real>* work;
  const Complex<Real>* roots;
  Factor factor;
  Rows rows;
  SpectralLines lines;
  using Scratch = typename Transform::Scratch;
  static constexpr int bytes = Transform::n * Transform::lanes * (4 * sizeof(Real) + Factor::bytes);

  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    const int component = static_cast<int>(item / lines.batches);
    const auto batch = SpectralBatch<Transform>::of(lines, item % lines.batches);
    const Transform transform{roots, scratch, thread_of(team)};
    Complex<Real>* const spectrum = work + component * rows.spectrum;
    typename Transform::template Registers<Transform::first_radix> registers;
    batch.load(transform, registers, spectrum);
    transform.template run<false>(team, registers, [&](auto& transformed) SEICHE_INLINED {
      transform.each_number(transformed, [&](Complex<Real>& z, int k, int lane) SEICHE_INLINED {
        z = factor(rows, component, k, batch.column(lane), batch.at(k, lane)) * z;
      });
      transform.template run<true>(
          team, transformed, [&](auto& transformed) SEICHE_INLINED { batch.store(transform, transformed, spectrum); });
    });
  }
};

}  // namespace seiche::kspace
