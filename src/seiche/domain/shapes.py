# SPDX-License-Identifier: BSD-3-Clause
"""Built-in geometries: tube, duct, channel, box, or any vessel given by a signed distance function.

Lengths are in metres. Nodes are at (i + 1/2) spacing from the corner or axis of the shape, so walls and openings at
whole numbers of spacings are half way between nodes. Openings are called "inlet" and "outlet".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seiche.domain.assemble import assemble
from seiche.domain.bifurcation import bifurcation_surface as bifurcation_surface
from seiche.domain.candidates import TOUCH_TOLERANCE, CandidateNodes, Floats
from seiche.domain.implicit_walls import Distance, ImplicitWall, ShapeEnds, ShapeWall
from seiche.domain.obstacles import no_wall, with_obstacles
from seiche.domain.set_up_ranks import joined, own_share
from seiche.domain.site_rows import SiteRows, joined_rows
from seiche.domain.sites import IoletPlane, SiteSet
from seiche.domain.solids import SolidBody
from seiche.errors import CaseError
from seiche.set_up import set_up_stage

#: Nodes per evaluation of the distance; bounds the memory.
CHUNK = 1 << 19


def tube(
    radius: float,
    length: float,
    spacing: float,
    axis: Sequence[float] = (1.0, 0.0, 0.0),
    *,
    periodic: bool = False,
    obstacles: Sequence[SolidBody] = (),
) -> SiteSet:
    """Make a round tube whose axis runs from the origin along `axis`; the ends are "inlet" and "outlet".

    `axis` is any direction. A `periodic` tube has no ends: its axis must be a lattice axis (either sign) and its
    length a whole number of spacings. `obstacles` are solid bodies in it. Raises CaseError when a length is not
    positive or no site fits.
    """
    _check_positive(radius=radius, length=length, spacing=spacing)
    direction = _unit(axis)
    main_axis = int(np.argmax(np.abs(direction)))
    if periodic and abs(direction[main_axis]) < 1.0:
        raise CaseError(
            f"a periodic tube must lie along a lattice axis, not along {tuple(float(value) for value in axis)}"
        )

    distance = ShapeWall.round_tube(direction, radius)
    half_extent = radius * np.sqrt(np.maximum(1.0 - direction**2, 0.0))
    low, high = np.minimum(0.0, length * direction) - half_extent, np.maximum(0.0, length * direction) + half_extent
    if periodic:
        _check_whole_spacings(length=length, spacing=spacing)
        periodic_axes = (main_axis == 0, main_axis == 1, main_axis == 2)
        return sites_from_distance(distance, low, high, spacing, periodic=periodic_axes, obstacles=obstacles)

    iolets, ends = tube_ends(radius, length, axis), ShapeEnds(direction, length)
    return sites_from_distance(distance, low, high, spacing, iolets, region=ends, obstacles=obstacles)


def tube_ends(radius: float, length: float, axis: Sequence[float]) -> tuple[IoletPlane, IoletPlane]:
    """Return the openings of a tube."""
    return _ends(_unit(axis), length, radius)


def duct(
    width: float,
    height: float,
    length: float,
    spacing: float,
    *,
    periodic: bool = True,
    plates: bool = False,
    obstacles: Sequence[SolidBody] = (),
) -> SiteSet:
    """Make a rectangular duct along x, `width` along y and `height` along z, with one corner at the origin.

    Periodic along x (`length` must then be a whole number of spacings), or open at "inlet" (x = 0) and "outlet". With
    `plates` its only walls are those at y = 0 and y = `width`, and it is periodic along z (a whole number of spacings).
    `obstacles` are solid bodies in it.
    """
    _check_positive(width=width, height=height, length=length, spacing=spacing)
    half_widths = (0.5 * width, np.inf if plates else 0.5 * height)
    distance = ShapeWall.plates((0.5 * width, 0.5 * height), half_widths)
    low, high, periodic_axes = (0.0, 0.0, 0.0), (length, width, height), (periodic, False, plates)
    if plates:
        _check_whole_spacings(height=height, spacing=spacing)
    if periodic:
        _check_whole_spacings(length=length, spacing=spacing)
        return sites_from_distance(distance, low, high, spacing, periodic=periodic_axes, obstacles=obstacles)

    iolets, ends = duct_ends(width, height, length), ShapeEnds(np.array([1.0, 0.0, 0.0]), length)
    return sites_from_distance(
        distance, low, high, spacing, iolets, periodic=periodic_axes, region=ends, obstacles=obstacles
    )


def duct_ends(width: float, height: float, length: float) -> tuple[IoletPlane, IoletPlane]:
    """Return the openings of a duct."""
    center = (0.0, 0.5 * width, 0.5 * height)
    return _ends(np.array([1.0, 0.0, 0.0]), length, 0.5 * float(np.hypot(width, height)), center)


def channel(
    height: float, length: float, width: float, spacing: float, *, obstacles: Sequence[SolidBody] = ()
) -> SiteSet:
    """Make the gap 0 < z < `height` between two plates, periodic along x (`length`) and y (`width`).

    All three must be whole numbers of spacings: the plates are then half way between nodes. `obstacles` are solid
    bodies in it.
    """
    _check_positive(height=height, length=length, width=width, spacing=spacing)
    _check_whole_spacings(height=height, length=length, width=width, spacing=spacing)

    distance = ShapeWall.plates((0.0, 0.5 * height), (np.inf, 0.5 * height))
    high = (length, width, height)
    periodic_axes = (True, True, False)
    return sites_from_distance(distance, (0.0, 0.0, 0.0), high, spacing, periodic=periodic_axes, obstacles=obstacles)


def box(shape: tuple[int, int, int], spacing: float = 1.0, *, obstacles: Sequence[SolidBody] = ()) -> SiteSet:
    """Make a box of `shape` sites, less those in `obstacles`, that is periodic in all directions."""
    _check_positive(spacing=spacing)
    if min(shape) < 1:
        raise CaseError(f"a box requires at least one site along each axis, not {tuple(shape)}")
    if obstacles:
        high = spacing * np.array(shape, float)
        all_periodic = (True, True, True)
        return sites_from_distance(no_wall, np.zeros(3), high, spacing, periodic=all_periodic, obstacles=obstacles)
    layers, (_, ny, nz) = own_share(shape[0]), shape
    coords = np.empty((len(layers), ny, nz, 3), np.int32)
    for axis, index in enumerate(np.ix_(*(np.asarray(extent, np.int32) for extent in (layers, range(ny), range(nz))))):
        coords[..., axis] = index
    corner = 0.5 * spacing
    return SiteSet(shape, joined(coords.reshape(-1, 3)), spacing, (corner, corner, corner), (True, True, True))


@set_up_stage("voxelise")
def sites_from_distance(
    distance: Distance,
    low: Sequence[float] | Floats,
    high: Sequence[float] | Floats,
    spacing: float,
    iolets: Sequence[IoletPlane] = (),
    *,
    periodic: tuple[bool, bool, bool] = (False, False, False),
    region: Distance | None = None,
    obstacles: Sequence[SolidBody] = (),
) -> SiteSet:
    """Fill the part of the box from `low` to `high` (metres) where `distance` is negative, up to the `iolets`.

    Nodes are at (i + 1/2) spacing. In a periodic direction the box must be a whole number of spacings long. Link
    fractions are the roots of `distance` along the link (to 1e-9 of a link), normals its gradient there.
    `region` is negative where nodes are allowed, without being a wall (the space between the ends of a tube). Without
    it, components without an iolet are removed, such as those beyond the openings. `obstacles` are solid bodies in the
    box, repeated along its periodic directions.
    """
    distance = with_obstacles(distance, obstacles, (np.asarray(low, float), np.asarray(high, float)), spacing, periodic)
    first = np.floor(np.asarray(low, float) / spacing + 1e-6).astype(np.int64)
    last = np.ceil(np.asarray(high, float) / spacing - 1e-6).astype(np.int64)
    nx, ny, nz = (last - first).tolist()
    x, y, z = ((first + 0.5) * spacing).tolist()
    grid = _Grid((nx, ny, nz), spacing, (x, y, z), periodic)
    if isinstance(distance, ShapeWall) and (region is None or isinstance(region, ShapeEnds)):
        rows = distance.fluid_rows(grid.shape, periodic, grid.origin, spacing, region)
    else:
        rows = _fluid_rows(grid, (distance,) if region is None else (distance, region))
    if not len(rows):
        raise CaseError(f"the geometry contains no site at the spacing {spacing:g} m; use a smaller spacing")
    wall = ImplicitWall(distance, spacing)
    return assemble(CandidateNodes(rows, spacing, grid.origin), iolets, wall.find, prune=region is None)[0]


@dataclass(frozen=True)
class _Grid:
    """The lattice nodes of a box."""

    shape: tuple[int, int, int]
    spacing: float
    origin: tuple[float, float, float]
    periodic: tuple[bool, bool, bool]


def _fluid_rows(grid: _Grid, bounds: Sequence[Distance]) -> SiteRows:
    """Return the nodes where all of `bounds` are negative (collective)."""
    nx, ny, nz = grid.shape
    layers, own_layers = max(1, CHUNK // (ny * nz)), own_share(nx)
    accepted = [SiteRows.of_coords(grid.shape, grid.periodic, np.zeros((0, 3), np.int32))]
    for start in range(own_layers.start, own_layers.stop, layers):
        nodes = np.indices((min(layers, own_layers.stop - start), ny, nz), dtype=np.int32).reshape(3, -1).T
        nodes[:, 0] += start
        points = np.asarray(grid.origin) + grid.spacing * nodes
        inside = np.all([bound(points) < -TOUCH_TOLERANCE * grid.spacing for bound in bounds], axis=0)
        accepted.append(SiteRows.of_coords(grid.shape, grid.periodic, np.ascontiguousarray(nodes[inside])))
    return joined_rows(SiteRows.merged(accepted))


def _ends(
    direction: Floats, length: float, radius: float, center: tuple[float, float, float] = (0.0, 0.0, 0.0)
) -> tuple[IoletPlane, IoletPlane]:
    x, y, z = (float(value) + 0.0 for value in direction)
    end_x, end_y, end_z = (np.asarray(center) + length * direction).tolist()
    return (
        IoletPlane("inlet", "inlet", center, (x, y, z), radius),
        IoletPlane("outlet", "outlet", (end_x, end_y, end_z), (0.0 - x, 0.0 - y, 0.0 - z), radius),
    )


def _unit(axis: Sequence[float]) -> Floats:
    vector = np.asarray(axis, float)
    length = float(np.linalg.norm(vector))
    if vector.shape != (3,) or not np.isfinite(length) or length == 0.0:
        raise CaseError(f"an axis must be three finite numbers, not all zero, but is {axis}")
    return vector / length


def _check_positive(**lengths: float) -> None:
    for name, value in lengths.items():
        if not (np.isfinite(value) and value > 0.0):
            raise CaseError(f"{name} = {value:g} m must be positive")


def _check_whole_spacings(spacing: float, **lengths: float) -> None:
    for name, value in lengths.items():
        if round(value / spacing) < 1 or abs(value / spacing - round(value / spacing)) > 1e-6:
            raise CaseError(f"{name} = {value:g} m must be a whole number of spacings of {spacing:g} m")
