# SPDX-License-Identifier: BSD-3-Clause
"""The case file as tables of checked values, all in SI units; docs/reference/case.md is generated from here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from seiche.case.flow.schema_extraction import ExtractionOutput
from seiche.case.flow.schema_fluid import CarreauYasudaFluid, CassonFluid, PowerLawFluid
from seiche.case.flow.schema_geometry import Geometry
from seiche.case.flow.schema_iolet import IoletTable
from seiche.case.flow.schema_shapes import Nearest, Plane, Segment, Sphere
from seiche.case.flow.schema_walls import WallsTable
from seiche.case.quantities import (
    Density,
    ForceDensity,
    PositiveTime,
    PositiveVelocity,
    Pressure,
    StepsOrTime,
    VelocityVector,
    Viscosity,
)
from seiche.case.run_tables import OutputTable, RunTable
from seiche.case.tables import FromList, OneOrMore, OutputName, PictureName, Table, refuse_twins

#: Tables of a case with cells.
_OF_CELLS = {"cells", "packing", "contact", "coupling", "reservoir"}

FieldName = Literal[
    "pressure", "density", "velocity", "shear_rate", "stress", "wall_shear_stress", "traction", "viscosity"
]


class NewtonianFluid(Table):
    """A fluid of constant viscosity."""

    kind: Literal["newtonian"]
    viscosity: Viscosity = Field(description="dynamic viscosity")


class Fluid(Table):
    """The fluid: exactly one of `viscosity` and `rheology`."""

    density: Density = Field(default=1060.0, description="mass density; blood by default")
    viscosity: Viscosity | None = Field(default=None, description="dynamic viscosity of a Newtonian fluid")
    rheology: (
        Annotated[NewtonianFluid | CarreauYasudaFluid | CassonFluid | PowerLawFluid, Field(discriminator="kind")] | None
    ) = Field(default=None, description="how the viscosity depends on the shear rate")
    reference_pressure: Pressure = Field(
        default=0.0, description="the pressure of lattice density 1; iolet pressures near it"
    )
    initial_pressure: Pressure | None = Field(
        default=None, description="pressure at the start; reference_pressure by default"
    )
    initial_velocity: VelocityVector = Field(default=(0.0, 0.0, 0.0), description="velocity at the start, everywhere")

    @model_validator(mode="after")
    def _one_viscosity(self) -> Fluid:
        self.exactly_one_of(("viscosity", "rheology"))
        return self


class Lattice(Table):
    """The discretisation: exactly one of `step`, `tau` and `mach` fixes the time step."""

    velocity_set: Literal["D3Q15", "D3Q19", "D3Q27"] = Field(
        default="D3Q19", description="the set of lattice velocities"
    )
    collision: Literal["trt", "bgk", "mrt", "regularised"] = Field(
        default="trt", description="two relaxation times, one, many, or one that keeps nothing beyond the stress"
    )
    magic: float | None = Field(
        default=None, gt=0, le=10, description="TRT and MRT only: (tau+ - 1/2)(tau- - 1/2); 3/16 by default"
    )
    bulk_rate: float | None = Field(
        default=None, gt=0, lt=2, description="MRT only: rate of the trace of the stress; 1 by default"
    )
    even_rate: float | None = Field(
        default=None, gt=0, lt=2, description="MRT only: rate of the other even moments; 1 by default"
    )
    layout: Literal["auto", "list-ab", "list-aa", "tiles-4", "tiles-8", "moments"] = Field(
        default="auto", description="how sites are stored; the result does not depend on it. moments: regularised only"
    )
    step: PositiveTime | None = Field(default=None, description="time step")
    tau: float | None = Field(default=None, description="relaxation time of the (high-shear) viscosity")
    mach: float | None = Field(default=None, gt=0, description="Mach number of the velocity scale")
    velocity_scale: PositiveVelocity | None = Field(
        default=None, description="largest velocity to expect; by default the peak of the velocity iolets"
    )

    @model_validator(mode="after")
    def _one_step(self) -> Lattice:
        self.exactly_one_of(("step", "tau", "mach"))
        if self.magic is not None and self.collision in ("bgk", "regularised"):
            raise ValueError('magic goes only with collision = "trt" or "mrt"')
        if self.layout == "moments" and self.collision != "regularised":
            raise ValueError('layout = "moments" goes only with collision = "regularised"')
        for name in ("bulk_rate", "even_rate"):
            if getattr(self, name) is not None and self.collision != "mrt":
                raise ValueError(f'{name} goes only with collision = "mrt"')
        return self


class Time(Table):
    """How long to run: exactly one of `duration`, `steps` and `cycles`; with `steady`, at most so long."""

    duration: PositiveTime | None = Field(default=None, description="physical time")
    steps: int | None = Field(default=None, gt=0, le=2**53, description="number of time steps")
    cycles: float | None = Field(default=None, gt=0, description="number of periods of the iolets")

    steady: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="stop when the velocity changes by less than this part of itself in steady_interval",
    )
    steady_interval: StepsOrTime = Field(default=1000, description="time or steps between two looks at that change")

    @model_validator(mode="after")
    def _one_length(self) -> Time:
        self.exactly_one_of(("duration", "steps", "cycles"))
        return self


class BodyForce(Table):
    """A uniform force on the fluid."""

    force: ForceDensity = Field(description="force per volume; the same as a pressure gradient, with opposite sign")


class PrecisionTable(Table):
    """Arithmetic and storage of the populations."""

    compute: Literal["float64", "float32"] = Field(default="float64", description="arithmetic")
    storage: Literal["float64", "float32", "float16"] | None = Field(
        default=None, description="memory; compute by default"
    )

    @model_validator(mode="after")
    def _storage_fits(self) -> PrecisionTable:
        if self.compute == "float32" and self.storage == "float64":
            raise ValueError('storage = "float64" is wider than compute = "float32"; it would keep nothing more')
        return self


class FlowRun(RunTable):
    """How and where to compute; nothing here changes the physics."""

    precision: PrecisionTable = Field(default=PrecisionTable(), description="arithmetic and storage")
    partition: Literal["metis", "curve", "slabs"] = Field(
        default="metis", description="how sites are shared among ranks"
    )
    balance: Literal["sites", "measured"] = Field(
        default="sites", description="ranks share sites evenly, or what sites are measured to cost at the start"
    )
    monitor_every: int = Field(
        default=512, ge=1, le=2**31, description="steps between checks for NaN, Mach number and mass"
    )


Where = Annotated[Plane | Segment | Nearest | Sphere, Field(discriminator="kind")]


class FieldOutput(Table):
    """A time series of values at every fluid site, or at those that `where` names, in SI units."""

    file: OutputName = Field(description="VTKHDF file in the output folder")
    every: StepsOrTime = Field(description="time or steps between two states")
    fields: Annotated[tuple[FieldName, ...], FromList] = Field(
        default=("pressure", "velocity"), min_length=1, description="what to write"
    )
    where: Where | None = Field(default=None, description="only some sites; all by default")


class SurfaceOutput(Table):
    """A time series of values on the vessel wall, in SI units."""

    file: OutputName = Field(description="VTKHDF file in the output folder")
    every: StepsOrTime = Field(description="time or steps between two states")
    fields: Annotated[tuple[Literal["wall_shear_stress", "traction", "pressure"], ...], FromList] = Field(
        default=("wall_shear_stress",), min_length=1, description="what to write"
    )


class AveragesOutput(Table):
    """Means over windows of time on the wall: wall shear stress, oscillatory shear index, relative residence time.

    One state a window, at its end.
    """

    file: OutputName = Field(description="VTKHDF file in the output folder")
    start: StepsOrTime = Field(default=0, description="time or steps before the first window")
    window: StepsOrTime | None = Field(
        default=None, description="length of a window; by default the period of the iolets, or all that is left"
    )
    every: StepsOrTime | None = Field(
        default=None, description="time or steps between two samples; 200 samples a window by default"
    )


class FlowOutput(OutputTable):
    """What a run leaves behind."""

    fields: Annotated[tuple[FieldOutput, ...], OneOrMore] = Field(default=(), description="time series at the sites")
    surface: Annotated[tuple[SurfaceOutput, ...], OneOrMore] = Field(default=(), description="time series on the wall")
    extraction: Annotated[tuple[ExtractionOutput, ...], OneOrMore] = Field(
        default=(), description="HemeLB extraction files"
    )
    averages: AveragesOutput | None = Field(default=None, description="means over windows of time")
    picture: PictureName | None = Field(default=None, description="figure drawn at the end, a .png, .pdf or .svg")
    record_every: StepsOrTime | None = Field(
        default=None, description="time or steps between two samples of the flow rates; 200 samples a run by default"
    )

    def files(self) -> Iterator[tuple[str, str]]:
        """Yield key and name of every file in the folder that a run may write."""
        yield from ((f'output.fields["{table.file}"]', table.file) for table in self.fields)
        yield from ((f'output.surface["{table.file}"]', table.file) for table in self.surface)
        for table in self.extraction:
            for name in (table.file, str(PurePath(table.file).with_suffix(".off"))):
                yield f'output.extraction["{table.file}"]', name
        if self.averages is not None:
            yield "output.averages.file", self.averages.file
        if self.picture is not None:
            yield "output.picture", self.picture
        yield from super().files()


class FlowCase(Table):
    """A whole case file of flow."""

    solver: Literal["flow"] = Field(description="which solver")
    title: str = Field(default="", max_length=200, description="one line for pictures and summaries")
    geometry: Geometry = Field(description="where the fluid is")
    fluid: Fluid = Field(description="what flows")
    lattice: Lattice = Field(description="the discretisation")
    time: Time = Field(description="how long")
    iolet: Annotated[tuple[IoletTable, ...], FromList] = Field(default=(), description="conditions at the openings")
    walls: WallsTable = Field(default=WallsTable(), description="the walls of the vessel")
    body_force: BodyForce | None = Field(default=None, description="uniform force")
    run: FlowRun = Field(default=FlowRun(), description="how and where to compute")
    output: FlowOutput = Field(default=FlowOutput(), description="what is left behind")

    @model_validator(mode="before")
    @classmethod
    def _no_cells(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("solver") == "flow":
            output = data.get("output")
            given = sorted(_OF_CELLS & data.keys())
            given += ["output.cells"] if isinstance(output, dict) and "cells" in output else []
            if given:
                raise ValueError(f'{given[0]}: cells go only with solver = "blood"')
        return data

    @model_validator(mode="after")
    def _iolet_names_differ(self) -> Self:
        refuse_twins("iolet: two have", self.iolet)
        return self
