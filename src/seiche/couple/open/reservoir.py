# SPDX-License-Identifier: BSD-3-Clause
"""Open vessels: cells leave at the openings, others enter from a periodic tube before each inlet.

The tubes hold their hematocrit, and every cell that their blood carries through a section is owed to the vessel: it
enters where it comes out, or, if that place is taken for long, in the first that is free. So the inflow of cells is
that of the tube (theory/coupling, eq. 17). Every cell that came, went or waits is counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.cells.space import heights
from seiche.couple.open.beginning import continued
from seiche.couple.open.entering import Room
from seiche.couple.open.leading import lead, tied
from seiche.couple.open.tubes import TubePlan
from seiche.couple.open.upstream import GOLDEN_TURN, Arrival, Upstream
from seiche.couple.open.vessel import OpenVessel
from seiche.couple.suspension import CellsSetup, Population, named
from seiche.domain.surface import bounds
from seiche.domain.world import World
from seiche.errors import CaseError, UnstableError
from seiche.flow.model import Iolet, VelocityIolet
from seiche.flow.profiles import PARABOLA

Floats = npt.NDArray[np.float64]
Keep = npt.NDArray[np.bool_]

#: So many radii of the largest cell behind the inlet cells go on as their twins in the tube do.
_LED = 3.0
#: How far behind an inlet there may be room for cells that have not come round the tube, in these radii: behind those
#: that are led, and if more than so many wait, among them.
_DEPTHS, _SHALLOW, _MANY = (3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0), (0.0, 0.5, 1.0, 1.5, 2.0, 2.5), 3
#: Where a cell that has come out of the tube is put: by these parts of its way from the seam farther back.
_BACK = (0.0, 0.35, 0.7, 1.0)
#: So many turns are tried in a look at most: as many as cells wait.
_TURNS = 2


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
    """Which cells of each type stay, those that enter, and how many passed each opening.

    `led` are cells by type and row, and where they are put beside their twins in the tube.
    """

    keep: list[Keep]
    led: dict[tuple[int, int], Arrival] = field(default_factory=dict)
    enter: list[Arrival] = field(default_factory=list)
    entered: dict[str, int] = field(default_factory=dict)
    left: dict[str, int] = field(default_factory=dict)

    @property
    def quiet(self) -> bool:
        """Return whether no cell comes or goes."""
        return not self.entered and not self.left and not self.led


@dataclass(frozen=True, eq=False)
class _Seen:
    """The cells of a vessel as they are: `vertices` (n, v, 3) and `names` (n,) for life, by type."""

    vertices: list[Floats]
    names: list[npt.NDArray[np.int64]]

    @cached_property
    def boxes(self) -> list[tuple[Floats, Floats]]:
        """Return the lower and upper corners (n, 3) of the boxes around them."""
        return [bounds(each) for each in self.vertices]


def _without_ramp(iolet: Iolet, steps: float) -> float:
    """Return the flow from which a straight line over the first `steps` brings in what the ramp does, over the last."""
    return max(1.0 - iolet.ramp / steps, 0.0) if isinstance(iolet, VelocityIolet) else 0.0


@contextmanager
def _named(inlet: str) -> Iterator[None]:
    """Say of a failure inside the block that it is one of the tube before an inlet."""
    try:
        yield
    except UnstableError as error:
        message = f'in the reservoir before iolet["{inlet}"], which has a count of steps of its own: {error}'
        raise UnstableError(message) from None


class Openings:
    """The openings of a vessel, and the tubes before its inlets."""

    def __init__(self, vessel: OpenVessel, cells: CellsSetup, plans: Mapping[str, TubePlan], world: World) -> None:
        """Pack the tubes as planned, by inlet.

        Raises:
            CaseError: a hematocrit or an inlet for which that is not possible.
        """
        sites = vessel.sites
        self._cells, self._walls = cells, vessel.walls
        self.wanted = vessel.hematocrit
        self._sites, self._margins = sites, vessel.margins
        self._planes = {plane.name: plane for plane in sites.iolets}
        self._numbers = {plane.name: number for number, plane in enumerate(sites.iolets)}
        self.tubes: dict[str, Upstream] = {}
        #: Cells of each type that are to enter in any place that is free, by inlet.
        self._late = {plane.name: np.zeros(len(cells.types), np.int64) for plane in vessel.inlets}
        self.passed = {plane.name: Passed() for plane in sites.iolets}
        #: Sites a step through each opening at the last look, None before the first.
        self._flows: Floats | None = None
        for plane in vessel.inlets:
            try:
                tube = Upstream(vessel, cells, plane.name, plans[plane.name].prism, world)
            except CaseError as error:
                raise CaseError(f'{cells.label}: reservoir before iolet["{plane.name}"]: {error}') from None
            self.tubes[plane.name] = tube
        self._interval, self._free = vessel.interval, vessel.kept_free()
        #: For which part of the steps before the first look all flows at an opening: what a ramp leaves of them.
        self._whole = np.array([_without_ramp(iolet, self._interval) for iolet in vessel.model.iolets])
        #: Sites a step by which less flows in than at the look before.
        self._less = np.zeros(len(sites.iolets))
        self._patience = cells.largest()
        self._looks = 0
        #: Cells that still go with their twins in a tube, by their names for life: type, number there and rounds.
        self._twins: dict[str, dict[int, tuple[int, int, float]]] = {name: {} for name in self.tubes}
        #: Hematocrit of the vessel where cells come as close to the openings as anywhere else.
        self.inside: float | None = None
        self._inner = self._away(sites.coords.astype(np.float64)).sum()

    def begin(self, packed: list[Population]) -> list[Population]:
        """Let the flow in the tubes develop and go on into the vessel; return the cells that are there, named anew."""
        for name, tube in self.tubes.items():
            with _named(name):
                tube.develop()
        seen, radius = _Seen([each.vertices for each in packed], []), self._cells.largest()

        def behind(kind: int, height: float) -> Keep:
            near = [self._reaching(name, seen, kind, height) for name in self.tubes]
            return np.asarray(np.logical_or.reduce(near))

        room, led = Room(self._walls, self._cells.surfaces), _LED * radius
        tubes, enter = self.tubes.values(), self._margins.enter
        keep, new = continued(tubes, seen.vertices, room, behind, free=self._free, enter=enter, led=led, radius=radius)
        found = []
        for kind, population in enumerate(packed):
            places = [arrival.vertices for arrival in new if arrival.kind == kind]
            found.append(population.changed(keep[kind], places, [np.zeros_like(each) for each in places], 0))
        named(found)
        for kind, population in enumerate(found):
            mine = [arrival for arrival in new if arrival.kind == kind]
            for name, arrival in zip(population.names[len(population.names) - len(mine) :].tolist(), mine, strict=True):
                if arrival.beyond < led:
                    self.entered(arrival, name)
        self.inside = self.measure([each.vertices for each in found])
        return found

    def _near(self, name: str, points: Floats, height: float) -> Keep:
        """Tell which points (..., 3) are less than `height` behind an opening."""
        return np.asarray(heights(self._sites, self._planes[name], points) < height)

    def _reaching(self, name: str, seen: _Seen, kind: int, height: float) -> Keep:
        """Return which cells of a type have a vertex less than `height` behind an opening; few boxes are near it."""
        plane, sites, (low, high) = self._planes[name], self._sites, seen.boxes[kind]
        center = (np.asarray(plane.center) - np.asarray(sites.origin)) / sites.spacing
        least = (0.5 * (low + high) - center) @ plane.normal - 0.5 * np.linalg.norm(high - low, axis=1)
        found = least < height
        found[found] = self._near(name, seen.vertices[kind][found], height).any(axis=1)
        return np.asarray(found)

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
        flows = np.asarray(flows, np.float64)
        before = self._whole * flows if self._flows is None else self._flows
        came, self._flows = 0.5 * (before + flows) * self._interval, flows
        self._less = np.maximum(before - flows, 0.0)
        for name, passed in self.passed.items():
            passed.blood += float(came[self._numbers[name]])
        for name, tube in self.tubes.items():
            with _named(name):
                tube.advance(float(came[self._numbers[name]]) / tube.prism.area, self._interval)

    def traffic(self, vertices: list[Floats], names: list[npt.NDArray[np.int64]], fastest: float = 0.0) -> Traffic:
        """Return who leaves and enters, after `feed`.

        `vertices` (n, v, 3) are those of the cells of each type with the `names` (n,) for life, the `fastest` moves so
        many sites a step.
        """
        assert self._flows is not None
        gone = max(self._margins.gone, self._margins.free + self._interval * fastest)
        found, volumes = Traffic([np.ones(len(each), bool) for each in vertices]), self._cells.volumes()
        self.inside = self.measure(vertices)
        seen = _Seen(vertices, names)
        for name in self._planes:
            limit = self._back(name) if name in self.tubes else gone
            for kind, keep in enumerate(found.keep):
                out = self._reaching(name, seen, kind, limit) & keep
                if number := int(out.sum()):
                    found.keep[kind] &= ~out
                    found.left[name] = found.left.get(name, 0) + number
                    self.passed[name].cells -= number * float(volumes[kind])
                    if name in self.tubes:  # comes in again with the blood
                        self._late[name][kind] += number
        self._looks += 1
        for name, tube in self.tubes.items():
            if self.goes_out(name):
                self._twins[name] = {}
                continue
            room = self._led(name, tube, seen, found)
            for arrival in self._wanting(name, tube):
                late = self._late[name]
                if not arrival.waits and late[arrival.kind] <= 0:
                    continue
                tried = self._places(arrival, tube)
                placed = next((x for x in tried if room.has(x.kind, x.vertices, x.group is None, x.group)), None)
                if placed is not None:
                    found.enter.append(placed)
                    found.entered[name] = found.entered.get(name, 0) + 1
                    self.passed[name].cells += float(volumes[arrival.kind])
                    room.add(placed.kind, placed.vertices, placed.group)
                    tube.done(arrival)
                    late[arrival.kind] -= not arrival.waits
                elif arrival.beyond > self._patience:
                    tube.done(arrival)
                    late[arrival.kind] += 1
        return found

    def _back(self, name: str) -> float:
        """Return below which height a cell has gone out through an inlet, or will have before the next look.

        The flow may change once more as it did since the last look.
        """
        assert self._flows is not None
        number, area = self._numbers[name], self.tubes[name].prism.area
        outwards = max(float(self._less[number] - self._flows[number]), 0.0)
        return self._margins.back + self._interval * PARABOLA * outwards / area

    def _led(self, name: str, tube: Upstream, seen: _Seen, found: Traffic) -> Room:
        """Let cells that have just entered go with their twins in the tube; return the room that all leave."""
        room, radius = Room(self._walls, self._cells.surfaces), self._cells.largest()
        rows: dict[int, tuple[int, int]] = {}
        twins, reach = self._twins[name], self._margins.enter + (max(_DEPTHS) + 3.0) * radius
        for kind, (places, mine, keep) in enumerate(zip(seen.vertices, seen.names, found.keep, strict=True)):
            for row in np.flatnonzero(self._reaching(name, seen, kind, reach) & keep).tolist():
                if int(mine[row]) in twins:
                    rows[int(mine[row])] = kind, row
                else:  # perhaps led behind another inlet
                    other = found.led.get((kind, row))
                    room.add(kind, places[row] if other is None else other.vertices)
        for arrival in found.enter:
            room.add(arrival.kind, arrival.vertices)
        own = {each: seen.vertices[kind][row] for each, (kind, row) in rows.items()}
        there = dict(zip(rows, tube.twins([twins[each] for each in rows], self._margins.enter), strict=True))
        going = tied(own, there, _LED * radius, radius)
        self._twins[name] = {each: twins[each] for each in going}
        for each, (kind, _) in rows.items():
            if each not in going:
                room.add(kind, own[each])
        found.led |= {rows[each]: place for each, place in lead(own, going, room).items()}
        return room

    def entered(self, arrival: Arrival, name: int) -> None:
        """Note the name for life of a cell that has entered."""
        if arrival.waits and arrival.inlet is not None:
            self._twins[arrival.inlet][name] = arrival.kind, arrival.number, arrival.rounds

    def _wanting(self, name: str, tube: Upstream) -> Iterator[Arrival]:
        """Yield those that have come out of the tube, then any that may stand in for those that waited too long."""
        yield from tube.arrivals(self._margins.enter)
        for turn in range(min(_TURNS, int(self._late[name].sum()))):
            angle = (self._looks * _TURNS + turn) * GOLDEN_TURN
            for depth in _DEPTHS + (_SHALLOW if self._late[name].sum() > _MANY else ()):
                if not (self._late[name] > 0).any():
                    return
                yield from tube.others(self._margins.enter + depth * self._cells.largest(), angle)

    def _places(self, arrival: Arrival, tube: Upstream) -> Iterator[Arrival]:
        """Yield a cell where it is, then farther back, down to the seam: others before it may be slower."""
        for part in _BACK if arrival.waits else _BACK[:1]:
            moved = arrival.vertices - part * arrival.beyond * tube.prism.frame[0]
            yield replace(arrival, vertices=moved, moved=part > 0)

    def goes_out(self, name: str) -> bool:
        """Return whether blood flows out through an opening, or stands still, as it was last seen."""
        return self._flows is not None and bool(self._flows[self._numbers[name]] <= 0)

    def waiting(self) -> dict[str, int]:
        """Return how many cells are owed to the vessel at each inlet."""
        return {name: int(sum(tube.waiting()) + self._late[name].sum()) for name, tube in self.tubes.items()}

    def state(self) -> tuple[list[Floats], dict[str, Any]]:
        """Return the numbers that a restart needs, and a note."""
        parts: list[Floats] = []
        notes = {}
        for name, tube in self.tubes.items():
            numbers, notes[name] = tube.state()
            parts += numbers
        passed = {name: [each.blood, each.cells] for name, each in self.passed.items()}
        late = {name: each.tolist() for name, each in self._late.items()}
        return parts, {
            "late": late,
            "passed": passed,
            "flows": self._flows.tolist() if self._flows is not None else None,
            "looks": self._looks,
            "inside": self.inside,
            "twins": {name: [[each, *twin] for each, twin in twins.items()] for name, twins in self._twins.items()},
            "tubes": notes,
        }

    def load_state(self, numbers: Floats, note: dict[str, Any]) -> None:
        """Set what `state()` returned."""
        self._late = {name: np.array(each, np.int64) for name, each in note["late"].items()}
        self._flows = np.array(note["flows"], np.float64) if note["flows"] is not None else None
        self.passed = {name: Passed(*each) for name, each in note["passed"].items()}
        self._looks, self.inside = int(note.get("looks", 0)), note.get("inside")
        for name, twins in note.get("twins", {}).items():
            self._twins[name] = {each: (kind, number, rounds) for each, kind, number, rounds in twins}
        at = 0
        for name, tube in self.tubes.items():
            at += tube.load_state(numbers[at:], note["tubes"][name])
