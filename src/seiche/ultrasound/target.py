# SPDX-License-Identifier: BSD-3-Clause
"""Evaluation of a sonication: amplitudes and temperatures at a target, in the brain around it, and in the bone.

Bone is where the sound speed is high. The brain is the part without bone that is connected with the target. Gaps of the
bone, such as sutures and burr holes, are closed if necessary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.ultrasound.focus import both_sides, half_pressure_size
from seiche.ultrasound.grid import Grid
from seiche.ultrasound.medium import Medium

Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sonication:
    """The parts of a medium around a target.

    Attributes:
        grid: the grid.
        medium: the medium.
        bone_speed: lowest sound speed of bone, m/s.
        index: indices of the point nearest to the target.
        bone: flags of the points of bone.
        brain: flags of the points without bone that are connected with the target; None if bone does not separate them
            from the sources.
        gap: width of gaps of the bone that are treated as closed, m; 0 if it has none. Where the brain is narrower, its
            points do not count.
    """

    grid: Grid
    medium: Medium
    bone_speed: float
    index: tuple[int, ...]
    bone: Flags
    brain: Flags | None
    gap: float = 0.0

    @staticmethod
    def of(
        grid: Grid, medium: Medium, target: Sequence[float], *, bone_speed: float, sources: npt.ArrayLike
    ) -> Sonication:
        """Return the parts of a medium.

        Args:
            grid: the grid; 2D, 3D or axisymmetric.
            medium: the medium; with shear waves, the sound speed is that of compressional waves.
            target: position of the target, m.
            bone_speed: lowest sound speed of bone, m/s.
            sources: positions (n, axes) of the sources, m.

        Raises:
            CaseError: the target is outside the grid, or in bone.
        """
        index = nearest_points(grid, [target])
        if index is None:
            raise CaseError("target.position: is outside the grid")
        bone = np.broadcast_to(np.asarray(medium.sound_speed) >= bone_speed, grid.shape)
        place = tuple(int(k) for k in index[0])
        if bone[place]:
            speed = float(np.broadcast_to(medium.sound_speed, grid.shape)[place])
            raise CaseError(
                f"target.position: is in bone, with a sound speed of {speed:.4g} m/s; move the target, or raise "
                f"target.bone_speed = {bone_speed:g} m/s"
            )
        outside = nearest_points(grid, np.asarray(sources, np.float64).reshape(-1, len(grid.shape)))
        if outside is None or not bone.any():
            return Sonication(grid, medium, bone_speed, place, bone, None)
        return Sonication(grid, medium, bone_speed, place, bone, *_brain(bone, place, outside, grid.spacings))

    def evaluate(self, amplitude: npt.NDArray[Any]) -> dict[str, Any]:
        """Return pressures and the size of the focus for amplitudes (Pa) on the grid, as numbers in SI units.

        "brain" and "bone" have the largest amplitude, its position and its distance from the target; "brain" also the
        intensity p^2/(2 rho c) there and the measure of the points around it with at least half of the amplitude.
        """
        values = np.asarray(amplitude, np.float64)
        result: dict[str, Any] = {
            "place_m": [float(self.grid.positions(a)[k]) for a, k in zip(self.grid.axes, self.index, strict=True)],
            "pressure_Pa": float(values[self.index]),
        }
        if self.gap > 0:
            result["closed_gap_m"] = self.gap
        if self.bone.any():
            result["bone"] = self._peak(values, self.bone)[0]
        if self.brain is not None:
            peak, index = self._peak(values, self.brain)
            impedance = [np.broadcast_to(a, self.grid.shape)[index] for a in (self.medium.density, self._speed)]
            inside = both_sides(np.where(self.brain, values, 0.0), self.grid)
            is_plane = self.grid.symmetry is None and len(self.grid.shape) == 2
            shifted = (index[0], index[1] + self.grid.shape[1] - 1) if self.grid.symmetry is not None else index
            result["brain"] = {
                **peak,
                "intensity_W_m2": peak["pressure_Pa"] ** 2 / (2 * float(np.prod(impedance))),
                "area_6dB_m2" if is_plane else "volume_6dB_m3": half_pressure_size(inside, shifted, self.grid),
            }
        return result

    def evaluate_heat(self, temperature: npt.NDArray[Any], dose: npt.NDArray[Any]) -> dict[str, Any]:
        """Return temperatures (degrees Celsius) and doses (minutes) at the target, and their maxima in each part."""
        parts = {"bone": self.bone if self.bone.any() else None, "brain": self.brain}
        return {
            "target": {"temperature_C": float(temperature[self.index]), "dose_min": float(dose[self.index])},
            **{
                name: {"temperature_C": float(temperature[part].max()), "dose_min": float(dose[part].max())}
                for name, part in parts.items()
                if part is not None
            },
        }

    @property
    def _speed(self) -> npt.NDArray[Any]:
        return np.asarray(self.medium.sound_speed)

    def _peak(self, values: Floats, part: Flags) -> tuple[dict[str, Any], tuple[int, ...]]:
        index = tuple(int(k) for k in np.unravel_index(int(np.argmax(np.where(part, values, -1.0))), values.shape))
        lines = [self.grid.positions(axis) for axis in self.grid.axes]
        place = np.array([line[k] for line, k in zip(lines, index, strict=True)])
        target = np.array([line[k] for line, k in zip(lines, self.index, strict=True)])
        distance = float(np.linalg.norm(place - target))
        return {"pressure_Pa": float(values[index]), "place_m": place.tolist(), "distance_m": distance}, index


def _brain(
    bone: Flags, place: tuple[int, ...], outside: npt.NDArray[np.int64], spacings: Sequence[float]
) -> tuple[Flags | None, float]:
    """Return the part without bone around `place`, and the width (m) of the gaps that separate it from `outside`.

    It is the morphological opening of the part without bone, by a ball as small as possible; None if there is none that
    leaves one of the points `outside`.
    """
    from scipy.ndimage import distance_transform_edt, label

    def part_of(flags: Flags) -> Flags | None:
        labels, _ = label(flags)
        part: Flags = labels == labels[place]
        return None if part[tuple(outside.T)].any() else part

    if (part := part_of(~bone)) is not None:
        return part, 0.0
    distance = distance_transform_edt(~bone, sampling=tuple(spacings))
    radius = 0.5 * min(spacings)
    longest = min(float(distance[place]), float(distance[tuple(outside.T)].max()))
    while (radius := radius + 0.5 * min(spacings)) < longest:
        if (part := part_of(distance > radius)) is not None:
            brain = (distance_transform_edt(~part, sampling=tuple(spacings)) <= radius) & ~bone
            if not brain[tuple(outside.T)].any():
                return brain, 2 * radius
    return None, 0.0


def nearest_points(grid: Grid, places: npt.ArrayLike) -> npt.NDArray[np.int64] | None:
    """Return the indices (n, axes) of the points nearest to `places` (n, axes) in m; None if one is outside."""
    starts = np.array([grid.positions(axis)[0] for axis in grid.axes])
    index = np.rint((np.asarray(places, np.float64) - starts) / np.asarray(grid.spacings)).astype(np.int64)
    return index if ((index >= 0) & (index < grid.shape)).all() else None
