// SPDX-License-Identifier: BSD-3-Clause
/// Batches of rows of real fields and their half spectra, transformed along the last axis by a team. Two rows, `lanes`
/// apart, are the parts of a complex line. Rows of all components are consecutive, in fields and in spectra.
#pragma once
#include "fixed_fft.hpp"

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
    each_number(at_row, [&]<int part>(int l, int t, int m, const auto& place, bool present) SEICHE_INLINED {
      f.template operator()<part>(of<part>(registers, l, t), l, t, m, place, present);
    });
  }
  /// f<part>(l, t, m, place, present) for every number of a lane, wherever its value is.
  template <class AtRow, class F>
  SEICHE_FN void each_number(AtRow&& at_row, F&& f) const {
    constexpr int r = Registers::radix;
    transform.template each_butterfly<r>([&](int l, int i, int lane) SEICHE_INLINED {
      static_for<0, 2>([&]<int part>() SEICHE_INLINED {
        const auto place = at_row(row(lane, part));
        const bool present = has_row(lane, part);
        static_for<0, r>([&]<int t>()
                             SEICHE_INLINED { f.template operator()<part>(l, t, i + t * (n / r), place, present); });
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

}  // namespace seiche::kspace
