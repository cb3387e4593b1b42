# SPDX-License-Identifier: BSD-3-Clause
"""Lattice Boltzmann flow on sparse vessels."""

from __future__ import annotations

from seiche.flow.model import (
    Bgk,
    CarreauYasuda,
    Casson,
    FlowModel,
    Mrt,
    Newtonian,
    PowerLaw,
    Precision,
    PressureIolet,
    Trt,
    VelocityIolet,
)
from seiche.flow.solver import Monitor, Solver

__all__ = [
    "Bgk",
    "CarreauYasuda",
    "Casson",
    "FlowModel",
    "Monitor",
    "Mrt",
    "Newtonian",
    "PowerLaw",
    "Precision",
    "PressureIolet",
    "Solver",
    "Trt",
    "VelocityIolet",
]
