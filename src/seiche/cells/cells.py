# SPDX-License-Identifier: BSD-3-Clause
"""Many cells of several types on a device: vertices, forces, areas and volumes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend, Kernel
from seiche.cells.elements import GatherLists
from seiche.cells.energy import RestState, rest_state
from seiche.cells.held import Held
from seiche.cells.model import CellType
from seiche.errors import CaseError, UnstableError
from seiche.kernels.registry import Real
from seiche.kernels.registry.held import ALONE, HERE, MANY, SHARED
from seiche.kernels.registry.membrane import BATCH, CAPACITIES, flat_shell, loop_shell, membrane_force, team_of
from seiche.observe.stage import Stage

Floats = npt.NDArray[np.float64]

#: The rows of vertices are padded to this, so that every component begins on a cache line.
ALIGNMENT = 32


@dataclass(frozen=True)
class Block:
    """The cells of one type: their type, how many, and where their cells and vertices begin in the arrays."""

    rest: RestState
    cells: int
    first_cell: int
    first_vertex: int

    @property
    def vertices(self) -> int:
        """Return the vertices of one cell."""
        return len(self.rest.control)

    @property
    def slice(self) -> slice:
        """Return the columns of the vertex arrays that belong to these cells."""
        return slice(self.first_vertex, self.first_vertex + self.cells * self.vertices)


class Cells:
    """Cells of several types.

    `place` (3, stride) float64 are the vertices on the device, component by component, all vertices of a cell together
    and all cells of a type together; `force` (3, stride) in `precision` are the forces of the membranes on them, `slip`
    (3, stride), if there is any, their velocities beside the fluid; `measures` (cells, 2) float64 area and volume of
    each cell. `blocks` says what lies where. The coordinates of a cell hang together: in a periodic box they are not
    wrapped. With Loop shells vertices are control points.
    """

    def __init__(
        self,
        backend: Backend,
        types: Sequence[CellType],
        centers: Sequence[npt.ArrayLike],
        rotations: Sequence[npt.ArrayLike | None] | None = None,
        precision: Real = "float64",
    ) -> None:
        """Put undeformed cells at `centers` (cells, 3) of each type, turned by matrices `rotations` (cells, 3, 3).

        The mean of the vertices of the type's mesh goes to the center.

        Raises:
            CaseError: centers or rotations of another shape or number.
        """
        turns = rotations if rotations is not None else [None] * len(types)
        if not types or len(centers) != len(types) or len(turns) != len(types):
            raise CaseError(f"cells: {len(types)} types, {len(centers)} sets of centers, {len(turns)} of rotations")
        if precision not in ("float32", "float64"):
            raise CaseError(f"cells: precision = {precision!r}: 'float32' or 'float64' is expected")
        self.backend, self.types, self.precision = backend, tuple(types), precision
        places, self.blocks, vertex, cell = [], [], 0, 0
        for kind, at, turn in zip(types, centers, turns, strict=True):
            rest = rest_state(kind)
            where = _checked(np.asarray(at, np.float64).reshape(-1, 3), kind.name, "center", 3)
            matrices = np.broadcast_to(np.eye(3), (len(where), 3, 3)) if turn is None else np.asarray(turn, float)
            if matrices.shape != (len(where), 3, 3):
                raise CaseError(f"cells of type {kind.name!r}: rotations {matrices.shape} for {len(where)} cells")
            middle = rest.control - kind.mesh.vertices.mean(axis=0)
            places.append((np.einsum("nij,vj->nvi", matrices, middle) + where[:, None, :]).reshape(-1, 3))
            self.blocks.append(Block(rest, len(where), cell, vertex))
            vertex, cell = vertex + len(places[-1]), cell + len(where)
        self.stride = -(-max(vertex, 1) // ALIGNMENT) * ALIGNMENT
        #: Where several ranks hold cells: the roles of those for which there is room here.
        self.held: Held | None = None
        host = np.zeros((3, self.stride))
        host[:, :vertex] = np.concatenate(places).T
        self.place = backend.upload(host)
        self._mobility = 0.0
        self._allocate()

    def _allocate(self) -> None:
        """Make what belongs to `place` and `blocks`."""
        last = self.blocks[-1]
        self.count, self.vertex_count = last.first_cell + last.cells, last.slice.stop
        self.force = self.backend.zeros((3, self.stride), self.precision)
        self.measures = self.backend.zeros((max(self.count, 1), 2), np.float64)
        self._bind()

    def _bind(self) -> None:
        """Prepare the launches."""
        self.slip: Array | None = self.backend.zeros((3, self.stride), self.precision) if self._mobility > 0 else None
        self._kept: list[Array] = []
        self._launches: dict[int, list[Callable[[], None]]] = {}
        for block in self.blocks:
            for roles, launch in self._bound(block).items() if block.cells else ():
                self._launches.setdefault(roles, []).append(launch)

    def reserve(self, capacities: Sequence[int], many: Sequence[int]) -> Held:
        """Allocate room for `capacities` cells of each type on this rank; return their roles, all empty.

        Of each type, `many` may be cells that other ranks have copies of. The present cells are discarded.
        """
        blocks: list[Block] = []
        vertex = cell = 0
        for block, cells in zip(self.blocks, capacities, strict=True):
            blocks.append(Block(block.rest, cells, cell, vertex))
            vertex, cell = vertex + cells * block.vertices, cell + cells
        self.blocks = blocks
        self.stride = (vertex // ALIGNMENT + 1) * ALIGNMENT  # the last column is nobody's
        self.held = Held(self.backend, blocks, many)
        self.place = self.backend.zeros((3, self.stride), np.float64)
        self._allocate()
        return self.held

    def let_slip(self, mobility: float) -> None:
        """Compute `slip` with the forces from now on: `mobility` is velocity times length over force.

        Zero: there is no slip.
        """
        self._mobility = mobility
        self._bind()

    def forces(self, roles: int = HERE) -> None:
        """Compute `force` and `measures` from `place` of all cells; where there are roles, of ALONE, SHARED or MANY."""
        for part in (roles,) if roles in self._launches else (1 << ALONE, MANY):
            for launch in self._launches.get(part, ()):
                launch()

    def stage(self) -> Stage:
        """Return the forces as a stage of a step."""
        moved = self.vertex_count * 3 * (8 + (1 if self.slip is None else 2) * np.dtype(self.precision).itemsize)
        return Stage("membrane forces", self.forces, moved)

    def memory(self) -> int:
        """Return the bytes of vertices, forces and measures, and of what the types share."""
        slip = [] if self.slip is None else [self.slip]
        return sum(int(array.nbytes) for array in (self.place, self.force, *slip, self.measures, *self._kept))

    def vertices(self, kind: int = 0) -> Floats:
        """Return the vertices (cells, n, 3) of all cells of type number `kind`, on the host."""
        return self._host(self.place, kind)

    def vertex_forces(self, kind: int = 0) -> Floats:
        """Return the forces (cells, n, 3) of the last `forces()`, on the host."""
        return self._host(self.force, kind)

    def _host(self, array: Array, kind: int) -> Floats:
        block = self.blocks[kind]
        host = np.asarray(self.backend.download(array), np.float64)[:, block.slice]
        return np.ascontiguousarray(host.T).reshape(block.cells, block.vertices, 3)

    def set_vertices(self, vertices: npt.ArrayLike, kind: int = 0) -> None:
        """Move the cells of type number `kind` to vertices (cells, n, 3).

        Raises:
            CaseError: another shape, or a number that is not finite.
        """
        block = self.blocks[kind]
        given = np.asarray(vertices, np.float64)
        if given.shape != (block.cells, block.vertices, 3) or not np.isfinite(given).all():
            raise CaseError(f"cells: vertices {given.shape}: finite ({block.cells}, {block.vertices}, 3) are expected")
        host = self.backend.download(self.place)
        host[:, block.slice] = given.reshape(-1, 3).T
        self.backend.assign(self.place, host)

    def refuse_broken(self, step: int = 0) -> None:
        """Say so if a cell has been torn or turned inside out.

        Raises:
            UnstableError: a cell's volume at the last `forces()` was not positive or not finite.
        """
        if (problem := self.broken(step)) is not None:
            raise UnstableError(f"cell {problem[0]} {problem[1]}")

    def broken(self, step: int, cells: npt.NDArray[np.integer[Any]] | None = None) -> tuple[int, str] | None:
        """Return the first of `cells` (all by default) that is torn or inside out, and what is wrong with it."""
        cells = np.arange(self.count) if cells is None else cells
        volumes = self.backend.download(self.measures)[: self.count, 1][cells]
        broken = np.flatnonzero(~(np.isfinite(volumes) & (volumes > 0)))
        if not len(broken):
            return None
        return int(cells[broken[0]]), (
            f"is inside out at step {step}: volume {volumes[broken[0]]:.4g}"
            f" ({len(broken)} of {len(volumes)} cells): take a smaller time step or smaller moduli"
        )

    def _bound(self, block: Block) -> dict[int, Callable[[], None]]:
        """Return the launches that compute the forces of one type by the roles of the cells for which they do."""
        rest, model, elements = block.rest, block.rest.cell.model, block.rest.elements
        real: Real = self.precision
        slip = slip_mobility(rest, self._mobility)
        capacity = min(size for size in CAPACITIES if size >= block.vertices)
        team = None
        if elements.loop and self.backend.multiprocessors:
            load = block.cells / self.backend.multiprocessors if self.held is None else math.inf
            team = team_of(real, elements.slots, capacity, load)
        law = model.law.kernel
        shell = loop_shell(law, real, model.points, elements.slots, team) if elements.loop else flat_shell(law, real)
        spec = membrane_force(shell, real, capacity, team)
        lists = elements.gather(team or elements.chunk)
        ring_first = np.concatenate([[0], np.cumsum([len(ring) for ring in elements.rings])])
        first_cell = self.measures[block.first_cell :]
        self._kept.append(first_cell)
        members = dict(
            place=self.place,
            force=self.force,
            slip=self.slip if slip > 0 else None,
            measures=first_cell,
            stride=self.stride,
            first=block.first_vertex,
            shell=self._shell(rest, lists),
            chunk_first=self._keep(lists.chunk_first),
            touched=self._keep(lists.touched),
            entry_end=self._keep(lists.entry_end),
            ring_first=self._keep(ring_first.astype(np.int32)),
            ring=self._keep(np.concatenate(elements.rings).astype(np.uint16)),
            ring_area=self._keep((0.5 / _ring_areas(rest)).astype(real)),
            share=self._keep(rest.vertex_shares.astype(real)),
            faces=self._keep(np.ascontiguousarray(elements.faces.T).astype(np.uint16)),
            area=model.area,
            volume=model.volume,
            local_area=model.local_area,
            mobility=slip,
            rest_area=rest.area,
            rest_volume=rest.volume,
            vertices=block.vertices,
            chunks=len(lists.chunk_first) - 1,
        )
        if self.held is not None:
            return {
                1 << ALONE: self.held.over_cells(spec, block, 1 << ALONE, **members),
                1 << SHARED: self.held.over_listed_cells(spec, block, own=True, **members),
                MANY: self.held.over_listed_cells(spec, block, **members),
            }
        kernel: Kernel = self.backend.load(spec)
        return {HERE: kernel.bind(self.backend.pack(kernel, **members), 0, block.cells)}

    def _shell(self, rest: RestState, lists: GatherLists) -> dict[str, Any]:
        """Return the members of the elements."""
        model, elements = rest.cell.model, rest.elements
        count = len(elements.control)
        padded = np.minimum(np.arange(-(-count // BATCH) * BATCH), count - 1)
        control = np.where(elements.control < 0, elements.control[:, :1], elements.control)[padded]
        shell: dict[str, Any] = {
            "control": self._keep(np.ascontiguousarray(control.T).astype(np.uint16)),
            "entry": self._keep(np.ascontiguousarray(lists.entry.T)),
            "law": {number: getattr(model.law, number) for number in model.law.kernel.numbers},
            "bending": model.bending,
            "elements": count,
            "stride": len(control),
        }
        if elements.loop:
            kind, weights = elements.kinds
            numbers = np.concatenate([rest.metric, rest.curvature[..., None]], axis=-1)
            shell["kind"] = self._keep(kind[padded].astype(np.uint16))
            rows = weights[:, :, 1:].reshape(*weights.shape[:2], -1)
            padding = [(0, 0), (0, 0), (0, -rows.shape[2] % 8)]
            shell["weights"] = self._keep(np.pad(rows, padding).astype(self.precision))
        else:
            angles = np.stack([np.cos(rest.hinge_angles), np.sin(rest.hinge_angles)], axis=-1)
            numbers = np.concatenate([rest.metric[:, 0], angles.reshape(count, 6)], axis=1)
        columns = np.ascontiguousarray(numbers.reshape(count, -1)[padded].T)
        shell["rest"] = self._keep(columns.astype(self.precision))
        return shell

    def _keep(self, host: npt.NDArray[Any]) -> Array:
        """Upload an array that a kernel's arguments point to."""
        self._kept.append(self.backend.upload(host))
        return self._kept[-1]


def slip_mobility(rest: RestState, mobility: float) -> float:
    """Return slip over the differences between neighbours, for `Cells.let_slip(mobility)`.

    Membranes that do not resist bending have none: compressed, they would fold up at their shortest wave.
    """
    return mobility / (12 * rest.edge) if rest.cell.model.bending > 0 else 0.0


def _checked(values: Floats, name: str, what: str, width: int) -> Floats:
    if not np.isfinite(values).all():
        raise CaseError(f"cells of type {name!r}: a {what} is not finite ({width} numbers a cell are expected)")
    return values


def _ring_areas(rest: RestState) -> Floats:
    """Return the rest area of the triangle between each neighbour in the rings and the next."""
    areas = {}
    for (a, b, c), area in zip(rest.elements.faces.tolist(), rest.face_areas.tolist(), strict=True):
        areas[a, b], areas[b, c], areas[c, a] = area, area, area
    return np.array([areas[v, neighbour] for v, ring in enumerate(rest.elements.rings) for neighbour in ring])
