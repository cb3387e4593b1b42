// SPDX-License-Identifier: BSD-3-Clause
/// Immersed boundary of cells that are present on several ranks (docs/decisions/0019).
#pragma once
#include "../resident.hpp"
#include "inside.hpp"
#include "lists.hpp"
#include "sharing.hpp"

namespace seiche {

/// Item: a group of vertices, limited to those of the selected cells. Results are bitwise equal to InterpolateGroup.
template <class Delta, class Real, Space space>
struct InterpolateResident {
  using Group = InterpolateGroup<Delta, Real, space>;
  using Scratch = typename Group::Scratch;
  static constexpr int group = Group::group;
  typename Group::One one;
  Chosen chosen;
  Index end;  ///< end of the vertices of the type
  static constexpr int bytes = Group::bytes;
  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    const Index begin = chosen.first + item * group;
    const int number = static_cast<int>(end - begin < group ? end - begin : group);
    if (!chosen.any(begin, number)) return;
    Group::interpolate(one, team, begin, number, scratch, chosen);
  }
};

/// Item: a group of vertices of a listed cell. Computes the velocity of vertices whose closest fluid site is owned by
/// this rank, and zero for all other vertices. No vertex moves. The whole stencil of such a vertex is available on this
/// rank.
template <class Delta, class Real, Space space>
struct InterpolateOwned {
  using Group = InterpolateGroup<Delta, Real, space>;
  static constexpr int P = Group::P, group = Group::group;
  struct Scratch {
    typename Group::Scratch planes;
    i32 owned[group];
  };
  typename Group::One one;
  Listed listed;
  const u64* owned;  ///< one bit per slot, in order
  static constexpr int bytes = Group::bytes;

  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    const i32 groups = (listed.items_per_cell + group - 1) / group, entry = static_cast<i32>(item) / groups;
    if (entry >= *listed.count) return;
    const i32 first_item = static_cast<i32>(item) % groups * group, remaining = listed.items_per_cell - first_item;
    const Index begin = listed.first + static_cast<Index>(listed.cells[entry]) * listed.items_per_cell + first_item;
    const int number = remaining < group ? remaining : group;
    team.for_each(number, [&](int k) SEICHE_INLINED {
      const Around<Real> around = one.vertices.template around<Delta>(one.bricks, begin + k);
      scratch.planes.set(k, around);
      scratch.owned[k] = owns(around) ? 1 : 0;
    });
    team.barrier();
    team.for_each(number * P, [&](int k) SEICHE_INLINED {
      if (scratch.owned[k / P] == 0) return;
      Real part[3];
      one.plane(scratch.planes.at(k / P), k % P, part);
      for (int axis = 0; axis < 3; ++axis) scratch.planes.part[axis][k % P][k / P] = part[axis];
    });
    team.barrier();
    team.for_each(number, [&](int k) SEICHE_INLINED {
      const Index v = begin + k;
      Real factor = Real(1);
      if constexpr (space != Space::open) factor = one.vertices.inverse[v];
      for (int axis = 0; axis < 3; ++axis) {
        Real speed = Real(0);
        if (scratch.owned[k] != 0) {
          speed = scratch.planes.part[axis][0][k];
          for (int i = 1; i < P; ++i) speed += scratch.planes.part[axis][i][k];
          speed *= factor;
        }
        one.velocity[axis * one.vertices.stride + v] = speed;
      }
    });
    team.barrier();
  }
  SEICHE_FN i32 slot(const i32 (&first)[3], int i, int j, int k) const {
    const Bricks& bricks = one.bricks;
    const i32 x = bricks.site(0, first[0], i), y = bricks.site(1, first[1], j), z = bricks.site(2, first[2], k);
    if (x < 0 || y < 0 || z < 0) return -1;
    const i32 row = bricks.row(x / brick_edge, y / brick_edge, z / brick_edge) >> 1;
    return row * brick_volume + ((z % brick_edge) * brick_edge + y % brick_edge) * brick_edge + x % brick_edge;
  }
  SEICHE_FN bool owns(const Around<Real>& around) const {
    constexpr int P = Delta::support;
    const auto& [first, t] = around;
    int nearest[3];
    for (int axis = 0; axis < 3; ++axis) nearest[axis] = Delta::sites_before + (t[axis] > Real(0.5) ? 1 : 0);
    i32 closest_site = slot(first, nearest[0], nearest[1], nearest[2]);
    if (closest_site < 0 || !fluid(closest_site)) {  // next to a wall: the closest fluid site
      closest_site = -1;
      Real closest = Real(0);
      for (int s = 0; s < P * P * P; ++s) {
        const int i = s % P, j = s / P % P, k = s / (P * P);
        const i32 candidate = slot(first, i, j, k);
        if (candidate < 0 || !fluid(candidate)) continue;
        const Real x = t[0] - Real(i - Delta::sites_before), y = t[1] - Real(j - Delta::sites_before);
        const Real z = t[2] - Real(k - Delta::sites_before), squared_distance = x * x + y * y + z * z;
        if (closest_site < 0 || squared_distance < closest) {
          closest_site = candidate;
          closest = squared_distance;
        }
      }
    }
    return closest_site >= 0 && (owned[closest_site / 64] >> (closest_site % 64) & 1u) != 0;
  }
  SEICHE_FN bool fluid(i32 at) const { return (one.bricks.fluid[at / 64] >> (at % 64) & 1u) != 0; }
};

/// Items: the rows of bricks that are empty or belong to other ranks. Clears the lists of vertices there.
struct ClearLists {
  u32* tally;
  static constexpr int bytes = 4;
  SEICHE_FN void operator()(Index row) const { tally[row] = 0; }
};

/// X += a V + b V' + slip, with the velocities gathered from all ranks (eqs. 1, 8 and 18).
template <class Real>
struct MoveVertices {
  double* positions;         ///< [3][stride]
  const Real* interpolated;  ///< V
  Real* velocity;            ///< V', replaced by V
  const Real* slip;          ///< null: no slip
  Index stride;
  Real weight, previous_weight;
  static constexpr int bytes = 3 * (16 + 4 * static_cast<int>(sizeof(Real)));
  SEICHE_FN void operator()(Index v) const {
    for (int axis = 0; axis < 3; ++axis) {
      const Index at = axis * stride + v;
      const Real speed = interpolated[at], previous = velocity[at],
                 slip_velocity = slip != nullptr ? slip[at] : Real(0);
      velocity[at] = speed;
      positions[at] = positions[at] + static_cast<double>(weight * speed + previous_weight * previous + slip_velocity);
    }
  }
};

}  // namespace seiche
