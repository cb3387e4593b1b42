# SPDX-License-Identifier: BSD-3-Clause
"""Built-in geometries: tube, duct, channel, box, or any vessel that a signed distance function describes.

Lengths are in metres. Nodes sit at (i + 1/2) spacing from the corner or axis of the shape, so that walls and openings
at whole numbers of spacings lie half way between nodes. Openings are called "inlet" and "outlet".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seiche.domain.assemble import TOUCHING, CandidateNodes, Floats, WallHits, assemble
from seiche.domain.bifurcation import bifurcation_surface as bifurcation_surface
from seiche.domain.sites import LINK_VECTORS, IoletPlane, SiteSet
from seiche.errors import CaseError

#: Distance (p,) in metres of points (p, 3) from the wall, negative in the fluid; it need be exact only at zero.
Distance = Callable[[Floats], Floats]
#: Nodes for which the distance is evaluated at once; bounds the memory of making a shape.
CHUNK = 1 << 19
_ROOT_STEPS = 60


def tube(
    radius: float, length: float, spacing: float, axis: Sequence[float] = (1.0, 0.0, 0.0), *, periodic: bool = False
) -> SiteSet:
    """Make a round tube whose axis runs from the origin along `axis`; the ends are "inlet" and "outlet".

    `axis` is any direction. A `periodic` tube has no ends: its axis must be a lattice axis (either sign) and its
    length a whole number of spacings. Raises CaseError when a length is not positive or no site fits.
    """
    _positive(radius=radius, length=length, spacing=spacing)
    direction = _unit(axis)
    along = int(np.argmax(np.abs(direction)))
    if periodic and abs(direction[along]) < 1.0:
        raise CaseError(f"a periodic tube needs a lattice axis, not {tuple(float(value) for value in axis)}")

    def distance(points: Floats) -> Floats:
        axial = points @ direction
        squared = np.einsum("ij,ij->i", points, points) - axial * axial
        result: Floats = np.sqrt(np.maximum(squared, 0.0)) - radius
        return result

    reach = radius * np.sqrt(np.maximum(1.0 - direction**2, 0.0))
    low, high = np.minimum(0.0, length * direction) - reach, np.maximum(0.0, length * direction) + reach
    wraps = [False, False, False]
    if periodic:
        _whole(length=length, spacing=spacing)
        wraps[along] = True
    if periodic:
        return sites_from_distance(distance, low, high, spacing, periodic=(wraps[0], wraps[1], wraps[2]))

    def past_the_ends(points: Floats) -> Floats:
        axial = points @ direction
        result: Floats = np.maximum(-axial, axial - length)
        return result

    return sites_from_distance(distance, low, high, spacing, _ends(direction, length, radius), region=past_the_ends)


def duct(width: float, height: float, length: float, spacing: float, *, periodic: bool = True) -> SiteSet:
    """Make a rectangular duct along x, `width` along y and `height` along z, with one corner at the origin.

    Periodic along x (`length` must then be a whole number of spacings), or open at "inlet" (x = 0) and "outlet".
    """
    _positive(width=width, height=height, length=length, spacing=spacing)
    middle, half = np.array([0.5 * width, 0.5 * height]), np.array([0.5 * width, 0.5 * height])

    def distance(points: Floats) -> Floats:
        result: Floats = np.max(np.abs(points[:, 1:] - middle) - half, axis=1)
        return result

    low, high = (0.0, 0.0, 0.0), (length, width, height)
    if periodic:
        _whole(length=length, spacing=spacing)
        return sites_from_distance(distance, low, high, spacing, periodic=(True, False, False))

    def past_the_ends(points: Floats) -> Floats:
        result: Floats = np.maximum(-points[:, 0], points[:, 0] - length)
        return result

    center = (0.0, 0.5 * width, 0.5 * height)
    iolets = _ends(np.array([1.0, 0.0, 0.0]), length, float(np.hypot(*half)), center)
    return sites_from_distance(distance, low, high, spacing, iolets, region=past_the_ends)


def channel(height: float, length: float, width: float, spacing: float) -> SiteSet:
    """Make the gap 0 < z < `height` between two plates, periodic along x (`length`) and y (`width`).

    All three must be whole numbers of spacings: the plates then lie half way between nodes.
    """
    _positive(height=height, length=length, width=width, spacing=spacing)
    _whole(height=height, spacing=spacing)
    _whole(length=length, spacing=spacing)
    _whole(width=width, spacing=spacing)

    def distance(points: Floats) -> Floats:
        result: Floats = np.abs(points[:, 2] - 0.5 * height) - 0.5 * height
        return result

    high = (length, width, height)
    return sites_from_distance(distance, (0.0, 0.0, 0.0), high, spacing, periodic=(True, True, False))


def box(shape: tuple[int, int, int], spacing: float = 1.0) -> SiteSet:
    """Make a box of `shape` sites that is periodic in all directions."""
    _positive(spacing=spacing)
    if min(shape) < 1:
        raise CaseError(f"a box needs at least one site along each axis, not {tuple(shape)}")
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
) -> SiteSet:
    """Fill the part of the box from `low` to `high` (metres) where `distance` is negative, up to the `iolets`.

    Nodes lie at (i + 1/2) spacing. In a periodic direction the box must be a whole number of spacings long. Link
    fractions are the roots of `distance` along the link (to 1e-9 of a link), normals its gradient there.
    `region` is negative where nodes may lie, without being a wall (the space between the ends of a tube). Without it,
    parts that no iolet opens into are left out, such as what lies beyond the openings.
    """
    first = np.floor(np.asarray(low, float) / spacing + 1e-6).astype(np.int64)
    last = np.ceil(np.asarray(high, float) / spacing - 1e-6).astype(np.int64)
    size = last - first
    origin = (first + 0.5) * spacing
    place = (float(origin[0]), float(origin[1]), float(origin[2]))
    lattice = CandidateNodes(
        (int(size[0]), int(size[1]), int(size[2])), np.zeros((0, 3), np.int32), spacing, place, periodic
    )
    bounds = (distance,) if region is None else (distance, region)
    coords = _fluid_nodes(lattice, bounds)
    if not len(coords):
        raise CaseError(f"the geometry holds no site at the spacing {spacing:g} m: use a smaller spacing")
    lattice = CandidateNodes(lattice.shape, coords, spacing, place, periodic)
    return assemble(lattice, iolets, ImplicitWall(distance, spacing).find, prune=region is None)[0]


def _fluid_nodes(lattice: CandidateNodes, bounds: Sequence[Distance]) -> npt.NDArray[np.int32]:
    """Return the coordinates (n, 3) of the nodes where all of `bounds` are negative."""
    nx, ny, nz = lattice.shape
    layers = max(1, CHUNK // (ny * nz))
    found = []
    for start in range(0, nx, layers):
        count = min(layers, nx - start)
        nodes = np.indices((count, ny, nz), dtype=np.int32).reshape(3, -1).T
        nodes[:, 0] += start
        points = np.asarray(lattice.origin) + lattice.spacing * nodes
        inside = np.all([bound(points) < -TOUCHING * lattice.spacing for bound in bounds], axis=0)
        found.append(np.ascontiguousarray(nodes[inside]))
    coords: npt.NDArray[np.int32] = np.concatenate(found)
    return coords


@dataclass(frozen=True)
class ImplicitWall:
    """The zero surface of a distance function, as `assemble` asks for it."""

    distance: Distance
    spacing: float

    def find(self, lattice: CandidateNodes, node: npt.NDArray[np.int64], direction: npt.NDArray[np.int64]) -> WallHits:
        """Return where the links from the nodes `node` (p,) along `direction` (p,) leave the fluid."""
        fraction = np.empty(len(node))
        normal = np.empty((len(node), 3))
        for begin in range(0, len(node), CHUNK):
            part = slice(begin, begin + CHUNK)
            starts = lattice.positions(node[part])
            steps = self.spacing * LINK_VECTORS[direction[part]].astype(np.float64)
            fraction[part] = self._roots(starts, steps)
            normal[part] = self._gradient(starts + np.nan_to_num(fraction[part])[:, None] * steps)
        return WallHits(fraction, normal, np.full(len(node), -1, np.int16))

    def _roots(self, starts: Floats, steps: Floats) -> Floats:
        """Find the root of the distance on each segment by the Illinois form of regula falsi; NaN where it has none."""
        lower, upper = np.zeros(len(starts)), np.ones(len(starts))
        below, above = self.distance(starts), self.distance(starts + steps)
        fraction = np.full(len(starts), np.nan)
        active = np.flatnonzero(above >= 0.0)
        lower, upper, below, above = lower[active], upper[active], below[active], above[active]
        for _ in range(_ROOT_STEPS):
            if not len(active):
                break
            guess = np.clip(lower - below * (upper - lower) / np.where(above > below, above - below, 1.0), lower, upper)
            value = self.distance(starts[active] + guess[:, None] * steps[active])
            fraction[active] = guess
            inside = value < 0.0
            above = np.where(inside, above * np.where(lower > 0.0, 0.5, 1.0), value)
            below = np.where(inside, value, below * np.where(upper < 1.0, 0.5, 1.0))
            lower, upper = np.where(inside, guess, lower), np.where(inside, upper, guess)
            open_ = (np.abs(value) > 1e-10 * self.spacing) & (upper - lower > 1e-10)
            active, lower, upper, below, above = active[open_], lower[open_], upper[open_], below[open_], above[open_]
        return fraction

    def _gradient(self, points: Floats) -> Floats:
        """Return the unit gradient of the distance at `points` (p, 3), by central differences."""
        step = 1e-3 * self.spacing
        gradient = np.empty_like(points)
        for axis in range(3):
            shift = np.zeros(3)
            shift[axis] = step
            gradient[:, axis] = self.distance(points + shift) - self.distance(points - shift)
        length = np.linalg.norm(gradient, axis=1, keepdims=True)
        unit: Floats = gradient / np.where(length > 0.0, length, 1.0)
        return unit


def _ends(
    direction: Floats, length: float, radius: float, center: tuple[float, float, float] = (0.0, 0.0, 0.0)
) -> tuple[IoletPlane, IoletPlane]:
    x, y, z = (float(value) + 0.0 for value in direction)
    far = tuple(float(value) for value in np.asarray(center) + length * direction)
    return (
        IoletPlane("inlet", "inlet", center, (x, y, z), radius),
        IoletPlane("outlet", "outlet", (far[0], far[1], far[2]), (0.0 - x, 0.0 - y, 0.0 - z), radius),
    )


def _unit(axis: Sequence[float]) -> Floats:
    vector = np.asarray(axis, float)
    length = float(np.linalg.norm(vector))
    if vector.shape != (3,) or not np.isfinite(length) or length == 0.0:
        raise CaseError(f"an axis needs three numbers that are not all zero, not {axis}")
    return vector / length


def _positive(**lengths: float) -> None:
    for name, value in lengths.items():
        if not (np.isfinite(value) and value > 0.0):
            raise CaseError(f"{name} = {value:g} m must be positive")


def _whole(spacing: float, **lengths: float) -> None:
    for name, value in lengths.items():
        if round(value / spacing) < 1 or abs(value / spacing - round(value / spacing)) > 1e-6:
            raise CaseError(f"{name} = {value:g} m must be a whole number of spacings of {spacing:g} m")
