# SPDX-License-Identifier: BSD-3-Clause
"""The tables of cells in flow: types, initial positions, contact and coupling."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from seiche.case.compressed import CompressedTable, ErrorTable
from seiche.case.flow.schema import FlowCase, FlowOutput
from seiche.case.quantities import (
    BendingModulus,
    Interval,
    Modulus,
    Point,
    PositiveEnergy,
    PositiveForce,
    PositiveLength,
    PositiveModulus,
    PositiveTime,
    PositiveVelocity,
    PositiveWaveNumber,
    SurfaceViscosity,
    Viscosity,
    VolumeModulus,
)
from seiche.case.tables import (
    FileName,
    FromList,
    OneOrMore,
    OutputName,
    PlainName,
    Table,
    check_unique_names,
    one_of,
    ordered,
)
from seiche.cells.laws import MEMBRANE_LAWS
from seiche.cells.mesh import EVANS_FUNG
from seiche.cells.red import AREA_RATIO, DIAMETER, MODEL, SHEAR, VISCOSITY
from seiche.io.cell_files import is_file_of_series

PositionsFrom = Literal["geometry", "box"]
_MODULI = ("shear_modulus", "strain_modulus")


class Biconcave(Table):
    """A red cell, z = +-(R/2) sqrt(1 - x^2)(c0 + c1 x^2 + c2 x^4), x = r/R."""

    kind: Literal["biconcave"]
    diameter: PositiveLength = Field(default=DIAMETER, description="2 R; that of Mills et al. 2004 by default (in m)")
    coefficients: Annotated[tuple[float, float, float], FromList] = Field(
        default=EVANS_FUNG, description="c0, c1 and c2; those of Evans and Fung by default"
    )
    vertices: int = Field(default=642, description="number of vertices: 12, 42, 162, 642 or 2562")


class SphereShape(Table):
    """A sphere."""

    kind: Literal["sphere"]
    diameter: PositiveLength = Field(description="diameter")
    vertices: int = Field(default=642, description="number of vertices: 12, 42, 162, 642 or 2562")


class EllipsoidShape(Table):
    """An ellipsoid, such as a platelet."""

    kind: Literal["ellipsoid"]
    half_axes: Point = Field(description="half axes along x, y and z")
    vertices: int = Field(default=642, description="number of vertices: 12, 42, 162, 642 or 2562")


class MeshFile(Table):
    """A closed mesh of outward-facing triangles from an .off, .stl or Gmsh 2 .msh file."""

    kind: Literal["mesh"]
    file: FileName = Field(description="mesh file, relative to the case file")
    unit: PositiveLength = Field(description='length of one unit of the file, such as "1 um"')


class CellTable(Table):
    """A type of cells. The in-plane law has the shear modulus G (`shear_modulus`) or k_s = 3 G (`strain_modulus`).

    Skalak's law has the additional parameter C = `area_ratio` (k_a = 3 G C in the other convention) and the area
    modulus G (1 + 2 C). The area modulus of the neo-Hookean law is 3 G, as is its surface Young's modulus. The default
    of every key is that of the validated red cell. The modulus may be omitted only for a biconcave shape with Skalak's
    law.
    """

    exactly_one = (_MODULI,)

    name: PlainName = Field(min_length=1, max_length=60, description="name of the type, for messages and outputs")
    shape: Annotated[Biconcave | SphereShape | EllipsoidShape | MeshFile, Field(discriminator="kind")] = Field(
        default=Biconcave(kind="biconcave"), description="undeformed shape; a red cell by default"
    )
    share: float = Field(default=1.0, ge=0, description="fraction of packed cells that are of this type")
    positions: FileName | None = Field(default=None, description="HemoCell .pos file (um, degrees), instead of packing")
    positions_from: PositionsFrom = Field(
        default="geometry",
        description="origin of the positions: that of the geometry's coordinates (as for openings and outputs), or, as "
        "in HemoCell, the corner of the lattice, one spacing outside the box around the vessel",
    )
    positions_outside: Literal["refuse", "drop"] = Field(
        default="refuse",
        description="cells outside the vessel are an error, or are dropped with a note, as in HemoCell",
    )
    model: Literal["loop", "triangles"] = Field(
        default="loop", description="smooth subdivision surface, or flat triangles with hinges (cheaper, less accurate)"
    )
    points: Literal[1, 3] = Field(default=3, description="integration points per element, loop only")
    law: Annotated[str, one_of(MEMBRANE_LAWS)] = Field(default="skalak", description="in-plane elasticity")
    shear_modulus: PositiveModulus | None = Field(
        default=None, description=f"G, {1e6 * SHEAR:g} uN/m by default for a biconcave cell with Skalak's law"
    )
    strain_modulus: PositiveModulus | None = Field(default=None, description="k_s = 3 G, instead of shear_modulus")
    area_ratio: float = Field(default=AREA_RATIO, ge=0, le=1e9, description="C of Skalak's law")
    bending: BendingModulus = Field(
        default=MODEL.bending, description="bending modulus (Helfrich's energy; default in J)"
    )
    curvature: Literal["rest", "none"] = Field(
        default="rest", description="spontaneous curvature: that of the undeformed shape, or zero"
    )
    area: Modulus = Field(default=MODEL.area, description="penalty on the area of the whole cell (default in N/m)")
    local_area: Modulus = Field(default=MODEL.local_area, description="penalty on the area of every triangle")
    volume: VolumeModulus = Field(default=MODEL.volume, description="penalty on the volume (default in Pa)")
    surface_viscosity: SurfaceViscosity = Field(
        default=0.0,
        description=f"shear viscosity of the membrane; where shear_modulus is that of the default red cell, "
        f"{1e6 * VISCOSITY:g} uN s/m by default, otherwise 0",
    )
    relaxation_time: PositiveTime | None = Field(
        default=None,
        description="time in which the spring in series with the surface viscosity relaxes; by default the shortest "
        "that is stable with the time step",
    )
    inner_viscosity: Viscosity | None = Field(
        default=None, description="dynamic viscosity inside; that of the fluid by default"
    )

    @model_validator(mode="before")
    @classmethod
    def _red_cell(cls, data: Any) -> Any:
        """Set modulus and viscosity of the red cell for a biconcave cell with Skalak's law and no modulus."""
        if not isinstance(data, dict) or not data.keys().isdisjoint(_MODULI) or data.get("law", "skalak") != "skalak":
            return data
        shape = data.get("shape", {"kind": "biconcave"})
        biconcave = isinstance(shape, dict) and shape.get("kind") == "biconcave"
        red = {"surface_viscosity": f"{VISCOSITY:g} N s/m", **data, "shear_modulus": f"{SHEAR:g} N/m"}
        return red if biconcave else data

    @model_validator(mode="after")
    def _one_modulus(self) -> CellTable:
        for option in ("positions_from", "positions_outside"):
            if self.positions is None and option in self.model_fields_set:
                raise ValueError(f"{option} is only allowed with positions")
        with_ratio = [name for name, law in MEMBRANE_LAWS.items() if "area_ratio" in law.kernel.parameters]
        if "area_ratio" in self.model_fields_set and self.law not in with_ratio:
            laws = " or ".join(f'"{name}"' for name in with_ratio)
            raise ValueError(f"area_ratio is only allowed with law = {laws}")
        if self.relaxation_time is not None and not self.surface_viscosity:
            raise ValueError("relaxation_time is only allowed with surface_viscosity")
        if self.model == "triangles" and "points" in self.model_fields_set:
            raise ValueError('points is only allowed with model = "loop"')
        return self


class PackingTable(Table):
    """Initial positions: cells are packed at random, without overlaps, to a hematocrit."""

    hematocrit: float = Field(gt=0, lt=1, description="volume fraction of the cells in the vessel")
    seed: int = Field(default=0, ge=0, lt=2**63, description="seed of the random positions")
    gap: PositiveLength | None = Field(
        default=None, description="minimum distance of cells from each other and walls; 2 % of their radius by default"
    )


class Adhesion(Table):
    """Morse potential between cells: depth (exp(2 b (r0 - d)) - 2 exp(b (r0 - d))) for each pair of vertices."""

    depth: PositiveEnergy = Field(description="depth of the potential of two vertices")
    steepness: PositiveWaveNumber = Field(description="b, the inverse of the width")
    rest: PositiveLength = Field(description="r0, distance of minimum energy")
    reach: PositiveLength = Field(description="cut-off distance of the force")
    _attracts = ordered(
        "rest", "reach", "rest = {rest:.3g} m must be below reach = {reach:.3g} m, otherwise there is no attraction"
    )


class ContactTable(Table):
    """Short-range forces between vertices of different cells, F = strength ((reach/d)^exponent - 1) for d < reach."""

    strength: PositiveForce = Field(default=1e-12, description="scale of the force (default in N)")
    reach: PositiveLength | None = Field(default=None, description="cut-off distance; one spacing by default")
    exponent: float = Field(default=2.0, ge=1, le=12, description="exponent of the force")
    wall_strength: PositiveForce | None = Field(default=None, description="strength at walls; strength by default")
    wall_reach: PositiveLength | None = Field(default=None, description="reach at walls; reach by default")
    adhesion: Adhesion | None = Field(default=None, description="attraction between cells; none by default")


class Coupling(Table):
    """Coupling of cells and fluid. Sums have a fixed order: results do not depend on threads or device."""

    delta: Literal["hat", "roma", "peskin", "cosine"] = Field(
        default="peskin", description="smoothed delta function, with support 2, 3, 4 or 4"
    )
    scheme: Literal["euler", "adams-bashforth"] = Field(default="euler", description="time integration, order 1 or 2")
    slip: float = Field(
        default=0.05,
        ge=0,
        le=1,
        description="mobility of the shortest membrane waves, which delta does not resolve, times viscosity and edge "
        "length, with bending; 0: vertices move with the fluid only, and membranes slowly crumple",
    )
    mark_every: Literal[1, 2, 4, 8, 16, 32] = Field(
        default=1, description="steps between updates of the sites inside cells, with inner_viscosity"
    )


class Reservoir(Table):
    """Cells enter an open vessel from a periodic tube of blood at each inlet, and leave at all openings.

    The hematocrit of the tube is within 2 % of the requested one. The cells that pass a section of the tube enter the
    vessel.
    """

    hematocrit: float | None = Field(
        default=None, gt=0, lt=1, description="hematocrit of the tube; that of [packing] by default"
    )
    length: PositiveLength | None = Field(
        default=None, description="minimum period of the tube; three of the largest cells by default"
    )
    seed: int = Field(default=0, ge=0, lt=2**63, description="seed of the random positions in the tube")
    every: int | None = Field(
        default=None,
        ge=1,
        le=2**20,
        description="steps between two exchanges of cells; by default the time in which the flow moves two sites, or "
        "1/16 of a period, from 8 to 1024 steps",
    )


class CellErrors(ErrorTable):
    """Largest absolute error of each component of the stored vectors of vertices."""

    position: PositiveLength | None = Field(default=None, description="error of positions")
    velocity: PositiveVelocity | None = Field(default=None, description="error of velocities")


class CellsOutput(CompressedTable):
    """A time series of the surfaces of all cells, a VTKHDF file for each state, or of their positions (.pos)."""

    file: OutputName = Field(description="name in the output folder, with the step added: cells.vtkhdf, cells.pos")
    every: Interval = Field(description="time or steps between two states")
    positions_from: PositionsFrom = Field(default="geometry", description="origin, .pos only; as in [[cells]]")
    absolute_error: CellErrors | None = Field(default=None, description="largest absolute errors")

    @model_validator(mode="after")
    def _known_ending(self) -> CellsOutput:
        if not self.file.lower().endswith((".vtkhdf", ".pos")):
            raise ValueError(f'file: "{self.file}" must end with .vtkhdf or .pos')
        if "positions_from" in self.model_fields_set and not self.file.lower().endswith(".pos"):
            raise ValueError("positions_from is only allowed with a .pos file")
        if self.compression != "none" and self.file.lower().endswith(".pos"):
            raise ValueError(f'compression: is not allowed with "{self.file}", which is a text file')
        return self


def check_cell_positions(cells: tuple[CellTable, ...], packing: PackingTable | None) -> None:
    """Raise a ValueError unless there are types with different names, all with positions or all to be packed."""
    if not cells:
        raise ValueError('cells: is missing; solver = "blood" needs a [[cells]] table for each type of cells')
    check_unique_names("cells: two types have", cells)
    for table in cells:
        if packing is not None and table.positions is not None:
            raise ValueError(f'cells["{table.name}"].positions: is not allowed with [packing]; give one of them')
        if packing is None and table.positions is None:
            raise ValueError(f'cells["{table.name}"].positions: is missing; give positions for all types, or [packing]')
    if packing is not None and not sum(table.share for table in cells) > 0:
        raise ValueError("cells: the shares of all types are zero; at least one must be positive")


class BloodOutput(FlowOutput):
    """Output of a run."""

    cells: Annotated[tuple[CellsOutput, ...], OneOrMore] = Field(default=(), description="time series of the cells")

    def files(self) -> Iterator[tuple[str, str]]:
        """Yield key and name of every file in the folder that a run may write."""
        yield from ((f'output.cells["{table.file}"]', table.file) for table in self.cells)
        yield from super().files()

    def intervals(self) -> Iterator[tuple[str, int | float]]:
        """Yield key and value (steps or s) of every interval between states in files."""
        yield from ((f'output.cells["{table.file}"].every', table.every) for table in self.cells)
        yield from super().intervals()

    @model_validator(mode="after")
    def _states_differ(self) -> Self:
        names = [name for _, name in self.files()]
        for table in self.cells:
            duplicate = next((name for name in names if is_file_of_series(PurePath(table.file), PurePath(name))), None)
            if duplicate:
                raise ValueError(f'two outputs write the file "{duplicate}", one is output.cells["{table.file}"]')
        return self


class BloodCase(FlowCase):
    """The case file of flow with cells."""

    solver: Literal["blood"] = Field(description="solver, which determines the kind of case")  # type: ignore[assignment]
    cells: Annotated[tuple[CellTable, ...], FromList] = Field(default=(), description="types of cells")
    packing: PackingTable | None = Field(default=None, description="random initial positions of the cells")
    contact: ContactTable = Field(
        default=ContactTable(), description="forces between cells, and between cells and walls"
    )
    coupling: Coupling = Field(default=Coupling(), description="coupling of cells and fluid")
    reservoir: Reservoir | None = Field(default=None, description="source of cells that enter an open vessel")
    output: BloodOutput = Field(default=BloodOutput(), description="output files")

    @model_validator(mode="after")
    def _cells_are_placed(self) -> Self:
        check_cell_positions(self.cells, self.packing)
        return self
