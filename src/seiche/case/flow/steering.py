# SPDX-License-Identifier: BSD-3-Clause
"""What may change in a run of flow: the values of iolets and the body force, in SI units."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from seiche.case.flow.openings import conditions
from seiche.case.flow.rheology import rheology_of
from seiche.case.flow.schema_iolet import Opening, PressureOpening, VelocityOpening
from seiche.case.flow.setup import FlowSetup
from seiche.case.steering import Control, Value
from seiche.flow.model import VelocityIolet
from seiche.flow.solver import FlowSolver

_CIRCUIT = ("resistance", "compliance", "proximal_resistance", "distal_pressure")


def flow_controls(setup: FlowSetup, solver: FlowSolver) -> dict[str, Control]:
    """Return the controls of a case: `body_force` (N/m^3) and `iolets.<name>.<key>` with the keys of the tables."""
    force = setup.case.body_force.force if setup.case.body_force else (0.0, 0.0, 0.0)

    def push(value: tuple[float, float, float]) -> None:
        x, y, z = (setup.units.to_lattice("force_density", component) for component in value)
        solver.set_body_force((x, y, z))

    openings = {opening.name: opening for opening in setup.case.iolet}
    controls = {"body_force": Control(force, push)}
    for number, plane in enumerate(setup.vessel.sites.iolets):
        given: dict[str, Any] = {}  # what was set of this iolet
        for key, value in _values(openings[plane.name]):
            change = partial(_change, setup, solver, number, given, key)
            controls[f"iolets.{plane.name}.{key}"] = Control(value, change)
    return controls


def _values(opening: Opening) -> Iterator[tuple[str, Value | None]]:
    """Yield the numbers of an opening that may change, None for one that a table or a default gives."""
    keys: tuple[str, ...] = _CIRCUIT
    if isinstance(opening, PressureOpening):
        keys = ("pressure", "amplitude") if opening.period is not None else ("pressure",)
    elif isinstance(opening, VelocityOpening):
        keys = ("velocity",) if opening.flow_rate is None else ("flow_rate",)
    for key in keys:
        yield key, getattr(opening, key)


def _change(
    setup: FlowSetup, solver: FlowSolver, number: int, given: dict[str, Any], key: str, /, value: float
) -> None:
    """Take `value` for `key` of an iolet, in place of its table in time if it has one."""
    case, plane = setup.case, setup.vessel.sites.iolets[number]
    supply = setup.supplies[plane.name]
    changes = {**given, key: value}
    opening = next(opening for opening in case.iolet if opening.name == plane.name)
    if key in ("pressure", "velocity"):
        changes["table"], supply = None, replace(supply, course=None)
    changed = case.model_copy(update={"iolet": (opening.model_copy(update=changes),)})
    viscosity = rheology_of(case).eta_inf / case.fluid.density
    (condition,) = conditions(changed, [plane], setup.units, viscosity, setup.source, {plane.name: supply})
    before = setup.model.iolets[number]
    if not isinstance(condition, VelocityIolet) and not isinstance(before, VelocityIolet):
        condition = replace(condition, scheme=before.scheme)
    solver.iolets.set_condition(number, condition)
    given.update(changes)
