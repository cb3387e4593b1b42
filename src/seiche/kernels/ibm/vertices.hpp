// SPDX-License-Identifier: BSD-3-Clause
/// Vertex kernels of the immersed boundary (theory/coupling, eqs. 1, 2, 8 and 10): velocity, advection, and the stencil
/// data of a vertex at its new position.
#pragma once
#include "../batches.hpp"
#include "../nodes.hpp"
#include "../warps.hpp"
#include "bricks.hpp"

namespace seiche {

/// State words shared by kernels and the host.
struct VertexState {
  static constexpr int stale = 0;  ///< a vertex has left the sites for which it is listed
  static constexpr int used = 1;   ///< number of entries in the lists
  static constexpr int lost = 2;   ///< 1 + index of a vertex with no fluid around it
};

/// The sites around a vertex: the first one, wrapped, and the distance of the vertex to its anchor along each axis.
template <class Real>
struct Around {
  i32 first[3];
  Real t[3];
};

/// Data of all vertices.
template <class Real>
struct Vertices {
  double* positions;  ///< [3][stride]
  Real* inverse;      ///< inverse of the sum of the weights of its fluid sites (eq. 10); null in `open` spaces
  u8* listed;         ///< [3][stride]: first of the support + 1 sites for which it is listed, modulo 256
  u32* state;         ///< VertexState
  Index stride;

  template <class Delta>
  SEICHE_FN static Around<Real> around(const Bricks& bricks, const double (&x)[3]) {
    const Stencil<Delta, Real> stencil(x);
    Around<Real> result;
    for (int axis = 0; axis < 3; ++axis) {
      result.first[axis] = bricks.wrapped(axis, stencil.first[axis]);
      result.t[axis] = stencil.t[axis];
    }
    return result;
  }
  template <class Delta>
  SEICHE_FN Around<Real> around(const Bricks& bricks, Index v) const {
    const double x[3] = {positions[v], positions[v + stride], positions[v + 2 * stride]};
    return around<Delta>(bricks, x);
  }

  /// True if the sites of a coordinate, from `first`, are not among those from `listed_for`.
  SEICHE_FN static bool has_left(i32 first, u8 listed_for) {
    return static_cast<u8>(static_cast<u32>(first) - listed_for) > 1;
  }
  /// Updates the data of a vertex at x, which is listed for the sites from `listed_for`. Sets the state if it must be
  /// listed again or has left the fluid.
  template <class Delta, Space space>
  SEICHE_FN void locate(const Bricks& bricks, Index v, const double (&x)[3], const u8 (&listed_for)[3]) const {
    constexpr int P = Delta::support;
    const Stencil<Delta, Real> stencil(x);
    bool is_stale = false;
    for (int axis = 0; axis < 3; ++axis) is_stale = is_stale || has_left(stencil.first[axis], listed_for[axis]);
    bool is_lost = !stencil.finite;
    if constexpr (space != Space::open) {
      Real weight = Real(1);
      i32 at[3];
      for (int axis = 0; axis < 3; ++axis) at[axis] = bricks.wrapped(axis, stencil.first[axis]);
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
        weight = all_fluid ? Real(1) : (near_fluid ? Real(1) / sum : Real(0));
        is_lost = is_lost || !(all_fluid || near_fluid);
      }
      inverse[v] = weight;
    }
    if (is_stale) state[VertexState::stale] = 1;
    if (is_lost) state[VertexState::lost] = 1 + static_cast<u32>(v);
  }
};

/// Initialises vertices whose position was set externally.
template <class Delta, class Real, Space space>
struct LocateVertices {
  Bricks bricks;
  Vertices<Real> vertices;
  static constexpr int bytes = 24 + 3;
  SEICHE_FN void operator()(Index v) const {
    const Index stride = vertices.stride;
    const double x[3] = {vertices.positions[v], vertices.positions[stride + v], vertices.positions[2 * stride + v]};
    const u8 listed_for[3] = {vertices.listed[v], vertices.listed[stride + v], vertices.listed[2 * stride + v]};
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
  static constexpr int bytes = 2 * 24 + 3 + 6 * sizeof(Real);
  /// Data of a vertex before it moves.
  struct VertexData {
    double position[3];
    Real velocity[3];
    u8 listed[3];
  };
  SEICHE_FN void operator()(Index v) const {
    const VertexData data = fetched(v);
    const Around<Real> at = vertices.template around<Delta>(bricks, data.position);
    Real speed[3];
    for (int i = 0; i < P; ++i) {
      Real part[3];
      plane(at, i, part);
      for (int axis = 0; axis < 3; ++axis) speed[axis] = i == 0 ? part[axis] : speed[axis] + part[axis];
    }
    move(v, data, speed);
  }
  SEICHE_FN VertexData fetched(Index v) const {
    VertexData data;
    static_for<0, 3>([&]<int axis>() SEICHE_INLINED {
      const Index at = axis * vertices.stride + v;
      data.position[axis] = vertices.positions[at];
      data.velocity[axis] = previous_weight != Real(0) ? velocity[at] : Real(0);
      data.listed[axis] = vertices.listed[at];
    });
    return data;
  }
  /// Begins to load the velocities around a vertex. With a support of 2 in FP64, a vertex computes too little to hide
  /// the wait for them; otherwise these instructions would take as long as the wait.
  SEICHE_FN void fetch_sites(const Around<Real>& at) const {
    if constexpr (P == 2 && sizeof(Real) == 8) {
      for_plane<P, space>(bricks, at.first, 0,  // the sites of the other plane are in the same lines, or in the next
                          [&]<int k, int j>(i32 slot) SEICHE_INLINED { prefetch_line_soon(flow + slot); });
    }
  }
  /// Contribution of the plane i of sites around a vertex to its velocity.
  SEICHE_FN void plane(const Around<Real>& at, int i, Real (&part)[3]) const {
    Real wx[P], wy[P], wz[P], sum[3];
    Delta::weights(at.t[0], wx);
    Delta::weights(at.t[1], wy);
    Delta::weights(at.t[2], wz);
    sum_plane(at.first, i, wy, wz, sum);
    Real w = wx[0];
    static_for<1, P>([&]<int q>() SEICHE_INLINED { w = i == q ? wx[q] : w; });
    for (int axis = 0; axis < 3; ++axis) part[axis] = w * sum[axis];
  }
  /// Sum of the velocities of the plane i of sites, with the weights of the other axes.
  SEICHE_FN void sum_plane(const i32 (&first)[3], int i, const Real (&wy)[P], const Real (&wz)[P],
                           Real (&sum)[3]) const {
    for (int axis = 0; axis < 3; ++axis) sum[axis] = Real(0);
    if constexpr (space == Space::open && P <= 3 && !vector_lanes) {
      Four<Real> u[P * P];  // all are loaded before the first is used
      for_plane<P, space>(bricks, first, i, [&]<int k, int j>(i32 slot) { u[k * P + j] = flow[slot]; });
      static_for<0, P * P>([&]<int n>() {
        const Real w = wy[n % P] * wz[n / P];
        sum[0] = multiply_add(w, u[n].x, sum[0]);
        sum[1] = multiply_add(w, u[n].y, sum[1]);
        sum[2] = multiply_add(w, u[n].z, sum[2]);
      });
      return;
    }
    for_plane<P, space>(bricks, first, i, [&]<int k, int j>(i32 slot) SEICHE_INLINED {
      const Four<Real> u = flow[slot];
      Real w = wy[j] * wz[k];
      if constexpr (space != Space::open) w *= bricks.is_fluid<Real>(slot);
      sum[0] = multiply_add(w, u.x, sum[0]);
      sum[1] = multiply_add(w, u.y, sum[1]);
      sum[2] = multiply_add(w, u.z, sum[2]);
    });
  }
  SEICHE_FN void move(Index v, const VertexData& data, const Real (&interpolated)[3]) const {
    double x[3];
    static_for<0, 3>([&]<int axis>() SEICHE_INLINED {
      const Index at = axis * vertices.stride + v;
      Real speed = interpolated[axis];
      if constexpr (space != Space::open) speed *= vertices.inverse[v];
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
/// threads read neighbouring sites. On a GPU the threads of a vertex belong to one warp, and each also computes the
/// weights and the motion along one axis. Results are bitwise equal to those of single vertices.
template <class Delta, class Real, Space space>
struct InterpolateGroup {
  using One = Interpolate<Delta, Real, space>;
  /// Threads of a vertex, vertices of a warp at a time, and vertices of a team.
  static constexpr int P = Delta::support, lanes = P > 3 ? P : 3, held = 32 / lanes, group = P > 3 ? 32 : 40;
  struct Scratch {
    i32 first[3][group];  ///< Around
    Real t[3][group];
    Real part[3][P][group + 1];  ///< of a plane; one more to avoid bank conflicts
    SEICHE_FN void set(int k, const Around<Real>& around) {
      for (int axis = 0; axis < 3; ++axis) {
        first[axis][k] = around.first[axis];
        t[axis][k] = around.t[axis];
      }
    }
    SEICHE_FN Around<Real> at(int k) const {
      return {{first[0][k], first[1][k], first[2][k]}, {t[0][k], t[1][k], t[2][k]}};
    }
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
    if constexpr (Team::single_thread) {
      by_stages(one, team, begin, number, scratch, chosen);
    } else {
      by_warps(one, team, begin, number, chosen);
    }
  }
  /// For many vertices at a time: the places of all, then the planes of all, then the motion of all.
  template <class Selection>
  static SEICHE_FN void by_stages(const One& one, const Team& team, Index begin, int number, Scratch& scratch,
                                  const Selection& chosen) {
    Private<typename One::VertexData, group> data;
    team.for_each(number, [&](int k) SEICHE_INLINED {
      if (!chosen(begin + k)) return;
      data[k] = one.fetched(begin + k);
      const Around<Real> at = Vertices<Real>::template around<Delta>(one.bricks, data[k].position);
      scratch.set(k, at);
      one.fetch_sites(at);
    });
    team.barrier();
    team.for_each(number * P, [&](int k) SEICHE_INLINED {
      if (!chosen(begin + k / P)) return;
      Real part[3];
      one.plane(scratch.at(k / P), k % P, part);
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
  /// For `held` vertices of a warp at a time, whose threads exchange weights and sums.
  template <class Selection>
  static SEICHE_FN void by_warps(const One& one, const Team& team, Index begin, int number, const Selection& chosen) {
    const int lane = team.thread % warp_threads, warp = team.thread / warp_threads, i = lane % lanes;
    const int first_lane = lane - i, axis = i < 3 ? i : 2, warps = team.threads / warp_threads;
    for (int base = warp * held; base < number; base += warps * held) {
      const int k = base + lane / lanes;
      const Index v = begin + k, at = axis * one.vertices.stride + v;
      const bool active = lane < held * lanes && k < number && chosen(v);
      double position = 0;
      Real previous = Real(0), slipped = Real(0);
      u8 listed = 0;
      if (active) {
        position = one.vertices.positions[at];
        previous = one.previous_weight != Real(0) ? one.velocity[at] : Real(0);
        slipped = one.slip != nullptr ? one.slip[at] : Real(0);
        listed = one.vertices.listed[at];
      }
      const AxisStencil<Delta, Real> stencil(position);
      const i32 own_first = one.bricks.wrapped(axis, stencil.first);
      Real own[P], wx[P], wy[P], wz[P], part[3], speed = Real(0);
      Delta::weights(stencil.t, own);
      i32 first[3];
      static_for<0, 3>([&]<int a>() { first[a] = of_lane(own_first, first_lane + a); });
      static_for<0, P>([&]<int q>() {
        wx[q] = of_lane(own[q], first_lane);
        wy[q] = of_lane(own[q], first_lane + 1);
        wz[q] = of_lane(own[q], first_lane + 2);
      });
      for (int a = 0; a < 3; ++a) part[a] = Real(0);
      if (active && i < P) {
        Real sum[3], w = wx[0];
        static_for<1, P>([&]<int q>() { w = i == q ? wx[q] : w; });
        one.sum_plane(first, i, wy, wz, sum);
        for (int a = 0; a < 3; ++a) part[a] = w * sum[a];
      }
      static_for<0, P>([&]<int q>() {
        const Real x = of_lane(part[0], first_lane + q), y = of_lane(part[1], first_lane + q);
        const Real z = of_lane(part[2], first_lane + q), value = axis == 0 ? x : axis == 1 ? y : z;
        speed = q == 0 ? value : speed + value;
      });
      if (!active) speed = Real(0);
      if constexpr (space != Space::open) speed *= active ? one.vertices.inverse[v] : Real(0);
      const double moved =
          position + static_cast<double>(one.weight * speed + one.previous_weight * previous + slipped);
      if (active && i < 3) {
        one.velocity[at] = speed;
        one.vertices.positions[at] = moved;
      }
      if constexpr (space == Space::open) {
        const AxisStencil<Delta, Real> next(moved);
        if (active && Vertices<Real>::has_left(next.first, listed)) one.vertices.state[VertexState::stale] = 1;
        if (active && !next.finite) one.vertices.state[VertexState::lost] = 1 + static_cast<u32>(v);
      } else {
        double x[3];
        u8 listed_for[3];
        static_for<0, 3>([&]<int a>() {
          x[a] = of_lane(moved, first_lane + a);
          listed_for[a] = static_cast<u8>(of_lane(static_cast<u32>(listed), first_lane + a));
        });
        if (active && i == 0) one.vertices.template locate<Delta, space>(one.bricks, v, x, listed_for);
      }
    }
  }
};

}  // namespace seiche
