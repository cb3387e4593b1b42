# SPDX-License-Identifier: BSD-3-Clause
"""Open vessels: cells leave at the openings, others enter from a periodic tube before each inlet.

The number of cells of each type in the vessel is held: one that comes out of the tube enters if the vessel lacks one of
its type and there is room. The tubes hold more blood than the vessel, so that there are always some. Every cell that
came, went or was turned away is counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.case.cells import CellsSetup
from seiche.case.setup import Setup
from seiche.case.upstream import Arrival, Upstream
from seiche.cells.mesh import mean_edge
from seiche.cells.packing import HIGHEST_HEMATOCRIT
from seiche.cells.prism import Prism
from seiche.cells.space import FluidSpace
from seiche.cells.vessels import signed_distance
from seiche.domain.sites import IoletPlane
from seiche.domain.surface import Surface
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.kernels.registry.ibm import SUPPORT

Floats = npt.NDArray[np.float64]
Keep = npt.NDArray[np.bool_]

#: Sites that cells may move between two looks, and the steps between two looks.
_TRAVEL, _LOOKS = 2.0, (8, 1024)
#: Sites between an opening and the last of the sites that a vertex near it needs.
_MARGIN = 1.5
#: Mach number of the peak velocity when nothing says it.
_UNKNOWN = 0.1
#: The tube is at least this number of the radii of its largest cell long.
_LENGTH = 6.0
#: The hematocrit of the tube over that of the vessel, which has some room without cells at its ends.
_RICHER = 1.15
#: How far behind an inlet there may be room for cells that have not come round the tube, in radii of the largest.
_DEPTHS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
#: How far a vertex may be beyond the wall, in sites: as far as the wall lets it come.
_BEYOND_WALL = 0.5
#: Closer than this, in edges of the meshes, cells count as in the way.
_CLOSE = 0.05


@dataclass
class Traffic:
    """Which cells of each type stay, those that enter, and how many passed each opening."""

    keep: list[Keep]
    enter: list[Arrival] = field(default_factory=list)
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
    """Raise a CaseError for a reservoir without an inlet, or a vessel without a hematocrit to hold."""
    if setup.case.reservoir is None:
        return
    if not inlets_of(setup):
        raise CaseError(f"{setup.source}: reservoir: the vessel has no inlet through which cells could enter")
    if setup.case.packing is None:
        raise CaseError(f"{setup.source}: reservoir: there is no [packing] with the hematocrit to hold")


class Openings:
    """The openings of a vessel, and the tubes before its inlets."""

    def __init__(self, setup: Setup, cells: CellsSetup, world: World) -> None:
        """Pack the tubes.

        Raises:
            CaseError: a hematocrit or an inlet for which that is not possible.
        """
        sites, table = setup.vessel.sites, setup.case.reservoir
        assert table is not None and cells.hematocrit is not None
        self._cells = cells
        shares = np.array([each.share for each in setup.case.cells])
        shares = shares / shares.sum()
        #: Cells of each type that the vessel should hold.
        self.wanted = shares * cells.hematocrit * len(sites) / float(shares @ cells.volumes())
        self.turned_away = 0
        rich = table.hematocrit or min(_RICHER * cells.hematocrit, HIGHEST_HEMATOCRIT)
        length = _LENGTH * cells.largest()
        if table.length is not None:
            length = setup.units.to_lattice("length", table.length)
        self._walls = FluidSpace(sites, closed=False)
        self._planes = {plane.name: Prism(sites, plane, math.ceil(length), self._walls) for plane in sites.iolets}
        self._radii = {plane.name: (plane.radius or np.inf) / sites.spacing for plane in sites.iolets}
        self._numbers = {plane.name: number for number, plane in enumerate(sites.iolets)}
        self._tubes: dict[str, Upstream] = {}
        for plane in inlets_of(setup):
            try:
                tube = Upstream(setup, cells, self._planes[plane.name], rich, table.seed, world)
            except CaseError as error:
                raise CaseError(f'{setup.source}: reservoir before iolet["{plane.name}"]: {error}') from None
            self._tubes[plane.name] = tube
        half = 0.5 * SUPPORT[setup.case.coupling.delta]
        speed = setup.invariants.velocity_scale
        lattice = setup.units.to_lattice("velocity", speed) if speed else _UNKNOWN
        self._interval = interval_of(setup)
        #: Heights behind an opening at which cells enter, and at which they count as gone.
        self._enter = half + _MARGIN + 1.0
        self._gone = half + _MARGIN + self._interval * lattice
        self._patience = self._enter + cells.largest()
        self._close = _CLOSE * min(mean_edge(surface) for surface in cells.surfaces)

    def develop(self) -> None:
        """Let the flow in the tubes develop."""
        for tube in self._tubes.values():
            tube.develop()

    def traffic(self, vertices: list[Floats], flows: Floats) -> Traffic:
        """Return who leaves and enters.

        `vertices` (n, v, 3) are those of the cells of each type, `flows` (iolets,) what enters in a step through each.
        """
        found = Traffic([np.ones(len(each), bool) for each in vertices])
        for name, prism in self._planes.items():
            limit = 0.5 * (self._enter - 1.0) if name in self._tubes else self._gone
            for kind, places in enumerate(vertices):
                height, aside = prism.heights(places)
                near = (height < limit) & (aside < 1.3 * self._radii[name] + 2.0)
                gone = near.any(axis=1) & found.keep[kind]
                if gone.any():
                    found.keep[kind] &= ~gone
                    found.left[name] = found.left.get(name, 0) + int(gone.sum())
        present = [places[keep] for places, keep in zip(vertices, found.keep, strict=True)]
        lacking = self.wanted - [len(places) for places in present]
        others = np.concatenate([places.reshape(-1, 3) for places in present])
        for name, tube in self._tubes.items():
            tube.advance(float(flows[self._numbers[name]]) * self._interval / tube.prism.area)
            waiting = tube.arrivals(self._enter)
            # Those that have come round the tube first; then any for which there is room.
            shifts = (self._enter + depth * self._cells.largest() for depth in _DEPTHS)
            for arrival in (*waiting, *(each for shift in shifts for each in tube.others(shift))):
                if lacking.max() < 0.5 and not arrival.waits:
                    break
                kind = arrival.kind
                if lacking[kind] >= 0.5 and self._has_room(arrival, others):
                    found.enter.append(arrival)
                    found.entered[name] = found.entered.get(name, 0) + 1
                    lacking[kind] -= 1
                    others = np.concatenate([others, arrival.vertices])
                    tube.done(arrival)
                elif arrival.beyond > self._patience:
                    tube.done(arrival)
                    self.turned_away += 1
        return found

    def _has_room(self, arrival: Arrival, others: Floats) -> bool:
        """Tell whether a cell is inside the vessel and meets no other: no vertex of those is in it or close to it."""
        mine = arrival.vertices
        if not (self._walls.distance(mine) < _BEYOND_WALL).all():
            return False
        low, high = mine.min(axis=0) - self._close, mine.max(axis=0) + self._close
        near = others[((others >= low) & (others <= high)).all(axis=1)]
        if not len(near):
            return True
        faces = self._cells.surfaces[arrival.kind].faces
        return bool((signed_distance(Surface(mine, faces), near) > self._close).all())

    def state(self) -> tuple[list[Floats], dict[str, Any]]:
        """Return the numbers that a restart needs, and a note."""
        parts: list[Floats] = []
        notes = {}
        for name, tube in self._tubes.items():
            numbers, notes[name] = tube.state()
            parts += numbers
        return parts, {"turned_away": self.turned_away, "tubes": notes}

    def load_state(self, numbers: Floats, note: dict[str, Any]) -> None:
        """Set what `state()` returned."""
        self.turned_away = int(note["turned_away"])
        at = 0
        for name, tube in self._tubes.items():
            at += tube.load_state(numbers[at:], note["tubes"][name])
