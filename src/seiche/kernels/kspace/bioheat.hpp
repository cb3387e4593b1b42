// SPDX-License-Identifier: BSD-3-Clause
/// Pennes' bioheat equation in tissue (theory/ultrasound, eq. 29), second order in time: an Euler predictor, then a
/// corrector with the mean of the old and the predicted rates, and the thermal dose (eq. 30). The border is adiabatic.
/// Bytes per point: the prediction, temperature and dose, each read and written where they change; conductivity, heat,
/// cooling, capacity.
#pragma once
#include "../math.hpp"
#include "rows.hpp"

namespace seiche::kspace {

/// If the last axis is the radius of an axisymmetric grid, `faces` has the areas of the inner and the outer face of
/// each cell along it, relative to those of a Cartesian cell of the same volume.
template <int D, bool corrects, bool axisymmetric = false>
struct Bioheat {
  double *temperature, *predicted, *dose;
  const double *conductivity, *heat, *cooling, *capacity, *faces;
  Rows rows;
  double squares[3];  // of the spacings along the axes, inverse
  double blood, dt;   // degrees, seconds
  using Scratch = NoScratch;
  static constexpr int bytes = (corrects ? 9 : 6) * sizeof(double);

  /// Heat flux from a neighbour: the conductivities of the two half cells act in series.
  SEICHE_FN double flux_from(Index neighbour, Index i) const {
    const double a = conductivity[i], b = conductivity[neighbour], both = a + b;
    const double* const current = corrects ? predicted : temperature;
    return both > 0.0 ? 2.0 * a * b / both * (current[neighbour] - current[i]) : 0.0;
  }
  /// Equivalent minutes at 43 degrees for one minute at a temperature: a factor of two a degree, of four from 39 to 43.
  SEICHE_FN static double dose_rate(double degrees) {
    const double excess = (degrees < 100.0 ? degrees : 100.0) - 43.0;
    const double rate = exp2_clamped(excess >= 0.0 ? excess : 2.0 * excess);
    return degrees >= 39.0 ? rate : 0.0;
  }
  /// Advances point c of a row, i of the grid; `lower` and `upper` are the distances to its neighbours along the axes.
  SEICHE_FN void advance(Index i, int c, const Index* lower, const Index* upper) const {
    const double current = corrects ? predicted[i] : temperature[i];
    double rate = heat[i] + cooling[i] * (blood - current);
    static_for<3 - D, 3>([&]<int axis>() SEICHE_INLINED {
      const double flux_lower = flux_from(i - lower[axis], i), flux_upper = flux_from(i + upper[axis], i);
      if constexpr (axisymmetric && axis == 2) {
        rate += squares[axis] * (faces[2 * c] * flux_lower + faces[2 * c + 1] * flux_upper);
      } else {
        rate += squares[axis] * (flux_lower + flux_upper);
      }
    });
    const double next = current + dt * rate / capacity[i];
    if constexpr (corrects) {
      const double previous = temperature[i], mean = 0.5 * (previous + next);
      temperature[i] = mean;
      dose[i] += dt / 120.0 * (dose_rate(previous) + dose_rate(mean));
    } else {
      predicted[i] = next;
    }
  }
  SEICHE_FN void operator()(const Team& team, Index row, Scratch&) const {
    const Index base = row * rows.length, plane = static_cast<Index>(rows.middle) * rows.length;
    const int length = rows.length, last = length > 1 ? 1 : 0;
    const Index lower[3] = {rows.plane_of(row) > 0 ? plane : 0, rows.middle_of(row) > 0 ? rows.length : 0, 1};
    const Index upper[3] = {rows.template to_next<0>(row), rows.template to_next<1>(row), 1};
    const Index first_before[3] = {lower[0], lower[1], 0}, first_after[3] = {upper[0], upper[1], last};
    const Index last_after[3] = {upper[0], upper[1], 0};
    team.for_each(length - 2, [&](int c) SEICHE_INLINED { advance(base + c + 1, c + 1, lower, upper); });
    team.for_each(1, [&](int c) SEICHE_INLINED { advance(base + c, c, first_before, first_after); });
    team.for_each(last,
                  [&](int c) SEICHE_INLINED { advance(base + length - 1 + c, length - 1 + c, lower, last_after); });
  }
};

}  // namespace seiche::kspace
