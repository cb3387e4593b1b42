// SPDX-License-Identifier: BSD-3-Clause
/// Windkessel outlets: the flow through each is summed, and its circuit advanced by a step (theory/flow, eqs. 19 and
/// 20). Flows are summed as whole multiples of 2^-44: such a sum is the same in any order, so on any number of ranks.
#pragma once
#include "../atomics.hpp"
#include "../launch.hpp"

namespace seiche {

/// Sums that are kept for each outlet, so that threads seldom meet at one.
inline constexpr int windkessel_slots = 64;
/// Multiples of the unit of flow in which sums are kept.
inline constexpr double windkessel_scale = 0x1p44;

/// Item k: the mass that entered at site k in this step is added to the sums of its outlet. A flow that is not finite
/// or beyond all bounds counts as none: the watch over the fields speaks of it.
template <class Real>
struct SumInflow {
  const Real* inflow;
  const i32* outlet;  ///< which outlet
  Index* sums;        ///< [outlet][slot]
  static constexpr int bytes = sizeof(Real) + 12;
  SEICHE_FN void operator()(Index k) const {
    const double scaled = static_cast<double>(inflow[k]) * windkessel_scale;
    const bool usable = scaled > -0x1p60 && scaled < 0x1p60;
    const Index whole = usable ? static_cast<Index>(scaled + (scaled < 0 ? -0.5 : 0.5)) : 0;
    add_atomically(sums + windkessel_slots * static_cast<Index>(outlet[k]) + (k & (windkessel_slots - 1)), whole);
  }
};

/// Item j: one outlet's circuit. Pressures are density excesses; `numbers` are [outlet][6]: decay, gain, rest,
/// proximal, response and start (theory/flow, eqs. 19 and 20).
template <class Real>
struct Windkessel {
  Index* sums;        ///< [outlet][slot]; cleared
  double* capacitor;  ///< pressure over the compliance
  double* imposed;    ///< what the outlet imposed in the step before
  Real* values;       ///< what it imposes now
  const double* numbers;
  const Real* ramp;    ///< one row a step: 0 at the start of the ramp, 1 after its end
  const Index* clock;  ///< row of `ramp` that holds now
  Index count;         ///< outlets
  static constexpr int bytes = 0;
  SEICHE_FN void operator()(Index j) const {
    Index total = 0;
    for (int slot = 0; slot < windkessel_slots; ++slot) {
      total += sums[windkessel_slots * j + slot];
      sums[windkessel_slots * j + slot] = 0;
    }
    const double* n = numbers + 6 * j;
    const double decay = n[0], gain = n[1], rest = n[2], proximal = n[3], response = n[4], start = n[5];
    const double outflow = static_cast<double>(total) * -0x1p-44;
    const double charged = decay * capacitor[j] + (gain * outflow + rest);
    const double resistance = gain + proximal;
    const double ahead = decay * charged + rest + resistance * (outflow + response * imposed[j]);
    const double wanted = ahead / (1.0 + resistance * response);
    const double now = start + static_cast<double>(ramp[clock[0] * count + j]) * (wanted - start);
    capacitor[j] = charged;
    imposed[j] = now;
    values[j] = static_cast<Real>(now);
  }
};

}  // namespace seiche
