# SPDX-License-Identifier: BSD-3-Clause
"""The kernels of a Runge-Kutta stage, as one sweep or as several (theory/waves, section 8).

    fused        volume, faces, integration and the new traces in one sweep
    fused-flux   volume and faces, which store the rates; then integration and traces
    separate     volume; faces; then integration with a stored inverse mass, and traces

The first two give the same bits. The last one sums integrals in another order, so that it differs by round-off.
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
from seiche.waves.attenuation import Bodies
from seiche.waves.basis import LSRK_A
from seiche.waves.ghosts import Ghosts
from seiche.waves.operator import Operator

_POSITIONS: tuple[dg.Position, ...] = ("first", "inner", "inner", "inner", "last")
#: Stages of a step.
STAGES = len(_POSITIONS)


def check_kernels(variant: str, precision: str, medium: str | None) -> None:
    """Refuse names that no kernel has.

    Raises:
        CaseError: such a name, with those that are known.
    """
    check_variant(variant)
    for name, value, known in (("precision", precision, Real), ("medium", medium, Medium)):
        if value is not None and value not in get_args(known):
            raise CaseError(f"{name}: {value!r} is not one of {', '.join(get_args(known))}")


def check_variant(variant: str) -> None:
    """Refuse variants that do not exist.

    Raises:
        CaseError: an unknown variant.
    """
    if variant not in get_args(Variant):
        raise CaseError(f"variant = {variant!r}: has to be one of {', '.join(get_args(Variant))}")


class Sweeps:
    """What makes a stage of the scheme out of a state and its traces."""

    def __init__(
        self,
        operator: Operator,
        variant: Variant,
        state: tuple[Array, Array],
        traces: tuple[Array, Array],
        *,
        ghosts: Ghosts | None,
        bodies: Bodies | None = None,
    ) -> None:
        """Reserve what the variant stores besides `state` (unknowns and register) and the two buffers of `traces`.

        With the `bodies` of attenuation, which need rates, the integration is always apart.
        """
        self._operator, self._variant, self._ghosts, self._bodies = operator, variant, ghosts, bodies
        self._u, self._k = state
        self._traces = traces
        self._rates = None if variant == "fused" else operator.zeros()
        self._inverse_mass = operator.real_array(inverse_mass(operator)) if variant == "separate" else self._rates

    def stage(self, number: int, trace: int, *, dt: float, b: float) -> list[Stage]:
        """Return corrections and the sweeps of a stage that reads the traces `trace` and writes the others."""
        operator, ghosts, given = self._operator, self._ghosts, self._traces[trace]
        mesh, sides, inner_sides = operator.mesh, operator.sides, operator.inner_sides
        together = dg.team_of(operator.of).elements
        items, inner = -(-mesh.count // together), mesh.interior // together
        sweep = self._sweep(number, trace, dt, b)
        if ghosts is None:
            parts = [*operator.mortar_stages(self._u, given, 0, sides), *sweep("elements", 0, items)]
        else:
            send, receive = ghosts.stages(given)
            parts = [
                send,
                *operator.mortar_stages(self._u, given, 0, inner_sides),
                *sweep("elements interior", 0, inner),
                receive,
                *operator.mortar_stages(self._u, given, inner_sides, sides),
                *sweep("elements edge", inner, items, ("receive halo",)),
            ]
        return parts if self._variant == "fused" else [*parts, self._integration(number, trace, dt, b)]

    def _sweep(self, number: int, trace: int, dt: float, b: float) -> Callable[..., list[Stage]]:
        """Return what gives the launches for a range of items before the integration, if that is apart."""
        operator, of = self._operator, self._operator.of
        together = dg.team_of(of).elements
        kernels: list[tuple[str, KernelSpec, int, dict[str, Any]]] = []
        if self._variant == "separate":
            members = {
                "on": operator.members,
                "u": self._u,
                "contributions": self._rates,
                "weights": operator.basis.weights,
            }
            kernels.append(("volume", dg.volume(of), 1, members))
            kernels.append(("faces", dg.face_flux(of), together, {**members, "trace": self._traces[trace]}))
        else:
            fused = self._variant == "fused"
            members = {
                "on": operator.members,
                "u": self._u,
                "k": self._k if fused else self._rates,
                "trace": self._traces[trace],
                "next_trace": self._traces[1 - trace],
                "reach": dg.team_of(of).reach,
                "a": LSRK_A[number],
                "b": b,
                "dt": dt,
            }
            spec = dg.fused_stage(of, _POSITIONS[number]) if fused else dg.rates(of)
            kernels.append(("", spec, 1, members))

        def sweep(name: str, begin: int, end: int, after: tuple[str, ...] = ()) -> list[Stage]:
            if begin == end:
                return []
            stages = []
            for part, spec, scale, members in kernels:
                # A kernel of one element an item handles the elements of the items of the others.
                first, last = begin * scale, min(end * scale, operator.mesh.count) if scale > 1 else end
                launch = operator.launch(spec, first, last, **members)
                stages.append(Stage(f"{name} {part}".strip(), *launch, after))
            return stages

        return sweep

    def _integration(self, number: int, trace: int, dt: float, b: float) -> Stage:
        operator = self._operator
        if self._bodies is not None:
            arrays = {"u": self._u, "k": self._k, "next_trace": self._traces[1 - trace], "rates": self._rates}
            return self._bodies.integration(_POSITIONS[number], number, b=b, dt=dt, **arrays)
        launch = operator.launch(
            dg.integrate(operator.of, _POSITIONS[number], self._variant == "separate"),
            0,
            operator.mesh.count,
            on=operator.members,
            u=self._u,
            k=self._k,
            next_trace=self._traces[1 - trace],
            rates=self._rates,
            inverse_mass=self._inverse_mass,
            a=LSRK_A[number],
            b=b,
            dt=dt,
        )
        return Stage("integration", *launch)


def inverse_mass(operator: Operator) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return what contributions are multiplied with, (elements, dim + 1, nodes): a word a velocity, one for stresses.

    In a fluid the first is that of the pressure. It holds the modulus of sources (theory/waves, section 5), so that
    all contributions are integrals of derivatives alone, but for the moduli of stresses.
    """
    dim, weights = operator.mesh.dim, operator.weights
    material = operator.material
    shape = (-1, weights.shape[1]) if material.by_node else (-1, 1)
    lightness = (1 / material.density).reshape(shape) / weights
    if operator.of.medium == "acoustic":
        return np.stack([material.longitudinal.reshape(shape) / weights, *(lightness,) * dim], 1)
    return np.stack([*(lightness,) * dim, 1 / weights], 1)
