// SPDX-License-Identifier: BSD-3-Clause
/// Absorbing layer: all unknowns of its elements decay, with rates that increase into the layer (theory/waves, eq. 21).
/// The decay is integrated exactly, once a step. Equal rates leave the impedance unchanged, so there is no reflection
/// at normal incidence.
#pragma once
#include "element.hpp"

namespace seiche {

template <class Elements>
struct Damp {
  using Real = typename Elements::Real;
  using Fields = typename Elements::Fields;
  using Box = typename Elements::Box;
  static constexpr int bytes = static_cast<int>(sizeof(Real)) * (2 * Elements::size + Box::nodes);
  Elements on;
  Real* u;
  Real* trace;          ///< traces that the next stage reads
  const i32* elements;  ///< elements of the layer
  const Real* factors;  ///< exp(-rate dt) at their nodes

  struct Scratch {
    int nothing;
  };

  SEICHE_FN void operator()(const Team& team, Index item, Scratch&) const {
    const Index element = elements[item];
    team.each(Box::nodes, [&](int node) SEICHE_INLINED {
      const Real factor = factors[item * Box::nodes + node];
      each<0, Fields::count>([&]<int f>()
                                 SEICHE_INLINED { u[element * Elements::size + f * Box::nodes + node] *= factor; });
    });
    team.barrier();
    on.write_all(team, element, u, trace);
  }
};

}  // namespace seiche
