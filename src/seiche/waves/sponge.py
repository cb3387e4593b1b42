# SPDX-License-Identifier: BSD-3-Clause
"""The damping layer along absorbing sides (theory/waves, section 9, eq. 21)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from seiche.backend import Array
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.kernels.registry import dg
from seiche.waves.operator import Operator

Floats = npt.NDArray[np.float64]

#: Amplitude factor of a longitudinal wave that crosses the layer twice at normal incidence.
REFLECTION = 0.3


def decay_rates(operator: Operator, thickness: float, periodic: tuple[bool, ...]) -> Floats:
    """Return the decay rates of the unknowns, (elements, nodes), zero outside the layer.

    Raises CaseError for a thickness that is not positive or not below the width of the box.
    """
    lower, upper = operator.mesh.extent
    if not (np.isfinite(thickness) and 0 < thickness):
        raise CaseError(f"sponge of thickness {thickness:g}: must be positive")
    positions = operator.positions
    speed = operator.material.cp.reshape(operator.mesh.count, -1)
    rates = np.zeros(positions.shape[:2])
    for face, kind in enumerate(operator.boundaries):
        axis = face // 2
        if kind != "absorbing" or periodic[axis]:
            continue
        if thickness >= upper[axis] - lower[axis]:
            raise CaseError(
                f"sponge of thickness {thickness:g}: must be below the width of the box, {upper[axis] - lower[axis]:g}"
            )
        distance = positions[..., axis] - lower[axis] if face % 2 == 0 else upper[axis] - positions[..., axis]
        depth = np.maximum(0.0, 1.0 - distance / thickness)
        rates += -1.5 * np.log(REFLECTION) / thickness * speed * depth**2
    return rates


class Sponge:
    """The elements of the layer, whose unknowns are damped once per step."""

    def __init__(self, operator: Operator, thickness: float, dt: float, world: World) -> None:
        """Find the elements and upload their factors (collective); CaseError without an absorbing side."""
        self._operator = operator
        rates = decay_rates(operator, thickness, operator.mesh.brick.periodic)
        elements = np.nonzero((rates > 0).any(1))[0]
        self.items = len(elements)
        if not any(world.allgather(self.items)):
            raise CaseError("sponge: requires an absorbing side of the box, but there is none")
        #: Elements of the layer, and the decay rates at their nodes, (items, nodes).
        self.numbers, self.rates = elements, rates[elements]
        self._elements = operator.backend.upload(elements.astype(np.int32))
        self._factors = operator.real_array(np.exp(-rates[elements] * dt))

    @property
    def layer(self) -> dict[str, Array]:
        """Return the elements and the factors of their nodes."""
        return {"elements": self._elements, "factors": self._factors}

    def launch(self, u: Array, trace: Array) -> tuple[Callable[[], None], int]:
        """Return the launch that damps a state and updates its traces, and the bytes it moves."""
        backend, operator = self._operator.backend, self._operator
        kernel = backend.load(dg.damp(operator.disc))
        arguments = backend.pack(kernel, scheme=operator.members, u=u, trace=trace, **self.layer)
        return kernel.bind(arguments, 0, self.items), kernel.bytes_per_item * self.items
