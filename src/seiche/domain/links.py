# SPDX-License-Identifier: BSD-3-Clause
"""Lattice links that leave the fluid, wall normals, and consistency checks of a `SiteSet`.

Directions are the rows of `LINK_VECTORS`; the opposite of direction k is 25 - k. A link leaves the fluid if it meets
no fluid site or is cut. Periodic directions wrap around.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from seiche.domain.sites import LINK_VECTORS, IoletPlane, LinkKind, SiteSet

#: A dense box of flags is used up to this many bytes per site, otherwise a search in sorted keys.
DENSE_BYTES_PER_SITE = 64
#: Boxes up to this many bytes are always dense.
DENSE_BYTES = 1 << 24


def direction_index(vector: Sequence[int]) -> int:
    """Return the row of `vector` in `LINK_VECTORS`; ValueError if it is not one of the 26."""
    x, y, z = (int(component) for component in vector)
    if max(abs(x), abs(y), abs(z)) != 1:
        raise ValueError(f"({x}, {y}, {z}) is not one of the 26 lattice vectors")
    index = 9 * (x + 1) + 3 * (y + 1) + (z + 1)
    return index - (index > 13)


def boundary_links(
    shape: tuple[int, int, int],
    coords: npt.NDArray[np.int32],
    periodic: tuple[bool, bool, bool] = (False, False, False),
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Find the sites `coords` (n, 3), inside `shape`, with absent neighbours.

    Returns their ascending indices (m,), and flags (m, 26) of the absent neighbours.
    """
    lookup = SiteLookup(shape, coords, periodic)
    boundary = lookup.incomplete_sites()
    return boundary, np.stack([~lookup.contains(boundary, k) for k in range(26)], axis=1)


class SiteLookup:
    """Test for fluid sites at x + c_k by one byte per cell of the padded box, or by sorted keys if it is too large."""

    def __init__(
        self,
        shape: tuple[int, int, int],
        coords: npt.NDArray[np.int32],
        periodic: tuple[bool, bool, bool] = (False, False, False),
    ) -> None:
        """Index the sites `coords` (n, 3) inside `shape`."""
        self.shape, self.coords, self.periodic = shape, coords, periodic
        padded = tuple(extent + 2 for extent in shape)
        self._strides = (padded[1] * padded[2], padded[2], 1)
        cells = padded[0] * padded[1] * padded[2]
        self._mask = self._filled_box(padded) if cells <= max(DENSE_BYTES, DENSE_BYTES_PER_SITE * len(coords)) else None
        self._sorted = np.zeros(0, np.int64) if self._mask is not None else np.sort(self._keys(coords.astype(np.int64)))

    def _filled_box(self, padded: tuple[int, ...]) -> npt.NDArray[np.bool_]:
        """Return the padded box of flags with periodic ghost layers."""
        mask = np.zeros(padded, bool)
        x, y, z = self.coords.T
        mask[x + 1, y + 1, z + 1] = True
        for axis in range(3):
            if self.periodic[axis]:
                layers = np.moveaxis(mask, axis, 0)
                layers[0], layers[-1] = layers[-2], layers[1]
        return mask

    def _keys(self, coords: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the linear index of `coords` (..., 3) in the padded box."""
        return np.asarray((coords + 1) @ np.array(self._strides, np.int64))

    def incomplete_sites(self) -> npt.NDArray[np.int64]:
        """Return the ascending indices of the sites with at least one absent neighbour."""
        if self._mask is None:
            complete, sites = np.ones(len(self.coords), bool), np.arange(len(self.coords))
            for k in range(26):
                complete &= self.contains(sites, k)
            return np.flatnonzero(~complete)
        complete_neighbours = self._mask
        for axis in range(3):
            layers = np.moveaxis(complete_neighbours, axis, 0)
            complete_neighbours = np.moveaxis(layers[:-2] & layers[1:-1] & layers[2:], 0, axis)
        x, y, z = self.coords.T
        return np.flatnonzero(~complete_neighbours[x, y, z])

    def contains(self, sites: npt.NDArray[np.int64], direction: int) -> npt.NDArray[np.bool_]:
        """Return flags (p,) of the `sites` (p,) whose neighbour along `direction` is a fluid site."""
        neighbours = self.coords[sites] + LINK_VECTORS[direction].astype(np.int64)
        if self._mask is not None:
            return self._mask.reshape(-1)[self._keys(neighbours)]
        for axis in range(3):
            if self.periodic[axis]:
                neighbours[:, axis] %= self.shape[axis]
        if not len(self._sorted):
            return np.zeros(len(sites), bool)
        keys = self._keys(neighbours)
        position = np.minimum(np.searchsorted(self._sorted, keys), len(self._sorted) - 1)
        return np.asarray(self._sorted[position] == keys)


def wall_direction(link_kind: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """Return the sum (m, 3) of the wall links of each row of `link_kind` (m, 26), an approximate outward direction."""
    return np.asarray((link_kind == LinkKind.WALL).astype(np.float64) @ LINK_VECTORS.astype(np.float64))


def outward_normals(sites: SiteSet) -> npt.NDArray[np.float32]:
    """Return unit wall normals (m, 3) out of the fluid, for either sign of `sites.wall_normal`.

    The HemeLB tool writes them outwards and the HemePure tools inwards; the sum of the wall links of a site determines
    the sign (flow.md 9.1, trap 1). The direction of this sum replaces zero normals of sites with wall links.
    """
    outwards = wall_direction(sites.link_kind)
    normal = sites.wall_normal.astype(np.float64)
    normal = np.where(np.einsum("ij,ij->i", normal, outwards)[:, None] < 0.0, -normal, normal)
    normal = np.where(np.any(normal != 0.0, axis=1, keepdims=True), normal, outwards)
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    return (normal / np.where(length > 0.0, length, 1.0)).astype(np.float32)


def role_kinds(iolets: Sequence[IoletPlane]) -> npt.NDArray[np.uint8]:
    """Return the kind of the links through each opening, (iolets,)."""
    return np.array([LinkKind.INLET if plane.role == "inlet" else LinkKind.OUTLET for plane in iolets], np.uint8)


def with_iolets(sites: SiteSet, iolets: Sequence[IoletPlane]) -> SiteSet:
    """Return `sites` with other planes at the same openings, and the link kinds of their roles."""
    if [plane.role for plane in iolets] == [plane.role for plane in sites.iolets]:
        return replace(sites, iolets=iolets)
    kinds = np.where(sites.link_iolet >= 0, role_kinds(iolets)[sites.link_iolet], sites.link_kind)
    return replace(sites, iolets=iolets, link_kind=kinds.astype(np.uint8))


def check_sites(sites: SiteSet) -> None:
    """Raise ValueError with the first invalid site if `sites` violates a rule of `SiteSet`."""
    _check_shapes(sites)
    coords = sites.coords
    outside = np.any((coords < 0) | (coords >= np.array(sites.shape)), axis=1)
    _raise_for_site(sites, np.flatnonzero(outside), f"lies outside the box {sites.shape}")
    _raise_for_site(sites, np.flatnonzero(np.diff(sites.keys()) <= 0) + 1, "is out of order or listed twice")
    rows = len(sites.boundary)
    if rows and (sites.boundary[0] < 0 or sites.boundary[-1] >= len(sites) or np.any(np.diff(sites.boundary) <= 0)):
        raise ValueError("boundary is not a list of ascending site indices")
    _check_links(sites)
    incomplete, absent = boundary_links(sites.shape, coords, sites.periodic)
    if rows:
        position = np.minimum(np.searchsorted(sites.boundary, incomplete), rows - 1)
        listed = (sites.boundary[position] == incomplete)[:, None]
        absent &= ~(listed & (sites.link_kind[position] != LinkKind.NONE))
    _raise_for_site(sites, incomplete[absent.any(axis=1)], "has a link that meets no fluid site and is not cut")


def _check_shapes(sites: SiteSet) -> None:
    n, m = len(sites.coords), len(sites.boundary)
    shapes = {"coords": (n, 3), "link_kind": (m, 26), "link_iolet": (m, 26), "link_fraction": (m, 26)}
    for name, shape in {**shapes, "wall_normal": (m, 3)}.items():
        actual = getattr(sites, name).shape
        if actual != shape:
            raise ValueError(f"{name} has shape {actual}; expected {shape}")


def _check_links(sites: SiteSet) -> None:
    """Check kinds, iolets, fractions and normals of the boundary rows."""
    kind, iolet, fraction = sites.link_kind, sites.link_iolet, sites.link_fraction
    cut = kind != LinkKind.NONE
    opening = (kind == LinkKind.INLET) | (kind == LinkKind.OUTLET)
    for invalid, reason in (
        (kind > LinkKind.OUTLET, "has a link of an unknown kind"),
        (~cut.any(axis=1, keepdims=True), "is listed as a boundary site but has no cut link"),
        (opening != (iolet >= 0), "has an iolet index on a link that is not an iolet link, or none on one that is"),
        (iolet >= len(sites.iolets), "names an iolet that does not exist"),
        (cut & ~((fraction > 0.0) & (fraction <= 1.0)), "has a cut link whose fraction is not in (0, 1]"),
        (~cut & (fraction != 0.0), "has a fraction on a link that is not cut"),
        (~np.isfinite(sites.wall_normal), "has a wall normal that is not finite"),
    ):
        _raise_for_site(sites, sites.boundary[invalid.any(axis=1)], reason)
    if len(sites.iolets):
        mixed = opening & (role_kinds(sites.iolets)[iolet] != kind)
        _raise_for_site(sites, sites.boundary[mixed.any(axis=1)], "mixes up inlet and outlet")


def _raise_for_site(sites: SiteSet, invalid: npt.NDArray[np.int64], reason: str) -> None:
    if len(invalid):
        x, y, z = (int(value) for value in sites.coords[invalid[0]])
        further_sites = f" (and {len(invalid) - 1} more)" if len(invalid) > 1 else ""
        raise ValueError(f"site ({x}, {y}, {z}){further_sites} {reason}")
