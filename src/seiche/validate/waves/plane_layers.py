# SPDX-License-Identifier: BSD-3-Clause
"""Exact plane waves in plane fluid and solid layers, with conversion between longitudinal and shear waves.

Waves are exp(i (k x + q y - w t)), with layers normal to y and the same wave number k along x in all of them. The
amplitudes in all layers are the solution of one linear system of the interface conditions (the global matrix of Knopoff
1964, doi:10.1785/BSSA0540010431), which remains stable where waves decay across a layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Complex = npt.NDArray[np.complex128]


class Solid(NamedTuple):
    """A medium, which is a fluid if cs = 0."""

    density: float
    cp: float
    cs: float


class LayerWave(NamedTuple):
    """A wave of unit displacement in one medium: longitudinal "p" or shear "s", travelling upwards (y) or downwards.

    `number` is the y component q of its wave vector, and `fields` are v_x, v_y, S_xx, S_yy, S_xy.
    """

    kind: str
    upwards: bool
    number: complex
    fields: Complex


def plane_fields(
    medium: Solid, slopes: tuple[complex, complex], omega: float, displacement: tuple[complex, complex]
) -> Complex:
    """Return v_x, v_y, S_xx, S_yy, S_xy for a displacement times exp(slopes . (x, y) - i omega t)."""
    (dx, dy), (ux, uy) = slopes, displacement
    mu = medium.density * medium.cs**2
    dilatational = (medium.density * medium.cp**2 - 2 * mu) * (dx * ux + dy * uy)
    stress = [dilatational + 2 * mu * dx * ux, dilatational + 2 * mu * dy * uy, mu * (dy * ux + dx * uy)]
    return np.array([-1j * omega * ux, -1j * omega * uy, *stress])


def waves_of(medium: Solid, tangential_wave_number: float, omega: float) -> list[LayerWave]:
    """Return the waves of a medium with this x wave number: upwards and downwards, p and, in solids, s.

    Upward waves travel or decay along y. The displacement of a p wave is parallel to its wave vector; that of an s wave
    is rotated by 90 degrees.
    """
    waves = []
    for upwards in (True, False):
        for kind, speed in (("p", medium.cp), ("s", medium.cs)):
            if speed == 0:
                continue
            root = complex(np.sqrt(complex((omega / speed) ** 2 - tangential_wave_number**2)))
            number = root if upwards else -root
            vector = tangential_wave_number * speed / omega, number * speed / omega
            motion = vector if kind == "p" else (-vector[1], vector[0])
            waves.append(
                LayerWave(
                    kind,
                    upwards,
                    number,
                    plane_fields(medium, (1j * tangential_wave_number, 1j * number), omega, motion),
                )
            )
    return waves


@dataclass(frozen=True)
class PlaneLayers:
    """Layers between two half spaces.

    Attributes:
        media: lower half space, layers upwards from y = 0, upper half space.
        thicknesses: layer thicknesses, two fewer than media.
    """

    media: Sequence[Solid]
    thicknesses: Sequence[float] = ()

    @property
    def top(self) -> float:
        """Return the height of the last interface; the first is y = 0."""
        return float(sum(self.thicknesses))

    def coefficients(
        self, omega: float, tangential_wave_number: float, incident: str = "p"
    ) -> dict[tuple[str, str], complex]:
        """Return displacements relative to that of the wave incident from below, all at the interfaces.

        Keys are ("reflected", "p") and so on; reflected waves are at y = 0 and transmitted ones at `top`. A fluid half
        space has only p waves.
        """
        edges = np.concatenate([[0.0], np.cumsum(self.thicknesses)])
        columns: list[tuple[int, LayerWave]] = []
        incident_wave: LayerWave | None = None
        for number, medium in enumerate(self.media):
            for wave in waves_of(medium, tangential_wave_number, omega):
                is_outgoing = (number == 0 and wave.upwards) or (number == len(self.media) - 1 and not wave.upwards)
                if not is_outgoing:
                    columns.append((number, wave))
                elif number == 0 and wave.kind == incident:
                    incident_wave = wave
        assert incident_wave is not None
        rows, right = [], []
        for edge in range(len(edges)):
            pair = self.media[edge], self.media[edge + 1]
            for field, sides in _conditions(*pair):
                scale = 1 / omega if field < 2 else 1 / (omega * pair[0].density * pair[0].cp)
                row = [
                    scale * (1 if number == edge else -1) * self._at(edge, number, wave, edges) * wave.fields[field]
                    if number - edge in sides
                    else 0.0
                    for number, wave in columns
                ]
                rows.append(row)
                right.append(-scale * incident_wave.fields[field] if edge == 0 and 0 in sides else 0.0)
        amplitudes = np.linalg.solve(np.array(rows, np.complex128), np.array(right, np.complex128))
        results = {}
        for (number, wave), amplitude in zip(columns, amplitudes, strict=True):
            if number in (0, len(self.media) - 1):
                results["transmitted" if wave.upwards else "reflected", wave.kind] = complex(amplitude)
        return results

    @staticmethod
    def _at(edge: int, number: int, wave: LayerWave, edges: npt.NDArray[np.float64]) -> complex:
        """Return a wave at an edge.

        Upward waves have unit amplitude at the lower edge of their medium, downward waves at the upper.
        """
        reference_edge = number - 1 if wave.upwards else number
        return complex(np.exp(1j * wave.number * (edges[edge] - edges[reference_edge])))

    def flux(self, medium: int, kind: str, omega: float, tangential_wave_number: float) -> float:
        """Return the energy flux along y of a wave of unit displacement over rho omega^2 / 2; zero if it decays."""
        density, cp, cs = self.media[medium]
        speed = cp if kind == "p" else cs
        return float(
            density * speed**2 / omega * np.sqrt(complex((omega / speed) ** 2 - tangential_wave_number**2)).real
        )


def _conditions(below: Solid, above: Solid) -> list[tuple[int, tuple[int, ...]]]:
    """Return the fields in the interface conditions, each with the sides (0 below, 1 above) in its condition."""
    both_sides, solid_sides = (0, 1), [side for side, medium in enumerate((below, above)) if medium.cs > 0]
    if len(solid_sides) == 2:
        return [(field, both_sides) for field in (0, 1, 3, 4)]
    return [(1, both_sides), (3, both_sides), *((4, (side,)) for side in solid_sides)]
