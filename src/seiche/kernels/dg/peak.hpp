// SPDX-License-Identifier: BSD-3-Clause
/// Peak squared speed at nodes on a side of the mesh: of all components, and of all components except that along the
/// last axis.
#pragma once
#include "element.hpp"

namespace seiche {

template <class Elements>
struct PeakMotion {
  using Real = typename Elements::Real;
  using Fields = typename Elements::Fields;
  using Box = typename Elements::Box;
  static constexpr int dim = Box::dim;
  static constexpr int bytes = static_cast<int>(sizeof(Real)) * (dim + 4) * Box::face;
  const Real* u;
  const i32* elements;  ///< elements at the side
  Real* peaks;          ///< two values at each of their nodes on the side
  const Real* motion;   ///< incident velocities at these nodes (incident.hpp), if `moves`
  i32 axis, side, moves;

  using Scratch = NoScratch;

  SEICHE_FN void operator()(const Team& team, Index item, Scratch&) const {
    const Real* source = u + Index{elements[item]} * Elements::size;
    Real* target = peaks + item * 2 * Box::face;
    team.for_each(Box::face, [&](int face_node) SEICHE_INLINED {
      const int node = Elements::on_face(axis, side, face_node);
      Real v[dim], squares = 0;
      static_for<0, dim>([&]<int a>() SEICHE_INLINED {
        v[a] = source[Fields::velocity(a, a) * Box::nodes + node];
        if (moves) v[a] += motion[(item * dim + a) * Box::face + face_node];
      });
      static_for<0, dim - 1>([&]<int a>() SEICHE_INLINED { squares += v[a] * v[a]; });
      const Real all = squares + v[dim - 1] * v[dim - 1];
      target[face_node] = all > target[face_node] ? all : target[face_node];
      target[Box::face + face_node] = squares > target[Box::face + face_node] ? squares : target[Box::face + face_node];
    });
  }
};

}  // namespace seiche
