# SPDX-License-Identifier: BSD-3-Clause
"""The point sources of a solver: incident fields in boxes where possible, else deltas (theory/waves, section 13)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from seiche.backend import Array
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.observe.stage import Stage
from seiche.waves.boxes import SourceBox, Surroundings, boxes_of
from seiche.waves.injection import Incident
from seiche.waves.operator import Operator
from seiche.waves.probes import Sources, check_sources
from seiche.waves.sources import PointSource

#: incident: fields of the uniform medium at the source in a box around it, if it permits; delta: theory/waves, eq. 16.
SourceModel = Literal["incident", "delta"]


def check_source_model(name: str) -> None:
    """Raise CaseError for an unknown model."""
    if name not in get_args(SourceModel):
        raise CaseError(f"source_model = {name!r}: must be one of {', '.join(get_args(SourceModel))}")


@dataclass(frozen=True)
class SourceOptions:
    """Model of sources where possible; whether a step has two halves, and whether the media have attenuation."""

    model: SourceModel
    leapfrog: bool
    attenuated: bool


class SourceTerms:
    """Point sources and how each is represented.

    Attributes:
        factors: factor of the amplitude of each source from now on.
        deltas: numbers of the sources that are deltas, ascending.
        delta: these sources, None if there are none.
        reasons: why sources are deltas, by their numbers.
        incident: the incident fields, None if there are none.
        history: earlier factors: first step, factors.
    """

    def __init__(
        self,
        operator: Operator,
        sources: Sequence[PointSource],
        timing: tuple[Array, int, float],
        world: World,
        options: SourceOptions,
    ) -> None:
        """Choose the representations and upload their data (collective).

        Args:
            operator: the right-hand side.
            sources: the sources, the same on every rank.
            timing: the clock, the steps of a window and the duration of a step.
            world: the ranks.
            options: the model of the sources and the scheme.

        Raises:
            CaseError: a source outside the mesh or not of this medium, or a moment with shear in a fluid.
        """
        clock, window, dt = timing
        check_sources(operator, sources, world)
        leapfrog = options.leapfrog
        excluded_sides = tuple(kind == "absorbing" for kind in operator.boundaries) if leapfrog else ()
        boxes: list[SourceBox] = []
        self.reasons = dict[int, str]()
        if options.model == "incident":
            scene = operator.mesh, operator.material, operator.basis.n, dt, world
            boxes, self.reasons = boxes_of(sources, Surroundings(*scene, options.attenuated, excluded_sides))
        self.factors = np.ones(len(sources))
        self.history: list[tuple[int, npt.NDArray[np.float64]]] = [(0, self.factors.copy())]
        self.deltas = np.array(sorted(set(range(len(sources))) - {box.source for box in boxes}), np.int64)
        self.delta: Sources | None = None
        if len(self.deltas):
            delta_sources = [sources[number] for number in self.deltas]
            self.delta = Sources(operator, delta_sources, clock, window, world, leapfrog=leapfrog)
        self.incident = Incident(operator, sources, boxes, timing, leapfrog=leapfrog) if boxes else None

    def stages(self, number: int, state: tuple[Array, Array, Array], dt: float) -> list[Stage]:
        """Return the launches of a stage; `state` has the unknowns, the register and the new traces."""
        stages = []
        if self.delta is not None and self.delta.items:
            stages.append(Stage("sources", *self.delta.stage(number, dt, *state)))
        return stages if self.incident is None else [*stages, *self.incident.stages(number, *state)]

    def send(self, first: int, step: int, dt: float) -> None:
        """Upload amplitudes and tables of the window that starts at step `first`, before step `step`."""
        if not np.array_equal(self.factors, self.history[-1][1]):
            self._change(step, self.factors.copy())
        if self.delta is not None:
            self.delta.factors[:] = self.factors[self.deltas]
            self.delta.send(first, dt)
        if self.incident is not None:
            self.incident.send(first)

    def _change(self, step: int, factors: npt.NDArray[np.float64]) -> None:
        self.history = [entry for entry in self.history if entry[0] < step] + [(step, factors)]
        if self.incident is not None:
            for source, factor in enumerate(factors):
                self.incident.set_factor(source, step, float(factor))

    def restore(self, rows: npt.NDArray[np.float64]) -> None:
        """Restore the factors of `record`."""
        for step, *factors in rows:
            self._change(int(step), np.array(factors))

    def record(self) -> npt.NDArray[np.float64]:
        """Return steps and factors of all changes, (changes, 1 + sources)."""
        rows = [np.concatenate([[step], factors]) for step, factors in self.history[1:]]
        return np.array(rows, np.float64).reshape(-1, 1 + len(self.factors))
