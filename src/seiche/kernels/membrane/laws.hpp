// SPDX-License-Identifier: BSD-3-Clause
/// Membrane laws at one point: in-plane stress and bending moment (theory/cells, eqs. 3 to 8).
#pragma once
#include "vector.hpp"

namespace seiche {

/// Metric of the stress-free state at a point: contravariant components, and the area of the point.
template <class Real>
struct Metric {
  Real xx, xy, yy, area;
};

/// Derivatives of the surface with respect to its two coordinates.
template <class Real>
struct Derivatives {
  Vector<Real> v, w, vv, ww, vw;
};

/// Factors of the virtual changes of the derivatives: vectors for the tangents, normal components for the second
/// derivatives.
template <class Real>
struct Moments {
  Vector<Real> v, w, normal;
  Real vv, ww, vw;
};

/// Derivatives of an energy per area over half the shear modulus G with respect to I1 and I2.
template <class Real>
struct Slopes {
  Real first, second;
};

/// Skalak's law (eq. 3) with C = `area_ratio`. A law has the modulus `shear` = G and the `slopes` of its energy at
/// I1 and J2 = 1 + I2.
template <class Real>
struct Skalak {
  Real shear, area_ratio;
  SEICHE_FN Slopes<Real> slopes(Real first, Real dilation) const {
    return {first + Real(1), area_ratio * (dilation - Real(1)) - Real(1)};
  }
};

/// The neo-Hookean law (eq. 4).
template <class Real>
struct NeoHookean {
  Real shear;
  SEICHE_FN Slopes<Real> slopes(Real first, Real dilation) const {
    (void)first;
    return {Real(1), Real(-1) / (dilation * dilation)};
  }
};

/// Forces conjugate to the tangents a_v and a_w: minus the second Piola-Kirchhoff stress times tangent and area (eq.
/// 5).
template <class Law, class Real>
SEICHE_FN void stretch(const Law& law, const Metric<Real>& rest, Derivatives<Real> d, Vector<Real>& on_v,
                       Vector<Real>& on_w) {
  const Real vv = dot(d.v, d.v), vw = dot(d.v, d.w), ww = dot(d.w, d.w);
  const Real inverse = multiply_add(rest.xx, rest.yy, -(rest.xy * rest.xy));
  const Real dilation = multiply_add(vv, ww, -(vw * vw)) * inverse;
  const Real first =
      multiply_add(rest.yy, ww, multiply_add(rest.xx, vv, multiply_add(Real(2) * rest.xy, vw, Real(-2))));
  const Slopes<Real> slopes = law.slopes(first, dilation);
  const Real factor = -(law.shear * rest.area), cofactor = slopes.second * inverse;
  const Real s_vv = factor * multiply_add(cofactor, ww, slopes.first * rest.xx);
  const Real s_ww = factor * multiply_add(cofactor, vv, slopes.first * rest.yy);
  const Real s_vw = factor * multiply_add(-cofactor, vw, slopes.first * rest.xy);
  on_v = multiply_add(s_vv, d.v, s_vw * d.w);
  on_w = multiply_add(s_vw, d.v, s_ww * d.w);
}

/// Adds the contribution of Helfrich's bending energy (eq. 8); `preferred` is the spontaneous curvature c0.
template <class Real>
SEICHE_FN void bend(Real bending, const Metric<Real>& rest, Real preferred, Derivatives<Real> d, Moments<Real>& force) {
  const Real vv = dot(d.v, d.v), vw = dot(d.v, d.w), ww = dot(d.w, d.w);
  const Real determinant = multiply_add(vv, ww, -(vw * vw)), inverse = Real(1) / determinant;
  const Real root = square_root(determinant);
  const Vector<Real> normal = (root * inverse) * cross(d.v, d.w);
  const Real up_vv = ww * inverse, up_ww = vv * inverse, up_vw = -(vw * inverse);
  const Vector<Real> dual_v = multiply_add(up_vv, d.v, up_vw * d.w), dual_w = multiply_add(up_vw, d.v, up_ww * d.w);
  const Vector<Real> laplacian = multiply_add(up_vv, d.vv, multiply_add(Real(2) * up_vw, d.vw, up_ww * d.ww));
  const Real excess = dot(laplacian, normal) - preferred;
  const Real area = root * (rest.area * square_root(multiply_add(rest.xx, rest.yy, -(rest.xy * rest.xy))));
  const Real moment = bending * excess * area, half = Real(0.5) * (moment * excess);
  const Real b_vv = dot(d.vv, normal), b_vw = dot(d.vw, normal), b_ww = dot(d.ww, normal);
  const Vector<Real> b_v = multiply_add(b_vv, dual_v, b_vw * dual_w), b_w = multiply_add(b_vw, dual_v, b_ww * dual_w);
  const Real twice = Real(2) * moment;
  const Vector<Real> on_v = multiply_add(up_vv, b_v, up_vw * b_w), on_w = multiply_add(up_vw, b_v, up_ww * b_w);
  force.v = multiply_add(twice, on_v, multiply_add(moment * dot(laplacian, dual_v), normal, force.v));
  force.v = multiply_add(-half, dual_v, force.v);
  force.w = multiply_add(twice, on_w, multiply_add(moment * dot(laplacian, dual_w), normal, force.w));
  force.w = multiply_add(-half, dual_w, force.w);
  force.normal = normal;
  force.vv = -(moment * up_vv);
  force.ww = -(moment * up_ww);
  force.vw = -(twice * up_vw);
}

}  // namespace seiche
