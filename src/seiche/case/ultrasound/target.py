# SPDX-License-Identifier: BSD-3-Clause
"""The target of an ultrasound case: the parts of its medium, and the results of a run around it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.case.ultrasound.points import check_axes
from seiche.case.ultrasound.schema import UltrasoundCase
from seiche.case.ultrasound.sources import Signal, shape_of
from seiche.report.display_units import display
from seiche.ultrasound import Grid, Medium
from seiche.ultrasound.emitter import quadrature_of
from seiche.ultrasound.steering import ray_delays
from seiche.ultrasound.target import Sonication


def sonication_of(case: UltrasoundCase, grid: Grid, medium: Medium) -> Sonication | None:
    """Return the parts of the medium around the target; None without a target.

    Raises CaseError for a target in bone or outside the grid.
    """
    table = case.target
    if table is None:
        return None
    check_axes("target.position", table.position, grid)
    shapes = [shape_of(tone, grid, f"source[{k}]") for k, tone in enumerate(case.source) if isinstance(tone, Signal)]
    points = [quadrature_of(shape, grid, "source").points for shape in shapes]
    sources = np.concatenate(points) if points else np.empty((0, len(grid.shape)))
    return Sonication.of(grid, medium, table.position, bone_speed=table.bone_speed, sources=sources)


def steering_of(case: UltrasoundCase, grid: Grid, medium: Medium) -> dict[int, float]:
    """Return the delays (s) by which sources are steered to the target, by their numbers; empty without steering."""
    tones = {number: tone for number, tone in enumerate(case.source) if isinstance(tone, Signal)}
    if case.target is None or case.target.steering == "none" or not tones:
        return {}
    check_axes("target.position", case.target.position, grid)
    rules = [quadrature_of(shape_of(tone, grid, f"source[{k}]"), grid, f"source[{k}]") for k, tone in tones.items()]
    middles = [np.average(rule.points, axis=0, weights=rule.weights) for rule in rules]
    delays = ray_delays(grid, medium.sound_speed, middles, case.target.position)
    return dict(zip(tones, delays.tolist(), strict=True))


def steering_results(case: UltrasoundCase, delays: Mapping[int, float]) -> dict[str, Any]:
    """Return the delays (s) and phases (rad) of the steered sources, by "sources.NUMBER"."""
    return {
        f"sources.{number}": {
            "delay_s": delay,
            "phase_rad": -2 * np.pi * (tone.frequency * delay % 1.0),
        }
        for number, delay in delays.items()
        if isinstance(tone := case.source[number], Signal)
    }


def target_results(parts: Sonication | None, arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, Any]:
    """Return the results around a target after the last step; an empty dictionary without one."""
    if parts is None or "p_amplitude" not in arrays:
        return {}
    result = {**parts.evaluate(arrays["p_amplitude"][0]), "bone_speed_m_s": parts.bone_speed}
    if "temperature" in arrays:
        result["heat"] = parts.evaluate_heat(arrays["temperature"], arrays["dose"])
    return result


def target_lines(result: Mapping[str, Any]) -> list[str]:
    """Return the lines about the target that a run prints."""
    if not result:
        return []
    lines = [f"target: {display(result['pressure_Pa'], 'Pa')} at {_text(result['place_m'])}"]
    for part in ("brain", "bone"):
        if part in result:
            peak = result[part]
            line = f"peak in the {part}: {display(peak['pressure_Pa'], 'Pa')} at {_text(peak['place_m'])}"
            line += f", {1e3 * peak['distance_m']:.3g} mm from the target"
            for key, factor, unit in (("volume_6dB_m3", 1e9, "mm^3"), ("area_6dB_m2", 1e6, "mm^2")):
                if key in peak:
                    size = peak[key]
                    line += f", -6 dB {key.partition('_')[0]} "
                    line += "reaches an end of the grid" if size is None else f"{factor * size:.4g} {unit}"
            lines.append(line)
    if "brain" not in result:
        lines.append("peak in the brain: unknown, since bone does not separate the target from the sources")
    for part, values in result.get("heat", {}).items():
        where = "at the target" if part == "target" else f"in the {part}"
        lines.append(
            f"highest temperature {where}: {values['temperature_C']:.4g} °C, thermal dose {values['dose_min']:.3g} min"
        )
    return lines


def _text(place: list[float]) -> str:
    return f"({', '.join(f'{1e3 * c:.4g}' for c in place)}) mm"
