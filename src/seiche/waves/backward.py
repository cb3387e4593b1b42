# SPDX-License-Identifier: BSD-3-Clause
"""The adjoint of the steps of a run on the device (theory/waves, section 10).

The adjoint of a step first repeats it and keeps the state, traces and register of every stage. Then the stages of the
adjoint run in reverse order, with u = b and k = a, velocities reversed. Each stage consists of

- source slopes: derivatives with respect to the sources
- mortar corrections, and mortar slopes: derivatives with respect to the impedances of large sides
- elements: k <- k + dt L(u), u <- A u + B k, new traces, and the derivatives with respect to the media
- mortar traces
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from seiche.backend import Array
from seiche.kernels.registry import KernelSpec, dg, dg_adjoint
from seiche.observe.stage import Stage
from seiche.waves.basis import LSRK_A, LSRK_B
from seiche.waves.probes import Receivers
from seiche.waves.solver import WaveSolver
from seiche.waves.source_terms import SourceOptions, SourceTerms
from seiche.waves.sources import PointSource
from seiche.waves.steps import Parts, WaveSteps
from seiche.waves.sweeps import STAGES, around_messages

Floats = npt.NDArray[np.float64]

_TAPE: tuple[dg.Tape, ...] = ("tape_first", "tape", "tape", "tape", "tape_last")


class ForwardSteps:
    """The steps of a solver with all amplitudes and samples of a run on the device."""

    def __init__(
        self,
        solver: WaveSolver,
        steps: int,
        sources: Sequence[PointSource],
        receivers: Sequence[Sequence[float]],
    ) -> None:
        """Upload the amplitudes of all `steps` steps and assemble the stages (collective)."""
        self._solver, self.steps, self.step = solver, steps, 0
        operator, world, dt = solver.operator, solver.world, solver.dt
        self.clock = solver.backend.zeros(1, np.uint64)
        self.arrays = replace(solver.arrays, clock=self.clock)
        self.receivers = Receivers(operator, receivers, self.clock, steps, world, interval=1)
        self.sources: SourceTerms | None = None
        if sources:
            options = SourceOptions("delta", leapfrog=False, attenuated=False)
            self.sources = SourceTerms(operator, sources, (self.clock, steps, dt), world, options)
            self.sources.send(0, 0, dt)
        sampled, plain = (
            Parts(solver.ghosts, self.sources, probes, solver.sponge) for probes in (self.receivers, None)
        )
        self._phases = [self._steps(parts) for parts in (plain, sampled)]
        self._begin = dict[tuple[int, int], list[Stage]]()

    def _steps(self, parts: Parts) -> list[list[Stage]]:
        steps = WaveSteps(self._solver.operator, self.arrays, parts, self._solver.dt)
        return [steps.runge_kutta(self._solver.sweeps, trace) for trace in (0, 1)]

    def advance(self, end: int, *, record: bool = False) -> None:
        """Advance to the step `end`, and sample the receivers if `record`."""
        while self.step < end:
            run(self._phases[record][self.step % 2])
            self.step += 1

    def resume(self, step: int, state: Array) -> None:
        """Set clock and traces to those of `state`, that of `step`."""
        backend, trace = self._solver.backend, step % 2
        self.step = step
        backend.assign(self.clock, np.array([step], np.uint64))
        key = backend.pointer(state), trace
        if key not in self._begin:
            steps = WaveSteps(self._solver.operator, replace(self.arrays, u=state), Parts(), self._solver.dt)
            self._begin[key] = steps.first_traces(trace)
        run(self._begin[key])


def run(stages: list[Stage]) -> None:
    """Run stages in order."""
    for stage in stages:
        stage.action()


class _StagesOfState(NamedTuple):
    """Stages that read a stored state: the first one of its step, its adjoint, and the sums of the absorbing layer."""

    tape: list[Stage]
    adjoint: list[Stage]
    layer: list[Stage]


class Backward:
    """The adjoint run; its step `s` needs the forward state after `s` steps and its traces.

    Attributes:
        forward: the forward steps.
        sums: sums for the derivatives with respect to the media, (elements, sums) or (elements, sums, nodes).
        mortar_sums: derivatives with respect to the impedances of large sides of hanging faces at the nodes of their
            small sides, (sides, children, kinds of wave, face nodes).
        source_sums: sums of dt, amplitude and b, (parts of sources, unknowns, nodes).
        layer_sums: sums for the derivatives with respect to the rates of an absorbing layer, (elements of the layer,
            invariants, nodes).
    """

    def __init__(self, solver: WaveSolver, forward: ForwardSteps, index: list[int]) -> None:
        """Allocate the tape, the adjoint and the sums, and assemble the stages; `index` has the recorded unknowns."""
        self._solver, self.forward, self._operator = solver, forward, solver.operator
        self._index, backend, operator = index, solver.backend, solver.operator
        disc, nodes = operator.disc, operator.weights.shape[1]
        arrays, inner = forward.arrays, range(STAGES - 1)
        self._tape_u = [arrays.u, *(operator.zeros() for _ in inner)]
        self._tape_k = [operator.zeros() for _ in range(STAGES)]
        self._tape_traces = [operator.traces() for _ in inner]
        self._u, self._k = operator.zeros(), operator.zeros()
        self._traces = operator.traces(), operator.traces()
        count, sums = operator.mesh.count, dg_adjoint.sums_of(disc)
        self.sums = backend.zeros((count, sums, nodes) if disc.nodal else (count, sums), np.float64)
        shape = operator.sides, 1 << (disc.dim - 1), len(operator.impedances), disc.face_nodes
        self.mortar_sums = backend.zeros(shape, np.float64)
        parts = len(forward.sources.delta.points.point) if forward.sources and forward.sources.delta else 0
        self.source_sums = backend.zeros((parts, disc.fields, nodes), np.float64)
        self._residuals = _Residuals(solver, forward, index)
        items, products = solver.sponge.items if solver.sponge else 0, sums - len(operator.impedances)
        self.layer_sums = backend.zeros((items, products, nodes), np.float64)
        later = range(1, STAGES)
        self._tape = [self._tape_stages(later, trace) for trace in (0, 1)]
        self._stages = [self._adjoint_stages(later, trace) for trace in (0, 1)]
        self._entry = [self._entry_stages(trace) for trace in (0, 1)]
        self._of_state = dict[tuple[int, int], _StagesOfState]()

    def set_residual(self, residual: Floats) -> float:
        """Set the residuals, (steps, receivers, fields); return the factor of all sums."""
        return self._residuals.send(residual)

    def enter(self, step: int, state: Array) -> None:
        """Add the residuals of `state`, that of `step`, to the adjoint, and apply the absorbing layer."""
        residuals, damping = self._entry[(step - 1) % 2]
        run(residuals)
        run(self._stages_of(state, step % 2).layer)
        run(damping)

    def reverse(self, step: int, state: Array) -> None:
        """Reverse a step, from its forward state and the traces and clock of `forward`."""
        trace = step % 2
        of_state = self._stages_of(state, trace)
        run(of_state.tape)
        run(self._tape[trace])
        run(self._stages[trace])
        run(of_state.adjoint)
        if step > 0:
            self.enter(step, state)

    def _stages_of(self, state: Array, trace: int) -> _StagesOfState:
        """Return the stages that read the state at the beginning of a step."""
        key = self._solver.backend.pointer(state), trace
        if key not in self._of_state:
            self._tape_u[0] = state
            stages = self._tape_stages(range(1), trace), self._adjoint_stages(range(1), trace)
            self._of_state[key] = _StagesOfState(*stages, self._layer_sums(state))
        return self._of_state[key]

    def _traces_of(self, number: int, trace: int) -> Array:
        """Return the forward traces before a stage."""
        return self.forward.arrays.traces[trace] if number == 0 else self._tape_traces[number - 1]

    def _members(self, **members: Any) -> dict[str, Any]:
        operator = self._operator
        scalars = {"reach": dg.team_of(operator.disc).prefetch, "dt": self._solver.dt}
        return {"on": operator.members, "next_u": None, "next_k": None, **scalars, **members}

    def _mortar_traces(self, u: Array, trace: Array) -> list[Stage]:
        operator = self._operator
        if not operator.sides:
            return []
        members = {"mortars": operator.mortar_members, "u": u, "trace": trace}
        return [Stage("mortar traces", *operator.launch(dg.mortar_traces(operator.disc), 0, operator.sides, **members))]

    def _sweep(self, spec: KernelSpec, members: dict[str, Any]) -> Callable[..., list[Stage]]:
        def sweep(name: str, begin: int, end: int, after: tuple[str, ...] = ()) -> list[Stage]:
            return [Stage(name, *self._operator.launch(spec, begin, end, **members), after)] if begin < end else []

        return sweep

    def _tape_stages(self, numbers: range, trace: int) -> list[Stage]:
        """Return stages of a forward step that keep the state before them."""
        operator, stages = self._operator, list[Stage]()
        for number in numbers:
            u, k, traces = self._tape_u[number], self._tape_k[number], self._traces_of(number, trace)
            last = number == STAGES - 1
            next_u = None if last else self._tape_u[number + 1]
            next_traces = None if last else self._traces_of(number + 1, trace)
            members = self._members(
                u=u,
                k=self._tape_k[number - 1],
                trace=traces,
                next_trace=next_traces,
                a=LSRK_A[number],
                b=LSRK_B[number],
            )
            members |= {"next_u": next_u, "next_k": k}
            sweep = self._sweep(dg_adjoint.taped_stage(operator.disc, _TAPE[number]), members)
            stages += around_messages(operator, self._solver.ghosts, (u, traces), sweep)
            # Nothing needs the state after the last stage. The next step overwrites the register and other traces.
            unused = self.forward.arrays.k, k, self.forward.arrays.traces[1 - trace]
            after = unused if last else (next_u, k, next_traces)
            if self.forward.sources is not None:
                stages += self.forward.sources.stages(number, after, self._solver.dt)
            if not last:
                stages += self._mortar_traces(next_u, next_traces)
        return stages

    def _entry_stages(self, trace: int) -> tuple[list[Stage], list[Stage]]:
        """Return the stages of the residuals, and those that apply the absorbing layer and complete the traces."""
        u, k, traces, sponge = self._u, self._k, self._traces[trace], self._solver.sponge
        residuals, damping = self._residuals.stages(u, k, traces), list[Stage]()
        if sponge is not None and sponge.items:  # the second one overwrites the traces of the first
            damping = [Stage("sponge", *sponge.launch(array, traces)) for array in (k, u)]
        return residuals, [*damping, *self._mortar_traces(u, traces)]

    def _layer_sums(self, state: Array) -> list[Stage]:
        sponge, operator = self._solver.sponge, self._operator
        if sponge is None or not sponge.items:
            return []
        members = {"k": self._k, "state": state, "elements": sponge.layer["elements"], "totals": self.layer_sums}
        return [Stage("layer sums", *operator.launch(dg_adjoint.layer_sums(operator.disc), 0, sponge.items, **members))]

    def _adjoint_stages(self, numbers: range, trace: int) -> list[Stage]:
        """Return stages of the adjoint of a step, whose first traces are `trace`, in reverse order."""
        operator, u = self._operator, self._u
        stages = list[Stage]()
        for number in reversed(numbers):
            parity = (trace + STAGES - 1 - number) % 2
            traces, next_traces = self._traces[parity], self._traces[1 - parity]
            tape = {"tape_u": self._tape_u[number], "tape_trace": self._traces_of(number, trace)}
            sweep = self._sweep(
                dg_adjoint.adjoint_stage(operator.disc), self._adjoint_members(number, traces, next_traces, tape)
            )
            stages += self._source_slopes(number)
            stages += around_messages(
                operator, self._solver.ghosts, (u, traces), sweep, self._mortar_slopes(traces, tape)
            )
            if number > 0:  # residuals change the last ones
                stages += self._mortar_traces(u, next_traces)
        return stages

    def _adjoint_members(self, number: int, traces: Array, next_traces: Array, tape: dict[str, Any]) -> dict[str, Any]:
        operator = self._operator
        step = self._members(
            u=self._u, k=self._k, trace=traces, next_trace=next_traces, a=LSRK_A[number], b=LSRK_B[number - 1]
        )
        absorbing = sum(1 << face for face, kind in enumerate(operator.boundaries) if kind == "absorbing")
        return {
            "step": step,
            **tape,
            "tape_k": self._tape_k[number],
            "totals": self.sums,
            "weights": operator.basis.weights,
            "share": LSRK_B[number],
            "boundary_slot": operator.slot_count - 1,
            "absorbing": absorbing,
        }

    def _mortar_slopes(self, traces: Array, tape: dict[str, Any]) -> Callable[[int, int], list[Stage]] | None:
        operator = self._operator
        if not operator.flux.slopes:
            return None
        members = {"mortars": operator.mortar_members, "u": self._u, "trace": traces} if operator.sides else {}
        members |= {**tape, "totals": self.mortar_sums, "dt": self._solver.dt}

        def slopes(begin: int, end: int) -> list[Stage]:
            spec = dg_adjoint.mortar_slopes(operator.disc)
            return [Stage("mortar slopes", *operator.launch(spec, begin, end, **members))]

        return slopes

    def _source_slopes(self, number: int) -> list[Stage]:
        sources = self.forward.sources
        if sources is None or sources.delta is None or not sources.delta.items:
            return []
        members = {**sources.delta.layout, "u": self._u, "totals": self.source_sums, "clock": self.forward.clock}
        members |= {"stage": number, "dt": self._solver.dt}
        spec = dg_adjoint.source_slopes(self._operator.disc)
        return [Stage("source slopes", *self._operator.launch(spec, 0, sources.delta.items, **members))]


class _Residuals:
    """The residuals at receivers as sources of the adjoint: one for each part of a receiver and recorded unknown."""

    def __init__(self, solver: WaveSolver, forward: ForwardSteps, index: list[int]) -> None:
        self._solver, self._points, self._index = solver, forward.receivers.points, index
        self._clock = forward.clock
        operator, points = solver.operator, self._points
        disc, backend = operator.disc, solver.backend
        repeats = len(index)
        volume = np.prod(operator.mesh.sizes[points.element] / 2, axis=1)
        strengths = np.zeros((len(points.element), repeats, disc.fields))
        for column, number in enumerate(index):
            sign = -1.0 if operator.fields[number].startswith("v") else 1.0
            strengths[:, column, number] = sign * points.share / volume
        elements, first = np.unique(np.repeat(points.element, repeats), return_index=True)
        weights = np.repeat(points.values / operator.basis.weights, repeats, axis=0)
        self._items, self._count = len(elements), len(weights)
        self._largest = self._largest_change(strengths.reshape(-1, disc.fields), weights)
        self._arrays = {
            "elements": backend.upload(elements.astype(np.int32)),
            "first": backend.upload(np.append(first, len(weights)).astype(np.int32)),
            "weights": operator.real_array(weights),
            "strengths": operator.real_array(strengths),
        }
        self._amplitudes = backend.zeros((forward.steps + 1) * self._count, disc.real)

    def _largest_change(self, strengths: Floats, weights: Floats) -> float:
        """Return the largest change of the adjoint by a residual of one."""
        solver, points = self._solver, self._points
        material = solver.material
        inverse = (1 / material.density).reshape(len(material.density), -1).max(1)
        factors = np.repeat(inverse[:, None], strengths.shape[1], axis=1)
        if solver.medium == "acoustic":
            factors[:, 0] = material.longitudinal.reshape(len(material.density), -1).max(1)
        rows = np.repeat(points.element, len(self._index))
        changes = np.abs(strengths).max(1, initial=0.0) * factors[rows].max(1, initial=0.0)
        changes = changes * np.abs(weights).max(2).prod(1)
        largest = self._solver.world.allreduce_max(np.array([changes.max(initial=0.0)]))
        return float(largest[0])

    def send(self, residual: Floats) -> float:
        """Upload the residuals, scaled by a power of two so that single precision neither over- nor underflows."""
        solver = self._solver
        largest = self._largest * float(np.abs(residual).max(initial=0.0)) * solver.dt
        factor = 2.0 ** -np.round(np.log2(largest)) if largest > 0 else 1.0
        if self._items:
            values = np.pad(residual[:, self._points.point] * factor, ((1, 0), (0, 0), (0, 0)))  # none at time zero
            solver.backend.assign(self._amplitudes, values.reshape(-1).astype(solver.disc.real))
        return 1 / float(factor)

    def stages(self, u: Array, k: Array, trace: Array) -> list[Stage]:
        """Return the launch that adds the residuals after a step to k, and B of the last stage times them to u."""
        if not self._items:
            return []
        operator = self._solver.operator
        members = {**self._arrays, "on": operator.members, "u": u, "k": k, "next_trace": trace, "clock": self._clock}
        members |= {"amplitudes": self._amplitudes, "sources": self._count, "stage": 0}
        scheme = {"b": LSRK_B[-1], "dt": self._solver.dt}
        spec = dg.add_sources(operator.disc, 1)
        return [Stage("residuals", *operator.launch(spec, 0, self._items, **members, **scheme))]
