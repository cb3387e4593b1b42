# SPDX-License-Identifier: BSD-3-Clause
"""Deformable cells in flow, a coupling of `seiche.flow` and `seiche.cells` (theory/coupling)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array
from seiche.backend.host_threads import copy_on_threads
from seiche.cells.cells import Cells, memory_planes
from seiche.cells.contact import Contact
from seiche.couple.immersed import SLIP, ImmersedBoundary, Scheme, check_coupling, viscosity_of
from seiche.couple.markers import InitialCells
from seiche.couple.placement import placement_of
from seiche.couple.ranks import SharedBoundary, surfaces_of
from seiche.errors import CaseError, UnstableError
from seiche.flow.solver import FlowSolver
from seiche.kernels.registry.ibm import Delta
from seiche.solver.state import RowSet, State, check_row_shapes

#: Prefix of the names of row sets, which end with the number of the cell type.
CELLS = "cells/"


class Blood:
    """Cells that move with a flow and exert forces on it, in lattice units; a step of `solver` advances both."""

    def __init__(
        self,
        solver: FlowSolver,
        cells: Cells,
        *,
        contact: Contact | None = None,
        delta: Delta = "peskin",
        scheme: Scheme = "euler",
        viscosity_contrast: float | Sequence[float] = 1.0,
        mark_every: int = 1,
        slip: float = SLIP,
        previous: Blood | None = None,
        initial: InitialCells | None = None,
    ) -> None:
        """Couple `cells` with the flow of `solver`; this and all methods are collective.

        Args:
            solver: the flow, on the device of the cells.
            cells: the cells, in the compute precision of the flow and the coordinates of its sites. On several ranks,
                each rank passes all cells, or none and its part in `initial`; `cells` and `contact` then contain only
                the cells that the rank needs.
            contact: forces between cells, and of walls on cells.
            delta: smoothed delta function: hat, roma, peskin or cosine, with support 2, 3, 4 or 4.
            scheme: time integration: euler or adams-bashforth.
            viscosity_contrast: ratio of the viscosity inside cells to that of the fluid, for all types or for each.
            mark_every: steps between updates of the sites inside cells: 1, 2, 4, 8, 16 or 32.
            slip: mobility of the shortest membrane waves, which the delta function does not resolve, times viscosity
                and edge length (theory/coupling, eq. 18); with 0, vertices move with the fluid.
            previous: an earlier coupling of this flow with other cells, whose fields at sites are reused.
            initial: on several ranks, the cells, of which each rank passes some.

        Raises:
            CaseError: these objects cannot be coupled.
        """
        if cells.backend is not solver.backend:
            raise CaseError("blood: cells and flow must share a backend; create the cells with solver.backend")
        if not (math.isfinite(slip) and slip >= 0):
            raise CaseError(f"slip = {slip}: expected zero or more")
        self.solver, self.cells, self.contact = solver, cells, contact
        cells.set_slip_mobility(slip / viscosity_of(solver.model))
        coupling: dict[str, Any] = dict(
            delta=delta, scheme=scheme, viscosity_contrast=viscosity_contrast, mark_every=mark_every
        )
        #: Arguments of this coupling.
        self.options: dict[str, Any] = {**coupling, "slip": slip}
        #: Permanent identifiers of the cells of each type, for messages; by default their indices are used.
        self.ids: Sequence[npt.NDArray[np.int64]] | None = None
        self._cell_counts = [block.cells for block in cells.blocks] if initial is None else list(initial.totals)
        self.boundary: ImmersedBoundary | SharedBoundary
        previous_boundary = previous.boundary if previous is not None else None
        if solver.world.size > 1:
            check_coupling(solver, cells, delta, scheme)
            coupling["previous"] = previous_boundary if isinstance(previous_boundary, SharedBoundary) else None
            self.boundary = SharedBoundary(solver, cells, contact, initial=initial, **coupling)
        else:
            coupling["previous"] = previous_boundary if isinstance(previous_boundary, ImmersedBoundary) else None
            self.boundary = ImmersedBoundary(solver, cells, contact=contact, surfaces=surfaces_of(cells), **coupling)
        self._sharing = self.boundary.sharing if isinstance(self.boundary, SharedBoundary) else None
        self.check()

    def advance(self, steps: int = 1) -> None:
        """Advance flow and cells by `steps` steps.

        Raises:
            UnstableError: a cell is torn, inverted, outside the fluid, or has moved farther in one interval than the
                halo allows; or a population is not finite.
        """
        self.solver.start(steps)
        self.solver.finish()
        self.check()
        self.solver.check()

    def check(self) -> None:
        """Check that no cell is torn, inverted, outside the fluid or missing on a rank that needs it (collective).

        Raises:
            UnstableError: a cell violates this condition; the message contains its number and type, or a velocity.
        """
        problems = self.solver.world.allgather(self._problem())
        first = next((problem for problem in problems if problem is not None), None)
        if first is not None:
            raise UnstableError(first)
        if isinstance(self.boundary, SharedBoundary):
            self.boundary.schedule.confirm(self.solver.step)

    def _problem(self) -> str | None:
        """Return a message about the first invalid cell of this rank; None if there is none."""
        boundary, backend, step = self.boundary, self.solver.backend, self.solver.step
        vertex = boundary.lost_vertex()
        if vertex is not None:
            block = next(b for b in self.cells.blocks if b.slice.start <= vertex < b.slice.stop)
            cell = block.first_cell + (vertex - block.first_vertex) // block.vertices
            position = backend.download(self.cells.positions)[:, vertex]
            if not np.isfinite(position).all():
                return (
                    f"{self._label(cell)} has a vertex with non-finite coordinates at step {step}; use a smaller "
                    "time step, or weaker forces (moduli, contact)"
                )
            coordinates = ", ".join(f"{x:.4g}" for x in position)
            return (
                f"{self._label(cell)} has left the fluid at ({coordinates}), step {step}; use a smaller time step, or "
                "a stronger repulsion from the wall"
            )
        problem = self.cells.find_damaged(step, None if self._sharing is None else self._sharing.owned_slots())
        return None if problem is None else f"{self._label(problem[0])} {problem[1]}"

    def _label(self, cell: int) -> str:
        """Return the number and type of a cell on this rank, for messages."""
        type_index = max(k for k, block in enumerate(self.cells.blocks) if block.first_cell <= cell)
        block = self.cells.blocks[type_index]
        number = cell - block.first_cell if self._sharing is None else self._sharing.number(cell)
        cell_id = number if self.ids is None else int(self.ids[type_index][number])
        return f"cell {cell_id} of type {block.rest.cell.name!r}"

    def hematocrit(self) -> float:
        """Return the volume enclosed by the meshes of the cells, divided by that of the sites."""
        return float(self.areas_and_volumes()[:, 1].sum()) / len(self.solver.sites)

    def areas_and_volumes(self) -> npt.NDArray[np.float64]:
        """Return the area and volume of all cells of all ranks, (cells, 2)."""
        if self._sharing is not None:
            return self._sharing.gathered(self.cells.measures)
        return self.solver.backend.download(self.cells.measures)[: self.cells.count]

    def vertices(self, kind: int = 0) -> npt.NDArray[np.float64]:
        """Return the vertices (cells, n, 3) of all cells of type number `kind` of all ranks."""
        return self._gathered(self.cells.positions, kind)

    def own_vertices(self) -> list[npt.NDArray[np.float64]]:
        """Return the vertices (cells, n, 3) of the cells of this rank for each type (not collective)."""
        host = self.solver.backend.download(self.cells.positions)
        return [self._rows(host, kind)[1] for kind in range(len(self.cells.blocks))]

    def own_cells(self, kind: int = 0) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any], npt.NDArray[Any]]:
        """Return the cells of a type that this rank owns (not collective).

        Their numbers (cells,), vertices and velocities in the last step, (cells, n, 3).
        """
        download = self.solver.backend.download
        numbers, vertices = self._rows(download(self.cells.positions), kind)
        return numbers, vertices, self._rows(download(self.boundary.velocity), kind)[1]

    def velocities(self, kind: int = 0) -> npt.NDArray[Any]:
        """Return the velocities (cells, n, 3) of the vertices of all cells of a type in the last step."""
        return self._gathered(self.boundary.velocity, kind)

    def memory_metric(self, kind: int = 0) -> npt.NDArray[np.float64] | None:
        """Return the internal variables (cells, elements, 3) of surface viscosity of a type, None without it.

        They are the metric (vv, vw, ww) in which the spring of an element is free of stress (theory/cells, eq. 17).
        """
        if not (memory_arrays := self._memory_arrays_of(kind)):
            return None
        return self._by_element(np.stack([self._gathered(plane, kind) for plane in memory_arrays], axis=1), kind)

    def _memory_arrays_of(self, kind: int) -> list[Array]:
        """Return the arrays (3, stride) of the internal variables of surface viscosity that cells of a type use."""
        return self.cells.planes[: memory_planes(self.cells.blocks[kind].rest.cell)]

    def _by_element(self, memory_arrays: npt.NDArray[np.float64], kind: int) -> npt.NDArray[np.float64]:
        """Convert memory from vertex storage (cells, arrays, vertices, 3) to element storage (cells, elements, 3)."""
        return np.ascontiguousarray(
            memory_arrays.reshape(len(memory_arrays), -1, 3)[:, : self.cells.blocks[kind].elements]
        )

    def mean_edge_lengths(self) -> dict[str, float]:
        """Return the mean edge length of each type of cell, undeformed, in sites.

        The fluid leaks through membranes whose edges are much longer than 1.5 sites, or 2 sites with a support of 4.
        """
        return {block.rest.cell.name: block.rest.mean_edge_length for block in self.cells.blocks}

    def owned_vertices(self) -> npt.NDArray[np.float64]:
        """Return the vertices (n, 3) of the cells that this rank owns."""
        positions = self.solver.backend.download(self.cells.positions)
        return np.concatenate([positions[:, columns].T for _, columns in self._owned_columns()])

    def _owned_columns(self) -> Sequence[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64] | slice]]:
        """Return, for each type, the numbers of the cells that this rank owns and the columns of their vertices."""
        if self._sharing is not None:
            return self._sharing.owned_columns()
        return [(np.arange(block.cells), block.slice) for block in self.cells.blocks]

    def _rows(self, host_array: npt.NDArray[Any], kind: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
        """Return the numbers of the owned cells of a type, and their values (cells, n, 3) from an array (3, ...)."""
        cell_indices, columns = self._owned_columns()[kind]
        own = host_array[:, columns]
        rows = np.empty(own.shape[::-1], own.dtype)
        copy_on_threads(rows, own.T)
        return cell_indices, rows.reshape(len(cell_indices), self.cells.blocks[kind].vertices, 3)

    def _gathered(self, array: Array, kind: int) -> npt.NDArray[Any]:
        """Return the values (cells, n, 3) of an array at the vertices of all cells of a type (collective)."""
        owned_rows = self._rows(self.solver.backend.download(array), kind)
        cell_indices, rows = zip(*self.solver.world.allgather(owned_rows), strict=True)
        return np.asarray(np.concatenate(rows)[np.argsort(np.concatenate(cell_indices))])

    def state(self) -> State:
        """Return the state of the cells, without that of the flow; it is the same on any number of ranks.

        It has one row set per type of cells, "cells/0" and so on, with the positions `place` and `velocity` (cells,
        vertices, 3), and `relaxed` (cells, elements, 3) with surface viscosity. Each rank has the rows of the cells
        that it owns.
        """
        download, rows = self.solver.backend.download, {}
        host_arrays = {"place": download(self.cells.positions), "velocity": download(self.boundary.velocity)}
        for kind, (cell_indices, _) in enumerate(self._owned_columns()):
            arrays = {name: self._rows(host_array, kind)[1] for name, host_array in host_arrays.items()}
            if memory_arrays := self._memory_arrays_of(kind):
                by_vertex = np.stack([self._rows(download(plane), kind)[1] for plane in memory_arrays], axis=1)
                arrays["relaxed"] = self._by_element(by_vertex, kind)
            rows[f"{CELLS}{kind}"] = RowSet(cell_indices, self._cell_counts[kind], arrays)
        return State(self.solver.step, rows)

    @property
    def keys(self) -> dict[str, npt.NDArray[np.int64]]:
        """Return the keys of the rows that this rank passes to `set_state`; together, the ranks pass all rows."""
        world = self.solver.world
        return {f"{CELLS}{k}": np.arange(world.rank, count, world.size) for k, count in enumerate(self._cell_counts)}

    def set_state(self, state: State) -> None:
        """Set the state of the cells, after that of the flow; each row is passed by one of the ranks.

        Raises:
            CaseError: an array is missing or has another shape, or a cell is missing.
        """
        values: dict[str, list[Any]] = {"place": [], "velocity": [], "relaxed": []}
        numbers: list[npt.NDArray[np.int64]] = []
        for kind, (block, total) in enumerate(zip(self.cells.blocks, self._cell_counts, strict=True)):
            row_set = f"{CELLS}{kind}"
            rows = state.rows.get(row_set)
            shapes, count = (
                dict.fromkeys(("place", "velocity"), (block.vertices, 3)),
                len(rows.keys if rows is not None else self.keys[row_set]),
            )
            if memory_planes(block.rest.cell):
                shapes["relaxed"] = (block.elements, 3)
            check_row_shapes(rows, shapes, count, row_set)
            assert rows is not None
            cell_indices = np.concatenate(self.solver.world.allgather(rows.keys))
            if not np.array_equal(np.sort(cell_indices), np.arange(total)):
                raise CaseError(f"state: {row_set} has {len(cell_indices)} rows; expected each of {total} cells once")
            order = np.argsort(rows.keys)
            numbers.append(rows.keys[order])
            for name, arrays_per_type in values.items():
                arrays_per_type.append(rows.arrays[name][:][order] if name in shapes else None)
        velocities = values["velocity"] if self.solver.step > 0 else None
        placement = placement_of(self.cells, values["place"], velocities, values["relaxed"])
        self.boundary.place_all(placement._replace(numbers=numbers))

    def set_vertices(
        self,
        vertices: Sequence[npt.NDArray[Any]],
        velocities: Sequence[npt.NDArray[Any]],
        memory_metric: Sequence[npt.NDArray[np.float64] | None] | None = None,
    ) -> None:
        """Set `vertices` and `velocities` of all cells, (cells, n, 3) for each type, the same on every rank.

        `memory_metric` (cells, elements, 3) contains the internal variables of surface viscosity, None for types
        without surface viscosity. By default, or if they are missing for a viscous type, those of cells at rest are
        used.

        Raises:
            CaseError: an array has another shape.
        """
        shapes = [(total, block.vertices, 3) for block, total in zip(self.cells.blocks, self._cell_counts, strict=True)]
        for arrays in (vertices, velocities):
            if (actual := [array.shape for array in arrays]) != shapes:
                raise CaseError(f"cells: expected arrays of shapes {shapes}, found {actual}")
        velocity = velocities if self.solver.step > 0 else None
        self.boundary.place_all(placement_of(self.cells, vertices, velocity, memory_metric))

    def memory(self) -> dict[str, float]:
        """Return the memory of the coupling in bytes per site and per vertex, without flow, membranes and contact.

        The lists of bricks are part of the memory of contact lists, if there are any.
        """
        size = np.dtype(self.solver.precision.compute).itemsize
        # For each brick: force and velocity, fluid mask, touched rows, list, corner and row.
        sites = self.boundary.bricks.count * (512 * 7 * size + 64 + 8 + 12 + 16 + 4) / len(self.solver.sites)
        return {"site": sites, "vertex": self.boundary.vertex_memory() / max(self.cells.vertex_count, 1)}
