// SPDX-License-Identifier: BSD-3-Clause
/// Spreading (theory/coupling, eq. 3), brick by brick. A team sums the forces on its sites in registers, one listed
/// vertex after another, and writes each site once. No atomics; the order of the sums is fixed.
#pragma once
#include "../batches.hpp"
#include "../groups.hpp"
#include "../nodes.hpp"
#include "../warps.hpp"
#include "lists.hpp"

namespace seiche {

/// g(x) = sum_X F(X) delta(x - X) over the rows of eight sites within reach of vertices. Other rows are unchanged.
/// Bytes per brick: the written part of 512 forces; each listed vertex is read once.
template <class Delta, class Real>
struct Spread {
  static constexpr int P = Delta::support, columns = brick_edge * brick_edge;
  /// Weights of a vertex at the eight positions of a brick along an axis.
  struct alignas(16) Line {
    Real of[brick_edge];
  };
  /// Data of a listed vertex in the memory of the team.
  struct Entry {
    Four<Real> force;
    Line share[3];
  };
  Bricks bricks;
  Lists lists;
  const i32* corner;  ///< [row][4]: lattice coordinates of a brick's first site
  Vertices<Real> vertices;
  const Real* force;  ///< [3][stride] on the vertices
  Real* field;        ///< [row][3][512]
  u64* touched;       ///< [row]: bit y + 8 z of the rows of sites that were written
  static constexpr int bytes = 3 * brick_volume * sizeof(Real) + 8;

  /// On a GPU, a warp processes a patch of 8 x 4 x 4 sites and a thread four of them along z. A warp reads only entries
  /// that reach its patch. A team needs four warps.
  static constexpr int half = brick_edge / 2, patches = 4,
                       chunk = Team::single_thread ? columns : patches * warp_threads, unroll = 4;
  struct WarpScratch {
    Entry entries[chunk + 1];                     ///< the last one without force
    u32 reaching[patches][chunk / warp_threads];  ///< bit masks of the entries that reach a patch
    u64 touched[patches];
    alignas(8) u16 order[patches][chunk + unroll];  ///< offsets of the entries that reach a patch, then of the last one
  };
  struct LoneScratch {
    Entry entries[chunk];
    u64 rows[chunk];  ///< bit y + 8 z of the rows of sites that an entry reaches
  };
  using Scratch = typename Either<Team::single_thread, LoneScratch, WarpScratch>::Type;
  struct alignas(16) DepthWeights {
    Real of[half];
  };

  SEICHE_FN void operator()(const Team& team, Index row, Scratch& scratch) const {
    if constexpr (Team::single_thread) {
      by_planes(team, row, scratch);
    } else {
      by_warps(team, row, scratch);
    }
  }
  SEICHE_FN void by_warps(const Team& team, Index row, WarpScratch& scratch) const {
    if (row == 0 && team.thread == 0) vertices.state[VertexState::stale] = 0;
    const int vertex_count = static_cast<int>(lists.count[row]);
    if (vertex_count == 0) {
      if (team.thread == 0) touched[row] = 0;
      return;
    }
    const int lane = team.thread % warp_threads, patch = team.thread / warp_threads;
    const int x = lane % brick_edge, y = lane / brick_edge + half * (patch % 2), z = half * (patch / 2);
    const u32* list = lists.entries + lists.first[row];
    const i32 first[3] = {corner[4 * row], corner[4 * row + 1], corner[4 * row + 2]};
    Real sum[half][3] = {};
    u64 rows = 0;
    if (team.thread == 0) scratch.entries[chunk] = {};
    for (int begin = 0; begin < vertex_count; begin += chunk) {
      u32 halves = 0;
      if (begin > 0) team.barrier();
      if (begin + team.thread < vertex_count) {
        halves = prepare(list[begin + team.thread], first, scratch.entries[team.thread], rows);
      }
      static_for<0, patches>([&]<int p>() {
        const u32 word = votes((halves >> p % 2 & 1u) != 0 && (halves >> (2 + p / 2) & 1u) != 0);
        if (lane == 0) scratch.reaching[p][patch] = word;
      });
      team.barrier();
      u16* order = scratch.order[patch];
      int count = 0;
      static_for<0, chunk / warp_threads>([&]<int group>() {
        const u32 word = scratch.reaching[patch][group];
        if ((word >> lane & 1u) != 0) {
          order[count + bit_count(word & ((1u << lane) - 1))] =
              static_cast<u16>((group * warp_threads + lane) * sizeof(Entry));
        }
        count += bit_count(word);
      });
      if (lane < unroll) order[count + lane] = chunk * sizeof(Entry);
      warp_barrier();
      for (int k = 0; k < count; k += unroll) {
        const Group<u16, unroll> next = load_group<unroll>(order + k);
        static_for<0, unroll>([&]<int q>() {
          const Entry& entry =
              *reinterpret_cast<const Entry*>(reinterpret_cast<const u8*>(scratch.entries) + next.of[q]);
          const Four<Real> f = entry.force;
          const Real weight = entry.share[0].of[x] * entry.share[1].of[y];
          const DepthWeights depth_weights = reinterpret_cast<const DepthWeights&>(entry.share[2].of[z]);
          const Real weighted_force[3] = {weight * f.x, weight * f.y, weight * f.z};
          static_for<0, half * 3>([&]<int c>() {
            sum[c / 3][c % 3] = multiply_add(depth_weights.of[c / 3], weighted_force[c % 3], sum[c / 3][c % 3]);
          });
        });
      }
    }
    rows = combined_bits(rows);
    if (lane == 0) scratch.touched[patch] = rows;
    team.barrier();
    rows = scratch.touched[0] | scratch.touched[1] | scratch.touched[2] | scratch.touched[3];
    if (team.thread == 0) touched[row] = rows;
    Real* out = field + row * (3 * brick_volume) + z * columns + y * brick_edge + x;
    static_for<0, half>([&]<int k>() {
      if ((rows >> (y + brick_edge * (z + k)) & 1u) != 0) {
        static_for<0, 3>([&]<int c>() { out[c * brick_volume + k * columns] = sum[k][c]; });
      }
    });
  }

  SEICHE_FN void by_planes(const Team& team, Index row, LoneScratch& scratch) const {
    if (row == 0) vertices.state[VertexState::stale] = 0;
    const int vertex_count = static_cast<int>(lists.count[row]);
    touched[row] = 0;
    if (vertex_count == 0) return;
    Private<Real, columns> sum[brick_edge][3] = {};
    const u32* list = lists.entries + lists.first[row];
    const i32 first[3] = {corner[4 * row], corner[4 * row + 1], corner[4 * row + 2]};
    u64 rows = 0;
    for (int begin = 0; begin < vertex_count; begin += chunk) {
      const int chunk_count = vertex_count - begin < chunk ? vertex_count - begin : chunk;
      team.for_each(chunk_count, [&](int e) SEICHE_INLINED {
        scratch.rows[e] = 0;
        prepare(list[begin + e], first, scratch.entries[e], scratch.rows[e]);
      });
      for (int e = 0; e < chunk_count; ++e) {
        const u64 reached = scratch.rows[e];
        rows |= reached;
        for_bits(static_cast<u32>(reached),
                 [&](int k) SEICHE_INLINED { add(scratch.entries[e], k, sum[k / brick_edge]); });
        for_bits(static_cast<u32>(reached >> 32),
                 [&](int k) SEICHE_INLINED { add(scratch.entries[e], 32 + k, sum[brick_edge / 2 + k / brick_edge]); });
      }
    }
    touched[row] = rows;
    Real* out = field + row * (3 * brick_volume);
    for (int k = 0; k < columns; ++k) {  // row of sites k = y + 8 z
      if ((rows >> k & 1u) == 0) continue;
      for (int c = 0; c < 3; ++c) {
        vector_loop<brick_edge>([&](int x) SEICHE_INLINED {
          out[c * brick_volume + k * brick_edge + x] = sum[k / brick_edge][c][k % brick_edge * brick_edge + x];
        });
      }
    }
  }
  /// Adds the contribution of a vertex to the row of sites `k` = y + 8 z.
  SEICHE_FN void add(const Entry& entry, int k, Private<Real, columns> (&sum)[3]) const {
    const int begin = k % brick_edge * brick_edge;
    const Real on_row = entry.share[1].of[k % brick_edge], on_plane = entry.share[2].of[k / brick_edge];
    const Real force_on_vertex[3] = {entry.force.x, entry.force.y, entry.force.z};
    static_for<0, 3>([&]<int c>() SEICHE_INLINED {
      vector_loop<brick_edge>([&](int x) SEICHE_INLINED {
        const Real weighted_force = (entry.share[0].of[x] * on_row) * force_on_vertex[c];
        sum[c][begin + x] = multiply_add(on_plane, weighted_force, sum[c][begin + x]);
      });
    });
  }

  /// Prepares the entry of vertex v. Returns bits for the halves of the brick from `begin` that it reaches: y < 4, y >=
  /// 4, z < 4, z >= 4. Adds the reached rows of sites to `rows`, bit y + 8 z.
  SEICHE_FN u32 prepare(u32 v, const i32 (&begin)[3], Entry& entry, u64& rows) const {
    const Around<Real> at = vertices.template around<Delta>(bricks, v);
    const Index stride = vertices.stride;
    const Real factor = vertices.inverse != nullptr ? vertices.inverse[v] : Real(1);
    entry.force = {factor * force[v], factor * force[stride + v], factor * force[2 * stride + v], Real(0)};
    const u32 x = line<0>(entry.share[0], at.t[0], at.first[0], begin[0]);
    const u32 y = line<1>(entry.share[1], at.t[1], at.first[1], begin[1]);
    const u32 z = line<2>(entry.share[2], at.t[2], at.first[2], begin[2]);
    if (x == 0 || y == 0 || z == 0) return 0;
    rows |= y * in_bytes(z) | static_cast<u64>(y * in_bytes(z >> 4)) << 32;
    return ((y & 15u) != 0 ? 1u : 0u) | ((y >> 4) != 0 ? 2u : 0u) | ((z & 15u) != 0 ? 4u : 0u) |
           ((z >> 4) != 0 ? 8u : 0u);
  }
  /// The lowest four bits of a word, each in one byte.
  SEICHE_FN static u32 in_bytes(u32 bits) { return (bits & 15u) * 0x00204081u & 0x01010101u; }
  /// Weights of a vertex along an axis at the positions of the brick from `begin`. Returns a bit mask of the reached
  /// halves.
  template <int axis>
  SEICHE_FN u32 line(Line& share, Real t, i32 first, i32 begin) const {
    Real w[P];
    Delta::weights(t, w);
    u32 touched_rows = 0;
    if constexpr (vector_lanes) {  // branches and stores to varying places would be hard to predict
      i32 inside[P];
      static_for<0, P>([&]<int k>() SEICHE_INLINED {
        inside[k] = bricks.site(axis, first, k) - begin;
        touched_rows |= static_cast<u32>(inside[k]) < u32{brick_edge} ? 1u << inside[k] : 0u;
      });
      vector_loop<brick_edge>([&](int at) SEICHE_INLINED {
        Real weight = Real(0);
        static_for<0, P>([&]<int k>() SEICHE_INLINED { weight = at == inside[k] ? w[k] : weight; });
        share.of[at] = weight;
      });
      return touched_rows;
    }
    share = {};
    for (int k = 0; k < P; ++k) {
      const i32 inside = bricks.site(axis, first, k) - begin;
      if (inside >= 0 && inside < brick_edge) {
        share.of[inside] = w[k];
        touched_rows |= 1u << inside;
      }
    }
    return touched_rows;
  }
};

}  // namespace seiche
