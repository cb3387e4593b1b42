# SPDX-License-Identifier: BSD-3-Clause
"""The checked tables of a wave case in SI units; docs/reference/waves-case.md is generated from here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, model_validator

from seiche.case.compressed import WaveErrors
from seiche.case.quantities import (
    Density,
    Energy,
    ForceVector,
    Interval,
    Length,
    Position,
    PositiveLength,
    PositiveRate,
    PositiveTime,
    PositiveVelocity,
    Velocity,
    Volume,
)
from seiche.case.run_tables import CaseTable, OutputTable, RunTable, SnapshotTable
from seiche.case.solids import Part
from seiche.case.tables import (
    FileName,
    FromList,
    OneOrMore,
    OutputName,
    PictureName,
    Table,
    check_unique_names,
    one_of,
    ordered,
)
from seiche.case.waves.pulses import Pulse
from seiche.waves.fluxes import FLUXES

Side = Literal["free", "rigid", "absorbing"]
Sides = Annotated[tuple[Side, ...], FromList]
Axis = Literal["x", "y", "z"]
_EXTENT = "upper must exceed lower along every axis"


class MeshTable(Table):
    """The box, its trees and its elements: exactly one of `size` and `frequency`."""

    exactly_one = (("size", "frequency"),)

    lower: Position = Field(description="lower corner of the box, with two or three axes")
    upper: Position = Field(description="upper corner; the last axis points upwards")
    trees: Annotated[tuple[int, ...], FromList] = Field(
        default=(), description="number of trees along each axis, boxes that are halved into elements; 1 by default"
    )
    periodic: Annotated[tuple[bool, ...], FromList] = Field(default=(), description="periodic axes; none by default")
    nodes: int = Field(
        default=5, ge=2, le=10, description="nodes per element and direction, the order in space (that in time is four)"
    )
    size: PositiveLength | None = Field(default=None, description="largest side of an element")
    frequency: PositiveRate | None = Field(default=None, description="highest frequency, which sets the element sizes")
    error: float = Field(default=1e-2, ge=1e-5, le=0.1, description="error per wavelength (with frequency)")
    material: Literal["average", "element", "node"] = Field(
        default="average",
        description="media of elements cut by interfaces: averages around each node, or the values at centres or nodes",
    )
    flux: Annotated[str, one_of(FLUXES)] = Field(
        default="upwind", description="numerical flux: exact Riemann solution, or central average"
    )
    _has_extent = ordered("lower", "upper", _EXTENT)

    @model_validator(mode="after")
    def _one_size(self) -> MeshTable:
        if len(self.lower) != len(self.upper):
            raise ValueError(f"lower has {len(self.lower)} axes and upper {len(self.upper)}")
        for name in ("trees", "periodic"):
            values = getattr(self, name)
            if values and len(values) != len(self.lower):
                raise ValueError(f"{name} needs {len(self.lower)} entries, one for each axis; it has {len(values)}")
        if any(count < 1 for count in self.trees):
            raise ValueError(f"trees = {list(self.trees)}: expected at least one along every axis")
        return self


class SegyTable(Table):
    """A ground model in SEG-Y files in SI units: one trace per position (CDP_X, CDP_Y in m), one sample per depth."""

    density: FileName = Field(description="file of mass densities")
    cp: FileName = Field(description="file of the speeds of longitudinal waves")
    cs: FileName | None = Field(default=None, description="file of the speeds of shear waves; omit it for a fluid")
    top: Length = Field(description="height of the first samples along the last axis")
    step: PositiveLength = Field(description="depth between two samples")


class MaterialTable(Table):
    """A medium in the whole box or in the region `where`; later media replace earlier ones.

    Give `density`, `cp` and `cs`, or `segy` files, or a `file`. The file is HDF5 (or netCDF-4) with the ascending
    coordinates x, y(, z) in m, and density, cp, cs on that grid in SI units, which are interpolated. Named dimensions
    may have any order. Packed netCDF values are unpacked, missing ones rejected.
    """

    exactly_one = (("density", "file", "segy"),)

    name: str = Field(max_length=80, description="name of the medium, for messages")
    density: Density | None = Field(default=None, description="mass density")
    cp: PositiveVelocity | None = Field(default=None, description="speed of longitudinal waves")
    cs: Velocity | None = Field(default=None, description="speed of shear waves; zero or omitted for a fluid")
    qp: float | None = Field(
        default=None, ge=3, description="quality factor of P waves; by default only shear waves are attenuated"
    )
    qs: float | None = Field(default=None, ge=3, description="quality factor of shear waves; no attenuation by default")
    file: FileName | None = Field(default=None, description="file with a grid of values")
    segy: SegyTable | None = Field(default=None, description="grid of values in SEG-Y files")
    where: Part | None = Field(default=None, description="region of the medium; everywhere by default")

    @model_validator(mode="after")
    def _one_kind(self) -> MaterialTable:
        if self.density is not None and self.cp is None:
            raise ValueError("cp is missing; it is the speed of longitudinal waves")
        if self.density is None and (self.cp is not None or self.cs is not None):
            raise ValueError("cp and cs are in the file; omit the keys")
        return self


class AttenuationTable(Table):
    """Frequency band of the qualities of the materials (`qp`, `qs`), and reference frequency of their speeds."""

    band: Annotated[tuple[PositiveRate, ...], FromList] = Field(
        min_length=2, max_length=2, description="lowest and highest frequency"
    )
    reference: PositiveRate | None = Field(
        default=None, description="frequency of the speeds cp and cs; the geometric mean of the band by default"
    )
    mechanisms: int = Field(
        default=3, ge=1, le=6, description="number of relaxation mechanisms; more approximate Q better"
    )


class PointSourceTable(Table):
    """A point source: exactly one of `force`, `moment` (solids) and `volume` (fluids); in 2D, per metre."""

    exactly_one = (("force", "moment", "volume"),)

    position: Position = Field(description="position")
    time: Pulse = Field(description="pulse, the function of time")
    force: ForceVector | None = Field(default=None, description="force for a pulse value of one")
    moment: Energy | None = Field(default=None, description="seismic moment; its rate follows the pulse")
    tensor: Annotated[tuple[Annotated[tuple[float, ...], FromList], ...], FromList] = Field(
        default=(), description="moment only: symmetric matrix as a list of rows; by default the identity (explosion)"
    )
    volume: Volume | None = Field(default=None, description="injected volume; its rate follows the pulse")

    @model_validator(mode="after")
    def _one_kind(self) -> PointSourceTable:
        if self.tensor and self.moment is None:
            raise ValueError("tensor is only allowed with moment")
        return self


class PlaneWaveTable(Table):
    """A plane wave as initial condition: exact in one medium, as long as no side cuts its front."""

    kind: Literal["p", "s"] = Field(description="longitudinal or transverse")
    direction: Annotated[tuple[float, ...], FromList] = Field(description="direction of travel, of any length")
    polarization: Annotated[tuple[float, ...], FromList] | None = Field(
        default=None,
        description="polarization of a transverse wave, perpendicular to the direction; arbitrary by default",
    )
    position: Position = Field(
        description="reference point, in the medium of the wave; the velocity there follows the pulse"
    )
    velocity: PositiveVelocity = Field(description="velocity for a pulse value of one")
    time: Pulse = Field(description="pulse with peak one; initially the wave has not reached the position")


class ReceiverTable(Table):
    """A point at which the unknowns are sampled, or `count` points along a line."""

    exactly_one = (("position", "start"),)

    name: str = Field(
        min_length=1, max_length=8, pattern=r"^[A-Za-z0-9_-]+$", description="name of the station, up to 8 characters"
    )
    position: Position | None = Field(default=None, description="position")
    start: Position | None = Field(default=None, description="first point of a line; a number is appended to the names")
    end: Position | None = Field(default=None, description="last point of a line")
    count: int | None = Field(default=None, ge=2, le=9999, description="number of points of a line")

    @model_validator(mode="after")
    def _point_or_line(self) -> ReceiverTable:
        if (self.start is None) != (self.end is None) or (self.start is None) != (self.count is None):
            raise ValueError("a line of receivers needs start, end and count")
        if self.count is not None and len(self.name) > 4:
            raise ValueError(f"{self.name}: the name of a line has at most 4 characters, because a number is appended")
        return self


class MarginTable(Table):
    """Trees beyond the absorbing sides of the box, each wider than its neighbour towards the box.

    The first material and the regions extend into them. Elements are as many trees wide as in the box.
    """

    trees: int = Field(default=3, ge=1, le=100, description="number of trees beyond each absorbing side")
    growth: float = Field(
        default=1.2, ge=1.0, le=2.0, description="width of a tree over that of its neighbour; best up to 1.2"
    )


class BoundaryTable(Table):
    """Boundary conditions at the sides of the box that are not periodic, and an absorbing layer."""

    lower: Sides = Field(default=(), description="condition at the lower side of each axis; absorbing by default")
    upper: Sides = Field(default=(), description="condition at the upper side of each axis; absorbing by default")
    sponge: PositiveLength | None = Field(
        default=None,
        description="thickness of a layer at absorbing sides; that of the margin by default, if there is one",
    )
    margin: MarginTable | None = Field(default=None, description="trees beyond the absorbing sides of the box")


class WaveTime(Table):
    """Duration of the run: exactly one of `duration` and `steps`."""

    exactly_one = (("duration", "steps"),)

    duration: PositiveTime | None = Field(default=None, description="physical time")
    steps: int | None = Field(default=None, gt=0, le=2**53, description="number of time steps")
    step: PositiveTime | None = Field(default=None, description="time step; 0.9 of the largest stable one by default")
    integrator: Literal["runge-kutta", "leapfrog"] = Field(
        default="runge-kutta",
        description='fourth order in five stages, or second order in one, with smaller steps and mesh.flux = "central"',
    )


class WaveRun(RunTable):
    """Hardware and numerics of the run."""

    precision: Literal["float64", "float32"] = Field(default="float64", description="arithmetic and memory")
    ghosts: Literal["traces", "half", "faces", "variables", "elements"] = Field(
        default="traces", description='data exchanged between ranks; "half" halves the messages but is not exact'
    )
    source_model: Literal["incident", "delta"] = Field(
        default="incident",
        description="point sources: exact waves in a box of elements around each, or deltas in the nearest elements",
    )


class ReceiverOutput(Table):
    """Seismograms: all unknowns at all receivers, as HDF5."""

    file: OutputName = Field(default="receivers.h5", description="HDF5 file in the output folder")
    every: Interval = Field(default=1, description="time or steps between two samples")
    sac: bool = Field(default=False, description="also SAC files, one per receiver and component, in file.sac/")
    picture: PictureName | None = Field(default=None, description="plot of the velocities")
    section: PictureName | None = Field(
        default=None, description="record section of the last velocity, for receivers on a line"
    )


class SnapshotOutput(SnapshotTable):
    """A time series of the waves in a plane (2D: the whole box), for `seiche render`."""

    normal: Axis = Field(default="y", description="axis normal to the plane")
    at: Length | None = Field(default=None, description="position of the plane on that axis; the middle by default")
    absolute_error: WaveErrors | None = Field(default=None, description="largest absolute errors")


class PeakOutput(Table):
    """The maximum velocity of each point of a side of the box: the peak ground velocity."""

    file: OutputName = Field(default="peak.h5", description="HDF5 file in the output folder")
    side: Literal["x-", "x+", "y-", "y+", "z-", "z+"] | None = Field(
        default=None, description="side of the box; the upper side of the last axis by default"
    )
    picture: PictureName | None = Field(default=None, description="map of the peak velocities")


class WaveOutput(OutputTable):
    """Output of a run."""

    receivers: ReceiverOutput = Field(default=ReceiverOutput(), description="seismograms")
    snapshots: Annotated[tuple[SnapshotOutput, ...], OneOrMore] = Field(default=(), description="time series in planes")
    peak: PeakOutput | None = Field(default=None, description="peak ground velocity")

    def files(self) -> Iterator[tuple[str, str]]:
        """Yield key and name of every file in the folder that a run may write."""
        tables: list[tuple[str, ReceiverOutput | SnapshotOutput | PeakOutput]] = [("output.receivers", self.receivers)]
        tables += [(f'output.snapshots["{table.file}"]', table) for table in self.snapshots]
        tables += [("output.peak", self.peak)] if self.peak is not None else []
        for key, table in tables:
            for name in ("file", "picture", "section", "film"):
                if (file := getattr(table, name, None)) is not None:
                    yield f"{key}.{name}", file
        if self.receivers.sac:
            yield "output.receivers.sac", f"{self.receivers.file}.sac"
        yield from super().files()

    def intervals(self) -> Iterator[tuple[str, int | float]]:
        """Yield key and value (steps or s) of every interval between samples or states."""
        yield "output.receivers.every", self.receivers.every
        yield from ((f'output.snapshots["{table.file}"].every', table.every) for table in self.snapshots)
        yield from super().intervals()


class WaveCase(CaseTable):
    """The case file of waves."""

    solver: Literal["waves"] = Field(description="solver, which determines the kind of case")
    mesh: MeshTable = Field(description="the box and its elements")
    material: Annotated[tuple[MaterialTable, ...], FromList] = Field(
        min_length=1, description="the media; the first fills the box"
    )
    attenuation: AttenuationTable | None = Field(default=None, description="frequency band of the quality factors")
    boundary: BoundaryTable = Field(default=BoundaryTable(), description="the sides of the box")
    source: Annotated[tuple[PointSourceTable, ...], FromList] = Field(default=(), description="point sources")
    plane_wave: PlaneWaveTable | None = Field(default=None, description="a plane wave as initial condition")
    receiver: Annotated[tuple[ReceiverTable, ...], FromList] = Field(default=(), description="sampled points")
    time: WaveTime = Field(description="duration of the run")
    run: WaveRun = Field(default=WaveRun(), description="hardware and numerics")
    output: WaveOutput = Field(default=WaveOutput(), description="output files")

    @model_validator(mode="after")
    def _media_are_complete(self) -> WaveCase:
        first = self.material[0]
        if first.where is not None:
            raise ValueError(f'material: the first, "{first.name}", must fill the box; omit its where')
        lossy = next((table.name for table in self.material if table.qp is not None or table.qs is not None), None)
        if lossy is not None and self.attenuation is None:
            raise ValueError(
                f'attenuation: is missing; material["{lossy}"] has qp or qs, which require a frequency band'
            )
        if lossy is None and self.attenuation is not None:
            raise ValueError("attenuation: no material has qp or qs")
        check_unique_names("receiver: two receivers have", self.receiver)
        return self

    @property
    def dim(self) -> int:
        """Return the number of axes."""
        return len(self.mesh.lower)
