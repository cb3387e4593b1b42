# SPDX-License-Identifier: BSD-3-Clause
"""The kernels of a Runge-Kutta stage, in one or several sweeps (theory/waves, section 8).

- fused: volume, faces, integration and the new traces in one sweep
- fused-flux: volume and faces, which store the rates; then integration and traces
- separate: volume; faces; then integration with a stored inverse mass, and traces

The first two give bitwise identical results. The last one sums integrals in another order and differs by round-off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import numpy as np

from seiche.backend import Array
from seiche.errors import CaseError
from seiche.kernels.registry import KernelSpec, dg
from seiche.kernels.registry.dg import Medium, Real, Variant
from seiche.observe.stage import Stage
from seiche.waves.attenuation import MemoryVariables
from seiche.waves.basis import LSRK_A
from seiche.waves.ghosts import Ghosts
from seiche.waves.operator import Operator

_POSITIONS: tuple[dg.Position, ...] = ("first", "inner", "inner", "inner", "last")
#: A function of (name, begin, end, predecessors) that returns the launches for the teams (groups of elements that a
#: thread block processes together) begin ... end - 1. Predecessors are the names of stages that must run before them.
Sweep = Callable[..., list[Stage]]
#: Runge-Kutta stages of a time step. A `Stage` is something else: one launch in the schedule of a step.
RK_STAGES = len(_POSITIONS)


def check_kernels(variant: str, precision: str, medium: str | None) -> None:
    """Raise CaseError for an unknown variant, precision or medium."""
    check_variant(variant)
    for name, value, choices in (("precision", precision, Real), ("medium", medium, Medium)):
        if value is not None and value not in get_args(choices):
            raise CaseError(f"{name}: {value!r} is not one of {', '.join(get_args(choices))}")


def check_variant(variant: str) -> None:
    """Raise CaseError for an unknown variant."""
    if variant not in get_args(Variant):
        raise CaseError(f"variant = {variant!r}: must be one of {', '.join(get_args(Variant))}")


def overlap_halo_exchange(
    operator: Operator,
    ghosts: Ghosts | None,
    state: tuple[Array, Array],
    sweep: Sweep,
    mortars: Callable[[int, int], list[Stage]] | None = None,
) -> list[Stage]:
    """Return the launches of a Runge-Kutta stage; interior elements are swept during the halo exchange.

    Args:
        operator: the arrays of the right-hand side.
        ghosts: the halo exchange, None on one rank.
        state: unknowns and their traces.
        sweep: returns the launches for a range of teams.
        mortars: returns additional launches for the coarse sides begin ... end - 1 of nonconforming faces, which
            precede the sweep of their elements.
    """
    mesh, sides, inner_sides = operator.mesh, operator.sides, operator.inner_sides
    per_team = dg.team_of(operator.disc).elements
    team_count, interior_teams = -(-mesh.count // per_team), mesh.interior // per_team

    def corrections(begin: int, end: int) -> list[Stage]:
        additional_launches = mortars(begin, end) if mortars is not None and begin < end else []
        return [*operator.mortar_stages(*state, begin, end), *additional_launches]

    if ghosts is None:
        return [*corrections(0, sides), *sweep("elements", 0, team_count)]
    send, receive = ghosts.stages(state[1])
    return [
        send,
        *corrections(0, inner_sides),
        *sweep("elements interior", 0, interior_teams),
        receive,
        *corrections(inner_sides, sides),
        *sweep("elements edge", interior_teams, team_count, ("receive halo",)),
    ]


class Sweeps:
    """The launches of each Runge-Kutta stage."""

    def __init__(
        self,
        operator: Operator,
        variant: Variant,
        state: tuple[Array, Array],
        traces: tuple[Array, Array],
        *,
        ghosts: Ghosts | None,
        memory: MemoryVariables | None = None,
    ) -> None:
        """Allocate the additional arrays of the variant; `state` has the unknowns and the register.

        Memory variables need the rates, so with `memory` the integration is a separate sweep.
        """
        self._operator, self._variant, self._ghosts, self._memory = operator, variant, ghosts, memory
        self._u, self._k = state
        self._traces = traces
        self._rates = None if variant == "fused" else operator.zeros()
        self._inverse_mass = operator.real_array(inverse_mass(operator)) if variant == "separate" else self._rates

    def launches(self, number: int, trace_index: int, *, dt: float, b: float) -> list[Stage]:
        """Return the launches of Runge-Kutta stage `number`.

        It reads trace buffer `trace_index` (0 or 1) and writes the other one.
        """
        state = self._u, self._traces[trace_index]
        launches = overlap_halo_exchange(self._operator, self._ghosts, state, self._sweep(number, trace_index, dt, b))
        return launches if self._variant == "fused" else [*launches, self._integration(number, trace_index, dt, b)]

    def _sweep(self, number: int, trace_index: int, dt: float, b: float) -> Sweep:
        """Return a function from a range of teams to the launches before any separate integration."""
        operator, disc = self._operator, self._operator.disc
        per_team = dg.team_of(disc).elements
        kernels: list[tuple[str, KernelSpec, int, dict[str, Any]]] = []
        if self._variant == "separate":
            members = {
                "scheme": operator.members,
                "u": self._u,
                "contributions": self._rates,
                "weights": operator.basis.weights,
            }
            kernels.append(("volume", dg.volume(disc), 1, members))
            kernels.append(("faces", dg.face_flux(disc), per_team, {**members, "trace": self._traces[trace_index]}))
        else:
            fused = self._variant == "fused"
            members = {
                "scheme": operator.members,
                "u": self._u,
                "k": self._k if fused else self._rates,
                "trace": self._traces[trace_index],
                "next_trace": self._traces[1 - trace_index],
                "next_u": None,
                "next_k": None,
                "prefetch_distance": dg.team_of(disc).prefetch,
                "a": LSRK_A[number],
                "b": b,
                "dt": dt,
            }
            spec = dg.fused_stage(disc, _POSITIONS[number]) if fused else dg.rates(disc)
            kernels.append(("", spec, 1, members))

        def sweep(name: str, begin: int, end: int, predecessors: tuple[str, ...] = ()) -> list[Stage]:
            if begin == end:
                return []
            launches = []
            for kernel, spec, items_per_team, members in kernels:
                # An item is an element for the kernel "faces", a team for the others.
                first, last = begin * items_per_team, end * items_per_team
                if items_per_team > 1:
                    last = min(last, operator.mesh.count)
                launch = operator.launch(spec, first, last, **members)
                launches.append(Stage(f"{name} {kernel}".strip(), *launch, predecessors))
            return launches

        return sweep

    def _integration(self, number: int, trace_index: int, dt: float, b: float) -> Stage:
        operator = self._operator
        arrays = {"u": self._u, "k": self._k, "next_trace": self._traces[1 - trace_index], "rates": self._rates}
        if self._memory is not None:
            return self._memory.integration(_POSITIONS[number], number, b=b, dt=dt, **arrays)
        spec = dg.integrate(operator.disc, _POSITIONS[number], self._variant == "separate")
        members = {"inverse_mass": self._inverse_mass, "a": LSRK_A[number], "b": b, "dt": dt}
        launch = operator.launch(spec, 0, operator.mesh.count, scheme=operator.members, **arrays, **members)
        return Stage("integration", *launch)


def inverse_mass(operator: Operator) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the factors of the integrals, (elements, dim + 1, nodes): one for each velocity, one for the stresses.

    In a fluid the first is that of the pressure. It includes the bulk modulus (theory/waves, section 5); the moduli of
    the stresses of a solid are part of the integrals.
    """
    dim, weights = operator.mesh.dim, operator.weights
    material = operator.material
    shape = (-1, weights.shape[1]) if material.by_node else (-1, 1)
    velocity = (1 / material.density).reshape(shape) / weights
    if operator.disc.medium == "acoustic":
        return np.stack([material.longitudinal.reshape(shape) / weights, *(velocity,) * dim], 1)
    return np.stack([*(velocity,) * dim, 1 / weights], 1)
