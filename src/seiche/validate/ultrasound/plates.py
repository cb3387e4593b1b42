# SPDX-License-Identifier: BSD-3-Clause
"""Transducers in front of plates in three dimensions: the transcranial benchmarks with flat bone or none.

The field in a plane through the axis is compared with the angular spectrum. On a GPU, the benchmarks have their full
size and take about a minute each; on a CPU, the transducers are small and near the plates. The quick form omits them.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np

from seiche.ultrasound import Bowl, Disc, Emitter, Grid, Sensor, Source, simulate
from seiche.ultrasound.materials import MATERIALS, TissueMaterial
from seiche.validate.check import Check, Family, Floats, Setting
from seiche.validate.ultrasound.layers import BENCHMARK_PLATES, Plates, Transducer, case_medium, field_behind

AUBRY = "Aubry et al. 2022, doi:10.1121/10.0013426; angular spectrum"
_FREQUENCY, _SPACING, _BEFORE = 5e5, 0.5e-3, 5
_ABSORBING_WATER = TissueMaterial(1500.0, 1000.0, 1.0)


@dataclass(frozen=True)
class Beam:
    """A transducer at the origin, plates beginning at `front`, and a field of length `length` and half-width `half`."""

    plates: Plates
    source: Transducer
    front: float
    length: float
    half: float
    layer: int = 10

    def grid(self) -> Grid:
        """Return the grid, with time for the wave to cross it and 25 microseconds for echoes between the plates."""
        side = 2 * round(self.half / _SPACING) + 1
        speeds = [one.sound_speed for one, _ in self.plates.layers]
        max_sound_speed = max([*speeds, self.plates.first.sound_speed, self.plates.last.sound_speed])
        period = int(np.ceil(max_sound_speed / (_FREQUENCY * 0.18 * _SPACING)))
        duration = 1.15 * np.hypot(self.length, self.half) / self.plates.first.sound_speed + 25e-6
        shape = (round(self.length / _SPACING) + 1 + _BEFORE, side, side)
        return Grid(shape, _SPACING, 1 / _FREQUENCY / period, period * int(np.ceil(duration * _FREQUENCY)))

    def amplitude(self, setting: Setting) -> tuple[Floats, Floats, Floats]:
        """Return x and y (m) from the transducer, and the relative amplitude in the plane through its axis."""
        grid = self.grid()
        assert grid.dt is not None and grid.steps is not None
        period = round(1 / (_FREQUENCY * grid.dt))
        start = float(grid.positions("x")[_BEFORE])
        cycles = np.arange(grid.steps) / period
        tone = np.sin(2 * np.pi * cycles) * np.minimum(1.0, cycles / 4)
        vertex = (start, 0.0, 0.0)
        if np.isfinite(self.source.radius):
            focus = (start + self.source.radius, 0.0, 0.0)
            emitter = Emitter(Bowl(vertex, focus, self.source.radius, self.source.diameter), tone)
        else:
            emitter = Emitter(Disc(vertex, (start + 1.0, 0.0, 0.0), self.source.diameter), tone)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = simulate(
                grid,
                case_medium(self.plates, start + self.front, grid, 0),
                Source(emitters=(emitter,)),
                Sensor(record=(), frequencies=(_FREQUENCY,), frequency_window=(grid.steps - 3 * period, grid.steps)),
                pml_size=self.layer,
                pml_inside=False,
                scheme="local4" if self.plates.layers else "exact",
                device=setting.device,
                threads=setting.threads,
            )["p_amplitude"][0]
        plane = np.asarray(results[:, :, grid.shape[2] // 2], np.float64)
        return grid.positions("x") - start, grid.positions("y"), plane

    def errors(self, setting: Setting) -> tuple[float, float]:
        """Return the errors of the peak and of the amplitude (L2), more than a millimetre behind the plates."""
        x, y, results = self.amplitude(setting)
        is_behind = x > self.front + self.plates.thickness + 1e-3
        exact = np.abs(field_behind(self.plates, self.front, self.source, x[is_behind], np.abs(y)))
        error = np.linalg.norm(results[is_behind] - exact) / np.linalg.norm(exact)
        return abs(float(results[is_behind].max() / exact.max()) - 1), float(error)


def benchmarks() -> dict[str, Plates]:
    """Return the plates of benchmarks 1 to 4: water, absorbing water, bone, skin and bone.

    They have the dispersion of the absorption that the solver computes, so that the errors are those of the solver.
    Relative to the phase speeds of the benchmarks, it changes the field behind the bowl of BM4 by 1.5 % (L2).
    """
    water = MATERIALS["water"]
    cases = {"BM1": Plates([], water, water, _FREQUENCY)}
    cases["BM2"] = Plates([], _ABSORBING_WATER, _ABSORBING_WATER, _FREQUENCY)
    cases |= {name: Plates.named(*plates, _FREQUENCY) for name, plates in BENCHMARK_PLATES.items()}
    return {name: replace(plates, dispersive=True) for name, plates in cases.items()}


def _family(name: str, plates: Plates, number: int) -> Family:
    """Return the family for a benchmark with its bowl (0) or disc (1), six points per wavelength.

    The bound is half the difference in pressure that the authors found between codes (median below 10 %).
    """
    title = ("bowl", "disc")[number]

    def family(setting: Setting) -> list[Check]:
        if setting.quick:
            return []
        beam = full_size(plates, number) if setting.device != "cpu" else small(plates, number)
        size = f"{1e3 * beam.source.diameter:g} mm"
        return [
            Check(f"{name}, {title} of {size}, 3D: error of the {part}", error, 0.05, reference=AUBRY)
            for part, error in zip(("peak", "L2 of the amplitude"), beam.errors(setting), strict=True)
        ]

    family.__name__ = f"{title} in front of {name.lower()}"
    return family


def full_size(plates: Plates, number: int) -> Beam:
    """Return a benchmark with its bowl (0) or disc (1); the bone ends at 36.5 mm."""
    source = (Transducer(64e-3, 64e-3), Transducer(np.inf, 20e-3))[number]
    return Beam(plates, source, 36.5e-3 - plates.thickness, 120e-3, 35e-3, layer=17)


def small(plates: Plates, number: int) -> Beam:
    """Return a benchmark with a small bowl or disc near the plates."""
    source = (Transducer(14e-3, 10e-3), Transducer(np.inf, 8e-3))[number]
    front = 4e-3
    return Beam(plates, source, front, front + plates.thickness + 4e-3, 7e-3)


#: A family for each benchmark and transducer.
FAMILIES: tuple[Family, ...] = tuple(
    _family(name, plates, number) for name, plates in benchmarks().items() for number in range(2)
)
