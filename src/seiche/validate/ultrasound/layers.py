# SPDX-License-Identifier: BSD-3-Clause
"""Exact waves through plane layers: transfer matrices of plane waves, and the angular spectrum of a bowl.

Waves are exp(i (w t - k x)) with k = w/c - i alpha. All media are fluids.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seiche.ultrasound.materials import MATERIALS, TissueMaterial

Floats = npt.NDArray[np.float64]
Complexes = npt.NDArray[np.complex128]
#: Neper per metre of 1 dB/cm.
NEPER = 100 / (20 * np.log10(np.e))
#: Layers (material, thickness in m) of the transcranial benchmarks with flat bone, and the medium after them.
BENCHMARK_PLATES: dict[str, tuple[tuple[tuple[str, float], ...], str]] = {
    "BM3": ((("cortical bone", 6.5e-3),), "water"),
    "BM4": ((("skin", 4e-3), ("cortical bone", 1.5e-3), ("trabecular bone", 4e-3), ("cortical bone", 1e-3)), "brain"),
}


@dataclass(frozen=True)
class Plates:
    """Plates (material, thickness in m) between two half-spaces, at a frequency in Hz at which absorption is known.

    Attributes:
        layers: plates in the direction of the wave.
        first, last: materials of the half-spaces before and behind them.
        frequency: Hz.
    """

    layers: Sequence[tuple[TissueMaterial, float]]
    first: TissueMaterial
    last: TissueMaterial
    frequency: float

    @classmethod
    def named(cls, layers: Sequence[tuple[str, float]], last: str, frequency: float, first: str = "water") -> Plates:
        """Return plates of the benchmarks' materials."""
        parts = [(MATERIALS[name], thick) for name, thick in layers]
        return cls(parts, MATERIALS[first], MATERIALS[last], frequency)

    @property
    def thickness(self) -> float:
        """Return the sum of all thicknesses, m."""
        return float(sum(thick for _, thick in self.layers))

    def wave_number(self, material: TissueMaterial) -> complex:
        """Return k in rad/m."""
        return complex(2 * np.pi * self.frequency / material.sound_speed, -material.absorption * NEPER)

    def normal_wave_number(self, material: TissueMaterial, along: npt.ArrayLike) -> Complexes:
        """Return the component of k normal to the plates for components `along` them; evanescent waves decay."""
        root = np.sqrt(self.wave_number(material) ** 2 - np.asarray(along, np.complex128) ** 2)
        return np.asarray(np.where(root.imag > 0, -root, root))

    def transmission(self, along: npt.ArrayLike = 0.0) -> Complexes:
        """Return the pressure behind the plates over that of the arriving wave before them, both at the plates."""
        pressure, motion = self._at_the_front(along)
        return np.asarray(2 / (pressure + motion))

    def reflection(self, along: npt.ArrayLike = 0.0) -> Complexes:
        """Return the reflected pressure over that of the arriving wave, both at the front of the plates."""
        pressure, motion = self._at_the_front(along)
        return np.asarray((pressure - motion) / (pressure + motion))

    def _at_the_front(self, along: npt.ArrayLike) -> tuple[Complexes, Complexes]:
        """Return pressure, and velocity times the impedance of the first medium, at the front for 1 Pa at the back."""
        omega = 2 * np.pi * self.frequency
        one = np.ones_like(np.asarray(along, np.complex128))
        a, b, c, d = one, 0 * one, 0 * one, one
        for material, thick in self.layers:
            k = self.normal_wave_number(material, along)
            z, cosine, sine = material.density * omega / k, np.cos(k * thick), 1j * np.sin(k * thick)
            a, b, c, d = (
                a * cosine + b * sine / z,
                a * sine * z + b * cosine,
                c * cosine + d * sine / z,
                c * sine * z + d * cosine,
            )
        first, last = (one.density * omega / self.normal_wave_number(one, along) for one in (self.first, self.last))
        return a + b / last, first * (c + d / last)


def bowl_behind(
    plates: Plates, front: float, radius: float, diameter: float, points: tuple[npt.ArrayLike, npt.ArrayLike]
) -> Complexes:
    """Return the pressure of a bowl behind plates, over that which its surface sends as a large plane.

    The bowl has its vertex at the origin and faces along x, the plates begin at x = `front`, before which lies the
    medium `plates.first`. Each ring of the bowl is a sum of cylindrical waves (Sommerfeld), which are multiplied by the
    transmission of the plates. The integral over the wave number along the plates has 6000 Gauss points for propagating
    waves, and 1500 for evanescent ones.

    Args:
        plates: plates and half-spaces.
        front: m.
        radius: radius of curvature, m.
        diameter: aperture, m.
        points: x and distance from the axis (m), of equal shapes.
    """
    from scipy.special import j0, roots_legendre

    k = plates.wave_number(plates.first).real
    nodes, weights = roots_legendre(6000)
    angle, angle_weights = np.pi / 4 * (nodes + 1), np.pi / 4 * weights
    beyond, growth_weights = roots_legendre(1500)
    growth = 0.4 * (beyond + 1)
    along = np.concatenate([k * np.sin(angle), k * np.cosh(growth)])
    across = plates.normal_wave_number(plates.first, along)
    # dk/k_normal of the substitutions k sin(angle) and k cosh(growth)
    measure = (
        along
        * np.concatenate([angle_weights, 1j * 0.4 * growth_weights])
        * k
        * np.concatenate([np.cos(angle), -1j * np.sinh(growth)])
    )
    measure = measure / across
    rings, ring_weights = roots_legendre(600)
    half = float(np.arcsin(diameter / (2 * radius)))
    polar = half / 2 * (rings + 1)
    areas = half / 2 * ring_weights * 2 * np.pi * radius**2 * np.sin(polar)
    depth = front - radius * (1 - np.cos(polar))
    spectrum = np.zeros(len(along), complex)
    for area, away, distance in zip(areas, radius * np.sin(polar), depth, strict=True):
        spectrum += area * j0(along * away) * np.exp(-1j * across * distance)
    spectrum *= plates.transmission(along) * measure * k / (2 * np.pi)
    x, r = (np.asarray(item, np.float64).ravel() for item in points)
    behind = plates.normal_wave_number(plates.last, along)
    back = front + plates.thickness
    field = [
        (spectrum * j0(along * away) * np.exp(-1j * behind * (depth_x - back))).sum()
        for depth_x, away in zip(x, r, strict=True)
    ]
    return np.asarray(field, np.complex128).reshape(np.shape(points[0]))
