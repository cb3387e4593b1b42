// SPDX-License-Identifier: BSD-3-Clause
/// Policies of flow kernels for fluid with immersed membranes (theory/coupling, eqs. 3, 9, 13). Sites within reach of
/// vertices read the spread force and store their velocity for the interpolation.
#pragma once
#include "../flow/iolet.hpp"
#include "../flow/observe.hpp"
#include "../flow/regularised.hpp"
#include "../flow/stream_collide.hpp"
#include "../nodes.hpp"
#include "bricks.hpp"

namespace seiche {

/// Items that equal their slot in the bricks (tiles of 8^3).
struct OwnSlots {
  u8 unused;
  static constexpr int bytes = 0;
  SEICHE_FN u32 operator()(Index i) const { return static_cast<u32>(i); }
};

/// Items whose slot is read from a table.
struct TableSlots {
  const u32* slots;
  static constexpr int bytes = 4;
  SEICHE_FN u32 operator()(Index i) const { return slots[i]; }
};

/// Uniform body force plus spread force. Bytes per site: three numbers read, four written.
template <class Real, class Slots>
struct CellForce {
  /// Type of offsets in `field` and `flow`: processors gather only with 32-bit offsets.
  template <bool single, class = void>
  struct OffsetOf {
    using Type = Index;
  };
  template <class None>
  struct OffsetOf<true, None> {
    using Type = i32;
  };
  using Offset = typename OffsetOf<vector_lanes>::Type;
  const Real* field;   ///< [row][3][512]
  Real* flow;          ///< [row][512][4]
  const u32* touched;  ///< [row][2]: bit y + 8 z of the rows of eight sites within reach of vertices
  Slots slots;
  Real body[3];
  static constexpr int bytes = 7 * sizeof(Real) + Slots::bytes;

  struct ImmersedForce {
    Real g[3];
    Real* flow;  ///< nullptr if the velocity is not needed
    Offset at;
    static constexpr bool present = true;
    SEICHE_FN Real x() const { return g[0]; }
    SEICHE_FN Real y() const { return g[1]; }
    SEICHE_FN Real z() const { return g[2]; }
    SEICHE_FN void store_velocity(const Moments<Real>& m) const {
      if constexpr (vector_lanes) {
        flow[at] = m.ux;
        flow[at + 1] = m.uy;
        flow[at + 2] = m.uz;
      } else if (flow != nullptr) {
        *reinterpret_cast<Four<Real>*>(flow + at) = {m.ux, m.uy, m.uz, m.excess};
      }
    }
  };
  SEICHE_FN ImmersedForce at(Index i) const {
    const u32 slot = slots(i), row = slot / brick_volume;
    const u32 is_touched = touched[slot / 256] >> (slot / brick_edge % 32) & 1u;
    const Offset from = static_cast<Offset>(row) * (3 * brick_volume) + static_cast<Offset>(slot % brick_volume);
    ImmersedForce force = {{body[0], body[1], body[2]}, nullptr, 4 * static_cast<Offset>(slot)};
    if constexpr (vector_lanes) {  // all lanes of a vector do the same, including unneeded stores
      static_for<0, 3>([&]<int axis>() SEICHE_INLINED {
        force.g[axis] += static_cast<Real>(static_cast<i32>(is_touched)) * field[from + axis * brick_volume];
      });
      force.flow = flow;
    } else if (is_touched != 0) {
      static_for<0, 3>([&]<int axis>() SEICHE_INLINED { force.g[axis] += field[from + axis * brick_volume]; });
      force.flow = flow;
    }
    return force;
  }
};

/// Relaxation rates of the fluid outside and inside cells (eq. 13), which may differ between types of cells. Bytes per
/// site: one bit of each plane. The bits of a site are the index of its rates.
template <class R, class Slots, int planes = 1>
struct InsideRates {
  using Real = R;
  static constexpr int kinds = 1 << planes;
  const u64* inside;  ///< [plane]: one bit per slot, in order
  Slots slots;
  Index words;                   ///< of a plane
  Real even[kinds], odd[kinds];  ///< outside, then inside
  static constexpr int bytes = Slots::bytes;
  SEICHE_FN int viscosity_kind(Index i) const {
    const u32 slot = slots(i);
    int kind = static_cast<int>(inside[slot / 64] >> (slot % 64) & 1u);
    if constexpr (planes > 1) {
      for (int plane = 1; plane < planes; ++plane) {
        kind |= static_cast<int>(inside[plane * words + slot / 64] >> (slot % 64) & 1u) << plane;
      }
    }
    return kind;
  }
  SEICHE_FN static Real rate_of(const Real (&rates)[kinds], int kind) {
    if constexpr (planes > 1) return rates[kind];
    return kind != 0 ? rates[1] : rates[0];
  }
  SEICHE_FN Real omega_before(Index i) const { return rate_of(even, viscosity_kind(i)); }
  SEICHE_FN Symmetric<Real> strain(const Symmetric<Real>& p, Index) const { return p; }
  SEICHE_FN Rates<Real> operator()(Index i, const Symmetric<Real>&, Real) const {
    const int kind = viscosity_kind(i);
    return {rate_of(even, kind), rate_of(odd, kind)};
  }
};

/// A collision that stores the velocity before it, (sum c f + g/2)/rho, of second order in time (eq. 9).
template <class Collision>
struct Coupled {
  template <class Lattice, class Real, class Rates, class Force>
  static SEICHE_FN void collide(Real (&f)[Lattice::Q], const Moments<Real>& m, const Symmetric<Real>& p,
                                const Rates& rates, const Force& force) {
    force.store_velocity(m);
    Collision::template collide<Lattice>(f, m, p, rates, force);
  }
};

}  // namespace seiche
