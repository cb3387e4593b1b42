// SPDX-License-Identifier: BSD-3-Clause
/// Integration with attenuation: the stresses of the relaxation mechanisms (Maxwell bodies) are advanced together with
/// the total stress, locally at a node (theory/waves, section 12, eqs. 28 and 29). The elastic right-hand side is read
/// from memory.
#pragma once
#include "stage.hpp"

namespace seiche {

/// Position and number of the stresses at a node.
template <class Fields>
struct Stresses {
  static constexpr int first = Fields::velocity(0, 0) == 0 ? Fields::dim : 0, count = Fields::count - Fields::dim;
  static constexpr int normal = Fields::waves == 1 ? 1 : Fields::dim;
};

template <class Elements, Position position, int mechanisms, bool nodal>
struct IntegrateAttenuated {
  using Real = typename Elements::Real;
  using Fields = typename Elements::Fields;
  using Box = typename Elements::Box;
  using Part = Stresses<Fields>;
  static constexpr int size = Elements::size, bodies = mechanisms * Part::count * Box::nodes;
  static constexpr int passes = position == Position::inner ? 4 : 3;
  static constexpr int bytes =
      static_cast<int>(sizeof(Real)) * ((passes + 1) * size + passes * bodies + Box::faces * Elements::slot);
  Elements scheme;
  Real* u;
  Real* k;
  Real* next_trace;
  const Real* rates;
  Real* memory;        ///< stresses of the mechanisms: element, mechanism, stress, node
  Real* memory_k;      ///< their Runge-Kutta registers
  const Real* shares;  ///< Y of the bulk and of the shear modulus for each mechanism, per element or per node
  Real frequencies[mechanisms];
  Real a, b, dt;

  using Scratch = NoScratch;

  /// Advances one value and its register from its rate (eq. 15).
  SEICHE_FN void advance(Real* state, Real* reg, Index at, Real rate) const {
    Real change = dt * rate;
    if constexpr (position != Position::first) change = multiply_add(a, reg[at], change);
    if constexpr (position != Position::last) reg[at] = change;
    state[at] = multiply_add(b, change, state[at]);
  }

  SEICHE_FN void operator()(const Team& team, Index element, Scratch&) const {
    team.for_each(Box::nodes, [&](int node) SEICHE_INLINED { this->node(element, node); });
    team.barrier();
    scheme.write_all(team, element, u, next_trace);
  }

  SEICHE_FN void node(Index element, int node) const {
    const Index first = element * size + node;
    Real rate[Part::count], lost[Part::count], bulk = 0;
    static_for<0, Part::count>([&]<int s>() SEICHE_INLINED {
      rate[s] = rates[first + (Part::first + s) * Box::nodes];
      lost[s] = 0;
      if constexpr (s < Part::normal) bulk += rate[s];
    });
    bulk *= Real(1) / Real(Part::normal);
    static_for<0, mechanisms>([&]<int l>() SEICHE_INLINED {
      const Index row = element * 2 * mechanisms + 2 * l;
      const Real of_bulk = nodal ? shares[row * Box::nodes + node] : shares[row];
      const Real of_shear = nodal ? shares[(row + 1) * Box::nodes + node] : shares[row + 1];
      static_for<0, Part::count>([&]<int s>() SEICHE_INLINED {
        const Index at = (element * mechanisms + l) * Part::count * Box::nodes + s * Box::nodes + node;
        const Real even = s < Part::normal ? bulk : Real(0), gain = of_bulk * even + of_shear * (rate[s] - even);
        const Real decay = frequencies[l] * memory[at];
        advance(memory, memory_k, at, gain - decay);
        lost[s] += decay;
      });
    });
    static_for<0, Fields::count>([&]<int f>() SEICHE_INLINED {
      constexpr bool stress = f >= Part::first && f < Part::first + Part::count;
      const Index at = first + f * Box::nodes;
      if constexpr (stress) {
        advance(u, k, at, rate[f - Part::first] - lost[f - Part::first]);
      } else {
        advance(u, k, at, rates[at]);
      }
    });
  }
};

/// Decay of the stresses of the mechanisms in an absorbing layer (eq. 21), equal to the decay of all other unknowns.
template <class Elements, int mechanisms>
struct DampMemory {
  using Real = typename Elements::Real;
  using Box = typename Elements::Box;
  static constexpr int count = mechanisms * Stresses<typename Elements::Fields>::count;
  static constexpr int bytes = static_cast<int>(sizeof(Real)) * (2 * count + 1) * Box::nodes;
  Real* memory;
  const i32* elements;  ///< elements of the layer
  const Real* factors;  ///< factors at their nodes

  using Scratch = NoScratch;

  SEICHE_FN void operator()(const Team& team, Index item, Scratch&) const {
    Real* of_element = memory + Index{elements[item]} * count * Box::nodes;
    team.for_each(Box::nodes, [&](int node) SEICHE_INLINED {
      const Real factor = factors[item * Box::nodes + node];
      for (int q = 0; q < count; ++q) of_element[q * Box::nodes + node] *= factor;
    });
  }
};

}  // namespace seiche
