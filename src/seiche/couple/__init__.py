# SPDX-License-Identifier: BSD-3-Clause
"""Coupled solvers: cells in flow (`blood`)."""

from __future__ import annotations

from seiche.couple.balance import BloodCosts, measure_blood_costs, repartitioned
from seiche.couple.blood import Blood
from seiche.couple.immersed import ImmersedBoundary
from seiche.couple.markers import Markers, Placement, Surfaces

__all__ = [
    "Blood",
    "BloodCosts",
    "ImmersedBoundary",
    "Markers",
    "Placement",
    "Surfaces",
    "measure_blood_costs",
    "repartitioned",
]
