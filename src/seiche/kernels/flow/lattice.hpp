// SPDX-License-Identifier: BSD-3-Clause
/// Velocity sets: opposite pairs of directions (2k - 1, 2k), after the rest direction 0 (theory/flow, section 1).
#pragma once
#include "../launch.hpp"

namespace seiche {

/// Components of the directions: rest, axes, then diagonals of the faces of a cube, then of the cube itself.
constexpr int cube_direction(int axis, int q) {
  constexpr int c[3][27] = {{0, 1, -1, 0, 0, 0, 0, 1, -1, 1, -1, 0, 0, 1, -1, 1, -1, 0, 0, 1, -1, 1, -1, 1, -1, -1, 1},
                            {0, 0, 0, 1, -1, 0, 0, 1, -1, 0, 0, 1, -1, -1, 1, 0, 0, 1, -1, 1, -1, 1, -1, -1, 1, 1, -1},
                            {0, 0, 0, 0, 0, 1, -1, 0, 0, 1, -1, 1, -1, 0, 0, -1, 1, -1, 1, 1, -1, -1, 1, 1, -1, 1, -1}};
  return c[axis][q];
}

/// `number` directions: those of the cube without `skipped` ones after the axes.
template <int number, int skipped = 0>
struct CubeDirections {
  static constexpr int Q = number;
  static constexpr int component(int axis, int q) { return cube_direction(axis, q < 7 ? q : q + skipped); }
  static constexpr int cx(int q) { return component(0, q); }
  static constexpr int cy(int q) { return component(1, q); }
  static constexpr int cz(int q) { return component(2, q); }
};

struct D3Q15 : CubeDirections<15, 12> {
  static constexpr double weight(int q) { return q == 0 ? 2.0 / 9 : (q < 7 ? 1.0 / 9 : 1.0 / 72); }
};

struct D3Q19 : CubeDirections<19> {
  static constexpr double weight(int q) { return q == 0 ? 1.0 / 3 : (q < 7 ? 1.0 / 18 : 1.0 / 36); }
};

struct D3Q27 : CubeDirections<27> {
  static constexpr double weight(int q) {
    return q == 0 ? 8.0 / 27 : (q < 7 ? 2.0 / 27 : (q < 19 ? 1.0 / 54 : 1.0 / 216));
  }
};

/// Opposite direction.
constexpr int opposite(int q) {
  return q == 0 ? 0 : (q % 2 ? q + 1 : q - 1);
}

/// c_q . (x, y, z), omitting the products by zero, which a compiler must keep in floating point.
template <class Lattice, int q, class Real>
SEICHE_FN Real along(Real x, Real y, Real z) {
  constexpr int X = Lattice::cx(q), Y = Lattice::cy(q), Z = Lattice::cz(q);
  if constexpr (X == 0 && Y == 0 && Z == 0) {
    return Real(0);
  } else if constexpr (X == 0 && Y == 0) {
    return Z > 0 ? z : -z;
  } else if constexpr (X == 0 && Z == 0) {
    return Y > 0 ? y : -y;
  } else if constexpr (Y == 0 && Z == 0) {
    return X > 0 ? x : -x;
  } else if constexpr (Z == 0) {
    return (X > 0 ? x : -x) + (Y > 0 ? y : -y);
  } else if constexpr (Y == 0) {
    return (X > 0 ? x : -x) + (Z > 0 ? z : -z);
  } else if constexpr (X == 0) {
    return (Y > 0 ? y : -y) + (Z > 0 ? z : -z);
  } else {
    return ((X > 0 ? x : -x) + (Y > 0 ? y : -y)) + (Z > 0 ? z : -z);
  }
}

/// sum += factor * value for a compile-time factor of -1, 0 or 1.
template <int factor, class Real>
SEICHE_FN void add(Real& sum, Real value) {
  if constexpr (factor > 0) sum += value;
  if constexpr (factor < 0) sum -= value;
}

}  // namespace seiche
