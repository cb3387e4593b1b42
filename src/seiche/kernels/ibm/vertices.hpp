// SPDX-License-Identifier: BSD-3-Clause
/// Vertex kernels of the immersed boundary (theory/coupling, eqs. 1, 2, 8 and 10): velocity, advection, and the stencil
/// data of a vertex at its new position.
#pragma once
#include "../batches.hpp"
#include "../nodes.hpp"
#include "bricks.hpp"

namespace seiche {

/// State words shared by kernels and the host.
struct VertexState {
  static constexpr int stale = 0;  ///< a vertex has left the sites for which it is listed
  static constexpr int used = 1;   ///< number of entries in the lists
  static constexpr int lost = 2;   ///< 1 + index of a vertex with no fluid around it
};

/// Three coordinates of a site.
struct alignas(16) Place {
  i32 x, y, z, unused;
};

/// Data of all vertices.
template <class Real>
struct Vertices {
  double* positions;  ///< [3][stride]
  Place* first;       ///< first site of its stencil, wrapped
  Four<Real>* t;      ///< distance to its anchor; w: inverse of the sum of the weights of its fluid sites (eq. 10)
  i32* listed;        ///< [3][stride]: first of the support + 1 sites for which it is listed, not wrapped
  u32* state;         ///< VertexState
  Index stride;

  /// Updates the stencil data of a vertex at x, which is listed for the sites from `listed_for`. Sets the state if it
  /// must be listed again or has left the fluid.
  template <class Delta, Space space>
  SEICHE_FN void locate(const Bricks& bricks, Index v, const double (&x)[3], const i32 (&listed_for)[3]) const {
    constexpr int P = Delta::support;
    const Stencil<Delta, Real> stencil(x);
    bool is_stale = false;
    i32 at[3];
    for (int axis = 0; axis < 3; ++axis) {
      const i32 shift = stencil.first[axis] - listed_for[axis];
      is_stale = is_stale || shift < 0 || shift > 1;
      at[axis] = bricks.wrapped(axis, stencil.first[axis]);
    }
    Real inverse = Real(1);
    bool is_lost = !stencil.finite;
    if constexpr (space != Space::open) {
      if (!all_full<P, space>(bricks, at)) {
        Real wx[P], wy[P], wz[P], sum = Real(0);
        Delta::weights(stencil.t[0], wx);
        Delta::weights(stencil.t[1], wy);
        Delta::weights(stencil.t[2], wz);
        bool all_fluid = true;
        for (int i = 0; i < P; ++i) {
          for_plane<P, space>(bricks, at, i, [&]<int k, int j>(i32 slot) SEICHE_INLINED {
            const Real fluid = bricks.is_fluid<Real>(slot);
            sum += (wx[i] * wy[j]) * wz[k] * fluid;
            all_fluid = all_fluid && fluid != Real(0);
          });
        }
        const bool near_fluid = sum > Real(1e-3);
        inverse = all_fluid ? Real(1) : (near_fluid ? Real(1) / sum : Real(0));
        is_lost = is_lost || !(all_fluid || near_fluid);
      }
    }
    first[v] = {at[0], at[1], at[2], 0};
    t[v] = {stencil.t[0], stencil.t[1], stencil.t[2], inverse};
    if (is_stale) state[VertexState::stale] = 1;
    if (is_lost) state[VertexState::lost] = 1 + static_cast<u32>(v);
  }
};

/// Initialises vertices whose position was set externally.
template <class Delta, class Real, Space space>
struct LocateVertices {
  Bricks bricks;
  Vertices<Real> vertices;
  static constexpr int bytes = 24 + 12 + 16 + 4 * sizeof(Real);
  SEICHE_FN void operator()(Index v) const {
    const Index stride = vertices.stride;
    const double x[3] = {vertices.positions[v], vertices.positions[stride + v], vertices.positions[2 * stride + v]};
    const i32 listed_for[3] = {vertices.listed[v], vertices.listed[stride + v], vertices.listed[2 * stride + v]};
    vertices.template locate<Delta, space>(bricks, v, x, listed_for);
  }
};

/// V(X) = sum_x u(x) delta(x - X); X += a V + b V' + slip, where V' is the velocity of the previous step (eqs. 1, 8,
/// 18). Bytes per vertex: positions and velocity read and written, the slip read; the velocity of the fluid is cached.
template <class Delta, class Real, Space space>
struct Interpolate {
  static constexpr int P = Delta::support;
  Bricks bricks;
  Vertices<Real> vertices;
  const Four<Real>* flow;        ///< [slot]: velocity of the fluid
  Real* velocity;                ///< [3][stride] of the vertices
  const Real* slip;              ///< [3][stride], null: no slip
  Real weight, previous_weight;  ///< a and b
  static constexpr int bytes = 2 * (24 + 16 + 7 * sizeof(Real)) + 12 + 3 * sizeof(Real);
  /// Data of a vertex before it moves.
  struct VertexData {
    double position[3];
    Real velocity[3];
    i32 listed[3];
  };
  SEICHE_FN void operator()(Index v) const {
    const VertexData data = fetched(v);
    Real speed[3];
    for (int i = 0; i < P; ++i) {
      Real part[3];
      plane(v, i, part);
      for (int axis = 0; axis < 3; ++axis) speed[axis] = i == 0 ? part[axis] : speed[axis] + part[axis];
    }
    move(v, data, speed);
  }
  SEICHE_FN VertexData fetched(Index v) const {
    VertexData data;
    static_for<0, 3>([&]<int axis>() SEICHE_INLINED {
      const Index at = axis * vertices.stride + v;
      data.position[axis] = vertices.positions[at];
      data.velocity[axis] = velocity[at];
      data.listed[axis] = vertices.listed[at];
    });
    return data;
  }
  /// Contribution of plane i of its stencil to the velocity of vertex v.
  SEICHE_FN void plane(Index v, int i, Real (&part)[3]) const {
    const Place site = vertices.first[v];
    const Four<Real> t = vertices.t[v];
    const i32 first[3] = {site.x, site.y, site.z};
    Real wx[P], wy[P], wz[P], sum[3] = {Real(0), Real(0), Real(0)};
    Delta::weights(t.x, wx);
    Delta::weights(t.y, wy);
    Delta::weights(t.z, wz);
    for_plane<P, space>(bricks, first, i, [&]<int k, int j>(i32 slot) SEICHE_INLINED {
      const Four<Real> u = flow[slot];
      Real w = wy[j] * wz[k];
      if constexpr (space != Space::open) w *= bricks.is_fluid<Real>(slot);
      sum[0] = multiply_add(w, u.x, sum[0]);
      sum[1] = multiply_add(w, u.y, sum[1]);
      sum[2] = multiply_add(w, u.z, sum[2]);
    });
    Real w = wx[0];
    static_for<1, P>([&]<int q>() SEICHE_INLINED { w = i == q ? wx[q] : w; });
    for (int axis = 0; axis < 3; ++axis) part[axis] = w * sum[axis];
  }
  SEICHE_FN void move(Index v, const VertexData& data, const Real (&interpolated)[3]) const {
    double x[3];
    static_for<0, 3>([&]<int axis>() SEICHE_INLINED {
      const Index at = axis * vertices.stride + v;
      Real speed = interpolated[axis];
      if constexpr (space != Space::open) speed *= vertices.t[v].w;
      const Real slipped = slip != nullptr ? slip[at] : Real(0);
      x[axis] =
          data.position[axis] + static_cast<double>(weight * speed + previous_weight * data.velocity[axis] + slipped);
      velocity[at] = speed;
      vertices.positions[at] = x[axis];
    });
    vertices.template locate<Delta, space>(bricks, v, x, data.listed);
  }
};

/// Item: a group of vertices. One thread processes each plane of constant x in the stencil of a vertex, so neighbouring
/// threads read neighbouring sites. Data for the move are loaded in advance. Results are bitwise equal to those of
/// single vertices.
template <class Delta, class Real, Space space>
struct InterpolateGroup {
  using One = Interpolate<Delta, Real, space>;
  static constexpr int P = Delta::support, group = 32;
  struct Scratch {
    Real part[3][P][group + 1];  ///< of a plane; one more to avoid bank conflicts
  };
  One one;
  Index count;  ///< number of vertices
  static constexpr int bytes = group * One::bytes;
  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    const Index begin = item * group;
    const int number = static_cast<int>(count - begin < group ? count - begin : group);
    interpolate(one, team, begin, number, scratch, [](Index) SEICHE_INLINED { return true; });
  }
  /// Interpolates at those of the `number` vertices from `begin` that are selected: all for which chosen(v).
  template <class Selection>
  static SEICHE_FN void interpolate(const One& one, const Team& team, Index begin, int number, Scratch& scratch,
                                    const Selection& chosen) {
    Private<typename One::VertexData, group> data;
    team.for_each(number, [&](int k) SEICHE_INLINED {
      if (chosen(begin + k)) data[k] = one.fetched(begin + k);
    });
    team.for_each(number * P, [&](int k) SEICHE_INLINED {
      if (!chosen(begin + k / P)) return;
      Real part[3];
      one.plane(begin + k / P, k % P, part);
      for (int axis = 0; axis < 3; ++axis) scratch.part[axis][k % P][k / P] = part[axis];
    });
    team.barrier();
    team.for_each(number, [&](int k) SEICHE_INLINED {
      if (!chosen(begin + k)) return;
      Real speed[3];
      for (int axis = 0; axis < 3; ++axis) {
        speed[axis] = scratch.part[axis][0][k];
        for (int i = 1; i < P; ++i) speed[axis] += scratch.part[axis][i][k];
      }
      one.move(begin + k, data[k], speed);
    });
    team.barrier();
  }
};

}  // namespace seiche
