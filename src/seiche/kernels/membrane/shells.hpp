// SPDX-License-Identifier: BSD-3-Clause
/// The elements of a membrane: pieces of a Loop subdivision surface (theory/cells, eqs. 1 to 8), or flat triangles with
/// hinges (eqs. 5 and 9). An element writes the forces on its control points; who gathers them is not its business.
#pragma once
#include "laws.hpp"

namespace seiche {

/// `Points` points of integration an element, at most `Slots` control points.
template <class R, int Points, int Slots>
struct LoopShell {
  using Real = R;
  static constexpr int slots = Slots, chunk = Slots > 12 ? 64 : 128;
  static constexpr int numbers = 5 * Points;  ///< of `rest`, an element

  const u16* control;   ///< [slot][element]: vertex; unused slots repeat one with weight zero
  const u16* kind;      ///< [element]: row of `weights`
  const Real* weights;  ///< [kind][slot][5][point]: of the derivatives by v, w, vv, ww, vw
  const Real* rest;     ///< [number][element]: metric xx, xy, yy, area and spontaneous curvature of each point
  Moduli<Real> moduli;
  i32 elements;

  template <class Scratch>
  SEICHE_FN void forces(int element, int lane, Scratch& scratch) const {
    const Real* table = weights + static_cast<Index>(kind[element]) * (Slots * 5 * Points);
    Derivatives<Real> d[Points];
    each<0, Points>([&]<int p>() SEICHE_INLINED { d[p] = {}; });
    for (int slot = 0; slot < Slots; ++slot) {
      const Vector<Real> x = scratch.place[control[slot * elements + element]];
      const Real* n = table + slot * 5 * Points;
      each<0, Points>([&]<int p>() SEICHE_INLINED {
        d[p].v = d[p].v + n[p] * x;
        d[p].w = d[p].w + n[Points + p] * x;
        d[p].vv = d[p].vv + n[2 * Points + p] * x;
        d[p].ww = d[p].ww + n[3 * Points + p] * x;
        d[p].vw = d[p].vw + n[4 * Points + p] * x;
      });
    }
    each<0, Points>([&]<int p>() SEICHE_INLINED {
      const Real* at = rest + 5 * p * elements + element;
      const Metric<Real> metric{at[0], at[elements], at[2 * elements], at[3 * elements]};
      Derivatives<Real> force;
      stretch(moduli, metric, d[p], force.v, force.w);
      bend(moduli, metric, at[4 * elements], d[p], force);
      d[p] = force;
    });
    for (int slot = 0; slot < Slots; ++slot) {
      const Real* n = table + slot * 5 * Points;
      Vector<Real> total{};
      each<0, Points>([&]<int p>() SEICHE_INLINED {
        total = total + n[p] * d[p].v + n[Points + p] * d[p].w + n[2 * Points + p] * d[p].vv +
                n[3 * Points + p] * d[p].ww + n[4 * Points + p] * d[p].vw;
      });
      scratch.put(slot, lane, total);
    }
  }
};

/// Corners, then the vertices across the edges 0-1, 1-2 and 2-0. Each hinge is shared with the triangle beyond.
template <class R>
struct FlatShell {
  using Real = R;
  static constexpr int slots = 6, chunk = 128;
  static constexpr int numbers = 10;

  const u16* control;  ///< [slot][element]
  const Real* rest;    ///< [number][element]: metric xx, xy, yy, area; cosine and sine of the rest angle of each hinge
  Moduli<Real> moduli;
  i32 elements;

  template <class Scratch>
  SEICHE_FN void forces(int element, int lane, Scratch& scratch) const {
    Vector<Real> x[6], force[6] = {};
    each<0, 6>([&]<int slot>() SEICHE_INLINED { x[slot] = scratch.place[control[slot * elements + element]]; });
    const Real* at = rest + element;
    const Metric<Real> metric{at[0], at[elements], at[2 * elements], at[3 * elements]};
    Derivatives<Real> d{x[1] - x[0], x[2] - x[0], {}, {}, {}};
    stretch(moduli, metric, d, force[1], force[2]);
    force[0] = Real(-1) * (force[1] + force[2]);
    each<0, 3>([&]<int k>() SEICHE_INLINED {
      const Real* angle = at + (4 + 2 * k) * elements;
      hinge(x, force, k, (k + 1) % 3, (k + 2) % 3, 3 + k, angle[0], angle[elements]);
    });
    each<0, 6>([&]<int slot>() SEICHE_INLINED { scratch.put(slot, lane, force[slot]); });
  }

  /// Half of the hinge on the edge i-j, between the third corner and the vertex `across`.
  SEICHE_FN void hinge(const Vector<Real>* x, Vector<Real>* force, int i, int j, int third, int across, Real cosine0,
                       Real sine0) const {
    const Vector<Real> edge = x[j] - x[i];
    const Vector<Real> near = cross(edge, x[third] - x[i]), far = cross(x[across] - x[i], edge);
    const Real near2 = dot(near, near), far2 = dot(far, far), length2 = dot(edge, edge);
    const Real length = square_root(length2), scale = Real(1) / square_root(near2 * far2);
    const Real cosine = scale * dot(near, far), sine = (scale / length) * dot(cross(near, far), edge);
    // sqrt(3) k sin(theta - theta0): half of the derivative of 2 sqrt(3) k (1 - cos(theta - theta0)), eq. 9.
    const Real moment = Real(1.7320508075688772) * moduli.bending * (sine * cosine0 - cosine * sine0);
    const Vector<Real> up = (moment / near2) * near, down = (moment / far2) * far;
    const Real share_near = dot(x[third] - x[i], edge) / length, share_far = dot(x[across] - x[i], edge) / length;
    force[third] = force[third] + length * up;
    force[across] = force[across] + length * down;
    force[i] = force[i] - (length - share_near) * up - (length - share_far) * down;
    force[j] = force[j] - share_near * up - share_far * down;
  }
};

}  // namespace seiche
