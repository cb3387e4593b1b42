// SPDX-License-Identifier: BSD-3-Clause
/// Fourier transforms of lines with compile-time length and factors. A thread has the numbers of its butterflies in
/// registers. Between two factors, threads exchange numbers in the scratch memory of the team. The inverse uses the
/// factors in reverse order, so each thread multiplies its part of a spectrum, and updates its part of a line, in place
/// (theory/ultrasound, section 4).
#pragma once
#include "butterfly.hpp"

namespace seiche::kspace {

/// A range of items of several fields: `count` of the `all` items of each, from `first`, with wrap-around.
struct Range {
  i32 first, count, all;
  SEICHE_FN Index of(Index item) const {
    const u32 per_field = static_cast<u32>(count), field = static_cast<u32>(item) / per_field;
    const u32 position = static_cast<u32>(first) + (static_cast<u32>(item) - field * per_field);
    return static_cast<Index>(field) * all +
           (position < static_cast<u32>(all) ? position : position - static_cast<u32>(all));
  }
};

/// `lanes` complex lines at a time. Neighbouring threads process neighbouring lanes or, with `along`, neighbouring
/// numbers of a line, according to the storage order.
template <class Real_, class Factors, int lanes_, int block, bool along>
struct FixedTransform {
  using Real = Real_;
  static constexpr int n = Factors::length, lanes = lanes_, stages = Factors::count;
  static constexpr int threads = vector_lanes ? 1 : block;
  static constexpr int first_radix = Factors::of(0), last_radix = Factors::of(stages - 1);
  /// One extra position for every eight along a line avoids bank conflicts of threads that write numbers 8 or 64 apart.
  static constexpr int pitch = along ? n + n / 8 + 1 : lanes;
  static constexpr SEICHE_FN int at(int k, int lane) { return along ? lane * pitch + k + k / 8 : k * pitch + lane; }

  /// Position of number first + t stride, for t < r. Where possible, this is the position of `first` plus a
  /// compile-time distance.
  template <int stride, int r>
  static constexpr SEICHE_FN int at(int first, int lane, int t) {
    if constexpr (!along) return at(first, lane) + t * (stride * lanes);
    if constexpr (stride % 8 == 0) return at(first, lane) + t * (stride + stride / 8);
    if constexpr (8 % (stride * r) == 0) return at(first, lane) + t * stride;  // first is a multiple of stride r
    return at(first + t * stride, lane);
  }

  struct Scratch {
    alignas(16) Complex<Real> z[along ? lanes * pitch : n * pitch];
  };

  template <int r>
  static constexpr int butterflies = n / r * lanes;
  /// Butterflies of r numbers in the registers of a thread: x[l][t] is number i + t n/r of a line.
  template <int r>
  struct Registers {
    static constexpr int radix = r, loops = (butterflies<r> + threads - 1) / threads;
    Complex<Real> x[loops][r];
  };

  const Complex<Real>* roots;  // exp(-2 pi i q/n)
  Scratch& scratch;
  int thread;

  /// The same transform with positions and roots recomputed. Reusing them from one transform to the next would exhaust
  /// the registers.
  SEICHE_FN FixedTransform afresh() const { return {roots, scratch, anew(thread)}; }

  /// f(k) for every 128th k < size, distributed over the threads. Not needed on a CPU, which prefetches in
  /// hardware.
  template <class F>
  SEICHE_FN void each_line_of_memory(int size, F&& f) const {
    if constexpr (!vector_lanes) {
      for (int k = thread * 128; k < size; k += threads * 128) f(k);
    }
  }

  /// f(l, i, lane) for the butterflies of this thread.
  template <int r, class F>
  SEICHE_FN void each_butterfly(F&& f) const {
    constexpr int all = butterflies<r>, loops = Registers<r>::loops, apart = n / r;
    SEICHE_UNROLLED
    for (int l = 0; l < loops; ++l) {
      const int b = thread + l * threads;
      if (all % threads == 0 || b < all) f(l, along ? b % apart : b / lanes, along ? b / apart : b % lanes);
    }
  }
  /// f(l, t, k, lane) for every number x[l][t] of this thread.
  template <int r, class F>
  SEICHE_FN void each_butterfly_number(const Registers<r>&, F&& f) const {
    each_butterfly<r>([&](int l, int i, int lane) SEICHE_INLINED {
      static_for<0, r>([&]<int t>() SEICHE_INLINED { f(l, t, i + t * (n / r), lane); });
    });
  }
  /// f(x, k, lane) for every number of this thread.
  template <int r, class F>
  SEICHE_FN void each_number(Registers<r>& registers, F&& f) const {
    each_butterfly_number(registers,
                          [&](int l, int t, int k, int lane) SEICHE_INLINED { f(registers.x[l][t], k, lane); });
  }
  /// Writes numbers to the scratch, where all threads can read them.
  template <int r>
  SEICHE_FN void put(const Team& team, Registers<r>& registers) const {
    team.barrier();  // other threads may still read the old numbers
    each_butterfly<r>([&](int l, int i, int lane) SEICHE_INLINED {
      static_for<0, r>([&]<int t>() SEICHE_INLINED { scratch.z[at<n / r, r>(i, lane, t)] = registers.x[l][t]; });
    });
    team.barrier();
  }
  /// Reads numbers from the scratch.
  template <int r>
  SEICHE_FN void take(Registers<r>& registers) const {
    each_butterfly<r>([&](int l, int i, int lane) SEICHE_INLINED {
      static_for<0, r>([&]<int t>() SEICHE_INLINED { registers.x[l][t] = scratch.z[at<n / r, r>(i, lane, t)]; });
    });
  }

  /// Transforms the numbers in registers, number i + t n/r of butterfly i. then(registers) receives the result in the
  /// same order.
  template <bool inverse, int s = 0, class H, class F>
  SEICHE_FN void run(const Team& team, H& registers, F&& then) const {
    constexpr int r = Factors::template at<inverse>(s), d = Factors::template product_before<inverse>(s);
    each_butterfly<r>([&](int l, int, int) SEICHE_INLINED { butterfly<r, inverse>(registers.x[l]); });
    if constexpr (s + 1 == stages) {
      then(registers);
    } else {
      team.barrier();
      each_butterfly<r>([&](int l, int i, int lane) SEICHE_INLINED {
        const int target = (i / d) * (d * r) + i % d;
        static_for<0, r>([&]<int t>() SEICHE_INLINED { scratch.z[at<d, r>(target, lane, t)] = registers.x[l][t]; });
      });
      team.barrier();
      constexpr int next = Factors::template at<inverse>(s + 1), completed = d * r, turn = n / (completed * next);
      Registers<next> received;
      each_butterfly<next>([&](int l, int i, int lane) SEICHE_INLINED {
        // Powers of two roots, the first and the fourth. Loading each root would take as long as loading the numbers.
        // The error of a power is proportional to its exponent.
        Complex<Real> power[next];
        static_for<1, next>([&]<int t>() SEICHE_INLINED {
          if constexpr (t == 1 || t == 4) {
            power[t] = unchanging(roots + i % completed * (t * turn));
            if constexpr (inverse) power[t].im = -power[t].im;
          } else if constexpr (t < 4 || t % 4 == 0) {
            power[t] = power[t < 4 ? 1 : 4] * power[t < 4 ? t - 1 : t - 4];
          } else {
            power[t] = power[t / 4 * 4] * power[t % 4];
          }
        });
        static_for<0, next>([&]<int t>() SEICHE_INLINED {
          const Complex<Real> z = scratch.z[at<n / next, next>(i, lane, t)];
          received.x[l][t] = t == 0 ? z : power[t] * z;
        });
      });
      run<inverse, s + 1>(team, received, then);
    }
  }
};

}  // namespace seiche::kspace
