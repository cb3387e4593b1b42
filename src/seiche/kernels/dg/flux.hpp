// SPDX-License-Identifier: BSD-3-Clause
/// Contribution of a face to the derivatives, from the near side and the trace of the neighbour (theory/waves, eqs. 8
/// to 12).
///
/// `outward` is +1 or -1, the only non-zero component of the outward normal. s is the stress S_ca on the near side, so
/// `outward` s is the traction. A trace is written with the normal of the neighbour that reads it. `slope` is the
/// derivative of the face terms with respect to the impedance of the element, from the v* - v- of a state and of its
/// adjoint (eq. 23).
#pragma once
#include "../launch.hpp"

namespace seiche {

/// Exact Riemann flux. Trace: w = Z v + t (eq. 9). Coefficients of a component: 1/(Z- + Z+), Z+/(Z- + Z+), Z-. Boundary
/// conditions set the first two (eq. 11).
struct Upwind {
  static constexpr int words = 1, coefficients = 3;

  template <class Real>
  SEICHE_FN static void jump(const Real* neighbour, int step, const Real* q, int outward, Real v, Real s, Real& dv,
                             Real& dt) {
    (void)step;
    const Real d = q[0] * (neighbour[0] - Real(outward) * s) - q[1] * v;
    dv = d;
    dt = q[2] * d;
  }
  template <class Real>
  SEICHE_FN static void write(Real* trace, int step, Real z, int outward, Real v, Real s) {
    (void)step;
    trace[0] = z * v - Real(outward) * s;
  }
  template <class Real>
  SEICHE_FN static Real impedance(const Real* q) {
    return q[2];
  }
  template <class Real>
  SEICHE_FN static Real slope(Real dv, Real adjoint_dv) {
    return dv * adjoint_dv;
  }
};

/// Averages of both sides. Trace: v and t. Coefficients: v* - v- = q0 [v] + q1 [t], t* - t- = q2 [v] + q3 [t] (eq. 12).
struct Central {
  static constexpr int words = 2, coefficients = 4;

  template <class Real>
  SEICHE_FN static void jump(const Real* neighbour, int step, const Real* q, int outward, Real v, Real s, Real& dv,
                             Real& dt) {
    const Real jump_v = neighbour[0] - v, jump_t = neighbour[step] - Real(outward) * s;
    dv = q[0] * jump_v + q[1] * jump_t;
    dt = q[2] * jump_v + q[3] * jump_t;
  }
  template <class Real>
  SEICHE_FN static void write(Real* trace, int step, Real z, int outward, Real v, Real s) {
    (void)z;
    trace[0] = v;
    trace[step] = -(Real(outward) * s);
  }
  template <class Real>
  SEICHE_FN static Real impedance(const Real*) {
    return Real(0);
  }
  template <class Real>
  SEICHE_FN static Real slope(Real, Real) {
    return Real(0);
  }
};

}  // namespace seiche
