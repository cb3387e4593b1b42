// SPDX-License-Identifier: BSD-3-Clause
/// Sources (theory/ultrasound, eqs. 15 and 16): adds samples of signals to fields. Time is read from a clock on the
/// device, so recorded graphs can be replayed.
#pragma once
#include "rows.hpp"

namespace seiche::kspace {

/// Signal at a source point: sample `step + delay` of a table whose rows are times. `stride` is the length of a row.
/// `column` is the distance to the signal of the next point, 0 for one signal for all.
template <class Real>
struct Signal {
  const Real *samples, *weight;  // weight null: one
  const u32* delay;              // null: none
  const Index* clock;
  Index stride, column;
  SEICHE_FN Real at(Index s) const {
    const Index time = clock[0] + (delay != nullptr ? delay[s] : 0);
    const Real value = samples[time * stride + s * column];
    return weight != nullptr ? weight[s] * value : value;
  }
};

/// Replaces or adds values at points of `fields` fields, `distance` apart. Bytes per item: a point, a sample, a value.
template <class Real, bool replace>
struct Inject {
  Real* field;
  const u32* points;
  Signal<Real> signal;
  Index distance;
  i32 fields;
  static constexpr int bytes = 3 * sizeof(Real) + 4;

  SEICHE_FN void operator()(Index s) const {
    const Real value = signal.at(s);
    for (int j = 0; j < fields; ++j) {
      Real& target = field[j * distance + points[s]];
      target = replace ? value : target + value;
    }
  }
};

/// Sets padded rows to zero. Bytes per point: one number.
template <class Real>
struct Clear {
  Real* padded;
  Rows rows;
  using Scratch = NoScratch;
  static constexpr int bytes = sizeof(Real);
  SEICHE_FN void operator()(const Team& team, Index row, Scratch&) const {
    Real* const out = padded + 2 * row * rows.half;
    team.for_each(2 * rows.half, [&](int c) SEICHE_INLINED { out[c] = Real(0); });
  }
};

/// Adds a whole-grid source in padded rows to `fields` fields. It is multiplied by the current sample of one signal if
/// `signal.samples` is not null. Bytes per point for one field: source read, field read and written.
template <class Real>
struct AddField {
  Real* field;
  const Real* source;
  Signal<Real> signal;
  Rows rows;
  i32 fields, padded;
  using Scratch = NoScratch;
  static constexpr int bytes = 3 * sizeof(Real);

  SEICHE_FN void operator()(const Team& team, Index row, Scratch&) const {
    const Real* const in = source + row * (padded != 0 ? 2 * rows.half : rows.length);
    const Real amplitude = signal.samples != nullptr ? signal.at(0) : Real(1);
    for (int j = 0; j < fields; ++j) {
      Real* const out = field + j * rows.points + row * rows.length;
      team.for_each(rows.length, [&](int c) SEICHE_INLINED { out[c] += amplitude * in[c]; });
    }
  }
};

/// Advances the clock by one step. Bytes: the clock read and written.
struct Advance {
  Index* clock;
  static constexpr int bytes = 16;
  SEICHE_FN void operator()(Index) const { clock[0] += 1; }
};

}  // namespace seiche::kspace
