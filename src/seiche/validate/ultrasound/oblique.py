# SPDX-License-Identifier: BSD-3-Clause
"""Plane waves at oblique incidence on fluid layers: reflection and transmission against transfer matrices.

A wave packet with a single wave number along the layers crosses them. The Fourier transforms in time of the pressures
in front of and behind the layers, at one frequency, give the coefficients of the plane wave whose angle corresponds to
that frequency.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from seiche.ultrasound import Grid, Medium, Sensor, Source, simulate
from seiche.ultrasound.materials import MATERIALS, TissueMaterial
from seiche.validate.check import Check, Family, Floats, Setting
from seiche.validate.ultrasound.layers import BENCHMARK_PLATES, Complexes, Plates, case_medium
from seiche.validate.ultrasound.pulses import computed_plot

_REFERENCE = "transfer matrix, Brekhovskikh 1980, Waves in Layered Media"
_FREQUENCY = 5e5
#: Layers (m) and the medium behind them; the waves are incident from water.
_FLUIDS = {
    "slow fluid": TissueMaterial(1000.0, 800.0, 0.0),
    "fast fluid": TissueMaterial(1800.0, 1100.0, 0.0),
    "lossless bone": TissueMaterial(2800.0, 1850.0, 0.0),
    **MATERIALS,
}
CASES: dict[str, tuple[tuple[tuple[str, float], ...], str]] = {
    "water on a slow fluid": ((), "slow fluid"),
    "water on a fast fluid": ((), "fast fluid"),
    "water on lossless bone": ((), "lossless bone"),
    "lossless bone of 6.5 mm": ((("lossless bone", 6.5e-3),), "water"),
    "absorbing bone of 6.5 mm": BENCHMARK_PLATES["BM3"],
    "skin, bone, brain": BENCHMARK_PLATES["BM4"],
}
#: Cases of the quick form.
_QUICK = "water on a fast fluid", "absorbing bone of 6.5 mm", "skin, bone, brain"


def plates_of(name: str) -> Plates:
    """Return the layers of a case, with water in front, and with the dispersion of the solver."""
    layers, last = CASES[name]
    parts = [(_FLUIDS[fluid], thick) for fluid, thick in layers]
    return Plates(parts, _FLUIDS["water"], _FLUIDS[last], _FREQUENCY, dispersive=True)


@dataclass(frozen=True)
class ObliquePackets:
    """Packets at several angles in front of `plates` on one grid, with `per_wavelength` points per wavelength in water.

    Along the plates (x), the grid extends over one period of the wave at 10 degrees and over whole numbers of periods
    of the others. The front of the plates is 0.3 spacings in front of a grid point.
    """

    plates: Plates
    per_wavelength: int
    cfl: float = 0.16

    @property
    def wavelength(self) -> float:
        """Return the wavelength in the first medium, m."""
        return self.plates.first.sound_speed / self.plates.frequency

    @property
    def spacing(self) -> float:
        """Return the grid spacing across the plates, m."""
        return self.wavelength / self.per_wavelength

    @property
    def tangential_wave_numbers(self) -> Floats:
        """Return wave numbers along the plates, rad/m, (angles,)."""
        return np.asarray(2 * np.pi / self.wavelength * np.sin(np.radians(10)) * np.arange(6), np.float64)

    @property
    def normal_wave_numbers(self) -> Floats:
        """Return wave numbers across the plates in the first medium, rad/m, (angles,)."""
        return np.asarray(np.sqrt((2 * np.pi / self.wavelength) ** 2 - self.tangential_wave_numbers**2))

    @property
    def angles(self) -> Floats:
        """Return angles of incidence in degrees, (angles,)."""
        return np.asarray(np.degrees(np.arctan2(self.tangential_wave_numbers, self.normal_wave_numbers)))

    @property
    def widths(self) -> Floats:
        """Return packet standard deviations across the plates, m, such that hardly any part travels along them."""
        return np.asarray(4 / self.normal_wave_numbers)

    @property
    def _layer(self) -> int:
        return 6 * self.per_wavelength

    def grid(self) -> Grid:
        """Return the grid with its time axis."""
        before, behind = 10 * self.widths.max() + 2 * self.wavelength, self.plates.thickness + 2 * self.wavelength
        count = int((before + behind) / self.spacing) + 2 * self._layer
        speed = self.plates.first.sound_speed
        max_sound_speed = max(fluid.sound_speed for fluid in MATERIALS.values())
        min_speed = 0.4 * speed * np.cos(np.radians(self.angles.max()))
        passage = (5 * self.widths.max() + 3 * self.wavelength) / min_speed
        # Waves along the interface of half-spaces decay slowly at angles somewhat beyond the critical one.
        duration = passage + (20 / self.plates.frequency if self.plates.layers else passage)
        dt = self.cfl * self.spacing / max_sound_speed
        return Grid(
            (16, count + -count % 16),
            (2 * np.pi / self.tangential_wave_numbers[1] / 16, self.spacing),
            dt,
            int(duration / dt),
        )

    def geometry(self, grid: Grid) -> tuple[Floats, int, int, float]:
        """Return packet positions (m), indices of the recorded points on both sides, and the plate front (m)."""
        y = grid.positions("y")
        before = self._layer + int(10 * self.widths.max() / self.spacing)
        front = float(y[before + self.per_wavelength] - 0.3 * self.spacing)
        behind = int(np.searchsorted(y, front + self.plates.thickness + 0.5 * self.wavelength))
        return y[before] - 5 * self.widths, before, behind, front

    def coefficients(self, setting: Setting) -> Complexes:
        """Return pressures relative to the incident ones at the front, (2, angles): reflected there, and transmitted.

        The transmitted ones are those at the recorded points about half a wavelength behind the plates.
        """
        grid = self.grid()
        starts, before, behind, front = self.geometry(grid)
        x, y = np.meshgrid(grid.positions("x"), grid.positions("y"), indexing="ij")
        p0 = np.zeros(grid.shape)
        for start, width, tangential_wave_numbers, normal_wave_numbers in zip(
            starts, self.widths, self.tangential_wave_numbers, self.normal_wave_numbers, strict=True
        ):
            p0 += np.exp(-(((y - start) / width) ** 2) / 2) * np.cos(
                tangential_wave_numbers * x + normal_wave_numbers * (y - start)
            )
        mask = np.zeros(grid.shape, bool)
        mask[:, [before, behind]] = True
        first = self.plates.first
        free, scattered = (
            self._spectra(setting, grid, medium, p0, mask)
            for medium in (Medium(first.sound_speed, first.density), case_medium(self.plates, front, grid, 1))
        )
        shift = np.exp(-1j * self.normal_wave_numbers * (front - y[0, before]))
        return np.asarray(np.stack([(scattered[0] - free[0]) / shift, scattered[1]]) / (free[0] * shift))

    def _spectra(self, setting: Setting, grid: Grid, medium: Medium, p0: Floats, mask: Any) -> Complexes:
        """Return the Fourier transforms, in time and along the plates, of the pressures at the sensors, (2, angles)."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            p = simulate(
                grid,
                medium,
                Source(p0=p0),
                Sensor(mask),
                pml_size=(0, self._layer),
                smooth_p0=False,
                scheme="local4",
                precision="float64",
                device=setting.device,
                threads=setting.threads or 1,
            )["p"]
        assert grid.dt is not None
        times = np.arange(p.shape[1]) * grid.dt
        window = np.sin(np.pi / 2 * np.clip(5 * (1 - times / times[-1]), 0, 1)) ** 2
        lines = (p @ (window * np.exp(-2j * np.pi * self.plates.frequency * times))).reshape(16, 2)
        waves = np.exp(1j * self.tangential_wave_numbers[:, None] * grid.positions("x"))  # exp(i (w t - k x))
        return np.asarray((waves @ lines).T)

    def exact(self) -> Complexes:
        """Return the exact values of `coefficients`."""
        grid = self.grid()
        _, _, behind, front = self.geometry(grid)
        distances = grid.positions("y")[behind] - front - self.plates.thickness
        decay = np.exp(-1j * self.plates.normal_wave_number(self.plates.last, self.tangential_wave_numbers) * distances)
        return np.stack(
            [
                self.plates.reflection(self.tangential_wave_numbers),
                self.plates.transmission(self.tangential_wave_numbers) * decay,
            ]
        )


def _family(name: str) -> Family:
    """Return the family that checks reflection and transmission of a case from 0 to 60 degrees.

    The bounds follow from averaging the medium over cells, which multiplies the component of wave number 2 k that
    reflects a wave by 1 - (2 k spacing)^2 / 24 (theory/ultrasound, section 14), a relative error of the reflected
    pressure. The reference has the dispersion of the solver. Its difference from the coefficients for phase speeds
    equal to the sound speeds is recorded.
    """

    def family(setting: Setting) -> list[Check]:
        if setting.quick and name not in _QUICK:
            return []
        checks = [check for count in ((12,) if setting.quick else (12, 24)) for check in _checks(setting, name, count)]
        packets = ObliquePackets(plates_of(name), 12)
        if any(fluid.absorption for fluid, _ in packets.plates.layers):
            plain = ObliquePackets(replace(packets.plates, dispersive=False), 12)
            difference = float(np.abs(packets.exact() - plain.exact()).max())
            title = f"{name}, 0 to 60 degrees: largest contribution of the dispersion of absorption"
            checks.append(Check(title, difference, sense="recorded", reference=_REFERENCE))
        return checks

    family.__name__ = f"plane layers {name}"
    return family


def _checks(setting: Setting, name: str, per_wavelength: int) -> list[Check]:
    packets = ObliquePackets(plates_of(name), per_wavelength)
    computed, exact = packets.coefficients(setting), packets.exact()
    bound = (2 * 2 * np.pi / per_wavelength) ** 2 / 24
    checks = []
    for part, values, reference in zip(("reflection", "transmission"), computed, exact, strict=True):
        title = f"{name}, 0 to 60 degrees, {per_wavelength} points: largest error of the {part}"
        labels = ("angle (degrees)", f"{part} of the pressure")
        plot = computed_plot(packets.angles, np.abs(reference), np.abs(values), every=1, labels=labels)
        error = float(np.abs(values - reference).max())
        checks.append(Check(title, error, round(bound, 4), reference=_REFERENCE, plot=plot))
    return checks


#: A family for each case.
FAMILIES: tuple[Family, ...] = tuple(_family(name) for name in CASES)
