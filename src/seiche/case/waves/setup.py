# SPDX-License-Identifier: BSD-3-Clause
"""Conversion of the tables of a wave case to mesh, media and solver."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seiche.case.kind import Setup
from seiche.case.load import check_tables
from seiche.case.solids import files_of_solids
from seiche.case.source import CaseFile
from seiche.case.tables import Table
from seiche.case.waves.elements import make_mesh, sample_notes
from seiche.case.waves.layer import absorbing_sides, roots_of, sides_of
from seiche.case.waves.media import Media
from seiche.case.waves.schema import MeshTable, WaveCase
from seiche.case.waves.sources import Start, max_frequency, receivers_of, sources_of, start_of
from seiche.case.waves.times import time_steps
from seiche.domain.sharing import on_root
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.waves import Material, Mesh, PointSource
from seiche.waves.attenuation import Attenuation
from seiche.waves.basis import Basis
from seiche.waves.boxes import Surroundings, boxes_of, size_at
from seiche.waves.fluxes import FLUXES
from seiche.waves.limits import largest_step
from seiche.waves.sampled_mesh import SampledMesh
from seiche.waves.sizes import elements_per_wavelength
from seiche.waves.solver import WaveSolver

Floats = npt.NDArray[np.float64]
AXES = "xyz"
#: Maximum error per wavelength without a warning, if the case does not permit a larger one.
COARSE = 1e-2
#: Number of nodes per wavelength above which a frequency must have a wrong unit.
_MAX_NODES = 1e4


def read_wave_case(source: CaseFile) -> WaveCase:
    """Return the checked tables of a wave case; CaseError for a wrong key or value."""
    case = check_tables(source.tables, str(source.path), WaveCase)
    for problem in _inconsistencies(case):
        raise CaseError(f"{source.path}: {problem}")
    return case


def _inconsistencies(case: WaveCase) -> Iterator[str]:
    """Yield a message for each value that is inconsistent with the number of axes of the mesh or with other values."""
    dim = case.dim
    if case.time.integrator == "leapfrog":
        if case.attenuation is not None:
            yield "time.integrator: leapfrog does not support attenuation"
        for name, value, required in (
            ("mesh.flux", case.mesh.flux, "central"),
            ("run.ghosts", case.run.ghosts, "traces"),
        ):
            if value != required:
                yield f'time.integrator: leapfrog needs {name} = "{required}", not "{value}"'
    vectors: list[tuple[str, Table, tuple[str, ...]]] = []
    vectors += [(f"source[{n}]", table, ("position", "force")) for n, table in enumerate(case.source)]
    if case.plane_wave is not None:
        vectors.append(("plane_wave", case.plane_wave, ("direction", "polarization", "position")))
    vectors += [(f'receiver["{table.name}"]', table, ("position", "start", "end")) for table in case.receiver]
    for key, table, names in vectors:
        for name in names:
            value = getattr(table, name)
            if value is not None and len(value) != dim:
                yield f"{key}.{name}: has {len(value)} numbers, the mesh has {dim} axes"
    if case.plane_wave is not None and case.attenuation is not None:
        yield "plane_wave: is not supported with attenuation"
    for name in ("lower", "upper"):
        sides = getattr(case.boundary, name)
        if sides and len(sides) != dim:
            yield f"boundary.{name}: has {len(sides)} kinds, the mesh has {dim} axes"
    if case.boundary.margin is not None and not absorbing_sides(case).any():
        yield "boundary.margin: needs an absorbing side that is not periodic, but there is none"
    for snapshot in case.output.snapshots:
        if dim == 2 and snapshot.model_fields_set & {"normal", "at"}:
            yield f'output.snapshots["{snapshot.file}"]: normal and at need three axes; the mesh has two'
        if dim == 3 and snapshot.at is not None:
            axis = AXES.index(snapshot.normal)
            if not case.mesh.lower[axis] <= snapshot.at <= case.mesh.upper[axis]:
                yield f'output.snapshots["{snapshot.file}"].at: {snapshot.at:g} m is outside the mesh'
    if case.output.peak is not None and case.output.peak.side is not None:
        axis = AXES.index(case.output.peak.side[0])
        if axis >= dim or (case.mesh.periodic and case.mesh.periodic[axis]):
            yield f"output.peak.side: the mesh has no side {case.output.peak.side}"


@dataclass(frozen=True, eq=False)
class WaveSetup(Setup):
    """A case with its mesh and media, in SI units, before any field is allocated (collective).

    Attributes:
        read, case, source: the unchecked tables, the checked tables, the name of the file.
        mesh, material: the elements of this rank and their material; with attenuation, that at infinite frequency.
        attenuation: attenuation of the material, or None.
        names, receivers: names and positions of the receivers.
        steps, dt: number and duration (s) of time steps.
        limit: the largest stable time step (s).
        resolution: smallest number of nodes per wavelength, the advised number, and the highest frequency (Hz); None if
            no frequency is known.
        remarks: notes on the media.
        start: a plane wave as initial condition, or None.
        deltas: reasons why sources are represented as deltas, by the numbers of the sources.
        element_sizes: largest sides of the elements at each source, (sources, dim).
        cut: number of elements that interfaces cut.
        per_wavelength: smallest number of elements per shortest wavelength at the highest frequency, by medium.
        max_speed: the maximum wave speed, m/s.
    """

    read: CaseFile
    case: WaveCase
    source: str
    world: World
    mesh: Mesh
    material: Material
    sources: tuple[PointSource, ...]
    names: tuple[str, ...]
    receivers: tuple[tuple[float, ...], ...]
    dt: float
    steps: int
    limit: float
    resolution: tuple[float, float, float] | None
    attenuation: Attenuation | None
    remarks: tuple[str, ...] = ()
    start: Start | None = None
    deltas: Mapping[int, str] = field(default_factory=dict)
    element_sizes: Sequence[Floats] = ()
    cut: int = 0
    per_wavelength: Mapping[str, float] = field(default_factory=dict)
    max_speed: float = 0.0

    @cached_property
    def sides(self) -> tuple[str, ...]:
        """Return the kinds of the sides x-, x+, y-, ..."""
        return sides_of(self.case)

    @cached_property
    def sponge(self) -> float:
        """Return the thickness (m) of the absorbing layer, by default that of the margin; 0 without one."""
        return self.case.boundary.sponge or roots_of(self.case).margin

    @cached_property
    def box(self) -> tuple[Floats, Floats]:
        """Return lower and upper corner of the box of the case, which does not include the margin."""
        if self.case.boundary.margin is None:
            return self.mesh.extent
        return np.array(self.case.mesh.lower), np.array(self.case.mesh.upper)

    def within_box(self, points: Floats, axes: Sequence[int]) -> npt.NDArray[np.bool_]:
        """Return whether points (n, axes) are in the box, but for rounding, along some axes."""
        lower, upper = (bound[list(axes)] for bound in self.box)
        slack = 1e-9 * (upper - lower)
        return np.asarray(((points >= lower - slack) & (points <= upper + slack)).all(1))

    @property
    def inputs(self) -> list[Path]:
        """Return the input files of the case."""
        names: list[str | None] = [table.file for table in self.case.material]
        for table in self.case.material:
            names += [table.segy.density, table.segy.cp, table.segy.cs] if table.segy else []
        pulses = [table.time for table in self.case.source]
        pulses += [self.case.plane_wave.time] if self.case.plane_wave else []
        names += [name for pulse in pulses for name in pulse.files]
        files = [self.read.folder / name for name in names if name is not None]
        return [self.read.path, *files, *files_of_solids(self.case.material, self.read.folder)]

    @property
    def peak_side(self) -> int | None:
        """Return the side with recorded peak velocities, 2 axis + (0: lower, 1: upper), or None."""
        if self.case.output.peak is None:
            return None
        side = self.case.output.peak.side or AXES[self.mesh.dim - 1] + "+"
        return 2 * AXES.index(side[0]) + (side[1] == "+")

    @property
    def sample_every(self) -> int:
        """Return the number of steps between two samples of the receivers."""
        return max(1, round(self.steps_of(self.case.output.receivers.every, "output.receivers.every")))

    def solver(self, device: str | None = None) -> WaveSolver:
        """Return the solver (this allocates the fields)."""
        case = self.case
        return WaveSolver(
            self.mesh,
            self.material,
            nodes=case.mesh.nodes,
            flux=case.mesh.flux,
            boundaries=self.sides,  # type: ignore[arg-type]
            precision=case.run.precision,
            device=device or case.run.device,
            threads=case.run.threads,
            dt=self.dt,
            sources=self.sources,
            source_model=case.run.source_model,
            receivers=self.receivers,
            sample_every=min(self.sample_every, self.steps + 1),
            world=self.world,
            transport=case.run.transport,
            ghosts=case.run.ghosts,
            integrator=case.time.integrator,
            attenuation=self.attenuation,
            sponge=self.sponge,
            peak_side=self.peak_side,
        )

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Return notes for the user before a run."""
        notes = []
        if self.receivers and self.sample_every > self.steps:
            notes.append(f"output.receivers.every is longer than the run of {self.steps} steps: no sample is taken")
        return (*notes, *self._damped(), *self._deltas(), *self.remarks)

    def _deltas(self) -> Iterator[str]:
        """Yield notes on sources represented as deltas."""
        for reason in dict.fromkeys(self.deltas.values()):
            indices = [number for number, other in self.deltas.items() if other == reason]
            more = f" (and {len(indices) - 1} more)" if len(indices) > 1 else ""
            yield f"source[{indices[0]}]{more} {reason}, so it is a delta, whose waves are inexact near it"

    def distance(self, number: int) -> float:
        """Return the distance of a source from the nearest receiver, in elements at the source; infinity if none."""
        if not self.receivers:
            return math.inf
        position = np.array(self.sources[number].position)
        return float(np.linalg.norm((np.array(self.receivers) - position) / self.element_sizes[number], axis=1).min())

    def _damped(self) -> Iterator[str]:
        """Yield notes on sources and receivers in the absorbing layer, where waves are damped."""
        layer = (1 - 1e-9) * self.sponge * absorbing_sides(self.case)  # points at its edge are outside
        lower, upper = self.mesh.extent
        inner = lower + layer[:, 0], upper - layer[:, 1]
        layer_key = "boundary.sponge" if self.case.boundary.sponge else "boundary.margin"
        for points in (
            {f"source[{n}]": source.position for n, source in enumerate(self.sources)},
            {f'receiver["{name}"]': point for name, point in zip(self.names, self.receivers, strict=True)},
        ):
            damped = [key for key, point in points.items() if not _within(point, *inner)]
            if damped:
                more = f" and {len(damped) - 1} more are" if len(damped) > 1 else " is"
                yield f"{damped[0]}{more} in the layer of {layer_key}, which damps all waves"


def prepare(
    source: CaseFile, world: World | None = None, *, initial_state: bool = True, sampled: bool = False
) -> WaveSetup:
    """Generate the mesh of a case on this rank; no field is allocated (collective).

    With `sampled`, on one rank, a large mesh is represented by a sample of its elements. For an invalid case, raises
    the same CaseError or FormatError on every rank.
    """
    world = world or World.serial()
    path, folder = source.path, source.folder

    def read() -> tuple[WaveCase, Media, list[PointSource], Start | None]:
        case = read_wave_case(source)
        media = Media(case.material, case.dim, folder)
        return case, media, sources_of(case, folder), start_of(case, media.at, folder)

    case, media, sources, start = on_root(world, read)
    table = case.mesh
    lower, upper = np.array(table.lower), np.array(table.upper)
    mesh = make_mesh(case, media, str(path), world, [source.position for source in sources] if sampled else None)
    positions = _nodes(mesh, table.nodes)
    if table.material == "average":
        specified = material = media.averaged(mesh, table.nodes, positions, world)
    else:
        specified = material = media.material(mesh, positions if table.material == "node" else None)
    attenuation = None
    if case.attenuation is not None:
        material, attenuation = media.attenuated(mesh, specified, case.attenuation)
    leapfrog = case.time.integrator == "leapfrog"
    limit = largest_step(mesh, material, table.nodes, FLUXES[table.flux], world, leapfrog=leapfrog)
    step, steps = time_steps(case, limit, str(path), source.checkpoint)
    functions = [*(source.time for source in sources), *([start.motion.function] if start is not None else [])]
    frequency = max_frequency(case, functions) or table.frequency
    names, stations = receivers_of(case)
    points = {f"source[{n}]": source.position for n, source in enumerate(sources)}
    points |= {f'receiver["{name}"]': point for name, point in zip(names, stations, strict=True)}
    _check_points_in_box(
        points | ({"plane_wave": case.plane_wave.position} if case.plane_wave else {}), lower, upper, path
    )
    surroundings = Surroundings(mesh, material, table.nodes, step, world, attenuation is not None)
    deltas = _deltas(case, sources, surroundings)
    center = mesh.lower[: mesh.count] + mesh.sizes[: mesh.count] / 2
    in_box = np.all((center > lower) & (center < upper), axis=1)  # not in the margin
    return WaveSetup(
        read=source,
        case=case,
        source=str(path),
        world=world,
        mesh=mesh,
        material=material,
        sources=tuple(sources),
        names=names,
        receivers=stations,
        dt=step,
        steps=steps,
        limit=limit,
        resolution=_resolution(case, frequency, mesh, specified, in_box=in_box, world=world),
        attenuation=attenuation,
        remarks=(*sample_notes(mesh), *media.notes(lower, upper), *_unused(table, media, mesh, positions, world)),
        cut=media.cut(mesh, specified, positions, world, mesh.shares if isinstance(mesh, SampledMesh) else None),
        max_speed=float(world.allreduce_max(np.array([material.cp.max()]))[0]),
        per_wavelength=media.per_wavelength(mesh, frequency, in_box, world) if frequency else {},
        start=start,
        deltas=deltas,
        element_sizes=[size_at(point.position, mesh, world) for point in sources],
    )


def _check_points_in_box(points: Mapping[str, Sequence[float]], lower: Floats, upper: Floats, path: Path) -> None:
    """Raise a CaseError for the first of the `points`, by their keys, that is outside the box."""
    for key, point in points.items():
        if not _within(point, lower, upper):
            raise CaseError(
                f"{path}: {key}: {_meters(point)} is outside the mesh, which extends from {_meters(lower)} to "
                f"{_meters(upper)}"
            )


def _deltas(case: WaveCase, sources: Sequence[PointSource], surroundings: Surroundings) -> Mapping[int, str]:
    """Return the reasons why sources are represented as deltas, by the numbers of the sources (collective)."""
    if case.run.source_model == "delta":
        return dict.fromkeys(range(len(sources)), 'has run.source_model = "delta"')
    if case.time.integrator == "leapfrog":
        surroundings = replace(surroundings, excluded_sides=tuple(side == "absorbing" for side in sides_of(case)))
    return boxes_of(sources, surroundings)[1]


def _unused(table: MeshTable, media: Media, mesh: Mesh, positions: Floats, world: World) -> list[str]:
    """Return notes on media that are in no element (collective); averages include even thin media."""
    if table.material == "average" or isinstance(mesh, SampledMesh):
        return []
    return media.unused(mesh, positions if table.material == "node" else None, world)


def _resolution(
    case: WaveCase,
    frequency: float | None,
    mesh: Mesh,
    material: Material,
    *,
    in_box: npt.NDArray[np.bool_],
    world: World,
) -> tuple[float, float, float] | None:
    """Return the smallest number of nodes per wavelength in the box, the advised number, the frequency (collective)."""
    if not frequency:
        return None
    speed = np.where(material.cs > 0, material.cs, material.cp).reshape(mesh.count, -1).min(1)
    elements = (speed / frequency / mesh.sizes[: mesh.count].max(1))[in_box]
    fewest = -float(world.allreduce_max(np.array([-elements.min(initial=np.inf)]))[0])
    if (nodes := fewest * case.mesh.nodes) > _MAX_NODES:
        raise CaseError(
            f"source: {frequency:g} Hz, the highest frequency, has {nodes:.2g} nodes per shortest wavelength,"
            f" more than {_MAX_NODES:g}; check the units of its time and of mesh"
        )
    return (
        fewest * case.mesh.nodes,
        elements_per_wavelength(case.mesh.nodes, advised_error(case)) * case.mesh.nodes,
        frequency,
    )


def advised_error(case: WaveCase) -> float:
    """Return the error per wavelength above which a mesh is coarse; a case may permit a larger one."""
    return max(COARSE, case.mesh.error) if case.mesh.frequency is not None else COARSE


def _meters(point: Sequence[float] | Floats) -> str:
    return "(" + ", ".join(f"{c:g}" for c in point) + ") m"


def _within(point: Sequence[float], lower: Floats, upper: Floats) -> bool:
    return bool(np.all(np.array(point) >= lower) and np.all(np.array(point) <= upper))


def _nodes(mesh: Mesh, n: int) -> Floats:
    """Return the positions of all nodes, (count, nodes, dim), with the first axis fastest."""
    unit = (Basis(n).nodes + 1) / 2
    grid = np.stack([axis.ravel() for axis in reversed(np.meshgrid(*(unit,) * mesh.dim, indexing="ij"))], 1)
    return np.asarray(mesh.lower[: mesh.count, None] + mesh.sizes[: mesh.count, None] * grid)
