# SPDX-License-Identifier: BSD-3-Clause
"""Checks of the discontinuous Galerkin solver against exact solutions."""

from __future__ import annotations

from seiche.validate.check import Family
from seiche.validate.waves import accuracy, oblique, point_sources
from seiche.validate.waves.layer_over_half_space import layer_over_half_space

#: Every family of checks, in the order in which they run.
FAMILIES: tuple[Family, ...] = (
    accuracy.spectrum,
    accuracy.orders,
    accuracy.hanging_orders,
    accuracy.interfaces,
    accuracy.two_layers,
    oblique.plane_layers,
    accuracy.interface_waves,
    point_sources.monopole,
    point_sources.force,
    point_sources.lamb,
    layer_over_half_space,
)
