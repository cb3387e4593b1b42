# SPDX-License-Identifier: BSD-3-Clause
"""Open vessels: cells leave at the openings and enter from a reservoir at each inlet.

A reservoir has a constant hematocrit. Each cell that its flow carries through a cross-section enters the vessel: where
it leaves the reservoir or, if this position is blocked for long, at the first free position. The inflow of cells is
therefore that of the reservoir (theory/coupling, eq. 17). Cells that have entered, have left or are waiting are
counted.
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
from seiche.couple.open.free_space import FreeSpace
from seiche.couple.open.guidance import guide, still_guided
from seiche.couple.open.initial_cells import initial_cells
from seiche.couple.open.inlet_reservoir import GOLDEN_ANGLE, InflowCell, InletReservoir, population_of
from seiche.couple.open.state_names import present_names
from seiche.couple.open.tubes import TubePlan
from seiche.couple.open.vessel import OpenVessel
from seiche.couple.suspension import CellsSetup, Population, assign_ids
from seiche.domain.surface import bounds
from seiche.domain.world import World
from seiche.errors import CaseError, UnstableError
from seiche.flow.model import Iolet, VelocityIolet
from seiche.flow.profiles import PARABOLA

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

#: Depth of the guided layer behind an inlet, in radii of the largest cell.
_GUIDED_DEPTH = 3.0
#: Depths, in radii of the largest cell, at which overdue cells are inserted: behind the guided layer, and also inside
#: it if more than `_CROWDED` cells are overdue.
_DEPTHS, _SHALLOW_DEPTHS, _CROWDED = (3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0), (0.0, 0.5, 1.0, 1.5, 2.0, 2.5), 3
#: Trial positions of a cell from the tube, as fractions of the distance back to the seam.
_FALLBACKS = (0.0, 0.35, 0.7, 1.0)
#: Maximum number of rotations that are tried for overdue cells in an exchange.
_MAX_ROTATIONS = 2


@dataclass
class OpeningFlux:
    """Net inflow through an opening so far: volumes of blood and of cells, in sites."""

    blood: float = 0.0
    cells: float = 0.0

    @property
    def hematocrit(self) -> float | None:
        """Return the discharge hematocrit; None before there has been a flow."""
        return self.cells / self.blood if self.blood else None


@dataclass
class CellExchange:
    """Cells of each type that remain, cells that enter, and numbers of cells that enter and leave at each opening.

    `guided` are the new positions of guided cells, by type and row.
    """

    keep: list[Mask]
    guided: dict[tuple[int, int], InflowCell] = field(default_factory=dict)
    entering: list[InflowCell] = field(default_factory=list)
    entered: dict[str, int] = field(default_factory=dict)
    removed: dict[str, int] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Return whether no cell enters, leaves or is moved."""
        return not self.entered and not self.removed and not self.guided


@dataclass(frozen=True, eq=False)
class _Cells:
    """Present cells of a vessel: `vertices` (n, v, 3) and permanent identifiers `ids` (n,), by type."""

    vertices: list[Floats]
    ids: list[npt.NDArray[np.int64]]

    @cached_property
    def boxes(self) -> list[tuple[Floats, Floats]]:
        """Return the lower and upper corners (n, 3) of their bounding boxes."""
        return [bounds(vertices) for vertices in self.vertices]


def _initial_flow(iolet: Iolet, steps: float) -> float:
    """Return the ratio of initial to final flow of a linear increase over `steps` with the same volume as the ramp."""
    return max(1.0 - iolet.ramp / steps, 0.0) if isinstance(iolet, VelocityIolet) else 0.0


@contextmanager
def _naming_inlet(inlet: str) -> Iterator[None]:
    """Mention the inlet in errors of its reservoir."""
    try:
        yield
    except UnstableError as error:
        message = f'in the reservoir of iolet["{inlet}"] (which counts its own steps): {error}'
        raise UnstableError(message) from None


class Openings:
    """Openings of a vessel, and the reservoirs of its inlets."""

    def __init__(self, vessel: OpenVessel, cells: CellsSetup, plans: Mapping[str, TubePlan], world: World) -> None:
        """Pack the tubes as planned, by inlet.

        Raises:
            CaseError: the cells of a tube cannot be packed.
        """
        sites = vessel.sites
        self._cells, self._walls, self.hematocrit = cells, vessel.walls, vessel.hematocrit
        self._sites, self._margins = sites, vessel.margins
        self._planes = {plane.name: plane for plane in sites.iolets}
        self._iolet_indices = {plane.name: number for number, plane in enumerate(sites.iolets)}
        self.tubes: dict[str, InletReservoir] = {}
        #: Number of cells of each type to be inserted at any free position, by inlet.
        self._overdue = {plane.name: np.zeros(len(cells.types), np.int64) for plane in vessel.inlets}
        self.fluxes = {plane.name: OpeningFlux() for plane in sites.iolets}
        #: Flow through each opening at the last exchange, in sites per step; None before the first exchange.
        self._flows: Floats | None = None
        for plane in vessel.inlets:
            try:
                tube = InletReservoir(vessel, cells, plane.name, plans[plane.name].prism, world)
            except CaseError as error:
                raise CaseError(f'{cells.label}: reservoir of iolet["{plane.name}"]: {error}') from None
            self.tubes[plane.name] = tube
        self._interval, self._free = vessel.interval, vessel.excluded_layers()
        #: Ratio of the flow at the start to that at the first exchange, for the linear interpolation between them.
        self._initial = np.array([_initial_flow(iolet, self._interval) for iolet in vessel.model.iolets])
        #: Decrease of the inflow since the previous exchange, in sites per step.
        self._decrease = np.zeros(len(sites.iolets))
        #: Distance behind the seam beyond which a blocked cell is overdue.
        self._max_wait = cells.cell_radius()
        self._exchanges = 0
        #: Type, number in the tube and rounds of the guided cells, by inlet and identifier.
        self._guided: dict[str, dict[int, tuple[int, int, float]]] = {name: {} for name in self.tubes}
        #: Hematocrit of the vessel away from the openings.
        self.inside: float | None = None
        self._away_count = self._is_away(sites.coords.astype(np.float64)).sum()

    def initial_cells(self, packed: list[Population]) -> list[Population]:
        """Develop the flow in the reservoirs; return the initial cells of the vessel, with new identifiers."""
        for name, tube in self.tubes.items():
            with _naming_inlet(name):
                tube.develop()
        present, radius = _Cells([cells.vertices for cells in packed], []), self._cells.cell_radius()

        def reaching_inlet(kind: int, height: float) -> Mask:
            masks = [self._has_vertex_within(name, present, kind, height) for name in self.tubes]
            return np.asarray(np.logical_or.reduce(masks))

        retained, from_reservoirs = initial_cells(
            self.tubes.values(),
            present.vertices,
            FreeSpace(self._walls, self._cells.surfaces),
            reaching_inlet,
            clear_depths=self._free,
            entry_height=self._margins.entry,
            guided_depth=_GUIDED_DEPTH * radius,
            radius=radius,
        )
        by_kind = [[cell for cell in from_reservoirs if cell.kind == kind] for kind in range(len(packed))]
        populations = []
        for population, selected, cells in zip(packed, retained, by_kind, strict=True):
            added = population_of(cells, population)
            populations.append(population.changed(selected, replace(added, velocity=np.zeros_like(added.velocity))))
        assign_ids(populations)
        for population, cells in zip(populations, by_kind, strict=True):
            for cell_id, cell in zip(population.ids[len(population.ids) - len(cells) :].tolist(), cells, strict=True):
                if cell.past_seam < _GUIDED_DEPTH * radius:
                    self.register(cell, cell_id)
        self.inside = self.measure([population.vertices for population in populations])
        return populations

    def _is_near(self, name: str, points: Floats, height: float) -> Mask:
        """Return flags of the points (..., 3) that are less than `height` behind an opening."""
        return np.asarray(heights(self._sites, self._planes[name], points) < height)

    def _has_vertex_within(self, name: str, present: _Cells, kind: int, height: float) -> Mask:
        """Return flags of the cells of a type that have a vertex less than `height` behind an opening."""
        plane, sites, (low, high) = self._planes[name], self._sites, present.boxes[kind]
        center = (np.asarray(plane.center) - np.asarray(sites.origin)) / sites.spacing
        # A cell is not closer to the opening than its bounding box.
        min_height = (0.5 * (low + high) - center) @ plane.normal - 0.5 * np.linalg.norm(high - low, axis=1)
        reaches = min_height < height
        reaches[reaches] = self._is_near(name, present.vertices[kind][reaches], height).any(axis=1)
        return np.asarray(reaches)

    def _is_away(self, points: Floats) -> Mask:
        """Return flags of points (n, 3) that are farther from all openings than the extent of a cell at an opening."""
        max_radius, margins = self._cells.cell_radius(), self._margins
        is_away = np.ones(len(points), bool)
        for name in self._planes:
            is_away &= ~self._is_near(
                name, points, (margins.entry if name in self.tubes else margins.outlet_exit) + max_radius
            )
        return is_away

    def measure(self, vertices: list[Floats]) -> float | None:
        """Return the hematocrit away from the openings, by the centers of cells; None if the vessel is too short."""
        if not self._away_count:
            return None
        counts = np.array([int(self._is_away(cell_vertices.mean(axis=1)).sum()) for cell_vertices in vertices])
        return float(counts @ self._cells.volumes()) / float(self._away_count)

    def advance(self, flows: Floats) -> None:
        """Advance the reservoirs by the inflow since the last call.

        `flows` (iolets,) are the present inflows per step.
        """
        flows = np.asarray(flows, np.float64)
        previous_flows = self._initial * flows if self._flows is None else self._flows
        volumes, self._flows = 0.5 * (previous_flows + flows) * self._interval, flows
        self._decrease = np.maximum(previous_flows - flows, 0.0)
        for name, flux in self.fluxes.items():
            flux.blood += float(volumes[self._iolet_indices[name]])
        for name, tube in self.tubes.items():
            with _naming_inlet(name):
                tube.advance(float(volumes[self._iolet_indices[name]]) / tube.prism.area, self._interval)

    def exchange(
        self, vertices: list[Floats], ids: list[npt.NDArray[np.int64]], max_speed: float = 0.0
    ) -> CellExchange:
        """Return the cells that leave, enter and are guided, after `advance`.

        `vertices` (n, v, 3) and `ids` (n,) are those of the cells of each type; `max_speed` is the maximum
        velocity, in sites per step.
        """
        assert self._flows is not None
        removal_depth = max(self._margins.outlet_exit, self._margins.clear + self._interval * max_speed)
        exchange, volumes = (
            CellExchange([np.ones(len(cell_vertices), bool) for cell_vertices in vertices]),
            self._cells.volumes(),
        )
        self.inside = self.measure(vertices)
        present = _Cells(vertices, ids)
        for name in self._planes:
            limit = self._inlet_exit(name) if name in self.tubes else removal_depth
            for kind, keep in enumerate(exchange.keep):
                is_leaving = self._has_vertex_within(name, present, kind, limit) & keep
                if count := int(is_leaving.sum()):
                    exchange.keep[kind] &= ~is_leaving
                    exchange.removed[name] = exchange.removed.get(name, 0) + count
                    self.fluxes[name].cells -= count * float(volumes[kind])
                    if name in self.tubes:  # it re-enters with the blood
                        self._overdue[name][kind] += count
        self._exchanges += 1
        for name, tube in self.tubes.items():
            if self.is_outflow(name):
                self._guided[name] = {}
                continue
            space, overdue = self._guide(name, tube, present, exchange), self._overdue[name]
            for cell in self._candidates(name, tube):
                if not cell.waits and overdue[cell.kind] <= 0:
                    continue
                positions = self._trial_positions(cell, tube)
                accepted = next(
                    (
                        candidate
                        for candidate in positions
                        if space.fits(candidate.kind, candidate.vertices, candidate.group is None, candidate.group)
                    ),
                    None,
                )
                if accepted is not None:
                    exchange.entering.append(accepted)
                    exchange.entered[name] = exchange.entered.get(name, 0) + 1
                    self.fluxes[name].cells += float(volumes[cell.kind])
                    space.add(accepted.kind, accepted.vertices, accepted.group)
                    tube.mark_entered(cell)
                    overdue[cell.kind] -= not cell.waits
                elif cell.past_seam > self._max_wait:
                    tube.mark_entered(cell)
                    overdue[cell.kind] += 1
        return exchange

    def _inlet_exit(self, name: str) -> float:
        """Return the height below which a cell has left through an inlet or will leave before the next exchange.

        The flow is assumed to change by at most as much as since the last exchange.
        """
        assert self._flows is not None
        number, area = self._iolet_indices[name], self.tubes[name].prism.area
        outflow = max(float(self._decrease[number] - self._flows[number]), 0.0)
        return self._margins.inlet_exit + self._interval * PARABOLA * outflow / area

    def _guide(self, name: str, tube: InletReservoir, present: _Cells, exchange: CellExchange) -> FreeSpace:
        """Move recently entered cells to their images in the tube; return the free space near the inlet."""
        space, radius = FreeSpace(self._walls, self._cells.surfaces), self._cells.cell_radius()
        rows: dict[int, tuple[int, int]] = {}
        guided, height = self._guided[name], self._margins.entry + (max(_DEPTHS) + 3.0) * radius
        for kind, (vertices, ids, keep) in enumerate(zip(present.vertices, present.ids, exchange.keep, strict=True)):
            for row in np.flatnonzero(self._has_vertex_within(name, present, kind, height) & keep).tolist():
                if int(ids[row]) in guided:
                    rows[int(ids[row])] = kind, row
                else:  # the cell may be guided behind another inlet
                    guided_cell = exchange.guided.get((kind, row))
                    space.add(kind, vertices[row] if guided_cell is None else guided_cell.vertices)
        for cell in exchange.entering:
            space.add(cell.kind, cell.vertices)
        guided_vertices = {key: present.vertices[kind][row] for key, (kind, row) in rows.items()}
        images = dict(zip(rows, tube.images([guided[key] for key in rows], self._margins.entry), strict=True))
        images = still_guided(guided_vertices, images, _GUIDED_DEPTH * radius, radius)
        self._guided[name] = {key: guided[key] for key in images}
        for key, (kind, _) in rows.items():
            if key not in images:
                space.add(kind, guided_vertices[key])
        exchange.guided |= {rows[key]: new_cell for key, new_cell in guide(guided_vertices, images, space).items()}
        return space

    def register(self, cell: InflowCell, cell_id: int) -> None:
        """Record the permanent identifier of a cell that has entered."""
        if cell.waits and cell.inlet is not None:
            self._guided[cell.inlet][cell_id] = cell.kind, cell.number, cell.rounds

    def _candidates(self, name: str, tube: InletReservoir) -> Iterator[InflowCell]:
        """Yield the cells that have passed the seam, then rotated copies that may enter instead of overdue cells."""
        yield from tube.arrivals(self._margins.entry)
        overdue = self._overdue[name]
        for turn in range(min(_MAX_ROTATIONS, int(overdue.sum()))):
            angle = (self._exchanges * _MAX_ROTATIONS + turn) * GOLDEN_ANGLE
            for depth in _DEPTHS + (_SHALLOW_DEPTHS if overdue.sum() > _CROWDED else ()):
                if not (overdue > 0).any():
                    return
                yield from tube.rotated_copies(self._margins.entry + depth * self._cells.cell_radius(), angle)

    def _trial_positions(self, cell: InflowCell, tube: InletReservoir) -> Iterator[InflowCell]:
        """Yield a cell at its position in the tube, then closer to the seam, since cells ahead may be slower."""
        for fraction in _FALLBACKS if cell.waits else _FALLBACKS[:1]:
            vertices = cell.vertices - fraction * cell.past_seam * tube.prism.frame[0]
            yield replace(cell, vertices=vertices, moved=fraction > 0)

    def is_outflow(self, name: str) -> bool:
        """Return whether the last flow through an opening was outwards or zero."""
        return self._flows is not None and bool(self._flows[self._iolet_indices[name]] <= 0)

    def waiting(self) -> dict[str, int]:
        """Return the number of cells that are waiting or overdue at each inlet."""
        return {name: int(sum(tube.waiting()) + self._overdue[name].sum()) for name, tube in self.tubes.items()}

    def state(self) -> tuple[list[Floats], dict[str, Any]]:
        """Return the arrays and the JSON values of a checkpoint."""
        arrays: list[Floats] = []
        tube_values = {}
        for name, tube in self.tubes.items():
            tube_arrays, tube_values[name] = tube.state()
            arrays += tube_arrays
        return arrays, {
            "overdue": {name: counts.tolist() for name, counts in self._overdue.items()},
            "fluxes": {name: [flux.blood, flux.cells] for name, flux in self.fluxes.items()},
            "flows": self._flows.tolist() if self._flows is not None else None,
            "exchanges": self._exchanges,
            "inside": self.inside,
            "guided": {
                name: [[cell, *image] for cell, image in images_by_cell.items()]
                for name, images_by_cell in self._guided.items()
            },
            "tubes": tube_values,
        }

    def load_state(self, data: Floats, values: dict[str, Any]) -> None:
        """Restore the arrays and values of `state()`."""
        values = present_names(values)
        self._overdue = {name: np.array(counts, np.int64) for name, counts in values["overdue"].items()}
        self._flows = np.array(values["flows"], np.float64) if values["flows"] is not None else None
        self.fluxes = {name: OpeningFlux(*volumes) for name, volumes in values["fluxes"].items()}
        self._exchanges, self.inside = int(values.get("exchanges", 0)), values.get("inside")
        for name, images in values.get("guided", {}).items():
            self._guided[name] = {cell: (kind, number, rounds) for cell, kind, number, rounds in images}
        offset = 0
        for name, tube in self.tubes.items():
            offset += tube.load_state(data[offset:], values["tubes"][name])
