# SPDX-License-Identifier: BSD-3-Clause
"""Open vessels: cells leave at the openings, others enter from a periodic tube before each inlet.

The tubes hold their hematocrit, and every cell that their blood carries through a section is owed to the vessel: it
enters where it comes out, or, if that place is taken for long, in the first that is free. So the inflow of cells is
that of the tube (theory/coupling, eq. 17). Every cell that came, went or waits is counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from seiche.case.cells import CellsSetup
from seiche.case.margins import Margins, inlets_of, interval_of
from seiche.case.setup import Setup
from seiche.case.tubes import planned
from seiche.case.upstream import Arrival, Upstream
from seiche.cells.mesh import mean_edge
from seiche.cells.space import FluidSpace, heights
from seiche.cells.vessels import signed_distance
from seiche.domain.surface import Surface
from seiche.domain.world import World
from seiche.errors import CaseError

Floats = npt.NDArray[np.float64]
Keep = npt.NDArray[np.bool_]

#: How far behind an inlet there may be room for cells that have not come round the tube, in radii of the largest.
_DEPTHS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
#: Where a cell that has come out of the tube is put: by these parts of its way from the seam farther back.
_BACK = (0.0, 0.35, 0.7, 1.0)
#: How far a vertex may be beyond the wall, in sites: as far as the wall lets it come.
_BEYOND_WALL = 0.5
#: Closer than this, in edges of the meshes, cells count as in the way.
_CLOSE = 0.05


@dataclass
class Passed:
    """What has come in through an opening so far, less what went out: volumes of blood and of cells, in sites."""

    blood: float = 0.0
    cells: float = 0.0

    @property
    def hematocrit(self) -> float | None:
        """Return the discharge hematocrit, None before anything has passed."""
        return self.cells / self.blood if self.blood else None


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


def refuse_reservoir(setup: Setup) -> None:
    """Raise a CaseError for a reservoir without an inlet, or a vessel without a hematocrit to hold."""
    if setup.case.reservoir is None:
        return
    if not inlets_of(setup):
        raise CaseError(f"{setup.source}: reservoir: the vessel has no inlet through which cells could enter")
    if setup.case.packing is None:
        raise CaseError(f"{setup.source}: reservoir: there is no [packing] with the hematocrit to hold")


def _deep_inside(body: Surface, points: Floats) -> bool:
    """Tell whether one of the points (n, 3) is an edge's length or more inside, by the vertex next to it.

    That is known a hundred times sooner than a distance, and true of most places that are taken.
    """
    if not len(points):
        return False
    normals = np.zeros_like(body.vertices)
    np.add.at(normals, body.faces, body.vector_areas()[:, None])
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
    _, nearest = cKDTree(body.vertices).query(points)
    return bool((np.einsum("ij,ij->i", points - body.vertices[nearest], normals[nearest]) < -mean_edge(body)).any())


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
        self.wanted = table.hematocrit or cells.hematocrit
        self._walls = FluidSpace(sites, closed=False)
        plans = planned(setup, cells, self._walls)
        self._sites, self._margins = sites, Margins.of(setup)
        self._planes = {plane.name: plane for plane in sites.iolets}
        self._numbers = {plane.name: number for number, plane in enumerate(sites.iolets)}
        self.tubes: dict[str, Upstream] = {}
        #: Cells of each type that are to enter in any place that is free, by inlet.
        self._late = {plane.name: np.zeros(len(cells.types), np.int64) for plane in inlets_of(setup)}
        self.passed = {plane.name: Passed() for plane in sites.iolets}
        self._flows = np.zeros(len(sites.iolets))
        for plane in inlets_of(setup):
            try:
                tube = Upstream(setup, cells, plans[plane.name].prism, self.wanted, table.seed, world)
            except CaseError as error:
                raise CaseError(f'{setup.source}: reservoir before iolet["{plane.name}"]: {error}') from None
            self.tubes[plane.name] = tube
        self._interval = interval_of(setup)
        self._patience = cells.largest()
        self._close = _CLOSE * min(mean_edge(surface) for surface in cells.surfaces)
        #: Hematocrit of the vessel where cells come as close to the openings as anywhere else.
        self.inside: float | None = None
        self._inner = self._away(sites.coords.astype(np.float64)).sum()

    def develop(self) -> None:
        """Let the flow in the tubes develop."""
        for tube in self.tubes.values():
            tube.develop()

    def _near(self, name: str, points: Floats, height: float) -> Keep:
        """Tell which points (..., 3) are less than `height` behind an opening."""
        return np.asarray(heights(self._sites, self._planes[name], points) < height)

    def _away(self, points: Floats) -> Keep:
        """Tell which points (n, 3) are so far from all openings that a cell there need not be at one."""
        largest, margins = self._cells.largest(), self._margins
        far = np.ones(len(points), bool)
        for name in self._planes:
            far &= ~self._near(name, points, (margins.enter if name in self.tubes else margins.gone) + largest)
        return far

    def measure(self, vertices: list[Floats]) -> float | None:
        """Return the hematocrit away from the openings, by the middles of cells; None in a vessel too short."""
        if not self._inner:
            return None
        middles = (each.mean(axis=1) for each in vertices)
        counts = np.array([int(self._away(each).sum()) for each in middles])
        return float(counts @ self._cells.volumes()) / float(self._inner)

    def feed(self, flows: Floats) -> None:
        """Advance the tubes by what came in since the last look; `flows` (iolets,) enter now in a step."""
        came = 0.5 * (self._flows + flows) * self._interval
        self._flows = np.asarray(flows, np.float64)
        for name, passed in self.passed.items():
            passed.blood += float(came[self._numbers[name]])
        for name, tube in self.tubes.items():
            tube.advance(float(came[self._numbers[name]]) / tube.prism.area)

    def traffic(self, vertices: list[Floats]) -> Traffic:
        """Return who leaves and enters, after `feed`; `vertices` (n, v, 3) are those of the cells of each type."""
        found, volumes = Traffic([np.ones(len(each), bool) for each in vertices]), self._cells.volumes()
        self.inside = self.measure(vertices)
        for name in self._planes:
            limit = self._margins.back if name in self.tubes else self._margins.gone
            for kind, places in enumerate(vertices):
                gone = self._near(name, places, limit).any(axis=1) & found.keep[kind]
                if number := int(gone.sum()):
                    found.keep[kind] &= ~gone
                    found.left[name] = found.left.get(name, 0) + number
                    self.passed[name].cells -= number * float(volumes[kind])
                    if name in self.tubes:  # comes in again with the blood
                        self._late[name][kind] += number
        others = np.concatenate([each[keep].reshape(-1, 3) for each, keep in zip(vertices, found.keep, strict=True)])
        for name, tube in self.tubes.items():
            if self._flows[self._numbers[name]] <= 0:
                continue
            reach = self._margins.enter + (max(_DEPTHS) + 3.0) * self._cells.largest()
            around = others[tube.prism.heights(others)[0] < reach]
            for arrival in self._wanting(name, tube):
                late = self._late[name]
                if not arrival.waits and late[arrival.kind] <= 0:
                    continue
                placed = next((each for each in self._places(arrival, tube) if self._has_room(each, around)), None)
                if placed is not None:
                    found.enter.append(placed)
                    found.entered[name] = found.entered.get(name, 0) + 1
                    self.passed[name].cells += float(volumes[arrival.kind])
                    others, around = (np.concatenate([each, placed.vertices]) for each in (others, around))
                    tube.done(arrival)
                    late[arrival.kind] -= not arrival.waits
                elif arrival.beyond > self._patience:
                    tube.done(arrival)
                    late[arrival.kind] += 1
        return found

    def _wanting(self, name: str, tube: Upstream) -> Iterator[Arrival]:
        """Yield those that have come out of the tube, then any that may stand in for those that waited too long."""
        yield from tube.arrivals(self._margins.enter)
        for depth in _DEPTHS:
            if not (self._late[name] > 0).any():
                return
            yield from tube.others(self._margins.enter + depth * self._cells.largest())

    def _places(self, arrival: Arrival, tube: Upstream) -> Iterator[Arrival]:
        """Yield a cell where it is, then farther back, down to the seam: others before it may be slower."""
        for part in _BACK if arrival.waits else _BACK[:1]:
            moved = arrival.vertices - part * arrival.beyond * tube.prism.frame[0]
            yield replace(arrival, vertices=moved)

    def waiting(self) -> dict[str, int]:
        """Return how many cells are owed to the vessel at each inlet."""
        return {name: int(sum(tube.waiting()) + self._late[name].sum()) for name, tube in self.tubes.items()}

    def _has_room(self, arrival: Arrival, others: Floats) -> bool:
        """Tell whether a cell is inside the vessel and meets no other: no vertex of those is in it or close to it."""
        mine = arrival.vertices
        low, high = mine.min(axis=0) - self._close, mine.max(axis=0) + self._close
        near = others[((others >= low) & (others <= high)).all(axis=1)]
        body = Surface(mine, self._cells.surfaces[arrival.kind].faces)
        if _deep_inside(body, near) or not (self._walls.distance(mine) < _BEYOND_WALL).all():
            return False
        return not len(near) or bool((signed_distance(body, near) > self._close).all())

    def state(self) -> tuple[list[Floats], dict[str, Any]]:
        """Return the numbers that a restart needs, and a note."""
        parts: list[Floats] = []
        notes = {}
        for name, tube in self.tubes.items():
            numbers, notes[name] = tube.state()
            parts += numbers
        passed = {name: [each.blood, each.cells] for name, each in self.passed.items()}
        late = {name: each.tolist() for name, each in self._late.items()}
        return parts, {"late": late, "passed": passed, "flows": self._flows.tolist(), "tubes": notes}

    def load_state(self, numbers: Floats, note: dict[str, Any]) -> None:
        """Set what `state()` returned."""
        self._late = {name: np.array(each, np.int64) for name, each in note["late"].items()}
        self._flows = np.array(note["flows"], np.float64)
        self.passed = {name: Passed(*each) for name, each in note["passed"].items()}
        at = 0
        for name, tube in self.tubes.items():
            at += tube.load_state(numbers[at:], note["tubes"][name])
