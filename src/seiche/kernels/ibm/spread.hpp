// SPDX-License-Identifier: BSD-3-Clause
/// Spreading (theory/coupling, eq. 3), brick by brick: a team adds up in its own memory what the listed vertices give
/// to the sites of a brick, one vertex after another, and writes each site once. No global atomics; the order is fixed.
#pragma once
#include "lists.hpp"

namespace seiche {

/// g(x) = sum_X F(X) delta(x - X) over the sites of a brick that has vertices; others are left alone.
/// Bytes a brick: 512 forces written; each listed vertex is read once.
template <class Delta, class Real>
struct Spread {
  static constexpr int P = Delta::support, chunk = 32;
  /// Bits that no place in a brick has: sites of a stencil that are in another one.
  static constexpr i32 elsewhere = 1 << 20;
  /// The weight of a site along an axis, and its part of a place in the sums.
  struct Share {
    Real weight;
    i32 part;
  };
  struct Scratch {
    Four<Real> sum[brick_volume];  ///< place: bits x, y, z, with x ^ 4 in every second row, for the banks of the memory
    Four<Real> force[chunk];
    Share share[chunk][3][P];
    i32 meets[chunk];
  };
  Bricks bricks;
  Lists lists;
  const i32* corner;  ///< [row][4]: lattice coordinates of a brick's first site
  Vertices<Real> vertices;
  const Real* force;  ///< [3][stride] on the vertices
  Real* field;        ///< [row][3][512]
  static constexpr int bytes = 3 * brick_volume * sizeof(Real);

  SEICHE_FN void operator()(const Team& team, Index row, Scratch& scratch) const {
    if (row == 0) {
      team.each(1, [&](int) SEICHE_INLINED { vertices.state[VertexState::stale] = 0; });
    }
    const int many = static_cast<int>(lists.count[row]);
    if (many == 0) return;
    team.each(brick_volume, [&](int k) SEICHE_INLINED { scratch.sum[k] = {Real(0), Real(0), Real(0), Real(0)}; });
    const u32* list = lists.entries + lists.first[row];
    const i32 x0 = corner[4 * row], y0 = corner[4 * row + 1], z0 = corner[4 * row + 2];
    for (int begin = 0; begin < many; begin += chunk) {
      const int here = many - begin < chunk ? many - begin : chunk;
      team.barrier();
      team.each(here, [&](int e) SEICHE_INLINED {
        const u32 v = list[begin + e];
        const Place first = vertices.first[v];
        const Four<Real> t = vertices.t[v];
        const Index stride = vertices.stride;
        scratch.force[e] = {t.w * force[v], t.w * force[stride + v], t.w * force[2 * stride + v], Real(0)};
        const bool x = prepare<0>(scratch.share[e][0], t.x, first.x, x0);
        const bool y = prepare<1>(scratch.share[e][1], t.y, first.y, y0);
        const bool z = prepare<2>(scratch.share[e][2], t.z, first.z, z0);
        scratch.meets[e] = x && y && z ? 1 : 0;
      });
      team.barrier();
      for (int e = 0; e < here; ++e) {
        if (scratch.meets[e] == 0) continue;
        add(team, scratch.share[e], scratch.force[e], scratch);
        team.barrier();
      }
    }
    Real* out = field + row * (3 * brick_volume);
    team.each(brick_volume, [&](int slot) SEICHE_INLINED {
      const Four<Real> sum = scratch.sum[slot ^ (slot >> 1 & 4)];
      out[slot] = sum.x;
      out[brick_volume + slot] = sum.y;
      out[2 * brick_volume + slot] = sum.z;
    });
  }
  /// Weights and places in the brick of one vertex along an axis; whether one of the sites is in the brick.
  template <int axis>
  SEICHE_FN bool prepare(Share (&share)[P], Real t, i32 first, i32 begin) const {
    Real w[P];
    Delta::weights(t, w);
    bool meets = false;
    for (int k = 0; k < P; ++k) {
      const i32 inside = bricks.site(axis, first, k) - begin;
      const bool here = inside >= 0 && inside < brick_edge;
      const i32 part = axis == 0 ? inside : (axis == 1 ? inside * 8 ^ (inside & 1) * 4 : inside * 64);
      share[k] = {w[k], here ? part : elsewhere << axis};
      meets = meets || here;
    }
    return meets;
  }
  /// Add one vertex to the sums: a thread has a column of the stencil, or a part of it.
  SEICHE_FN void add(const Team& team, const Share (&share)[3][P], const Four<Real>& f, Scratch& scratch) const {
    constexpr int parts = P == 4 ? 2 : P;  // so that a column's sites keep 32 threads busy
    team.each(P * P * parts, [&](int s) SEICHE_INLINED {
      const Share x = share[0][s % P], y = share[1][s / P % P];
      const Real across = x.weight * y.weight;
      const i32 column = x.part ^ y.part;
      for (int step = 0; step < P / parts; ++step) {
        const Share z = share[2][s / (P * P) + step * parts];
        const i32 at = column ^ z.part;
        if (at < elsewhere) {
          const Real w = across * z.weight;
          Four<Real> sum = scratch.sum[at];
          sum.x += w * f.x;
          sum.y += w * f.y;
          sum.z += w * f.z;
          scratch.sum[at] = sum;
        }
      }
    });
  }
};

}  // namespace seiche
