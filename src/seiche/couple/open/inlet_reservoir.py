# SPDX-License-Identifier: BSD-3-Clause
"""Reservoir of an inlet: a periodic tube of blood from which cells enter the vessel.

The tube has the cross-section of the inlet and the fluid and cells of the case. A body force adjusts its flow to that
through the inlet. When a cell crosses the seam of the tube, a copy with its shape and velocity enters the vessel; the
cell itself remains in the tube. The tube is advanced until its blood has moved as far as the blood entering the vessel.
Its hematocrit is therefore constant, and the cells to be inserted are those that its flow carries through a
cross-section (theory/coupling, eq. 17).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.cells.packing import pack
from seiche.cells.prism import Prism
from seiche.cells.space import FluidSpace, sparse_points, wall_points
from seiche.couple.open.state_names import present_names
from seiche.couple.open.vessel import OpenVessel
from seiche.couple.suspension import CellsSetup, Population, couple, packed_populations, present_cells
from seiche.domain.sharing import on_root
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.flow.model import VelocityIolet, Walls
from seiche.flow.solver import FlowSolver
from seiche.flow.state import SITES, site_state

Floats = npt.NDArray[np.float64]

#: Default velocity, in sites per step.
_DEFAULT_SPEED = 0.02
#: Initial guess of the ratio of the viscosities of blood and plasma.
_RELATIVE_VISCOSITY = 2.5
#: Minimum target speed, relative to the maximum so far, so that the blood never stops.
_MIN_SPEED = 0.05
#: Time in which a profile develops, in units of radius squared divided by viscosity, and its maximum in steps.
_DEVELOPMENT_TIME, _MAX_DEVELOPMENT = 0.3, 2000
#: Interval between changes of the force, relative to the development time, rounded to multiples of `_STEPS` steps.
_CONTROL_INTERVAL, _STEPS = 0.5, 32
#: Relative deviation of the mean speed from its target below which the force is not changed.
_SPEED_TOLERANCE = 0.05
#: Minimum interval between changes of the force, in steps.
_MIN_INTERVAL = 8
#: Maximum number of steps of the tube per step of the vessel.
_MAX_STEP_RATIO = 4.0

#: Angle between successive rotated copies of cells, whose fractions of a turn never repeat.
GOLDEN_ANGLE = np.pi * (1 + 5**0.5)


@dataclass
class InflowCell:
    """A cell that has passed the seam, in the coordinates of the sites of the vessel."""

    kind: int
    number: int  # in the tube, among the cells of its type
    vertices: Floats
    velocity: Floats
    past_seam: float  # distance of its last vertex from the seam
    waits: bool = True  # False for a copy of a cell that has not passed the seam
    rounds: float = 0.0  # distance travelled when it passed the seam, whole lengths of the tube, in sites
    inlet: str | None = None  # inlet of its tube; None for a copy of a cell that has not passed the seam
    moved: bool = False  # whether its position differs from that in the tube
    relaxed: Floats | None = None  # memory of its surface viscosity

    @property
    def group(self) -> str | None:
        """Return the tube in which the cell has the same neighbours; None if it was moved."""
        return None if self.moved else self.inlet


def population_of(cells: Sequence[InflowCell], template: Population, first_id: int = 0) -> Population:
    """Return the cells as a population of the type of `template`, with identifiers from `first_id`."""
    vertices, velocity = (
        np.array([getattr(cell, name) for cell in cells], np.float64).reshape(-1, *template.vertices.shape[1:])
        for name in ("vertices", "velocity")
    )
    relaxed = None
    if template.relaxed is not None:
        relaxed = np.array([cell.relaxed for cell in cells], np.float64).reshape(-1, *template.relaxed.shape[1:])
    return Population(vertices, velocity, first_id + np.arange(len(cells)), relaxed)


class InletReservoir:
    """Reservoir of one inlet."""

    def __init__(self, vessel: OpenVessel, cells: CellsSetup, name: str, prism: Prism, world: World) -> None:
        """Pack the tube `prism` of the inlet `name`; every rank computes the whole tube.

        Raises:
            CaseError: the cells cannot be packed.
        """
        self._vessel, self._cells, self.name, self.prism = vessel, cells, name, prism
        self.sites = prism.sites()
        self._origin = np.asarray(self.sites.origin)
        self.speed = self._max_speed = self._expected_speed()
        viscosity = vessel.viscosity
        self._force = float(8 * viscosity * _RELATIVE_VISCOSITY * self.speed * np.pi / prism.area)
        model = replace(
            vessel.model,
            iolets=(),
            body_force=(self._force, 0.0, 0.0),
            initial_velocity=(self.speed, 0.0, 0.0),
            initial_density=1.0,
            walls=Walls(vessel.model.walls.kind),
        )
        serial = World(local_rank=world.local_rank, local_size=world.local_size)
        self.solver = FlowSolver(
            self.sites,
            model,
            device=vessel.device,
            precision=vessel.precision,
            threads=vessel.threads,
            world=serial,
            immersed=True,
        )
        space, hematocrit, seed = FluidSpace(self.sites), vessel.hematocrit, vessel.seed
        # Rounding may differ between processors, and packing with many small displacements amplifies the differences.
        packing = on_root(
            world, lambda: pack(space, cells.surfaces, hematocrit, shares=cells.shares, gap=cells.gap, seed=seed)
        )
        self.hematocrit = packing.hematocrit
        self._wall = sparse_points(wall_points(self.sites)[0])
        self.blood = couple(cells, self.solver, packed_populations(replace(cells, packing=packing)), self._wall)
        self._development = min(max(int(_DEVELOPMENT_TIME * prism.area / np.pi / viscosity), 2), _MAX_DEVELOPMENT)
        self._max_interval = _STEPS * max(round(_CONTROL_INTERVAL * self._development / _STEPS), 1)
        #: Maximum number of steps until the next change of the force.
        self._interval = self._max_interval
        #: Distance, in sites, by which the blood of the tube lags behind that of the inlet.
        self._distance_due = 0.0
        #: The cells; None after they have moved.
        self._populations: list[Population] | None = None
        self._rounds = [np.zeros(block.cells, np.int64) for block in self.blood.cells.blocks]

    def _expected_speed(self) -> float:
        """Return the mean velocity at the inlet, in sites per step, from the case or by default."""
        names = [plane.name for plane in self._vessel.sites.iolets]
        iolet = self._vessel.model.iolets[names.index(self.name)]
        if isinstance(iolet, VelocityIolet) and iolet.mean > 0 and iolet.table is None and iolet.profile is None:
            return float(iolet.mean)
        return _DEFAULT_SPEED if self._vessel.peak is None else 0.5 * self._vessel.peak

    def develop(self) -> None:
        """Develop the flow from the initial state, at the speed expected at the inlet."""
        target = self.speed
        for first in range(0, self._development, self._max_interval):
            self._run(min(self._max_interval, self._development - first), target, self._max_interval)
        self._rounds = [self._rounds_of(population) for population in self.populations()]

    def advance(self, distance: float, steps: float) -> None:
        """Advance until the blood has moved by `distance` sites, as the blood of the vessel did in `steps` steps.

        With backflow the tube is not advanced.
        """
        self._distance_due += distance
        self._max_speed = max(self._max_speed, distance / steps)
        target, remaining = max(distance / steps, _MIN_SPEED * self._max_speed), int(_MAX_STEP_RATIO * steps)
        interval = int(min(max(self._steps_of_tube(target), _MIN_INTERVAL), self._max_interval))
        fewest_steps = 1  # if fewer steps are needed, they are deferred to the next call
        while (tube_steps := min(self._steps_of_tube(target), self._interval, remaining)) >= fewest_steps:
            self._distance_due -= self._run(tube_steps, target, interval)
            remaining, fewest_steps = remaining - tube_steps, _MIN_INTERVAL

    def _steps_of_tube(self, target: float) -> int:
        """Return the number of steps for the remaining distance, while the speed approaches its target."""
        return int(self._distance_due / max(0.5 * (self.speed + target), 0.5 * target))

    def _run(self, steps: int, target: float, interval: int) -> float:
        """Advance by `steps` steps with the present force; return the distance that the blood moved, in sites.

        Then the force is changed so that the mean speed reaches its target in `interval` steps. The resistance of the
        blood, force minus acceleration, is assumed to be constant.
        """
        self._populations, previous_speed, self._interval = None, self.speed, interval
        self.blood.advance(steps)
        self.speed = float(self.solver.measures.mean_velocity()[0])
        force = self._force - (self.speed - previous_speed) / steps + (target - self.speed) / interval
        if abs(force - self._force) * interval > _SPEED_TOLERANCE * target:
            self._force = force
            self.solver.set_body_force((force, 0.0, 0.0))
        return 0.5 * (previous_speed + self.speed) * steps

    def populations(self) -> list[Population]:
        """Return the cells of the tube; they must not be modified."""
        if self._populations is None:
            ids = [np.arange(block.cells) for block in self.blood.cells.blocks]
            self._populations = present_cells(self.blood, ids)
        return self._populations

    def _trailing_position(self, population: Population) -> Floats:
        """Return the position along the tube of the last vertex of each cell."""
        return np.asarray((population.vertices[..., 0] + self._origin[0]).min(axis=1))

    def _rounds_of(self, population: Population) -> npt.NDArray[np.int64]:
        if not len(population.vertices):
            return np.zeros(0, np.int64)
        return np.floor(self._trailing_position(population) / self.prism.length).astype(np.int64)

    def discharge(self) -> float:
        """Return the present discharge hematocrit (theory/coupling, eq. 16)."""
        if not self.speed > 0:
            return self.hematocrit
        volumes, populations = self._cells.volumes(), self.populations()
        moving = sum(v * p.velocity[..., 0].mean(axis=1).sum() for v, p in zip(volumes, populations, strict=True))
        return float(moving) / (len(self.sites) * self.speed)

    def arrivals(self, shift: float) -> list[InflowCell]:
        """Return the waiting cells, the farthest first; `shift` is the height of the seam behind the inlet."""
        arrived = []
        for kind, population in enumerate(self.populations()):
            last = self._trailing_position(population)
            for number in np.flatnonzero(self._rounds_of(population) > self._rounds[kind]).tolist():
                rounds = float(np.floor(last[number] / self.prism.length)) * self.prism.length
                arrived.append(self._arrived(population, kind, number, shift, rounds))
        return sorted(arrived, key=lambda cell: -cell.past_seam)

    def _arrived(self, population: Population, kind: int, number: int, shift: float, rounds: float) -> InflowCell:
        local = population.vertices[number] + self._origin
        past_seam = float(local[:, 0].min() - rounds)
        local[:, 0] += shift - rounds
        velocity = population.velocity[number] @ self.prism.frame
        cell = InflowCell(kind, number, self.prism.world(local), velocity, past_seam, rounds=rounds, inlet=self.name)
        return replace(cell, relaxed=population.relaxed_of(number))

    def images(self, entered: Sequence[tuple[int, int, float]], shift: float) -> list[InflowCell]:
        """Return the image cells in the tube of cells that entered, shifted into the vessel.

        `entered` are their types, numbers and rounds at the time of entry; `shift` is that of `arrivals`.
        """
        populations = self.populations()
        return [self._arrived(populations[kind], kind, number, shift, rounds) for kind, number, rounds in entered]

    def cells_within(self, shift: float, depth: float) -> list[InflowCell]:
        """Return the cells less than `depth` behind the seam, the nearest first."""
        cells = []
        for kind, population in enumerate(self.populations()):
            length, positions = self.prism.length, self._trailing_position(population)
            rounds = np.floor(positions / length) * length
            for number in np.flatnonzero(positions - rounds < depth).tolist():
                cells.append(self._arrived(population, kind, number, shift, float(rounds[number])))
        return sorted(cells, key=lambda cell: cell.past_seam)

    def rotated_copies(self, shift: float, angle: float) -> list[InflowCell]:
        """Return copies of all cells, the farthest along the tube first.

        They are moved so that the last vertex is at the seam, and rotated about the axis of the tube by `angle`.
        """
        rotation = np.eye(3)
        rotation[1:, 1:] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        copies = []
        for kind, population in enumerate(self.populations()):
            last = self._trailing_position(population)
            for number in np.argsort(-(last % self.prism.length), kind="stable").tolist():
                local = population.vertices[number] + self._origin
                local[:, 0] += shift - last[number]
                velocity = population.velocity[number] @ rotation.T @ self.prism.frame
                vertices = self.prism.world(local @ rotation.T)
                relaxed = population.relaxed_of(number)
                copies.append(InflowCell(kind, number, vertices, velocity, 0.0, waits=False, relaxed=relaxed))
        return copies

    def waiting(self) -> list[int]:
        """Return the number of waiting cells of each type, which have passed the seam and not entered."""
        entered = zip(self.populations(), self._rounds, strict=True)
        return [int(np.maximum(self._rounds_of(population) - rounds, 0).sum()) for population, rounds in entered]

    def mark_entered(self, cell: InflowCell) -> None:
        """Record that a waiting cell has entered, or that another cell will enter instead."""
        if cell.waits:
            self._rounds[cell.kind][cell.number] += 1

    def state(self) -> tuple[list[Floats], dict[str, Any]]:
        """Return the arrays and the JSON values of a checkpoint."""
        arrays = self.solver.state().rows[SITES].arrays
        state = {name: np.asarray(rows[:], np.float64) for name, rows in arrays.items()}
        cells = {
            "place": np.concatenate([cells.vertices.reshape(-1, 3) for cells in self.populations()]).T,
            "velocity": np.concatenate([cells.velocity.reshape(-1, 3) for cells in self.populations()]).T,
        }
        memories = {k: cells.relaxed for k, cells in enumerate(self.populations()) if cells.relaxed is not None}
        cells |= {f"relaxed {kind}": relaxed for kind, relaxed in memories.items()}
        values = {
            "step": self.solver.step,
            "distance_due": self._distance_due,
            "speed": [self.speed, self._max_speed, self._force],
            "control_interval": self._interval,
            "flow": {name: list(rows.shape) for name, rows in state.items()},
            "cells": {name: list(rows.shape) for name, rows in cells.items()},
            "rounds": [rounds.tolist() for rounds in self._rounds],
        }
        return [rows.ravel() for rows in (*state.values(), *cells.values())], values

    def load_state(self, data: Floats, values: dict[str, Any]) -> int:
        """Restore a `state()` from the beginning of `data`; return the number of values read.

        Raises:
            CaseError: the state belongs to another tube.
        """
        values, offset = present_names(values), 0
        state: dict[str, dict[str, npt.NDArray[Any]]] = {"flow": {}, "cells": {}}
        for group, arrays in state.items():
            for name, shape in values[group].items():
                size = int(np.prod(shape))
                arrays[name] = data[offset : offset + size].reshape(shape)
                offset += size
        sites = {shape[0] for shape in values["flow"].values()}
        counts = [len(rounds) for rounds in self._rounds]
        if sites != {len(self.sites)} or [len(rounds) for rounds in values["rounds"]] != counts:
            raise CaseError(
                f"--restart: the reservoir in the checkpoint differs from that of {self._cells.label}; restart with "
                "the case that wrote the checkpoint"
            )
        self.solver.set_state(site_state(self.solver, state["flow"], int(values["step"])))
        positions, velocity = (
            [state["cells"][name][:, b.slice].T.reshape(b.cells, b.vertices, 3) for b in self.blood.cells.blocks]
            for name in ("place", "velocity")
        )
        relaxed = [state["cells"].get(f"relaxed {kind}") for kind in range(len(positions))]
        self.blood.set_vertices(positions, velocity, relaxed)
        self._populations = None
        self._distance_due = float(values["distance_due"])
        if "speed" in values:
            self.speed, self._max_speed, self._force = map(float, values["speed"])
            self.solver.set_body_force((self._force, 0.0, 0.0))
            self._interval = int(values.get("control_interval", self._max_interval))
        self._rounds = [np.array(rounds, np.int64) for rounds in values["rounds"]]
        return offset
