# SPDX-License-Identifier: BSD-3-Clause
"""The target of an ultrasound case: the parts of its medium, and the results of a run around it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.case.ultrasound.points import check_axes
from seiche.case.ultrasound.schema import UltrasoundCase
from seiche.case.ultrasound.sources import Signal, shape_of
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.report.display_units import display
from seiche.ultrasound import Grid, Medium
from seiche.ultrasound.emitter import quadrature_of
from seiche.ultrasound.shapes import Shape
from seiche.ultrasound.simulate import Layers
from seiche.ultrasound.steering import ray_delays, time_reversal_delays
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


def steering_of(
    case: UltrasoundCase, grid: Grid, medium: Medium, layers: Layers, world: World | None
) -> dict[int, float]:
    """Return the delays (s) by which sources are steered to the target, by their numbers; empty without steering.

    Collective for time reversal, which needs a run. Without a `world`, as for a check, straight rays stand for it.
    """
    tones = {number: tone for number, tone in enumerate(case.source) if isinstance(tone, Signal)}
    if case.target is None or case.target.steering == "none" or not tones:
        return {}
    check_axes("target.position", case.target.position, grid)
    shapes = {number: shape_of(tone, grid, f"source[{number}]") for number, tone in tones.items()}
    if case.target.steering == "time-reversal" and world is not None:
        return _time_reversal(case, grid, medium, layers, world=world, shapes=shapes)
    rules = [quadrature_of(shape, grid, f"source[{number}]") for number, shape in shapes.items()]
    middles = [np.average(rule.points, axis=0, weights=rule.weights) for rule in rules]
    delays = ray_delays(grid, medium.sound_speed, middles, case.target.position)
    return dict(zip(tones, delays.tolist(), strict=True))


def _time_reversal(
    case: UltrasoundCase, grid: Grid, medium: Medium, layers: Layers, *, world: World, shapes: Mapping[int, Shape]
) -> dict[int, float]:
    """Return the delays of the sources `shapes`; there is one run for each of their frequencies."""
    assert case.target is not None
    run = case.run
    delays: dict[int, float] = {}
    frequencies = {number: source.frequency for number in shapes if isinstance(source := case.source[number], Signal)}
    options = {"device": run.device, "precision": run.precision, "scheme": run.scheme, "threads": run.threads}
    layer = {"pml_size": layers.sizes, "pml_alpha": layers.alphas, "pml_inside": case.layer.inside}
    for frequency in sorted(set(frequencies.values())):
        numbers = [number for number in shapes if frequencies[number] == frequency]
        elements = [shapes[number] for number in numbers]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the run itself states the same estimates
                values = time_reversal_delays(
                    grid, medium, elements, case.target.position, frequency, world=world, **options, **layer
                )
        except CaseError as error:
            raise CaseError(f"target.steering: {error}") from None
        delays.update(zip(numbers, values.tolist(), strict=True))
    return delays


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
    if "closed_gap_m" in result:
        lines.append(f"bone: gaps up to {1e3 * result['closed_gap_m']:.3g} mm are treated as closed")
    for part, values in result.get("heat", {}).items():
        where = "at the target" if part == "target" else f"in the {part}"
        lines.append(
            f"highest temperature {where}: {values['temperature_C']:.4g} °C, thermal dose {values['dose_min']:.3g} min"
        )
    return lines


def _text(place: list[float]) -> str:
    return f"({', '.join(f'{1e3 * c:.4g}' for c in place)}) mm"
