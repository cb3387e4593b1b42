// SPDX-License-Identifier: BSD-3-Clause
/// Decay of unknowns in some elements, with new traces: an absorbing layer, or the resistance of absorbing sides.
#pragma once
#include "element.hpp"

namespace seiche {

/// Multiplies the unknowns by a factor for each node, or the velocities by a factor for each component and node.
template <class Elements, bool velocities>
struct Decay {
  using Real = typename Elements::Real;
  using Fields = typename Elements::Fields;
  using Box = typename Elements::Box;
  static constexpr int first = velocities ? Fields::velocity(0, 0) : 0, count = velocities ? Box::dim : Fields::count;
  static constexpr int bytes = static_cast<int>(sizeof(Real)) * (2 * count + (velocities ? count : 1)) * Box::nodes;
  Elements scheme;
  Real* u;
  Real* trace;          ///< traces that the next stage reads
  const i32* elements;  ///< elements with decay
  const Real* factors;

  using Scratch = NoScratch;

  SEICHE_FN void operator()(const Team& team, Index item, Scratch&) const {
    const Index element = elements[item];
    team.for_each(Box::nodes, [&](int node) SEICHE_INLINED {
      const Real common = velocities ? Real(1) : factors[item * Box::nodes + node];
      static_for<0, count>([&]<int f>() SEICHE_INLINED {
        const Real factor = velocities ? factors[(item * count + f) * Box::nodes + node] : common;
        u[element * Elements::size + (first + f) * Box::nodes + node] *= factor;
      });
    });
    team.barrier();
    scheme.write_all(team, element, u, trace);
  }
};

/// Absorbing layer: all unknowns decay by exp(-rate dt), with rates that increase into the layer (theory/waves, eq.
/// 21). The decay is integrated exactly, once a step. Equal rates leave the impedance unchanged, so there is no
/// reflection at normal incidence.
template <class Elements>
using Damp = Decay<Elements, false>;

/// Resistance of absorbing sides in leapfrog steps (eq. 26): velocities of adjacent elements decay.
template <class Elements>
using Resist = Decay<Elements, true>;

}  // namespace seiche
