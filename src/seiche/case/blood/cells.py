# SPDX-License-Identifier: BSD-3-Clause
"""Conversion of the tables of cells to cell types, a packing and forces in lattice units, with checks of values."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seiche.backend import open_backend
from seiche.case.blood.positions import read_positions
from seiche.case.blood.schema import Biconcave, BloodCase, CellTable, EllipsoidShape, MeshFile, SphereShape
from seiche.case.blood.setup import BloodSetup, free_layers
from seiche.case.flow.units import LatticeUnits
from seiche.cells.contact import Morse, Repulsion
from seiche.cells.growth import radius_of
from seiche.cells.laws import MEMBRANE_LAWS
from seiche.cells.mesh import biconcave, ellipsoid, read_mesh
from seiche.cells.model import CellType, MembraneModel
from seiche.cells.packing import Packing, pack
from seiche.cells.space import FluidSpace, heights
from seiche.cells.vessels import check_sizes
from seiche.couple.inside import contrasts_of
from seiche.couple.limits import StepLimit, step_limit, with_shortest_relaxation
from seiche.couple.suspension import CellsSetup
from seiche.domain.occupancy import SizedSites
from seiche.domain.sites import SiteSet
from seiche.domain.surface import Surface
from seiche.errors import CaseError
from seiche.io.files import cause_of

Floats = npt.NDArray[np.float64]

#: Directions over which the width of a cell is averaged.
_DIRECTIONS = 400


def cells_setup(setup: BloodSetup, folder: Path, *, initial_state: bool = True) -> CellsSetup:
    """Return the cells of a blood case; files are relative to `folder`; without `initial_state` no cells are packed.

    Raises CaseError for invalid meshes, moduli or positions (with case file and key), FormatError for invalid files.
    """
    case, units, sites = setup.case, setup.units, setup.vessel.sites
    try:
        viscosity = (setup.invariants.tau[0] - 0.5) / 3
        types = tuple(_cell_type(table, units, viscosity, folder) for table in case.cells)
        surfaces = tuple(kind.moving_mesh() for kind in types)
        for kind, surface in zip(types, surfaces, strict=True):
            if surface.volume > len(sites):
                cell, vessel = surface.volume * units.spacing**3, len(sites) * units.spacing**3
                raise CaseError(
                    f'cells["{kind.name}"]: a cell of {cell:.3g} m^3 is larger than the vessel of {vessel:.3g} m^3;'
                    " check the unit of its mesh"
                )
        gap = _gap(case, units, surfaces)
        delta, scheme, slip = case.coupling.delta, case.coupling.scheme, case.coupling.slip
        contrasts = _contrasts(case)
        limits = _step_limits(setup, types, contrasts)
        _check_stability(units, types, limits)
        free = {} if isinstance(sites, SizedSites) else free_layers(setup)
        fillable_fraction = _fillable_fraction(case, sites, surfaces, free) if case.packing is not None else 1.0
        packing, notes = (
            _initial_positions(setup, folder, types, surfaces, gap=gap, fillable_fraction=fillable_fraction, free=free)
            if initial_state
            else (None, ())
        )
        between, wall = repulsions(case, units)
    except CaseError as error:
        raise CaseError(f"{setup.source}: {error}") from None
    except OSError as error:
        raise CaseError(f"{setup.source}: cells: {error.filename}: {cause_of(error)}") from None
    return CellsSetup(
        types=types,
        surfaces=surfaces,
        shares=tuple(table.share for table in case.cells),
        packing=packing,
        hematocrit=case.packing.hematocrit if case.packing is not None else None,
        gap=gap,
        contrasts=contrasts,
        between=between,
        wall=wall,
        limits=limits,
        fillable_fraction=fillable_fraction,
        delta=delta,
        scheme=scheme,
        mark_every=case.coupling.mark_every,
        slip=slip,
        label=setup.source,
        notes=notes,
    )


def _step_limits(setup: BloodSetup, types: Sequence[CellType], contrasts: Sequence[float]) -> tuple[StepLimit, ...]:
    """Return the limit of the time step for each type, with the viscosity inside over that outside."""
    backend, coupling = open_backend("cpu", 1), setup.case.coupling
    limit = partial(
        step_limit,
        backend,
        delta=coupling.delta,
        viscosity=(setup.invariants.tau[0] - 0.5) / 3,
        collision=setup.model.collision,
        scheme=coupling.scheme,
        slip=coupling.slip,
    )
    return tuple(limit(cell=kind, viscosity_contrast=contrast) for kind, contrast in zip(types, contrasts, strict=True))


def _check_stability(units: LatticeUnits, types: Sequence[CellType], limits: Sequence[StepLimit]) -> None:
    for kind, limit in zip(types, limits, strict=True):
        if limit.ratio < 1:
            raise CaseError(
                f'lattice: a time step of {units.step:.3g} s is unstable for cells "{kind.name}": the {limit.modulus} '
                f"allows at most {limit.ratio * units.step:.3g} s; use a smaller time step or a smaller modulus"
            )


def _cell_type(table: CellTable, units: LatticeUnits, viscosity: float, folder: Path) -> CellType:
    key = f'cells["{table.name}"]'
    try:
        mesh = undeformed_mesh(table, folder)
        scaled = Surface(mesh.vertices / units.spacing, mesh.faces)
        kind = CellType(table.name, scaled, membrane(table, units, viscosity))
        if not (kind.moving_mesh().volume > 0):
            raise CaseError("shape: the control points of its surface enclose no volume; use a smoother mesh")
    except CaseError as error:
        raise CaseError(f"{key}: {str(error).removeprefix(f'cell type {table.name!r}: ')}") from None
    return kind


def undeformed_mesh(table: CellTable, folder: Path) -> Surface:
    """Return the undeformed mesh in metres."""
    shape = table.shape
    if isinstance(shape, Biconcave):
        return biconcave(shape.vertices, 0.5 * shape.diameter, shape.coefficients)
    if isinstance(shape, SphereShape):
        return ellipsoid([0.5 * shape.diameter] * 3, shape.vertices)
    if isinstance(shape, EllipsoidShape):
        return ellipsoid(shape.half_axes, shape.vertices)
    assert isinstance(shape, MeshFile)
    mesh = read_mesh(folder / shape.file)
    return Surface(np.asarray(mesh.vertices) * shape.unit, mesh.faces)


def membrane(table: CellTable, units: LatticeUnits, viscosity: float) -> MembraneModel:
    """Return the membrane of a type in lattice units, in a fluid with the kinematic `viscosity`; G = k_s/3."""
    shear = table.shear_modulus if table.shear_modulus is not None else (table.strain_modulus or 0.0) / 3
    shear = units.to_lattice("surface_modulus", shear)
    law = MEMBRANE_LAWS[table.law]
    relaxation = table.relaxation_time
    model = MembraneModel(
        law(shear, **({"area_ratio": table.area_ratio} if "area_ratio" in law.kernel.parameters else {})),
        bending=units.to_lattice("energy", table.bending),
        spontaneous_curvature="rest" if table.curvature == "rest" else 0.0,
        area=units.to_lattice("surface_modulus", table.area),
        local_area=units.to_lattice("surface_modulus", table.local_area),
        volume=units.to_lattice("stress", table.volume),
        viscosity=units.to_lattice("surface_viscosity", table.surface_viscosity),
        relaxation=units.to_lattice("time", relaxation)
        if relaxation is not None
        else float(table.surface_viscosity > 0),
        shell="loop" if table.model == "loop" else "flat",
        points=table.points,
    )
    return model if relaxation is not None or not model.viscosity else with_shortest_relaxation(model, viscosity)


def repulsions(case: BloodCase, units: LatticeUnits) -> tuple[Repulsion, Repulsion]:
    """Return the contact laws between cells, and between cells and walls, in lattice units."""
    table = case.contact
    reach = units.to_lattice("length", table.reach) if table.reach is not None else 1.0
    strength = units.to_lattice("force", table.strength)
    morse = None
    if table.adhesion is not None:
        adhesion = table.adhesion
        lengths = (units.to_lattice("length", length) for length in (adhesion.rest, adhesion.reach))
        morse = Morse(units.to_lattice("energy", adhesion.depth), adhesion.steepness * units.spacing, *lengths)
    wall_reach = units.to_lattice("length", table.wall_reach) if table.wall_reach is not None else reach
    wall = units.to_lattice("force", table.wall_strength) if table.wall_strength is not None else strength
    return Repulsion(strength, reach, table.exponent, morse), Repulsion(wall, wall_reach, table.exponent)


def _contrasts(case: BloodCase) -> tuple[float, ...]:
    """Return, for each type, the ratio of the viscosity inside cells to that of the fluid."""
    if all(table.inner_viscosity is None for table in case.cells):
        return (1.0,) * len(case.cells)
    outer = case.fluid.viscosity
    if outer is None and case.fluid.rheology is not None and case.fluid.rheology.kind == "newtonian":
        outer = case.fluid.rheology.viscosity
    if outer is None:
        raise CaseError("cells: inner_viscosity requires a Newtonian fluid outside the cells; set fluid.viscosity")
    inner = (outer if table.inner_viscosity is None else table.inner_viscosity for table in case.cells)
    return contrasts_of([viscosity / outer for viscosity in inner], len(case.cells))


def _gap(case: BloodCase, units: LatticeUnits, surfaces: Sequence[Surface]) -> float:
    """Return the minimum distance of packed cells."""
    if case.packing is not None and case.packing.gap is not None:
        return units.to_lattice("length", case.packing.gap)
    return 0.02 * max(radius_of(surface) for surface in surfaces)


def _initial_positions(
    setup: BloodSetup,
    folder: Path,
    types: Sequence[CellType],
    surfaces: Sequence[Surface],
    *,
    gap: float,
    fillable_fraction: float,
    free: dict[str, float],
) -> tuple[Packing, tuple[str, ...]]:
    """Return the cells, packed or read from files, and notes on the files."""
    case = setup.case
    space = FluidSpace(setup.vessel.sites, free=free if case.packing is not None else None)
    check_cells_fit(space, types, surfaces, setup.units, container="the vessel", remedy="a wider vessel")
    if case.packing is not None:
        shares, seed = [table.share for table in case.cells], case.packing.seed
        requested = case.packing.hematocrit
        reduced = requested * fillable_fraction  # in a vessel with openings, only the reachable fluid is filled
        try:
            return pack(space, surfaces, reduced, shares=shares, gap=gap, seed=seed), ()
        except CaseError as error:
            message = str(error).replace(f"hematocrit = {reduced:g}:", f"hematocrit = {requested:g}:")
            raise CaseError(f"packing.{message}") from None
    return read_positions(setup, space, folder, types, surfaces)


def check_cells_fit(
    space: FluidSpace,
    types: Sequence[CellType],
    surfaces: Sequence[Surface],
    units: LatticeUnits,
    *,
    container: str,
    remedy: str,
) -> None:
    """Raise a CaseError for cells that do not fit into `space`; `container` and `remedy` appear in the message."""
    for kind, surface in zip(types, surfaces, strict=True):
        try:
            check_sizes(space, [surface])
        except CaseError:
            size = " x ".join(f"{n * units.spacing * 1e6:.3g}" for n in np.sort(np.ptp(surface.vertices, axis=0)))
            raise CaseError(
                f'cells["{kind.name}"].shape: a cell of {size} um is larger than {container}; '
                f"use smaller cells or {remedy}"
            ) from None


def mean_half_width(surface: Surface) -> float:
    """Return the extent of a surface measured from the mean of its vertices, averaged over all directions."""
    index = np.arange(_DIRECTIONS) + 0.5  # points of a Fibonacci lattice on the sphere
    height, angle = 1 - 2 * index / _DIRECTIONS, np.pi * (1 + 5**0.5) * index
    ring = np.sqrt(1 - height**2)
    directions = np.stack([ring * np.cos(angle), ring * np.sin(angle), height])
    return float(((surface.vertices - surface.vertices.mean(axis=0)) @ directions).max(axis=0).mean())


def _fillable_fraction(case: BloodCase, sites: SiteSet, surfaces: Sequence[Surface], free: dict[str, float]) -> float:
    """Return the fraction of the fluid that packed cells can fill, at least 1/2.

    At each opening, the layer `free` is excluded, and also a layer as thick as the mean half width of a cell, because
    no packed cell crosses an opening.
    """
    if not sites.iolets:
        return 1.0
    weights = np.array([table.share * surface.volume for table, surface in zip(case.cells, surfaces, strict=True)])
    depth = float(weights @ [mean_half_width(surface) for surface in surfaces]) / float(weights.sum())
    positions = sites.coords.astype(np.float64)
    layers = ((plane, free.get(plane.name, 0.0) + depth) for plane in sites.iolets)
    excluded = sum(int((heights(sites, plane, positions) < layer).sum()) for plane, layer in layers)
    return max(1.0 - excluded / len(sites), 0.5)
