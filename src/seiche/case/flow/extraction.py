# SPDX-License-Identifier: BSD-3-Clause
"""Sites and values of an [[output.extraction]] table, in the units of HemeLB."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seiche.case.flow.schema_extraction import ExtractionOutput
from seiche.case.flow.setup import FlowSetup
from seiche.case.flow.values import lattice_names, to_si, warm_up
from seiche.case.quantities import parse_quantity
from seiche.domain.links import outward_normals
from seiche.domain.sharing import shared_from_root
from seiche.domain.sites import LinkKind, SiteSet

if TYPE_CHECKING:
    from seiche.domain.world import World
    from seiche.flow import Solver
    from seiche.io.formats.extraction_series import ExtractionSeries

#: For each field: number of components, value type in the file, and the fields of `si_fields` on which it depends.
FIELDS: dict[str, tuple[int, int, tuple[str, ...]]] = {
    "pressure": (1, 0, ("pressure",)),
    "velocity": (3, 0, ("velocity",)),
    "vonmisesstress": (1, 0, ("stress",)),
    "shearstress": (1, 0, ("wall_shear_stress",)),
    "shearrate": (1, 0, ("shear_rate",)),
    "stresstensor": (6, 0, ("stress", "pressure")),
    "traction": (3, 0, ("stress", "pressure")),
    "tangentialprojectiontraction": (3, 0, ("wall_shear_stress",)),
    "normalprojectiontraction": (3, 0, ("stress", "pressure")),
    "mpirank": (1, 2, ()),
}
MMHG = parse_quantity("1 mmHg", dimension="pressure")
#: Distances (spacings) within which HemeLB assigns a site to a plane, a line and a point of the surface.
PLANE_REACH, LINE_REACH, POINT_REACH = 0.5, math.sqrt(0.5), math.sqrt(3.0)
#: Index into "xx yy zz xy xz yz" of the components of the symmetric tensor.
_FULL = np.array([[0, 3, 4], [3, 1, 5], [4, 5, 2]])


def selected_sites(table: ExtractionOutput, sites: SiteSet) -> npt.NDArray[np.int64]:
    """Return the ascending indices into `sites.coords` of the sites that `table` selects."""
    kinds = {"surface": LinkKind.WALL, "surfacepoint": LinkKind.WALL, "surfaceWithinSphere": LinkKind.WALL}
    kinds |= {"inlet": LinkKind.INLET, "outlet": LinkKind.OUTLET}
    rows = np.arange(len(sites), dtype=np.int64)
    if table.sites in kinds:
        rows = sites.boundary[(sites.link_kind == kinds[table.sites]).any(axis=1)]
    if table.point is None:
        return rows
    offset = (np.asarray(sites.origin) - table.point) / sites.spacing + sites.coords[rows]
    radius = math.inf if table.radius is None else table.radius / sites.spacing
    inside: npt.NDArray[np.bool_]
    if table.normal is not None:
        axial, distance = _axial_and_radial(offset, table.normal)
        inside = (np.abs(axial) <= PLANE_REACH) & (distance <= radius)
    elif table.end is not None:
        line = np.subtract(table.end, table.point) / sites.spacing
        axial, distance = _axial_and_radial(offset, line)
        inside = (axial >= 0.0) & (axial <= np.linalg.norm(line)) & (distance <= LINE_REACH)
    else:
        inside = np.linalg.norm(offset, axis=1) <= (POINT_REACH if table.sites == "surfacepoint" else radius)
    return np.asarray(rows[inside])


def _axial_and_radial(offset: npt.NDArray[np.float64], direction: npt.ArrayLike) -> tuple[Any, Any]:
    """Return the component of `offset` (n, 3) along `direction`, and its distance from that axis."""
    unit = np.asarray(direction) / np.linalg.norm(direction)
    axial = offset @ unit
    return axial, np.linalg.norm(offset - axial[:, None] * unit, axis=1)


class Extraction:
    """Values of one extraction file."""

    def __init__(self, table: ExtractionOutput, setup: FlowSetup, solver: Solver, world: World) -> None:
        self._table, self._setup, self._solver, self._world = table, setup, solver, world
        sites = setup.vessel.sites
        selected = shared_from_root(world, lambda: selected_sites(table, sites))
        self._rows = np.flatnonzero(np.isin(solver.owned, selected, assume_unique=True))
        site = solver.owned[self._rows]  # ascending
        self._coords = sites.coords[site]
        self._normals = np.zeros((len(site), 3))
        row = np.searchsorted(sites.boundary, site)
        at_wall = np.flatnonzero(np.isin(site, sites.boundary, assume_unique=True))
        self._normals[at_wall] = outward_normals(sites)[row[at_wall]]
        self._sources = tuple(dict.fromkeys(name for field in table.fields for name in FIELDS[field][2]))
        self._snapshots = solver.measures.snapshots(lattice_names(self._sources), self._rows)

    @property
    def step(self) -> int:
        """Return the solver's step."""
        return self._solver.step

    def warm_up(self) -> None:
        """Allocate memory and compile kernels in advance (collective)."""
        warm_up(self._solver, self._snapshots, self._setup.case.output.in_flight)

    def take(self) -> Callable[[], dict[str, npt.NDArray[Any]]]:
        """Take a snapshot (collective); the returned function returns the values by name, in any thread."""
        snapshot = self._solver.measures.snapshot(self._snapshots)

        def values() -> dict[str, npt.NDArray[Any]]:
            si = to_si(snapshot.fields(), self._setup.units, self._sources)
            pairs = zip(self._table.field_names(), self._table.fields, strict=True)
            return {name: self._value(field, si) for name, field in pairs}

        return values

    def _value(self, field: str, si: dict[str, npt.NDArray[Any]]) -> npt.NDArray[Any]:
        if field == "mpirank":
            return np.full(len(self._rows), self._world.rank, np.int32)
        if field == "pressure":
            return si["pressure"] / MMHG
        if field in ("velocity", "shearrate", "tangentialprojectiontraction"):
            return si[FIELDS[field][2][0]]
        if field == "shearstress":
            return np.asarray(np.linalg.norm(si["wall_shear_stress"], axis=1))
        if field == "vonmisesstress":
            tensor = si["stress"][:, _FULL]
            deviator = tensor - np.trace(tensor, axis1=1, axis2=2)[:, None, None] / 3.0 * np.eye(3)
            return np.asarray(np.sqrt(1.5 * (deviator**2).sum(axis=(1, 2))))
        total = si["stress"][:, _FULL] - si["pressure"][:, None, None] * np.eye(3)
        if field == "stresstensor":
            return np.asarray(total[:, [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]])
        traction = np.einsum("nij,nj->ni", total, self._normals)
        if field == "traction":
            return np.asarray(traction)
        return np.asarray(np.einsum("ni,ni->n", traction, self._normals)[:, None] * self._normals)

    def open(self, path: Path) -> ExtractionSeries:
        """Create the file `path` and its offset file (collective)."""
        from seiche.io.formats.extraction import ExtractionField
        from seiche.io.formats.extraction_series import ExtractionSeries

        sites, reference = self._setup.vessel.sites, self._setup.units.reference_pressure / MMHG
        fields = [
            ExtractionField(name, *FIELDS[field][:2], (reference,) if field == "pressure" else ())
            for name, field in zip(self._table.field_names(), self._table.fields, strict=True)
        ]
        grid: dict[str, Any] = {"spacing": sites.spacing, "origin": sites.origin, "coords": self._coords}
        return ExtractionSeries(path, self._world, fields=fields, **grid)
