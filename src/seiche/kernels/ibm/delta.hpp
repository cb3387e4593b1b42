// SPDX-License-Identifier: BSD-3-Clause
/// Smoothed delta functions (theory/coupling, eqs. 4 to 7): the weights of the `support` sites around a coordinate, in
/// order, from the distance t of the coordinate to its anchor. One root gives all weights of an axis.
#pragma once
#include "../launch.hpp"
#include "../math.hpp"

namespace seiche {

/// Greatest integer not above x.
SEICHE_FN i32 round_down(double x) {
  const i32 i = static_cast<i32>(x);
  return i - (x < static_cast<double>(i) ? 1 : 0);
}

/// Each function defines `anchor(x)`, an integer near x, `sites_before`, the number of sites before the anchor, and
/// `middle`. At t = `middle`, the coordinate is equally far from losing the first and the last site.

/// Functions with an even support: the anchor is the site below, the last of the first half.
template <int sites>
struct EvenSupport {
  static constexpr int support = sites, sites_before = sites / 2 - 1;
  static constexpr double middle = 0.5;
  static SEICHE_FN i32 anchor(double x) { return round_down(x); }
};

/// The hat of support 2: 1 - r.
struct Hat : EvenSupport<2> {
  template <class Real>
  static SEICHE_FN void weights(Real t, Real (&w)[support]) {
    w[0] = Real(1) - t;
    w[1] = t;
  }
};

/// Support 3 (Roma, Peskin, Berger 1999).
struct Roma {
  static constexpr int support = 3, sites_before = 1;
  static constexpr double middle = 0.0;
  static SEICHE_FN i32 anchor(double x) { return round_down(x + 0.5); }
  template <class Real>
  static SEICHE_FN void weights(Real t, Real (&w)[support]) {
    const Real root = square_root(Real(1) - Real(3) * t * t);
    w[0] = Real(1.0 / 6) * (Real(2) - Real(3) * t - root);
    w[1] = Real(1.0 / 3) * (Real(1) + root);
    w[2] = Real(1.0 / 6) * (Real(2) + Real(3) * t - root);
  }
};

/// Support 4 (Peskin 2002).
struct Peskin : EvenSupport<4> {
  template <class Real>
  static SEICHE_FN void weights(Real t, Real (&w)[support]) {
    const Real root = square_root(Real(1) + Real(4) * t * (Real(1) - t)), twice = Real(2) * t;
    w[0] = Real(0.125) * (Real(3) - twice - root);
    w[1] = Real(0.125) * (Real(3) - twice + root);
    w[2] = Real(0.125) * (Real(1) + twice + root);
    w[3] = Real(0.125) * (Real(1) + twice - root);
  }
};

/// cos(pi t/2) and sin(pi t/2)/t in powers of t^2.
template <int first>
struct QuarterTurn {
  static constexpr double at(int k) {
    double c = first ? 1.57079632679489661923 : 1.0;
    for (int j = 1; j <= k; ++j) c *= -2.46740110027233965471 / ((2 * j + first) * (2 * j + first - 1));
    return c;
  }
};

/// Support 4, (1 + cos(pi r/2))/4: the first moment is only approximately zero.
struct Cosine : EvenSupport<4> {
  template <class Real>
  static SEICHE_FN void weights(Real t, Real (&w)[support]) {
    const Real c = horner<0, 12>(t * t, QuarterTurn<0>{}), s = t * horner<0, 12>(t * t, QuarterTurn<1>{});
    w[0] = Real(0.25) * (Real(1) - s);
    w[1] = Real(0.25) * (Real(1) + c);
    w[2] = Real(0.25) * (Real(1) + s);
    w[3] = Real(0.25) * (Real(1) - c);
  }
};

}  // namespace seiche
