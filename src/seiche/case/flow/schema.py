# SPDX-License-Identifier: BSD-3-Clause
"""The tables of a flow case, checked and in SI units; docs/reference/case.md is generated from here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, model_validator

from seiche.case.flow.schema_extraction import ExtractionOutput
from seiche.case.flow.schema_forces import ForceOutput
from seiche.case.flow.schema_iolet import IoletTable, without_patterns
from seiche.case.flow.schema_output import AveragesOutput, FieldOutput, SurfaceOutput
from seiche.case.flow.schema_shapes import (
    ArteryTree,
    Bifurcation,
    Channel,
    Duct,
    PeriodicBox,
    TubeShape,
    WallsTable,
    opening_names,
)
from seiche.case.images import ImageRegion
from seiche.case.quantities import (
    Density,
    ForceDensity,
    Interval,
    Point,
    PositiveLength,
    PositiveRate,
    PositiveTime,
    PositiveVelocity,
    Pressure,
    VelocityVector,
    Viscosity,
)
from seiche.case.run_tables import CaseTable, OutputTable, RunTable
from seiche.case.solids import Part
from seiche.case.tables import FileName, FromList, OneOrMore, PictureName, Table, check_unique_names

#: Tables of a case with cells.
_CELL_TABLES = {"cells", "packing", "contact", "coupling", "reservoir"}

Shape = Annotated[TubeShape | Duct | Channel | PeriodicBox | Bifurcation | ArteryTree, Field(discriminator="kind")]


class Geometry(Table):
    """The vessel: exactly one of `gmy`, `stl`, `image`, `solid` and `shape`."""

    exactly_one = (("gmy", "stl", "image", "solid", "shape"),)

    spacing: PositiveLength = Field(description="distance between adjacent lattice sites")
    gmy: FileName | None = Field(default=None, description="HemeLB geometry file, relative to the case file")
    stl: FileName | None = Field(default=None, description="STL surface, ASCII or binary, relative to the case file")
    image: ImageRegion | None = Field(default=None, description="region of an image of voxels")
    solid: Part | None = Field(default=None, description="inside of a body, cut at the iolets: a table of any kind")
    shape: Shape | None = Field(default=None, description="built-in shape")
    obstacle: Annotated[tuple[Part, ...], FromList] = Field(
        default=(), description="solid bodies in the vessel, each a table of any kind; not with `gmy`"
    )
    unit: PositiveLength | None = Field(default=None, description="length unit of the STL file; needed with `stl`")
    origin: Point | None = Field(default=None, description="position of the site (0, 0, 0); not with `shape`, `solid`")
    periodic: Annotated[tuple[Literal["x", "y", "z"], ...], FromList] = Field(
        default=(), description="periodic axes of an STL vessel, which ends in planes perpendicular to them, or image"
    )

    @property
    def periodic_axes(self) -> tuple[bool, bool, bool]:
        """Return whether the vessel is periodic along x, y and z by the key `periodic`."""
        return "x" in self.periodic, "y" in self.periodic, "z" in self.periodic

    @model_validator(mode="after")
    def _one_source(self) -> Geometry:
        source = self.only_key_of(self.exactly_one[0])
        if source == "stl" and self.unit is None:
            raise ValueError('the length unit of an STL file is unknown; add the key unit, such as "1 mm"')
        if source != "stl" and self.unit is not None:
            raise ValueError("the key unit is only allowed with stl")
        if source not in ("stl", "image") and self.periodic:
            raise ValueError("the key periodic is only allowed with stl and image; built-in shapes have their own")
        if self.obstacle and source == "gmy":
            raise ValueError("obstacle: is not allowed with gmy, whose sites are fixed")
        if source in ("shape", "solid") and self.origin is not None:
            raise ValueError(f"the key origin is not allowed with {source}, whose position is fixed")
        return self


class NewtonianFluid(Table):
    """A fluid of constant viscosity."""

    kind: Literal["newtonian"]
    viscosity: Viscosity = Field(description="dynamic viscosity")


class ThinningFluid(Table):
    """A viscosity law, defined by all its constants or by a preset."""

    @model_validator(mode="after")
    def _check_constants(self) -> Self:
        """Reject a preset together with constants, an incomplete set, and eta_inf above eta_0."""
        presets = get_args(get_args(type(self).model_fields["preset"].annotation)[0])
        names = {name: field.alias or name for name, field in type(self).model_fields.items()}
        constants = [name for name in names if name not in ("kind", "preset")]
        present = [names[name] for name in constants if getattr(self, name) is not None]
        preset, count = getattr(self, "preset", None), {2: "two", 3: "three", 4: "four", 5: "five"}[len(constants)]
        if preset is not None and present:
            raise ValueError(f'preset = "{preset}" already sets {present[0]}; give a preset or all {count} constants')
        if preset is None and len(present) < len(constants):
            missing_key = next(names[name] for name in constants if getattr(self, name) is None)
            listed = ", ".join(names[name] for name in constants[:-1]) + f" and {names[constants[-1]]}"
            raise ValueError(f"{missing_key} is missing; give {listed}, or a preset ({', '.join(presets)})")
        low, high = getattr(self, "eta_inf", None), getattr(self, "eta_0", None)
        if low is not None and high is not None and low > high:
            raise ValueError("eta_inf is larger than eta_0; a shear-thinning fluid has eta_inf <= eta_0")
        return self


class CassonFluid(ThinningFluid):
    """Blood with a yield stress: eta = (sqrt(yield_stress) + sqrt(eta_inf g))^2/g, at most eta_0; g the shear rate."""

    kind: Literal["casson"]
    preset: Literal["human"] | None = Field(default=None, description="published constants, instead of all three")
    yield_stress: Pressure | None = Field(
        default=None, ge=0, description="yield stress, below which the fluid hardly flows"
    )
    eta_inf: Viscosity | None = Field(default=None, description="viscosity at high shear rate")
    eta_0: Viscosity | None = Field(default=None, description="viscosity at zero shear rate, the maximum")


class PowerLawFluid(ThinningFluid):
    """A truncated power law: eta = consistency (g s)^(n - 1), with the shear rate g limited to a range."""

    kind: Literal["power-law"]
    preset: Literal["human"] | None = Field(default=None, description="published constants, instead of all four")
    consistency: Viscosity | None = Field(default=None, description="viscosity of the law at a shear rate of 1/s")
    n: float | None = Field(default=None, gt=0, le=1, description="exponent: stress ~ g^n")
    shear_rate_min: PositiveRate | None = Field(default=None, description="lowest shear rate of the law")
    shear_rate_max: PositiveRate | None = Field(default=None, description="highest shear rate of the law")

    @model_validator(mode="after")
    def _check_range(self) -> PowerLawFluid:
        low, high = self.shear_rate_min, self.shear_rate_max
        if low is not None and high is not None and low > high:
            raise ValueError("shear_rate_min is larger than shear_rate_max")
        return self


class CarreauYasudaFluid(ThinningFluid):
    """Shear-thinning blood: eta = eta_inf + (eta_0 - eta_inf)(1 + (lambda g)^a)^((n - 1)/a)."""

    kind: Literal["carreau-yasuda"]
    preset: Literal["human", "mouse"] | None = Field(
        default=None, description="published constants, instead of all five"
    )
    eta_0: Viscosity | None = Field(default=None, description="viscosity at zero shear rate")
    eta_inf: Viscosity | None = Field(default=None, description="viscosity at high shear rate")
    relaxation_time: PositiveTime | None = Field(default=None, alias="lambda", description="time constant")
    a: float | None = Field(default=None, gt=0, le=100, description="sharpness of the transition")
    n: float | None = Field(default=None, gt=0, le=1, description="exponent of the power-law range")


class Fluid(Table):
    """The fluid: exactly one of `viscosity` and `rheology`."""

    exactly_one = (("viscosity", "rheology"),)

    density: Density = Field(default=1060.0, description="mass density; blood by default")
    viscosity: Viscosity | None = Field(default=None, description="dynamic viscosity of a Newtonian fluid")
    rheology: (
        Annotated[NewtonianFluid | CarreauYasudaFluid | CassonFluid | PowerLawFluid, Field(discriminator="kind")] | None
    ) = Field(default=None, description="viscosity as a function of the shear rate")
    reference_pressure: Pressure = Field(
        default=0.0, description="pressure at lattice density 1; choose it near the iolet pressures"
    )
    initial_pressure: Pressure | None = Field(
        default=None, description="initial pressure; reference_pressure by default"
    )
    initial_velocity: VelocityVector = Field(default=(0.0, 0.0, 0.0), description="uniform initial velocity")


class Lattice(Table):
    """The discretisation: exactly one of `step`, `tau` and `mach` fixes the time step."""

    exactly_one = (("step", "tau", "mach"),)

    velocity_set: Literal["D3Q15", "D3Q19", "D3Q27"] = Field(default="D3Q19", description="lattice velocities")
    collision: Literal["trt", "bgk", "mrt", "regularised"] = Field(
        default="trt",
        description="two, one or multiple relaxation times; regularised: one, without moments of higher order",
    )
    magic: float | None = Field(
        default=None, gt=0, le=10, description="TRT, MRT: (tau+ - 1/2)(tau- - 1/2); 3/16 by default"
    )
    bulk_rate: float | None = Field(default=None, gt=0, lt=2, description="MRT: rate of the stress trace; default 1")
    even_rate: float | None = Field(default=None, gt=0, lt=2, description="MRT: rate of other even moments; default 1")
    layout: Literal["auto", "list-ab", "list-aa", "tiles-4", "tiles-8", "moments"] = Field(
        default="auto", description="memory layout of sites; results do not depend on it. moments: regularised only"
    )
    step: PositiveTime | None = Field(default=None, description="time step")
    tau: float | None = Field(default=None, description="relaxation time of the (high-shear) viscosity")
    mach: float | None = Field(default=None, gt=0, description="Mach number of the velocity scale")
    velocity_scale: PositiveVelocity | None = Field(
        default=None, description="largest expected velocity; by default the peak of the velocity iolets"
    )

    @model_validator(mode="after")
    def _one_step(self) -> Lattice:
        if self.magic is not None and self.collision in ("bgk", "regularised"):
            raise ValueError('magic is only allowed with collision = "trt" or "mrt"')
        if self.layout == "moments" and self.collision != "regularised":
            raise ValueError('layout = "moments" is only allowed with collision = "regularised"')
        for name in ("bulk_rate", "even_rate"):
            if getattr(self, name) is not None and self.collision != "mrt":
                raise ValueError(f'{name} is only allowed with collision = "mrt"')
        return self


class Time(Table):
    """Duration of the run: exactly one of `duration`, `steps` and `cycles`; with `steady`, the maximum duration."""

    exactly_one = (("duration", "steps", "cycles"),)

    duration: PositiveTime | None = Field(default=None, description="physical time")
    steps: int | None = Field(default=None, gt=0, le=2**53, description="number of time steps")
    cycles: float | None = Field(default=None, gt=0, description="number of periods of the iolets")
    steady: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="stop when the relative change of the velocity over steady_interval falls below this value",
    )
    steady_interval: Interval = Field(default=1000, description="time or steps between two checks of steady")


class BodyForce(Table):
    """A uniform force on the fluid."""

    force: ForceDensity = Field(description="force per volume: minus the equivalent pressure gradient")


class PrecisionTable(Table):
    """Arithmetic and storage of the populations."""

    compute: Literal["float64", "float32"] = Field(
        default="float64", description="floating-point type of the arithmetic"
    )
    storage: Literal["float64", "float32", "float16"] | None = Field(
        default=None, description="storage of the populations; that of compute by default"
    )

    @model_validator(mode="after")
    def _storage_fits(self) -> PrecisionTable:
        if self.compute == "float32" and self.storage == "float64":
            raise ValueError('storage = "float64" is wider than compute = "float32"; use at most "float32"')
        return self


class FlowRun(RunTable):
    """Hardware and numerics of the run; the physics does not depend on them."""

    precision: PrecisionTable = Field(default=PrecisionTable(), description="arithmetic and storage")
    partition: Literal["metis", "curve", "bisection", "slabs"] = Field(
        default="metis", description="distribution of sites to ranks"
    )
    balance: Literal["sites", "measured"] = Field(
        default="sites", description="balance the number of sites per rank, or their cost as measured at the start"
    )
    monitor_every: int = Field(default=512, ge=1, le=2**31, description="steps between checks (NaN, Mach number, mass)")


class FlowOutput(OutputTable):
    """Output of a run."""

    fields: Annotated[tuple[FieldOutput, ...], OneOrMore] = Field(default=(), description="time series at the sites")
    surface: Annotated[tuple[SurfaceOutput, ...], OneOrMore] = Field(default=(), description="time series on the wall")
    extraction: Annotated[tuple[ExtractionOutput, ...], OneOrMore] = Field(default=(), description="extraction files")
    averages: AveragesOutput | None = Field(default=None, description="means over time windows")
    force: Annotated[tuple[ForceOutput, ...], OneOrMore] = Field(default=(), description="forces on parts of the wall")
    picture: PictureName | None = Field(default=None, description="figure drawn at the end, a .png, .pdf or .svg")
    record_every: Interval | None = Field(
        default=None, description="time or steps between two samples of flow rates, forces; default 200 samples per run"
    )

    @model_validator(mode="after")
    def _bodies_differ(self) -> Self:
        check_unique_names("force: two bodies have", self.force)
        return self

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

    def intervals(self) -> Iterator[tuple[str, int | float]]:
        """Yield key and value (steps or s) of every interval between samples or states."""
        for kind in ("fields", "surface", "extraction"):
            yield from ((f'output.{kind}["{table.file}"].every', table.every) for table in getattr(self, kind))
        if self.record_every is not None:
            yield "output.record_every", self.record_every
        yield from super().intervals()


class FlowCase(CaseTable):
    """The case file of flow."""

    solver: Literal["flow"] = Field(description="solver, which determines the kind of case")
    geometry: Geometry = Field(description="the vessel")
    fluid: Fluid = Field(description="the fluid")
    lattice: Lattice = Field(description="the discretisation")
    time: Time = Field(description="duration of the run")
    iolet: Annotated[tuple[IoletTable, ...], FromList] = Field(default=(), description="conditions at the openings")
    walls: WallsTable = Field(default=WallsTable(), description="the walls of the vessel")
    body_force: BodyForce | None = Field(default=None, description="uniform force")
    run: FlowRun = Field(default=FlowRun(), description="hardware and numerics")
    output: FlowOutput = Field(default=FlowOutput(), description="output files")

    @model_validator(mode="before")
    @classmethod
    def _no_cells(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("solver") == "flow":
            output = data.get("output")
            keys = sorted(_CELL_TABLES & data.keys())
            keys += ["output.cells"] if isinstance(output, dict) and "cells" in output else []
            if keys:
                raise ValueError(f'{keys[0]}: cells are only allowed with solver = "blood"')
        return data

    @model_validator(mode="after")
    def _iolet_names_differ(self) -> Self:
        self.__dict__["iolet"] = without_patterns(self.iolet, opening_names(self.geometry.shape))
        check_unique_names("iolet: two iolets have", self.iolet)
        return self
