# SPDX-License-Identifier: BSD-3-Clause
"""Deformable cells in flow: the only place where `seiche.flow` and `seiche.cells` meet (theory/coupling)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.cells.cells import Cells
from seiche.cells.contact import Contact
from seiche.couple.immersed import ImmersedBoundary, Scheme
from seiche.couple.markers import Surfaces
from seiche.errors import CaseError, UnstableError
from seiche.flow.solver import Solver
from seiche.kernels.registry.ibm import SUPPORT, Delta


class Blood:
    """Cells that move with a flow and act on it; lengths in sites, energies in those of the lattice.

    A step of `solver` is then a step of both.
    """

    def __init__(
        self,
        solver: Solver,
        cells: Cells,
        *,
        contact: Contact | None = None,
        delta: Delta = "peskin",
        scheme: Scheme = "euler",
        viscosity_contrast: float = 1.0,
        mark_every: int = 1,
    ) -> None:
        """Put `cells` into the flow of `solver`.

        Args:
            solver: the flow, of one rank, on the device of the cells.
            cells: in the precision in which the flow computes; coordinates are those of the sites.
            contact: forces between the cells, and of walls on them.
            delta: smoothed delta function: hat, roma, peskin or cosine, of support 2, 3, 4 and 4.
            scheme: euler or adams-bashforth.
            viscosity_contrast: viscosity inside cells over that of the fluid.
            mark_every: steps after which the sites inside cells are found anew: 1, 2, 4, 8, 16 or 32.

        Raises:
            CaseError: what cannot be coupled, in one line.
        """
        if cells.backend is not solver.backend:
            raise CaseError("blood: cells and flow must share a backend: make the cells with solver.backend")
        self.solver, self.cells, self.contact = solver, cells, contact
        surfaces = [
            Surfaces(block.rest.elements.faces, block.cells, block.vertices, block.first_vertex)
            for block in cells.blocks
        ]
        self.boundary = ImmersedBoundary(
            solver,
            cells,
            delta=delta,
            scheme=scheme,
            also=() if contact is None else (contact.stage(),),
            surfaces=surfaces,
            viscosity_contrast=viscosity_contrast,
            mark_every=mark_every,
        )
        self.check()

    def step(self) -> None:
        """Advance flow and cells by one step."""
        self.solver.step()

    def run(self, steps: int) -> None:
        """Advance flow and cells by `steps` steps.

        Raises:
            UnstableError: a cell is torn, inside out, or has left the fluid.
        """
        self.solver.run(steps)
        self.check()

    def check(self) -> None:
        """Refuse to go on with cells that are torn, inside out or outside the fluid.

        Raises:
            UnstableError: with the number and the type of a cell.
        """
        vertex = self.boundary.lost_vertex()
        if vertex is not None:
            block = next(b for b in self.cells.blocks if b.slice.start <= vertex < b.slice.stop)
            number, name = (vertex - block.first_vertex) // block.vertices, block.rest.cell.name
            where = ", ".join(f"{x:.4g}" for x in self.solver.backend.download(self.cells.place)[:, vertex])
            raise UnstableError(
                f"cell {number} of type {name!r} has left the fluid at ({where}), step {self.solver.time_step}:"
                " take a smaller time step, or a stronger repulsion from the wall"
            )
        self.cells.refuse_broken(self.solver.time_step)

    def hematocrit(self) -> float:
        """Return the volume of the cells, by their meshes, over that of the sites."""
        volumes = self.solver.backend.download(self.cells.measures)[: self.cells.count, 1]
        return float(volumes.sum()) / len(self.solver.sites)

    def edges(self) -> dict[str, float]:
        """Return the mean length of the edges of each type of cell, undeformed, in sites.

        Much more than 1.5 lets fluid through; a support of 4 bears up to about 2.
        """
        found = {}
        for block in self.cells.blocks:
            corners = block.rest.control[block.rest.elements.faces]
            lengths = np.linalg.norm(corners - np.roll(corners, -1, axis=1), axis=2)
            found[block.rest.cell.name] = float(lengths.mean())
        return found

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return what a restart needs beside the flow's own: `place` and `velocity` of the vertices, (3, n)."""
        backend, count = self.solver.backend, self.cells.vertex_count
        return {
            "place": backend.download(self.cells.place)[:, :count],
            "velocity": backend.download(self.boundary.velocity)[:, :count],
        }

    def load_state(self, state: dict[str, npt.NDArray[Any]]) -> None:
        """Set what `state()` returned, after the state of the flow.

        Raises:
            CaseError: an array is missing or has another shape.
        """
        shape = (3, self.cells.vertex_count)
        hosts = []
        for name, dtype in (("place", np.float64), ("velocity", self.boundary.velocity.dtype)):
            if name not in state or state[name].shape != shape:
                found = state[name].shape if name in state else "nothing"
                raise CaseError(f"state of the cells, {name!r}: expected an array of shape {shape}, found {found}")
            host = np.zeros((3, self.cells.stride), dtype)
            host[:, : shape[1]] = state[name]
            hosts.append(host)
        self.solver.backend.assign(self.cells.place, hosts[0])
        self.boundary.restart(hosts[1] if self.solver.time_step > 0 else None)

    def memory(self) -> dict[str, float]:
        """Return bytes of the coupling for each site and for each vertex, beside flow and membranes."""
        size = np.dtype(self.solver.precision.compute).itemsize
        entries = self.boundary.bricks.entries(SUPPORT[self.boundary.delta])
        sites = self.boundary.bricks.count * (512 * 7 * size + 64) / len(self.solver.sites)
        return {"site": sites, "vertex": 7 * size + 16 + 12 + 4 * entries}
