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

#: Maximum displacement of cells between two exchanges, in sites.
_MAX_DISPLACEMENT = 2.0
#: Minimum and maximum number of steps between two exchanges.
_MIN_INTERVAL, _MAX_INTERVAL = 8, 1024
#: Number of exchanges per pulse of the flow; the integral over a pulse is then accurate to 1.3 % of its amplitude.
_EXCHANGES_PER_PULSE = 16
#: Minimum distance of the support of a vertex from an opening, in sites.
_MIN_DISTANCE = 1.5
#: Default peak velocity, in sites per step.
_DEFAULT_PEAK = 0.1


@dataclass(frozen=True)
class Margins:
    """Distances from the plane of an opening into the vessel, in sites.

    Cells are inserted beyond `entry`. A cell with a vertex closer than `inlet_exit` to an inlet, or than `outlet_exit`
    to an outlet, is removed. Beyond `clear`, the support of a vertex is entirely inside the vessel.
    """

    entry: float
    inlet_exit: float
    outlet_exit: float
    clear: float


@dataclass(frozen=True, eq=False)
class OpenVessel:
    """A vessel through whose openings cells enter and leave, in lattice units.

    Attributes:
        sites: fluid sites.
        model: flow model.
        viscosity: kinematic viscosity of the fluid.
        peak: maximum expected velocity in sites per step; None if it is unknown.
        delta: smoothed delta function of the coupling of cells.
        every: steps between two exchanges of cells; chosen from the flow if None.
        hematocrit: hematocrit of the reservoirs.
        length: minimum length of the reservoirs in sites; chosen from the size of the cells if None.
        seed: seed of the random positions in the reservoirs.
        precision: precision of the flow in the reservoirs.
        device: device that computes it.
        threads: number of host threads for it.
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
        """Return the space of the fluid, in which the openings are not walls."""
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
        """Return the number of steps between two exchanges, chosen so that cells move a few sites at most."""
        if self.every is not None:
            return float(self.every)
        upper = _MAX_INTERVAL if self.pulse is None else min(_MAX_INTERVAL, self.pulse / _EXCHANGES_PER_PULSE)
        return float(max(math.floor(min(_MAX_DISPLACEMENT / self._peak_velocity, upper)), _MIN_INTERVAL))

    @property
    def _peak_velocity(self) -> float:
        """Return the peak velocity in sites per step."""
        return _DEFAULT_PEAK if self.peak is None else self.peak

    @property
    def displacement(self) -> float:
        """Return the displacement at the peak velocity between two exchanges, in sites."""
        return self.interval * self._peak_velocity

    @property
    def margins(self) -> Margins:
        """Return the margins, from the support of the delta function and the displacement between exchanges."""
        clear = 0.5 * SUPPORT[self.delta] + _MIN_DISTANCE
        return Margins(clear + 1.0, 0.5 * clear, clear + self.displacement, clear)

    def excluded_layers(self) -> dict[str, float]:
        """Return the depth, in sites, of the layer behind each opening in which no cell is packed."""
        margins, inlets = self.margins, {plane.name for plane in self.inlets}
        # If there is outflow from the start, no cell may leave before the first exchange.
        outflow_depth = margins.clear + max(self.displacement - _MAX_DISPLACEMENT, 0.0)
        return {
            plane.name: margins.outlet_exit
            if plane.name not in inlets
            else outflow_depth
            if _permits_outflow(iolet)
            else margins.clear
            for plane, iolet in zip(self.sites.iolets, self.model.iolets, strict=True)
        }


def inlets_of(sites: SiteSet) -> list[IoletPlane]:
    """Return the openings where cells enter."""
    return [plane for plane in sites.iolets if plane.role == "inlet"]


def _permits_outflow(iolet: Iolet) -> bool:
    """Return whether the condition of an opening permits outflow."""
    return not isinstance(iolet, VelocityIolet) or velocity_range(iolet)[0] < 0


def velocity_range(iolet: VelocityIolet) -> tuple[float, float]:
    """Return the minimum and the maximum mean velocity at an opening."""
    if iolet.table is not None:
        return float(iolet.table.values.min()), float(iolet.table.values.max())
    amplitude = float(np.abs(iolet.harmonics).sum())
    return iolet.mean - amplitude, iolet.mean + amplitude
