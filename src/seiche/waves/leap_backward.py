# SPDX-License-Identifier: BSD-3-Clause
"""The adjoint of leapfrog steps on the device (theory/waves, section 10).

With velocities reversed, the adjoint of a step consists of the same halves and the same absorption in reverse order:

- sponge, source slopes, velocities: v <- v + dt L(p or S)
- absorbing sides after the velocities, source slopes
- leap sums: derivatives with respect to the media
- stresses: p or S <- p or S + dt L(v)
- absorbing sides before the velocities
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from seiche.backend import Array
from seiche.kernels.registry import dg_adjoint
from seiche.observe.stage import Stage
from seiche.waves.forward import ForwardSteps, run
from seiche.waves.leapfrog import Leapfrog
from seiche.waves.residuals import Residuals
from seiche.waves.solver import WaveSolver
from seiche.waves.steps import Parts, WaveSteps

Floats = npt.NDArray[np.float64]


class LeapBackward:
    """The adjoint run of leapfrog; its step `s` needs the forward state after `s` steps and its traces.

    Attributes:
        forward: the forward steps.
        sums, layer_sums: as in `Backward`.
        source_sums: sums of dt, amplitude and a, (halves, parts of sources, unknowns, nodes).
        resistance_sums: products of velocities and a at absorbing sides before and after the damping of the forward
            step, (2, elements, dim, nodes).
    """

    def __init__(self, solver: WaveSolver, forward: ForwardSteps, index: list[int]) -> None:
        """Allocate states and sums, and assemble the stages; `index` has the recorded unknowns."""
        assert solver.leap is not None
        self._solver, self.forward, self._operator = solver, forward, solver.operator
        backend, operator, disc = solver.backend, solver.operator, solver.disc
        nodes = operator.weights.shape[1]
        self._u, self._trace = operator.zeros(), operator.traces()
        self._start, self._before, self._middle = (operator.zeros() for _ in range(3))
        self._leap = Leapfrog(operator, self._u, self._trace, solver.ghosts, solver.dt)
        count, sums = operator.mesh.count, dg_adjoint.gradient_term_count(disc)
        self.sums = backend.zeros((count, sums, nodes) if disc.nodal else (count, sums), np.float64)
        delta = forward.sources.delta if forward.sources is not None else None
        self.source_sums = backend.zeros((2, len(delta.points.point) if delta else 0, disc.fields, nodes), np.float64)
        items, products = solver.sponge.items if solver.sponge else 0, sums - len(operator.impedances)
        self.layer_sums = backend.zeros((items, products, nodes), np.float64)
        self.resistance_sums = backend.zeros((2, len(solver.leap.absorbing), disc.dim, nodes), np.float64)
        self._residuals = Residuals(solver, forward.receivers, index, steps=forward.steps, clock=forward.clock)
        arrays = replace(forward.arrays, u=self._u, traces=(self._trace, self._trace))
        self._mortar_traces = WaveSteps(operator, arrays, Parts(), solver.dt).mortar_traces(0)
        self._entry = self._entry_stages()
        self._tape, self._stages = self._tape_stages(solver.leap), self._adjoint_stages()

    def set_residual(self, residual: Floats) -> float:
        """Set the residuals, (steps, receivers, fields); return the factor of all sums."""
        return self._residuals.send(residual)

    def enter(self, step: int, state: Array) -> None:
        """Add the residuals of `state`, that of `step`, to the adjoint, and apply the absorbing layer."""
        operator, sponge = self._operator, self._solver.sponge
        residuals, damping = self._entry
        run(residuals)
        if sponge is not None and sponge.items:
            members = {
                "k": self._u,
                "state": state,
                "elements": sponge.layer["elements"],
                "gradient_terms": self.layer_sums,
            }
            operator.launch(dg_adjoint.layer_gradients(operator.disc), 0, sponge.items, **members)[0]()
        run(damping)

    def reverse(self, step: int, state: Array) -> None:
        """Reverse a step, from its forward state and the traces and clock of `forward`."""
        u = self.forward.arrays.u
        if state is not u:
            u[...] = state
        self._start[...] = u
        run(self._tape)
        run(self._stages)
        if step > 0:
            self.enter(step, self._start)

    def _entry_stages(self) -> tuple[list[Stage], list[Stage]]:
        sponge = self._solver.sponge
        damping = []
        if sponge is not None and sponge.items:
            damping = [Stage("sponge", *sponge.launch(self._u, self._trace))]
        return self._residuals.stages(self._u, None, self._trace), [*damping, *self._mortar_traces]

    def _tape_stages(self, leap: Leapfrog) -> list[Stage]:
        """Return the stages of a forward step without the absorbing layer, which keep its intermediate states."""
        forward, dt = self.forward, self._solver.dt
        steps = WaveSteps(self._operator, forward.arrays, Parts(self._solver.ghosts, forward.sources), dt)
        state = forward.arrays.u, forward.arrays.k, forward.arrays.traces[0]
        sources = forward.sources
        first, second = (sources.stages(half, state, dt) if sources is not None else [] for half in (0, 1))
        return [
            *leap.absorb(after=False),
            Stage("store", lambda: self._copy(self._before)),
            *leap.half("velocities", dt),
            *first,
            Stage("store", lambda: self._copy(self._middle)),
            *leap.absorb(after=True),
            *steps.mortar_traces(0),
            *leap.half("stresses", dt),
            *second,
        ]

    def _copy(self, target: Array) -> None:
        target[...] = self.forward.arrays.u

    def _adjoint_stages(self) -> list[Stage]:
        dt, leap = self._solver.dt, self._leap
        return [
            *self._source_slopes(1),
            *leap.half("velocities", dt),
            *self._resistance(1, self._middle),
            *leap.absorb(after=True),
            *self._source_slopes(0),
            *self._mortar_traces,
            self._leap_sums(),
            *leap.half("stresses", dt),
            *self._resistance(0, self._start),
            *leap.absorb(after=False),
        ]

    def _leap_sums(self) -> Stage:
        operator = self._operator
        members = {"a": self._u, "before": self._before, "middle": self._middle, "after": self.forward.arrays.u}
        members |= {"gradient_terms": self.sums, "weights": operator.basis.weights}
        return Stage(
            "leap sums",
            *operator.launch(dg_adjoint.leapfrog_gradients(operator.disc), 0, operator.mesh.count, **members),
        )

    def _resistance(self, number: int, state: Array) -> list[Stage]:
        operator, leap = self._operator, self._leap
        if not len(leap.absorbing):
            return []
        members = {
            "a": self._u,
            "state": state,
            "elements": leap.elements,
            "gradient_terms": self.resistance_sums[number],
        }
        spec = dg_adjoint.absorbing_boundary_gradients(operator.disc)
        return [Stage("resistance sums", *operator.launch(spec, 0, len(leap.absorbing), **members))]

    def _source_slopes(self, half: int) -> list[Stage]:
        sources = self.forward.sources
        if sources is None or sources.delta is None or not sources.delta.items:
            return []
        members = {
            **sources.delta.layout,
            "u": self._u,
            "gradient_terms": self.source_sums[half],
            "clock": self.forward.clock,
        }
        members |= {"stage": half, "dt": self._solver.dt}
        spec = dg_adjoint.source_gradients(self._operator.disc, 2)
        return [Stage("source slopes", *self._operator.launch(spec, 0, sources.delta.items, **members))]
