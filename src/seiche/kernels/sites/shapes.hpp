// SPDX-License-Identifier: BSD-3-Clause
/// Walls of the built-in shapes as distance functions: negative in the fluid, zero on the wall, in metres. Sums are in
/// a fixed order, so every device and any number of threads finds the same sites, fractions and normals.
#pragma once
#include "../launch.hpp"

namespace seiche {

SEICHE_FN double absolute(double x) {
  return x < 0.0 ? -x : x;
}
SEICHE_FN double greater_of(double a, double b) {
  return a > b ? a : b;
}
SEICHE_FN double lesser_of(double a, double b) {
  return a < b ? a : b;
}

/// A round tube about an axis (unit vector) through the origin.
struct RoundTube {
  double axis[3];
  double radius;
  SEICHE_FN double operator()(double x, double y, double z) const {
    const double axial = x * axis[0] + y * axis[1] + z * axis[2];
    const double squared = x * x + z * z + y * y - axial * axial;
    return square_root(greater_of(squared, 0.0)) - radius;
  }
};

/// Up to two pairs of plates normal to y and to z, at `half` from `center`; an infinite half omits a pair.
struct Plates {
  double center[2], half[2];
  SEICHE_FN double operator()(double, double y, double z) const {
    return greater_of(absolute(y - center[0]) - half[0], absolute(z - center[1]) - half[1]);
  }
};

/// The space between the ends of a vessel along an axis (unit vector), or all space.
struct Ends {
  double axis[3];
  double length;
  i32 bounded;
  SEICHE_FN double operator()(double x, double y, double z) const {
    const double axial = x * axis[0] + y * axis[1] + z * axis[2];
    return bounded ? greater_of(-axial, axial - length) : -1.0e300;
  }
};

/// Distances of points [3] from the wall. Bytes per item: a point and its distance.
template <class Wall>
struct WallDistance {
  Wall wall;
  const double* points;
  double* out;
  static constexpr int bytes = 4 * sizeof(double);
  SEICHE_FN void operator()(Index i) const { out[i] = wall(points[3 * i], points[3 * i + 1], points[3 * i + 2]); }
};

}  // namespace seiche
