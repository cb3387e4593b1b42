// SPDX-License-Identifier: BSD-3-Clause
/// Multiplies fields of one block of the grid by the bell of its overlaps (theory/ultrasound, eq. 32), into padded rows
/// for in-place transforms. Bytes per point and field: read and written.
#pragma once
#include "rows.hpp"

namespace seiche::kspace {

template <class Real>
struct Taper {
  const Real* field;
  Real* work;
  const Real* bell;  // numbers along the axes one after another
  Rows rows;
  i32 fields, padded;  // 1 if the fields have padded rows, too: they may then be the work array
  using Scratch = NoScratch;
  static constexpr int bytes = 2 * sizeof(Real);

  SEICHE_FN void operator()(const Team& team, Index row, Scratch&) const {
    const Real bell_across = bell[rows.template entry<0>(row)] * bell[rows.template entry<1>(row)];
    const Real* const bell_along = bell + rows.template entry<2>(row);
    for (int j = 0; j < fields; ++j) {
      Real* const out = work + 2 * (j * rows.spectrum + row * rows.half);
      const Real* const in = padded != 0 ? out : field + j * rows.points + row * rows.length;
      team.for_each(rows.length, [&](int c) SEICHE_INLINED { out[c] = (bell_across * bell_along[c]) * in[c]; });
    }
  }
};

}  // namespace seiche::kspace
