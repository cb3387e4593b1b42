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

/// Spectra of the components times their derivatives (eq. 8). Each is complete except for this axis, and is left ready
/// for the inverse transforms along the other axes. Items are the batches of one component after another. Bytes per
/// number: one read with kappa, one written.
template <class Transform, int D>
struct DivergencePass {
  using Real = typename Transform::Real;
  Complex<Real>* work;
  const Complex<Real>*derivative, *roots;
  const Real* kappa;
  Rows rows;
  SpectralLines lines;
  using Scratch = typename Transform::Scratch;
  static constexpr int bytes = 5 * Transform::n * Transform::lanes * sizeof(Real);

  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    const int component = static_cast<int>(item / lines.batches);
    const auto batch = SpectralBatch<Transform>::of(lines, item % lines.batches);
    const Transform transform{roots, scratch, thread_of(team)};
    Complex<Real>* const spectrum = work + component * rows.spectrum;
    typename Transform::template Registers<Transform::first_radix> registers;
    batch.load(transform, registers, spectrum);
    transform.template run<false>(team, registers, [&](auto& transformed) SEICHE_INLINED {
      transform.each_number(transformed, [&](Complex<Real>& z, int k, int lane) SEICHE_INLINED {
        const int entry = SpectralPlace<D>::of(rows, k, batch.column(lane)).of_component(component);
        z = (unchanging(kappa + batch.at(k, lane)) * unchanging(derivative + entry)) * z;
      });
      transform.template run<true>(team, transformed,
                                   [&](auto& result) SEICHE_INLINED { batch.store(transform, result, spectrum); });
    });
  }
};

/// The operators of power-law absorption (eq. 12): k^(y-2) for the spectrum of the losses, k^(y-1) for that of the
/// dispersion, zero at k = 0. Of `count` spectra the first is that of the losses, or with `first` 1 that of the
/// dispersion. The power is computed once for both. Bytes per number: both read and written.
template <class Transform, int D, int count>
struct LaplacianPass {
  using Real = typename Transform::Real;
  Complex<Real>* work;
  const Complex<Real>* roots;
  const Real* squares;
  Real exponent, scale;  // (y - 2)/2; 1 over the number of points
  Real passband, slope;  // of the taper
  i32 first;
  Rows rows;
  SpectralLines lines;
  using Spectrum = typename Transform::template Registers<Transform::last_radix>;
  /// The power for every number of a thread.
  struct Scratch {
    typename Transform::Scratch transform;
    Real power[count > 1 ? Spectrum::loops * Spectrum::radix : 1][count > 1 ? Transform::threads : 1];
  };
  static constexpr int bytes = 4 * count * Transform::n * Transform::lanes * sizeof(Real);

  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    const auto batch = SpectralBatch<Transform>::of(lines, item);
    const int thread = thread_of(team);
    one_by_one<count>([&](int component) SEICHE_INLINED {
      const Transform transform = Transform{roots, scratch.transform, thread}.afresh();
      Complex<Real>* const spectrum = work + component * rows.spectrum;
      typename Transform::template Registers<Transform::first_radix> registers;
      batch.load(transform, registers, spectrum);
      transform.template run<false>(team, registers, [&](Spectrum& transformed) SEICHE_INLINED {
        transform.each_butterfly_number(transformed, [&](int l, int t, int k, int lane) SEICHE_INLINED {
          const auto at = SpectralPlace<D>::of(rows, k, batch.column(lane));
          const Real k2 =
              unchanging(squares + at.first) + unchanging(squares + at.middle) + unchanging(squares + at.last);
          Real* const power = &scratch.power[count > 1 ? l * Spectrum::radix + t : 0][count > 1 ? thread : 0];
          if (component == 0) *power = laplacian_power(k2, exponent, scale);
          const Real factor = component + first != 0 ? *power * square_root(k2) : *power;
          Complex<Real>& z = transformed.x[l][t];
          z = taper(k2, passband, slope) * factor * z;
        });
        transform.template run<true>(team, transformed,
                                     [&](auto& result) SEICHE_INLINED { batch.store(transform, result, spectrum); });
      });
    });
  }
};

}  // namespace seiche::kspace
