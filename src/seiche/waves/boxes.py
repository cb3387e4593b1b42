# SPDX-License-Identifier: BSD-3-Clause
"""Boxes of elements around point sources, in which the state is the scattered field (theory/waves, section 13)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seiche.domain.world import World
from seiche.waves.basis import Basis
from seiche.waves.incident import PER_STEP, Uniform
from seiche.waves.material import Material
from seiche.waves.mesh import NONE, Mesh
from seiche.waves.sources import PointSource

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]

#: Minimum distance of the faces of a box from the source, in elements: points two elements away are inside.
HALF_WIDTH = 2.1
#: The same in a medium that varies near the source, where every node of the box adds cost.
SHORT_HALF_WIDTH = 1.5
#: Relative difference below which media are treated as equal.
MEDIA_TOLERANCE = 1e-9
#: Maximum number of sources with boxes, which bounds the memory of their factors.
MAX_BOXES = 64
#: Distance in elements within which the medium must be nearly that of the source, and no side may be.
CLEARANCE = 0.5
#: Maximum relative difference of a modulus or the density from that at the source within this distance.
MAX_CONTRAST = 0.2
#: Maximum amplitude at time zero, relative to the largest, that is accepted as a start from zero.
_START = 2e-2
_TINY = 1e-6


@dataclass(frozen=True, eq=False)
class SourceBox:
    """The elements around a source.

    Attributes:
        source: number of the source.
        medium: the medium at the source.
        inside: whether each owned element and ghost is in the box, (count + ghosts,).
        size: sides of the largest element at the source, (dim,).
        half_widths: distance of the faces from the source along each axis, (dim,).
    """

    source: int
    medium: Uniform
    inside: Flags
    size: Floats
    half_widths: Floats


@dataclass(frozen=True, eq=False)
class Surroundings:
    """The mesh and media around a source, which determine whether it has a box.

    Attributes:
        mesh, material, nodes: elements, media and nodes per direction.
        dt: duration of a step.
        world: the ranks.
        attenuated: whether the media have attenuation.
        excluded_sides: flags of the sides of the mesh that no box may touch, (2 dim,); empty: none.
    """

    mesh: Mesh
    material: Material
    nodes: int
    dt: float
    world: World
    attenuated: bool = False
    excluded_sides: tuple[bool, ...] = ()


def offsets(mesh: Mesh, position: Floats, points: Floats) -> Floats:
    """Return `points` (..., dim) relative to a position, by the nearest image across periodic sides."""
    lower, upper = mesh.extent
    period = np.where(mesh.brick.periodic, upper - lower, np.inf)
    difference = points - position
    finite = np.where(np.isfinite(period), period, 1.0)
    shift = np.where(np.isfinite(period), np.rint(difference / finite) * finite, 0.0)
    return np.asarray(difference - shift)


def size_at(position: Sequence[float], mesh: Mesh, world: World) -> Floats:
    """Return the largest sides of the elements that touch a position, (dim,) (collective)."""
    middle = mesh.lower[: mesh.count] + mesh.sizes[: mesh.count] / 2
    gap = abs(offsets(mesh, np.asarray(position, np.float64), middle)) - mesh.sizes[: mesh.count] / 2
    sizes = mesh.sizes[: mesh.count][(gap <= _TINY * mesh.sizes[: mesh.count]).all(1)]
    return np.asarray(world.allreduce_max(sizes.max(0) if len(sizes) else np.zeros(mesh.dim)))


def box_of(number: int, source: PointSource, surroundings: Surroundings) -> SourceBox | str:
    """Return the box of a source, or the reason why it has none (collective).

    The result does not depend on the number of ranks.
    """
    mesh, world = surroundings.mesh, surroundings.world
    position = np.asarray(source.position, np.float64)
    middle = mesh.lower + mesh.sizes / 2
    gap = abs(offsets(mesh, position, middle)) - mesh.sizes / 2
    owned = slice(mesh.count)

    def largest(is_near: Flags) -> Floats:
        sizes = mesh.sizes[owned][is_near[owned]]
        return np.asarray(world.allreduce_max(sizes.max(0) if len(sizes) else np.zeros(mesh.dim)))

    size = size_at(source.position, mesh, world)
    medium = _medium_at(position, surroundings)

    def half_widths_of(elements: float) -> Floats:
        """Return the distance of the faces of a box from the source, at least a number of elements."""
        return np.maximum(elements * size, largest(np.all(gap < (elements - _TINY) * size, axis=1)))

    half_widths = half_widths_of(HALF_WIDTH)
    inner_elements = np.nonzero(np.all(gap[owned] < half_widths - _TINY * size, axis=1))[0]
    varies = bool(len(inner_elements)) and bool(
        (differences(surroundings.material, inner_elements, medium) > MEDIA_TOLERANCE).any()
    )
    if world.allreduce_max(np.array([float(varies)]))[0]:
        half_widths = half_widths_of(SHORT_HALF_WIDTH)
    lower, upper = mesh.extent
    periodic = np.array(mesh.brick.periodic)
    room = np.minimum(position - lower, upper - position)
    if np.any(~periodic & (room < (CLEARANCE - _TINY) * size)):
        return "is nearer than half an element to a side of the mesh"
    if np.any(periodic & (upper - lower < 2 * half_widths + 2 * largest(np.all(gap < half_widths, axis=1)))):
        return "is in a periodic mesh that is too short for a box around it"
    if contrast(position, CLEARANCE * size, medium, surroundings) > MAX_CONTRAST:
        return "is nearer than half an element to a change of the medium"
    inside = np.asarray((gap < half_widths - _TINY * size).all(1))
    if surroundings.excluded_sides:
        touching = (mesh.kinds[inside[owned], :, 0] == NONE) & np.array(surroundings.excluded_sides)
        if world.allreduce_max(np.array([float(touching.any())]))[0]:
            return "is near an absorbing side, with leapfrog"
    return SourceBox(number, medium, inside, size, half_widths)


def _medium_at(position: Floats, surroundings: Surroundings) -> Uniform:
    """Return the medium at a position, from the first element along the curve that touches it (collective)."""
    mesh, material = surroundings.mesh, surroundings.material
    elements, local_points = mesh.elements_at(position.tolist(), "source")
    candidates = []
    for element, local in zip(elements, local_points, strict=True):
        values = np.stack([getattr(material, name)[element] for name in ("density", "cp", "cs")])
        if material.by_node:
            lagrange_values = Basis(surroundings.nodes).values(local)
            weight = lagrange_values[0]
            for values_along in lagrange_values[1:]:  # nodes count along x first
                weight = np.outer(values_along, weight).ravel()
            values = np.clip(values @ weight, values.min(1), values.max(1))
        candidates.append((int(mesh.number[element]), *map(float, values)))
    _, density, cp, cs = min(entry for part in surroundings.world.allgather(candidates) for entry in part)
    return Uniform(density, cp, cs)


def nodes_of(mesh: Mesh, basis: Basis, elements: Integers) -> Floats:
    """Return the positions of the nodes of elements, (elements, nodes, dim); nodes count along x first."""
    unit = (basis.nodes + 1) / 2
    grid = np.stack([axis.ravel() for axis in reversed(np.meshgrid(*(unit,) * mesh.dim, indexing="ij"))], 1)
    return np.asarray(mesh.lower[elements, None] + mesh.sizes[elements, None] * grid)


def differences(material: Material, elements: Integers, medium: Uniform) -> Floats:
    """Return the largest relative difference of density, lambda + 2 mu and mu from a medium, (elements, nodes or 1)."""
    density, cp, cs = (getattr(material, name)[elements] for name in ("density", "cp", "cs"))
    stiff = medium.density * medium.cp**2
    parts = (
        abs(density / medium.density - 1),
        abs(density * cp**2 - stiff) / stiff,
        abs(density * cs**2 - medium.mu) / stiff,
    )
    return np.asarray(np.max(parts, axis=0).reshape(len(elements), *density.shape[1:] or (1,)))


def contrast(position: Floats, distance: Floats, medium: Uniform, surroundings: Surroundings) -> float:
    """Return the largest relative difference of the media within `distance` of a position (collective)."""
    mesh = surroundings.mesh
    middle = mesh.lower[: mesh.count] + mesh.sizes[: mesh.count] / 2
    gap = abs(offsets(mesh, position, middle)) - mesh.sizes[: mesh.count] / 2
    elements = np.nonzero((gap < (1 - _TINY) * distance).all(1))[0]
    values = differences(surroundings.material, elements, medium)
    if surroundings.material.by_node:
        nodes = abs(offsets(mesh, position, nodes_of(mesh, Basis(surroundings.nodes), elements)))
        values = np.where((nodes <= (1 + _TINY) * distance).all(2), values, 0.0)
    return float(surroundings.world.allreduce_max(np.array([values.max() if values.size else 0.0]))[0])


def starts_from_zero(source: PointSource, dt: float) -> bool:
    """Return whether the function of time begins near zero at t = 0."""
    amplitudes = abs(np.asarray(source.time(dt / PER_STEP * np.arange(4096.0)), np.float64))
    return bool(amplitudes[0] <= _START * amplitudes.max())


def boxes_of(sources: Sequence[PointSource], surroundings: Surroundings) -> tuple[list[SourceBox], dict[int, str]]:
    """Return the boxes of sources, and by number the reasons why the other sources have none (collective)."""
    boxes, reasons = [], {}
    for number, source in enumerate(sources):
        box: SourceBox | str
        if surroundings.attenuated:
            box = "is in a medium with attenuation"
        elif surroundings.mesh.dim == 2:
            box = "is in a mesh of two dimensions"
        elif len(sources) > MAX_BOXES:
            box = f"is one of more than {MAX_BOXES} sources"
        elif not starts_from_zero(source, surroundings.dt):
            box = "has a function of time that begins with a jump"
        else:
            box = box_of(number, source, surroundings)
        if isinstance(box, SourceBox):
            boxes.append(box)
        else:
            reasons[number] = box
    return boxes, reasons
