# SPDX-License-Identifier: BSD-3-Clause
"""Checks of the discontinuous Galerkin solver against exact solutions."""

from __future__ import annotations

from seiche.validate.check import Family
from seiche.validate.waves import accuracy, layer_over_half_space, oblique, point_sources, source_positions

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
    source_positions.double_couple,
    source_positions.explosion,
    source_positions.force,
    source_positions.volume,
    source_positions.force_in_a_fluid,
    layer_over_half_space.lossless_layer,
    layer_over_half_space.attenuating_layer,
)
