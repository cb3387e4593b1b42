# SPDX-License-Identifier: BSD-3-Clause
"""Cells of several types on a device: vertices, forces, areas and volumes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend, Kernel
from seiche.backend.host_threads import copy_on_threads
from seiche.cells.elements import GatherLists
from seiche.cells.energy import RestState, rest_state
from seiche.cells.model import CellType
from seiche.cells.overlap import placed
from seiche.cells.resident import Block, ResidentCells
from seiche.errors import CaseError, UnstableError
from seiche.kernels.registry import KernelSpec, Real
from seiche.kernels.registry.membrane import BATCH, CAPACITIES, flat_shell, loop_shell, membrane_force, team_of
from seiche.kernels.registry.resident import OWNED_ONLY, OWNED_SHARED, REPLICATED, RESIDENT
from seiche.observe.stage import Stage

Floats = npt.NDArray[np.float64]
#: Launches of one cell type by mode and roles. The mode selects whether the internal variables of surface viscosity
#: are unchanged ("keep"), advanced by a step ("advance") or reset to rest ("relax").
_Launches: TypeAlias = dict[tuple[str, int], Callable[[], None]]

#: Arrays of vertices are padded to a multiple of this number, so that each component begins on a cache line.
ALIGNMENT = 32


class Cells:
    """Cells of several types.

    Arrays on the device:

    - `positions` (3, stride) float64: the vertices, contiguous by cell and by type.
    - `force` (3, stride) in `precision`: the membrane forces on the vertices.
    - `slip` (3, stride) or None: the velocities of the vertices relative to the fluid.
    - `relaxed` (planes, 3, stride) float64 or None: the internal variables of surface viscosity (theory/cells, eq. 17).
    - `measures` (cells, 2) float64: area and volume of each cell.

    `blocks` are the index ranges of the types. Coordinates are not wrapped in periodic directions, so that no cell is
    split. With Loop shells, the vertices are control points.
    """

    def __init__(
        self,
        backend: Backend,
        types: Sequence[CellType],
        centers: Sequence[npt.ArrayLike],
        rotations: Sequence[npt.ArrayLike | None] | None = None,
        precision: Real = "float64",
    ) -> None:
        """Create undeformed cells of each type at `centers` (cells, 3), rotated by `rotations` (cells, 3, 3).

        The center of a cell is the mean of the vertices of its mesh.

        Raises:
            CaseError: `centers` or `rotations` have the wrong number or shape.
        """
        type_rotations = rotations if rotations is not None else [None] * len(types)
        if not types or len(centers) != len(types) or len(type_rotations) != len(types):
            raise CaseError(
                f"cells: {len(types)} types, but {len(centers)} sets of centers and {len(type_rotations)} of "
                "rotations; expected one per type"
            )
        if precision not in ("float32", "float64"):
            raise CaseError(f"cells: precision = {precision!r}: expected 'float32' or 'float64'")
        self.backend, self.types, self.precision = backend, tuple(types), precision
        self.blocks: list[Block] = []
        shapes: list[tuple[Floats, Floats, Floats]] = []
        first_vertex = first_cell = 0
        for kind, type_centers, rotation in zip(types, centers, type_rotations, strict=True):
            rest = rest_state(kind)
            center_array = np.asarray(type_centers, np.float64).reshape(-1, 3)
            if not np.isfinite(center_array).all():
                raise CaseError(
                    f"cells of type {kind.name!r}: a center is not finite; expected three finite numbers per cell"
                )
            count = len(center_array)
            matrices = np.broadcast_to(np.eye(3), (count, 3, 3)) if rotation is None else np.asarray(rotation, float)
            if matrices.shape != (count, 3, 3):
                raise CaseError(
                    f"cells of type {kind.name!r}: rotations of shape {matrices.shape} do not match {count} cells"
                )
            shapes.append((rest.control - kind.mesh.vertices.mean(axis=0), center_array, matrices))
            self.blocks.append(Block(rest, count, first_cell, first_vertex))
            first_vertex, first_cell = first_vertex + count * len(rest.control), first_cell + count
        self.stride = -(-max(first_vertex, 1) // ALIGNMENT) * ALIGNMENT
        #: On several ranks: the roles of the cell slots of this rank.
        self.resident: ResidentCells | None = None
        host_array = np.zeros((3, self.stride))
        for block, (shape, center_array, matrices) in zip(self.blocks, shapes, strict=True):
            copy_on_threads(host_array[:, block.slice], placed(shape, center_array, matrices).reshape(-1, 3).T, axis=1)
        self.positions = backend.upload(host_array)
        self._mobility = 0.0
        self._allocate()
        self.relax()

    def _allocate(self) -> None:
        """Allocate the arrays whose sizes follow from `positions` and `blocks`."""
        last = self.blocks[-1]
        self.count, self.vertex_count = last.first_cell + last.cells, last.slice.stop
        self.force = self.backend.zeros((3, self.stride), self.precision)
        self.measures = self.backend.zeros((max(self.count, 1), 2), np.float64)
        planes = max(memory_planes(block.rest.cell) for block in self.blocks)
        self.relaxed = self.backend.zeros((planes, 3, self.stride), np.float64) if planes else None
        self._bind()

    def _bind(self) -> None:
        """Bind the kernels to the arrays."""
        self.slip: Array | None = self.backend.zeros((3, self.stride), self.precision) if self._mobility > 0 else None
        self._arrays: list[Array] = []
        self._launches = [self._bind_block(block) if block.cells else {} for block in self.blocks]

    def reserve(self, capacities: Sequence[int], replicated: Sequence[int]) -> ResidentCells:
        """Allocate `capacities` cell slots of each type on this rank; return their roles, all empty.

        Up to `replicated` cells of each type may also be on other ranks. The present cells are discarded.
        """
        blocks: list[Block] = []
        first_vertex = first_cell = 0
        for block, capacity in zip(self.blocks, capacities, strict=True):
            blocks.append(Block(block.rest, capacity, first_cell, first_vertex))
            first_vertex, first_cell = first_vertex + capacity * block.vertices, first_cell + capacity
        self.blocks = blocks
        self.stride = (first_vertex // ALIGNMENT + 1) * ALIGNMENT  # at least one column of padding
        self.resident = ResidentCells(self.backend, blocks, replicated)
        self.positions = self.backend.zeros((3, self.stride), np.float64)
        self._allocate()
        return self.resident

    def set_slip_mobility(self, mobility: float) -> None:
        """Compute `slip` together with the forces; `mobility` is velocity times length over force, 0 for no slip."""
        self._mobility = mobility
        self._bind()

    def compute_forces(self, roles: int = RESIDENT, *, advance: bool = False) -> None:
        """Compute `force` and `measures` from the `positions` of all cells; on several ranks, of those with `roles`.

        With `advance`, the internal variables of surface viscosity advance by one step. Otherwise, they are unchanged,
        and the forces equal those of the last step if no vertex has moved.
        """
        self._launch("advance" if advance else "keep", self._launches, roles)

    def relax(self, kind: int | None = None) -> None:
        """Reset the internal variables to those of cells at rest, for type number `kind` or for all types."""
        self._launch("relax", self._launches if kind is None else self._launches[kind : kind + 1], RESIDENT)

    @staticmethod
    def _launch(mode: str, blocks: Sequence[_Launches], roles: int) -> None:
        for launches in blocks:
            for key in (roles,) if (mode, roles) in launches else (1 << OWNED_ONLY, REPLICATED):
                if (launch := launches.get((mode, key))) is not None:
                    launch()

    def stage(self, *, advance: bool = False) -> Stage:
        """Return the forces as a stage of a step."""
        byte_count = self.vertex_count * 3 * (8 + (1 if self.slip is None else 2) * np.dtype(self.precision).itemsize)
        byte_count += sum(48 * block.cells * block.elements for block in self.blocks if memory_planes(block.rest.cell))
        return Stage("membrane forces", partial(self.compute_forces, advance=advance), byte_count)

    def memory(self) -> int:
        """Return the device memory of all arrays in bytes."""
        optional = [array for array in (self.slip, self.relaxed) if array is not None]
        return sum(int(array.nbytes) for array in (self.positions, self.force, *optional, self.measures, *self._arrays))

    @property
    def planes(self) -> list[Array]:
        """Return the internal variables of surface viscosity as arrays (3, stride); empty without surface viscosity."""
        return [] if self.relaxed is None else [self.relaxed[plane] for plane in range(self.relaxed.shape[0])]

    def set_relaxed(self, values: Floats | None) -> None:
        """Set the internal variables to `values` (planes, 3, n), or to those of cells at rest (None)."""
        if values is None or self.relaxed is None:
            self.relax()
            return
        host_array = np.zeros(self.relaxed.shape)
        host_array[: len(values), :, : values.shape[2]] = values
        self.backend.assign(self.relaxed, host_array)

    def vertices(self, kind: int = 0) -> Floats:
        """Return the vertices (cells, n, 3) of all cells of type number `kind`, on the host."""
        return self._host(self.positions, kind)

    def vertex_forces(self, kind: int = 0) -> Floats:
        """Return the forces (cells, n, 3) of the last `compute_forces()`, on the host."""
        return self._host(self.force, kind)

    def _host(self, array: Array, kind: int) -> Floats:
        block = self.blocks[kind]
        columns = np.asarray(self.backend.download(array), np.float64)[:, block.slice]
        rows = np.empty(columns.shape[::-1])
        copy_on_threads(rows, columns.T)
        return rows.reshape(block.cells, block.vertices, 3)

    def set_vertices(self, vertices: npt.ArrayLike, kind: int = 0, *, relax: bool = True) -> None:
        """Move the cells of type number `kind` to `vertices` (cells, n, 3).

        The memory of their surface viscosity is then that of cells at rest, unless `relax` is false.

        Raises:
            CaseError: `vertices` has the wrong shape or contains a value that is not finite.
        """
        block = self.blocks[kind]
        values = np.asarray(vertices, np.float64)
        if values.shape != (block.cells, block.vertices, 3) or not np.isfinite(values).all():
            raise CaseError(
                f"cells: vertices of shape {values.shape}: expected finite numbers of shape ({block.cells}, "
                f"{block.vertices}, 3)"
            )
        host_array = self.backend.download(self.positions)
        copy_on_threads(host_array[:, block.slice], values.reshape(-1, 3).T, axis=1)
        self.backend.assign(self.positions, host_array)
        if relax:
            self.relax(kind)

    def check_intact(self, step: int = 0) -> None:
        """Check that no cell is torn or inverted.

        Raises:
            UnstableError: the volume of a cell at the last `compute_forces()` was not positive or not finite.
        """
        if (problem := self.find_damaged(step)) is not None:
            raise UnstableError(f"cell {problem[0]} {problem[1]}")

    def find_damaged(self, step: int, cells: npt.NDArray[np.integer[Any]] | None = None) -> tuple[int, str] | None:
        """Return index and description of the first of `cells` (by default all) that is torn or inverted, or None."""
        cells = np.arange(self.count) if cells is None else cells
        volumes = self.backend.download(self.measures)[: self.count, 1][cells]
        invalid = np.flatnonzero(~(np.isfinite(volumes) & (volumes > 0)))
        if not len(invalid):
            return None
        return int(cells[invalid[0]]), (
            f"is inverted at step {step}: volume {volumes[invalid[0]]:.4g} ({len(invalid)} of {len(volumes)} cells); "
            "use a smaller time step or smaller moduli"
        )

    def _bind_block(self, block: Block) -> _Launches:
        """Return the launches that compute the forces of one cell type, by mode and by the roles of the cells."""
        rest, model, elements = block.rest, block.rest.cell.model, block.rest.elements
        real: Real = self.precision
        mobility = slip_mobility(rest, self._mobility)
        capacity = min(size for size in CAPACITIES if size >= block.vertices)
        team = None
        if elements.loop and self.backend.multiprocessors:
            cells_per_multiprocessor = block.cells / self.backend.multiprocessors if self.resident is None else math.inf
            team = team_of(real, elements.slots, capacity, cells_per_multiprocessor)
        law = model.law.kernel.with_viscosity() if model.viscosity > 0 else model.law.kernel
        shell = loop_shell(law, real, model.points, elements.slots, team) if elements.loop else flat_shell(law, real)
        spec = membrane_force(shell, real, capacity, team)
        lists = elements.gather(team or elements.chunk)
        ring_first = np.concatenate([[0], np.cumsum([len(ring) for ring in elements.rings])])
        block_measures = self.measures[block.first_cell :]
        self._arrays.append(block_measures)
        members: dict[str, Any] = dict(
            positions=self.positions,
            force=self.force,
            slip=self.slip if mobility > 0 else None,
            measures=block_measures,
            stride=self.stride,
            first=block.first_vertex,
            shell=self._shell(block, lists),
            chunk_first=self._upload(lists.chunk_first),
            touched=self._upload(lists.touched),
            entry_end=self._upload(lists.entry_end),
            ring_first=self._upload(ring_first.astype(np.int32)),
            ring=self._upload(np.concatenate(elements.rings).astype(np.uint16)),
            ring_area=self._upload((0.5 / _ring_triangle_areas(rest)).astype(real)),
            share=self._upload(rest.relative_inverse_areas.astype(real)),
            faces=self._upload(np.ascontiguousarray(elements.faces.T).astype(np.uint16)),
            area=model.area,
            volume=model.volume,
            local_area=model.local_area,
            mobility=mobility,
            rest_area=rest.area,
            rest_volume=rest.volume,
            vertices=block.vertices,
            chunks=len(lists.chunk_first) - 1,
        )
        launches: _Launches = {}
        shares = {"keep": 0.0, "advance": 1 / (1 + model.relaxation), "relax": 1.0}  # eq. 17
        for mode, share in shares.items():
            if model.viscosity > 0:
                members["shell"]["law"]["arm"]["share"] = share
            elif mode == "relax":
                continue
            for roles, launch in self._launches_by_role(spec, block, members).items():
                launches[mode, roles] = launch
        return launches

    def _launches_by_role(
        self, spec: KernelSpec, block: Block, members: dict[str, Any]
    ) -> dict[int, Callable[[], None]]:
        """Return the launches of a kernel for one cell type, by the roles of the cells."""
        if self.resident is not None:
            return {
                1 << OWNED_ONLY: self.resident.over_cells(spec, block, 1 << OWNED_ONLY, **members),
                1 << OWNED_SHARED: self.resident.over_replicated_cells(spec, block, owned=True, **members),
                REPLICATED: self.resident.over_replicated_cells(spec, block, **members),
            }
        kernel: Kernel = self.backend.load(spec)
        return {RESIDENT: kernel.bind(self.backend.pack(kernel, **members), 0, block.cells)}

    def _shell(self, block: Block, lists: GatherLists) -> dict[str, Any]:
        """Return the members of the kernel argument that describes the elements."""
        rest = block.rest
        model, elements = rest.cell.model, rest.elements
        count = len(elements.control)
        padded = np.minimum(np.arange(-(-count // BATCH) * BATCH), count - 1)
        control = np.where(elements.control < 0, elements.control[:, :1], elements.control)[padded]
        shell: dict[str, Any] = {
            "control": self._upload(np.ascontiguousarray(control.T).astype(np.uint16)),
            "entry": self._upload(np.ascontiguousarray(lists.entry.T)),
            "law": {name: getattr(model.law, name) for name in model.law.kernel.parameters},
            "bending": model.bending,
            "elements": count,
            "stride": len(control),
        }
        if model.viscosity > 0:
            arm = {"relaxed": self.relaxed, "stride": self.stride, "share": 0.0}
            shell["law"]["arm"] = {**arm, "spring": model.spring, "vertices": block.vertices}
        if elements.loop:
            kind, weights = elements.kinds
            rest_values = np.concatenate([rest.metric, rest.curvature[..., None]], axis=-1)
            shell["kind"] = self._upload(kind[padded].astype(np.uint16))
            rows = weights[:, :, 1:].reshape(*weights.shape[:2], -1)
            padding = [(0, 0), (0, 0), (0, -rows.shape[2] % 8)]
            shell["weights"] = self._upload(np.pad(rows, padding).astype(self.precision))
        else:
            angles = np.stack([np.cos(rest.hinge_angles), np.sin(rest.hinge_angles)], axis=-1)
            rest_values = np.concatenate([rest.metric[:, 0], angles.reshape(count, 6)], axis=1)
        rest_columns = np.ascontiguousarray(rest_values.reshape(count, -1)[padded].T)
        shell["rest"] = self._upload(rest_columns.astype(self.precision))
        return shell

    def _upload(self, host_array: npt.NDArray[Any]) -> Array:
        """Upload an array that kernels access, and hold a reference to it."""
        self._arrays.append(self.backend.upload(host_array))
        return self._arrays[-1]


def memory_planes(kind: CellType) -> int:
    """Return the number of arrays (3, vertices) for the internal variables of viscosity, three per element."""
    return -(-len(kind.mesh.faces) // len(kind.mesh.vertices)) if kind.model.viscosity > 0 else 0


def slip_mobility(rest: RestState, mobility: float) -> float:
    """Return the slip velocity per difference between the forces of neighbours (`Cells.set_slip_mobility`).

    It is zero for membranes without bending stiffness, which under compression would buckle at the shortest wavelength.
    """
    return mobility / (12 * rest.mean_edge_length) if rest.cell.model.bending > 0 else 0.0


def _ring_triangle_areas(rest: RestState) -> Floats:
    """Return the rest area of the triangle of each vertex, its neighbour in the ring and the next neighbour."""
    areas = {}
    for (a, b, c), area in zip(rest.elements.faces.tolist(), rest.face_areas.tolist(), strict=True):
        areas[a, b], areas[b, c], areas[c, a] = area, area, area
    return np.array([areas[v, neighbour] for v, ring in enumerate(rest.elements.rings) for neighbour in ring])
