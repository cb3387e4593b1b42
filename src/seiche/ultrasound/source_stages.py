# SPDX-License-Identifier: BSD-3-Clause
"""Sources on the device (theory/ultrasound, section 5): which sources act in a step, and their bound kernels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from seiche.backend import Array
from seiche.kernels.registry import kspace as registry
from seiche.ultrasound import operators
from seiche.ultrasound.problem import MaskSource
from seiche.ultrasound.state import ActionSequence, Bound, DeviceState


class SourceStages:
    """The sources of a problem."""

    def __init__(self, state: DeviceState) -> None:
        """Upload points and signals, and the corrected masks of sources with one signal for all points."""
        self._state = state
        self._kappa: Array | None = None
        self._masks: list[tuple[MaskSource, Array]] = []
        #: The signals of all sources on the device.
        self._samples: list[tuple[MaskSource, Array]] = []
        self._factors: dict[str, float] = {}
        self._bound = [(source, self._bind(source)) for source in state.problem.sources]

    def active(self, t: int) -> tuple[bool, ...]:
        """Return which sources act in step t."""
        return tuple(t < source.steps for source, _ in self._bound)

    def scale(self, origin: str, factor: float) -> None:
        """Multiply the problem's signals of `origin` by `factor` from the next step on; not saved in checkpoints."""
        self._factors[origin] = factor
        for source, samples in self._samples:
            if source.origin == origin:
                self._state.backend.assign(samples, np.ascontiguousarray(source.samples * factor, self._state.real))

    def factor(self, origin: str) -> float:
        """Return the present factor of the signals of `origin`."""
        return self._factors.get(origin, 1.0)

    def pressure(self, active: Iterable[bool]) -> list[Bound]:
        """Return the bound kernels of the active sources of pressure or stress."""
        return [bound for (source, bound), acts in zip(self._bound, active, strict=True) if acts and on_density(source)]

    def velocity(self, active: Iterable[bool]) -> list[Bound]:
        """Return the bound kernels of the active velocity sources."""
        bound_and_active = zip(self._bound, active, strict=True)
        return [bound for (source, bound), acts in bound_and_active if acts and not on_density(source)]

    def _bind(self, source: MaskSource) -> Bound:
        state = self._state
        if not source.points.size:  # all its points are on other ranks
            return _no_points
        target, fields = state.rho, state.problem.dimensions
        if not on_density(source):
            target, fields = state.u[state.problem.axes.index(source.quantity)], 1
        elif state.problem.elastic is not None:
            source, target, fields = _as_stress(source, state)
        if source.mode == "additive" and state.problem.elastic is None:
            return self._bind_corrected(source, target, fields)
        spec = registry.inject(source.mode == "dirichlet", state.precision)
        members = {"field": target, "points": self._points(source.points), "signal": self._signal(source)}
        return state.bind(spec, items=source.points.size, **members, distance=state.problem.points, fields=fields)

    def _points(self, points: Any) -> Array:
        return self._state.backend.upload(np.ascontiguousarray(points, np.uint32))

    def _signal(self, source: MaskSource) -> dict[str, Any]:
        backend, real = self._state.backend, self._state.real
        samples = backend.upload(np.ascontiguousarray(source.samples, real))
        self._samples.append((source, samples))
        return {
            "samples": samples,
            "weight": None if source.weights is None else backend.upload(np.ascontiguousarray(source.weights, real)),
            "delay": None if source.delays is None else self._points(source.delays),
            "clock": self._state.clock,
            "stride": source.samples.shape[1],
            "column": int(source.samples.shape[1] > 1),
        }

    def _bind_corrected(self, source: MaskSource, target: Array, fields: int) -> Bound:
        """Return the kernels that add the corrected field of a source (eq. 16).

        If all points have the same signal, their field is corrected once. Otherwise it is recomputed every step.
        """
        state = self._state
        if source.samples.shape[1] == 1 and source.delays is None:
            signal, added, padded = {**self._signal(source), "weight": None}, self._corrected_mask(source), 0
            spread: list[Bound] = []
        else:
            spread = self._spread(source, self._signal(source))
            signal = {"samples": None, "weight": None, "delay": None, "clock": None, "stride": 0, "column": 0}
            added, padded = state.work[1], 1
        members = {"field": target, "source": added, "signal": signal, "rows": state.rows}
        add = state.bind(registry.add_field(state.precision), **members, fields=fields, padded=padded)
        return ActionSequence([*spread, add]) if spread else add

    def _corrected_mask(self, source: MaskSource) -> Array:
        """Return F^-1[cos(a) F w] (points,) for the weights w at the source's points; equal masks are shared."""
        state = self._state
        parity = state.parity_of(source.quantity)
        for former_source, mask in self._masks:
            same_points = former_source.points is source.points and former_source.weights is source.weights
            if same_points and state.parity_of(former_source.quantity) == parity:
                return mask
        weights = np.ones(source.points.size) if source.weights is None else source.weights
        clock = state.backend.zeros(1, np.int64)
        signal = {
            "samples": state.backend.upload(np.ascontiguousarray(weights, state.real)),
            **{"weight": None, "delay": None, "clock": clock, "stride": 0, "column": 1},
        }
        for action in self._spread(source, signal):
            action()
        half_rows = state.backend.download(state.work[1]).reshape(-1)[: state.row_count * state.rows["half"]]
        reals = half_rows.reshape(state.row_count, -1).view(state.real)[:, : state.extents[2]]
        mask = state.backend.upload(np.ascontiguousarray(reals).reshape(-1))
        self._masks.append((source, mask))
        return mask

    def _spread(self, source: MaskSource, signal: dict[str, Any]) -> list[Bound]:
        """Return the kernels that compute the corrected field of a signal in the padded rows of work spectrum 1."""
        state = self._state
        if self._kappa is None:
            self._kappa = state.table(
                "source kappa", lambda: state.upload(operators.source_kappa(state.problem, state.real))
            )
        spectrum = state.work[1:2]
        padded_points = source.points // state.extents[2] * (2 * state.rows["half"]) + source.points % state.extents[2]
        return [
            state.bind(registry.clear(state.precision), padded=spectrum, rows=state.rows),
            state.bind(
                registry.inject(False, state.precision),
                items=source.points.size,
                field=spectrum,
                points=self._points(padded_points),
                signal=signal,
                distance=0,
                fields=1,
            ),
            *state.continued(None, spectrum, state.parity_of(source.quantity)),
            state.transforms.forward(None, spectrum),
            state.bind_spectral(registry.spectral_filter(state.precision), spectrum=spectrum, factor=self._kappa),
            state.transforms.inverse(spectrum),
        ]


def _no_points() -> None:
    """Do nothing: the stage of a source that acts on other ranks only, so that all ranks have the same stages."""


def _as_stress(source: MaskSource, state: DeviceState) -> tuple[MaskSource, Array, int]:
    """Return a source of an elastic medium with the stresses on which it acts, and their number.

    A pressure source, scaled for each of D densities, acts on all normal stresses: -D c0^2 times as much (eq. 15).
    """
    problem = state.problem
    if source.quantity != "p":
        return source, state.stress[problem.stresses.index(source.quantity)], 1
    speed = np.broadcast_to(np.asarray(problem.sound_speed, np.float64), problem.shape).reshape(-1)[source.points]
    weights = np.ones(source.points.size) if source.weights is None else source.weights
    factors = -problem.dimensions * speed**2 * weights
    return replace(source, weights=factors), state.stress[: problem.dimensions], problem.dimensions


def on_density(source: MaskSource) -> bool:
    """Return whether a source acts on the density, or in an elastic medium on stresses."""
    return source.quantity not in "xyz"
