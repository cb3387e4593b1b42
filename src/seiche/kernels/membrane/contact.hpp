// SPDX-License-Identifier: BSD-3-Clause
/// Short-range forces between the vertices of different cells, or of cells and walls (theory/cells, eqs. 13 and 14).
/// Vertices are found through a hashed lattice of bins; forces are summed as whole multiples of a unit, so that the
/// order in which vertices are found does not matter.
#pragma once
#include "../math.hpp"
#include "vector.hpp"

namespace seiche {

/// first = value; returns what it was, while other threads do the same.
SEICHE_FN i32 exchange(i32& slot, i32 value) {
#if defined(__CUDACC__)
  return atomicExch(&slot, value);
#else
  return __atomic_exchange_n(&slot, value, __ATOMIC_RELAXED);
#endif
}

/// Bins no smaller than the reach of the forces; along an axis that repeats a whole number of them, at least three.
struct ContactBins {
  i32* head;  ///< [slot]: a point in a bin of this slot, or -1
  i32* next;  ///< [point]: another one, or -1
  double per_length[3];
  double lengths[3];  ///< of the axes that repeat, else 0
  i32 count[3];       ///< bins along the axes that repeat, else 0
  u32 mask;           ///< slots less one, a power of two less one

  SEICHE_FN i32 wrapped(Index bin, int axis) const {
    const Index n = count[axis];
    const Index rest = n > 0 ? bin % n : bin;
    return static_cast<i32>(n > 0 && rest < 0 ? rest + n : rest);
  }
  SEICHE_FN Index bin(double x, int axis) const {
    const double scaled = x * per_length[axis];
    const Index whole = static_cast<Index>(scaled);
    return scaled < static_cast<double>(whole) ? whole - 1 : whole;
  }
  /// Bins along the last axis follow each other, so that three of them lie side by side in memory.
  SEICHE_FN u32 slot(i32 i, i32 j, i32 k) const {
    return (static_cast<u32>(i) * 73856093u + static_cast<u32>(j) * 19349663u + static_cast<u32>(k)) & mask;
  }
  /// The bin one step up or down, or the same.
  SEICHE_FN i32 beside(i32 bin, int step, int axis) const {
    const i32 n = count[axis], moved = bin + step;
    return n > 0 && moved < 0 ? moved + n : n > 0 && moved >= n ? moved - n : moved;
  }
  /// The shortest way from one coordinate to another.
  SEICHE_FN double between(double from, double to, int axis) const {
    const double way = to - from, length = lengths[axis];
    const double turns = length > 0 ? way / length : 0.0;
    const Index whole = static_cast<Index>(turns < 0 ? turns - 0.5 : turns + 0.5);
    return way - static_cast<double>(whole) * length;
  }
};

/// Item k: slot k is emptied.
struct ContactClear {
  i32* head;
  static constexpr int bytes = 4;
  SEICHE_FN void operator()(Index k) const { head[k] = -1; }
};

/// Item k: point k goes into its bin.
struct ContactInsert {
  const double* place;  ///< [3][stride]
  Index stride;
  ContactBins bins;
  static constexpr int bytes = 32;
  SEICHE_FN void operator()(Index k) const {
    i32 b[3];
    for (int axis = 0; axis < 3; ++axis) b[axis] = bins.wrapped(bins.bin(place[k + axis * stride], axis), axis);
    bins.next[k] = exchange(bins.head[bins.slot(b[0], b[1], b[2])], static_cast<i32>(k));
  }
};

/// Repulsion strength ((reach/d)^exponent - 1) for d < reach, and Morse's force with `depth`, `steepness` and `rest`
/// up to its own reach. `whole` is how many units of the sums make a force of one.
struct ContactLaw {
  double strength, reach, exponent;
  double depth, steepness, rest, morse_reach;
  double whole;

  /// Away from the other (d2 is the squared distance), over the distance.
  SEICHE_FN double over_distance(double d2) const {
    const double nearest = 1e-2 * (reach > morse_reach ? reach : morse_reach);
    const double d = d2 < nearest * nearest ? nearest : square_root(d2);
    double force = 0;
    if (d < reach) {
      const double excess = pow_positive(reach / d, exponent) - 1.0;
      force = strength * (excess < 65536.0 ? excess : 65536.0);  // bounded: many still fit into whole numbers
    }
    if (d < morse_reach) {
      const double power = 1.4426950408889634 * (steepness * (rest - d));
      const double e = exp2_clamped(power < 8.0 ? power : 8.0);
      force += 2.0 * (depth * steepness) * (e * e - e);
    }
    return force / d;
  }
};

/// Item v: a vertex, which gathers what points of other owners in its bin and those around do to it.
template <class Real>
struct ContactForce {
  const double* place;  ///< [3][stride]
  Real* force;          ///< [3][stride]; added to
  const i32* owner;
  Index stride;
  const double* other;  ///< [3][other_stride]
  const i32* other_owner;
  Index other_stride;
  ContactBins bins;  ///< of the others
  ContactLaw law;
  static constexpr int bytes = 3 * (8 + 2 * static_cast<int>(sizeof(Real))) + 27 * 4;

  SEICHE_FN void operator()(Index v) const {
    const double x[3] = {place[v], place[v + stride], place[v + 2 * stride]};
    Index sums[3] = {0, 0, 0};
    i32 at[3];
    for (int axis = 0; axis < 3; ++axis) at[axis] = bins.wrapped(bins.bin(x[axis], axis), axis);
    const double farthest = law.reach > law.morse_reach ? law.reach : law.morse_reach;
    for (int n = 0; n < 27; ++n) {
      const i32 i = bins.beside(at[0], n / 9 - 1, 0), j = bins.beside(at[1], n / 3 % 3 - 1, 1);
      const i32 k = bins.beside(at[2], n % 3 - 1, 2);
      for (i32 p = bins.head[bins.slot(i, j, k)]; p >= 0; p = bins.next[p]) {
        if (other_owner[p] == owner[v]) continue;
        const double y[3] = {other[p], other[p + other_stride], other[p + 2 * other_stride]};
        // Another bin may share the slot: it is looked at in its own turn.
        if (bins.wrapped(bins.bin(y[0], 0), 0) != i || bins.wrapped(bins.bin(y[1], 1), 1) != j ||
            bins.wrapped(bins.bin(y[2], 2), 2) != k) {
          continue;
        }
        const Vector<double> way{bins.between(y[0], x[0], 0), bins.between(y[1], x[1], 1), bins.between(y[2], x[2], 2)};
        const double d2 = dot(way, way);
        if (d2 >= farthest * farthest) continue;
        const double scaled = law.whole * law.over_distance(d2);
        sums[0] += rounded(scaled * way.x);
        sums[1] += rounded(scaled * way.y);
        sums[2] += rounded(scaled * way.z);
      }
    }
    for (int axis = 0; axis < 3; ++axis) {
      force[v + axis * stride] += static_cast<Real>(static_cast<double>(sums[axis]) / law.whole);
    }
  }

  SEICHE_FN static Index rounded(double x) { return static_cast<Index>(x + (x < 0 ? -0.5 : 0.5)); }
};

}  // namespace seiche
