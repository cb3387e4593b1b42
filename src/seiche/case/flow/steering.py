# SPDX-License-Identifier: BSD-3-Clause
"""Controls of a flow run: values of iolets and the body force, in SI units."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from seiche.case.flow.openings import conditions
from seiche.case.flow.schema_iolet import Opening, PressureOpening, VelocityOpening
from seiche.case.flow.setup import FlowSetup
from seiche.case.steering import Control, Limits
from seiche.flow.model import VelocityIolet
from seiche.flow.solver import FlowSolver


def flow_controls(setup: FlowSetup, solver: FlowSolver) -> dict[str, Control]:
    """Return the controls of a case: `body_force` (N/m^3) and `iolets.<name>.<key>` with the keys of the tables."""
    force = setup.case.body_force.force if setup.case.body_force else (0.0, 0.0, 0.0)

    def set_force(value: tuple[float, float, float]) -> None:
        x, y, z = (setup.units.to_lattice("force_density", component) for component in value)
        solver.set_body_force((x, y, z))

    controls = {"body_force": Control(force, set_force)}
    openings = {opening.name: opening for opening in setup.case.iolet}
    for number, plane in enumerate(setup.vessel.sites.iolets):
        opening, changes = openings[plane.name], dict[str, Any]()
        for key in _keys(opening):
            change = partial(_change, setup, solver, number, opening, changes=changes, key=key)
            controls[f"iolets.{plane.name}.{key}"] = Control(getattr(opening, key), change, _limits(opening, key))
    return controls


def _keys(opening: Opening) -> tuple[str, ...]:
    if isinstance(opening, PressureOpening):
        return ("pressure", "amplitude") if opening.period is not None else ("pressure",)
    if isinstance(opening, VelocityOpening):
        return ("velocity",) if opening.flow_rate is None else ("flow_rate",)
    return ("resistance", "compliance", "proximal_resistance", "distal_pressure")


def _limits(opening: Opening, key: str) -> Limits:
    """Return the lower limit of a key by the schema of its table."""
    for item in type(opening).model_fields[key].metadata:
        for name in ("ge", "gt"):
            if hasattr(item, name):
                return Limits(float(getattr(item, name)), inclusive=name == "ge")
    return Limits()


def _change(
    setup: FlowSetup,
    solver: FlowSolver,
    number: int,
    opening: Opening,
    value: Any,
    *,
    changes: dict[str, Any],
    key: str,
) -> None:
    """Change a key of an iolet in addition to the earlier `changes`; a mean value replaces a table over time."""
    case, plane = setup.case, setup.vessel.sites.iolets[number]
    changed, data = {**changes, key: value}, setup.iolet_inputs[plane.name]
    if key in ("pressure", "velocity"):
        changed["table"], data = None, replace(data, series=None)
    table = case.model_copy(update={"iolet": (opening.model_copy(update=changed),)})
    (condition,) = conditions(table, [plane], setup.units, setup.source, {plane.name: data})
    initial = setup.model.iolets[number]
    if not isinstance(condition, VelocityIolet) and not isinstance(initial, VelocityIolet):
        condition = replace(condition, scheme=initial.scheme)
    solver.iolets.set_condition(number, condition)
    changes.update(changed)
