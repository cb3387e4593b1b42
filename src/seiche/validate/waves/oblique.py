# SPDX-License-Identifier: BSD-3-Clause
"""Plane waves at oblique incidence on fluid and solid layers, against the exact coefficients of `plane_layers`.

A wave packet with a single wave number along the layers arrives from below. The Fourier transforms in time of velocity
and stress at a point on each side are sums of plane waves of one frequency, whose amplitudes are found by least
squares. Each frequency corresponds to one angle of incidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from seiche.validate.check import Check, Floats, Setting
from seiche.validate.waves.plane_layers import Complex, PlaneLayers, Solid, waves_of
from seiche.waves import Brick, Forest, Material, Mesh, Solver

_REFERENCE = "global matrix, Knopoff 1964, doi:10.1785/BSSA0540010431"
WATER, FLUID = Solid(1.0, 1.0, 0.0), Solid(1.2, 1.6, 0.0)
ROCK, HARD_ROCK = Solid(2.0, 2.0, 1.1), Solid(2.5, 2.8, 1.6)


@dataclass(frozen=True)
class Case:
    """Layers, kind of the incident wave, angle of the packet, and angles that are measured (degrees)."""

    name: str
    layers: PlaneLayers
    incident: str
    angle: float
    angles: tuple[float, ...]


_FLUIDS = PlaneLayers((WATER, FLUID))
_FLUID_LAYER = PlaneLayers((WATER, FLUID, WATER), (0.7,))
_SEABED = PlaneLayers((WATER, ROCK))
_ROCKS = PlaneLayers((ROCK, HARD_ROCK))
_PLATE = PlaneLayers((WATER, ROCK, WATER), (0.7,))
_LAYERED = PlaneLayers((WATER, ROCK, FLUID, HARD_ROCK), (0.6, 0.5))
CASES = (
    Case("fluid over water", _FLUIDS, "p", 28.0, (22.0, 28.0, 34.0)),
    Case("fluid over water", _FLUIDS, "p", 55.0, (46.0, 55.0, 62.0)),
    Case("fluid layer in water", _FLUID_LAYER, "p", 30.0, (22.0, 30.0, 38.0)),
    Case("rock over water", _SEABED, "p", 0.0, (0.0,)),
    Case("rock over water", _SEABED, "p", 20.0, (15.0, 20.0, 25.0)),
    Case("rock over water", _SEABED, "p", 45.0, (36.0, 45.0, 54.0)),
    Case("hard rock over rock", _ROCKS, "p", 30.0, (22.0, 30.0, 38.0)),
    Case("hard rock over rock", _ROCKS, "s", 30.0, (22.0, 30.0, 38.0)),
    Case("rock plate in water", _PLATE, "p", 35.0, (25.0, 35.0, 45.0)),
    Case("rock, fluid, hard rock over water", _LAYERED, "p", 20.0, (15.0, 20.0, 27.0)),
)
#: Indices of the cases in the quick form.
_QUICK = (1, 4, 7)


@dataclass(frozen=True)
class ObliquePacket:
    """A packet with a wavelength of about one, in a mesh with `elements_per_wavelength` at the shortest wavelength."""

    case: Case
    elements_per_wavelength: int = 2
    nodes: int = 6

    @property
    def speed(self) -> float:
        """Return the speed of the incident wave."""
        first = self.case.layers.media[0]
        return first.cp if self.case.incident == "p" else first.cs

    @cached_property
    def tangential_wave_number(self) -> float:
        """Return the wave number along the layers, for a packet wavelength of one."""
        return float(2 * np.pi * np.sin(np.radians(self.case.angle)))

    @property
    def normal_wave_number(self) -> float:
        """Return the mean wave number normal to the layers."""
        return float(2 * np.pi * np.cos(np.radians(self.case.angle)))

    @property
    def width(self) -> float:
        """Return the standard deviation of the packet normal to the layers, so that it hardly spreads along them."""
        return 4 / self.normal_wave_number

    @property
    def omegas(self) -> Floats:
        """Return the frequencies that correspond to the measured angles, (angles,)."""
        if self.tangential_wave_number == 0:
            return np.array([2 * np.pi * self.speed])
        return np.asarray(self.speed * self.tangential_wave_number / np.sin(np.radians(self.case.angles)))

    @property
    def duration(self) -> float:
        """Return the time after which nearly all of the packet and its echoes has passed the receivers."""
        cosine = self.normal_wave_number / (2 * np.pi)
        echoes = 30.0 if self.case.layers.thicknesses else 10.0
        return (10 * self.width + 1.0) / (0.35 * cosine * self.speed) + echoes / self.speed

    def solver(self, setting: Setting) -> Solver:
        """Return the solver with the packet as initial state, and receivers 0.4 in front of and 0.3 behind the layers.

        The sides are far enough away that their reflections arrive after the end.
        """
        media, top = self.case.layers.media, self.case.layers.top
        min_speed = min(speed for item in media for speed in item[1:] if speed > 0)
        size = min_speed * 2 * np.pi / self.omegas.max() / self.elements_per_wavelength
        lengths = [max(media[0].cp * self.duration / 2, 10.5 * self.width + 1)]
        lengths.append(media[-1].cp * (self.duration - 3 * self.width / self.speed) / 2 + 0.5)
        edges = np.concatenate([[0.0], np.cumsum(self.case.layers.thicknesses)])
        widths = [np.full(int(np.ceil(lengths[0] / size)), size)]
        for thickness in self.case.layers.thicknesses:
            count = int(np.ceil(thickness / size))
            widths.append(np.full(count, thickness / count))
        widths.append(np.full(int(np.ceil(lengths[1] / size)), size))
        heights = np.concatenate(widths)
        period = 2 * np.pi / self.tangential_wave_number if self.tangential_wave_number > 0 else 1.0
        columns = max(2, int(np.ceil(period / size / 2)))
        forest = Forest.uniform(Brick((columns, len(heights)), (True, False)), 0)
        mesh = Mesh.of_forest(
            forest, tree_size=(period / columns, list(heights)), origin=(0.0, -float(widths[0].sum()))
        )
        layer = np.searchsorted(edges, mesh.lower[:, 1] + 1e-9)
        material = Material(*(np.array([getattr(item, name) for item in media])[layer] for name in Solid._fields))
        solver = Solver(
            mesh,
            material,
            nodes=self.nodes,
            device=setting.device,
            threads=setting.threads or 1,
            receivers=[(0.1 * period, -0.4), (0.1 * period, top + 0.3)],
            sample_every=2,
        )
        solver.start_from(self._start(solver))
        return solver

    def _start(self, solver: Solver) -> Floats:
        """Return the packet, a sum over wave numbers normal to the layers, at the nodes."""
        positions = solver.positions
        y, inverse = np.unique(np.round(positions[..., 1], 12), return_inverse=True)
        q = np.linspace(self.normal_wave_number - 5 / self.width, self.normal_wave_number + 5 / self.width, 201)
        q = q[q > 0]
        start = -5.2 * self.width - 0.5
        strength = np.exp(-(((q - self.normal_wave_number) * self.width) ** 2) / 2)
        total = np.zeros((5, len(y)), np.complex128)
        for number, amplitude in zip(q, strength, strict=True):
            omega = self.speed * np.hypot(number, self.tangential_wave_number)
            wave = next(
                w
                for w in waves_of(self.case.layers.media[0], self.tangential_wave_number, omega)
                if w.kind == self.case.incident
            )
            total += amplitude / omega * wave.fields[:, None] * np.exp(1j * number * (y - start))
        total[:, y > 0] = 0
        state = (
            total[:, inverse.reshape(positions.shape[:2])]
            * np.exp(1j * self.tangential_wave_number * positions[..., 0])
        ).real
        state = np.moveaxis(state, 0, 1)
        if solver.medium == "acoustic":
            return np.stack([-state[:, 2], state[:, 0], state[:, 1]], axis=1)
        return np.asarray(state)

    def errors(self, setting: Setting) -> dict[tuple[str, str], Floats]:
        """Return each coefficient's error at the measured angles, in displacements relative to the incident one."""
        solver = self.solver(setting)
        solver.advance(2 * int(self.duration / (2 * solver.dt)))
        samples = solver.samples()
        times = 2 * solver.dt * np.arange(1, len(samples) + 1)
        window = np.sin(np.pi / 2 * np.clip(8 * (1 - times / times[-1]), 0, 1)) ** 2
        errors: dict[tuple[str, str], list[float]] = {}
        for omega in self.omegas:
            spectra = np.einsum("t,trf->rf", window * np.exp(1j * omega * times), samples)
            for key, (computed, exact) in self._coefficients(spectra, float(omega), solver.medium).items():
                errors.setdefault(key, []).append(abs(computed - exact))
        return {key: np.array(values) for key, values in errors.items()}

    def _coefficients(
        self, spectra: Complex, omega: float, medium: str
    ) -> dict[tuple[str, str], tuple[complex, complex]]:
        """Return the computed and the exact coefficients from the spectra at the receivers, (2, fields)."""
        layers, tangential_wave_number = self.case.layers, self.tangential_wave_number
        if medium == "acoustic":
            p, vx, vy = spectra.T
            spectra = np.stack([vx, vy, -p, -p, 0 * p], axis=1)
        lower_amplitudes = amplitudes(layers.media[0], tangential_wave_number, omega, spectra[0])
        upper_amplitudes = amplitudes(layers.media[-1], tangential_wave_number, omega, spectra[1], (True,))
        incident_amplitude = 0.0j
        computed: dict[tuple[str, str], complex] = {}
        for (kind, upwards), (amplitude, number) in lower_amplitudes.items():
            at_front = amplitude * np.exp(0.4j * number)
            if upwards and kind == self.case.incident:
                incident_amplitude = at_front
            elif not upwards:
                computed["reflected", kind] = at_front
        for (kind, _), (amplitude, number) in upper_amplitudes.items():
            computed["transmitted", kind] = amplitude * np.exp(-0.3j * number)
        exact = layers.coefficients(omega, self.tangential_wave_number, self.case.incident)
        return {key: (complex(value / incident_amplitude), exact[key]) for key, value in computed.items()}


def amplitudes(
    medium: Solid,
    tangential_wave_number: float,
    omega: float,
    fields: Complex,
    upwards: tuple[bool, ...] = (True, False),
) -> dict[tuple[str, bool], tuple[complex, complex]]:
    """Return the amplitudes and normal wave numbers of the waves, by kind and by whether they travel upwards.

    Args:
        medium: medium at the point.
        tangential_wave_number: wave number along the layers.
        omega: frequency.
        fields: v_x, v_y, S_xx, S_yy, S_xy at the point, (5,).
        upwards: the directions of the waves to include.
    """
    waves = [wave for wave in waves_of(medium, tangential_wave_number, omega) if wave.upwards in upwards]
    scale = np.array([1.0, 1.0, *3 * [1 / (medium.density * medium.cp)]]) / omega
    matrix = np.stack([scale * wave.fields for wave in waves], axis=1)
    solution = np.linalg.lstsq(matrix, scale * fields, rcond=None)[0]
    return {(wave.kind, wave.upwards): (complex(item), wave.number) for wave, item in zip(waves, solution, strict=True)}


def plane_layers(setting: Setting) -> list[Check]:
    """Check reflection, transmission and conversion at fluid and solid layers, from 0 to 62 degrees.

    The angles are some degrees away from critical ones, at which waves along the interface persist for a long time.
    Elements with six nodes are half as long as the shortest measured wavelength. Polynomials of degree five interpolate
    a wave in them with an error of (k h / 2)^6 / (6! 2^5) = 7e-4. The bound is seven times that, for coefficients of up
    to three.
    """
    checks = []
    for number, case in enumerate(CASES):
        if setting.quick and number not in _QUICK:
            continue
        for (part, kind), errors in ObliquePacket(case).errors(setting).items():
            ends = f"{case.angles[0]:g}" + (f" to {case.angles[-1]:g}" if len(case.angles) > 1 else "")
            title = f"{case.name}, {case.incident} wave at {ends} degrees: largest error of the {part} {kind} wave"
            checks.append(Check(title, float(errors.max()), 5e-3, reference=_REFERENCE))
    return checks
