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
from seiche.kernels.registry.flow import MAX_PLANES
from seiche.kernels.registry.ibm import BRICK
from seiche.observe.stage import Stage


def contrasts_of(contrast: float | Sequence[float], kinds: int) -> tuple[float, ...]:
    """Return the ratio of inner to outer viscosity for each kind of surface; `contrast` is one value or one per kind.

    Raises:
        CaseError: the number of values is wrong, or there are more distinct values than can be stored at sites.
    """
    contrasts = (float(contrast),) * kinds if isinstance(contrast, int | float) else tuple(map(float, contrast))
    if len(contrasts) != kinds:
        raise CaseError(
            f"viscosity_contrast: {len(contrasts)} values for {kinds} types of cells; expected one, or one for each"
        )
    max_distinct = (1 << MAX_PLANES) - 1
    if (distinct := len(set(contrasts) - {1.0})) > max_distinct:
        raise CaseError(f"viscosity_contrast: {distinct} different inner viscosities; the maximum is {max_distinct}")
    return contrasts


class InsideMarker:
    """Marking of the sites inside closed surfaces: `bits`, on the device, has `planes` bits per slot.

    The bits of a site form the index of its viscosity, relative to that of the fluid, in `ratios`; index 0 is the
    fluid.
    """

    def __init__(
        self, backend: Backend, bricks: Bricks, surfaces: Sequence[Surfaces], contrasts: Sequence[float], every: int = 1
    ) -> None:
        """Prepare to mark sites every `every` steps; `contrasts` are those of the kinds of surfaces.

        Raises:
            CaseError: there is no kind of surface, or `every` is not 1, 2, 4, 8, 16 or 32.
        """
        if every not in (1, 2, 4, 8, 16, 32):  # a graph of 32 steps must contain a whole number of intervals
            raise CaseError(f"mark_every = {every}: expected 1, 2, 4, 8, 16 or 32 steps")
        if not surfaces:
            raise CaseError("a viscosity contrast requires closed surfaces, but there are none")
        self._backend, self._bricks, self.every, self._steps = backend, bricks, every, 0
        distinct = list(dict.fromkeys(ratio for ratio in contrasts if ratio != 1.0))
        self._index = [distinct.index(ratio) + 1 if ratio != 1.0 else 0 for ratio in contrasts]
        self.planes = max(len(distinct).bit_length(), 1)
        # Sites inside two overlapping cells have the bits of both.
        self.ratios = [1.0] + [
            max([ratio for number, ratio in enumerate(distinct, start=1) if number & index == number], default=1.0)
            for index in range(1, 1 << self.planes)
        ]
        self.words = bricks.rows * BRICK
        self.bits: Array = backend.zeros(self.planes * self.words, np.uint64)

    def bind(self, markers: Markers, surfaces: Sequence[Surfaces], resident: ResidentCells | None = None) -> None:
        """Bind the kernels to the present arrays of the vertices and, on several ranks, the roles of the cells."""
        backend = self._backend
        clear = backend.load(registry.clear_inside())
        self._launches = [clear.bind(backend.pack(clear, inside=self.bits), 0, self.planes * self.words)]
        self._faces: list[Array] = []
        for kind, surface in enumerate(surfaces):
            if not surface.cells or not self._index[kind]:
                continue
            faces = backend.upload(np.ascontiguousarray(surface.faces.T, np.int32))
            self._faces.append(faces)
            members = dict(
                bricks=self._bricks.members,
                positions=markers.positions,
                faces=faces,
                stride=markers.stride,
                first=surface.first_vertex,
                vertices=surface.vertices,
                count=len(surface.faces),
            )
            mark = backend.load(registry.mark_inside())
            for plane in self._of_planes(self._index[kind]):
                if resident is not None:
                    block = resident.blocks[kind]
                    self._launches.append(resident.over_cells(registry.mark_inside(), block, inside=plane, **members))
                    continue
                self._launches.append(mark.bind(backend.pack(mark, inside=plane, **members), 0, surface.cells))

    def _of_planes(self, index: int) -> list[Array]:
        """Return the planes of the bits of an index."""
        words = self.words
        return [self.bits[k * words : (k + 1) * words] for k in range(self.planes) if index >> k & 1]

    def mark(self) -> None:
        """Mark the sites in the present positions."""
        for launch in self._launches:
            launch()

    def contrast(self) -> Contrast:
        """Return the viscosities inside the surfaces, for the flow solver."""
        return Contrast(
            self.ratios, self.planes, self.words, self.bits, self.sites, self.sites_on_device, self.every, self.begin
        )

    def stage(self) -> Stage:
        """Return the marking as a stage of a step."""

        def action() -> None:
            self._steps += 1
            if self._steps % self.every == 0:
                self.mark()

        return Stage("mark inside", action, int(self.bits.nbytes), ("interpolate velocity",))

    def begin(self, step: int) -> None:
        """Set the number of completed steps, which the host does not count while graphs of steps run."""
        self._steps = step

    def settle(self, sites: npt.NDArray[np.uint8] | None) -> None:
        """Mark the sites, or restore the indices `sites` (n_owned,) of the last marking."""
        self.mark()
        if sites is not None:
            bits = np.zeros((self.planes, self.words * 64), np.uint8)
            bits[:, self._bricks.slots] = sites >> np.arange(self.planes, dtype=np.uint8)[:, None] & 1
            self._backend.assign(self.bits, np.packbits(bits, bitorder="little").view(np.uint64))

    def sites(self) -> npt.NDArray[np.uint8]:
        """Return the index of the viscosity of each owned site, (n_owned,); 0 outside cells."""
        bits = np.unpackbits(self._backend.download(self.bits).view(np.uint8), bitorder="little")
        planes = bits.reshape(self.planes, -1)[:, self._bricks.slots]
        return np.asarray((planes << np.arange(self.planes, dtype=np.uint8)[:, None]).sum(axis=0), np.uint8)

    def sites_on_device(self) -> Array:
        """Return the same indices on the device."""
        words, shifts = self._words, self._shifts
        indices = self.bits[words] >> shifts & np.uint64(1)
        for plane in range(1, self.planes):
            bits = self.bits[plane * self.words : (plane + 1) * self.words]
            indices = indices | (bits[words] >> shifts & np.uint64(1)) << np.uint64(plane)
        return indices.astype(np.uint8)

    @cached_property
    def _words(self) -> Array:
        """Return the indices of the words of `bits` that contain the owned sites."""
        return self._backend.upload(self._bricks.slots // 64)

    @cached_property
    def _shifts(self) -> Array:
        """Return the positions of the owned sites in their words."""
        return self._backend.upload((self._bricks.slots % 64).astype(np.uint64))
