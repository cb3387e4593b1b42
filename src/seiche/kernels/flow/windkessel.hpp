// SPDX-License-Identifier: BSD-3-Clause
/// Windkessel outlets: the flow through each is summed, and its circuit is advanced by one step (theory/flow, eqs. 19
/// and 20). Flows are summed as integer multiples of 2^-44, so the sum is independent of order and number of ranks.
#pragma once
#include "../atomics.hpp"
#include "../launch.hpp"

namespace seiche {

/// Number of partial sums for each outlet, to reduce contention of atomics.
inline constexpr int windkessel_slots = 64;
/// Sums are integer multiples of the inverse of this number.
inline constexpr double windkessel_scale = 0x1p44;

/// Item k: the mass that entered at site k in this step is added to the sums of its outlet. A flow that is not finite
/// or out of bounds is processed as zero; the monitor of the fields reports it.
template <class Real>
struct SumInflow {
  const Real* inflow;
  const i32* outlet;  ///< index of the outlet
  Index* sums;        ///< [outlet][slot]
  static constexpr int bytes = sizeof(Real) + 12;
  SEICHE_FN void operator()(Index k) const {
    const double scaled = static_cast<double>(inflow[k]) * windkessel_scale;
    const bool usable = scaled > -0x1p60 && scaled < 0x1p60;
    const Index rounded = usable ? static_cast<Index>(scaled + (scaled < 0 ? -0.5 : 0.5)) : 0;
    add_atomically(sums + windkessel_slots * static_cast<Index>(outlet[k]) + (k & (windkessel_slots - 1)), rounded);
  }
};

/// Item j: one outlet's circuit. Pressures are density excesses; `coefficients` are [outlet][6]: decay, gain, rest,
/// proximal, response and start (theory/flow, eqs. 19 and 20).
template <class Real>
struct Windkessel {
  Index* sums;        ///< [outlet][slot]; reset to zero
  double* capacitor;  ///< pressure across the compliance
  double* imposed;    ///< pressure imposed in the previous step
  Real* values;       ///< pressure imposed in this step
  const double* coefficients;
  const Real* ramp;    ///< one row per step: 0 at the start of the ramp, 1 after its end
  const Index* clock;  ///< current row of `ramp`
  Index count;         ///< number of outlets
  static constexpr int bytes = 0;
  SEICHE_FN void operator()(Index j) const {
    Index total = 0;
    for (int slot = 0; slot < windkessel_slots; ++slot) {
      total += sums[windkessel_slots * j + slot];
      sums[windkessel_slots * j + slot] = 0;
    }
    const double* n = coefficients + 6 * j;
    const double decay = n[0], gain = n[1], offset = n[2], proximal = n[3], response = n[4], start = n[5];
    const double outflow = static_cast<double>(total) * -0x1p-44;
    const double charged = decay * capacitor[j] + (gain * outflow + offset);
    const double resistance = gain + proximal;
    const double predicted = decay * charged + offset + resistance * (outflow + response * imposed[j]);
    const double target = predicted / (1.0 + resistance * response);
    const double imposed_pressure = start + static_cast<double>(ramp[clock[0] * count + j]) * (target - start);
    capacitor[j] = charged;
    imposed[j] = imposed_pressure;
    values[j] = static_cast<Real>(imposed_pressure);
  }
};

}  // namespace seiche
