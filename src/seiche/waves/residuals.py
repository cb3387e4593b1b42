# SPDX-License-Identifier: BSD-3-Clause
"""The residuals at receivers as sources of the adjoint (theory/waves, section 10)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seiche.backend import Array
from seiche.kernels.registry import dg
from seiche.observe.stage import Stage
from seiche.waves.basis import LSRK_B
from seiche.waves.probes import Receivers
from seiche.waves.solver import WaveSolver

Floats = npt.NDArray[np.float64]


class Residuals:
    """The residuals at receivers as sources of the adjoint: one for each part of a receiver and recorded unknown."""

    def __init__(self, solver: WaveSolver, receivers: Receivers, index: list[int], *, steps: int, clock: Array) -> None:
        """Upload all constants for `steps` steps; `index` has the recorded unknowns (collective)."""
        self._solver, self._points, self._index = solver, receivers.points, index
        self._clock = clock
        #: Stages of the kernel: one with a register, or the first of the two of leapfrog.
        self._kernel_stages = 2 if solver.leap is not None else 1
        operator, points = solver.operator, self._points
        disc, backend = operator.disc, solver.backend
        repeats = len(index)
        volume = np.prod(operator.mesh.sizes[points.element] / 2, axis=1)
        strengths = np.zeros((len(points.element), repeats, disc.fields))
        for column, number in enumerate(index):
            sign = -1.0 if operator.fields[number].startswith("v") else 1.0
            strengths[:, column, number] = sign * points.share / volume
        elements, first = np.unique(np.repeat(points.element, repeats), return_index=True)
        weights = np.repeat(points.values / operator.basis.weights, repeats, axis=0)
        self._items, self._count = len(elements), len(weights)
        self._largest = self._largest_change(strengths.reshape(-1, disc.fields), weights)
        self._arrays = {
            "elements": backend.upload(elements.astype(np.int32)),
            "first": backend.upload(np.append(first, len(weights)).astype(np.int32)),
            "weights": operator.real_array(weights),
            "strengths": operator.real_array(strengths),
        }
        self._amplitudes = backend.zeros((steps + 1) * self._kernel_stages * self._count, disc.real)

    def _largest_change(self, strengths: Floats, weights: Floats) -> float:
        """Return the largest change of the adjoint by a residual of one."""
        solver, points = self._solver, self._points
        material = solver.material
        inverse = (1 / material.density).reshape(len(material.density), -1).max(1)
        factors = np.repeat(inverse[:, None], strengths.shape[1], axis=1)
        if solver.medium == "acoustic":
            factors[:, 0] = material.longitudinal.reshape(len(material.density), -1).max(1)
        rows = np.repeat(points.element, len(self._index))
        changes = np.abs(strengths).max(1, initial=0.0) * factors[rows].max(1, initial=0.0)
        changes = changes * np.abs(weights).max(2).prod(1)
        largest = self._solver.world.allreduce_max(np.array([changes.max(initial=0.0)]))
        return float(largest[0])

    def send(self, residual: Floats) -> float:
        """Upload the residuals, scaled by a power of two so that single precision neither over- nor underflows."""
        solver = self._solver
        largest = self._largest * float(np.abs(residual).max(initial=0.0)) * solver.dt
        factor = 2.0 ** -np.round(np.log2(largest)) if largest > 0 else 1.0
        if self._items:
            values = np.zeros((len(residual) + 1, self._kernel_stages, self._count))  # none at time zero
            values[1:, 0] = factor * residual[:, self._points.point].reshape(len(residual), -1)
            solver.backend.assign(self._amplitudes, values.ravel().astype(solver.disc.real))
        return 1 / float(factor)

    def stages(self, u: Array, k: Array | None, trace: Array) -> list[Stage]:
        """Return the launch that adds the residuals after a step to k, and B of the last stage times them to u.

        Leapfrog has no k.
        """
        if not self._items:
            return []
        operator = self._solver.operator
        members = {
            **self._arrays,
            "scheme": operator.members,
            "u": u,
            "k": k,
            "next_trace": trace,
            "clock": self._clock,
        }
        members |= {"amplitudes": self._amplitudes, "sources": self._count, "stage": 0, "dt": self._solver.dt}
        b = LSRK_B[-1] if self._kernel_stages == 1 else 1.0
        spec = dg.add_sources(operator.disc, self._kernel_stages)
        return [Stage("residuals", *operator.launch(spec, 0, self._items, **members, b=b))]
