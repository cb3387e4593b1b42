# SPDX-License-Identifier: BSD-3-Clause
"""Built-in geometries: tube, duct, channel, box, or any vessel given by a signed distance function.

Lengths are in metres. Nodes are at (i + 1/2) spacing from the corner or axis of the shape, so walls and openings at
whole numbers of spacings are half way between nodes. Openings are called "inlet" and "outlet".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from seiche.domain.assemble import TOUCH_TOLERANCE, CandidateNodes, Floats, WallHits, assemble
from seiche.domain.bifurcation import bifurcation_surface as bifurcation_surface
from seiche.domain.obstacles import no_wall, with_obstacles
from seiche.domain.sites import LINK_VECTORS, IoletPlane, SiteSet
from seiche.domain.solids import SolidBody
from seiche.errors import CaseError

#: Distance (p,) in metres of points (p, 3) from the wall, negative in the fluid; only its zero level must be exact.
Distance = Callable[[Floats], Floats]
#: Nodes per evaluation of the distance; bounds the memory.
CHUNK = 1 << 19
_ROOT_STEPS = 60


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

    def distance(points: Floats) -> Floats:
        axial = points @ direction
        squared = np.einsum("ij,ij->i", points, points) - axial * axial
        return np.asarray(np.sqrt(np.maximum(squared, 0.0)) - radius)

    half_extent = radius * np.sqrt(np.maximum(1.0 - direction**2, 0.0))
    low, high = np.minimum(0.0, length * direction) - half_extent, np.maximum(0.0, length * direction) + half_extent
    if periodic:
        _check_whole_spacings(length=length, spacing=spacing)
        periodic_axes = (main_axis == 0, main_axis == 1, main_axis == 2)
        return sites_from_distance(distance, low, high, spacing, periodic=periodic_axes, obstacles=obstacles)

    def beyond_ends(points: Floats) -> Floats:
        axial = points @ direction
        return np.asarray(np.maximum(-axial, axial - length))

    iolets = tube_ends(radius, length, axis)
    return sites_from_distance(distance, low, high, spacing, iolets, region=beyond_ends, obstacles=obstacles)


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
    half_widths = np.array([0.5 * width, np.inf if plates else 0.5 * height])
    center = np.array([0.5 * width, 0.5 * height])

    def distance(points: Floats) -> Floats:
        return np.asarray(np.max(np.abs(points[:, 1:] - center) - half_widths, axis=1))

    low, high, periodic_axes = (0.0, 0.0, 0.0), (length, width, height), (periodic, False, plates)
    if plates:
        _check_whole_spacings(height=height, spacing=spacing)
    if periodic:
        _check_whole_spacings(length=length, spacing=spacing)
        return sites_from_distance(distance, low, high, spacing, periodic=periodic_axes, obstacles=obstacles)

    def beyond_ends(points: Floats) -> Floats:
        return np.maximum(-points[:, 0], points[:, 0] - length)

    iolets = duct_ends(width, height, length)
    return sites_from_distance(
        distance, low, high, spacing, iolets, periodic=periodic_axes, region=beyond_ends, obstacles=obstacles
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

    def distance(points: Floats) -> Floats:
        return np.asarray(np.abs(points[:, 2] - 0.5 * height) - 0.5 * height)

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
    coords = np.empty((shape[0] * shape[1] * shape[2], 3), np.int32)
    for axis, index in enumerate(np.ix_(*(np.arange(extent, dtype=np.int32) for extent in shape))):
        coords[:, axis].reshape(shape)[...] = index
    corner = 0.5 * spacing
    return SiteSet(shape, coords, spacing, (corner, corner, corner), (True, True, True))


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
    lattice = CandidateNodes((nx, ny, nz), np.zeros((0, 3), np.int32), spacing, (x, y, z), periodic)
    coords = _fluid_nodes(lattice, (distance,) if region is None else (distance, region))
    if not len(coords):
        raise CaseError(f"the geometry contains no site at the spacing {spacing:g} m; use a smaller spacing")
    wall = ImplicitWall(distance, spacing)
    return assemble(replace(lattice, coords=coords), iolets, wall.find, prune=region is None)[0]


def _fluid_nodes(lattice: CandidateNodes, bounds: Sequence[Distance]) -> npt.NDArray[np.int32]:
    """Return the coordinates (n, 3) of the nodes where all of `bounds` are negative."""
    nx, ny, nz = lattice.shape
    layers = max(1, CHUNK // (ny * nz))
    accepted = []
    for start in range(0, nx, layers):
        nodes = np.indices((min(layers, nx - start), ny, nz), dtype=np.int32).reshape(3, -1).T
        nodes[:, 0] += start
        points = np.asarray(lattice.origin) + lattice.spacing * nodes
        inside = np.all([bound(points) < -TOUCH_TOLERANCE * lattice.spacing for bound in bounds], axis=0)
        accepted.append(np.ascontiguousarray(nodes[inside]))
    return np.concatenate(accepted)


@dataclass(frozen=True)
class ImplicitWall:
    """The zero surface of a distance function, as a wall for `assemble`."""

    distance: Distance
    spacing: float

    def find(self, lattice: CandidateNodes, node: npt.NDArray[np.int64], direction: npt.NDArray[np.int64]) -> WallHits:
        """Return the wall hits of the links from the nodes `node` (p,) along `direction` (p,)."""
        fraction = np.empty(len(node))
        normal = np.empty((len(node), 3))
        for begin in range(0, len(node), CHUNK):
            rows = slice(begin, begin + CHUNK)
            starts = lattice.positions(node[rows])
            vectors = self.spacing * LINK_VECTORS[direction[rows]].astype(np.float64)
            fraction[rows] = self._roots(starts, vectors)
            normal[rows] = self._gradient(starts + np.nan_to_num(fraction[rows])[:, None] * vectors)
        return WallHits(fraction, normal, np.full(len(node), -1, np.int16))

    def _roots(self, starts: Floats, vectors: Floats) -> Floats:
        """Find the root of the distance on each segment by the Illinois method (regula falsi); NaN without a root."""
        lower, upper = np.zeros(len(starts)), np.ones(len(starts))
        below, above = self.distance(starts), self.distance(starts + vectors)
        fraction = np.full(len(starts), np.nan)
        active = np.flatnonzero(above >= 0.0)
        lower, upper, below, above = lower[active], upper[active], below[active], above[active]
        for _ in range(_ROOT_STEPS):
            if not len(active):
                break
            guess = np.clip(lower - below * (upper - lower) / np.where(above > below, above - below, 1.0), lower, upper)
            value = self.distance(starts[active] + guess[:, None] * vectors[active])
            fraction[active] = guess
            inside = value < 0.0
            above = np.where(inside, above * np.where(lower > 0.0, 0.5, 1.0), value)
            below = np.where(inside, value, below * np.where(upper < 1.0, 0.5, 1.0))
            lower, upper = np.where(inside, guess, lower), np.where(inside, upper, guess)
            pending = (np.abs(value) > 1e-10 * self.spacing) & (upper - lower > 1e-10)
            active, lower, upper = active[pending], lower[pending], upper[pending]
            below, above = below[pending], above[pending]
        return fraction

    def _gradient(self, points: Floats) -> Floats:
        """Return the unit gradient of the distance at `points` (p, 3), by central differences."""
        shifts = 1e-3 * self.spacing * np.eye(3)
        gradient = np.stack([self.distance(points + s) - self.distance(points - s) for s in shifts], axis=1)
        length = np.linalg.norm(gradient, axis=1, keepdims=True)
        return np.asarray(gradient / np.where(length > 0.0, length, 1.0))


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
