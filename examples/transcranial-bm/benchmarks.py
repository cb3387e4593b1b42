# SPDX-License-Identifier: BSD-3-Clause
"""Transcranial benchmarks 1 to 6 of Aubry et al. 2022 (doi:10.1121/10.0013426), with their metrics.

    python benchmarks.py --benchmark 3                                        two dimensions, on a CPU in a minute
    python benchmarks.py --benchmark 3 --dimensions 3 --device cuda           the benchmark itself, on a GPU

500 kHz, 60 kPa at the surface of a bowl (radius of curvature and aperture 64 mm) or of a flat disc of 20 mm, whose
middle lies at the origin; waves travel along x. In two dimensions these are an arc and a line, and slabs and shells go
on along z. The field is compared where the benchmarks do with an exact one: the integral over the source in benchmarks
1 and 2, to which plates of benchmarks 3 and 4 are added by the transfer matrix of each plane wave of the angular
spectrum. Otherwise with a run of half the time step, on the same grid.
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

from seiche.ultrasound import Arc, Bowl, Disc, Emitter, Grid, Line, Medium, Sensor, Source, simulate
from seiche.ultrasound.materials import MATERIALS, TissueMaterial
from seiche.validate.ultrasound.layers import Plates, Transducer, field_behind

Floats = npt.NDArray[np.float64]
Complex = npt.NDArray[np.complex128]
TONE, PRESSURE, SPACING = 5e5, 60e3, 0.5e-3
RADIUS, DIAMETER = 64e-3, 20e-3
#: By dimensions: waves that bone absorbs limit the time step, the more the more axes there are.
CFL = {2: 0.3, 3: 0.2}
#: Points behind the source's middle, and of the absorbing layer around all: 280 and 175 points have small factors.
BEHIND, LAYER = 5, 17
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
BEYOND = {3: "water", 4: "brain", 5: "water", 6: "brain"}
#: Benchmarks 5 and 6: the shells' common middle, 75 mm behind the front of the bone.
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
    """Return the grid without time, and its axes (m) with the source's middle at the origin."""
    length, side = round(size.length / SPACING) + 1 + BEHIND, 2 * round(size.half / SPACING) + 1
    grid = Grid((length,) + (side,) * (size.dimensions - 1), SPACING)
    x = (np.arange(length) - BEHIND) * SPACING
    return grid, (x, *(grid.positions(axis) for axis in grid.axes[1:]))


def medium_of(benchmark: int, axes: tuple[Floats, ...]) -> Medium:
    """Return the medium: everywhere, in plates, or in shells; a layer has its first border's points, not its last's."""
    depth, *sides = np.meshgrid(*axes, indexing="ij")
    if benchmark > 4:  # depth along the radius, with the origin of the axis
        depth = MIDDLE - np.sqrt((depth - MIDDLE) ** 2 + sum(one**2 for one in sides))
    layers = (*PLATES.get(benchmark, ()), (BEYOND.get(benchmark, "water"), np.inf))
    number = np.searchsorted([end for _, end in layers], depth + 1e-9, side="right")
    found = [material(name, benchmark) for name, _ in layers]
    speed, density, absorption = (
        np.array(values)[number]
        for values in (
            [one.sound_speed for one in found],
            [one.density for one in found],
            [one.alpha_coeff(2.0) for one in found],
        )
    )
    return Medium(speed, density, alpha_coeff=absorption, alpha_power=2.0)


def shape_of(source: int, dimensions: int, start: Floats) -> Arc | Bowl | Disc | Line:
    """Return the bowl (source 1) or disc (2) centred at `start`, or its two-dimensional counterpart."""
    vertex, ahead = tuple(start), tuple(start + np.eye(dimensions)[0] * RADIUS)
    if source == 1:
        return (Arc if dimensions == 2 else Bowl)(vertex, ahead, RADIUS, RADIUS)
    if dimensions == 3:
        return Disc(vertex, ahead, DIAMETER)
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
    start = np.array([BEHIND * SPACING + grid.positions("x")[0], *(0.0,) * (size.dimensions - 1)])
    emitter = Emitter(shape_of(source, size.dimensions, start), tone)
    sensor = Sensor(record=(), frequencies=(TONE,), frequency_window=(period * (periods - 3), period * periods))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = simulate(
            grid,
            medium,
            Source(emitters=(emitter,)),
            sensor,
            pml_size=LAYER,
            pml_inside=False,
            scheme="local4" if benchmark > 2 else "exact",
            device=size.device,
        )
    return np.asarray((found["p_amplitude"][0] * np.exp(1j * found["p_phase"][0]))[BEHIND:], np.complex128)


def wave_number(one: TissueMaterial) -> complex:
    """Return k (rad/m) of exp(i (w t - k x))."""
    return complex(2 * np.pi * TONE / one.sound_speed, -one.absorption * 100 / (20 * np.log10(np.e)))


def integral(source: int, dimensions: int, places: Floats, k: complex) -> Complex:
    """Return the field of a source in a homogeneous medium at places (n, D): waves of all its points (eq. of Rayleigh).

    The surface sends as a plane of 60 kPa would, to both sides; as the benchmarks' bowl does in O'Neil's theory.
    """
    rule = shape_of(source, dimensions, np.zeros(dimensions)).quadrature(SPACING / 2)

    def field(some: Floats) -> Complex:
        distance = np.maximum(np.linalg.norm(some[:, None] - rule.points[None], axis=-1), SPACING / 8)
        waves = (
            -0.25j * hankel2(0, k * distance) if dimensions == 2 else np.exp(-1j * k * distance) / distance / 4 / np.pi
        )
        return np.asarray(waves @ rule.shares, np.complex128)

    parts = np.array_split(places, max(1, len(places) * len(rule.points) // 1_000_000))
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
    far = np.abs(ky) < 1.5 * k.real  # the others have decayed
    behind = plates.normal_wave_number(plates.last, ky[far])
    field = passed[far] * np.exp(-1j * behind * (x[:, None] - front - plates.thickness))
    return np.asarray(field @ np.exp(1j * np.outer(ky[far], y)) / count)


def plates_of(benchmark: int) -> Plates:
    """Return the plates of benchmarks 3 and 4."""
    ends = [end for _, end in PLATES[benchmark]]
    thick = np.diff(ends).tolist()
    layers = [(name, one) for (name, _), one in zip(PLATES[benchmark][1:], thick, strict=True)]
    return Plates.named(layers, BEYOND[benchmark], TONE)


def widths(field: Floats, peak: tuple[int, ...], part: float) -> list[float]:
    """Return the widths (m) along the axes of the field above `part` of its value at a point; NaN if cut."""
    found = []
    for axis in range(field.ndim):
        line = np.moveaxis(field, axis, 0)[(slice(None), *(p for k, p in enumerate(peak) if k != axis))]
        level, ends = part * line[peak[axis]], []
        for way in (-1, 1):
            at = peak[axis]
            while 0 <= at + way < len(line) and line[at + way] > level:
                at += way
            if not 0 <= at + way < len(line):
                ends.append(np.nan)
                continue
            ends.append(at + way * (line[at] - level) / (line[at] - line[at + way]))
        found.append(float(ends[1] - ends[0]) * SPACING)
    return found


def metrics(benchmark: int, source: int, reference: Floats, field: Floats) -> dict[str, Any]:
    """Return the benchmarks' metrics of amplitudes over the points from x = 0 on, `reference` first."""
    exit_plane = 19 if source == 1 else 1
    one, two = reference.copy(), field.copy()
    one[:exit_plane], two[:exit_plane] = 0, 0
    brain = slice(74, None)  # x from 37 mm on, behind the bone
    peaks, places = [], []
    for values in (one, two):
        if source == 2 and benchmark > 1:  # no focus in this beam: the peak in the plane at x = 60 mm
            plane = min(120, len(values) - 1)
            place = (plane, *np.unravel_index(int(np.argmax(values[plane])), values.shape[1:]))
        else:
            place = np.unravel_index(int(np.argmax(values[brain])), values[brain].shape)
            place = (place[0] + 74, *place[1:])
        places.append(tuple(int(n) for n in place))
        peaks.append(float(values[places[-1]]))
    ends = slice(1, None) if source == 2 and benchmark > 1 else slice(None)  # it has no width along the axis either
    behind_one, behind_two = one[brain], two[brain]
    apart = np.linalg.norm(np.subtract(*places)) * SPACING
    return {
        "L-inf": float(np.abs(one - two).max() / one.max()),
        "L2": float(np.linalg.norm(one - two) / np.linalg.norm(one)),
        "L-inf in the brain": float(np.abs(behind_one - behind_two).max() / behind_one.max()),
        "L2 in the brain": float(np.linalg.norm(behind_one - behind_two) / np.linalg.norm(behind_one)),
        "peak (kPa)": [1e-3 * value for value in peaks],
        "difference of peaks": abs(peaks[1] / peaks[0] - 1),
        "distance of peaks (mm)": float(1e3 * apart),
        "-6 dB widths (mm)": [[1e3 * w for w in widths(values, places[0], 0.5)[ends]] for values in (one, two)],
        "-3 dB widths (mm)": [
            [1e3 * w for w in widths(values, places[0], np.sqrt(0.5))[ends]] for values in (one, two)
        ],
    }


def run(benchmark: int, source: int, size: Size) -> tuple[dict[str, Any], Floats, Floats]:
    """Return metrics, reference and computed amplitude, which are 0 where the reference is unknown."""
    _, axes = axes_of(size)
    places = [axes[0][BEHIND:], *axes[1:]]
    field = np.abs(computed(benchmark, source, size))
    if benchmark <= 2:
        kind = "integral over the source"
        points = np.stack(np.meshgrid(*places[:2], indexing="ij"), axis=-1).reshape(-1, 2)
        if size.dimensions == 3:  # in a plane through the axis: the field is axisymmetric
            field = field[:, :, field.shape[2] // 2]
            points = np.pad(points, ((0, 0), (0, 1)))
        k = wave_number(material("water", benchmark))
        reference = np.abs(integral(source, size.dimensions, points, k)).reshape(field.shape)
    elif benchmark <= 4:
        kind = "angular spectrum behind the plates"
        front, behind = PLATES[benchmark][0][1], places[0] >= PLATES[benchmark][-1][1]
        if size.dimensions == 3:  # in a plane through the axis: the field is axisymmetric
            field = field[:, :, field.shape[2] // 2]
            shape = Transducer(RADIUS, RADIUS) if source == 1 else Transducer(np.inf, DIAMETER)
            exact = PRESSURE * field_behind(plates_of(benchmark), front, shape, places[0][behind], np.abs(places[1]))
        else:
            exact = behind_plates(benchmark, source, places[0][behind], places[1])
        reference = field.copy()
        reference[behind] = np.abs(exact)
        reference[~behind], field[~behind] = 0, 0
    else:
        kind = "half of the time step"
        finer = Size(size.dimensions, size.length, size.half, size.cfl / 2, size.device)
        reference = np.abs(computed(benchmark, source, finer))
    return {"reference": kind, **metrics(benchmark, source, reference, field)}, reference, field


def main() -> None:
    """Run one benchmark, print its metrics and write them with the fields."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--benchmark", type=int, choices=range(1, 7), required=True)
    parser.add_argument("--source", type=int, choices=(1, 2), default=1, help="1: bowl (the default), 2: disc")
    parser.add_argument("--dimensions", type=int, choices=(2, 3), default=2)
    parser.add_argument("--cfl", type=float, help="Courant number; 0.3, in three dimensions 0.2: what bone allows")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--output", type=Path, default=Path("out"))
    given = parser.parse_args()
    size = Size(given.dimensions, cfl=given.cfl or CFL[given.dimensions], device=given.device)
    found, reference, field = run(given.benchmark, given.source, size)
    for name, value in found.items():
        print(f"{name:<24} {json.dumps(value, default=str) if not isinstance(value, float) else f'{value:.4g}'}")
    given.output.mkdir(parents=True, exist_ok=True)
    stem = given.output / f"bm{given.benchmark}-sc{given.source}-{given.dimensions}d"
    stem.with_suffix(".json").write_text(json.dumps(found, indent=1) + "\n")
    np.savez_compressed(stem.with_suffix(".npz"), reference=reference, field=field, spacing=SPACING)


if __name__ == "__main__":
    main()
