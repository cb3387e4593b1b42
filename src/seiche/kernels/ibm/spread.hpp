// SPDX-License-Identifier: BSD-3-Clause
/// Spreading (theory/coupling, eq. 3), brick by brick: a thread of a team has a column of sites, whose forces it adds
/// up in registers, one listed vertex after another, and writes each site once. No atomics; the order of the sums is
/// fixed.
#pragma once
#include "../batches.hpp"
#include "../nodes.hpp"
#include "lists.hpp"

namespace seiche {

/// g(x) = sum_X F(X) delta(x - X) over the rows of eight sites that vertices reach; others are left alone.
/// Bytes a brick: what is written of 512 forces; each listed vertex is read once.
template <class Delta, class Real>
struct Spread {
  static constexpr int P = Delta::support, columns = brick_edge * brick_edge, chunk = columns;
  /// Weights of a vertex on the eight places of a brick along an axis.
  struct alignas(16) Line {
    Real of[brick_edge];
  };
  struct Scratch {
    Four<Real> force[chunk];
    Line share[3][chunk];
    u32 halves[chunk];   ///< bits of what a vertex reaches: y < 4, y >= 4, z < 4, z >= 4 of the brick
    u64 touched[chunk];  ///< bit y + 8 z: an entry of a thread reaches that row of sites
  };
  using Sums = Private<Real, columns>[brick_edge][3];
  Bricks bricks;
  Lists lists;
  const i32* corner;  ///< [row][4]: lattice coordinates of a brick's first site
  Vertices<Real> vertices;
  const Real* force;  ///< [3][stride] on the vertices
  Real* field;        ///< [row][3][512]
  u64* touched;       ///< [row]: bit y + 8 z of the rows of sites that were written
  static constexpr int bytes = 3 * brick_volume * sizeof(Real) + 8;

  SEICHE_FN void operator()(const Team& team, Index row, Scratch& scratch) const {
    if (row == 0) {
      team.each(1, [&](int) SEICHE_INLINED { vertices.state[VertexState::stale] = 0; });
    }
    const int many = static_cast<int>(lists.count[row]);
    if (many == 0) {
      team.each(1, [&](int) SEICHE_INLINED { touched[row] = 0; });
      return;
    }
    Sums sum;
    team.each(columns, [&](int k) SEICHE_INLINED {
      each<0, brick_edge * 3>([&]<int c>() SEICHE_INLINED { sum[c / 3][c % 3][k] = Real(0); });
    });
    team.each(chunk, [&](int k) SEICHE_INLINED { scratch.touched[k] = 0; });
    const u32* list = lists.entries + lists.first[row];
    const i32 x0 = corner[4 * row], y0 = corner[4 * row + 1], z0 = corner[4 * row + 2];
    for (int begin = 0; begin < many; begin += chunk) {
      const int here = many - begin < chunk ? many - begin : chunk;
      team.barrier();
      team.each(here, [&](int e) SEICHE_INLINED { prepare(list[begin + e], e, x0, y0, z0, scratch); });
      team.barrier();
      for (int e = 0; e < here; ++e) {
        const u32 halves = scratch.halves[e];
        if (halves == 0) continue;
        add(team, scratch.force[e], scratch.share[0][e], scratch.share[1][e], scratch.share[2][e], halves, sum);
      }
    }
    team.barrier();
    team.each(brick_edge, [&](int k) SEICHE_INLINED {
      for (int e = k + brick_edge; e < chunk; e += brick_edge) scratch.touched[k] |= scratch.touched[e];
    });
    team.barrier();
    u64 mask = 0;
    for (int k = 0; k < brick_edge; ++k) mask |= scratch.touched[k];
    team.each(1, [&](int) SEICHE_INLINED { touched[row] = mask; });
    Real* out = field + row * (3 * brick_volume);
    team.each(columns, [&](int k) SEICHE_INLINED {
      each<0, brick_edge>([&]<int z>() SEICHE_INLINED {
        if ((mask >> (k / brick_edge + brick_edge * z) & 1u) != 0) {
          each<0, 3>([&]<int c>() SEICHE_INLINED { out[c * brick_volume + z * columns + k] = sum[z][c][k]; });
        }
      });
    });
  }
  /// Add what a vertex with this force and these weights gives to each column: on the GPU four sites of a thread at a
  /// time, if it reaches them; on the CPU plane by plane.
  SEICHE_FN void add(const Team& team, const Four<Real>& f, const Line& wide, const Line& across, const Line& deep,
                     u32 halves, Sums& sum) const {
    if constexpr (vector_lanes) {
      Private<Real, columns> push[3];
      for (int y = 0; y < brick_edge; ++y) {
        side_by_side<brick_edge>([&](int x) SEICHE_INLINED {
          const Real weight = wide.of[x] * across.of[y];
          push[0][y * brick_edge + x] = weight * f.x;
          push[1][y * brick_edge + x] = weight * f.y;
          push[2][y * brick_edge + x] = weight * f.z;
        });
      }
      for (int z = 0; z < brick_edge; ++z) {
        const Real weight = deep.of[z];
        if (weight == Real(0)) continue;
        for (int c = 0; c < 3; ++c) {
          side_by_side<columns>([&](int k)
                                    SEICHE_INLINED { sum[z][c][k] = multiply_add(weight, push[c][k], sum[z][c][k]); });
        }
      }
    } else {
      team.each(columns, [&](int k) SEICHE_INLINED {
        if ((halves >> (k / (columns / 2)) & 1u) == 0) return;  // the same for all threads of a warp
        const Real weight = wide.of[k % brick_edge] * across.of[k / brick_edge];
        const Real push[3] = {weight * f.x, weight * f.y, weight * f.z};
        each<0, 2>([&]<int half>() SEICHE_INLINED {
          if ((halves >> (2 + half) & 1u) == 0) return;
          each<0, brick_edge / 2 * 3>([&]<int c>() SEICHE_INLINED {
            constexpr int z = brick_edge / 2 * half + c / 3;
            sum[z][c % 3][k] = multiply_add(deep.of[z], push[c % 3], sum[z][c % 3][k]);
          });
        });
      });
    }
  }
  /// What the team must know of vertex v, entry e of the chunk.
  SEICHE_FN void prepare(u32 v, int e, i32 x0, i32 y0, i32 z0, Scratch& scratch) const {
    const Place first = vertices.first[v];
    const Four<Real> t = vertices.t[v];
    const Index stride = vertices.stride;
    scratch.force[e] = {t.w * force[v], t.w * force[stride + v], t.w * force[2 * stride + v], Real(0)};
    const u32 x = line<0>(scratch.share[0][e], t.x, first.x, x0);
    const u32 y = line<1>(scratch.share[1][e], t.y, first.y, y0);
    const u32 z = line<2>(scratch.share[2][e], t.z, first.z, z0);
    const bool meets = x != 0 && y != 0 && z != 0;
    const u32 halves =
        ((y & 15u) != 0 ? 1u : 0u) | ((y >> 4) != 0 ? 2u : 0u) | ((z & 15u) != 0 ? 4u : 0u) | ((z >> 4) != 0 ? 8u : 0u);
    scratch.halves[e] = meets ? halves : 0u;
    if (!meets) return;
    const u64 row = y;
    u64 rows = 0;
    for (int k = 0; k < brick_edge; ++k) rows |= (z >> k & 1u) != 0 ? row << 8 * k : u64{0};
    scratch.touched[e] |= rows;
  }
  /// Weights of a vertex along an axis at the places of the brick that begins at `begin`; returns which are reached.
  template <int axis>
  SEICHE_FN u32 line(Line& share, Real t, i32 first, i32 begin) const {
    Real w[P];
    Delta::weights(t, w);
    share = {};
    u32 reached = 0;
    for (int k = 0; k < P; ++k) {
      const i32 inside = bricks.site(axis, first, k) - begin;
      if (inside >= 0 && inside < brick_edge) {
        share.of[inside] = w[k];
        reached |= 1u << inside;
      }
    }
    return reached;
  }
};

}  // namespace seiche
