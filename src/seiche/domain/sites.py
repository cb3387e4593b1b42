# SPDX-License-Identifier: BSD-3-Clause
"""The sparse set of fluid sites of a geometry, with the links that leave it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from seiche.domain.site_rows import SiteRows

#: The 26 lattice vectors in the order of `.gmy` files: lexicographic, dz fastest, without (0, 0, 0). Shape (26, 3).
LINK_VECTORS: npt.NDArray[np.int32] = np.array(
    [(x, y, z) for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1) if (x, y, z) != (0, 0, 0)], dtype=np.int32
)


class LinkKind(IntEnum):
    """Kind of a link (a lattice vector from a site); the values are those of `.gmy` files."""

    NONE = 0
    WALL = 1
    INLET = 2
    OUTLET = 3


@dataclass(frozen=True)
class IoletPlane:
    """A flat opening of the vessel.

    `center` is in metres, `normal` a unit vector that points **into** the fluid, `radius` in metres (None: no bound).
    """

    name: str
    role: Literal["inlet", "outlet"]
    center: tuple[float, float, float]
    normal: tuple[float, float, float]
    radius: float | None = None


@dataclass(frozen=True, eq=False)
class SiteSet:
    """Fluid sites of a regular lattice and the links that leave the fluid.

    Shapes and units (n sites, m of them with at least one link that leaves the fluid):

    - `coords` (n, 3) int32, strictly ascending in the order (x, y, z) with z fastest, inside `shape`
    - `boundary` (m,) int64, ascending indices into `coords`
    - `link_kind` (m, 26) uint8, a `LinkKind` for each of `LINK_VECTORS`
    - `link_iolet` (m, 26) int16, index into `iolets` for inlet and outlet links, else -1
    - `link_fraction` (m, 26) float32, position of the cut, 0 < q <= 1 of the link vector; 0 without a cut
    - `wall_normal` (m, 3) float32, out of the fluid; zero for a site without a wall link
    - the position of a site in metres is `origin + spacing * coords`

    In a periodic direction links wrap around `shape` and never leave.
    """

    shape: tuple[int, int, int]
    coords: npt.NDArray[np.int32]
    spacing: float
    origin: tuple[float, float, float] = (0.0, 0.0, 0.0)
    periodic: tuple[bool, bool, bool] = (False, False, False)
    boundary: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    link_kind: npt.NDArray[np.uint8] = field(default_factory=lambda: np.zeros((0, 26), np.uint8))
    link_iolet: npt.NDArray[np.int16] = field(default_factory=lambda: np.zeros((0, 26), np.int16))
    link_fraction: npt.NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 26), np.float32))
    wall_normal: npt.NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 3), np.float32))
    iolets: Sequence[IoletPlane] = ()

    def __len__(self) -> int:
        """Return the number of fluid sites."""
        return int(self.coords.shape[0])

    @cached_property
    def fingerprint(self) -> str:
        """Return a hash of the sites and of the kinds and iolets of their links."""
        digest = hashlib.sha256(repr((tuple(self.shape), tuple(self.periodic))).encode())
        for array in (self.coords, self.boundary, self.link_kind, self.link_iolet):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    @cached_property
    def rows(self) -> SiteRows:
        """Return the sites as runs along z."""
        return SiteRows.of_coords(self.shape, self.periodic, self.coords)

    @cached_property
    def opening_rows(self) -> npt.NDArray[np.int64]:
        """Return the ascending rows (k,) of the boundary arrays of sites with links through openings."""
        return np.flatnonzero((self.link_iolet >= 0).any(axis=1))

    def keys(self) -> npt.NDArray[np.int64]:
        """Return the linear index x*ny*nz + y*nz + z of every site: ascending, shape (n,)."""
        return self.linear(self.coords.astype(np.int64))

    def linear(self, coords: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the linear index of `coords` (..., 3) after wrapping the periodic directions; -1 outside the box."""
        wrapped = coords.copy()
        inside = np.ones(coords.shape[:-1], bool)
        for axis in range(3):
            if self.periodic[axis]:
                wrapped[..., axis] %= self.shape[axis]
            else:
                inside &= (coords[..., axis] >= 0) & (coords[..., axis] < self.shape[axis])
        _, ny, nz = self.shape
        linear = (wrapped[..., 0] * ny + wrapped[..., 1]) * nz + wrapped[..., 2]
        return np.where(inside, linear, -1)

    def find(self, coords: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the site index at each of `coords` (..., 3), or -1 where there is no fluid site."""
        return self.finder()(coords)

    def finder(self) -> Callable[[npt.NDArray[np.int64]], npt.NDArray[np.int64]]:
        """Return a `find` for repeated calls."""
        rows = self.rows

        def find(coords: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
            return rows.find(coords.reshape(-1, 3), wrap=True).reshape(coords.shape[:-1])

        return find
