// SPDX-License-Identifier: BSD-3-Clause
/// Absorption by relaxation processes (theory/ultrasound, eqs. 24 and 26), in place of power-law operators. Bytes per
/// point: the processes read and written, a label, the pressure written.
#pragma once
#include "density.hpp"

namespace seiche::kspace {

/// `table` has the strength a and h = dt/(2 tau) for each tissue and process.
template <class Real, bool nonlinear, int processes>
struct Relaxing {
  Real *p, *memory;  // memory: one process after another
  const u8* labels;
  const Real* table;
  Index points;
  static constexpr bool uses_rate = false;
  static constexpr int bytes = (2 * processes + 1) * sizeof(Real) + 1;
  template <class Medium>
  static constexpr int medium_bytes = Medium::fields * (nonlinear ? 3 : 1) * sizeof(Real);
  template <class Medium>
  SEICHE_FN void operator()(const Medium& medium, Index i, Index, Real rho, Real) const {
    const Real* const tissue = table + 2 * processes * labels[i];
    Real relaxed_density = 0;
    static_for<0, processes>([&]<int l>() SEICHE_INLINED {
      const Real h = tissue[2 * l + 1];
      Real& state = memory[l * points + i];
      const Real middle = (state + h * rho) / (Real(1) + h);
      state = (Real(1) - h) * middle + h * rho;
      relaxed_density += tissue[2 * l] * middle;
    });
    const Real c = medium.sound_speed(i);
    p[i] = c * c * (compression<nonlinear>(medium, i, rho) - relaxed_density);
  }
};

/// Relaxation processes of an initial density, before any relaxation.
template <class Real, int processes>
struct StartRelaxing {
  Real* memory;
  const u8* labels;
  const Real* table;
  Index points;
  static constexpr bool uses_rate = false;
  static constexpr int bytes = processes * sizeof(Real) + 1;
  template <class Medium>
  static constexpr int medium_bytes = 0;
  template <class Medium>
  SEICHE_FN void operator()(const Medium&, Index i, Index, Real rho, Real) const {
    const Real* const tissue = table + 2 * processes * labels[i];
    static_for<0, processes>([&]<int l>() SEICHE_INLINED { memory[l * points + i] = tissue[2 * l + 1] * rho; });
  }
};

}  // namespace seiche::kspace
