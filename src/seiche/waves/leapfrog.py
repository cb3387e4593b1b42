# SPDX-License-Identifier: BSD-3-Clause
"""Leapfrog with the central flux: velocities half a step before stresses (theory/waves, section 11)."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from seiche.backend import Array
from seiche.errors import CaseError
from seiche.kernels.registry import dg
from seiche.observe.stage import Stage
from seiche.waves.ghosts import Ghosts
from seiche.waves.mesh import NONE
from seiche.waves.operator import Operator

Integrator = Literal["runge-kutta", "leapfrog"]
Floats = npt.NDArray[np.float64]


def check_integrator(integrator: str, flux: str, variant: str, ghosts: str) -> None:
    """Raise CaseError for an unknown integrator, or for leapfrog with another flux, variant or kind of ghosts."""
    if integrator not in get_args(Integrator):
        raise CaseError(f"integrator = {integrator!r}: must be one of {', '.join(get_args(Integrator))}")
    if integrator == "leapfrog":
        for name, value, required in (
            ("flux", flux, "central"),
            ("variant", variant, "fused"),
            ("ghosts", ghosts, "traces"),
        ):
            if value != required:
                raise CaseError(f'integrator = "leapfrog" requires {name} = "{required}", not "{value}"')


def absorption_rates(operator: Operator) -> Floats:
    """Return the damping rates of velocities at absorbing sides, (elements, dim, nodes) (theory/waves, eq. 26)."""
    mesh, disc, dim = operator.mesh, operator.disc, operator.mesh.dim
    rates = np.zeros((mesh.count, dim, operator.weights.shape[1]))
    lift = disc.nodes * (disc.nodes - 1) / 2
    density = operator.material.density
    for face, kind in enumerate(operator.boundaries):
        axis = face // 2
        at_side = np.nonzero(mesh.kinds[:, face, 0] == NONE)[0]
        if kind != "absorbing" or not len(at_side):
            continue
        nodes, scale = operator.face_nodes[face], 2.0 / mesh.sizes[at_side, axis]
        rho = density[at_side][:, nodes] if operator.material.by_node else density[at_side, None]
        for component in range(dim):
            if disc.medium == "acoustic" and component != axis:
                continue
            z = operator.face_impedances(at_side, face)[0 if component == axis else 1]
            z = z if operator.material.by_node else z[:, None]
            rates[at_side[:, None], component, nodes] += lift * scale[:, None] * z / rho
    return rates


class Leapfrog:
    """Stages of the two halves of a step, which advance the velocities and then the stresses or pressures."""

    def __init__(self, operator: Operator, u: Array, trace: Array, ghosts: Ghosts | None, dt: float) -> None:
        """Compute the damping factors of elements at absorbing sides."""
        self._operator, self._u, self._trace, self._ghosts, self._dt = operator, u, trace, ghosts, dt
        rates = absorption_rates(operator)
        elements = np.nonzero((rates > 0).any((1, 2)))[0]
        half = dt / 2 * rates[elements]
        self._absorbing_count = len(elements)
        #: Elements at absorbing sides.
        self.absorbing = elements
        #: These on the device.
        self.elements = operator.backend.upload(elements.astype(np.int32))
        self._factors = operator.real_array(1 - half), operator.real_array(1 / (1 + half))

    def half(self, half: dg.Half, dt: float) -> list[Stage]:
        """Return the stages that advance one half of the unknowns by `dt`, without absorption and sources."""
        operator, ghosts, trace = self._operator, self._ghosts, self._trace
        mesh, sides, inner_sides = operator.mesh, operator.sides, operator.inner_sides
        team = dg.leap_team(operator.disc)
        spec, team_elements = dg.leap(operator.disc, half, team), team.elements
        members = {
            "scheme": operator.members,
            "u": self._u,
            "trace": trace,
            "prefetch_distance": team.prefetch,
            "dt": dt,
        }

        def sweep(suffix: str, begin: int, end: int, after: tuple[str, ...] = ()) -> list[Stage]:
            if begin == end:
                return []
            return [Stage(f"{half}{suffix}", *operator.launch(spec, begin, end, **members), after)]

        items, inner = -(-mesh.count // team_elements), mesh.interior // team_elements
        if ghosts is None:
            return [*operator.mortar_stages(self._u, trace, 0, sides), *sweep("", 0, items)]
        send, receive = ghosts.stages(trace)
        return [
            send,
            *operator.mortar_stages(self._u, trace, 0, inner_sides),
            *sweep(" interior", 0, inner),
            receive,
            *operator.mortar_stages(self._u, trace, inner_sides, sides),
            *sweep(" edge", inner, items, ("receive halo",)),
        ]

    def next_velocities(self, restore: list[Stage]) -> Floats:
        """Return the state with velocities one step later; `restore` recomputes the traces of the present state."""
        backend = self._operator.backend
        velocities_before = backend.download(self._u)
        for stage in self.half("velocities", self._dt):
            stage.action()
        velocities_after = backend.download(self._u)
        backend.assign(self._u, velocities_before)
        for stage in restore:
            stage.action()
        return np.asarray(velocities_after, np.float64)

    def absorb(self, after: bool) -> list[Stage]:
        """Return the stage that applies half the damping at absorbing sides, before or `after` the velocity update."""
        if not self._absorbing_count:
            return []
        operator, spec = self._operator, dg.absorbing_impedance(self._operator.disc)
        members: dict[str, Any] = {"scheme": operator.members, "u": self._u, "trace": self._trace}
        members |= {"elements": self.elements, "factors": self._factors[int(after)]}
        return [Stage("absorbing sides", *operator.launch(spec, 0, self._absorbing_count, **members))]
