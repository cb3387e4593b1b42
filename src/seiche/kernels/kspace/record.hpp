// SPDX-License-Identifier: BSD-3-Clause
/// Recording of a field by sensors (theory/ultrasound, section 6): rows of a time series, and extrema and sums over
/// time.
#pragma once
#include "source.hpp"

namespace seiche::kspace {

/// Every point of the field, in order.
template <class Real>
struct Everywhere {
  const Real* field;
  static constexpr int bytes = sizeof(Real);
  SEICHE_FN Real value(Index s) const { return field[s]; }
};
/// The points of a list.
template <class Real>
struct AtPoints {
  const Real* field;
  const u32* points;
  static constexpr int bytes = sizeof(Real) + 4;
  SEICHE_FN Real value(Index s) const { return field[points[s]]; }
};
/// Weighted sums of `count` points each.
template <class Real>
struct WeightedPoints {
  const Real* field;
  const u32* points;
  const Real* weights;
  Index count;
  static constexpr int bytes = 8 * (2 * sizeof(Real) + 4);
  SEICHE_FN Real value(Index s) const {
    Real sum = 0;
    for (Index k = s * count; k < (s + 1) * count; ++k) sum += weights[k] * field[points[k]];
    return sum;
  }
};

/// A row of the series: row clock - first, in a ring of `ring` rows of `sensors` values.
template <class Real, class Sensor>
struct Sample {
  Sensor sensor;
  Real* series;
  const Index* clock;
  Index first, ring, sensors;
  static constexpr int bytes = Sensor::bytes + sizeof(Real);
  SEICHE_FN void operator()(Index s) const { series[(clock[0] - first) % ring * sensors + s] = sensor.value(s); }
};

struct Maximum {
  template <class Real>
  SEICHE_FN Real operator()(Real previous, Real value) const {
    return value > previous ? value : previous;
  }
};
struct Minimum {
  template <class Real>
  SEICHE_FN Real operator()(Real previous, Real value) const {
    return value < previous ? value : previous;
  }
};
struct SumOfSquares {
  template <class Real>
  SEICHE_FN Real operator()(Real previous, Real value) const {
    return previous + value * value;
  }
};

/// The running result of all steps so far.
template <class Real, class Sensor, class Rule>
struct Accumulate {
  Sensor sensor;
  Real* result;
  static constexpr int bytes = Sensor::bytes + 2 * sizeof(Real);
  SEICHE_FN void operator()(Index s) const { result[s] = Rule{}(result[s], sensor.value(s)); }
};

/// Running amplitude and phase at one frequency: sums of q cos(w t) and q sin(w t). The factors are in a table of (cos,
/// sin) for each step from step `first`.
template <class Real, class Sensor>
struct Harmonic {
  Sensor sensor;
  Real *cosine, *sine;
  const Real* factors;
  const Index* clock;
  Index first;
  static constexpr int bytes = Sensor::bytes + 4 * sizeof(Real);
  SEICHE_FN void operator()(Index s) const {
    const Real value = sensor.value(s);
    const Index t = 2 * (clock[0] - first);
    cosine[s] += factors[t] * value;
    sine[s] += factors[t + 1] * value;
  }
};

}  // namespace seiche::kspace
