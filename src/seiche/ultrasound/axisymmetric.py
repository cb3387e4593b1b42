# SPDX-License-Identifier: BSD-3-Clause
"""The exact scheme in cylindrical coordinates without dependence on the angle (theory/ultrasound, section 15).

The axes are x, along the axis of symmetry, and the radius r. Only the divergence differs from that of two Cartesian
axes, by u_r/r. Fields are continued beyond both ends of the radial axis and transformed over the resulting period.
"""

from __future__ import annotations

from seiche.kernels.registry import kspace_radial
from seiche.ultrasound import operators
from seiche.ultrasound.exact import ExactScheme
from seiche.ultrasound.state import Bound


class AxisymmetricScheme(ExactScheme):
    """Stages of the exact scheme on an axisymmetric grid."""

    def _bind_divergence(self) -> list[Bound]:
        """Return the work from the velocity to the spectra of du_x/dx and of du_r/dr + u_r/r."""
        state, problem = self._state, self._state.problem
        work, (axial, radial) = state.work, state.u
        shift = operators.shift_table(problem)[1 + problem.shape[0] :]
        divergence = state.bind_spectral(
            kspace_radial.axisymmetric_divergence(state.precision),
            **{"work": work, "derivative": self._back_table, "shift": state.upload(shift), "kappa": self._kappa},
        )
        return [
            *state.continued(axial, work[0:1], "even"),
            *state.continued(radial, work[1:2], "odd"),
            *state.continued(radial, work[2:3], "quotient"),
            state.transforms.forward(None, work[:3]),
            divergence,
        ]
