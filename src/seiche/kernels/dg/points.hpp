// SPDX-License-Identifier: BSD-3-Clause
/// Point sources and receivers (theory/waves, section 5, eqs. 16 and 17), and the device clock that counts steps.
#pragma once
#include "element.hpp"

namespace seiche {

/// Product of the Lagrange polynomials of a point at a node. `weights` has n values for each axis.
template <class Box, class Real>
SEICHE_FN Real at_point(const Real* weights, int node) {
  constexpr int n = Box::n;
  Real w = weights[node % n] * weights[(Box::dim - 1) * n + node / Box::face];
  if constexpr (Box::dim == 3) w *= weights[n + node / n % n];
  return w;
}

/// Adds the sources of an element in one of `stages` stages to the state, and rewrites its traces. The five stages of
/// Runge-Kutta and the single one of the adjoint's residuals have a register, the two of leapfrog none.
template <class Elements, int stages>
struct AddSources {
  using Real = typename Elements::Real;
  using Fields = typename Elements::Fields;
  using Box = typename Elements::Box;
  static constexpr int dim = Box::dim, waves = Fields::waves;
  static constexpr int bytes = static_cast<int>(sizeof(Real)) * 4 * Elements::size;
  Elements scheme;
  Real* u;
  Real* k;
  Real* next_trace;
  const i32* elements;     ///< elements with sources
  const i32* first;        ///< first source of each element, and one more entry
  const Real* weights;     ///< n values for each axis of each source
  const Real* strengths;   ///< one for each field of each source
  const Real* amplitudes;  ///< for each source, stage and step
  const u64* clock;
  Index sources;
  i32 stage;
  Real b, dt;

  using Scratch = NoScratch;

  SEICHE_FN void operator()(const Team& team, Index item, Scratch&) const {
    const Index element = elements[item];
    const Real* amplitudes_of_stage = amplitudes + (static_cast<Index>(clock[0]) * stages + stage) * sources;
    for (int s = first[item]; s < first[item + 1]; ++s) {
      team.for_each(Box::nodes, [&](int node) SEICHE_INLINED {
        const Real increment = dt * amplitudes_of_stage[s] * at_point<Box>(weights + s * dim * Box::n, node);
        static_for<0, Fields::count>([&]<int f>() SEICHE_INLINED {
          const Index at = element * Elements::size + f * Box::nodes + node;
          const Real change =
              increment * strengths[s * Fields::count + f] * scheme.template source_factor<f>(element, node);
          if constexpr (stages != 2) k[at] += change;
          u[at] = multiply_add(b, change, u[at]);
        });
      });
      team.barrier();
    }
    scheme.write_all(team, element, u, next_trace);
  }
};

/// Writes the traces of the whole state, the input of the first stage.
template <class Elements>
struct WriteTraces {
  using Real = typename Elements::Real;
  static constexpr int bytes = static_cast<int>(sizeof(Real)) * Elements::Box::faces * Elements::slot * 3;
  Elements scheme;
  const Real* u;
  Real* trace;
  using Scratch = NoScratch;
  SEICHE_FN void operator()(const Team& team, Index element, Scratch&) const {
    scheme.write_all(team, element, u, trace);
  }
};

/// The unknowns at points: rows of samples, one every `every` steps of the clock.
template <class Elements>
struct Record {
  using Real = typename Elements::Real;
  using Fields = typename Elements::Fields;
  using Box = typename Elements::Box;
  static constexpr int n = Box::n, dim = Box::dim, fields = Fields::count;
  static constexpr int bytes = static_cast<int>(sizeof(Real)) * Elements::size;
  const Real* u;
  const i32* elements;
  const Real* weights;
  const u64* clock;
  Real* samples;
  Index receivers;
  i32 every;

  struct Scratch {
    Real plane[fields * Box::face], line[fields * n];
  };

  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    const Index step = static_cast<Index>(clock[0]);
    if ((step + 1) % every != 0) return;
    const Real* from = u + Index{elements[item]} * Elements::size;
    const Real* w = weights + item * dim * n;
    team.for_each(fields * Box::face, [&](int q) SEICHE_INLINED {
      const Real* column = from + q / Box::face * Box::nodes + q % Box::face;
      Real sum = 0;
      static_for<0, n>([&]<int m>()
                           SEICHE_INLINED { sum = multiply_add(w[(dim - 1) * n + m], column[m * Box::face], sum); });
      scratch.plane[q] = sum;
    });
    team.barrier();
    const Real* lines = scratch.plane;
    if constexpr (dim == 3) {
      team.for_each(fields * n, [&](int q) SEICHE_INLINED {
        const Real* row = scratch.plane + q / n * Box::face + q % n;
        Real sum = 0;
        static_for<0, n>([&]<int m>() SEICHE_INLINED { sum = multiply_add(w[n + m], row[m * n], sum); });
        scratch.line[q] = sum;
      });
      team.barrier();
      lines = scratch.line;
    }
    Real* to = samples + (((step + 1) / every - 1) * receivers + item) * fields;
    team.for_each(fields, [&](int f) SEICHE_INLINED {
      Real sum = 0;
      static_for<0, n>([&]<int m>() SEICHE_INLINED { sum = multiply_add(w[m], lines[f * n + m], sum); });
      to[f] = sum;
    });
  }
};

/// Advances the clock by one step.
struct AdvanceClock {
  u64* clock;
  static constexpr int bytes = 2 * sizeof(u64);
  SEICHE_FN void operator()(Index) const { clock[0] += 1; }
};

}  // namespace seiche
