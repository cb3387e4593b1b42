# SPDX-License-Identifier: BSD-3-Clause
"""Checks of the k-space solver against exact solutions."""

from __future__ import annotations

from seiche.validate.check import Family
from seiche.validate.ultrasound import axisymmetric, bone_ring, continuous_waves, elastic, oblique, plates, pulses

#: Every family of checks, in the order in which they run.
FAMILIES: tuple[Family, ...] = (
    pulses.photoacoustic_gaussian,
    pulses.photoacoustic_sphere,
    pulses.power_laws,
    pulses.absorbing_layer,
    continuous_waves.harmonics,
    continuous_waves.bone,
    *oblique.FAMILIES,
    *plates.FAMILIES,
    continuous_waves.contrast,
    continuous_waves.orders,
    continuous_waves.transducers,
    axisymmetric.axisymmetric_ball,
    axisymmetric.axisymmetric_transducers,
    axisymmetric.axisymmetric_plates,
    elastic.elastic_reflection,
    elastic.elastic_surface_waves,
    bone_ring.elastic_ring,
)
