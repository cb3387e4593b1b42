// SPDX-License-Identifier: BSD-3-Clause
/// Fourier transforms of lines in the scratch memory of a team: Stockham's algorithm for any length, fastest for
/// factors 2, 3, 4 and 5 (theory/ultrasound, section 4). A team processes 2 `lanes` real lines, two in the real and
/// imaginary parts of a lane. A multiplier that maps real lines to real lines acts equally on both, so the two spectra
/// need not be separated.
#pragma once
#include "butterfly.hpp"

namespace seiche::kspace {

/// Memory for lines of up to `capacity` numbers, twice: a stage reads one half and writes the other.
template <class Real, int capacity, int lanes>
struct LineScratch {
  Real re[2][capacity * lanes], im[2][capacity * lanes];
};

/// f(i, lane) for i = 0 ... n - 1 and every lane; neighbouring threads process neighbouring lanes.
template <int lanes, class T, class F>
SEICHE_FN void each_lane(const T& team, int n, F&& f) {
  if constexpr (ManyThreads<T>) {
    for (int k = team.thread; k < n * lanes; k += team.threads) f(k / lanes, k % lanes);
  } else {
    for (int i = 0; i < n; ++i) team.for_each(lanes, [&](int lane) SEICHE_INLINED { f(i, lane); });
  }
}

/// The length of lines, its factors, and exp(-2 pi i q / n) for q = 0 ... n - 1.
template <class Real>
struct LinePlan {
  const Complex<Real>* roots;
  i32 length, stages;
  i32 radix[16];
};

template <class Real, int capacity, int lanes>
struct LineTransform {
  const LinePlan<Real>& plan;
  LineScratch<Real, capacity, lanes>& scratch;
  int current = 0;  // index of the half that has the lines

  /// One stage: butterflies of `r` numbers that are n/r apart, times roots (conjugate for the inverse transform).
  template <int r, bool inverse>
  SEICHE_FN void stage(const Team& team, int completed) {
    const int n = plan.length, spacing = n / r, turn = n / (completed * r);
    const Complex<Real>* const roots = plan.roots;
    const Real *const re = scratch.re[current], *const im = scratch.im[current];
    Real *const re_out = scratch.re[1 - current], *const im_out = scratch.im[1 - current];
    each_lane<lanes>(team, spacing, [&](int i, int lane) SEICHE_INLINED {
      const int k = i % completed, target = (i / completed) * completed * r + k;
      Complex<Real> x[r];
      static_for<0, r>([&]<int t>() SEICHE_INLINED {
        const int source = (i + t * spacing) * lanes + lane;
        Complex<Real> root = roots[t * k * turn];
        if constexpr (inverse) root.im = -root.im;
        x[t] = t == 0 ? Complex<Real>{re[source], im[source]} : root * Complex<Real>{re[source], im[source]};
      });
      butterfly<r, inverse>(x);
      static_for<0, r>([&]<int t>() SEICHE_INLINED {
        re_out[(target + t * completed) * lanes + lane] = x[t].re;
        im_out[(target + t * completed) * lanes + lane] = x[t].im;
      });
    });
    team.barrier();
    current = 1 - current;
  }

  /// A stage of any other factor. A thread computes one number of the result at a time, on a CPU `together` numbers of
  /// all lanes from the same inputs.
  template <bool inverse>
  SEICHE_FN void any_stage(const Team& team, int r, int completed) {
    const int n = plan.length, spacing = n / r;
    if constexpr (ManyThreads<Team>) {
      const Real *const re = scratch.re[current], *const im = scratch.im[current];
      each_lane<lanes>(team, n, [&](int index, int lane) SEICHE_INLINED {
        const int i = index % spacing;
        Complex<Real> sum{0, 0};
        int q = 0;
        for (int t = 0; t < r; ++t) {
          const int source = (i + t * spacing) * lanes + lane;
          const Complex<Real> term = any_root<inverse>(q) * Complex<Real>{re[source], im[source]};
          sum = {sum.re + term.re, sum.im + term.im};
          q = next_root(q, turn_of(i, index / spacing, r, completed));
        }
        store(target_of(i, index / spacing, r, completed) * lanes + lane, sum);
      });
    } else {
      constexpr int together = 4;
      for (int i = 0; i < spacing; ++i) {
        int s = 0;
        for (; s + together <= r; s += together) any_numbers<inverse, together>(team, i, s, r, completed);
        for (; s < r; ++s) any_numbers<inverse, 1>(team, i, s, r, completed);
      }
    }
    team.barrier();
    current = 1 - current;
  }
  /// Numbers s to s + count - 1 of butterfly i in all lanes.
  template <bool inverse, int count>
  SEICHE_FN void any_numbers(const Team& team, int i, int s, int r, int completed) {
    const int spacing = plan.length / r;
    const Real *const re = scratch.re[current], *const im = scratch.im[current];
    Real sum_re[count][lanes] = {}, sum_im[count][lanes] = {};
    int q[count] = {}, turn[count];
    for (int u = 0; u < count; ++u) turn[u] = turn_of(i, s + u, r, completed);
    for (int t = 0; t < r; ++t) {
      Complex<Real> root[count];
      for (int u = 0; u < count; ++u) {
        root[u] = any_root<inverse>(q[u]);
        q[u] = next_root(q[u], turn[u]);
      }
      const int source = (i + t * spacing) * lanes;
      team.for_each(lanes, [&](int lane) SEICHE_INLINED {
        const Complex<Real> x{re[source + lane], im[source + lane]};
        static_for<0, count>([&]<int u>() SEICHE_INLINED {
          const Complex<Real> term = root[u] * x;
          sum_re[u][lane] += term.re;
          sum_im[u][lane] += term.im;
        });
      });
    }
    for (int u = 0; u < count; ++u) {
      const int target = target_of(i, s + u, r, completed) * lanes;
      team.for_each(lanes, [&](int lane) SEICHE_INLINED { store(target + lane, {sum_re[u][lane], sum_im[u][lane]}); });
    }
  }
  /// Number s of butterfly i: the distance of the roots of consecutive terms, and its position in the result.
  SEICHE_FN int turn_of(int i, int s, int r, int completed) const {
    const int n = plan.length;
    return (i % completed * (n / (completed * r)) + s * (n / r)) % n;
  }
  SEICHE_FN static int target_of(int i, int s, int r, int completed) {
    return (i / completed) * completed * r + i % completed + s * completed;
  }
  SEICHE_FN int next_root(int q, int turn) const { return q + turn < plan.length ? q + turn : q + turn - plan.length; }
  template <bool inverse>
  SEICHE_FN Complex<Real> any_root(int q) const {
    const Complex<Real> root = plan.roots[q];
    return inverse ? Complex<Real>{root.re, -root.im} : root;
  }
  SEICHE_FN void store(int position, Complex<Real> value) const {
    scratch.re[1 - current][position] = value.re;
    scratch.im[1 - current][position] = value.im;
  }

  template <bool inverse>
  SEICHE_FN void transform(const Team& team) {
    int completed = 1;
    for (int s = 0; s < plan.stages; ++s) {
      const int r = plan.radix[s];
      if (r == 4) {
        stage<4, inverse>(team, completed);
      } else if (r == 2) {
        stage<2, inverse>(team, completed);
      } else if (r == 3) {
        stage<3, inverse>(team, completed);
      } else if (r == 5) {
        stage<5, inverse>(team, completed);
      } else {
        any_stage<inverse>(team, r, completed);
      }
      completed *= r;
    }
  }

  /// Multiplies the spectra of the lines by a table of `length` numbers, which includes the scale of the inverse.
  SEICHE_FN void apply(const Team& team, const Complex<Real>* multiplier) {
    transform<false>(team);
    Real *const re = scratch.re[current], *const im = scratch.im[current];
    each_lane<lanes>(team, plan.length, [&](int k, int lane) SEICHE_INLINED {
      const Complex<Real> z = multiplier[k] * Complex<Real>{re[k * lanes + lane], im[k * lanes + lane]};
      re[k * lanes + lane] = z.re;
      im[k * lanes + lane] = z.im;
    });
    team.barrier();
    transform<true>(team);
  }
};

}  // namespace seiche::kspace
