# SPDX-License-Identifier: BSD-3-Clause
"""An open vessel: how often cells are exchanged at its openings, and how near to these they may be."""

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

#: Sites that cells may move between two looks, and the steps between two looks.
_TRAVEL, _LOOKS = 2.0, (8, 1024)
#: Looks a pulse of the flow: its integral is then known within 1.3 % of its amplitude.
_A_PULSE = 16
#: Sites between an opening and the last of the sites that a vertex near it needs.
_MARGIN = 1.5
#: Mach number of the peak velocity when nothing says it.
_UNKNOWN = 0.1


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


@dataclass(frozen=True, eq=False)
class OpenVessel:
    """A vessel whose openings cells pass, in lattice units.

    Attributes:
        sites: its sites.
        model: its flow.
        viscosity: kinematic viscosity of the fluid.
        peak: largest velocity that is expected, in sites a step; None if it is unknown.
        delta: smoothed delta function of the coupling of cells.
        every: steps between two exchanges of cells; chosen by the flow if None.
        hematocrit: that of the tubes before the inlets.
        length: least length of these tubes in sites; by the size of the cells if None.
        seed: of the random places in the tubes.
        precision: of their flow.
        device: where they are computed.
        threads: of the host, for that.
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
        """Return the openings through which cells enter."""
        return inlets_of(self.sites)

    @cached_property
    def pulse(self) -> float | None:
        """Return the shortest pulse of the flow in steps, None where nothing pulsates."""
        return pulse_of(self.model.iolets)

    @property
    def interval(self) -> float:
        """Return the steps between two looks at the openings: cells move few sites in between."""
        if self.every is not None:
            return float(self.every)
        most = _LOOKS[1] if self.pulse is None else min(_LOOKS[1], self.pulse / _A_PULSE)
        return float(max(math.floor(min(_TRAVEL / self._speed, most)), _LOOKS[0]))

    @property
    def _speed(self) -> float:
        """Return the peak velocity in sites a step."""
        return _UNKNOWN if self.peak is None else self.peak

    @property
    def travel(self) -> float:
        """Return how many sites the peak velocity is between two looks."""
        return self.interval * self._speed

    @property
    def margins(self) -> Margins:
        """Return the margins, by the width of the delta function and what cells move between two looks."""
        free = 0.5 * SUPPORT[self.delta] + _MARGIN
        return Margins(free + 1.0, 0.5 * free, free + self.travel, free)

    def kept_free(self) -> dict[str, float]:
        """Return how deep the layer behind each opening is, in sites, into which no cell is packed."""
        margins, inlets = self.margins, {plane.name for plane in self.inlets}
        # Where blood may leave from the start, cells are not to be out before the first look.
        deep = margins.free + max(self.travel - _TRAVEL, 0.0)
        return {
            plane.name: margins.gone if plane.name not in inlets else deep if _may_leave(iolet) else margins.free
            for plane, iolet in zip(self.sites.iolets, self.model.iolets, strict=True)
        }


def inlets_of(sites: SiteSet) -> list[IoletPlane]:
    """Return the openings through which cells enter."""
    return [plane for plane in sites.iolets if plane.role == "inlet"]


def _may_leave(iolet: Iolet) -> bool:
    """Return whether blood may leave through an opening, as far as its condition says."""
    return not isinstance(iolet, VelocityIolet) or speeds(iolet)[0] < 0


def speeds(iolet: VelocityIolet) -> tuple[float, float]:
    """Return between which bounds the mean velocity at an opening is."""
    if iolet.table is not None:
        return float(iolet.table.values.min()), float(iolet.table.values.max())
    swing = float(np.abs(iolet.harmonics).sum())
    return iolet.mean - swing, iolet.mean + swing
