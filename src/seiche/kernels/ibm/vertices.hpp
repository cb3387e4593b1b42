// SPDX-License-Identifier: BSD-3-Clause
/// The vertices' half of the immersed boundary (theory/coupling, eqs. 1, 2, 8 and 10): velocity, advection, and what
/// must be known of a vertex where it is then.
#pragma once
#include "bricks.hpp"

namespace seiche {

/// Words that kernels leave for each other and for the host.
struct VertexState {
  static constexpr int stale = 0;  ///< a vertex left the sites for which it is listed
  static constexpr int used = 1;   ///< entries of the lists
  static constexpr int lost = 2;   ///< 1 + a vertex around which there is no fluid
};

/// Three coordinates of a site.
struct alignas(16) Place {
  i32 x, y, z, unused;
};

/// What is known of every vertex.
template <class Real>
struct Vertices {
  double* place;  ///< [3][stride]
  Place* first;   ///< first site of its stencil, wrapped
  Four<Real>* t;  ///< distance to its anchor; w: one over the sum of the weights of its fluid sites (eq. 10)
  i32* listed;    ///< [3][stride]: first of the support + 1 sites for which it is listed, not wrapped
  u32* state;     ///< VertexState
  Index stride;

  /// Keep what must be known of a vertex at x; say so if it must be listed anew or has left the fluid.
  template <class Delta, Space space>
  SEICHE_FN void settle(const Bricks& bricks, Index v, const double (&x)[3]) const {
    constexpr int P = Delta::support;
    const Stencil<Delta, Real> stencil(x);
    bool moved = false;
    i32 at[3];
    for (int axis = 0; axis < 3; ++axis) {
      const i32 shift = stencil.first[axis] - listed[axis * stride + v];
      moved = moved || shift < 0 || shift > 1;
      at[axis] = bricks.wrapped(axis, stencil.first[axis]);
    }
    Real inverse = Real(1);
    bool lost = !stencil.finite;
    if constexpr (space != Space::open) {
      Real wx[P], wy[P], wz[P], sum = Real(0);
      Delta::weights(stencil.t[0], wx);
      Delta::weights(stencil.t[1], wy);
      Delta::weights(stencil.t[2], wz);
      const bool all = for_sites<P, space>(bricks, at, [&]<int k, int j, int i>(i32 slot) SEICHE_INLINED {
        sum += (wx[i] * wy[j]) * wz[k] * bricks.is_fluid<Real>(slot);
      });
      const bool some = sum > Real(1e-3);
      inverse = all ? Real(1) : (some ? Real(1) / sum : Real(0));
      lost = lost || !(all || some);
    }
    first[v] = {at[0], at[1], at[2], 0};
    t[v] = {stencil.t[0], stencil.t[1], stencil.t[2], inverse};
    if (moved) state[VertexState::stale] = 1;
    if (lost) state[VertexState::lost] = 1 + static_cast<u32>(v);
  }
};

/// Vertices that were put somewhere from outside.
template <class Delta, class Real, Space space>
struct Settle {
  Bricks bricks;
  Vertices<Real> vertices;
  static constexpr int bytes = 24 + 12 + 16 + 4 * sizeof(Real);
  SEICHE_FN void operator()(Index v) const {
    const Index stride = vertices.stride;
    const double x[3] = {vertices.place[v], vertices.place[stride + v], vertices.place[2 * stride + v]};
    vertices.template settle<Delta, space>(bricks, v, x);
  }
};

/// V(X) = sum_x u(x) delta(x - X); X += a V + b V', V' being the velocity of the step before (eqs. 1 and 8).
/// Bytes a vertex: places and velocity read and written; the fluid's velocity comes from the caches.
template <class Delta, class Real, Space space>
struct Interpolate {
  Bricks bricks;
  Vertices<Real> vertices;
  const Four<Real>* flow;  ///< [slot]: velocity of the fluid
  Real* velocity;          ///< [3][stride] of the vertices
  Real now, before;        ///< a and b
  static constexpr int bytes = 2 * (24 + 16 + 7 * sizeof(Real)) + 12;
  SEICHE_FN void operator()(Index v) const {
    constexpr int P = Delta::support;
    const Index stride = vertices.stride;
    const Place place = vertices.first[v];
    const Four<Real> t = vertices.t[v];
    const i32 first[3] = {place.x, place.y, place.z};
    Real wx[P], wy[P], wz[P], sum[3] = {Real(0), Real(0), Real(0)}, line[3] = {Real(0), Real(0), Real(0)};
    Delta::weights(t.x, wx);
    Delta::weights(t.y, wy);
    Delta::weights(t.z, wz);
    for_sites<P, space>(bricks, first, [&]<int k, int j, int i>(i32 slot) SEICHE_INLINED {
      const Four<Real> u = flow[slot];
      Real w = wx[i];
      if constexpr (space != Space::open) w *= bricks.is_fluid<Real>(slot);
      line[0] = i == 0 ? w * u.x : line[0] + w * u.x;
      line[1] = i == 0 ? w * u.y : line[1] + w * u.y;
      line[2] = i == 0 ? w * u.z : line[2] + w * u.z;
      if constexpr (i == P - 1) {
        const Real across = wy[j] * wz[k];
        for (int axis = 0; axis < 3; ++axis) sum[axis] += across * line[axis];
      }
    });
    double x[3];
    for (int axis = 0; axis < 3; ++axis) {
      Real& last = velocity[axis * stride + v];
      const Real speed = space != Space::open ? t.w * sum[axis] : sum[axis];
      x[axis] = vertices.place[axis * stride + v] + static_cast<double>(now * speed + before * last);
      last = speed;
      vertices.place[axis * stride + v] = x[axis];
    }
    vertices.template settle<Delta, space>(bricks, v, x);
  }
};

}  // namespace seiche
