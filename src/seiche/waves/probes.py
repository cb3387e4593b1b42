# SPDX-License-Identifier: BSD-3-Clause
"""Point sources and receivers on the device (theory/waves, section 5), with transfers once per window of steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.kernels.registry import dg
from seiche.waves.basis import LSRK_B, LSRK_C
from seiche.waves.injection import Incident
from seiche.waves.operator import Operator
from seiche.waves.sources import PointSource, share_out

Launch = Callable[[], None]

#: Approximate number of steps between two transfers.
WINDOW = 256


def check_sources(operator: Operator, sources: Sequence[PointSource], world: World) -> None:
    """Raise CaseError for a source outside the mesh or not of this medium, or shear in a fluid (collective)."""
    disc, mesh = operator.disc, operator.mesh
    points = share_out(mesh, operator.basis, [source.position for source in sources], "source", world)
    strengths = np.array([source.strengths(disc.medium, mesh.dim) for source in sources])[points.point]
    dim, wrong = mesh.dim, np.zeros(len(sources))
    if disc.medium == "elastic":
        fluid = operator.material.cs.reshape(mesh.count, -1)[points.element, 0] == 0
        normal, shear = strengths[:, dim : 2 * dim], strengths[:, 2 * dim :]
        wrong[points.point[fluid & ((np.ptp(normal, axis=1) > 0) | shear.any(1))]] = 1
    wrong = world.allreduce_max(wrong)
    if wrong.any():
        position = [float(c) for c in sources[int(np.argmax(wrong))].position]
        raise CaseError(f"source {position} is in a fluid, where the moment must be a multiple of the unit matrix")


class Sources:
    """Point sources as deltas; one team handles all those of an element, in order."""

    def __init__(
        self,
        operator: Operator,
        sources: Sequence[PointSource],
        clock: Array,
        window: int,
        world: World,
        *,
        leapfrog: bool = False,
    ) -> None:
        """Distribute the sources over elements and upload their constants (collective).

        With `leapfrog`, forces act in the middle of the velocity half, the others in the middle of the stress half.

        Raises:
            CaseError: a source outside the mesh or not of this medium.
        """
        self._backend, self._operator, self._sources = operator.backend, operator, tuple(sources)
        disc, mesh, basis = operator.disc, operator.mesh, operator.basis
        points = share_out(mesh, basis, [source.position for source in sources], "source", world)
        #: The sources as parts in elements.
        self.points = points
        volume = np.prod(mesh.sizes[points.element] / 2, axis=1)
        strengths = np.array([source.strengths(disc.medium, mesh.dim) for source in sources])[points.point]
        strengths *= (points.share / volume)[:, None]
        elements, first = np.unique(points.element, return_index=True)
        #: Factor of the amplitudes of each source.
        self.factors = np.ones(len(sources))
        #: Elements of this rank that have sources.
        self.items = len(elements)
        #: Times of the stages, in steps, and weights of their increments.
        self._times: tuple[float, ...] = (0.0, 0.5) if leapfrog else LSRK_C
        self._weights: tuple[float, ...] = (1.0, 1.0) if leapfrog else LSRK_B
        stages = len(self._times)
        self._amplitudes = self._backend.zeros(window * stages * len(points.element), disc.real)
        self._shape = (window, stages, len(points.element))
        velocity = slice(1, None) if disc.medium == "acoustic" else slice(0, mesh.dim)
        forces = np.zeros_like(strengths)
        forces[:, velocity] = strengths[:, velocity]
        parts = (forces, strengths - forces) if leapfrog else (strengths,) * stages
        self._strengths = [self._backend.upload(values.astype(disc.real)) for values in parts]
        self._members: dict[str, Any] = {
            "scheme": operator.members,
            "elements": self._backend.upload(elements.astype(np.int32)),
            "first": self._backend.upload(np.append(first, len(points.element)).astype(np.int32)),
            "weights": self._backend.upload((points.values / basis.weights).astype(disc.real)),
            "amplitudes": self._amplitudes,
            "clock": clock,
            "sources": len(points.element),
        }

    def stage(self, stage: int, dt: float, u: Array, k: Array, trace: Array) -> tuple[Launch, int]:
        """Return the launch that adds the sources of a stage, and the bytes it moves."""
        spec = dg.add_sources(self._operator.disc, len(self._times))
        members = {**self._members, "u": u, "k": k, "next_trace": trace, "stage": stage, "dt": dt}
        strengths, b = self._strengths[stage], self._weights[stage]
        return self._operator.launch(spec, 0, self.items, **members, strengths=strengths, b=b)

    @property
    def layout(self) -> dict[str, Any]:
        """Return the elements with sources, the sources of each, and their amplitudes."""
        names = "elements", "first", "amplitudes", "sources"
        return {name: self._members[name] for name in names}

    def send(self, step: int, dt: float) -> None:
        """Upload the amplitudes of the window that starts at `step`."""
        if not self.items:
            return
        window = self._shape[0]
        times = (step + np.arange(window)[:, None] + np.array(self._times)) * dt
        values = (np.stack([source.time(times) for source in self._sources], -1) * self.factors)[..., self.points.point]
        self._backend.assign(self._amplitudes, values.astype(self._operator.disc.real).ravel())


class Receivers:
    """Samples of the unknowns at points, at a fixed interval of steps."""

    def __init__(
        self,
        operator: Operator,
        positions: Sequence[Sequence[float]],
        clock: Array,
        window: int,
        world: World,
        *,
        interval: int,
    ) -> None:
        """Distribute the points over elements and allocate a window of samples (collective).

        Raises CaseError for a receiver outside the mesh or an interval of less than one step.
        """
        if interval < 1:
            raise CaseError(f"receivers: sample interval of {interval} steps: must be at least 1")
        self._backend, self._operator, self.count, self.every = operator.backend, operator, len(positions), interval
        self._world = world
        #: The receivers as parts in elements.
        self.points = share_out(operator.mesh, operator.basis, positions, "receiver", world)
        self._positions = np.asarray(positions, np.float64)[self.points.point]
        #: Incident fields in boxes around sources, which the samples include.
        self.incident: Incident | None = None
        disc, parts = operator.disc, len(self.points.element)
        #: Parts of receivers on this rank.
        self.items = parts
        self._shape = (window // interval, parts, disc.fields)
        self._samples = self._backend.zeros(self._shape, disc.real)
        self._rows: list[npt.NDArray[Any]] = []
        #: Number of samples before the first one stored, and the samples of the runs that this one continues.
        self.first = 0
        self._previous_samples = np.zeros((0, self.count, disc.fields))
        self._members = {
            "elements": self._backend.upload(self.points.element),
            "weights": self._backend.upload(self.points.values.astype(disc.real)),
            "clock": clock,
            "samples": self._samples,
            "receivers": parts,
            "every": interval,
        }

    def launch(self, u: Array) -> tuple[Launch, int]:
        """Return the launch that stores a sample if one is scheduled, and the bytes it moves."""
        kernel = self._backend.load(dg.record(self._operator.disc))
        arguments = self._backend.pack(kernel, **self._members, u=u)
        parts = self._shape[1]
        return kernel.bind(arguments, 0, parts), kernel.bytes_per_item * parts

    def clear(self) -> None:
        """Discard all samples and count steps from 0."""
        self.resume(np.zeros((0, self.count, self._shape[2])), 0)

    def resume(self, samples: npt.NDArray[np.float64] | None, step: int) -> None:
        """Continue from `samples` (rows, receivers, fields) before `step`; None: samples begin at `step`."""
        self._rows.clear()
        self.first = 0 if samples is not None else step // self.every
        self._previous_samples = np.zeros((0, self.count, self._shape[2])) if samples is None else samples

    def download_samples(self, first: int, last: int, window: int) -> None:
        """Download the samples of the steps first ... last - 1 of the window that starts at step `window`."""
        rows = slice(first // self.every, last // self.every)
        if rows.start < rows.stop:
            samples = self._backend.download(self._samples)[rows]
            if self.incident is not None:
                steps: npt.NDArray[np.float64] = window + self.every * np.arange(rows.start + 1.0, rows.stop + 1.0)
                samples = samples + self.incident.samples(self.points.element, self._positions, steps)
            self._rows.append(samples)

    def samples(self) -> npt.NDArray[np.float64]:
        """Return all samples, (rows, receivers, fields), on every rank (collective)."""
        return np.concatenate([self._previous_samples, self._collected(np.arange(self.count))])

    def traces(self, receivers: npt.NDArray[np.int64], field: int, rows: int) -> tuple[npt.NDArray[np.float64], int]:
        """Return at most `rows` evenly chosen samples of a field at some receivers, (rows, receivers), on every rank.

        Also return the number of samples from one to the next; only these samples are sent (collective).
        """
        stored = len(self._previous_samples) + sum(map(len, self._rows))
        step = max(1, -(-stored // rows))
        first = -len(self._previous_samples) % step
        collected = self._collected(receivers, first, step, field)
        return np.concatenate([self._previous_samples[::step, receivers, field], collected[:, :, 0]]), step

    def _collected(
        self, receivers: npt.NDArray[np.int64], first: int = 0, step: int = 1, field: int | None = None
    ) -> npt.NDArray[np.float64]:
        """Return every `step`-th sample of this run, (rows, receivers, fields), of one field if it is given.

        Samples before number `first` are omitted (collective).
        """
        points = self.points
        position = np.full(self.count, -1)
        position[receivers] = np.arange(len(receivers))
        parts = np.flatnonzero(position[points.point] >= 0)
        fields = slice(None) if field is None else slice(field, field + 1)
        blocks = [np.zeros((0, len(parts), len(range(self._shape[2])[fields])))]
        for block in self._rows:
            blocks.append(block[first::step, :, fields][:, parts])
            first = (first - len(block)) % step if first < len(block) else first - len(block)
        own_values = np.concatenate(blocks)
        local = (
            self._operator.mesh.number[points.element[parts]],
            points.point[parts],
            points.share[parts],
            own_values,
        )
        gathered = [*zip(*self._world.allgather(local), strict=True)]
        number, point, share = (np.concatenate(arrays) for arrays in gathered[:3])
        values = np.concatenate(gathered[3], axis=1)
        result = np.zeros((len(own_values), len(receivers), values.shape[2]))
        for k in np.lexsort((point, number)):  # along the curve: the same sum on any number of ranks
            result[:, position[point[k]]] += share[k] * values[:, k]
        return result
