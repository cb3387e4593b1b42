# SPDX-License-Identifier: BSD-3-Clause
"""How near to the openings of a vessel cells may be: where they enter and where they count as gone."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from seiche.case.blood.pulse import pulse_of
from seiche.case.blood.setup import BloodSetup
from seiche.domain.sites import IoletPlane
from seiche.flow.model import Iolet, VelocityIolet
from seiche.kernels.registry.ibm import SUPPORT

#: Sites that cells may move between two looks, and the steps between two looks.
_TRAVEL, _LOOKS = 2.0, (8, 1024)
#: Looks a pulse of the flow: its integral is then known within 1.3 % of its amplitude.
_A_PULSE = 16
#: Sites between an opening and the last of the sites that a vertex near it needs.
_MARGIN = 1.5
#: Mach number of the peak velocity when nothing says it.
_UNKNOWN = 0.1


def inlets_of(setup: BloodSetup) -> list[IoletPlane]:
    """Return the openings through which cells enter."""
    return [plane for plane in setup.vessel.sites.iolets if plane.role == "inlet"]


def interval_of(setup: BloodSetup) -> float:
    """Return the steps between two looks at the openings: cells move few sites in between."""
    table = setup.case.reservoir
    if table is not None and table.every is not None:
        return float(table.every)
    pulse = pulse_of(setup)
    most = _LOOKS[1] if pulse is None else min(_LOOKS[1], pulse / _A_PULSE)
    return float(max(math.floor(min(_TRAVEL / _speed(setup), most)), _LOOKS[0]))


def _speed(setup: BloodSetup) -> float:
    """Return the peak velocity in sites a step."""
    scale = setup.invariants.velocity_scale
    return setup.units.to_lattice("velocity", scale) if scale else _UNKNOWN


def travel(setup: BloodSetup) -> float:
    """Return how many sites the peak velocity is between two looks."""
    return interval_of(setup) * _speed(setup)


@dataclass(frozen=True)
class Margins:
    """Heights behind openings, in sites.

    Vertices enter at `enter`; below `back` they have gone out through an inlet, below `gone` through an outlet. The
    sites of a vertex at `free` are all in the vessel.
    """

    enter: float
    back: float
    gone: float
    free: float

    @classmethod
    def of(cls, setup: BloodSetup) -> Margins:
        """Return those of a case, by the width of its delta function and what cells move between two looks."""
        free = 0.5 * SUPPORT[setup.case.coupling.delta] + _MARGIN
        return cls(free + 1.0, 0.5 * free, free + travel(setup), free)


def kept_free(setup: BloodSetup) -> dict[str, float]:
    """Return how deep the layer behind each opening is, in sites, into which no cell is packed; none without looks."""
    if setup.case.reservoir is None:
        return {}
    margins, inlets = Margins.of(setup), {plane.name for plane in inlets_of(setup)}
    # Where blood may leave from the start, cells are not to be out before the first look.
    deep = margins.free + max(travel(setup) - _TRAVEL, 0.0)
    return {
        plane.name: margins.gone if plane.name not in inlets else deep if _may_leave(iolet) else margins.free
        for plane, iolet in zip(setup.vessel.sites.iolets, setup.model.iolets, strict=True)
    }


def _may_leave(iolet: Iolet) -> bool:
    """Return whether blood may leave through an opening, as far as its condition says."""
    return not isinstance(iolet, VelocityIolet) or speeds(iolet)[0] < 0


def speeds(iolet: VelocityIolet) -> tuple[float, float]:
    """Return between which bounds the mean velocity at an opening is."""
    if iolet.table is not None:
        return float(iolet.table.values.min()), float(iolet.table.values.max())
    swing = float(np.abs(iolet.harmonics).sum())
    return iolet.mean - swing, iolet.mean + swing
