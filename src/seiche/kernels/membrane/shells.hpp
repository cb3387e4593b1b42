// SPDX-License-Identifier: BSD-3-Clause
/// Elements of a membrane: patches of a Loop subdivision surface (theory/cells, eqs. 1 to 8), or flat triangles with
/// hinges (eqs. 5 and 9). Each element writes the forces on its control points, which are summed in force.hpp.
#pragma once
#include "viscosity.hpp"

namespace seiche {

/// Advances the dashpots of a batch of elements with the metrics `metric`; returns the strains of the springs in
/// `strain`.
template <int lanes, class Shell, class Real>
SEICHE_FN void advance(const Shell& shell, Index begin, int element, const Real (&metric)[3][lanes],
                       Real (&strain)[3][lanes]) {
  const int last = shell.elements - 1;
  if constexpr (vector_lanes) {
    if (element + lanes - 1 <= last && shell.law.arm.consecutive(element, lanes)) {
      double* const relaxed = shell.law.arm.at(begin, element);
      vector_loop<lanes>([&](int k) SEICHE_INLINED {
        Real values[3] = {metric[0][k], metric[1][k], metric[2][k]};
        shell.law.arm.advance(relaxed + k, true, values);
        for (int c = 0; c < 3; ++c) strain[c][k] = values[c];
      });
      return;
    }
  }
  for (int k = 0; k < lanes; ++k) {
    const int e = element + k < last ? element + k : last;  // the last batch is padded with copies
    Real values[3] = {metric[0][k], metric[1][k], metric[2][k]};
    shell.law.arm.advance(shell.law.arm.at(begin, e), element + k <= last, values);
    for (int c = 0; c < 3; ++c) strain[c][k] = values[c];
  }
}

/// Spring stress of element k of a batch, times `area`.
template <class Shell, class Real, int lanes>
SEICHE_FN Stress<Real> spring_stress(const Shell& shell, Real area, int k, const Real (&metric)[3][lanes],
                                     const Real (&strain)[3][lanes]) {
  const Stress<Real> s =
      shell.law.arm.stress(metric[0][k], metric[1][k], metric[2][k], strain[0][k], strain[1][k], strain[2][k]);
  return {area * s.vv, area * s.vw, area * s.ww};
}

/// Adds the forces of `stress`, which includes the factor -area, to those on the tangents `v` and `w`.
template <class Real>
SEICHE_FN void add_stress_forces(Stress<Real> stress, Vector<Real> v, Vector<Real> w, Vector<Real>& on_v,
                                 Vector<Real>& on_w) {
  on_v = multiply_add(stress.vv, v, multiply_add(stress.vw, w, on_v));
  on_w = multiply_add(stress.vw, v, multiply_add(stress.ww, w, on_w));
}

/// Loop shell with `Points` quadrature points and at most `Slots` control points per element; a pass has `Chunk`
/// elements.
template <class R, template <class> class Law, int Points, int Slots, int Chunk>
struct LoopShell {
  using Real = R;
  static constexpr int slots = Slots, chunk = Chunk;
  static constexpr bool viscous = is_viscous<Law<R>>;
  /// Slots that a GPU processes between two tests of the loop over them. More than two spill without surface viscosity.
  static constexpr int unrolled = viscous && sizeof(Real) == 4 && Slots == 12 ? Slots : 2;
  /// Weights of a control point in the derivatives with respect to v, w, vv, ww, vw: [5][point], padded to vector
  /// loads.
  struct alignas(16) Row {
    Real of[Points == 1 ? 8 : 16];
  };

  const u16* control;  ///< [slot][element]: vertex; an unused slot repeats a vertex with weight zero
  const u16* entry;    ///< [slot][element]: entry of the force on that vertex in its chunk
  const u16* kind;     ///< [element]: row of `weights`, ascending
  const Row* weights;  ///< [kind][slot]
  const Real* rest;    ///< [point][5][element]: metric xx, xy, yy, area and spontaneous curvature
  Law<Real> law;
  Real bending;
  i32 elements, stride;  ///< number of elements, and that padded to whole batches with copies of the last one

  /// Computes the forces of a batch of elements, from `element` on, of the cell whose vertices begin at `begin`.
  template <class Scratch>
  SEICHE_FN void forces(Index begin, int element, Scratch& scratch) const {
    constexpr int lanes = batch_lanes<Real>;
    if (kind[element] == kind[element + lanes - 1]) {
      batch<lanes>(begin, element, scratch);
    } else {
      for (int k = 0; k < lanes; ++k) batch<1>(begin, element + k, scratch);
    }
  }

  /// Computes the forces of `lanes` elements of one kind.
  template <int lanes, class Scratch>
  SEICHE_FN void batch(Index begin, int element, Scratch& scratch) const {
    const Row* table = weights + kind[element] * Slots;
    Real d[Points][5][3][lanes];
    if constexpr (vector_lanes) {
      derivatives_by_vectors<lanes>(table, element, scratch, d);
    } else {
      derivatives(table, element, scratch, d);
    }
    Real mean[2][3][lanes], metric_of[3][lanes], strain[3][lanes];  // mean tangents over the points, with their metric
    if constexpr (viscous) {
      vector_loop<lanes>([&](int k) SEICHE_INLINED {
        static_for<0, 6>([&]<int c>() SEICHE_INLINED {
          Real sum = 0;
          static_for<0, Points>([&]<int p>() SEICHE_INLINED { sum = sum + d[p][c / 3][c % 3][k]; });
          mean[c / 3][c % 3][k] = divided_by<Points>(sum);
        });
        const Vector<Real> v{mean[0][0][k], mean[0][1][k], mean[0][2][k]};
        const Vector<Real> w{mean[1][0][k], mean[1][1][k], mean[1][2][k]};
        metric_of[0][k] = dot(v, v);
        metric_of[1][k] = dot(v, w);
        metric_of[2][k] = dot(w, w);
      });
      advance<lanes>(*this, begin, element, metric_of, strain);
    }
    vector_loop<lanes>([&](int k) SEICHE_INLINED {
      [[maybe_unused]] Vector<Real> arm_v{}, arm_w{};
      if constexpr (viscous) {
        Real area = 0;
        static_for<0, Points>([&]<int p>() SEICHE_INLINED { area = area + rest[(5 * p + 3) * stride + element + k]; });
        const Vector<Real> v{mean[0][0][k], mean[0][1][k], mean[0][2][k]};
        const Vector<Real> w{mean[1][0][k], mean[1][1][k], mean[1][2][k]};
        add_stress_forces(spring_stress(*this, Real(-1) / Real(Points) * area, k, metric_of, strain), v, w, arm_v,
                          arm_w);
      }
      static_for<0, Points>([&]<int p>() SEICHE_INLINED {
        const Real* at = rest + 5 * p * stride + element + k;
        const Metric<Real> metric{at[0], at[stride], at[2 * stride], at[3 * stride]};
        const auto read = [&]<int j>()
                              SEICHE_INLINED { return Vector<Real>{d[p][j][0][k], d[p][j][1][k], d[p][j][2][k]}; };
        const Derivatives<Real> derivatives{read.template operator()<0>(), read.template operator()<1>(),
                                            read.template operator()<2>(), read.template operator()<3>(),
                                            read.template operator()<4>()};
        Moments<Real> force;
        stretch(law, metric, derivatives, force.v, force.w);
        if constexpr (viscous) {
          force.v = force.v + arm_v;
          force.w = force.w + arm_w;
        }
        bend(bending, metric, at[4 * stride], derivatives, force);
        const Real components[12] = {force.v.x,      force.v.y,      force.v.z,      force.w.x, force.w.y, force.w.z,
                                     force.normal.x, force.normal.y, force.normal.z, force.vv,  force.ww,  force.vw};
        static_for<0, 12>([&]<int c>() SEICHE_INLINED { d[p][c / 3][c % 3][k] = components[c]; });
      });
    });
    SEICHE_UNROLLED_BY(unrolled)
    for (int slot = 0; slot < Slots; ++slot) {
      const Row row = table[slot];
      const u16* entries = entry + slot * stride + element;
      Real on[3][lanes];
      vector_loop<lanes>([&](int k) SEICHE_INLINED {
        Vector<Real> total{};
        static_for<0, Points>([&]<int p>() SEICHE_INLINED {
          const Real* n = row.of + p;
          const Real bending_weight = multiply_add(
              n[2 * Points], d[p][3][0][k], multiply_add(n[3 * Points], d[p][3][1][k], n[4 * Points] * d[p][3][2][k]));
          total = multiply_add(n[0], Vector<Real>{d[p][0][0][k], d[p][0][1][k], d[p][0][2][k]}, total);
          total = multiply_add(n[Points], Vector<Real>{d[p][1][0][k], d[p][1][1][k], d[p][1][2][k]}, total);
          total = multiply_add(bending_weight, Vector<Real>{d[p][2][0][k], d[p][2][1][k], d[p][2][2][k]}, total);
        });
        on[0][k] = total.x;
        on[1][k] = total.y;
        on[2][k] = total.z;
      });
      for (int k = 0; k < lanes; ++k) scratch.put(entries[k], {on[0][k], on[1][k], on[2][k]});
    }
  }

  /// Derivatives of the surface at the points of a batch of elements (eq. 1), the sums of all slots in registers.
  template <int lanes, class Scratch>
  SEICHE_FN void derivatives(const Row* table, int element, const Scratch& scratch,
                             Real (&d)[Points][5][3][lanes]) const {
    static_for<0, Points * 15>([&]<int c>() SEICHE_INLINED { d[c / 15][c / 3 % 5][c % 3][0] = 0; });
    SEICHE_UNROLLED_BY(unrolled)
    for (int slot = 0; slot < Slots; ++slot) {
      const Row row = table[slot];
      const Vector<Real> x = scratch.positions[control[slot * stride + element]];
      static_for<0, Points * 5>([&]<int c>() SEICHE_INLINED {
        constexpr int p = c / 5, j = c % 5;
        add_slot(row.of[j * Points + p], x, d[p][j][0][0], d[p][j][1][0], d[p][j][2][0]);
      });
    }
  }
  /// The same for vectors of elements: a loop over lanes is vectorised only if it keeps few sums and reads no table.
  template <int lanes, class Scratch>
  SEICHE_FN void derivatives_by_vectors(const Row* table, int element, const Scratch& scratch,
                                        Real (&d)[Points][5][3][lanes]) const {
    Real x[Slots][3][lanes];
    for (int slot = 0; slot < Slots; ++slot) {
      const u16* points = control + slot * stride + element;
      for (int k = 0; k < lanes; ++k) {
        const Vector<Real> at = scratch.positions[points[k]];
        x[slot][0][k] = at.x;
        x[slot][1][k] = at.y;
        x[slot][2][k] = at.z;
      }
    }
    static_for<0, Points * 5>([&]<int c>() SEICHE_INLINED {
      constexpr int p = c / 5, j = c % 5;
      vector_loop<lanes>([&](int k) SEICHE_INLINED {
        Vector<Real> sum{};
        static_for<0, Slots>([&]<int slot>() SEICHE_INLINED {
          const Vector<Real> at{x[slot][0][k], x[slot][1][k], x[slot][2][k]};
          add_slot(table[slot].of[j * Points + p], at, sum.x, sum.y, sum.z);
        });
        d[p][j][0][k] = sum.x;
        d[p][j][1][k] = sum.y;
        d[p][j][2][k] = sum.z;
      });
    });
  }
  SEICHE_FN static void add_slot(Real weight, Vector<Real> x, Real& on_x, Real& on_y, Real& on_z) {
    on_x = multiply_add(weight, x.x, on_x);
    on_y = multiply_add(weight, x.y, on_y);
    on_z = multiply_add(weight, x.z, on_z);
  }
};

/// Flat triangles. Control points are the corners, then the vertices opposite the edges 0-1, 1-2 and 2-0. Two triangles
/// share each hinge.
template <class R, template <class> class Law>
struct FlatShell {
  using Real = R;
  static constexpr int slots = 6, chunk = 128;
  static constexpr bool viscous = is_viscous<Law<R>>;

  const u16* control;  ///< [slot][element]
  const u16* entry;    ///< [slot][element], as above
  const Real* rest;    ///< [number][element]: metric xx, xy, yy, area; cosine and sine of the rest angle of each hinge
  Law<Real> law;
  Real bending;
  i32 elements, stride;

  template <class Scratch>
  SEICHE_FN void forces(Index begin, int first, Scratch& scratch) const {
    constexpr int lanes = batch_lanes<Real>;
    Real metric_of[3][lanes], strain[3][lanes];
    if constexpr (viscous) {
      vector_loop<lanes>([&](int k) SEICHE_INLINED {
        const u16* corner = control + first + k;
        const Vector<Real> x = scratch.positions[corner[0]];
        const Vector<Real> v = scratch.positions[corner[stride]] - x, w = scratch.positions[corner[2 * stride]] - x;
        metric_of[0][k] = dot(v, v);
        metric_of[1][k] = dot(v, w);
        metric_of[2][k] = dot(w, w);
      });
      advance<lanes>(*this, begin, first, metric_of, strain);
    }
    vector_loop<lanes>([&](int k) SEICHE_INLINED {
      const int element = first + k;
      Vector<Real> x[6], force[6] = {};
      static_for<0, 6>([&]<int slot>()
                           SEICHE_INLINED { x[slot] = scratch.positions[control[slot * stride + element]]; });
      const Real* at = rest + element;
      const Metric<Real> metric{at[0], at[stride], at[2 * stride], at[3 * stride]};
      const Derivatives<Real> d{x[1] - x[0], x[2] - x[0], {}, {}, {}};
      stretch(law, metric, d, force[1], force[2]);
      if constexpr (viscous)
        add_stress_forces(spring_stress(*this, -metric.area, k, metric_of, strain), d.v, d.w, force[1], force[2]);
      force[0] = Real(-1) * (force[1] + force[2]);
      static_for<0, 3>([&]<int edge>() SEICHE_INLINED {
        const Real* angle = at + (4 + 2 * edge) * stride;
        hinge(x, force, edge, (edge + 1) % 3, (edge + 2) % 3, 3 + edge, angle[0], angle[stride]);
      });
      static_for<0, 6>([&]<int slot>() SEICHE_INLINED { scratch.put(entry[slot * stride + element], force[slot]); });
    });
  }

  /// Adds half of the forces of the hinge on the edge i-j, between the third corner and the vertex `opposite`.
  SEICHE_FN void hinge(const Vector<Real>* x, Vector<Real>* force, int i, int j, int third, int opposite, Real cosine0,
                       Real sine0) const {
    const Vector<Real> edge = x[j] - x[i];
    const Vector<Real> normal = cross(edge, x[third] - x[i]), opposite_normal = cross(x[opposite] - x[i], edge);
    const Real normal2 = dot(normal, normal), opposite_normal2 = dot(opposite_normal, opposite_normal),
               length2 = dot(edge, edge);
    const Real length = square_root(length2), scale = Real(1) / square_root(normal2 * opposite_normal2);
    const Real cosine = scale * dot(normal, opposite_normal),
               sine = (scale / length) * dot(cross(normal, opposite_normal), edge);
    // sqrt(3) k sin(theta - theta0): half of the derivative of 2 sqrt(3) k (1 - cos(theta - theta0)), eq. 9.
    const Real moment = Real(1.7320508075688772) * bending * (sine * cosine0 - cosine * sine0);
    const Vector<Real> force_third = (moment / normal2) * normal,
                       force_opposite = (moment / opposite_normal2) * opposite_normal;
    const Real share_third = dot(x[third] - x[i], edge) / length,
               share_opposite = dot(x[opposite] - x[i], edge) / length;
    force[third] = force[third] + length * force_third;
    force[opposite] = force[opposite] + length * force_opposite;
    force[i] = force[i] - (length - share_third) * force_third - (length - share_opposite) * force_opposite;
    force[j] = force[j] - share_third * force_third - share_opposite * force_opposite;
  }
};

}  // namespace seiche
