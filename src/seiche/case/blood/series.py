# SPDX-License-Identifier: BSD-3-Clause
"""Time series of the cells of a run: their surfaces in SI units, or their positions."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.case.blood.positions import center_offset, origin_of, periods, thin_axis
from seiche.case.blood.run import BloodRun
from seiche.case.blood.schema import CellsOutput
from seiche.case.blood.setup import BloodSetup
from seiche.case.compressed import same
from seiche.case.flow.series import ScheduledSeries
from seiche.case.flow.wall import open_surface, wall_surface
from seiche.case.output import OutputTarget
from seiche.case.schedule import Schedule
from seiche.cells.loop import limit_matrix
from seiche.cells.mesh import rings_of
from seiche.couple.suspension import Population
from seiche.domain.sharing import on_root
from seiche.domain.sites import LinkKind, SiteSet
from seiche.errors import FormatError
from seiche.io.background import FunctionJob, Job
from seiche.io.cell_files import SurfaceFiles, continued, list_path, read_list, state_path, step_of, wall_path
from seiche.io.formats.pos import write_pos
from seiche.io.surface_file import (
    CellSurfaces,
    FieldType,
    SurfaceExtent,
    SurfacePart,
    SurfacesJob,
    write_surfaces,
)

Floats = npt.NDArray[np.float64]

#: Units of the fields in the files.
UNITS = {"velocity": "m/s"}
#: Types and shapes of the fields of vertices and faces in the files.
_ON_VERTICES: dict[str, FieldType] = {"velocity": ("<f4", (3,))}
_ON_FACES: dict[str, FieldType] = {"cell": ("<i8", ()), "type": ("<i4", ())}


class CellsFile(ScheduledSeries):
    """A time series of the cells of a run."""

    writer: SurfaceFiles | None = None

    def __init__(self, folder: Path, table: CellsOutput, run: BloodRun, setup: BloodSetup, first_step: int) -> None:
        self.key, self.path = f'output.cells["{table.file}"]', folder / table.file
        self.schedule, self._from = Schedule(setup.steps_of(table.every)), table.positions_from
        # Relative errors of positions would depend on the origin.
        self._compression = table.compression_of(same(("velocity", *({"position"} & table.absolute_errors.keys()))))
        self._run, self._setup, self._first, self._solver = run, setup, first_step, run.solver

    @property
    def targets(self) -> Sequence[OutputTarget]:
        """Return the file from whose name those of the states are derived."""
        return (OutputTarget(self.key, self.path, series=True),)

    def make(self, capacity: int) -> None:
        """Choose the file names; a restart continues the list of earlier states."""
        earlier: list[tuple[Path, float]] | None = [] if self.path.suffix.lower() == ".vtkhdf" else None
        world, name = self._run.solver.world, self.path.name
        if self._first:
            self.path = on_root(world, self._continued_series)
        if earlier is not None and self._first and list_path(self.path).exists():
            start = self._first * self._setup.units.step * (1 + 1e-9)
            try:
                earlier = [(path, time) for path, time in read_list(self.path) if time <= start]
            except FormatError:
                earlier = []
        if self._first and on_root(world, self._has_later_states):
            self.path = continued(self.path.with_name(name), self._first)
        if earlier is not None and world.rank == 0 and (wall := wall_of(self._setup)) is not None:
            write_surfaces(wall_path(self.path), wall, compression=self._compression)
        self.writer = SurfaceFiles(self.path, earlier)
        self._run.series[name] = self.path.name

    def _continued_series(self) -> Path:
        """Return the series of the run that wrote the checkpoint if it is here, otherwise that of the case."""
        earlier = self.path.with_name(self._run.series.get(self.path.name, self.path.name))
        return earlier if any(earlier.parent.glob(f"{glob.escape(earlier.stem)}.*")) else self.path

    def _has_later_states(self) -> bool:
        """Return whether states later than the first step of this run exist, which are not replaced."""
        steps = (step_of(self.path, path) for path in self.path.parent.glob(f"{glob.escape(self.path.stem)}.*"))
        return any(step is not None and step > self._first for step in steps)

    def _take(self) -> Job:
        """Copy a share of the cells to the host; the returned job computes and writes the state during later steps."""
        assert self.writer is not None
        run, step = self._run, self._run.solver.step
        time, path = step * self._setup.units.step, state_path(self.path, step)
        populations = run.own_populations()
        if self.path.suffix.lower() == ".pos":
            job: Job = FunctionJob(
                lambda: self._placements(populations), lambda stored: self._write_pos(path, stored), lambda _: None
            )
        else:
            extent = extent_of(run, time)
            parts = partial(surface_parts, run, populations, time)
            world, compression = run.solver.world, self._compression
            job = SurfacesJob(path, world, extent, parts, units=UNITS, compression=compression)
        return self.writer.state(step, time, job)

    def _placements(self, populations: list[Population]) -> list[tuple[Floats, Floats]]:
        """Return the centers (n, 3), in sites, and the rotations (n, 3, 3) of cells, by type."""
        sites, placements = self._setup.vessel.sites, []
        cells = self._run.cells
        for kind, surface, population in zip(cells.types, cells.surfaces, populations, strict=True):
            centers, rotations = centers_and_rotations(population.vertices, surface.vertices)
            centers -= rotations @ center_offset(kind.mesh, surface)
            placements.append((centers - _whole_periods(sites, centers), rotations))
        return placements

    def _write_pos(self, path: Path, stored: list[list[tuple[Floats, Floats]]]) -> None:
        """Write the positions of the cells of all ranks, a file for each type."""
        sites, tables = self._setup.vessel.sites, self._setup.case.cells
        shift = np.asarray(sites.origin) - origin_of(self._setup.vessel, self._from)
        for number, (table, kind) in enumerate(zip(tables, self._run.cells.types, strict=True)):
            centers, rotations = (np.concatenate([placements[number][k] for placements in stored]) for k in (0, 1))
            file = path.with_name(f"{path.stem}.{kind.name}{path.suffix}") if len(tables) > 1 else path
            write_pos(file, centers * sites.spacing + shift, rotations, thin=thin_axis(table))


def _whole_periods(sites: SiteSet, points: Floats) -> Floats:
    """Return the multiples of the periods to be subtracted from `points` (..., 3) to move them into the lattice."""
    lengths = periods(sites)
    return lengths * np.floor(points / np.where(lengths > 0, lengths, np.inf))


def periodic_box(sites: SiteSet) -> Floats | None:
    """Return the ends (2, 3) of the periodic axes in metres, infinite along others; None without periodic axes."""
    if not any(sites.periodic):
        return None
    ends = np.array([[-0.5] * 3, np.asarray(sites.shape) - 0.5]) * sites.spacing + np.asarray(sites.origin)
    return np.where(sites.periodic, ends, [[-np.inf], [np.inf]])


def extent_of(run: BloodRun, time: float) -> SurfaceExtent:
    """Return the size of the file with the surfaces of all cells."""
    meshes = [(len(ids), kind.mesh) for ids, kind in zip(run.ids, run.cells.types, strict=True)]
    vertices = sum(cells * len(mesh.vertices) for cells, mesh in meshes)
    faces = sum(cells * len(mesh.faces) for cells, mesh in meshes)
    return SurfaceExtent(time, vertices, faces, _ON_VERTICES, _ON_FACES, periodic_box(run.setup.vessel.sites))


def surface_parts(run: BloodRun, populations: list[Population], time: float) -> list[SurfacePart]:
    """Return the surfaces of consecutive cells of each type, in metres, as parts of the surfaces of all cells.

    Cells of a periodic lattice are moved into its box.
    """
    sites, units = run.setup.vessel.sites, run.setup.units
    parts, first_vertex, first_face = [], 0, 0
    for number, (kind, population) in enumerate(zip(run.cells.types, populations, strict=True)):
        matrix = limit_matrix(rings_of(kind.mesh.faces)) if kind.model.shell == "loop" else None
        vertices, velocity = (on_surface(matrix, rows) for rows in (population.vertices, population.velocity))
        vertices = vertices - _whole_periods(sites, vertices.mean(axis=1, keepdims=True))
        count, size = vertices.shape[:2]
        triangles = kind.mesh.faces.astype(np.int64)
        first = 0 if population.numbers is None or not count else int(population.numbers[0])
        cell_vertices = first_vertex + size * (first + np.arange(count))
        surfaces = CellSurfaces(
            time,
            vertices.reshape(-1, 3) * sites.spacing + np.asarray(sites.origin),
            (triangles + cell_vertices[:, None, None]).reshape(-1, 3),
            {"velocity": units.to_si("velocity", velocity.reshape(-1, 3))},
            {
                "cell": np.repeat(population.ids, len(triangles)),
                "type": np.full(count * len(triangles), number, np.int32),
            },
            periodic_box(sites),
        )
        parts.append(SurfacePart(first_vertex + first * size, first_face + first * len(triangles), surfaces))
        # Not `run.ids`: cells may enter and leave before a writer's thread arrives here.
        total = count if population.numbers is None else population.total
        first_vertex, first_face = first_vertex + total * size, first_face + total * len(triangles)
    return parts


def surfaces_of(run: BloodRun, populations: list[Population], time: float) -> CellSurfaces:
    """Return the surfaces of all cells in metres; cells of a periodic lattice are moved into its box."""
    parts = [part.surfaces for part in surface_parts(run, populations, time)]
    return CellSurfaces(
        time,
        np.concatenate([part.vertices for part in parts]),
        np.concatenate([part.faces for part in parts]),
        {name: np.concatenate([part.on_vertices[name] for part in parts]) for name in _ON_VERTICES},
        {name: np.concatenate([part.on_faces[name] for part in parts]) for name in _ON_FACES},
        periodic_box(run.setup.vessel.sites),
    )


def on_surface(matrix: Any, rows: Floats) -> Floats:
    """Return values at the vertices of the surface, (n, v, 3), from values at the moving points."""
    if matrix is None or not len(rows):
        return rows
    count, size = rows.shape[:2]
    flat = matrix @ rows.transpose(1, 0, 2).reshape(size, -1)
    return np.asarray(flat.reshape(size, count, 3).transpose(1, 0, 2))


def wall_of(setup: BloodSetup) -> CellSurfaces | None:
    """Return the wall of the vessel in metres, open at its openings and periodic ends; None without walls."""
    sites, given = setup.vessel.sites, setup.vessel.surface
    if not (sites.link_kind == LinkKind.WALL).any():
        return None
    surface = wall_surface(sites) if given is None else open_surface(given, sites)
    return CellSurfaces(0.0, surface.vertices, surface.faces)


def centers_and_rotations(vertices: Floats, rest: Floats) -> tuple[Floats, Floats]:
    """Return the centers (n, 3) and rotations (n, 3, 3) of cells with `vertices` (n, v, 3).

    The rotation fits the undeformed vertices `rest` (v, 3) by least squares (Kabsch 1976).
    """
    centers = vertices.mean(axis=1)
    deformed, undeformed = vertices - centers[:, None], rest - rest.mean(axis=0)
    left, _, right = np.linalg.svd(np.einsum("nvi,vj->nij", deformed, undeformed))
    mirror = np.ones((len(vertices), 3))
    mirror[:, 2] = np.sign(np.linalg.det(left @ right))
    return centers, (left * mirror[:, None, :]) @ right
