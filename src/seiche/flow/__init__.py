# SPDX-License-Identifier: BSD-3-Clause
"""Lattice Boltzmann flow on sparse vessels."""

from __future__ import annotations

from seiche.flow.model import (
    Bgk,
    Body,
    CarreauYasuda,
    Casson,
    FlowModel,
    MovingWall,
    Mrt,
    Newtonian,
    PowerLaw,
    Precision,
    PressureIolet,
    Regularised,
    SiteProfile,
    TimeTable,
    Trt,
    VelocityIolet,
    Walls,
    WindkesselIolet,
)
from seiche.flow.monitor import Monitor
from seiche.flow.solver import FlowSolver

#: The usual short name.
Solver = FlowSolver

__all__ = [
    "Bgk",
    "Body",
    "CarreauYasuda",
    "Casson",
    "FlowModel",
    "FlowSolver",
    "Monitor",
    "MovingWall",
    "Mrt",
    "Newtonian",
    "PowerLaw",
    "Precision",
    "PressureIolet",
    "Regularised",
    "SiteProfile",
    "Solver",
    "TimeTable",
    "Trt",
    "VelocityIolet",
    "Walls",
    "WindkesselIolet",
]
