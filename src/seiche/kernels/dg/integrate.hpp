// SPDX-License-Identifier: BSD-3-Clause
/// Integration in a separate kernel: state and register from rates in memory, and the new traces (theory/waves, eq. 15;
/// section 8 counts the additional bytes).
#pragma once
#include "stage.hpp"

namespace seiche {

/// With `weighed`, rates are integrals that must be multiplied by the stored inverse mass of their node. The inverse
/// mass has dim + 1 words per node: one for each component of velocity and one for all stresses.
template <class Elements, Position position, bool weighed>
struct Integrate {
  using Real = typename Elements::Real;
  using Fields = typename Elements::Fields;
  using Box = typename Elements::Box;
  static constexpr int dim = Box::dim, size = Elements::size, masses = weighed ? dim + 1 : 0;
  static constexpr int bytes = static_cast<int>(sizeof(Real)) * ((position == Position::inner ? 5 : 4) * size +
                                                                 masses * Box::nodes + Box::faces * Elements::slot);
  Elements scheme;
  Real* u;
  Real* k;
  Real* next_trace;
  const Real* rates;
  const Real* inverse_mass;
  Real a, b, dt;

  using Scratch = NoScratch;

  SEICHE_FN void operator()(const Team& team, Index element, Scratch&) const {
    static_for<0, Fields::count>([&]<int f>() SEICHE_INLINED {
      constexpr int word = f < dim ? f : dim;
      const Index first = element * size + f * Box::nodes;
      team.for_each(Box::nodes, [&](int node) SEICHE_INLINED {
        Real rate = rates[first + node];
        if constexpr (weighed) rate *= inverse_mass[(element * (dim + 1) + word) * Box::nodes + node];
        Real change = dt * rate;
        if constexpr (position != Position::first) change = multiply_add(a, k[first + node], change);
        if constexpr (position != Position::last) k[first + node] = change;
        u[first + node] = multiply_add(b, change, u[first + node]);
      });
    });
    team.barrier();
    scheme.write_all(team, element, u, next_trace);
  }
};

}  // namespace seiche
