# SPDX-License-Identifier: BSD-3-Clause
"""Incident fields of point sources on the device and on the host (theory/waves, section 13, eqs. 37 and 38)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array
from seiche.kernels.registry import dg
from seiche.observe.stage import Stage
from seiche.waves.basis import LSRK_B, LSRK_C
from seiche.waves.boxes import MEDIA_TOLERANCE, SourceBox, differences, nodes_of, offsets
from seiche.waves.incident import (
    COLUMNS,
    PER_STEP,
    ROW,
    TabulatedPulse,
    coefficients,
    interpolated_columns,
    stress,
    unknowns,
)
from seiche.waves.mesh import NONE
from seiche.waves.operator import Operator, interpolated
from seiche.waves.sources import PointSource

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
#: An element, its face, child of a coarse side or -1, number of the box, whether the element is in it.
_Record = tuple[int, int, int, int, bool]

#: Numbers of factors of a component at a point.
_FACTORS = 2 * COLUMNS
#: Distances from a source, in elements, between which the contrast of media sets in; below the first, fields are
#: limited.
_TAPER = (0.25, 0.5)


class Incident:
    """The incident fields of all sources with a box."""

    def __init__(
        self,
        operator: Operator,
        sources: Sequence[PointSource],
        boxes: Sequence[SourceBox],
        timing: tuple[Array, int, float],
        *,
        leapfrog: bool,
    ) -> None:
        """Compute and upload the factors of the faces of the boxes and of their other media.

        Args:
            operator: the right-hand side.
            sources: all sources.
            boxes: boxes of some of them.
            timing: the clock, the steps of a window and the duration of a step.
            leapfrog: whether a step has two halves.
        """
        self._operator, self._sources, self._boxes = operator, sources, boxes
        self._clock, self._window, self._dt = timing
        self._spacing = self._dt / PER_STEP
        self._offsets: tuple[float, ...] = (0.0, 0.5) if leapfrog else LSRK_C
        self._weights: tuple[float, ...] = (1.0, 1.0) if leapfrog else LSRK_B
        #: Number of steps by which velocities are earlier than the other unknowns.
        self._velocity_lead = 0.5 if leapfrog else 0.0
        self._tables = [TabulatedPulse(sources[box.source].time, self._spacing) for box in boxes]
        travel_times = [np.linalg.norm(box.half_widths + 2 * box.size) / min(box.medium.speeds) for box in boxes]
        self._travel_samples = int(np.ceil(max(travel_times, default=0.0) / self._spacing)) + 4
        self._length = PER_STEP * self._window + self._travel_samples + 8
        self._first, self._rows = -1, np.zeros((len(boxes), self._length, ROW))
        backend = operator.backend
        self._device_rows = backend.zeros((max(len(boxes), 1), self._length, ROW), np.float64)
        self._origin = backend.zeros(2, np.int64)
        #: Arrays to which launches have pointers.
        self._members_in_use: list[dict[str, Any]] = []
        self._faces = self._face_records()
        self._media = self._media_records()

    def __bool__(self) -> bool:
        """Return whether this rank has any box."""
        return any(box.inside[: self._operator.mesh.count].any() for box in self._boxes)

    @property
    def travel_time(self) -> float:
        """Return the longest time in which the waves of a source leave its box."""
        return self._travel_samples * self._spacing

    # -- tables of time ------------------------------------------------------------------------------------------------

    def set_factor(self, source: int, step: int, factor: float) -> None:
        """Multiply the function of time of a source by `factor` from `step` on."""
        for box, table in zip(self._boxes, self._tables, strict=True):
            if box.source == source:
                table.set_factor(PER_STEP * step, factor)
        self._first = -1

    def _load(self, step: int) -> int:
        """Compute the rows of the window that starts at `step`; return the number of the first row."""
        base = PER_STEP * step - self._travel_samples - 2
        if self._first != step:
            self._rows = np.stack([table.rows(base, self._length) for table in self._tables])
            self._first = step
        return base

    def send(self, step: int) -> None:
        """Upload the tables of the window that starts at `step`."""
        if not self:
            return
        backend, base = self._operator.backend, self._load(step)
        backend.assign(self._device_rows, self._rows)
        backend.assign(self._origin, np.array([step, base], np.int64))

    # -- stages --------------------------------------------------------------------------------------------------------

    def stages(self, number: int, u: Array, k: Array, trace: Array) -> list[Stage]:
        """Return the launches of a stage."""
        stages, disc = [], self._operator.disc
        source_count = len(self._offsets)
        state = {"u": u, "k": k, "next_trace": trace, "stage": number, "offset": self._offsets[number]}
        common = {"scheme": self._operator.members, **state, "dt": self._dt, "b": self._weights[number]}
        if self._media is not None:
            items, members = self._media
            launch = self._operator.launch(dg.add_contrast(disc, source_count), 0, items, **members, **common)
            stages.append(Stage("other media of boxes", *launch))
        if self._faces is not None:
            items, members = self._faces
            launch = self._operator.launch(dg.add_incident(disc, source_count), 0, items, **members, **common)
            stages.append(Stage("incident fields", *launch))
        return stages

    def _columns(self, delays: Floats) -> dict[str, Any]:
        """Return the member of a kernel that interpolates columns at points with these delays, (points, 2)."""
        arrays = {
            "tables": self._device_rows,
            "origin": self._origin,
            "clock": self._clock,
            "delays": self._operator.backend.upload(np.ascontiguousarray(delays)),
        }
        self._members_in_use.append(arrays)
        return {"at": {**arrays, "length": self._length, "spacing": self._spacing}}

    def _upload(self, **arrays: npt.NDArray[Any]) -> dict[str, Any]:
        uploaded = {name: self._operator.backend.upload(np.ascontiguousarray(a)) for name, a in arrays.items()}
        self._members_in_use.append(uploaded)
        return uploaded

    def _delays(self, box: SourceBox, x: Floats) -> Floats:
        """Return the travel times to points x (points, dim) in units of the spacing, (points, 2)."""
        return np.asarray(np.linalg.norm(x, axis=1)[:, None] / (np.array(box.medium.speeds) * self._spacing))

    # -- faces ---------------------------------------------------------------------------------------------------------

    def _records(self) -> Iterator[_Record]:
        """Yield the faces between the inside and the outside of boxes, and sides of the mesh that boxes touch."""
        mesh = self._operator.mesh
        neighbours, large = mesh.neighbours, mesh.neighbours[:, :, 1] >= 0
        exists = mesh.kinds != NONE
        for number, box in enumerate(self._boxes):
            inside = box.inside[: mesh.count, None, None]
            cut = np.where(exists, box.inside[neighbours] != inside, False)
            cut[:, :, 0] |= ~exists[:, :, 0] & inside[:, :, 0]
            for element, face, child in np.argwhere(cut).tolist():
                child_or_none = child if large[element, face] else -1
                yield element, face, child_or_none, number, bool(box.inside[element])

    def _face_records(self) -> tuple[int, dict[str, Any]] | None:
        operator, disc = self._operator, self._operator.disc
        records = sorted(self._records())
        if not records:
            return None
        elements, first = np.unique([record[0] for record in records], return_index=True)
        factors = np.empty((len(records), 2 * disc.waves, disc.face_nodes, _FACTORS))
        delays = np.empty((len(records), disc.face_nodes, 2))
        outer = np.zeros((len(records), disc.waves, disc.face_nodes))
        table = np.empty((len(records), 5), np.int32)
        points = np.empty((len(records), disc.face_nodes, operator.mesh.dim))
        for row, (element, face, child, number, inside) in enumerate(records):
            points[row] = self._face_points(element, face, child)
            if not inside:
                outer[row] = self._outer_impedance(element, face, child)
            side = operator.side_number(element, face) if child >= 0 else 0
            table[row] = face, inside, child, side, number
        for number, axis in np.unique(np.stack([table[:, 4], table[:, 0] // 2], 1), axis=0).tolist():
            rows = np.nonzero((table[:, 4] == number) & (table[:, 0] // 2 == axis))[0]
            factors[rows], delays[rows] = self._face_factors(self._boxes[number], axis, points[rows])
        members = self._upload(
            elements=elements.astype(np.int32),
            first=np.append(first, len(records)).astype(np.int32),
            records=table,
            factors=factors,
            outer=outer.astype(disc.real),
        )
        mortars = operator.mortar_members if operator.sides else dict.fromkeys(_MORTARS, self._origin)
        return len(elements), {**members, "mortars": mortars, **self._columns(delays.reshape(-1, 2))}

    def _face_points(self, element: int, face: int, child: int) -> Floats:
        """Return the nodes of a face, or of the fine side `child` of a large face, (face nodes, dim)."""
        operator = self._operator
        if child >= 0:
            element, face = int(operator.mesh.neighbours[element, face, child]), face ^ 1
        nodes = nodes_of(operator.mesh, operator.basis, np.array([element]))[0]
        return np.asarray(nodes[operator.face_nodes[face]])

    def _face_factors(self, box: SourceBox, axis: int, points: Floats) -> tuple[Floats, Floats]:
        """Return factors of velocity and S_ca, and delays, at points (faces, nodes, dim) of faces across an axis."""
        source, medium, disc = self._sources[box.source], box.medium, self._operator.disc
        flat = points.reshape(-1, points.shape[2])
        x = offsets(self._operator.mesh, np.asarray(source.position, np.float64), flat)
        velocity, gradient = coefficients(source, medium, x)
        stresses = stress(gradient, medium.lame, medium.mu)
        part = slice(axis, axis + 1) if disc.medium == "acoustic" else slice(None)
        values = np.concatenate([velocity[part], stresses[part, axis]])
        by_face = values.reshape(2 * disc.waves, *points.shape[:2], _FACTORS).swapaxes(0, 1)
        return by_face, self._delays(box, x).reshape(*points.shape[:2], 2)

    def _outer_impedance(self, element: int, face: int, child: int) -> Floats:
        """Return the impedance of the other side of a face by component, (waves, face nodes or 1)."""
        operator, mesh = self._operator, self._operator.mesh
        neighbour = np.array([mesh.neighbours[element, face, max(child, 0)]], np.int64)
        z = operator.face_impedances(neighbour, face ^ 1)[:, 0]
        if child < 0 and mesh.child[element, face] >= 0 and operator.material.by_node:
            z = interpolated(z, operator.half(int(mesh.child[element, face])))
        kinds = [0] if operator.disc.medium == "acoustic" else [int(c != face // 2) for c in range(mesh.dim)]
        return np.asarray(z.reshape(len(z), -1)[kinds])

    # -- other media ---------------------------------------------------------------------------------------------------

    def _media_records(self) -> tuple[int, dict[str, Any]] | None:
        operator, mesh, disc = self._operator, self._operator.mesh, self._operator.disc
        parts = []
        for number, box in enumerate(self._boxes):
            inner_elements = np.nonzero(box.inside[: mesh.count])[0]
            if len(inner_elements):
                differ = differences(operator.material, inner_elements, box.medium).max(1) > MEDIA_TOLERANCE
                parts += [(int(element), number) for element in inner_elements[differ]]
        if not parts:
            return None
        parts.sort()
        elements, first = np.unique([element for element, _ in parts], return_index=True)
        shape = len(parts), disc.fields, disc.nodes**mesh.dim
        factors, delays = np.empty((*shape, _FACTORS)), np.empty((len(parts), shape[2], 2))
        table = np.array(parts, np.int64)
        for number in np.unique(table[:, 1]):
            rows = np.nonzero(table[:, 1] == number)[0]
            factors[rows], delays[rows] = self._media_factors(self._boxes[number], table[rows, 0])
        members = self._upload(
            elements=elements.astype(np.int32),
            first=np.append(first, len(parts)).astype(np.int32),
            tables=np.array([number for _, number in parts], np.int32),
            factors=factors,
        )
        return len(elements), {**members, **self._columns(delays.reshape(-1, 2))}

    def _media_factors(self, box: SourceBox, elements: Integers) -> tuple[Floats, Floats]:
        """Return the factors of the rates by which the media of elements differ, and the delays (eq. 38)."""
        operator, medium, source = self._operator, box.medium, self._sources[box.source]
        points = nodes_of(operator.mesh, operator.basis, elements)
        count, nodes, dim = points.shape
        x, weight = self._tapered(box, points.reshape(-1, dim))
        velocity, gradient = coefficients(source, medium, x)
        material = operator.material
        rho, cp, cs = (
            np.broadcast_to(getattr(material, name)[elements].reshape(count, -1), (count, nodes)).reshape(-1, 1, 1)
            for name in ("density", "cp", "cs")
        )
        mu = rho * cs**2
        stresses = stress(gradient, rho * cp**2 - 2 * mu - medium.lame, mu - medium.mu)
        rates = unknowns((medium.density / rho - 1) * velocity, stresses, operator.disc.medium == "acoustic")
        factors = (weight[:, None, None] * rates).reshape(len(rates), count, nodes, _FACTORS).swapaxes(0, 1)
        return factors, self._delays(box, x).reshape(count, nodes, 2)

    def _tapered(self, box: SourceBox, points: Floats) -> tuple[Floats, Floats]:
        """Return points relative to the source, moved to a quarter of an element if nearer, and a weight from 0 to 1.

        The weight grows from zero at a quarter of an element to one at half an element.
        """
        position = np.asarray(self._sources[box.source].position, np.float64)
        x = offsets(self._operator.mesh, position, points)
        distance = (abs(x) / box.size).max(1)
        t = np.clip((distance - _TAPER[0]) / (_TAPER[1] - _TAPER[0]), 0.0, 1.0)
        centre = np.where(distance[:, None] < 1e-9, box.size * _TAPER[0] / np.sqrt(3.0), x)
        nearness = np.maximum((abs(centre) / box.size).max(1), 1e-12)
        return centre * np.maximum(1.0, _TAPER[0] / nearness)[:, None], t * t * (3 - 2 * t)

    # -- samples, fields, motion at a side -----------------------------------------------------------------------------

    def motion(self, elements: Integers, face: int, motion: Array) -> Callable[[], None] | None:
        """Return the launch that stores the incident velocities at a side, where `elements` are those at the side."""
        operator, disc = self._operator, self._operator.disc
        parts = sorted(
            (item, number)
            for number, box in enumerate(self._boxes)
            for item in np.nonzero(box.inside[elements])[0].tolist()
        )
        if not parts:
            return None
        items, first = np.unique([item for item, _ in parts], return_index=True)
        factors, delays = [], []
        for item, number in parts:
            box, source = self._boxes[number], self._sources[self._boxes[number].source]
            points = self._face_points(int(elements[item]), face, -1)
            x = offsets(operator.mesh, np.asarray(source.position, np.float64), points)
            factors.append(coefficients(source, box.medium, x)[0].reshape(operator.mesh.dim, len(points), _FACTORS))
            delays.append(self._delays(box, x))
        members = self._upload(
            items=items.astype(np.int32),
            first=np.append(first, len(parts)).astype(np.int32),
            tables=np.array([number for _, number in parts], np.int32),
            factors=np.stack(factors),
        )
        members.update(self._columns(np.concatenate(delays)), motion=motion, offset=1.0 - self._velocity_lead)
        return operator.launch(dg.incident_motion(disc), 0, len(items), **members)[0]

    def at(self, number: int, points: Floats, steps: Floats, *, limited: bool = False) -> Floats:
        """Return the unknowns of the incident field of a box at points and times, (times, fields, points).

        Args:
            number: number of the box.
            points: positions, (points, dim).
            steps: times in steps, all in one window.
            limited: use the values at a quarter of an element for closer points. Otherwise only the field at the source
                itself, which is infinite, is left out.
        """
        box, acoustic = self._boxes[number], self._operator.disc.medium == "acoustic"
        source = self._sources[box.source]
        x = self._tapered(box, points)[0]
        if not limited:
            exact = offsets(self._operator.mesh, np.asarray(source.position, np.float64), points)
            singular = np.linalg.norm(exact / box.size, axis=1) < 1e-9
            x = np.where(singular[:, None], x, exact)
        velocity, gradient = coefficients(source, box.medium, x)
        stresses = stress(gradient, box.medium.lame, box.medium.mu)
        factors = unknowns(velocity, stresses, acoustic)
        delays = self._delays(box, x)
        first = int(steps.min()) - int(steps.min()) % self._window
        if self._first < 0 or not self._first <= steps.min() <= steps.max() <= self._first + self._window:
            self._load(first)
        first_row = PER_STEP * self._first - self._travel_samples - 2
        result = np.zeros((len(steps), len(factors), len(points)))
        moving = np.array([name.startswith("v") for name in self._operator.fields])
        for fields, time_lead in ((moving, self._velocity_lead), (~moving, 0.0)):
            times = PER_STEP * (steps[:, None, None] - time_lead) - delays
            columns = interpolated_columns(self._rows[number], first_row, times, self._spacing)
            result[:, fields] = np.einsum("fpwc,tpwc->tfp", factors[fields], columns)
        return np.where(singular, 0.0, result) if not limited else result

    def samples(self, elements: npt.NDArray[Any], positions: Floats, steps: Floats) -> Floats:
        """Return the incident fields at receivers in their elements after steps, (times, parts, fields)."""
        result = np.zeros((len(steps), len(elements), self._operator.disc.fields))
        for number, box in enumerate(self._boxes):
            in_box = np.nonzero(box.inside[elements])[0]
            if len(in_box):
                result[:, in_box] += self.at(number, positions[in_box], steps).swapaxes(1, 2)
        return result

    @property
    def elements(self) -> npt.NDArray[np.intp]:
        """Return the elements of this rank in boxes, ascending."""
        count = self._operator.mesh.count
        return np.nonzero(np.any([box.inside[:count] for box in self._boxes], axis=0))[0]

    def add_to(self, values: npt.NDArray[Any], step: int) -> None:
        """Add the incident fields to the unknowns of `elements`, (elements, fields, nodes), after `step` steps."""
        operator, elements = self._operator, self.elements
        for number, box in enumerate(self._boxes):
            in_box = np.nonzero(box.inside[elements])[0]
            if len(in_box):
                nodes = nodes_of(operator.mesh, operator.basis, elements[in_box])
                added = self.at(number, nodes.reshape(-1, operator.mesh.dim), np.array([float(step)]), limited=True)[0]
                values[in_box] += added.reshape(len(added), len(in_box), -1).swapaxes(0, 1).astype(values.dtype)


_MORTARS = ("sides", "fine_slots", "coarse_slots", "faces", "halves", "projections")
