// SPDX-License-Identifier: BSD-3-Clause
/// Vectors of three numbers, for points, tangents and forces of membranes. Products and sums are fused only where this
/// is written explicitly (decision 20).
#pragma once
#include "../batches.hpp"
#include "../math.hpp"
#include "../nodes.hpp"

namespace seiche {

template <class Real>
struct Vector {
  Real x, y, z;
};

template <class Real>
SEICHE_FN Vector<Real> operator+(Vector<Real> a, Vector<Real> b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z};
}
template <class Real>
SEICHE_FN Vector<Real> operator-(Vector<Real> a, Vector<Real> b) {
  return {a.x - b.x, a.y - b.y, a.z - b.z};
}
template <class Real>
SEICHE_FN Vector<Real> operator*(Real s, Vector<Real> a) {
  return {s * a.x, s * a.y, s * a.z};
}
/// s a + b, rounded once.
template <class Real>
SEICHE_FN Vector<Real> multiply_add(Real s, Vector<Real> a, Vector<Real> b) {
  return {multiply_add(s, a.x, b.x), multiply_add(s, a.y, b.y), multiply_add(s, a.z, b.z)};
}
template <class Real>
SEICHE_FN Real dot(Vector<Real> a, Vector<Real> b) {
  return multiply_add(a.z, b.z, multiply_add(a.y, b.y, a.x * b.x));
}
template <class Real>
SEICHE_FN Vector<Real> cross(Vector<Real> a, Vector<Real> b) {
  return {multiply_add(a.y, b.z, -(a.z * b.y)), multiply_add(a.z, b.x, -(a.x * b.z)),
          multiply_add(a.x, b.y, -(a.y * b.x))};
}

/// Vectors of a cell in shared memory, component by component.
template <class Real, int capacity>
struct Vectors {
  Real x[capacity], y[capacity], z[capacity];
  SEICHE_FN Vector<Real> operator[](int k) const { return {x[k], y[k], z[k]}; }
  SEICHE_FN void set(int k, Vector<Real> a) {
    x[k] = a.x;
    y[k] = a.y;
    z[k] = a.z;
  }
};

}  // namespace seiche
