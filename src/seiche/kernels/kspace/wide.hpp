// SPDX-License-Identifier: BSD-3-Clause
/// Fourier transforms of lines on a CPU: a vector has one number of each of `lanes` lines, so every instruction of a
/// butterfly acts on all of them (theory/ultrasound, section 3).
#pragma once
#include "line_vectors.hpp"

namespace seiche::kspace {

/// Largest prime factor whose transform has no loops.
constexpr int MAX_UNROLLED_PRIME = 13;
/// Terms that are added before their sum is added to the others: fewer rounding errors in long sums.
constexpr int SUMMED_PAIRS = 16;
/// Outputs of larger primes whose sums are in registers at once.
constexpr int OUTPUTS = 2;

/// cos and sin of 2 pi (j + 1)(k + 1)/r for the pairs j and blocks of outputs k of an odd number r.
template <class Real, int r>
struct PairRoots {
  static constexpr int pairs = r / 2, blocks = (pairs + OUTPUTS - 1) / OUTPUTS;
  Real cosine[blocks][pairs][OUTPUTS] = {}, sine[blocks][pairs][OUTPUTS] = {};
  constexpr PairRoots() {
    Real all_cosines[r] = {}, all_sines[r] = {};
    for (int q = 0; q < r; ++q) {
      all_cosines[q] = static_cast<Real>(exact_cosine(q, r));
      all_sines[q] = static_cast<Real>(exact_sine(q, r));
    }
    for (int k = 0; k < blocks * OUTPUTS; ++k) {
      for (int j = 0; j < pairs; ++j) {
        cosine[k / OUTPUTS][j][k % OUTPUTS] = all_cosines[(j + 1) * (k + 1) % r];
        sine[k / OUTPUTS][j][k % OUTPUTS] = all_sines[(j + 1) * (k + 1) % r];
      }
    }
  }
};

/// Transform of r numbers, a large prime, in place: as `butterfly`, with loops for its sums.
template <int r, bool inverse, class Real, int lanes>
SEICHE_FN void prime_butterfly(Complex<VectorOfLines<Real, lanes>>* x) {
  using Numbers = Complex<VectorOfLines<Real, lanes>>;
  static constexpr PairRoots<Real, r> roots{};
  constexpr int pairs = r / 2;
  Numbers sum[pairs], difference[pairs];
  const Numbers first = x[0];
  Numbers total = first;
  for (int j = 0; j < pairs; ++j) {
    sum[j] = x[j + 1] + x[r - 1 - j];
    difference[j] = rotated<1, 4, inverse>(x[j + 1] - x[r - 1 - j]);
    total = total + sum[j];
  }
  x[0] = total;
  for (int block = 0; block < roots.blocks; ++block) {
    Numbers even[OUTPUTS], odd[OUTPUTS];
    static_for<0, OUTPUTS>([&]<int i>() SEICHE_INLINED {
      even[i] = first;
      odd[i] = Numbers{};
    });
    for (int begin = 0; begin < pairs; begin += SUMMED_PAIRS) {
      const int end = begin + SUMMED_PAIRS < pairs ? begin + SUMMED_PAIRS : pairs;
      Numbers part[2 * OUTPUTS] = {};
      for (int j = begin; j < end; ++j) {
        static_for<0, OUTPUTS>([&]<int i>() SEICHE_INLINED {
          const Real c = roots.cosine[block][j][i], s = roots.sine[block][j][i];
          Numbers &a = part[i], &b = part[OUTPUTS + i];
          a = {fused(c, sum[j].re, a.re), fused(c, sum[j].im, a.im)};
          b = {fused(s, difference[j].re, b.re), fused(s, difference[j].im, b.im)};
        });
      }
      static_for<0, OUTPUTS>([&]<int i>() SEICHE_INLINED {
        even[i] = even[i] + part[i];
        odd[i] = odd[i] + part[OUTPUTS + i];
      });
    }
    static_for<0, OUTPUTS>([&]<int i>() SEICHE_INLINED {
      const int k = block * OUTPUTS + i + 1;
      if (k <= pairs) {
        x[k] = even[i] + odd[i];
        x[r - k] = even[i] - odd[i];
      }
    });
  }
}

/// The transform of `lanes` complex lines.
template <class Real, class Factors, int lanes, bool inverse>
struct WideLines {
  static constexpr int n = Factors::length, stages = Factors::count;
  using Numbers = Complex<VectorOfLines<Real, lanes>>;
  struct Scratch {
    Numbers first[n], second[n];
  };
  const Complex<Real>* roots;  // exp(-2 pi i q/n)

  /// Transforms the lines in `first` and returns the location of the result.
  SEICHE_FN Numbers* run(Scratch& scratch) const { return factor<0>(scratch.first, scratch.second); }

  /// Applies factor number s from `in` to `out`, and all later factors.
  template <int s>
  SEICHE_FN Numbers* factor(Numbers* in, Numbers* out) const {
    constexpr int r = Factors::template at<false>(s), d = Factors::template product_before<false>(s),
                  turn = n / (d * r);
    for (int i = 0; i < n / r; ++i) {
      Numbers x[r];
      static_for<0, r>([&]<int t>() SEICHE_INLINED {
        x[t] = in[i + t * (n / r)];
        if constexpr (d > 1 && t > 0) {
          const Complex<Real> root = roots[i % d * (t * turn)];
          x[t] = times_root(root.re, inverse ? -root.im : root.im, x[t]);
        }
      });
      if constexpr (r > MAX_UNROLLED_PRIME) {
        prime_butterfly<r, inverse>(x);
      } else {
        butterfly<r, inverse>(x);
      }
      const int target = i / d * (d * r) + i % d;
      static_for<0, r>([&]<int t>() SEICHE_INLINED { out[target + t * d] = x[t]; });
    }
    if constexpr (s + 1 == stages) {
      return out;
    } else {
      return factor<s + 1>(out, in);
    }
  }
};

/// In-place transform of spectra along any axis but the last. Numbers of a line are `inner` apart, and `blocks` blocks
/// of `inner` lines are consecutive. Items are batches of `lanes` lines of a block, then batches of the remaining lines
/// of several blocks. Bytes per number: one read, one written.
template <class Real, class Factors, int lanes, bool inverse>
struct WideSide {
  Complex<Real>* spectra;
  const Complex<Real>* roots;
  Index inner, blocks;
  using Lines = WideLines<Real, Factors, lanes, inverse>;
  using Scratch = typename Lines::Scratch;
  static constexpr int n = Factors::length, bytes = 4 * n * lanes * sizeof(Real);

  SEICHE_FN void operator()(const Team&, Index item, Scratch& scratch) const {
    const Index batches = inner / lanes, all = blocks * batches;
    if (item < all) {
      Real* const at = reinterpret_cast<Real*>(spectra + (item / batches * n * inner + item % batches * lanes));
      for (int k = 0; k < n; ++k) scratch.first[k] = separated<Real, lanes>(at + 2 * inner * k);
      const auto* const result_lines = Lines{roots}.run(scratch);
      for (int k = 0; k < n; ++k) interleave<Real, lanes>(at + 2 * inner * k, result_lines[k]);
    } else {
      remaining(item - all, scratch);
    }
  }

  /// Transforms batch number `item` of remaining lines.
  SEICHE_FN void remaining(Index item, Scratch& scratch) const {
    const Index rest = inner % lanes, together = lanes / rest, first = item * together;
    const Index count = rest * (blocks - first < together ? blocks - first : together);
    Index start[lanes];  // of each line; vectors without a line have the first one
    for (int lane = 0; lane < lanes; ++lane) {
      const Index line = lane < count ? lane : 0;
      start[lane] = (first + line / rest) * n * inner + inner - rest + line % rest;
    }
    for (int k = 0; k < n; ++k) {
      Real re[lanes], im[lanes];
      for (int lane = 0; lane < lanes; ++lane) {
        const Complex<Real> z = spectra[start[lane] + inner * k];
        re[lane] = z.re;
        im[lane] = z.im;
      }
      scratch.first[k] = {VectorOfLines<Real, lanes>::at(re), VectorOfLines<Real, lanes>::at(im)};
    }
    const auto* const result_lines = Lines{roots}.run(scratch);
    for (int k = 0; k < n; ++k) {
      Real re[lanes], im[lanes];
      result_lines[k].re.put(re);
      result_lines[k].im.put(im);
      for (int lane = 0; lane < count; ++lane) spectra[start[lane] + inner * k] = {re[lane], im[lane]};
    }
  }
};

/// Rows of reals, `apart` numbers each, and their half spectra, possibly in place. Items are batches of 2 `lanes` rows;
/// two rows are the parts of a complex line. Bytes per point: one read, one written.
template <class Real, class Factors, int lanes, bool inverse>
struct WideRows {
  Real* reals;
  Complex<Real>* spectra;
  const Complex<Real>* roots;
  Index rows, apart;
  using Lines = WideLines<Real, Factors, lanes, inverse>;
  using Scratch = typename Lines::Scratch;
  using Vector = VectorOfLines<Real, lanes>;
  static constexpr int n = Factors::length, half = n / 2 + 1, bytes = 4 * n * lanes * sizeof(Real);

  /// Row of a lane; the last one if the lane has none.
  SEICHE_FN Index row(Index begin, int lane) const { return begin + lane < rows ? begin + lane : rows - 1; }

  SEICHE_FN void operator()(const Team&, Index item, Scratch& scratch) const {
    const Index first = item * (2 * lanes), second = first + lanes;
    if constexpr (inverse) {
      from_spectra(first, scratch.first, [](auto& z, auto& mirror, const auto& a, bool) SEICHE_INLINED {
        z = a;
        mirror = {a.re, -a.im};
      });
      from_spectra(second, scratch.first, [](auto& z, auto& mirror, const auto& b, bool is_real) SEICHE_INLINED {
        if (is_real) {  // these are real for real rows: their imaginary part is ignored
          z.im = b.re;
        } else {
          z = {z.re - b.im, z.im + b.re};
          mirror = {mirror.re + b.im, mirror.im + b.re};
        }
      });
      const auto* const result_lines = Lines{roots}.run(scratch);
      to_reals(first, result_lines, [](const auto& z) SEICHE_INLINED { return z.re; });
      to_reals(second, result_lines, [](const auto& z) SEICHE_INLINED { return z.im; });
    } else {
      from_reals(first, [&](int m, Vector value) SEICHE_INLINED { scratch.first[m].re = value; });
      from_reals(second, [&](int m, Vector value) SEICHE_INLINED { scratch.first[m].im = value; });
      const auto* const result_lines = Lines{roots}.run(scratch);
      const Real h = Real(0.5);
      to_spectra(first, result_lines, [&](const auto& z, const auto& w) SEICHE_INLINED {
        return Complex<Vector>{h * (z.re + w.re), h * (z.im - w.im)};
      });
      to_spectra(second, result_lines, [&](const auto& z, const auto& w) SEICHE_INLINED {
        return Complex<Vector>{h * (z.im + w.im), h * (w.re - z.re)};
      });
    }
  }

  /// Number of the last square of the transposition of `count` numbers of each row: squares overlap where this needs no
  /// padding.
  static constexpr SEICHE_FN int square(int m, int count) {
    return m + lanes > count && count >= lanes ? count - lanes : m;
  }
  /// Numbers beyond the last full square of `count`, if they are few: these are read and written one by one.
  static constexpr int few(int count) { return count % lanes <= lanes / 4 ? count % lanes : 0; }

  /// f(m, numbers m of `lanes` rows).
  template <class F>
  SEICHE_FN void from_reals(Index begin, F&& f) const {
    constexpr int single = few(n), end = n - single;
    for (int m = 0; m < end; m += lanes) {
      const int first = square(m, n), count = n < lanes ? n : lanes;
      Vector block[lanes];
      for (int lane = 0; lane < lanes; ++lane) {
        const Real* const source = reals + row(begin, lane) * apart + first;
        Real padded[lanes] = {};
        for (int k = 0; k < count && count < lanes; ++k) padded[k] = source[k];
        block[lane] = Vector::at(count < lanes ? padded : source);
      }
      transpose<Real, lanes>(block);
      for (int k = m; k < first + count; ++k) f(k, block[k - first]);
    }
    if constexpr (single > 0) {
      Real numbers[single][lanes];
      for (int lane = 0; lane < lanes; ++lane) {
        const Real* const source = reals + row(begin, lane) * apart + end;
        for (int k = 0; k < single; ++k) numbers[k][lane] = source[k];
      }
      for (int k = 0; k < single; ++k) f(end + k, Vector::at(numbers[k]));
    }
  }
  template <class F>
  SEICHE_FN void to_reals(Index begin, const Complex<Vector>* lines, F&& f) const {
    constexpr int single = few(n), end = n - single;
    for (int m = 0; m < end; m += lanes) {
      const int first = square(m, n), count = n < lanes ? n : lanes;
      Vector block[lanes];
      for (int k = 0; k < lanes; ++k) block[k] = f(lines[k < count ? first + k : first]);
      transpose<Real, lanes>(block);
      for (int lane = 0; lane < lanes && begin + lane < rows; ++lane) {
        Real* const target = reals + (begin + lane) * apart + first;
        if (count == lanes) {
          block[lane].put(target);
        } else {
          Real padded[lanes];
          block[lane].put(padded);
          for (int k = 0; k < count; ++k) target[k] = padded[k];
        }
      }
    }
    if constexpr (single > 0) {
      Real numbers[single][lanes];
      for (int k = 0; k < single; ++k) f(lines[end + k]).put(numbers[k]);
      for (int lane = 0; lane < lanes && begin + lane < rows; ++lane) {
        Real* const target = reals + (begin + lane) * apart + end;
        for (int k = 0; k < single; ++k) target[k] = numbers[k][lane];
      }
    }
  }
  /// f(numbers k of the lines, numbers n - k, those of the spectra, true if these are real).
  template <class F>
  SEICHE_FN void from_spectra(Index begin, Complex<Vector>* lines, F&& f) const {
    constexpr int single = few(half), end = half - single;
    const auto add = [&](int j, const Complex<Vector>& z) SEICHE_INLINED {
      Complex<Vector> unused;
      const bool is_real = j == 0 || 2 * j == n;
      f(lines[j], is_real ? unused : lines[n - j], z, is_real);
    };
    for (int k = 0; k < end; k += lanes) {
      const int first = square(k, half), count = half < lanes ? half : lanes;
      Vector re[lanes], im[lanes];
      for (int lane = 0; lane < lanes; ++lane) {
        const auto z =
            separated<Real, lanes>(reinterpret_cast<const Real*>(spectra + row(begin, lane) * half + first), count);
        re[lane] = z.re;
        im[lane] = z.im;
      }
      transpose<Real, lanes>(re);
      transpose<Real, lanes>(im);
      for (int j = k; j < first + count; ++j) add(j, {re[j - first], im[j - first]});
    }
    if constexpr (single > 0) {
      Real re[single][lanes], im[single][lanes];
      for (int lane = 0; lane < lanes; ++lane) {
        const Complex<Real>* const source = spectra + row(begin, lane) * half + end;
        for (int j = 0; j < single; ++j) {
          re[j][lane] = source[j].re;
          im[j][lane] = source[j].im;
        }
      }
      for (int j = 0; j < single; ++j) add(end + j, {Vector::at(re[j]), Vector::at(im[j])});
    }
  }
  template <class F>
  SEICHE_FN void to_spectra(Index begin, const Complex<Vector>* lines, F&& f) const {
    constexpr int single = few(half), end = half - single;
    for (int k = 0; k < end; k += lanes) {
      const int first = square(k, half), count = half < lanes ? half : lanes;
      Vector re[lanes], im[lanes];
      for (int j = 0; j < lanes; ++j) {
        const int at = j < count ? first + j : first;
        const auto z = f(lines[at], lines[at == 0 ? 0 : n - at]);
        re[j] = z.re;
        im[j] = z.im;
      }
      transpose<Real, lanes>(re);
      transpose<Real, lanes>(im);
      for (int lane = 0; lane < lanes && begin + lane < rows; ++lane) {
        Real* const target = reinterpret_cast<Real*>(spectra + (begin + lane) * half + first);
        interleave<Real, lanes>(target, {re[lane], im[lane]}, count);
      }
    }
    if constexpr (single > 0) {
      Real re[single][lanes], im[single][lanes];
      for (int j = 0; j < single; ++j) {
        const int at = end + j;
        const auto z = f(lines[at], lines[at == 0 ? 0 : n - at]);
        z.re.put(re[j]);
        z.im.put(im[j]);
      }
      for (int lane = 0; lane < lanes && begin + lane < rows; ++lane) {
        Complex<Real>* const target = spectra + (begin + lane) * half + end;
        for (int j = 0; j < single; ++j) target[j] = {re[j][lane], im[j][lane]};
      }
    }
  }
};

}  // namespace seiche::kspace
