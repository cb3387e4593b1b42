# SPDX-License-Identifier: BSD-3-Clause
"""Open vessels: cells leave at the openings, others enter from a packed reservoir before each inlet.

The number of cells of each type in the vessel is held: when one has left, the next of its type enters behind an inlet
as soon as there is room for it. The order, the places across the inlet and the directions are those of a random packing
that repeats itself along the inflow. Every cell that came or went is counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.case.cells import CellsSetup
from seiche.case.setup import Setup
from seiche.cells.mesh import mean_edge
from seiche.cells.packing import Packing, pack
from seiche.cells.prism import Prism
from seiche.cells.space import FluidSpace
from seiche.domain.sites import IoletPlane
from seiche.errors import CaseError
from seiche.kernels.registry.ibm import SUPPORT

Floats = npt.NDArray[np.float64]
Keep = npt.NDArray[np.bool_]

#: Sites that cells may move between two looks, and the steps between two looks.
_TRAVEL, _LOOKS = 3.0, (8, 1024)
#: Sites between an opening and the last of the sites that a vertex near it needs.
_MARGIN = 1.5
#: Mach number of the peak velocity when nothing says it.
_UNKNOWN = 0.1
#: The reservoir is longer than this number of the radii of its largest cell.
_LENGTH = 6.0


@dataclass
class Traffic:
    """Which cells of each type stay, the vertices of those that enter, and how many passed each opening."""

    keep: list[Keep]
    enter: list[list[Floats]]
    entered: dict[str, int] = field(default_factory=dict)
    left: dict[str, int] = field(default_factory=dict)

    @property
    def quiet(self) -> bool:
        """Return whether no cell comes or goes."""
        return not self.entered and not self.left


def inlets_of(setup: Setup) -> list[IoletPlane]:
    """Return the openings through which cells enter."""
    return [plane for plane in setup.vessel.sites.iolets if plane.role == "inlet"]


def interval_of(setup: Setup) -> float:
    """Return the steps between two looks at the openings: cells move few sites in between."""
    table, speed = setup.case.reservoir, setup.invariants.velocity_scale
    if table is not None and table.every is not None:
        return float(table.every)
    lattice = setup.units.to_lattice("velocity", speed) if speed else _UNKNOWN
    return float(min(max(math.floor(_TRAVEL / lattice), _LOOKS[0]), _LOOKS[1]))


def refuse_reservoir(setup: Setup) -> None:
    """Raise a CaseError for a reservoir without an opening, or without a hematocrit to hold."""
    if setup.case.reservoir is None:
        return
    if not inlets_of(setup):
        raise CaseError(f"{setup.source}: reservoir: the vessel has no inlet through which cells could enter")
    if setup.case.packing is None and setup.case.reservoir.hematocrit is None:
        raise CaseError(f"{setup.source}: reservoir.hematocrit: is missing, and there is no [packing] to take it from")


class Openings:
    """The openings of a vessel, and the reservoirs before its inlets."""

    def __init__(self, setup: Setup, cells: CellsSetup) -> None:
        """Pack the reservoirs.

        Raises:
            CaseError: a hematocrit or an inlet for which that is not possible.
        """
        refuse_reservoir(setup)
        self._cells = cells
        sites, table = setup.vessel.sites, setup.case.reservoir
        assert table is not None
        wanted = cells.hematocrit or 0.0
        shares = np.array([each.share for each in setup.case.cells])
        volumes = cells.volumes()
        self._shares = shares / shares.sum()
        #: Cells of each type that the vessel should hold.
        self.wanted = self._shares * wanted * len(sites) / float(self._shares @ volumes)
        self.turn = 0
        self._walls = FluidSpace(sites, closed=False)
        length = _LENGTH * cells.largest()
        if table.length is not None:
            length = setup.units.to_lattice("length", table.length)
        self._planes = {plane.name: Prism(sites, plane, length, self._walls) for plane in sites.iolets}
        self._radii = {plane.name: (plane.radius or np.inf) / sites.spacing for plane in sites.iolets}
        self._packed: dict[str, Packing] = {}
        for plane in inlets_of(setup):
            options: dict[str, Any] = {"shares": shares.tolist(), "gap": cells.gap, "seed": table.seed}
            try:
                self._packed[plane.name] = pack(self._planes[plane.name], cells.surfaces, wanted, **options)
            except CaseError as error:
                raise CaseError(f'{setup.source}: reservoir before iolet["{plane.name}"]: {error}') from None
        half = 0.5 * SUPPORT[setup.case.coupling.delta]
        speed = setup.invariants.velocity_scale
        lattice = setup.units.to_lattice("velocity", speed) if speed else _UNKNOWN
        #: Heights behind an opening at which cells enter, and at which they count as gone.
        self._enter = half + _MARGIN + 1.0
        self._gone = half + _MARGIN + interval_of(setup) * lattice
        self._near = 2.5 * cells.largest() + self._enter
        self._edge = min(mean_edge(surface) for surface in cells.surfaces)

    def traffic(self, vertices: list[Floats]) -> Traffic:
        """Return who leaves and enters, for the vertices (n, v, 3) of the cells of each type."""
        found = Traffic([np.ones(len(each), bool) for each in vertices], [[] for _ in vertices])
        for name, prism in self._planes.items():
            limit = 0.5 * (self._enter - 1.0) if name in self._packed else self._gone
            for kind, places in enumerate(vertices):
                height, aside = prism.heights(places)
                near = (height < limit) & (aside < 1.3 * self._radii[name] + 2.0)
                gone = near.any(axis=1) & found.keep[kind]
                if gone.any():
                    found.keep[kind] &= ~gone
                    found.left[name] = found.left.get(name, 0) + int(gone.sum())
        self._let_in(found, [places[keep] for places, keep in zip(vertices, found.keep, strict=True)])
        return found

    def _let_in(self, found: Traffic, present: list[Floats]) -> None:
        """Add cells that enter until the vessel has all that it should have, or there is no room."""
        lacking = self.wanted - [len(places) for places in present]
        inlets = list(self._packed)
        near = {
            name: np.concatenate([self._behind(self._planes[name], places) for places in present]) for name in inlets
        }
        while lacking.max() >= 0.5:
            entered = False
            for name in inlets:
                kind = int(lacking.argmax())
                if lacking[kind] < 0.5:
                    break
                placed = self._candidate(name, kind, near[name])
                if placed is None:
                    continue
                near[name] = np.concatenate([near[name], placed])
                found.enter[kind].append(placed)
                found.entered[name] = found.entered.get(name, 0) + 1
                lacking[kind] -= 1
                entered = True
            if not entered:
                return

    def _behind(self, prism: Prism, places: Floats) -> Floats:
        flat = places.reshape(-1, 3)
        height, _ = prism.heights(flat)
        return flat[(height > -self._near) & (height < self._near)]

    def _candidate(self, name: str, kind: int, others: Floats) -> Floats | None:
        """Return the vertices of the next cell of a type that fits behind an inlet, None if none does."""
        from scipy.spatial import cKDTree

        prism, packed, surface = self._planes[name], self._packed[name], self._cells.surfaces[kind]
        rows = np.flatnonzero(packed.kinds == kind)
        rows = rows[np.argsort(-packed.centers[rows, 0], kind="stable")]
        points = surface.vertices - surface.vertices.mean(axis=0)
        tree = cKDTree(others) if len(others) else None
        for number in range(len(rows)):
            row = rows[(self.turn + number) % len(rows)]
            local = points @ packed.rotations[row].T + packed.centers[row]
            local[:, 0] += self._enter - local[:, 0].min()
            placed = prism.world(local)
            if not (self._walls.distance(placed) < 0).all():
                continue
            if tree is not None and np.isfinite(tree.query(placed, distance_upper_bound=self._edge)[0]).any():
                continue
            self.turn += number + 1
            return placed
        return None
