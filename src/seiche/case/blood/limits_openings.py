# SPDX-License-Identifier: BSD-3-Clause
"""What an open vessel with cells may not ask for, each refused with one line."""

from __future__ import annotations

from collections.abc import Iterator

from seiche.case.blood.setup import BloodSetup, open_vessel
from seiche.couple.open.vessel import inlets_of, speeds
from seiche.errors import CaseError
from seiche.flow.model import VelocityIolet

#: Sites that cells may move between two looks where the case says how often there is one, and the least looks a pulse.
_FARTHEST, _A_PULSE = 8.0, 4


def refuse_reservoir(setup: BloodSetup) -> None:
    """Raise a CaseError for the first thing that makes the exchange of cells through openings impossible."""
    if setup.case.reservoir is not None:
        for message in _reasons(setup):
            raise CaseError(f"{setup.source}: {message}")


def _reasons(setup: BloodSetup) -> Iterator[str]:
    if not inlets_of(setup.vessel.sites):
        yield (
            'reservoir: the vessel has no inlet through which cells could enter; give one of its iolets role = "inlet"'
        )
    yield from _unclear_roles(setup)
    if setup.case.packing is None:
        yield "reservoir: there is no [packing] with the hematocrit to hold"
        return
    vessel, every = open_vessel(setup), "reservoir.every"
    interval, pulse, travel = vessel.interval, vessel.pulse, vessel.travel
    if travel > _FARTHEST:
        yield (
            f"{every}: cells move {travel:.3g} sites between two looks at the openings, and would be out before "
            f"they are seen; at most {max(1, int(interval * _FARTHEST / travel))} steps"
        )
    if pulse is not None and interval > pulse / _A_PULSE:
        given = vessel.every is not None
        yield (
            f"{every}: the flow pulsates in {pulse:.3g} steps, which looks at the openings so seldom would not see; at "
            f"most {max(1, int(pulse / _A_PULSE))} steps"
            if given
            else f"reservoir: the flow pulsates in {pulse:.3g} steps, faster than cells at openings are looked at; at "
            f"least {_A_PULSE * interval:g} are needed: use a smaller time step"
        )


def _unclear_roles(setup: BloodSetup) -> Iterator[str]:
    """Yield what is wrong with outlets of the geometry through which the case lets blood enter."""
    roles = {opening.name: opening.role for opening in setup.case.iolet}
    for plane, iolet in zip(setup.vessel.sites.iolets, setup.model.iolets, strict=True):
        enters = isinstance(iolet, VelocityIolet) and speeds(iolet)[1] > 0
        if plane.role == "outlet" and enters and roles[plane.name] is None:
            yield (
                f'iolet["{plane.name}"].role: is missing; blood may enter through it, but the geometry calls it an '
                'outlet, through which no cells enter: say "inlet" or "outlet"'
            )
