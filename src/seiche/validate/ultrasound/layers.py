# SPDX-License-Identifier: BSD-3-Clause
"""Exact waves through plane layers: transfer matrices of plane waves, and the angular spectrum of a bowl.

Waves are exp(i (w t - k x)) with k = w/c - i alpha. All media are fluids.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.case.ultrasound.medium import medium_of
from seiche.case.ultrasound.schema import MediumTable
from seiche.ultrasound import Grid, Medium
from seiche.ultrasound.materials import MATERIALS, TissueMaterial

Floats = npt.NDArray[np.float64]
Complexes = npt.NDArray[np.complex128]
#: 1 dB/cm in nepers per metre.
NEPER = 100 / (20 * np.log10(np.e))
#: Layers (material, thickness in m) of the transcranial benchmarks with flat bone, and the medium behind them.
BENCHMARK_PLATES: dict[str, tuple[tuple[tuple[str, float], ...], str]] = {
    "BM3": ((("cortical bone", 6.5e-3),), "water"),
    "BM4": ((("skin", 4e-3), ("cortical bone", 1.5e-3), ("trabecular bone", 4e-3), ("cortical bone", 1e-3)), "brain"),
}


@dataclass(frozen=True)
class Plates:
    """Plates (material, thickness in m) between two half-spaces, at the frequency (Hz) of the given absorption.

    Attributes:
        layers: plates, ordered in the direction of the wave.
        first, last: materials of the half-spaces in front of and behind them.
        frequency: Hz.
        dispersive: whether waves have the dispersion of absorption proportional to the square of the frequency, which
            the solver computes: 0.25 % in cortical bone. Otherwise their phase speed is the sound speed.
    """

    layers: Sequence[tuple[TissueMaterial, float]]
    first: TissueMaterial
    last: TissueMaterial
    frequency: float
    dispersive: bool = False

    @classmethod
    def named(cls, layers: Sequence[tuple[str, float]], last: str, frequency: float, first: str = "water") -> Plates:
        """Return plates made of the benchmark materials."""
        parts = [(MATERIALS[name], thick) for name, thick in layers]
        return cls(parts, MATERIALS[first], MATERIALS[last], frequency)

    @property
    def thickness(self) -> float:
        """Return the total thickness, m."""
        return float(sum(thick for _, thick in self.layers))

    def wave_number(self, material: TissueMaterial) -> complex:
        """Return k in rad/m: w/c - i alpha or, with dispersion, w/c (1 + 2 i alpha c/w)^(-1/2)."""
        lossless, absorption = 2 * np.pi * self.frequency / material.sound_speed, material.absorption * NEPER
        if self.dispersive:
            return complex(lossless / np.sqrt(1 + 2j * absorption / lossless))
        return complex(lossless, -absorption)

    def normal_wave_number(self, material: TissueMaterial, tangential_wave_number: npt.ArrayLike) -> Complexes:
        """Return the component of k normal to the plates from that along them; evanescent waves decay."""
        root = np.sqrt(self.wave_number(material) ** 2 - np.asarray(tangential_wave_number, np.complex128) ** 2)
        return np.asarray(np.where(root.imag > 0, -root, root))

    def transmission(self, tangential_wave_number: npt.ArrayLike = 0.0) -> Complexes:
        """Return the pressure at the back of the plates relative to that of the incident wave at their front."""
        pressure, motion = self._at_the_front(tangential_wave_number)
        return np.asarray(2 / (pressure + motion))

    def reflection(self, tangential_wave_number: npt.ArrayLike = 0.0) -> Complexes:
        """Return the reflected pressure relative to that of the incident wave, both at the front of the plates."""
        pressure, motion = self._at_the_front(tangential_wave_number)
        return np.asarray((pressure - motion) / (pressure + motion))

    def _at_the_front(self, tangential_wave_number: npt.ArrayLike) -> tuple[Complexes, Complexes]:
        """Return pressure, and velocity times the impedance of the first medium, at the front for 1 Pa at the back."""
        omega = 2 * np.pi * self.frequency
        one = np.ones_like(np.asarray(tangential_wave_number, np.complex128))
        a, b, c, d = one, 0 * one, 0 * one, one
        for material, thick in self.layers:
            k = self.normal_wave_number(material, tangential_wave_number)
            z, cosine, sine = material.density * omega / k, np.cos(k * thick), 1j * np.sin(k * thick)
            a, b, c, d = (
                a * cosine + b * sine / z,
                a * sine * z + b * cosine,
                c * cosine + d * sine / z,
                c * sine * z + d * cosine,
            )
        first, last = (
            one.density * omega / self.normal_wave_number(one, tangential_wave_number)
            for one in (self.first, self.last)
        )
        return a + b / last, first * (c + d / last)


def case_medium(plates: Plates, front: float, grid: Grid, axis: int) -> Medium:
    """Return the medium of a case file with the plates as boxes normal to an axis, averaged over the grid cells.

    Args:
        plates: plates and half-spaces.
        front: coordinate of the front of the plates, m.
        grid: the grid.
        axis: index of the axis normal to the plates.
    """
    far, end, regions = 1e3, front, []
    for material, thickness in (*plates.layers, (plates.last, far)):
        lower, upper = ([f"{sign * far!r} m"] * len(grid.shape) for sign in (-1, 1))
        lower[axis], upper[axis] = f"{end!r} m", f"{end + thickness!r} m"
        regions.append({"kind": "box", "lower": lower, "upper": upper, **_properties(material)})
        end += thickness
    absorbing = (
        plates.first.absorption or plates.last.absorption or any(material.absorption for material, _ in plates.layers)
    )
    table = {**_properties(plates.first), **({"alpha_power": 2.0} if absorbing else {})}
    if plates.layers or plates.last != plates.first:
        table["region"] = regions
    return medium_of(MediumTable.model_validate(table), grid, Path())


def _properties(material: TissueMaterial) -> dict[str, Any]:
    return {
        "sound_speed": f"{material.sound_speed!r} m/s",
        "density": f"{material.density!r} kg/m^3",
        "alpha_coeff": material.alpha_coeff(2.0),
    }


@dataclass(frozen=True)
class Transducer:
    """A bowl facing along x, or a disc if the `radius` of curvature is infinite; lengths in m.

    The centre of its surface, which is the vertex of a bowl, is the origin.
    """

    radius: float
    diameter: float

    def rings(self) -> tuple[Floats, Floats, Floats]:
        """Return area (m2), distance from the axis and x (m) of 600 rings of the surface."""
        from scipy.special import roots_legendre

        nodes, weights = roots_legendre(600)
        if not np.isfinite(self.radius):
            offsets = self.diameter / 4 * (nodes + 1)
            return self.diameter / 4 * weights * 2 * np.pi * offsets, offsets, 0 * offsets
        half = float(np.arcsin(self.diameter / (2 * self.radius)))
        polar = half / 2 * (nodes + 1)
        areas = half / 2 * weights * 2 * np.pi * self.radius**2 * np.sin(polar)
        return areas, self.radius * np.sin(polar), self.radius * (1 - np.cos(polar))


def field_behind(plates: Plates, front: float, source: Transducer, x: Floats, r: Floats) -> Complexes:
    """Return the pressure behind plates relative to that of an infinite plane source of equal velocity, (x, r).

    The plates begin at x = `front`, behind the medium `plates.first`. The field of each ring of the source is an
    integral over cylindrical waves (Sommerfeld), each multiplied by the transmission of the plates. The integral over
    the wave number along the plates has 6000 Gauss points for propagating waves and 1500 for evanescent ones.

    Args:
        plates: plates and half-spaces; without plates, the field is that in a homogeneous medium.
        front: x of the front of the plates, beyond the source, m.
        source: the transducer.
        x: positions along the axis, behind the plates, m.
        r: distances from the axis, m.
    """
    from scipy.special import j0, roots_legendre

    k = plates.wave_number(plates.first).real
    nodes, weights = roots_legendre(6000)
    angle, angle_weights = np.pi / 4 * (nodes + 1), np.pi / 4 * weights
    evanescent_nodes, growth_weights = roots_legendre(1500)
    growth = 0.4 * (evanescent_nodes + 1)
    tangential_wave_number = np.concatenate([k * np.sin(angle), k * np.cosh(growth)])
    axial_wave_number = plates.normal_wave_number(plates.first, tangential_wave_number)
    # dk/k_normal of the substitutions k sin(angle) and k cosh(growth)
    measure = (
        tangential_wave_number
        * np.concatenate([angle_weights, 1j * 0.4 * growth_weights])
        * k
        * np.concatenate([np.cos(angle), -1j * np.sinh(growth)])
    )
    measure = measure / axial_wave_number
    spectrum = np.zeros(len(tangential_wave_number), complex)
    for area, offsets, depth in zip(*source.rings(), strict=True):
        spectrum += area * j0(tangential_wave_number * offsets) * np.exp(-1j * axial_wave_number * (front - depth))
    spectrum *= plates.transmission(tangential_wave_number) * measure * k / (2 * np.pi)
    wave_number_behind = plates.normal_wave_number(plates.last, tangential_wave_number)
    depths = np.asarray(x, np.float64) - front - plates.thickness
    waves = spectrum * np.exp(-1j * np.outer(depths, wave_number_behind))
    return np.asarray(waves @ j0(np.outer(tangential_wave_number, np.asarray(r, np.float64))))
