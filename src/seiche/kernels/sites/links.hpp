// SPDX-License-Identifier: BSD-3-Clause
/// Links of sites along the 26 lattice vectors, in the order of `.gmy` files: lexicographic, dz fastest, without rest.
#pragma once
#include "rows.hpp"
#include "shapes.hpp"

namespace seiche {

/// Number of link k = 0 ... 25 in the cube of 27, and its vector.
SEICHE_FN int cube_of(int k) {
  return k < 13 ? k : k + 1;
}
SEICHE_FN int link_x(int k) {
  return cube_of(k) / 9 - 1;
}
SEICHE_FN int link_y(int k) {
  return cube_of(k) / 3 % 3 - 1;
}
SEICHE_FN int link_z(int k) {
  return cube_of(k) % 3 - 1;
}
inline constexpr u32 all_links = (1u << 26) - 1;

/// Sites with absent neighbours. Item: a run. With `fill`, writes their numbers and the bits of their absent links from
/// first[r] on, otherwise the number of such sites. Bytes per item: not counted, since runs have any length.
template <bool fill>
struct AbsentLinks {
  Rows rows;
  const Index* first;
  Index *counts, *sites;
  u32* links;
  static constexpr int bytes = 0;
  static constexpr int width = 64;

  SEICHE_FN void operator()(Index r) const {
    const Index x = rows.row[r] / rows.shape[1], y = rows.row[r] % rows.shape[1];
    Index number = 0;
    if constexpr (fill) number = first[r];
    for (i32 z = rows.begin[r]; z < rows.end[r]; z += width) {
      const i32 count = rows.end[r] - z < width ? rows.end[r] - z : width;
      u32 present[width] = {}, common = 0;
      for (int side = 0; side < 9; ++side) {
        const Index row = rows.at(x + side / 3 - 1, y + side % 3 - 1);
        if (row >= 0) add(row, side, z, count, present, common);
      }
      if (common == all_links) continue;
      for (int k = 0; k < count; ++k) {
        const u32 absent = all_links & ~(present[k] | common);
        if (absent == 0) continue;
        if constexpr (fill) {
          sites[number] = rows.site[r] + (z - rows.begin[r]) + k;
          links[number] = absent;
        }
        ++number;
      }
    }
    if constexpr (!fill) counts[r] = number;
  }

 private:
  /// Sets the bits of the links into the runs of a row, in `common` for links of all `count` sites.
  SEICHE_FN void add(Index row, int side, i32 z, i32 count, u32 (&present)[width], u32& common) const {
    const i32 nz = rows.shape[2], images = rows.periodic[2] ? 1 : 0;
    for (i32 image = -images; image <= images; ++image) {
      const i32 shift = image * nz;
      for (Index r = rows.from(row, z - 1 - shift); r < rows.first[row + 1]; ++r) {
        if (rows.begin[r] + shift > z + count) break;
        for (int step = 0; step < 3; ++step) {
          const int cube = 3 * side + step;
          if (cube == 13) continue;
          const u32 bit = 1u << (cube < 13 ? cube : cube - 1);
          const i32 low = rows.begin[r] + shift - (step - 1) - z, high = rows.end[r] + shift - (step - 1) - z;
          if (low <= 0 && high >= count) {
            common |= bit;
            continue;
          }
          for (i32 k = low < 0 ? 0 : low; k < (high < count ? high : count); ++k) present[k] |= bit;
        }
      }
    }
  }
};

/// First intersections of links with a wall: its root along each link by the Illinois method (regula falsi) to 1e-10 of
/// a spacing or of a link, NaN without a change of sign, and the unit gradient there by central differences.
/// Bytes per item: the node, its coordinates, the direction, the results.
template <class Wall>
struct WallRoots {
  Wall wall;
  double origin[3];
  double spacing;
  const i32* coords;
  const Index *node, *direction;
  double *fraction, *normal;
  static constexpr int bytes = 3 * 4 + 2 * 8 + 4 * 8;
  static constexpr int steps = 60;

  SEICHE_FN void operator()(Index i) const {
    const int k = static_cast<int>(direction[i]);
    const i32* c = coords + 3 * node[i];
    const double start[3] = {origin[0] + spacing * c[0], origin[1] + spacing * c[1], origin[2] + spacing * c[2]};
    const double vector[3] = {spacing * link_x(k), spacing * link_y(k), spacing * link_z(k)};
    const double root = crossing(start, vector);
    fraction[i] = root;
    const double share = root == root ? root : 0.0;
    const double at[3] = {start[0] + share * vector[0], start[1] + share * vector[1], start[2] + share * vector[2]};
    const double shift = 1e-3 * spacing;
    const double g[3] = {wall(at[0] + shift, at[1], at[2]) - wall(at[0] - shift, at[1], at[2]),
                         wall(at[0], at[1] + shift, at[2]) - wall(at[0], at[1] - shift, at[2]),
                         wall(at[0], at[1], at[2] + shift) - wall(at[0], at[1], at[2] - shift)};
    const double length = square_root(g[0] * g[0] + g[1] * g[1] + g[2] * g[2]);
    for (int axis = 0; axis < 3; ++axis) normal[3 * i + axis] = g[axis] / (length > 0.0 ? length : 1.0);
  }

 private:
  SEICHE_FN double crossing(const double (&start)[3], const double (&vector)[3]) const {
    double lower = 0.0, upper = 1.0, below = wall(start[0], start[1], start[2]);
    double above = wall(start[0] + vector[0], start[1] + vector[1], start[2] + vector[2]), guess = 0.0;
    if (!(above >= 0.0)) return bit_cast<double>(0x7ff8000000000000ull);
    SEICHE_ONE_BY_ONE
    for (int step = 0; step < steps; ++step) {
      guess = lower - below * (upper - lower) / (above > below ? above - below : 1.0);
      guess = lesser_of(greater_of(guess, lower), upper);
      const double value =
          wall(start[0] + guess * vector[0], start[1] + guess * vector[1], start[2] + guess * vector[2]);
      const bool inside = value < 0.0;
      above = inside ? above * (lower > 0.0 ? 0.5 : 1.0) : value;
      below = inside ? value : below * (upper < 1.0 ? 0.5 : 1.0);
      lower = inside ? guess : lower;
      upper = inside ? upper : guess;
      if (!(absolute(value) > 1e-10 * spacing && upper - lower > 1e-10)) break;
    }
    return guess;
  }
};

/// Kinds, openings and fractions of the cut links of a site, and its wall normal: the mean of the normals where its
/// links meet the wall, weighted by the inverse distance. Item: a row of `links`. Cut links are numbered from first[i]
/// on in the order of their directions. `disc` is the opening that a link meets first at `disc_fraction`, -1 for its
/// back; both are null if no link of any row meets an opening.
/// Bytes per item: the bits and the results; `hit` arrays add 34 B per cut link.
struct CutLinks {
  const u32* links;
  const Index* first;
  const double *hit_fraction, *hit_normal;
  const i16* hit_iolet;
  const double* disc_fraction;
  const i16* disc;
  const u8* kinds;  ///< of each opening
  u8* kind;
  i16* iolet;
  float *fraction, *normal;
  u8 *opens, *unresolved;  ///< whether the site has a link through an opening; its links without any intersection
  static constexpr int bytes = 4 + 8 + 26 * 7 + 12 + 2;
  static constexpr double min_fraction = 1e-6;

  SEICHE_FN void operator()(Index i) const {
    Index number = first[i];
    double total[3] = {0.0, 0.0, 0.0};
    int outward[3] = {0, 0, 0};
    u8 found = 0, missing = 0;
    SEICHE_ONE_BY_ONE
    for (int k = 0; k < 26; ++k) {
      const Index slot = 26 * i + k;
      kind[slot] = 0;
      iolet[slot] = -1;
      fraction[slot] = 0.0f;
      if (!(links[i] >> k & 1u)) continue;
      const double hit = hit_fraction[number];
      const bool on_surface = hit - hit == 0.0;
      const double disc_hit = disc != nullptr ? disc_fraction[slot] : bit_cast<double>(0x7ff0000000000000ull);
      const bool disc_first = disc_hit - disc_hit == 0.0 && (!on_surface || disc_hit <= hit + min_fraction);
      const int index = disc_first ? disc[slot] : on_surface ? hit_iolet[number] : -1;
      const double share = disc_first ? disc_hit : on_surface ? hit : 0.5;
      kind[slot] = index >= 0 ? kinds[index] : u8(1);
      iolet[slot] = static_cast<i16>(index);
      fraction[slot] = static_cast<float>(lesser_of(greater_of(share, min_fraction), 1.0));
      found |= index >= 0;
      missing += !disc_first && !on_surface;
      const int x = link_x(k), y = link_y(k), z = link_z(k);
      if (kind[slot] == 1) {
        outward[0] += x;
        outward[1] += y;
        outward[2] += z;
      }
      if (on_surface && !disc_first && index < 0) {
        const double length = greater_of(share, min_fraction) * square_root(double(x * x + y * y + z * z));
        for (int axis = 0; axis < 3; ++axis) total[axis] += hit_normal[3 * number + axis] / length;
      }
      ++number;
    }
    float mean[3];
    unit(total, mean);
    if (mean[0] == 0.0f && mean[1] == 0.0f && mean[2] == 0.0f) {
      const double sum[3] = {double(outward[0]), double(outward[1]), double(outward[2])};
      unit(sum, mean);
    }
    for (int axis = 0; axis < 3; ++axis) normal[3 * i + axis] = mean[axis];
    opens[i] = found;
    unresolved[i] = missing;
  }

 private:
  static SEICHE_FN void unit(const double (&vector)[3], float (&out)[3]) {
    const double length = square_root(vector[0] * vector[0] + vector[1] * vector[1] + vector[2] * vector[2]);
    for (int axis = 0; axis < 3; ++axis) out[axis] = static_cast<float>(vector[axis] / (length > 0.0 ? length : 1.0));
  }
};

}  // namespace seiche
