// SPDX-License-Identifier: BSD-3-Clause
/// Surface viscosity of a membrane (theory/cells, eqs. 16 to 19): a spring and a dashpot in series, in parallel with
/// the elastic law. The internal variable of an element is the metric in which its spring is free of stress: 24
/// bytes, read and written once a step.
#pragma once
#include "laws.hpp"

namespace seiche {

/// Contravariant components of a stress per stress-free area.
template <class Real>
struct Stress {
  Real vv, vw, ww;
};

/// The spring and the dashpot. Without `share` the stress is evaluated again and the memory does not change.
template <class Real>
struct Maxwell {
  /// [plane][3][stride]: metric vv, vw, ww. Element e of a cell has column e % vertices of plane e / vertices. In
  /// single precision the small changes of a step would be lost.
  double* relaxed;
  Index stride;
  double share;  ///< part of the strain of the spring that the dashpot takes over in this step (eq. 17)
  Real spring;   ///< modulus k'
  i32 vertices;  ///< of a cell

  /// The internal variable of element `element` of the cell whose vertices start at `begin`.
  SEICHE_FN double* at(Index begin, int element) const {
    return relaxed + 3 * (element / vertices) * stride + (begin + element % vertices);
  }
  /// Whether the internal variables of `count` elements from `element` on are neighbours in memory.
  SEICHE_FN bool consecutive(int element, int count) const { return element % vertices + count <= vertices; }

  /// Strain of the spring, times minus two, in `metric`, for the element whose internal variable is `at`. The metric is
  /// replaced by the strain.
  SEICHE_FN void advance(double* at, bool stores, Real (&metric)[3]) const {
    // All are loaded before the first is stored, which the compiler cannot know to be another one.
    const double memory[3] = {at[0], at[stride], at[2 * stride]};
    for (int c = 0; c < 3; ++c) {
      const double current = static_cast<double>(metric[c]);
      const double relaxed_metric = multiply_add(share, current - memory[c], memory[c]);
      if (stores && share > 0) at[c * stride] = relaxed_metric;
      metric[c] = static_cast<Real>(relaxed_metric - current);
    }
  }

  /// Stress of the spring (eq. 19) in the metric `vv`, `vw`, `ww` with a strain from `advance`.
  SEICHE_FN Stress<Real> stress(Real vv, Real vw, Real ww, Real on_vv, Real on_vw, Real on_ww) const {
    const Real rest_vv = vv + on_vv, rest_vw = vw + on_vw, rest_ww = ww + on_ww;
    const Real determinant = multiply_add(vv, ww, -(vw * vw));
    const Real rest_determinant = multiply_add(rest_vv, rest_ww, -(rest_vw * rest_vw));
    const Real trace = multiply_add(on_vv, ww, multiply_add(on_ww, vv, Real(-2) * on_vw * vw));
    const Real mean = Real(0.5) * trace / determinant;
    const Real factor = spring / (square_root(determinant) * square_root(rest_determinant));
    return {factor * multiply_add(-mean, ww, on_ww), factor * multiply_add(mean, vw, -on_vw),
            factor * multiply_add(-mean, vv, on_vv)};
  }
};

/// An elastic law with surface viscosity.
template <template <class> class Law>
struct Viscous {
  template <class Real>
  struct Of : Law<Real> {
    Maxwell<Real> arm;
  };
};

/// Whether a law has surface viscosity.
template <class Law>
inline constexpr bool is_viscous = requires(const Law& law) { law.arm; };

}  // namespace seiche
