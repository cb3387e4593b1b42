// SPDX-License-Identifier: BSD-3-Clause
/// The waves of point sources at the faces of boxes around them, and in the other media of a box (theory/waves, section
/// 13, eqs. 34, 37 and 38). In a box the state is the scattered field, elsewhere the total field.
/// Bytes: 8 a factor, 20 factors a component and node; the state of the element and its traces are small in comparison.
#pragma once
#include "mortar.hpp"

namespace seiche {

/// Columns of the functions of time at retarded times (eq. 34), interpolated from tables of 7 values per row.
struct IncidentColumns {
  static constexpr int columns = 5, row = 7, size = 2 * columns;
  const double* tables;  ///< rows of every function of time
  const Index* origin;   ///< first step of the window, and number of the first row
  const u64* clock;
  const double* delays;  ///< two for each point, r/c in units of the spacing
  Index length;          ///< rows of a table
  double spacing;

  /// Columns at a point `offset` steps after the present one; with `shift` 1 their derivatives.
  SEICHE_CALLED void at(Index point, Index table, double offset, int shift, double (&out)[size]) const {
    const double time = 4.0 * (static_cast<double>(origin[0] + static_cast<Index>(clock[0])) + offset);
    for (int wave = 0; wave < 2; ++wave) {
      const double table_row = time - delays[2 * point + wave];
      Index row_index = static_cast<Index>(table_row);
      if (static_cast<double>(row_index) > table_row) row_index -= 1;
      const double f = table_row - static_cast<double>(row_index), g = 1.0 - f;
      const Index number = row_index - origin[1];
      const bool inside = number >= 0 && number + 1 < static_cast<Index>(length);
      const double* low = tables + (table * length + (inside ? number : 0)) * row + shift;
      const double a = (1.0 + 2.0 * f) * g * g, b = f * g * g * spacing;
      const double c = f * f * (3.0 - 2.0 * f), d = -f * f * g * spacing;
      for (int m = 0; m < columns; ++m) {
        const double value = a * low[m] + b * low[m + 1] + c * low[row + m] + d * low[row + m + 1];
        out[wave * columns + m] = inside ? value : 0.0;
      }
    }
  }
  SEICHE_CALLED static double sum(const double* factors, const double (&columns)[size]) {
    double result = 0;
    for (int m = 0; m < size; ++m) result += factors[m] * columns[m];
    return result;
  }
};

/// Adds the incident fields at the faces of one element of a stage and rewrites its traces (eq. 37).
template <class Elements, int stages>
struct AddIncident {
  using Real = typename Elements::Real;
  using Fields = typename Elements::Fields;
  using Box = typename Elements::Box;
  using Flux = typename Elements::Flux;
  using Sides = Mortars<Elements>;
  static constexpr int dim = Box::dim, waves = Fields::waves, half = waves * Box::face;
  static constexpr int bytes = Box::face * 2 * waves * IncidentColumns::size * 8;
  Elements scheme;
  Sides mortars;
  IncidentColumns at;
  Real* u;
  Real* k;
  Real* next_trace;
  const i32* elements;    ///< elements with such faces
  const i32* first;       ///< first record of each, and one more entry
  const i32* records;     ///< face, whether inside, child of a coarse side or -1, coarse side, function of time
  const double* factors;  ///< of v and S_ca of every record: component, face node, columns
  const Real* outer;      ///< impedance of the other side: record, component, face node
  i32 stage;
  double offset;
  Real b, dt;

  struct Scratch {
    alignas(64) Real jumps[Sides::numbers];
    Real middle[Sides::numbers], interpolated[Sides::numbers];
  };

  SEICHE_FN void operator()(const Team& team, Index item, Scratch& scratch) const {
    const Index element = elements[item];
    for (Index number = first[item]; number < first[item + 1]; ++number) {
      const int face = records[5 * number];
      static_for<0, dim>([&]<int axis>() SEICHE_INLINED {
        if (face == 2 * axis) add<axis, 0>(team, element, number, scratch);
        if (face == 2 * axis + 1) add<axis, 1>(team, element, number, scratch);
      });
    }
    scheme.write_all(team, element, u, next_trace);
  }

  template <int axis, int side>
  SEICHE_FN void add(const Team& team, Index element, Index number, Scratch& scratch) const {
    const i32* record = records + 5 * number;
    const int child = record[2];
    team.for_each(Box::face,
                  [&](int face_node) SEICHE_INLINED { jumps<axis, side>(element, number, face_node, scratch.jumps); });
    team.barrier();
    const Real* source = scratch.jumps;
    if (child >= 0) {
      mortars.template apply<false>(team, Sides::of(mortars.projections, child, 0),
                                    Sides::of(mortars.projections, child, 1), scratch.jumps, scratch.middle,
                                    scratch.interpolated);
      source = scratch.interpolated;
    }
    team.for_each(Box::face, [&](int face_node) SEICHE_INLINED { change<axis, side>(element, face_node, source); });
    team.barrier();
  }

  /// v* - v- and t* - t- at a node of the face, or of the part of it that belongs to a child.
  template <int axis, int side>
  SEICHE_FN void jumps(Index element, Index number, int face_node, Real* target) const {
    constexpr int outward = 2 * side - 1;
    const i32* record = records + 5 * number;
    const bool inside = record[1] != 0;
    double columns[IncidentColumns::size];
    at.at(number * Box::face + face_node, record[4], offset, 0, columns);
    const Real* q = record[2] < 0 ? scheme.coefficients(element, 2 * axis + side, face_node)
                                  : mortars.coefficients(record[3], record[2], face_node, Elements::by_node);
    static_for<0, waves>([&]<int c>() SEICHE_INLINED {
      const double* values = factors + ((number * 2 * waves + c) * Box::face + face_node) * IncidentColumns::size;
      const Real v = static_cast<Real>(IncidentColumns::sum(values, columns));
      const Real s = static_cast<Real>(IncidentColumns::sum(values + half * IncidentColumns::size, columns));
      Real neighbour[2] = {Real(0), Real(0)};
      if (!inside) Flux::write(neighbour, 1, outer[(number * waves + c) * Box::face + face_node], -outward, v, s);
      const Real zero = 0;
      Flux::jump(neighbour, 1, q + Flux::coefficients * Fields::kind(axis, c), outward, inside ? v : zero,
                 inside ? s : zero, target[c * Box::face + face_node], target[half + c * Box::face + face_node]);
    });
  }

  /// Adds the rates of the lifted jumps (eqs. 7 and 15). A half of leapfrog advances velocities or stresses alone.
  template <int axis, int side>
  SEICHE_FN void change(Index element, int face_node, const Real* source) const {
    const int node = Elements::on_face(axis, side, face_node);
    const Real scale = scheme.scales[element * dim + axis] * Real(Elements::lift);
    Real dv[dim][waves] = {}, ds[dim][waves] = {}, m[Fields::moduli], r[Fields::count];
    static_for<0, waves>([&]<int c>() SEICHE_INLINED {
      if (stages == 5 || stage == 1) dv[axis][c] = Real(2 * side - 1) * scale * source[c * Box::face + face_node];
      if (stages == 5 || stage == 0) ds[axis][c] = scale * source[half + c * Box::face + face_node];
    });
    static_for<0, Fields::moduli>([&]<int a>() SEICHE_INLINED {
      const Index of = element * Fields::moduli + a;
      m[a] = scheme.moduli[Elements::by_node ? of * Box::nodes + node : of];
    });
    Fields::rates(dv, ds, m, r);
    static_for<0, Fields::count>([&]<int f>() SEICHE_INLINED {
      const Index target = element * Elements::size + f * Box::nodes + node;
      const Real part = dt * r[f];
      if constexpr (stages == 5) k[target] += part;
      u[target] = multiply_add(b, part, u[target]);
    });
  }
};

/// Adds the rates by which other media of a box differ from that of the source, and rewrites traces (eq. 38).
template <class Elements, int stages>
struct AddContrast {
  using Real = typename Elements::Real;
  using Fields = typename Elements::Fields;
  using Box = typename Elements::Box;
  static constexpr int bytes = Elements::size * IncidentColumns::size * 8;
  Elements scheme;
  IncidentColumns at;
  Real* u;
  Real* k;
  Real* next_trace;
  const i32* elements;
  const i32* first;
  const i32* tables;      ///< function of time of every record
  const double* factors;  ///< record, field, node, columns
  i32 stage;
  double offset;
  Real b, dt;

  using Scratch = NoScratch;

  SEICHE_FN void operator()(const Team& team, Index item, Scratch&) const {
    const Index element = elements[item];
    for (Index number = first[item]; number < first[item + 1]; ++number) {
      team.for_each(Box::nodes, [&](int node) SEICHE_INLINED {
        double columns[IncidentColumns::size];
        at.at(number * Box::nodes + node, tables[number], offset, 1, columns);
        static_for<0, Fields::count>([&]<int f>() SEICHE_INLINED {
          if (stages == 5 || stage == (moves<f>() ? 0 : 1)) {
            const double* values = factors + ((number * Fields::count + f) * Box::nodes + node) * IncidentColumns::size;
            const Index target = element * Elements::size + f * Box::nodes + node;
            const Real part = dt * static_cast<Real>(IncidentColumns::sum(values, columns));
            if constexpr (stages == 5) k[target] += part;
            u[target] = multiply_add(b, part, u[target]);
          }
        });
      });
      team.barrier();
    }
    scheme.write_all(team, element, u, next_trace);
  }

  /// Whether a field is a velocity.
  template <int f>
  SEICHE_FN static constexpr bool moves() {
    bool result = false;
    for (int a = 0; a < Box::dim; ++a) result = result || Fields::velocity(a, a) == f;
    return result;
  }
};

/// The incident velocities at a side of the mesh after a step, for the peak velocities on this side.
template <class Elements>
struct IncidentMotion {
  using Real = typename Elements::Real;
  using Box = typename Elements::Box;
  static constexpr int dim = Box::dim;
  static constexpr int bytes = Box::face * dim * IncidentColumns::size * 8;
  IncidentColumns at;
  const i32* items;  ///< elements at the side, by their numbers on the side
  const i32* first;
  const i32* tables;
  const double* factors;  ///< record, component, face node, columns
  Real* motion;           ///< element at the side, component, face node
  double offset;

  using Scratch = NoScratch;

  SEICHE_FN void operator()(const Team& team, Index item, Scratch&) const {
    team.for_each(Box::face, [&](int face_node) SEICHE_INLINED {
      double velocity[dim] = {};
      for (Index number = first[item]; number < first[item + 1]; ++number) {
        double columns[IncidentColumns::size];
        at.at(number * Box::face + face_node, tables[number], offset, 0, columns);
        for (int a = 0; a < dim; ++a)
          velocity[a] += IncidentColumns::sum(
              factors + ((number * dim + a) * Box::face + face_node) * IncidentColumns::size, columns);
      }
      for (int a = 0; a < dim; ++a)
        motion[(Index{items[item]} * dim + a) * Box::face + face_node] = static_cast<Real>(velocity[a]);
    });
  }
};

}  // namespace seiche
