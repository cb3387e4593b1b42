# SPDX-License-Identifier: BSD-3-Clause
"""Media averaged over the cells of nodes, for elements cut by interfaces (theory/waves, section 14, eq. 39)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from seiche.domain.cells import subdivide
from seiche.waves.basis import Basis
from seiche.waves.mesh import Mesh

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
#: Function that returns density, cp and cs, (3, points), at points (points, dim).
Medium = Callable[[Floats], Floats]

#: Minimum number of samples along a side of an element, for any number of nodes.
_SAMPLES = 12
#: Number of points at which a medium is evaluated at a time.
_CHUNK = 1 << 20
#: Minimum distance of samples from the sides of an element, in units of its size.
_INWARD = 1e-9


@dataclass(frozen=True, eq=False)
class NodeCells:
    """The cells of nodes of some elements.

    Attributes:
        mesh: the elements of this rank.
        nodes: nodes per direction.
        elements: indices of the elements.
        planes: along each axis the coordinates of interfaces across it, at which cells are divided.
    """

    mesh: Mesh
    nodes: int
    elements: Integers
    planes: Sequence[Sequence[float]]


def averages(cells: NodeCells, medium: Medium) -> Floats:
    """Return density, cp and cs averaged over the cells of nodes, (3, elements, nodes).

    Densities are averaged, and so are the reciprocals of bulk and shear modulus. The kind that fills the larger part
    of an element, fluid or solid, fills all of it: only samples of this kind are averaged.
    """
    dim, count = cells.mesh.dim, len(cells.elements)
    parts = -(-_SAMPLES // cells.nodes)
    max_planes = [int(max(_crossings(cells, axis), default=0)) for axis in range(dim)]
    step = max(1, _CHUNK // int(np.prod([cells.nodes * (parts + number) for number in max_planes])))
    result = np.empty((3, count, cells.nodes**dim))
    for first in range(0, count, step):
        group = replace(cells, elements=cells.elements[first : first + step])
        lines = [_line(group, axis, parts, max_planes[axis]) for axis in range(dim)]
        result[:, first : first + step] = _averages(medium, lines)
    return result


def _crossings(cells: NodeCells, axis: int) -> Integers:
    """Return the number of planes across an axis inside each element."""
    mesh, plane_positions = cells.mesh, np.asarray(cells.planes[axis], np.float64)
    lower, size = mesh.lower[cells.elements, axis][:, None], mesh.sizes[cells.elements, axis][:, None]
    return np.asarray(((plane_positions > lower) & (plane_positions < lower + size)).sum(1))


def _line(cells: NodeCells, axis: int, parts: int, max_planes: int) -> tuple[Floats, Floats]:
    """Return positions and shares of samples along an axis, (elements, nodes, samples) each.

    The cell of a node has the length of its quadrature weight. It is divided into equal parts and at planes inside it.
    """
    mesh, weights = cells.mesh, Basis(cells.nodes).weights
    lower, size = mesh.lower[cells.elements, axis], mesh.sizes[cells.elements, axis]
    edges = np.concatenate([[0.0], np.cumsum(weights / 2)])
    edges[-1] = 1.0
    local: Floats = np.empty((len(lower), 1, 0))
    if max_planes:
        planes = (np.asarray(cells.planes[axis], np.float64) - lower[:, None]) / size[:, None]
        planes = np.sort(np.where((planes > 0) & (planes < 1), planes, 2.0), axis=1)[:, :max_planes]
        local = np.where(planes < 1, planes, 0.0)[:, None]
    middles, shares = subdivide(edges[:-1], edges[1:], local, parts)
    return lower[:, None, None] + size[:, None, None] * np.clip(middles, _INWARD, 1 - _INWARD), shares


def _averages(medium: Medium, lines: Sequence[tuple[Floats, Floats]]) -> Floats:
    """Return averages of density, cp and cs, (3, elements, nodes); nodes count along the first axis first."""
    dim, (count, n, _) = len(lines), lines[0][0].shape
    # Axes of the samples: element, nodes of the last axis to the first, samples of the last axis to the first.
    coordinates: list[Floats] = []
    share: Floats = np.ones(1)
    for axis, (samples, part) in enumerate(lines):
        shape = [1] * (2 * dim)
        shape[dim - 1 - axis], shape[2 * dim - 1 - axis] = n, samples.shape[2]
        coordinates.append(samples.reshape(count, *shape))
        share = share * part.reshape(count, *shape)
    points = np.stack(np.broadcast_arrays(*coordinates), -1)
    density, cp, cs = medium(points.reshape(-1, dim)).reshape(3, count, n**dim, -1)
    volume: Floats = np.ones(1)
    for _ in range(dim):
        volume = np.asarray(np.kron(Basis(n).weights / 2, volume), np.float64)
    share = share.reshape(count, n**dim, -1)
    solid = cs > 0
    is_solid = (volume[:, None] * share * solid).sum((1, 2)) > 0.5
    weight = share * (solid == is_solid[:, None, None])
    total = weight.sum(2)

    def mean(values: Floats) -> Floats:
        """Return averages over the cells; a cell without the kind of its element gets the mean of the element."""
        sums = (weight * values).sum(2)
        element = (volume * sums).sum(1) / (volume * total).sum(1)
        return np.asarray(np.divide(sums, total, out=np.repeat(element[:, None], n**dim, axis=1), where=total > 0))

    mu, kappa = density * cs**2, density * (cp**2 - 4 / 3 * cs**2)
    rho, stiffness = mean(density), 1 / mean(1 / kappa)
    compliance = mean(np.divide(1.0, mu, out=np.zeros_like(mu), where=mu > 0))
    shear = np.divide(1.0, compliance, out=np.zeros_like(compliance), where=compliance > 0)
    return np.stack([rho, np.sqrt((stiffness + 4 / 3 * shear) / rho), np.sqrt(shear / rho)])
