// SPDX-License-Identifier: BSD-3-Clause
/// Sums over the steps of the adjoint for derivatives with respect to media and sources (theory/waves, section 10, eqs.
/// 22 and 23), by kernels that do nothing else.
#pragma once
#include "../team_sums.hpp"
#include "element.hpp"

namespace seiche {

/// Invariants of a pair of states: v . v' and p p' in a fluid; v . v', tr S tr S' and S : S' in a solid.
template <class Fields>
inline constexpr int invariants = Fields::waves == 1 ? 2 : 3;

template <class Fields, class Real>
SEICHE_FN void invariants_of(const Real (&p)[Fields::count], const Real (&q)[Fields::count],
                             Real (&target)[invariants<Fields>]) {
  constexpr int dim = Fields::dim, v = Fields::velocity(0, 0);
  Real product = p[v] * q[v];
  static_for<1, dim>([&]<int c>() SEICHE_INLINED { product = multiply_add(p[v + c], q[v + c], product); });
  target[0] = product;
  if constexpr (Fields::waves == 1) {
    target[1] = p[0] * q[0];
  } else {
    Real first = p[dim], second = q[dim], normal = p[dim] * q[dim], shear = Real(0);
    static_for<dim + 1, 2 * dim>([&]<int f>() SEICHE_INLINED {
      first += p[f];
      second += q[f];
      normal = multiply_add(p[f], q[f], normal);
    });
    static_for<2 * dim, Fields::count>([&]<int f>() SEICHE_INLINED { shear = multiply_add(p[f], q[f], shear); });
    target[1] = first * second;
    target[2] = multiply_add(Real(2), shear, normal);
  }
}

/// The invariants of a and the state in the elements of an absorbing layer, for the derivatives with respect to its
/// rates: gradient_terms[(item, invariant), node].
template <class Elements>
struct LayerGradients {
  using Real = typename Elements::Real;
  using Fields = typename Elements::Fields;
  using Box = typename Elements::Box;
  static constexpr int products = invariants<Fields>;
  static constexpr int bytes = static_cast<int>(sizeof(Real)) * 2 * Elements::size +
                               2 * static_cast<int>(sizeof(double)) * products * Box::nodes;
  const Real* k;
  const Real* state;
  const i32* elements;
  double* gradient_terms;

  using Scratch = NoScratch;

  SEICHE_FN void operator()(const Team& team, Index item, Scratch&) const {
    const Index begin = Index{elements[item]} * Elements::size;
    team.for_each(Box::nodes, [&](int node) SEICHE_INLINED {
      Real adjoint[Fields::count], forward[Fields::count], value[products];
      static_for<0, Fields::count>([&]<int f>() SEICHE_INLINED {
        adjoint[f] = k[begin + f * Box::nodes + node];
        forward[f] = state[begin + f * Box::nodes + node];
      });
      invariants_of<Fields>(adjoint, forward, value);
      static_for<0, products>([&]<int q>() SEICHE_INLINED {
        gradient_terms[(item * products + q) * Box::nodes + node] += static_cast<double>(value[q]);
      });
    });
  }
};

/// The invariants of a and the change of the state in a leapfrog step, added to those of the elements or nodes: v . dv
/// of the first half, then those of p or S in the second.
template <class Elements, int threads>
struct LeapfrogGradients {
  using Real = typename Elements::Real;
  using Fields = typename Elements::Fields;
  using Box = typename Elements::Box;
  static constexpr int n = Box::n, dim = Box::dim, products = invariants<Fields>, sums = products + Fields::kinds;
  static constexpr int bytes = static_cast<int>(sizeof(Real)) * 3 * Elements::size +
                               2 * static_cast<int>(sizeof(double)) * products * (Elements::by_node ? Box::nodes : 1);
  const Real* a;
  const Real* before;  ///< state before the first half
  const Real* middle;  ///< velocities after it
  const Real* after;   ///< p or S after the second
  double* gradient_terms;
  Real weights[n];

  struct Scratch {
    double sums[products * threads];
  };

  SEICHE_FN void operator()(const Team& team, Index element, Scratch& scratch) const {
    PartialSums<products, 1> partial{};
    double* to = gradient_terms + element * sums * (Elements::by_node ? Box::nodes : 1);
    for (int node = team.thread; node < Box::nodes; node += team.threads) {
      Real value[products];
      value_at(element * Elements::size + node, value);
      Real weight = weights[node % n] * weights[node / Box::face];
      if constexpr (dim == 3) weight *= weights[node / n % n];
      static_for<0, products>([&]<int q>() SEICHE_INLINED {
        if constexpr (Elements::by_node) {
          to[q * Box::nodes + node] += static_cast<double>(value[q]);
        } else {
          partial.at(q, 0) += static_cast<double>(weight * value[q]);
        }
      });
    }
    if constexpr (!Elements::by_node) {
      sum_groups<threads, threads>(team, partial, scratch.sums,
                                   [&](int, int q, double sum) SEICHE_INLINED { to[q] += sum; });
    }
  }
  SEICHE_FN void value_at(Index begin, Real (&value)[products]) const {
    constexpr int v = Fields::velocity(0, 0);
    Real adjoint[Fields::count], change[Fields::count];
    static_for<0, Fields::count>([&]<int f>() SEICHE_INLINED {
      const Index at = begin + f * Box::nodes;
      adjoint[f] = a[at];
      change[f] = (f >= v && f < v + dim ? middle : after)[at] - before[at];
    });
    invariants_of<Fields>(adjoint, change, value);
  }
};

/// Products of velocities and a in the elements at absorbing sides: gradient_terms[(item, component), node].
template <class Elements>
struct ResistanceGradients {
  using Real = typename Elements::Real;
  using Fields = typename Elements::Fields;
  using Box = typename Elements::Box;
  static constexpr int dim = Box::dim;
  static constexpr int bytes =
      (2 * static_cast<int>(sizeof(Real)) + 2 * static_cast<int>(sizeof(double))) * dim * Box::nodes;
  const Real* a;
  const Real* state;
  const i32* elements;
  double* gradient_terms;

  using Scratch = NoScratch;

  SEICHE_FN void operator()(const Team& team, Index item, Scratch&) const {
    const Index begin = Index{elements[item]} * Elements::size + Fields::velocity(0, 0) * Box::nodes;
    double* to = gradient_terms + item * dim * Box::nodes;
    team.for_each(dim * Box::nodes,
                  [&](int q) SEICHE_INLINED { to[q] += static_cast<double>(a[begin + q] * state[begin + q]); });
  }
};

/// Adds dt times the amplitude of each source in one of `stages` stages times b to gradient_terms[(source, field),
/// node].
template <class Elements, int stages>
struct SourceGradients {
  using Real = typename Elements::Real;
  using Fields = typename Elements::Fields;
  using Box = typename Elements::Box;
  static constexpr int bytes = (static_cast<int>(sizeof(Real)) + 2 * static_cast<int>(sizeof(double))) * Elements::size;
  const Real* u;
  const i32* elements;
  const i32* first;
  const Real* amplitudes;  ///< for each source, stage and step
  const u64* clock;
  double* gradient_terms;
  Index sources;
  i32 stage;
  Real dt;

  using Scratch = NoScratch;

  SEICHE_FN void operator()(const Team& team, Index item, Scratch&) const {
    const Real* source = u + Index{elements[item]} * Elements::size;
    const Real* amplitudes_of_stage = amplitudes + (static_cast<Index>(clock[0]) * stages + stage) * sources;
    for (int s = first[item]; s < first[item + 1]; ++s) {
      const Real factor = dt * amplitudes_of_stage[s];
      double* target = gradient_terms + Index{s} * Elements::size;
      team.for_each(Elements::size,
                    [&](int q) SEICHE_INLINED { target[q] += static_cast<double>(factor * source[q]); });
    }
  }
};

}  // namespace seiche
