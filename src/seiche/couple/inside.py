# SPDX-License-Identifier: BSD-3-Clause
"""Sites inside cells, determined exactly on the device (theory/coupling, eq. 12)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend
from seiche.cells.resident import ResidentCells
from seiche.couple.bricks import Bricks
from seiche.couple.markers import Markers, Surfaces
from seiche.errors import CaseError
from seiche.flow.immersion import Contrast
from seiche.kernels.registry import ibm as registry
from seiche.kernels.registry.ibm import BRICK
from seiche.observe.stage import Stage


class InsideMarker:
    """Marks the sites inside closed `surfaces` of `markers`: `bits` on the device has one bit for each slot."""

    def __init__(self, backend: Backend, bricks: Bricks, surfaces: Sequence[Surfaces], every: int = 1) -> None:
        """Prepare to mark every `every` steps.

        Raises:
            CaseError: no kind of surface, or a number of steps that is not 1, 2, 4, 8, 16 or 32.
        """
        if every not in (1, 2, 4, 8, 16, 32):  # a graph of 32 steps must be a whole number of periods
            raise CaseError(f"mark_every = {every}: expected 1, 2, 4, 8, 16 or 32 steps")
        if not surfaces:
            raise CaseError("a viscosity contrast requires closed surfaces, but there are none")
        self._backend, self._bricks, self.every, self._steps = backend, bricks, every, 0
        self.bits: Array = backend.zeros(bricks.rows * BRICK, np.uint64)
        self._filled: Sequence[bool] | None = None

    def bind(self, markers: Markers, surfaces: Sequence[Surfaces], resident: ResidentCells | None = None) -> None:
        """Prepare the launches for the present arrays of the vertices and, on several ranks, the roles of the cells."""
        backend = self._backend
        clear, words = backend.load(registry.clear_inside()), self._bricks.rows * BRICK
        self._launches = [clear.bind(backend.pack(clear, inside=self.bits), 0, words)]
        self._faces: list[Array] = []
        self._bound = markers, surfaces, resident
        filled = self._filled or [True] * len(surfaces)
        for kind, surface in enumerate(surfaces):
            if not surface.cells or not filled[kind]:
                continue
            faces = backend.upload(np.ascontiguousarray(surface.faces.T, np.int32))
            self._faces.append(faces)
            members = dict(
                bricks=self._bricks.members,
                inside=self.bits,
                place=markers.place,
                faces=faces,
                stride=markers.stride,
                first=surface.first_vertex,
                vertices=surface.vertices,
                count=len(surface.faces),
            )
            if resident is not None:
                self._launches.append(resident.over_cells(registry.mark_inside(), resident.blocks[kind], **members))
                continue
            mark = backend.load(registry.mark_inside())
            self._launches.append(mark.bind(backend.pack(mark, **members), 0, surface.cells))

    def restrict(self, filled: Sequence[bool]) -> None:
        """Mark from now on only sites inside surfaces of the kinds with a true `filled`."""
        self._filled = tuple(filled)
        self.bind(*self._bound)
        self.mark()

    def mark(self) -> None:
        """Mark the sites now."""
        for launch in self._launches:
            launch()

    def stage(self) -> Stage:
        """Return the marking as a stage of a step."""

        def action() -> None:
            self._steps += 1
            if self._steps % self.every == 0:
                self.mark()

        return Stage("mark inside", action, int(self.bits.nbytes), ("interpolate velocity",))

    def begin(self, step: int) -> None:
        """Set the number of steps done, which the host does not count during graphs of steps."""
        self._steps = step

    def settle(self, sites: npt.NDArray[np.bool_] | None) -> None:
        """Mark the sites now, or set the mask `sites` (n_owned,) of the last marking."""
        self.mark()
        if sites is not None:
            bits = np.zeros(self._bricks.rows * BRICK**3, np.uint8)
            bits[self._bricks.slots] = sites
            self._backend.assign(self.bits, np.packbits(bits, bitorder="little").view(np.uint64))

    def sites(self) -> npt.NDArray[np.bool_]:
        """Return which of the owned sites are inside, (n_owned,)."""
        bits = np.unpackbits(self._backend.download(self.bits).view(np.uint8), bitorder="little")
        return np.asarray(bits[self._bricks.slots], bool)

    def sites_on_device(self) -> Array:
        """Return the same on the device."""
        return (self.bits[self._words] >> self._shifts & np.uint64(1)).astype(bool)

    @cached_property
    def _words(self) -> Array:
        """Return the numbers of the words of `bits` with the owned sites."""
        return self._backend.upload(self._bricks.slots // 64)

    @cached_property
    def _shifts(self) -> Array:
        """Return the positions of the owned sites in their words."""
        return self._backend.upload((self._bricks.slots % 64).astype(np.uint64))

    def contrast(self, ratio: float) -> Contrast:
        """Return the contrast of a viscosity inside of `ratio` times the outer one."""
        return Contrast(ratio, self.bits, self.sites, self.sites_on_device, self.every, self.begin)
