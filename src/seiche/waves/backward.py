# SPDX-License-Identifier: BSD-3-Clause
"""The adjoint of the steps of a run on the device (theory/waves, section 10).

The adjoint of a step first repeats it and keeps the state, traces and register of every stage. Then the stages of the
adjoint run in reverse order, with u = b and k = a, velocities reversed. Each stage consists of

- source slopes: derivatives with respect to the strengths of sources
- mortar corrections, and mortar slopes: derivatives with respect to the impedances of coarse sides
- elements: k <- k + dt L(u), u <- A u + B k, new traces, and the derivatives with respect to the media
- mortar traces
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from seiche.backend import Array
from seiche.kernels.registry import KernelSpec, dg, dg_adjoint
from seiche.observe.stage import Stage
from seiche.waves.basis import LSRK_A, LSRK_B
from seiche.waves.forward import ForwardSteps, run
from seiche.waves.residuals import Residuals
from seiche.waves.solver import WaveSolver
from seiche.waves.sweeps import RK_STAGES, overlap_halo_exchange

Floats = npt.NDArray[np.float64]

_TAPE: tuple[dg.Tape, ...] = ("tape_first", "tape", "tape", "tape", "tape_last")


class _StagesOfState(NamedTuple):
    """Stages that read a stored state: the first one of its step, its adjoint, and the sums of the absorbing layer."""

    tape: list[Stage]
    adjoint: list[Stage]
    layer: list[Stage]


class Backward:
    """The adjoint run; its step `s` needs the forward state after `s` steps and its traces.

    Attributes:
        forward: the forward steps.
        sums: terms of the derivatives with respect to the material parameters, (elements, sums) or (elements, sums,
            nodes).
        mortar_sums: derivatives with respect to the impedances of coarse sides of hanging faces at the nodes of their
            fine sides, (sides, children, kinds of wave, face nodes).
        source_sums: sums of dt, amplitude and b, (parts of sources, unknowns, nodes).
        layer_sums: sums for the derivatives with respect to the rates of an absorbing layer, (elements of the layer,
            invariants, nodes).
    """

    def __init__(self, solver: WaveSolver, forward: ForwardSteps, index: list[int]) -> None:
        """Allocate the tape, the adjoint and the sums, and assemble the stages; `index` has the recorded unknowns."""
        self._solver, self.forward, self._operator = solver, forward, solver.operator
        self._index, backend, operator = index, solver.backend, solver.operator
        disc, nodes = operator.disc, operator.weights.shape[1]
        arrays, inner = forward.arrays, range(RK_STAGES - 1)
        self._tape_u = [arrays.u, *(operator.zeros() for _ in inner)]
        self._tape_k = [operator.zeros() for _ in range(RK_STAGES)]
        self._tape_traces = [operator.traces() for _ in inner]
        self._u, self._k = operator.zeros(), operator.zeros()
        self._traces = operator.traces(), operator.traces()
        count, sums = operator.mesh.count, dg_adjoint.gradient_term_count(disc)
        self.sums = backend.zeros((count, sums, nodes) if disc.nodal else (count, sums), np.float64)
        shape = operator.sides, 1 << (disc.dim - 1), len(operator.impedances), disc.face_nodes
        self.mortar_sums = backend.zeros(shape, np.float64)
        parts = len(forward.sources.delta.points.point) if forward.sources and forward.sources.delta else 0
        self.source_sums = backend.zeros((parts, disc.fields, nodes), np.float64)
        self._residuals = Residuals(solver, forward.receivers, index, steps=forward.steps, clock=forward.clock)
        items, products = solver.sponge.items if solver.sponge else 0, sums - len(operator.impedances)
        self.layer_sums = backend.zeros((items, products, nodes), np.float64)
        later = range(1, RK_STAGES)
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
        scalars = {"prefetch_distance": dg.team_of(operator.disc).prefetch, "dt": self._solver.dt}
        return {"scheme": operator.members, "next_u": None, "next_k": None, **scalars, **members}

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
            last = number == RK_STAGES - 1
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
            stages += overlap_halo_exchange(operator, self._solver.ghosts, (u, traces), sweep)
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
        members = {
            "k": self._k,
            "state": state,
            "elements": sponge.layer["elements"],
            "gradient_terms": self.layer_sums,
        }
        return [
            Stage("layer sums", *operator.launch(dg_adjoint.layer_gradients(operator.disc), 0, sponge.items, **members))
        ]

    def _adjoint_stages(self, numbers: range, trace: int) -> list[Stage]:
        """Return stages of the adjoint of a step, whose first traces are `trace`, in reverse order."""
        operator, u = self._operator, self._u
        stages = list[Stage]()
        for number in reversed(numbers):
            parity = (trace + RK_STAGES - 1 - number) % 2
            traces, next_traces = self._traces[parity], self._traces[1 - parity]
            tape = {"tape_u": self._tape_u[number], "tape_trace": self._traces_of(number, trace)}
            sweep = self._sweep(
                dg_adjoint.adjoint_stage(operator.disc), self._adjoint_members(number, traces, next_traces, tape)
            )
            stages += self._source_slopes(number)
            stages += overlap_halo_exchange(
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
        step["prefetch_distance"] = dg_adjoint.adjoint_team(operator.disc).prefetch
        absorbing = sum(1 << face for face, kind in enumerate(operator.boundaries) if kind == "absorbing")
        return {
            "step": step,
            **tape,
            "tape_k": self._tape_k[number],
            "gradient_terms": self.sums,
            "weights": operator.basis.weights,
            "stage_b": LSRK_B[number],
            "boundary_slot": operator.slot_count - 1,
            "absorbing": absorbing,
        }

    def _mortar_slopes(self, traces: Array, tape: dict[str, Any]) -> Callable[[int, int], list[Stage]] | None:
        operator = self._operator
        if not operator.flux.slopes:
            return None
        members = {"mortars": operator.mortar_members, "u": self._u, "trace": traces} if operator.sides else {}
        members |= {**tape, "gradient_terms": self.mortar_sums, "dt": self._solver.dt}

        def slopes(begin: int, end: int) -> list[Stage]:
            spec = dg_adjoint.mortar_gradients(operator.disc)
            return [Stage("mortar slopes", *operator.launch(spec, begin, end, **members))]

        return slopes

    def _source_slopes(self, number: int) -> list[Stage]:
        sources = self.forward.sources
        if sources is None or sources.delta is None or not sources.delta.items:
            return []
        members = {
            **sources.delta.layout,
            "u": self._u,
            "gradient_terms": self.source_sums,
            "clock": self.forward.clock,
        }
        members |= {"stage": number, "dt": self._solver.dt}
        spec = dg_adjoint.source_gradients(self._operator.disc)
        return [Stage("source slopes", *self._operator.launch(spec, 0, sources.delta.items, **members))]
