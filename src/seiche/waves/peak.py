# SPDX-License-Identifier: BSD-3-Clause
"""The largest velocities on a side of the mesh: the peak ground velocity of a free surface."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from seiche.backend import Array
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.kernels.registry import dg
from seiche.observe.stage import Stage
from seiche.waves.injection import Incident
from seiche.waves.mesh import NONE
from seiche.waves.operator import Operator

Floats = npt.NDArray[np.float64]


class Peak:
    """The largest velocities at the nodes of one side so far."""

    def __init__(self, operator: Operator, face: int, world: World) -> None:
        """Find the elements on side `face` (collective); CaseError for a side that is periodic or does not exist."""
        mesh = operator.mesh
        if not 0 <= face < mesh.faces or mesh.brick.periodic[face // 2]:
            raise CaseError(f"peak velocities: {face} is not a side of the mesh")
        self._operator, self.face, self._world = operator, face, world
        self.elements = np.nonzero(mesh.kinds[:, face, 0] == NONE)[0]
        self.items = len(self.elements)
        self._list = operator.backend.upload(self.elements.astype(np.int32))
        self._peaks = operator.backend.zeros((max(self.items, 1), 2, operator.disc.face_nodes), operator.disc.real)
        self._motion = operator.backend.zeros(1, operator.disc.real)
        self._incident: Callable[[], None] | None = None

    def add_motion(self, incident: Incident) -> None:
        """Include the incident fields of boxes that touch the side."""
        operator = self._operator
        shape = max(self.items, 1), operator.mesh.dim, operator.disc.face_nodes
        motion = operator.backend.zeros(shape, operator.disc.real)
        self._incident = incident.motion(self.elements, self.face, motion)
        if self._incident is not None:
            self._motion = motion

    def stages(self, u: Array) -> list[Stage]:
        """Return the launches that update the peaks from a state."""
        where = {"axis": self.face // 2, "side": self.face % 2}
        members = {"u": u, "elements": self._list, "peaks": self._peaks, "motion": self._motion, **where}
        members["moves"] = int(self._incident is not None)
        launch = self._operator.launch(dg.peak_motion(self._operator.disc), 0, self.items, **members)
        incident_stages = [] if self._incident is None else [Stage("incident motion", self._incident)]
        return [*incident_stages, Stage("peak", *launch)]

    def squares(self) -> npt.NDArray[np.float64]:
        """Return this rank's largest squares, (its elements on the side, 2, face nodes)."""
        return np.asarray(self._operator.backend.download(self._peaks), np.float64)[: self.items]

    def load(self, squares: Floats) -> None:
        """Set the result of `squares` of an earlier run."""
        if self.items:
            self._operator.backend.assign(self._peaks, squares.astype(self._operator.disc.real))

    def gather(self) -> tuple[Floats, Floats] | None:
        """Return positions (n, dim) and peak velocities (n, 2) on rank 0, None elsewhere (collective).

        The peaks are those of the full velocity and of its components along all axes but the last. Elements follow
        the curve, nodes of an element along the first axis first.
        """
        face_nodes = self._operator.face_nodes[self.face]
        positions = self._operator.positions[self.elements][:, face_nodes]
        peaks = np.sqrt(np.moveaxis(self.squares(), 1, 2))
        gathered = self._world.gather((self._operator.mesh.number[self.elements], positions, peaks))
        if gathered is None:
            return None
        number, position, peak = (np.concatenate(parts) for parts in zip(*gathered, strict=True))
        order = np.argsort(number)
        return position[order].reshape(-1, self._operator.mesh.dim), peak[order].reshape(-1, 2)
