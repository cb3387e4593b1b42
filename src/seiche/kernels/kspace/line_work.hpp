// SPDX-License-Identifier: BSD-3-Clause
/// Batches of real lines along one axis, and their transforms by a team: of any length in scratch memory, or of
/// compile-time length in registers (theory/ultrasound, section 4).
#pragma once
#include "fixed_fft.hpp"
#include "line_fft.hpp"

namespace seiche::kspace {

/// Lines along an axis of a field: `outer` blocks of `inner` lines. The numbers of a line are `inner` apart. Lines
/// along the last axis (inner 1) are consecutive.
template <class Real>
struct Lines {
  Index outer, inner, batches;  // batches: per block; if inner is 1, of all blocks together
  LinePlan<Real> plan;
};

/// A batch: beginning of line `l`, distance between its numbers, and number of lines.
template <bool last_axis>
struct Batch {
  Index begin, step, line_distance;
  int count;

  template <class Real>
  SEICHE_FN static Batch of(const Lines<Real>& lines, Index item, int size) {
    const Index length = lines.plan.length;
    if constexpr (last_axis) {
      const Index first = item * size, remaining = lines.outer - first;
      return {first * length, 1, length, static_cast<int>(remaining < size ? remaining : size)};
    } else {
      const Index block = item / lines.batches, first = item % lines.batches * size, remaining = lines.inner - first;
      return {block * length * lines.inner + first, lines.inner, 1,
              static_cast<int>(remaining < size ? remaining : size)};
    }
  }
  SEICHE_FN Index at(int k, int line) const { return begin + k * step + line * line_distance; }
};

/// f(k, lane, position) for the numbers k of every line of a batch. `lane` and `part` (0 real, 1 imaginary) locate the
/// number in the scratch, `position` in the field. Neighbouring threads access neighbouring memory.
template <int lanes, bool last_axis, class T, class F>
SEICHE_FN void each_point(const T& team, const Batch<last_axis>& batch, int length, F&& f) {
  static_for<0, 2>([&]<int part>() SEICHE_INLINED {
    const int remaining = batch.count - part * lanes, width = remaining < lanes ? remaining : lanes;
    if constexpr (last_axis && ManyThreads<T>) {
      for (int line = 0; line < width; ++line) {
        for (int k = team.thread; k < length; k += team.threads) {
          f.template operator()<part>(k, line, batch.at(k, line + part * lanes));
        }
      }
    } else if constexpr (ManyThreads<T>) {
      for (int j = team.thread; j < length * lanes; j += team.threads) {
        const int k = j / lanes, lane = j % lanes;
        if (lane < width) f.template operator()<part>(k, lane, batch.at(k, lane + part * lanes));
      }
    } else if constexpr (last_axis) {
      for (int line = 0; line < width; ++line) {
        const Index start = batch.at(0, line + part * lanes);
        team.for_each(length, [&](int k) SEICHE_INLINED { f.template operator()<part>(k, line, start + k); });
      }
    } else {
      for (int k = 0; k < length; ++k) {
        const Index start = batch.at(k, part * lanes);
        team.for_each(width, [&](int lane) SEICHE_INLINED { f.template operator()<part>(k, lane, start + lane); });
      }
    }
  });
  team.barrier();
}

/// Stores no number.
struct Nothing {
  template <class Real>
  SEICHE_FN void operator()(Real, Index) const {}
};

/// Lines of any length up to a capacity.
template <class R, int capacity, int lanes_, bool last_axis>
struct AnyLines {
  using Real = R;
  using Batch = kspace::Batch<last_axis>;
  using Scratch = LineScratch<Real, capacity, lanes_>;
  static constexpr int lanes = lanes_;
  LineTransform<Real, capacity, lanes> transform;
  const Team& team;
  Batch batch;
  int length;

  SEICHE_FN AnyLines(const Team& team, Index item, const Lines<Real>& lines, Scratch& scratch)
      : transform{lines.plan, scratch},
        team(team),
        batch(Batch::of(lines, item, 2 * lanes)),
        length(lines.plan.length) {}

  SEICHE_FN Real* part_of(int part) const {
    return part == 0 ? transform.scratch.re[transform.current] : transform.scratch.im[transform.current];
  }
  SEICHE_FN void ask(const Real*) const {}
  /// Multiplies the spectra of the lines by a table.
  SEICHE_FN void apply(const Complex<Real>* multiplier) { transform.apply(team, multiplier); }
  /// Loads lines of a field into the scratch.
  SEICHE_FN void load(const Real* field) const {
    Real* const halves[2] = {part_of(0), part_of(1)};
    clear_unused();
    each_point<lanes, last_axis>(team, batch, length, [&]<int part>(int k, int lane, Index position) SEICHE_INLINED {
      halves[part][k * lanes + lane] = field[position];
    });
  }
  /// Sets the lanes without a line to zero. Round-off of a large previous field there could exceed the values of the
  /// next field.
  SEICHE_FN void clear_unused() const {
    if (batch.count == 2 * lanes) return;
    Real *const re = part_of(0), *const im = part_of(1);
    const int lines = batch.count;
    each_lane<lanes>(team, length, [&](int k, int lane) SEICHE_INLINED {
      if (lane >= lines) re[k * lanes + lane] = Real(0);
      if (lane + lanes >= lines) im[k * lanes + lane] = Real(0);
    });
    team.barrier();
  }
  /// value <- f(k, value, position) for every number, then store(value, position).
  template <class F, class Store = Nothing>
  SEICHE_FN void update(F&& f, Store&& store = {}) const {
    Real* const halves[2] = {part_of(0), part_of(1)};
    each_point<lanes, last_axis>(team, batch, length, [&]<int part>(int k, int lane, Index position) SEICHE_INLINED {
      Real& value = halves[part][k * lanes + lane];
      value = f(k, value, position);
      store(value, position);
    });
    clear_unused();
  }
  /// f(k, value, position) for every number; f may read and write fields at this position.
  template <class F>
  SEICHE_FN void each(F&& f) const {
    const Real* const halves[2] = {part_of(0), part_of(1)};
    each_point<lanes, last_axis>(team, batch, length, [&]<int part>(int k, int lane, Index position) SEICHE_INLINED {
      f(k, halves[part][k * lanes + lane], position);
    });
  }
};

/// Lines of a length with the factors `Factors`. Two real lines, `lanes` apart, are the parts of a complex one.
template <class R, class Factors, int lanes_, int block, bool last_axis>
struct FixedLines {
  using Real = R;
  using Batch = kspace::Batch<last_axis>;
  using Transform = FixedTransform<Real, Factors, lanes_, block, last_axis>;
  using Scratch = typename Transform::Scratch;
  using Registers = typename Transform::template Registers<Transform::first_radix>;
  static constexpr int lanes = lanes_;
  Transform transform;
  const Team& team;
  Batch batch;
  Registers registers;

  SEICHE_FN FixedLines(const Team& team, Index item, const Lines<Real>& lines, Scratch& scratch)
      : transform{lines.plan.roots, scratch, thread_of(team)}, team(team), batch(Batch::of(lines, item, 2 * lanes)) {}

  /// Prefetches these lines of a field.
  SEICHE_FN void ask(const Real* field) const {
    if constexpr (last_axis) {
      const char* const first = reinterpret_cast<const char*>(field + batch.begin);
      const int size = batch.count * Transform::n * static_cast<int>(sizeof(Real));
      transform.each_line_of_memory(size, [&](int k) SEICHE_INLINED { prefetch_line_ahead(first + k); });
    } else if constexpr (!vector_lanes) {
      for (int k = transform.thread; k < Transform::n; k += Transform::threads) {
        prefetch_line_ahead(field + batch.at(k, 0));
      }
    }
  }
  SEICHE_FN void apply(const Complex<Real>* multiplier) {
    const Transform transform = this->transform.afresh();
    transform.template run<false>(team, registers, [&](auto& spectrum) SEICHE_INLINED {
      transform.each_number(spectrum, [&](Complex<Real>& z, int k, int) SEICHE_INLINED { z = multiplier[k] * z; });
      transform.afresh().template run<true>(team, spectrum,
                                            [&](Registers& lines) SEICHE_INLINED { registers = lines; });
    });
  }
  SEICHE_FN void load(const Real* field) {
    transform.each_number(registers, [&](Complex<Real>& z, int k, int lane) SEICHE_INLINED {
      z.re = value_or_zero(lane, field[position(k, lane)]);
      z.im = value_or_zero(lane + lanes, field[position(k, lane + lanes)]);
    });
  }
  /// value <- f(k, value, position) for every number; lanes without a line are zero. Then store(value, position) for
  /// all numbers, so that no load of `f` waits for a store.
  template <class F, class Store = Nothing>
  SEICHE_FN void update(F&& f, Store&& store = {}) {
    const Transform transform = this->transform.afresh();
    transform.each_number(registers, [&](Complex<Real>& z, int k, int lane) SEICHE_INLINED {
      z.re = value_or_zero(lane, f(k, z.re, position(k, lane)));
      z.im = value_or_zero(lane + lanes, f(k, z.im, position(k, lane + lanes)));
    });
    transform.each_number(registers, [&](Complex<Real>& z, int k, int lane) SEICHE_INLINED {
      if (lane < batch.count) store(z.re, batch.at(k, lane));
      if (lane + lanes < batch.count) store(z.im, batch.at(k, lane + lanes));
    });
  }
  /// f(k, value, position) for every number of a line; f may read and write fields at this position.
  template <class F>
  SEICHE_FN void each(F&& f) {
    const Transform transform = this->transform.afresh();
    transform.each_number(registers, [&](Complex<Real>& z, int k, int lane) SEICHE_INLINED {
      if (lane < batch.count) f(k, z.re, batch.at(k, lane));
      if (lane + lanes < batch.count) f(k, z.im, batch.at(k, lane + lanes));
    });
  }
  /// Position of a number. A lane without a line has the position of the last line.
  SEICHE_FN Index position(int k, int line) const { return batch.at(k, line < batch.count ? line : batch.count - 1); }
  SEICHE_FN Real value_or_zero(int line, Real value) const { return line < batch.count ? value : Real(0); }
};

}  // namespace seiche::kspace
