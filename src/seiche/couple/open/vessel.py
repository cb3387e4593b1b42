# SPDX-License-Identifier: BSD-3-Clause
"""Open vessel: interval between exchanges of cells at its openings, and distances of cells from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from seiche.cells.space import FluidSpace
from seiche.couple.open.pulse import pulse_of
from seiche.domain.sites import IoletPlane, SiteSet
from seiche.flow.model import FlowModel, Iolet, Precision, VelocityIolet
from seiche.kernels.registry.ibm import SUPPORT, Delta

#: Maximum displacement of cells between two exchanges, in sites; minimum and maximum number of steps between exchanges.
_MAX_TRAVEL, _INTERVALS = 2.0, (8, 1024)
#: Number of exchanges per pulse of the flow, whose integral is then accurate to 1.3 % of its amplitude.
_EXCHANGES_PER_PULSE = 16
#: Distance, in sites, of the support of a vertex from an opening.
_MARGIN = 1.5
#: Default peak velocity, in sites per step.
_DEFAULT_PEAK = 0.1


@dataclass(frozen=True)
class Margins:
    """Heights behind openings, in sites.

    Vertices enter at `entry`. Below `inlet_exit` they have left through an inlet, and below `outlet_exit` through an
    outlet. The support of a vertex at `clear` is entirely inside the vessel.
    """

    entry: float
    inlet_exit: float
    outlet_exit: float
    clear: float


@dataclass(frozen=True, eq=False)
class OpenVessel:
    """A vessel through whose openings cells enter and leave, in lattice units.

    Attributes:
        sites: its sites.
        model: its flow.
        viscosity: kinematic viscosity of the fluid.
        peak: maximum expected velocity in sites per step; None if it is unknown.
        delta: smoothed delta function of the coupling of cells.
        every: steps between two exchanges of cells; chosen from the flow if None.
        hematocrit: hematocrit of the reservoirs.
        length: minimum length of the reservoirs in sites; chosen from the size of the cells if None.
        seed: seed of the random positions in the reservoirs.
        precision: precision of their flow.
        device: device of their flow.
        threads: host threads of their flow.
    """

    sites: SiteSet
    model: FlowModel
    viscosity: float
    peak: float | None
    delta: Delta
    every: int | None
    hematocrit: float
    length: float | None
    seed: int
    precision: Precision
    device: str
    threads: int | None

    @cached_property
    def walls(self) -> FluidSpace:
        """Return the space of the fluid with open openings."""
        return FluidSpace(self.sites, closed=False)

    @property
    def inlets(self) -> list[IoletPlane]:
        """Return the openings at which cells enter."""
        return inlets_of(self.sites)

    @cached_property
    def pulse(self) -> float | None:
        """Return the shortest pulse of the flow in steps; None if no condition pulsates."""
        return pulse_of(self.model.iolets)

    @property
    def interval(self) -> float:
        """Return the number of steps between two exchanges, in which cells move a few sites."""
        if self.every is not None:
            return float(self.every)
        longest = _INTERVALS[1] if self.pulse is None else min(_INTERVALS[1], self.pulse / _EXCHANGES_PER_PULSE)
        return float(max(math.floor(min(_MAX_TRAVEL / self._speed, longest)), _INTERVALS[0]))

    @property
    def _speed(self) -> float:
        """Return the peak velocity in sites per step."""
        return _DEFAULT_PEAK if self.peak is None else self.peak

    @property
    def travel(self) -> float:
        """Return the distance travelled at the peak velocity between two exchanges, in sites."""
        return self.interval * self._speed

    @property
    def margins(self) -> Margins:
        """Return the margins, from the width of the delta function and the motion of cells between two exchanges."""
        clear = 0.5 * SUPPORT[self.delta] + _MARGIN
        return Margins(clear + 1.0, 0.5 * clear, clear + self.travel, clear)

    def excluded_layers(self) -> dict[str, float]:
        """Return the depth of the layer behind each opening, in sites, in which no cell is packed."""
        margins, inlets = self.margins, {plane.name for plane in self.inlets}
        # If there is outflow from the start, no cell may leave before the first exchange.
        outflow_depth = margins.clear + max(self.travel - _MAX_TRAVEL, 0.0)
        return {
            plane.name: margins.outlet_exit
            if plane.name not in inlets
            else outflow_depth
            if _may_leave(iolet)
            else margins.clear
            for plane, iolet in zip(self.sites.iolets, self.model.iolets, strict=True)
        }


def inlets_of(sites: SiteSet) -> list[IoletPlane]:
    """Return the openings where cells enter."""
    return [plane for plane in sites.iolets if plane.role == "inlet"]


def _may_leave(iolet: Iolet) -> bool:
    """Return whether the condition of an opening permits outflow."""
    return not isinstance(iolet, VelocityIolet) or speeds(iolet)[0] < 0


def speeds(iolet: VelocityIolet) -> tuple[float, float]:
    """Return the minimum and the maximum mean velocity at an opening."""
    if iolet.table is not None:
        return float(iolet.table.values.min()), float(iolet.table.values.max())
    amplitude = float(np.abs(iolet.harmonics).sum())
    return iolet.mean - amplitude, iolet.mean + amplitude
