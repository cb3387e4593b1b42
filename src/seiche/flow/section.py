# SPDX-License-Identifier: BSD-3-Clause
"""Cross-section of an opening of any shape: area, flow rate of a velocity profile, profile of developed flow."""

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
#: Tolerance of the test whether a normal is along a lattice axis.
_ALIGNMENT_TOLERANCE = 1e-6


def opening_area(sites: SiteSet, iolet: int) -> float:
    """Return the area of iolet number `iolet` in squared spacings: its outer faces, projected along the normal."""
    _, crossing, normal = _links(sites, iolet, D3Q19)  # all velocity sets contain the links along the axes
    vectors = D3Q19.vectors[1:]
    axes = np.flatnonzero(np.abs(vectors).sum(axis=1) == 1)
    return float(np.abs(crossing[:, axes] @ (vectors[axes] @ normal)).sum())


def profile_flow_rate(sites: SiteSet, iolet: int, profile: SiteProfile, lattice: VelocitySet = D3Q19) -> float:
    """Return the inflow by Ladd's rule (eq. 16) in squared spacings times the imposed velocity.

    Raises:
        CaseError: `profile` has no value at a site of the opening.
    """
    coords, unit_inflow = _unit_inflow(sites, iolet, lattice)
    return float(unit_inflow @ values_at(profile, coords, sites.iolets[iolet].name))


def developed_profile(sites: SiteSet, iolet: int, lattice: VelocitySet = D3Q19) -> SiteProfile:
    """Return the profile of developed flow through the section of iolet `iolet`, of any shape (theory/flow, eq. 18).

    The profile is the solution of Poisson's equation on the section, with zero values on its boundary, which is
    half way between grid points. It is scaled so that the flow is the imposed velocity times the area. If the normal is
    along a lattice axis, the grid points are the sites, and the section may be periodic perpendicular to the normal.

    Raises:
        CaseError: there is no site or there are too many points, the section is too narrow or has no rim, or a periodic
            direction is not perpendicular to a normal along a lattice axis.
    """
    from scipy.ndimage import map_coordinates

    name = sites.iolets[iolet].name
    coords, unit_inflow = _unit_inflow(sites, iolet, lattice)
    if not len(coords):
        raise CaseError(
            f"iolet {name!r}: no site is adjacent to it, so its profile cannot be computed; use a finer spacing"
        )
    normal = np.array(sites.iolets[iolet].normal)
    first, second = _axes(normal)
    periodic = _periodic_axes(sites, normal, name)
    offset = coords - coords[0]
    plane_coordinates = np.stack([offset @ first, offset @ second], axis=1)
    low = np.floor(plane_coordinates.min(axis=0) + 1e-9).astype(np.int64) - 2
    shape = np.ceil(plane_coordinates.max(axis=0) - 1e-9).astype(np.int64) + 3 - low
    for k, axis in enumerate((first, second)):
        if periodic[k]:
            lattice_axis = int(np.argmax(axis))
            low[k], shape[k] = -coords[0, lattice_axis], sites.shape[lattice_axis]
    if shape[0] * shape[1] > MAX_POINTS:
        raise CaseError(f"iolet {name!r}: its section has more than {MAX_POINTS} grid points; use a coarser spacing")
    inside = _fluid_points(sites, iolet, coords[0], (first, second), low=low, shape=shape)
    speed = _poisson(_connected_to(inside, np.rint(plane_coordinates - low).astype(np.int64)), periodic)
    values = np.asarray(map_coordinates(speed, (plane_coordinates - low).T, order=1, mode="constant"), np.float64)
    flow = float(unit_inflow @ values)
    if not flow > 0.0:
        raise CaseError(f"iolet {name!r}: its section is too narrow for a computed profile; use a finer spacing")
    return SiteProfile(coords, values * (opening_area(sites, iolet) / flow))


def values_at(profile: SiteProfile, coords: Coordinates, name: str) -> Floats:
    """Return the values of `profile` at sites `coords` (n, 3) of the iolet `name`; CaseError for a missing value."""
    table = dict(zip(map(tuple, profile.coords.tolist()), profile.values, strict=True))
    requested = [tuple(point) for point in coords.tolist()]
    missing_names = sorted(set(requested) - set(table))
    if missing_names:
        sites = f"{len(missing_names)} of its sites, such as {list(missing_names[0])}"
        raise CaseError(f"iolet {name!r}: its profile has no value for {sites}")
    return np.array([table[point] for point in requested], np.float64)


def _links(sites: SiteSet, iolet: int, lattice: VelocitySet) -> tuple[Coordinates, npt.NDArray[np.bool_], Floats]:
    """Return the sites (m, 3) at an opening, flags of their links through it (m, directions), and its normal."""
    crossing = (sites.link_iolet == iolet)[:, lattice.link_rows]
    has_crossing_link = crossing.any(axis=1)
    coords = np.asarray(sites.coords[sites.boundary[has_crossing_link]], np.int64)
    return coords, crossing[has_crossing_link], np.array(sites.iolets[iolet].normal)


def _unit_inflow(sites: SiteSet, iolet: int, lattice: VelocitySet) -> tuple[Coordinates, Floats]:
    """Return the sites (m, 3) at an opening and the inflow (m,) through each at unit velocity (eq. 16)."""
    coords, crossing, normal = _links(sites, iolet, lattice)
    return coords, np.asarray(crossing @ (-6.0 * lattice.weights[1:] * (lattice.vectors[1:] @ normal)))


def _axes(normal: Floats) -> tuple[Floats, Floats]:
    """Return two directions perpendicular to `normal`; they are lattice axes if `normal` is along a lattice axis."""
    normal_axis = int(np.argmax(np.abs(normal)))
    tangential_axes = [axis for axis in range(3) if axis != normal_axis]
    if abs(normal[normal_axis]) > 1.0 - _ALIGNMENT_TOLERANCE:
        return np.eye(3)[tangential_axes[0]], np.eye(3)[tangential_axes[1]]
    first = np.cross(normal, np.eye(3)[int(np.argmin(np.abs(normal)))])
    first /= np.linalg.norm(first)
    return first, np.cross(normal, first)


def _periodic_axes(sites: SiteSet, normal: Floats, name: str) -> tuple[bool, bool]:
    """Return whether the section is periodic along each of its two axes; CaseError for other periodic directions."""
    normal_axis = int(np.argmax(np.abs(normal)))
    if any(sites.periodic) and (abs(normal[normal_axis]) <= 1.0 - _ALIGNMENT_TOLERANCE or sites.periodic[normal_axis]):
        raise CaseError(
            f"iolet {name!r}: a computed profile in a periodic geometry requires a normal along a lattice axis that is "
            "not periodic"
        )
    first, second = (sites.periodic[axis] for axis in range(3) if axis != normal_axis)
    if first and second:
        raise CaseError(f"iolet {name!r}: a computed profile requires a wall on at least one side")
    return first, second


def _fluid_points(
    sites: SiteSet,
    iolet: int,
    base_site: Coordinates,
    axes: tuple[Floats, Floats],
    *,
    low: Coordinates,
    shape: Coordinates,
) -> npt.NDArray[np.bool_]:
    """Return flags of the grid points in the fluid; the grid plane is so deep that nearest sites are in the fluid."""
    plane = sites.iolets[iolet]
    normal = np.array(plane.normal)
    center = (np.array(plane.center) - np.array(sites.origin)) / sites.spacing
    depth = 0.5 * float(np.abs(normal).sum()) + 1e-6
    start = base_site + (depth - float((base_site - center) @ normal)) * normal
    i, j = (np.arange(count) + first for count, first in zip(shape, low, strict=True))
    points = start + i[:, None, None] * axes[0] + j[None, :, None] * axes[1]
    return np.asarray(sites.find(np.rint(points).astype(np.int64)) >= 0)


def _connected_to(is_inside: npt.NDArray[np.bool_], seeds: Coordinates) -> npt.NDArray[np.bool_]:
    """Return the components of `is_inside` that contain a point of `seeds`; another vessel may cross the same plane."""
    from scipy.ndimage import label

    labels, _ = label(is_inside)
    seeded = np.unique(labels[seeds[:, 0], seeds[:, 1]])
    return np.asarray(np.isin(labels, seeded[seeded > 0]))


def _poisson(inside: npt.NDArray[np.bool_], periodic: tuple[bool, bool] = (False, False)) -> Floats:
    """Return the solution of -laplace u = 1 on the points `inside`, with u = 0 half way to outside points.

    The grid is periodic along the axes flagged in `periodic`.
    """
    from scipy.sparse import coo_array, csc_array
    from scipy.sparse.linalg import spsolve

    index_of_point = np.full(inside.shape, -1, np.int64)
    count = int(np.count_nonzero(inside))
    index_of_point[inside] = np.arange(count)
    diagonal = np.full(count, 8.0)  # the value at an outside neighbour is minus the value at the point
    rows, columns = [], []
    for axis in (0, 1):
        last = index_of_point.shape[axis] - (not periodic[axis])
        following = np.roll(index_of_point, -1, axis=axis)
        lower, upper = (np.take(values, range(last), axis=axis).reshape(-1) for values in (index_of_point, following))
        has_both = (lower >= 0) & (upper >= 0)
        rows += [lower[has_both], upper[has_both]]
        columns += [upper[has_both], lower[has_both]]
    np.subtract.at(diagonal, np.concatenate(rows), 1.0)
    diagonal_index = np.arange(count)
    indices = (np.concatenate([*rows, diagonal_index]), np.concatenate([*columns, diagonal_index]))
    entries = np.concatenate([np.full(len(indices[0]) - count, -1.0), diagonal])
    matrix = csc_array(coo_array((entries, indices), shape=(count, count)))
    result = np.zeros(inside.shape)
    if count:
        result[inside] = spsolve(matrix, np.ones(count))
    return result
