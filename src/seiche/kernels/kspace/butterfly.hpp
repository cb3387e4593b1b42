// SPDX-License-Identifier: BSD-3-Clause
/// Fourier transforms of a few numbers in registers: direct for factors 2, 4 and odd primes, nested for their products.
/// Roots of unity are compile-time constants.
#pragma once
#include "rows.hpp"

namespace seiche::kspace {

/// Factors of the length of lines.
template <int... r>
struct Radices {
  static constexpr int count = sizeof...(r), length = (1 * ... * r);
  static constexpr int of(int s) {
    constexpr int all[] = {r...};
    return all[s];
  }
  /// Factor number s; the inverse counts from the last one.
  template <bool inverse>
  static constexpr int at(int s) {
    return of(inverse ? count - 1 - s : s);
  }
  /// Product of the factors before number s.
  template <bool inverse>
  static constexpr int product_before(int s) {
    int product = 1;
    for (int j = 0; j < s; ++j) product *= at<inverse>(j);
    return product;
  }
};

/// cos(2 pi q/n), exact at multiples of a quarter turn.
constexpr double exact_cosine(int q, int n) {
  q = (q % n + n) % n;
  if (2 * q > n) q = n - q;                               // cos(-x) = cos x
  if (4 * q > n) return -exact_cosine(n - 2 * q, 2 * n);  // cos(pi - x) = -cos x
  if (4 * q == n) return 0.0;
  const double x = 6.28318530717958647693 * q / n;
  double term = 1.0, sum = 1.0;
  for (int k = 1; k < 16; ++k) {
    term *= -x * x / ((2 * k - 1) * (2 * k));
    sum += term;
  }
  return sum;
}
/// sin(2 pi q/n) = cos(2 pi (q/n - 1/4)).
constexpr double exact_sine(int q, int n) {
  return exact_cosine(4 * q - n, 4 * n);
}

template <class Real>
SEICHE_FN Complex<Real> operator+(Complex<Real> a, Complex<Real> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class Real>
SEICHE_FN Complex<Real> operator-(Complex<Real> a, Complex<Real> b) {
  return {a.re - b.re, a.im - b.im};
}

/// Type of constants that multiply numbers: for vectors of numbers, the type of one element.
template <class Real>
struct ScalarOf {
  using Type = Real;
};
/// A number times c + i s.
template <class Scalar, class Real>
SEICHE_FN Complex<Real> times_root(Scalar c, Scalar s, Complex<Real> z) {
  return {fused(c, z.re, -(s * z.im)), fused(c, z.im, s * z.re)};
}

/// A number times exp(-+ 2 pi i q/n): minus forward, plus backward.
template <int q, int n, bool inverse, class Real>
SEICHE_FN Complex<Real> rotated(Complex<Real> z) {
  if constexpr (q % n == 0) {
    return z;
  } else if constexpr (4 * q % n == 0 && (4 * q / n) % 4 == 2) {
    return {-z.re, -z.im};
  } else if constexpr (4 * q % n == 0) {
    constexpr bool plus_i = ((4 * q / n) % 4 == 3) != inverse;  // times +i
    if constexpr (plus_i) {
      return {-z.im, z.re};
    } else {
      return {z.im, -z.re};
    }
  } else {
    using Scalar = typename ScalarOf<Real>::Type;
    constexpr Scalar c = static_cast<Scalar>(exact_cosine(q, n));
    constexpr Scalar s = static_cast<Scalar>(inverse ? exact_sine(q, n) : -exact_sine(q, n));
    return times_root(c, s, z);
  }
}

/// The smaller factor of a product whose transforms are nested, 0 for a direct transform.
constexpr int inner_factor(int r) {
  if (r == 2 || r == 4) return 0;
  if (r % 4 == 0) return 4;
  if (r % 2 == 0) return 2;
  for (int f = 3; f * f <= r; f += 2) {
    if (r % f == 0) return f;
  }
  return 0;
}

/// Transform of r numbers in place.
template <int r, bool inverse, class Real>
SEICHE_FN void butterfly(Complex<Real>* x) {
  constexpr int a = inner_factor(r);
  if constexpr (r == 2) {
    const Complex<Real> first = x[0];
    x[0] = first + x[1];
    x[1] = first - x[1];
  } else if constexpr (r == 4) {
    const Complex<Real> p = x[0] + x[2], m = x[0] - x[2], q = x[1] + x[3];
    const Complex<Real> d = rotated<1, 4, inverse>(x[1] - x[3]);
    x[0] = p + q;
    x[1] = m + d;
    x[2] = p - q;
    x[3] = m - d;
  } else if constexpr (a > 0) {
    // k = k1 + a k2, t = b t1 + t2: transforms of a over t1, roots of r, transforms of b over t2.
    constexpr int b = r / a;
    Complex<Real> y[a][b];
    static_for<0, b>([&]<int t2>() SEICHE_INLINED {
      Complex<Real> column[a];
      static_for<0, a>([&]<int t1>() SEICHE_INLINED { column[t1] = x[b * t1 + t2]; });
      butterfly<a, inverse>(column);
      static_for<0, a>([&]<int k1>() SEICHE_INLINED { y[k1][t2] = rotated<t2 * k1, r, inverse>(column[k1]); });
    });
    static_for<0, a>([&]<int k1>() SEICHE_INLINED {
      butterfly<b, inverse>(y[k1]);
      static_for<0, b>([&]<int k2>() SEICHE_INLINED { x[k1 + a * k2] = y[k1][k2]; });
    });
  } else if constexpr (r > 1) {
    // An odd prime: sums and differences of the pairs x[j], x[r - j].
    constexpr int pairs = r / 2;
    Complex<Real> sum[pairs], difference[pairs];
    const Complex<Real> first = x[0];
    static_for<0, pairs>([&]<int j>() SEICHE_INLINED {
      sum[j] = x[j + 1] + x[r - 1 - j];
      difference[j] = rotated<1, 4, inverse>(x[j + 1] - x[r - 1 - j]);
      x[0] = x[0] + sum[j];
    });
    static_for<0, pairs>([&]<int k>() SEICHE_INLINED {
      Complex<Real> even = first, odd = {};
      static_for<0, pairs>([&]<int j>() SEICHE_INLINED {
        using Scalar = typename ScalarOf<Real>::Type;
        constexpr Scalar c = static_cast<Scalar>(exact_cosine((j + 1) * (k + 1), r));
        constexpr Scalar s = static_cast<Scalar>(exact_sine((j + 1) * (k + 1), r));
        even = {fused(c, sum[j].re, even.re), fused(c, sum[j].im, even.im)};
        odd = {fused(s, difference[j].re, odd.re), fused(s, difference[j].im, odd.im)};
      });
      x[k + 1] = even + odd;
      x[r - 1 - k] = even - odd;
    });
  }
}

}  // namespace seiche::kspace
