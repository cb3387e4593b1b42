# SPDX-License-Identifier: BSD-3-Clause
"""Which of the 26 lattice links of each site leave the fluid, and whether a `SiteSet` agrees with itself.

Directions are the rows of `LINK_VECTORS`; the opposite of direction k is 25 - k. A link "leaves the fluid" when it
meets no fluid site (or is cut on the way); periodic directions wrap around and never leave.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from seiche.domain.sites import LINK_VECTORS, IoletPlane, LinkKind, SiteSet

#: A dense box of flags is used up to this many bytes a site; beyond that, a search among sorted keys.
DENSE_BYTES_PER_SITE = 64
#: Boxes of up to this many bytes are always dense.
DENSE_BYTES = 1 << 24


def direction_index(vector: Sequence[int]) -> int:
    """Return the row of `LINK_VECTORS` that holds `vector`; ValueError when it is not one of the 26."""
    x, y, z = (int(component) for component in vector)
    if max(abs(x), abs(y), abs(z)) != 1:
        raise ValueError(f"({x}, {y}, {z}) is not one of the 26 lattice vectors")
    index = 9 * (x + 1) + 3 * (y + 1) + (z + 1)
    return index - (index > 13)


def opposite(direction: int) -> int:
    """Return the direction that points back along `direction`."""
    return 25 - direction


def boundary_links(
    shape: tuple[int, int, int],
    coords: npt.NDArray[np.int32],
    periodic: tuple[bool, bool, bool] = (False, False, False),
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Find the sites that lack a neighbour.

    `coords` (n, 3) lie inside `shape`. Returns the ascending indices (m,) of the sites with at least one absent
    neighbour and the flags (m, 26), true where the neighbour is absent.
    """
    lookup = SiteLookup(shape, coords, periodic)
    boundary = lookup.lacking_neighbours()
    absent = np.empty((len(boundary), 26), bool)
    for k in range(26):
        absent[:, k] = ~lookup.contains(boundary, k)
    return boundary, absent


class SiteLookup:
    """Answer "is there a fluid site at x + c_k" for many sites at once.

    Keeps one byte for each cell of the padded box while the box is small enough for its sites, else sorted keys.
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        coords: npt.NDArray[np.int32],
        periodic: tuple[bool, bool, bool] = (False, False, False),
    ) -> None:
        """Index the sites `coords` (n, 3), which must lie inside `shape`."""
        self.shape, self.coords, self.periodic = shape, coords, periodic
        padded = tuple(extent + 2 for extent in shape)
        self._strides = (padded[1] * padded[2], padded[2], 1)
        cells = padded[0] * padded[1] * padded[2]
        self._mask = self._filled_box(padded) if cells <= max(DENSE_BYTES, DENSE_BYTES_PER_SITE * len(coords)) else None
        self._sorted = np.zeros(0, np.int64) if self._mask is not None else np.sort(self._keys(coords.astype(np.int64)))

    def _filled_box(self, padded: tuple[int, ...]) -> npt.NDArray[np.bool_]:
        """Return the padded box of flags with the ghost layers of the periodic directions filled in."""
        mask = np.zeros(padded, bool)
        x, y, z = (self.coords[:, axis] for axis in range(3))
        mask[x + 1, y + 1, z + 1] = True
        for axis in range(3):
            if self.periodic[axis]:
                layers = np.moveaxis(mask, axis, 0)
                layers[0], layers[-1] = layers[-2], layers[1]
        return mask

    def _keys(self, coords: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the linear index of `coords` (..., 3) in the padded box."""
        keys: npt.NDArray[np.int64] = (coords + 1) @ np.array(self._strides, np.int64)
        return keys

    def lacking_neighbours(self) -> npt.NDArray[np.int64]:
        """Return the ascending indices of the sites that lack at least one of their 26 neighbours."""
        if self._mask is None:
            complete = np.ones(len(self.coords), bool)
            everyone = np.arange(len(self.coords))
            for k in range(26):
                complete &= self.contains(everyone, k)
            return np.flatnonzero(~complete)
        full = self._mask
        for axis in range(3):
            ends = [slice(None)] * 3
            triple = []
            for first in range(3):
                ends[axis] = slice(first, full.shape[axis] - 2 + first)
                triple.append(full[tuple(ends)])
            full = triple[0] & triple[1] & triple[2]
        x, y, z = (self.coords[:, axis] for axis in range(3))
        return np.flatnonzero(~full[x, y, z])

    def contains(self, sites: npt.NDArray[np.int64], direction: int) -> npt.NDArray[np.bool_]:
        """Return, for each of `sites` (p,), whether the neighbour along `direction` is a fluid site."""
        there = self.coords[sites] + LINK_VECTORS[direction].astype(np.int64)
        if self._mask is not None:
            return self._mask.reshape(-1)[self._keys(there)]
        for axis in range(3):
            if self.periodic[axis]:
                there[:, axis] %= self.shape[axis]
        if not len(self._sorted):
            return np.zeros(len(sites), bool)
        keys = self._keys(there)
        place = np.minimum(np.searchsorted(self._sorted, keys), len(self._sorted) - 1)
        found: npt.NDArray[np.bool_] = self._sorted[place] == keys
        return found


def wall_direction(link_kind: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """Return the sum (m, 3) of the wall links of each row of `link_kind` (m, 26): roughly out of the fluid."""
    total: npt.NDArray[np.float64] = (link_kind == LinkKind.WALL).astype(np.float64) @ LINK_VECTORS.astype(np.float64)
    return total


def outward_normals(sites: SiteSet) -> npt.NDArray[np.float32]:
    """Return unit wall normals (m, 3) that point out of the fluid, whichever way `sites.wall_normal` points.

    The HemeLB tool writes them outwards and the HemePure tools inwards; the sum of the wall links of a site tells
    which (flow.md 9.1, trap 1). A zero normal of a site with wall links is replaced by the direction of that sum.
    """
    outwards = wall_direction(sites.link_kind)
    normal = sites.wall_normal.astype(np.float64)
    normal = np.where(np.einsum("ij,ij->i", normal, outwards)[:, None] < 0.0, -normal, normal)
    normal = np.where(np.any(normal != 0.0, axis=1, keepdims=True), normal, outwards)
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    return (normal / np.where(length > 0.0, length, 1.0)).astype(np.float32)


def role_kinds(iolets: Sequence[IoletPlane]) -> npt.NDArray[np.uint8]:
    """Return what links through openings are, (iolets,)."""
    return np.array([LinkKind.INLET if plane.role == "inlet" else LinkKind.OUTLET for plane in iolets], np.uint8)


def with_iolets(sites: SiteSet, iolets: Sequence[IoletPlane]) -> SiteSet:
    """Return `sites` with other planes at the same openings; links have the kinds of their roles."""
    if [plane.role for plane in iolets] == [plane.role for plane in sites.iolets]:
        return replace(sites, iolets=iolets)
    kinds = np.where(sites.link_iolet >= 0, role_kinds(iolets)[sites.link_iolet], sites.link_kind)
    return replace(sites, iolets=iolets, link_kind=kinds.astype(np.uint8))


def check_sites(sites: SiteSet) -> None:
    """Raise ValueError, naming the first wrong site, unless `sites` keeps every promise of `SiteSet`."""
    _check_shapes(sites)
    coords = sites.coords
    outside = np.any((coords < 0) | (coords >= np.array(sites.shape)), axis=1)
    _refuse(sites, np.flatnonzero(outside), f"lies outside the box {sites.shape}")
    _refuse(sites, np.flatnonzero(np.diff(sites.keys()) <= 0) + 1, "is out of order or listed twice")
    rows = len(sites.boundary)
    if rows and (sites.boundary[0] < 0 or sites.boundary[-1] >= len(sites) or np.any(np.diff(sites.boundary) <= 0)):
        raise ValueError("boundary does not hold ascending indices of sites")
    _check_links(sites)
    lacking, absent = boundary_links(sites.shape, coords, sites.periodic)
    if rows:
        place = np.minimum(np.searchsorted(sites.boundary, lacking), rows - 1)
        known = (sites.boundary[place] == lacking)[:, None]
        absent &= ~(known & (sites.link_kind[place] != LinkKind.NONE))
    _refuse(sites, lacking[absent.any(axis=1)], "has a link that meets no fluid site and is not cut")


def _check_shapes(sites: SiteSet) -> None:
    n, m = len(sites.coords), len(sites.boundary)
    wanted = {"coords": (n, 3), "link_kind": (m, 26), "link_iolet": (m, 26), "link_fraction": (m, 26)}
    for name, shape in {**wanted, "wall_normal": (m, 3)}.items():
        found = getattr(sites, name).shape
        if found != shape:
            raise ValueError(f"{name} has the shape {found} instead of {shape}")


def _check_links(sites: SiteSet) -> None:
    """Check kinds, iolets, fractions and normals of the boundary rows."""
    kind, iolet, fraction = sites.link_kind, sites.link_iolet, sites.link_fraction
    cut = kind != LinkKind.NONE
    opening = (kind == LinkKind.INLET) | (kind == LinkKind.OUTLET)
    for wrong, why in (
        (kind > LinkKind.OUTLET, "has a link of an unknown kind"),
        (~cut.any(axis=1, keepdims=True), "is listed as a boundary site but has no cut link"),
        (opening != (iolet >= 0), "has an iolet index on a link that is not an iolet link, or none on one that is"),
        (iolet >= len(sites.iolets), "names an iolet that does not exist"),
        (cut & ~((fraction > 0.0) & (fraction <= 1.0)), "has a cut link whose fraction is not in (0, 1]"),
        (~cut & (fraction != 0.0), "has a fraction on a link that is not cut"),
        (~np.isfinite(sites.wall_normal), "has a wall normal that is not finite"),
    ):
        _refuse(sites, sites.boundary[wrong.any(axis=1)], why)
    if len(sites.iolets):
        mixed = opening & (role_kinds(sites.iolets)[iolet] != kind)
        _refuse(sites, sites.boundary[mixed.any(axis=1)], "mixes up inlet and outlet")


def _refuse(sites: SiteSet, wrong: npt.NDArray[np.int64], why: str) -> None:
    if len(wrong):
        x, y, z = (int(value) for value in sites.coords[wrong[0]])
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise ValueError(f"site ({x}, {y}, {z}){more} {why}")
