# SPDX-License-Identifier: BSD-3-Clause
"""Cross-section of an opening of any shape: its area, the flow of a profile, the profile of developed flow."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seiche.domain.sites import SiteSet
from seiche.errors import CaseError
from seiche.flow.model import SiteProfile
from seiche.flow.velocity_set import D3Q19, VelocitySet

Floats = npt.NDArray[np.float64]
Coordinates = npt.NDArray[np.int64]

#: Maximum number of grid points of a section.
MAX_POINTS = 4_000_000
#: Tolerance of the test whether a normal lies along a lattice axis.
_ALIGNED = 1e-6


def opening_area(sites: SiteSet, iolet: int) -> float:
    """Return the area of iolet number `iolet` in squared spacings: its outer faces, projected along the normal."""
    _, crossing, normal = _links(sites, iolet, D3Q19)  # any velocity set: its links along the axes cross the faces
    vectors = D3Q19.vectors[1:]
    axes = np.flatnonzero(np.abs(vectors).sum(axis=1) == 1)
    return float(np.abs(crossing[:, axes] @ (vectors[axes] @ normal)).sum())


def flow_of_profile(sites: SiteSet, iolet: int, profile: SiteProfile, lattice: VelocitySet = D3Q19) -> float:
    """Return the inflow by Ladd's rule (eq. 16) in squared spacings times the imposed velocity; may raise CaseError."""
    coords, passing = _passing(sites, iolet, lattice)
    return float(passing @ values_at(profile, coords, sites.iolets[iolet].name))


def developed_profile(sites: SiteSet, iolet: int, lattice: VelocitySet = D3Q19) -> SiteProfile:
    """Return the profile of developed flow through the section of iolet `iolet`, of any shape (theory/flow, eq. 18).

    The profile is the solution of Poisson's equation on the section, with zero values on its rim, which is half way
    between grid points. It is scaled so that the flow is the imposed velocity times the area. If the normal is along a
    lattice axis, the grid points are the sites, and the section may be periodic perpendicular to the normal.

    Raises:
        CaseError: there is no site or there are too many points, the section is too narrow or has no rim, or a periodic
            direction is not perpendicular to a normal along a lattice axis.
    """
    from scipy.ndimage import map_coordinates

    name = sites.iolets[iolet].name
    coords, passing = _passing(sites, iolet, lattice)
    if not len(coords):
        raise CaseError(
            f"iolet {name!r}: no site is adjacent to it, so its profile cannot be computed; use a finer spacing"
        )
    normal = np.array(sites.iolets[iolet].normal)
    first, second = _axes(normal)
    wraps = _wraps(sites, normal, name)
    offset = coords - coords[0]
    plane_coordinates = np.stack([offset @ first, offset @ second], axis=1)
    low = np.floor(plane_coordinates.min(axis=0) + 1e-9).astype(np.int64) - 2
    shape = np.ceil(plane_coordinates.max(axis=0) - 1e-9).astype(np.int64) + 3 - low
    for k, axis in enumerate((first, second)):
        if wraps[k]:
            lattice_axis = int(np.argmax(axis))
            low[k], shape[k] = -coords[0, lattice_axis], sites.shape[lattice_axis]
    if shape[0] * shape[1] > MAX_POINTS:
        raise CaseError(f"iolet {name!r}: its section has more than {MAX_POINTS} grid points; use a coarser spacing")
    inside = _inside(sites, iolet, coords[0], (first, second), low=low, shape=shape)
    speed = _poisson(_connected_to(inside, np.rint(plane_coordinates - low).astype(np.int64)), wraps)
    values = np.asarray(map_coordinates(speed, (plane_coordinates - low).T, order=1, mode="constant"), np.float64)
    flow = float(passing @ values)
    if not flow > 0.0:
        raise CaseError(f"iolet {name!r}: its section is too narrow for a computed profile; use a finer spacing")
    return SiteProfile(coords, values * (opening_area(sites, iolet) / flow))


def values_at(profile: SiteProfile, coords: Coordinates, name: str) -> Floats:
    """Return the values of `profile` at sites `coords` (n, 3) of the iolet `name`; CaseError for a missing value."""
    table = dict(zip(map(tuple, profile.coords.tolist()), profile.values, strict=True))
    requested = [tuple(point) for point in coords.tolist()]
    missing = sorted(set(requested) - set(table))
    if missing:
        sites = f"{len(missing)} of its sites, such as {list(missing[0])}"
        raise CaseError(f"iolet {name!r}: its profile has no value for {sites}")
    return np.array([table[point] for point in requested], np.float64)


def _links(sites: SiteSet, iolet: int, lattice: VelocitySet) -> tuple[Coordinates, npt.NDArray[np.bool_], Floats]:
    """Return the sites (m, 3) of an opening, flags of the links through it (m, directions), and its normal."""
    crossing = (sites.link_iolet == iolet)[:, lattice.link_rows]
    touched = crossing.any(axis=1)
    coords = np.asarray(sites.coords[sites.boundary[touched]], np.int64)
    return coords, crossing[touched], np.array(sites.iolets[iolet].normal)


def _passing(sites: SiteSet, iolet: int, lattice: VelocitySet) -> tuple[Coordinates, Floats]:
    """Return the sites (m, 3) of an opening and the inflow (m,) of each at unit velocity (eq. 16)."""
    coords, crossing, normal = _links(sites, iolet, lattice)
    return coords, np.asarray(crossing @ (-6.0 * lattice.weights[1:] * (lattice.vectors[1:] @ normal)))


def _axes(normal: Floats) -> tuple[Floats, Floats]:
    """Return two directions perpendicular to `normal`; they are lattice axes if `normal` is along a lattice axis."""
    axis_of_normal = int(np.argmax(np.abs(normal)))
    tangential = [axis for axis in range(3) if axis != axis_of_normal]
    if abs(normal[axis_of_normal]) > 1.0 - _ALIGNED:
        return np.eye(3)[tangential[0]], np.eye(3)[tangential[1]]
    first = np.cross(normal, np.eye(3)[int(np.argmin(np.abs(normal)))])
    first /= np.linalg.norm(first)
    return first, np.cross(normal, first)


def _wraps(sites: SiteSet, normal: Floats, name: str) -> tuple[bool, bool]:
    """Return whether the section is periodic along each of its two axes; CaseError for other periodic directions."""
    aligned = int(np.argmax(np.abs(normal)))
    if any(sites.periodic) and (abs(normal[aligned]) <= 1.0 - _ALIGNED or sites.periodic[aligned]):
        raise CaseError(
            f"iolet {name!r}: a computed profile in a periodic geometry requires a normal along a lattice axis that is "
            "not periodic"
        )
    first, second = (sites.periodic[axis] for axis in range(3) if axis != aligned)
    if first and second:
        raise CaseError(f"iolet {name!r}: a computed profile requires a wall on at least one side")
    return first, second


def _inside(
    sites: SiteSet, iolet: int, base: Coordinates, axes: tuple[Floats, Floats], *, low: Coordinates, shape: Coordinates
) -> npt.NDArray[np.bool_]:
    """Return flags of the grid points in the fluid, at a depth at which the nearest site is on the fluid side."""
    plane = sites.iolets[iolet]
    normal = np.array(plane.normal)
    center = (np.array(plane.center) - np.array(sites.origin)) / sites.spacing
    depth = 0.5 * float(np.abs(normal).sum()) + 1e-6
    start = base + (depth - float((base - center) @ normal)) * normal
    i, j = (np.arange(n) + at for n, at in zip(shape, low, strict=True))
    points = start + i[:, None, None] * axes[0] + j[None, :, None] * axes[1]
    return np.asarray(sites.find(np.rint(points).astype(np.int64)) >= 0)


def _connected_to(inside: npt.NDArray[np.bool_], seeds: Coordinates) -> npt.NDArray[np.bool_]:
    """Return the components of `inside` that contain a point of `seeds`; another vessel may cross the same plane."""
    from scipy.ndimage import label

    labels, _ = label(inside)
    seeded = np.unique(labels[seeds[:, 0], seeds[:, 1]])
    return np.asarray(np.isin(labels, seeded[seeded > 0]))


def _poisson(inside: npt.NDArray[np.bool_], wraps: tuple[bool, bool] = (False, False)) -> Floats:
    """Return the solution of -laplace u = 1 on the points `inside`, with u = 0 half way to the points outside.

    The grid is periodic along the axes flagged in `wraps`.
    """
    from scipy.sparse import coo_array, csc_array
    from scipy.sparse.linalg import spsolve

    number = np.full(inside.shape, -1, np.int64)
    count = int(np.count_nonzero(inside))
    number[inside] = np.arange(count)
    diagonal = np.full(count, 8.0)  # zero on the rim: the value outside is minus that of the adjacent point
    rows, columns = [], []
    for axis in (0, 1):
        last = number.shape[axis] - (not wraps[axis])
        following = np.roll(number, -1, axis=axis)
        lower, upper = (np.take(values, range(last), axis=axis).reshape(-1) for values in (number, following))
        both = (lower >= 0) & (upper >= 0)
        rows += [lower[both], upper[both]]
        columns += [upper[both], lower[both]]
    np.subtract.at(diagonal, np.concatenate(rows), 1.0)
    index = np.arange(count)
    indices = (np.concatenate([*rows, index]), np.concatenate([*columns, index]))
    entries = np.concatenate([np.full(len(indices[0]) - count, -1.0), diagonal])
    matrix = csc_array(coo_array((entries, indices), shape=(count, count)))
    result = np.zeros(inside.shape)
    if count:
        result[inside] = spsolve(matrix, np.ones(count))
    return result
