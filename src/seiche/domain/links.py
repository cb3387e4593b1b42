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

from seiche.domain.set_up_ranks import joined, own_share
from seiche.domain.site_rows import SiteRows
from seiche.domain.sites import LINK_VECTORS, IoletPlane, LinkKind, SiteSet


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
    """Find the sites `coords` (n, 3), ascending inside `shape`, with absent neighbours.

    Returns their ascending indices (m,), and flags (m, 26) of the absent neighbours.
    """
    boundary, links = SiteRows.of_coords(shape, periodic, coords).incomplete()
    return boundary, flags_of_links(links)


def flags_of_links(links: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
    """Return flags (m, 26) of the bits of `links` (m,)."""
    flags = np.unpackbits(links.astype("<u4").view(np.uint8).reshape(-1, 4), axis=1, bitorder="little")
    return flags[:, :26].view(bool)


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
    """Return `sites` with other planes at the same openings, and the link kinds of their roles (collective)."""
    if [plane.role for plane in iolets] == [plane.role for plane in sites.iolets]:
        return replace(sites, iolets=iolets)
    share = own_share(len(sites.boundary))
    own_rows = slice(share.start, share.stop)
    kinds = np.where(
        sites.link_iolet[own_rows] >= 0, role_kinds(iolets)[sites.link_iolet[own_rows]], sites.link_kind[own_rows]
    )
    return replace(sites, iolets=iolets, link_kind=joined(kinds.astype(np.uint8)))


def check_sites(sites: SiteSet, incomplete: tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]] | None = None) -> None:
    """Raise ValueError with the first invalid site if `sites` violates a rule of `SiteSet`.

    For a part of a vessel, `incomplete` are its sites with absent neighbours in the vessel, as from `boundary_links`.
    """
    _check_shapes(sites)
    coords = sites.coords
    outside = np.any((coords < 0) | (coords >= np.array(sites.shape)), axis=1)
    _raise_for_site(sites, np.flatnonzero(outside), f"lies outside the box {sites.shape}")
    _raise_for_site(sites, np.flatnonzero(np.diff(sites.keys()) <= 0) + 1, "is out of order or listed twice")
    rows = len(sites.boundary)
    if rows and (sites.boundary[0] < 0 or sites.boundary[-1] >= len(sites) or np.any(np.diff(sites.boundary) <= 0)):
        raise ValueError("boundary is not a list of ascending site indices")
    _check_links(sites)
    site, absent = incomplete or boundary_links(sites.shape, coords, sites.periodic)
    if rows:
        position = np.minimum(np.searchsorted(sites.boundary, site), rows - 1)
        listed = (sites.boundary[position] == site)[:, None]
        absent &= ~(listed & (sites.link_kind[position] != LinkKind.NONE))
    _raise_for_site(sites, site[absent.any(axis=1)], "has a link that meets no fluid site and is not cut")


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
