# SPDX-License-Identifier: BSD-3-Clause
"""Transcranial benchmarks 1 to 6 of Aubry et al. 2022 (doi:10.1121/10.0013426), with their metrics.

    python benchmarks.py --benchmark 3                                        two dimensions, on a CPU in a minute
    python benchmarks.py --benchmark 3 --dimensions 3 --device cuda           the benchmark itself, on a GPU

The source is a bowl (radius of curvature and aperture 64 mm) or a flat disc of 20 mm, with 500 kHz and 60 kPa at its
surface and its centre at the origin; waves travel along x. In two dimensions these are an arc and a line, and slabs and
shells extend along z. The field is compared, at the points that the benchmarks specify, with an exact one. In
benchmarks 1 and 2 this is the integral over the source; for benchmarks 3 and 4 the plates are added by the transfer
matrix of each plane wave of the angular spectrum. The others are compared with a run of half the time step on the same
grid.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import hankel2

from seiche.report.ultrasound_figure import Panel, UltrasoundPicture, ultrasound_figure
from seiche.ultrasound import Arc, Bowl, Disc, Emitter, Grid, Line, Medium, Sensor, Source, simulate
from seiche.ultrasound.materials import MATERIALS, TissueMaterial
from seiche.validate.ultrasound.layers import Plates, Transducer, field_behind

Floats = npt.NDArray[np.float64]
Complex = npt.NDArray[np.complex128]
TONE, PRESSURE, SPACING = 5e5, 60e3, 0.5e-3
RADIUS, DIAMETER = 64e-3, 20e-3
#: Courant number by dimensions: waves that bone absorbs limit the time step, more strongly with more axes.
CFL = {2: 0.3, 3: 0.18}
#: Points behind the centre of the source, and points of the absorbing layer: 280 and 175 points have small factors.
MARGIN_BEHIND, LAYER = 5, 17
ABSORBING_WATER = TissueMaterial(1500.0, 1000.0, 1.0)
#: Materials along the axis with the x at which each ends, m.
PLATES: dict[int, tuple[tuple[str, float], ...]] = {
    3: (("water", 30e-3), ("cortical bone", 36.5e-3)),
    4: (
        *(("water", 26e-3), ("skin", 30e-3), ("cortical bone", 31.5e-3), ("trabecular bone", 35.5e-3)),
        ("cortical bone", 36.5e-3),
    ),
}
PLATES |= {5: PLATES[3], 6: PLATES[4]}
LAST_MEDIUM = {3: "water", 4: "brain", 5: "water", 6: "brain"}
#: Benchmarks 5 and 6: the common centre of the shells, 75 mm behind the front of the bone.
MIDDLE = 105e-3


@dataclass(frozen=True)
class Size:
    """Size of the result: x from 0 to `length`, and `half` to both sides of the axis (m)."""

    dimensions: int = 2
    length: float = 120e-3
    half: float = 35e-3
    cfl: float = 0.3
    device: str = "cpu"


def material(name: str, benchmark: int) -> TissueMaterial:
    """Return a material; the water of benchmark 2 is absorbing."""
    return ABSORBING_WATER if benchmark == 2 and name == "water" else MATERIALS[name]


def axes_of(size: Size) -> tuple[Grid, tuple[Floats, ...]]:
    """Return the grid without time, and its axes (m) with the centre of the source at the origin."""
    length, side = round(size.length / SPACING) + 1 + MARGIN_BEHIND, 2 * round(size.half / SPACING) + 1
    grid = Grid((length,) + (side,) * (size.dimensions - 1), SPACING)
    x = (np.arange(length) - MARGIN_BEHIND) * SPACING
    return grid, (x, *(grid.positions(axis) for axis in grid.axes[1:]))


def medium_of(benchmark: int, axes: tuple[Floats, ...]) -> Medium:
    """Return the medium: uniform, in plates, or in shells; points on a border belong to the layer behind it."""
    depth, *sides = np.meshgrid(*axes, indexing="ij")
    if benchmark > 4:  # depth along the radius, with the origin of the axis
        depth = MIDDLE - np.sqrt((depth - MIDDLE) ** 2 + sum(side**2 for side in sides))
    layers = (*PLATES.get(benchmark, ()), (LAST_MEDIUM.get(benchmark, "water"), np.inf))
    number = np.searchsorted([end for _, end in layers], depth + 1e-9, side="right")
    materials = [material(name, benchmark) for name, _ in layers]
    speed, density, absorption = (
        np.array(values)[number]
        for values in (
            [tissue.sound_speed for tissue in materials],
            [tissue.density for tissue in materials],
            [tissue.alpha_coeff(2.0) for tissue in materials],
        )
    )
    return Medium(speed, density, alpha_coeff=absorption, alpha_power=2.0)


def shape_of(source: int, dimensions: int, start: Floats) -> Arc | Bowl | Disc | Line:
    """Return the bowl (source 1) or disc (2) centred at `start`, or its two-dimensional counterpart."""
    vertex, focus = tuple(start), tuple(start + np.eye(dimensions)[0] * RADIUS)
    if source == 1:
        return (Arc if dimensions == 2 else Bowl)(vertex, focus, RADIUS, RADIUS)
    if dimensions == 3:
        return Disc(vertex, focus, DIAMETER)
    half = np.array([0.0, DIAMETER / 2])
    return Line(tuple(start - half), tuple(start + half))


def computed(benchmark: int, source: int, size: Size) -> Complex:
    """Return the steady pressure p exp(i w t) (Pa) over the points from x = 0 on."""
    grid, axes = axes_of(size)
    medium = medium_of(benchmark, axes)
    fastest = float(np.max(medium.sound_speed))
    period = int(np.ceil(fastest / (TONE * size.cfl * SPACING)))
    periods = int(np.ceil((1.15 * np.hypot(size.length, size.half) / 1500 + 25e-6) * TONE))
    grid = Grid(grid.shape, SPACING, 1 / TONE / period, period * periods)
    time = np.arange(period * periods) / period
    tone = PRESSURE * np.sin(2 * np.pi * time) * np.minimum(1, time / 4)
    start = np.array([MARGIN_BEHIND * SPACING + grid.positions("x")[0], *(0.0,) * (size.dimensions - 1)])
    emitter = Emitter(shape_of(source, size.dimensions, start), tone)
    sensor = Sensor(record=(), frequencies=(TONE,), frequency_window=(period * (periods - 3), period * periods))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        recorded = simulate(
            grid,
            medium,
            Source(emitters=(emitter,)),
            sensor,
            pml_size=LAYER,
            pml_inside=False,
            scheme="local4" if benchmark > 2 else "exact",
            device=size.device,
        )
    return np.asarray((recorded["p_amplitude"][0] * np.exp(1j * recorded["p_phase"][0]))[MARGIN_BEHIND:], np.complex128)


def wave_number(tissue: TissueMaterial) -> complex:
    """Return k (rad/m) of exp(i (w t - k x))."""
    return complex(2 * np.pi * TONE / tissue.sound_speed, -tissue.absorption * 100 / (20 * np.log10(np.e)))


def integral(source: int, dimensions: int, points: Floats, k: complex) -> Complex:
    """Return the field of a source in a homogeneous medium at `points` (n, D): Rayleigh's integral over the source.

    The surface emits to both sides like a plane of 60 kPa, as the bowl of the benchmarks does in O'Neil's theory.
    """
    quadrature = shape_of(source, dimensions, np.zeros(dimensions)).quadrature(SPACING / 2)

    def field(points_of_part: Floats) -> Complex:
        distance = np.maximum(np.linalg.norm(points_of_part[:, None] - quadrature.points[None], axis=-1), SPACING / 8)
        waves = (
            -0.25j * hankel2(0, k * distance) if dimensions == 2 else np.exp(-1j * k * distance) / distance / 4 / np.pi
        )
        return np.asarray(waves @ quadrature.weights, np.complex128)

    parts = np.array_split(points, max(1, len(points) * len(quadrature.points) // 1_000_000))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return 2 * PRESSURE * k.real * np.concatenate(list(pool.map(field, parts)))


def behind_plates(benchmark: int, source: int, x: Floats, y: Floats) -> Complex:
    """Return the field behind plates in two dimensions, (x, y): the angular spectrum through transfer matrices."""
    front = PLATES[benchmark][0][1]
    count, step = 8192, SPACING / 4
    across = (np.arange(count) - count // 2) * step
    edge = np.clip((np.abs(across) - 0.6 * across[-1]) / (0.4 * across[-1]), 0, 1)
    k = wave_number(MATERIALS["water"])
    arriving = integral(source, 2, np.stack([np.full(count, front), across], axis=1), k)
    spectrum = np.fft.fft(np.fft.ifftshift(arriving * np.cos(np.pi / 2 * edge) ** 2))
    ky = 2 * np.pi * np.fft.fftfreq(count, step)
    plates = plates_of(benchmark)
    passed = spectrum * plates.transmission(ky)
    propagating = np.abs(ky) < 1.5 * k.real  # the others have decayed
    normal_k = plates.normal_wave_number(plates.last, ky[propagating])
    field = passed[propagating] * np.exp(-1j * normal_k * (x[:, None] - front - plates.thickness))
    return np.asarray(field @ np.exp(1j * np.outer(ky[propagating], y)) / count)


def plates_of(benchmark: int) -> Plates:
    """Return the plates of benchmarks 3 and 4."""
    ends = [end for _, end in PLATES[benchmark]]
    thick = np.diff(ends).tolist()
    layers = [(name, thickness) for (name, _), thickness in zip(PLATES[benchmark][1:], thick, strict=True)]
    return Plates.named(layers, LAST_MEDIUM[benchmark], TONE)


def widths(field: Floats, peak: tuple[int, ...], fraction: float) -> list[float]:
    """Return the widths (m) along the axes of the field above `fraction` of its value at a point; NaN if cut."""
    result = []
    for axis in range(field.ndim):
        line = np.moveaxis(field, axis, 0)[(slice(None), *(p for k, p in enumerate(peak) if k != axis))]
        level, ends = fraction * line[peak[axis]], []
        for direction in (-1, 1):
            index = peak[axis]
            while 0 <= index + direction < len(line) and line[index + direction] > level:
                index += direction
            if not 0 <= index + direction < len(line):
                ends.append(np.nan)
                continue
            ends.append(index + direction * (line[index] - level) / (line[index] - line[index + direction]))
        result.append(float(ends[1] - ends[0]) * SPACING)
    return result


def metrics(benchmark: int, source: int, reference: Floats, field: Floats) -> dict[str, Any]:
    """Return the benchmarks' metrics of amplitudes over the points from x = 0 on, `reference` first."""
    exit_plane = 19 if source == 1 else 1
    exact, computed_field = reference.copy(), field.copy()
    exact[:exit_plane], computed_field[:exit_plane] = 0, 0
    brain = slice(74, None)  # x from 37 mm on, behind the bone
    peaks, positions = [], []
    for values in (exact, computed_field):
        if source == 2 and benchmark > 1:  # this beam has no focus: use the peak in the plane x = 60 mm
            plane = min(120, len(values) - 1)
            position = (plane, *np.unravel_index(int(np.argmax(values[plane])), values.shape[1:]))
        else:
            position = np.unravel_index(int(np.argmax(values[brain])), values[brain].shape)
            position = (position[0] + 74, *position[1:])
        positions.append(tuple(int(n) for n in position))
        peaks.append(float(values[positions[-1]]))
    ends = slice(1, None) if source == 2 and benchmark > 1 else slice(None)  # nor a width along the axis
    exact_brain, computed_brain = exact[brain], computed_field[brain]
    distance = np.linalg.norm(np.subtract(*positions)) * SPACING
    return {
        "L-inf": float(np.abs(exact - computed_field).max() / exact.max()),
        "L2": float(np.linalg.norm(exact - computed_field) / np.linalg.norm(exact)),
        "L-inf in the brain": float(np.abs(exact_brain - computed_brain).max() / exact_brain.max()),
        "L2 in the brain": float(np.linalg.norm(exact_brain - computed_brain) / np.linalg.norm(exact_brain)),
        "peak (kPa)": [1e-3 * value for value in peaks],
        "difference of peaks": abs(peaks[1] / peaks[0] - 1),
        "distance of peaks (mm)": float(1e3 * distance),
        "-6 dB widths (mm)": [
            [1e3 * w for w in widths(values, positions[0], 0.5)[ends]] for values in (exact, computed_field)
        ],
        "-3 dB widths (mm)": [
            [1e3 * w for w in widths(values, positions[0], np.sqrt(0.5))[ends]] for values in (exact, computed_field)
        ],
    }


def run(benchmark: int, source: int, size: Size) -> tuple[dict[str, Any], Floats, Floats]:
    """Return metrics, reference and computed amplitude, which are 0 where the reference is unknown."""
    _, axes = axes_of(size)
    coordinates = [axes[0][MARGIN_BEHIND:], *axes[1:]]
    field = np.abs(computed(benchmark, source, size))
    if benchmark <= 2:
        kind = "integral over the source"
        points = np.stack(np.meshgrid(*coordinates[:2], indexing="ij"), axis=-1).reshape(-1, 2)
        if size.dimensions == 3:  # in a plane through the axis: the field is axisymmetric
            field = field[:, :, field.shape[2] // 2]
            points = np.pad(points, ((0, 0), (0, 1)))
        k = wave_number(material("water", benchmark))
        reference = np.abs(integral(source, size.dimensions, points, k)).reshape(field.shape)
    elif benchmark <= 4:
        kind = "angular spectrum behind the plates"
        front, is_behind = PLATES[benchmark][0][1], coordinates[0] >= PLATES[benchmark][-1][1]
        if size.dimensions == 3:  # in a plane through the axis: the field is axisymmetric
            field = field[:, :, field.shape[2] // 2]
            shape = Transducer(RADIUS, RADIUS) if source == 1 else Transducer(np.inf, DIAMETER)
            exact = PRESSURE * field_behind(
                plates_of(benchmark), front, shape, coordinates[0][is_behind], np.abs(coordinates[1])
            )
        else:
            exact = behind_plates(benchmark, source, coordinates[0][is_behind], coordinates[1])
        reference = field.copy()
        reference[is_behind] = np.abs(exact)
        reference[~is_behind], field[~is_behind] = 0, 0
    else:
        kind = "half the time step"
        finer = Size(size.dimensions, size.length, size.half, size.cfl / 2, size.device)
        reference = np.abs(computed(benchmark, source, finer))
    return {"reference": kind, **metrics(benchmark, source, reference, field)}, reference, field


def draw(path: Path, title: str, size: Size, medium: Medium, fields: tuple[Floats, Floats]) -> None:
    """Draw the computed amplitude and the reference in a plane through the axis, with the borders of the layers."""
    axes = axes_of(size)[1]
    x, y = axes[0][MARGIN_BEHIND:], axes[1]
    speed = np.asarray(medium.sound_speed)[MARGIN_BEHIND:]
    speed = speed if speed.ndim == 2 else speed[:, :, speed.shape[2] // 2]
    panels = []
    for name, values in zip(("Seiche", "reference"), fields, strict=True):
        plane = values if values.ndim == 2 else values[:, :, values.shape[2] // 2]
        panels.append(Panel(name, "kPa", 1e-3 * plane))
    ultrasound_figure(path, path.name, UltrasoundPicture([x, y], panels, speed, title=title))


def main() -> None:
    """Run one benchmark, print its metrics and write them with the fields."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--benchmark", type=int, choices=range(1, 7), required=True)
    parser.add_argument("--source", type=int, choices=(1, 2), default=1, help="1: bowl (the default), 2: disc")
    parser.add_argument("--dimensions", type=int, choices=(2, 3), default=2)
    parser.add_argument(
        "--cfl", type=float, help="Courant number; 0.3 by default, in three dimensions 0.2, because of bone"
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--output", type=Path, default=Path("out"))
    parser.add_argument("--picture", type=Path, help="picture of the amplitude beside the reference, PNG, PDF or SVG")
    options = parser.parse_args()
    size = Size(options.dimensions, cfl=options.cfl or CFL[options.dimensions], device=options.device)
    result, reference, field = run(options.benchmark, options.source, size)
    for name, value in result.items():
        print(f"{name:<24} {json.dumps(value, default=str) if not isinstance(value, float) else f'{value:.4g}'}")
    options.output.mkdir(parents=True, exist_ok=True)
    stem = options.output / f"bm{options.benchmark}-sc{options.source}-{options.dimensions}d"
    stem.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")
    np.savez_compressed(stem.with_suffix(".npz"), reference=reference, field=field, spacing=SPACING)
    if options.picture is not None:
        title = f"benchmark {options.benchmark}, source {options.source}, {options.dimensions} dimensions"
        draw(options.picture, title, size, medium_of(options.benchmark, axes_of(size)[1]), (field, reference))


if __name__ == "__main__":
    main()
