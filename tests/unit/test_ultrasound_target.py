# SPDX-License-Identifier: BSD-3-Clause
"""A target in a brain: placement of transducers in front of it, results around it, and the page of a plan."""

from __future__ import annotations

import json
import math
import runpy
from pathlib import Path

import numpy as np
import pytest

from seiche.case.loading import load, prepare
from seiche.case.ultrasound.target import sonication_of, target_lines
from seiche.cli import main
from seiche.errors import CaseError
from seiche.report.target_section import target_section
from seiche.ultrasound import Grid, Medium
from seiche.ultrasound.beamforming import focus_delays
from seiche.ultrasound.steering import ray_delays, ray_times
from seiche.ultrasound.target import Sonication
from ultrasound_cases import BASIC, case

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "transcranial"
#: The bowl of the basic case by its axis and its target.
PLACED = BASIC.replace(
    'position = ["-8 mm", "0 mm"]\nfocus = ["2 mm", "0 mm"]\n',
    "axis = [2.0, 0.0]\n",
).replace("[record]", '[target]\nposition = ["2 mm", "0 mm"]\n[record]')


def shell(grid: Grid) -> tuple[np.ndarray, Medium]:
    """Return the distance of all points from the middle, and a skull between 6 and 8 mm in water."""
    radius = np.sqrt(sum(x**2 for x in np.meshgrid(*(grid.positions(a) for a in grid.axes), indexing="ij")))
    skull = (radius > 6e-3) & (radius < 8e-3)
    return radius, Medium(np.where(skull, 2800.0, 1500.0), np.where(skull, 1900.0, 1000.0))


@pytest.mark.parametrize("shape", [(60, 60), (40, 40, 40), "axisymmetric"])
def test_peaks_are_those_of_the_brain_and_of_the_bone(shape):
    """Amplitudes are largest outside the head, then in the bone; the focus in the brain is a Gaussian."""
    symmetry = "axisymmetric" if shape == "axisymmetric" else None
    grid = Grid((60, 30) if symmetry else shape, 0.5e-3, symmetry=symmetry)
    radius, medium = shell(grid)
    place = np.array([1.5e-3] + [0.0] * (len(grid.shape) - 1))
    lines = [grid.positions(axis) - c for axis, c in zip(grid.axes, place, strict=True)]
    square = sum(x**2 for x in np.meshgrid(*lines, indexing="ij"))
    width = 2e-3  # half of the peak at this distance
    skull = np.asarray(medium.density) > 1500.0
    inside = ~skull & (radius < 7e-3)
    amplitude = np.select([inside, skull], [2e5 * np.exp2(-square / width**2), 3e5], 9e5)
    amplitude += 1e3 * (grid.positions("x") / 1e-2).reshape([-1] + [1] * (len(grid.shape) - 1))
    source = np.array([[-10e-3] + [0.0] * (len(grid.shape) - 1)])
    parts = Sonication.of(grid, medium, [0.0] * len(grid.shape), bone_speed=1700.0, sources=source)
    result = parts.evaluate(amplitude)
    assert result["pressure_Pa"] == pytest.approx(2e5 * 2 ** -(1.5**2 / 4), rel=1e-9)
    brain, bone = result["brain"], result["bone"]
    assert brain["place_m"] == pytest.approx(place, abs=1e-12)
    assert brain["distance_m"] == pytest.approx(1.5e-3)
    assert brain["pressure_Pa"] == amplitude[inside].max()
    assert brain["intensity_W_m2"] == pytest.approx(brain["pressure_Pa"] ** 2 / (2 * 1500.0 * 1000.0))
    assert bone["pressure_Pa"] == amplitude[skull].max()
    assert 6e-3 < np.linalg.norm(bone["place_m"]) < 8e-3
    if len(grid.shape) == 2 and symmetry is None:
        assert brain["area_6dB_m2"] == pytest.approx(math.pi * width**2, rel=0.06)
    else:
        assert brain["volume_6dB_m3"] == pytest.approx(4 / 3 * math.pi * width**3, rel=0.06)
    temperature = 37 + amplitude / 1e5
    heat = parts.evaluate_heat(temperature, amplitude / 1e4)
    assert heat["brain"]["temperature_C"] == temperature[inside].max()
    assert heat["bone"]["dose_min"] == bone["pressure_Pa"] / 1e4
    lines = target_lines({**result, "heat": heat})
    assert lines[1].startswith("peak in the brain: 200 kPa at (1.5") and "1.5 mm from the target" in lines[1]
    assert lines[-1].startswith("highest temperature in the brain: 39")


@pytest.mark.parametrize("width", [1, 4])
def test_gaps_of_the_bone_are_closed_for_the_brain(width):
    grid = Grid((60, 60), 0.5e-3)
    radius, medium = shell(grid)
    speed = np.array(medium.sound_speed)
    speed[:30, 30 : 30 + width] = 1500.0  # a burr hole
    parts = Sonication.of(grid, Medium(speed), (0.0, 0.0), bone_speed=1700.0, sources=[[-10e-3, 0.0]])
    assert width * 0.5e-3 <= parts.gap <= (width + 2) * 0.5e-3
    assert not parts.brain[radius > 8e-3].any()
    assert parts.brain[(radius < 6e-3 - 0.6 * parts.gap)].all()
    amplitude = np.where(radius > 8.5e-3, 9.0, np.where(radius < 5e-3, 2.0, 1.0))
    result = parts.evaluate(amplitude)
    assert (result["brain"]["pressure_Pa"], result["bone"]["pressure_Pa"]) == (2.0, 1.0)
    assert target_lines(result)[-1] == f"bone: gaps up to {1e3 * parts.gap:.3g} mm are treated as closed"
    assert "Gaps of the bone up to" in target_section({"target": result}, None)


def test_a_source_close_to_half_a_skull_does_not_close_it():
    grid = Grid((60, 60), 0.5e-3)
    radius, medium = shell(grid)
    x, y = np.meshgrid(grid.positions("x"), grid.positions("y"), indexing="ij")
    speed = np.where(x < 0, 1500.0, medium.sound_speed)
    edge = np.argwhere((speed >= 1700.0) & (radius >= radius[speed >= 1700.0].max()))[0]
    near = [x[tuple(edge)] + 0.5e-3, y[tuple(edge)]]
    for sources in ([near], [near, [-10e-3, 0.0]]):
        parts = Sonication.of(grid, Medium(speed), (0.0, 0.0), bone_speed=1700.0, sources=sources)
        assert parts.brain is None and parts.gap == 0.0


def test_without_closed_bone_there_is_no_brain():
    grid = Grid((60, 60), 0.5e-3)
    _, medium = shell(grid)
    x, _ = np.meshgrid(grid.positions("x"), grid.positions("y"), indexing="ij")
    speed = np.where(x < 0, 1500.0, medium.sound_speed)  # half of the skull is missing
    parts = Sonication.of(grid, Medium(speed), (0.0, 0.0), bone_speed=1700.0, sources=[[-10e-3, 0.0]])
    result = parts.evaluate(np.ones(grid.shape))
    assert "brain" not in result and "bone" in result
    assert "bone does not separate the target from the sources" in target_lines(result)[-1]
    water = Sonication.of(grid, Medium(1500.0), (0.0, 0.0), bone_speed=1700.0, sources=[[-10e-3, 0.0]])
    assert set(water.evaluate(np.ones(grid.shape))) == {"place_m", "pressure_Pa"}


def test_a_source_placed_by_its_axis_is_that_with_position_and_focus(tmp_path):
    placed = prepare(case(tmp_path, PLACED)).problem.sources
    given = prepare(case(tmp_path, BASIC)).problem.sources
    for one, other in zip(placed, given, strict=True):
        np.testing.assert_array_equal(one.points, other.points)
        np.testing.assert_array_equal(one.samples, other.samples)
        np.testing.assert_allclose(one.weights, other.weights, rtol=1e-9)
    nearer = prepare(case(tmp_path, PLACED.replace("axis =", 'distance = "7 mm"\naxis =')))
    assert nearer.case.source[0].position == pytest.approx((-5e-3, 0.0))
    assert nearer.case.source[0].curvature_center == pytest.approx((5e-3, 0.0))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("axis = [2.0, 0.0]\n", "", "position is missing; give position and focus, or axis"),
        ("axis = [2.0, 0.0]", "axis = [0.0, 0.0]", "axis: its length is zero"),
        ("axis = [2.0, 0.0]", "axis = [1, 0, 0]", "axis: has 3 numbers, target.position 2"),
        ("axis = [2.0, 0.0]", 'axis = [1, 0]\nfocus = ["0 m", "0 m"]', "axis: replaces position and focus; omit focus"),
        ('[target]\nposition = ["2 mm", "0 mm"]\n', "", "axis: needs target.position, which is missing"),
        ('["2 mm", "0 mm"]', '["20 mm", "0 mm"]', "target.position: is outside the grid"),
        ('frequencies = ["500 kHz"]\nperiods = 1\n', "", "target: needs the amplitude at record.frequencies"),
        ('sound_speed = "1500 m/s"', 'sound_speed = "1800 m/s"', "target.position: is in bone"),
    ],
)  # fmt: skip
def test_an_impossible_target_is_named(tmp_path, old, new, message):
    assert old in PLACED
    with pytest.raises(CaseError, match=message):
        prepare(case(tmp_path, PLACED.replace(old, new)))


def test_a_skull_may_come_from_a_mask_file(tmp_path):
    """The mask of a shell, on voxels of 0.4 mm: bone of its volume, and brain in it."""
    lines = np.meshgrid(*[0.4e-3 * (np.arange(50) - 24.5)] * 3, indexing="ij")
    radius = np.sqrt(sum(x**2 for x in lines))
    np.savez_compressed(tmp_path / "mask.npz", mask=((radius > 6e-3) & (radius < 8e-3)).astype(np.uint8))
    where = 'kind = "image", file = "mask.npz", voxel = ["0.4 mm", "0.4 mm", "0.4 mm"]'
    place = ", ".join(['"-9.8 mm"'] * 3)
    text = f"""solver = "ultrasound"
[grid]
shape = [44, 40, 40]
spacing = "0.5 mm"
[layer]
points = 2
[medium]
material = "water"
[[medium.region]]
kind = "solid"
where = {{ {where}, position = [{place}] }}
material = "cortical bone"
[target]
position = ["1 mm", "0 mm", "0 mm"]
[[source]]
kind = "disc"
axis = [1, 0, 0]
distance = "10.5 mm"
diameter = "4 mm"
frequency = "500 kHz"
amplitude = "1 kPa"
[record]
frequencies = ["500 kHz"]
"""
    setup = prepare(case(tmp_path, text))
    parts = sonication_of(setup.case, setup.grid, setup.medium)
    cells = 0.5e-3**3
    assert parts.bone.sum() * cells == pytest.approx(4 / 3 * math.pi * (8e-3**3 - 6e-3**3), rel=0.1)
    assert parts.brain.sum() * cells == pytest.approx(4 / 3 * math.pi * 6e-3**3, rel=0.1)


def test_the_image_of_the_example_is_that_of_its_script():
    image = runpy.run_path(str(EXAMPLE / "phantom.py"))["hounsfield"]()
    np.testing.assert_array_equal(np.load(EXAMPLE / "head.npz")["hounsfield"], image)


def test_the_example_plans_a_sonication(tmp_path, monkeypatch, capsys):
    """Half the resolution: results around the target are those of the fields, and the page shows them."""
    monkeypatch.chdir(tmp_path)
    assert main(["new", "ultrasound", "plan", "--like", "transcranial"]) == 0
    coarse = {"grid.shape": [54, 40, 40], "grid.spacing": "2 mm", "layer.points": 5, "grid.duration": "75 us"}
    coarse |= {"heat.duration": "1 s", "heat.cooling": "1 s"}
    overrides = [f"{key}={value}" for key, value in coarse.items()]
    result = load(Path("plan/case.toml"), overrides=overrides).run(visible=False)
    target = json.loads(Path("plan/out/summary.json").read_text())["details"]["target"]
    grid = Grid((54, 40, 40), 2e-3)
    x, y, z = np.meshgrid(*(grid.positions(axis) for axis in grid.axes), indexing="ij")
    radius = np.sqrt((x - 60e-3) ** 2 + y**2 + z**2)
    amplitude = result.arrays["p_amplitude"][0]
    assert target["pressure_Pa"] == pytest.approx(float(amplitude[32, 22, 18]))  # nearest to (10, 4, -3) mm
    assert target["brain"]["pressure_Pa"] == pytest.approx(float(amplitude[radius < 68e-3].max()), rel=0.1)
    skull = (radius > 72e-3) & (radius < 78e-3)
    assert target["bone"]["pressure_Pa"] == pytest.approx(float(amplitude[skull].max()), rel=0.1)
    axis = np.array([1.0, 0.05, -0.05]) / np.linalg.norm([1.0, 0.05, -0.05])
    offset = np.array(target["brain"]["place_m"]) - [10e-3, 4e-3, -3e-3]
    assert np.linalg.norm(offset - axis * (offset @ axis)) < 3e-3  # the peak lies on the beam
    assert target["heat"]["bone"]["temperature_C"] > target["heat"]["brain"]["temperature_C"] > 37.0
    assert any(line.startswith("peak in the brain: ") for line in result.lines)
    assert main(["report", "plan/out"]) == 0
    page = Path("plan/out/report.html").read_text()
    assert "<h2>Target</h2>" in page and "in the brain" in page and "data:image/png" in page


def test_rays_through_layers_take_the_sum_of_their_times():
    grid = Grid((60, 40), 0.5e-3)
    x = grid.positions("x")
    speed = np.broadcast_to(np.where((x > 0) & (x < 5e-3), 3000.0, 1500.0)[:, None], grid.shape)
    times = ray_times(grid, speed, [[-10e-3, 1e-3], [-10e-3, 5e-3], [-5e-3, -2e-3]], [8e-3, 1e-3])
    slanted = math.hypot(18, 4) / 18
    # the layer of nine points is 4.5 mm thick
    expected = np.array([13.5 / 1.5 + 1.5, (13.5 / 1.5 + 1.5) * slanted, (8.5 / 1.5 + 1.5) * math.hypot(13, 3) / 13])
    np.testing.assert_allclose(times * 1e6, expected, rtol=2e-3)
    elements, target = [[-10e-3, 1e-3], [-10e-3, 5e-3]], [8e-3, 1e-3]
    uniform = ray_delays(grid, 1500.0, elements, target)
    np.testing.assert_allclose(uniform, focus_delays(elements, target, 1500.0), atol=1e-15)
    with pytest.raises(CaseError, match="sources, target: "):
        ray_times(grid, speed, [[0.0, 0.0, 0.0]], [8e-3, 1e-3])


STEERED = """solver = "ultrasound"
[grid]
shape = [80, 80]
spacing = "0.5 mm"
duration = "36 us"
[layer]
points = 8
[medium]
sound_speed = "1500 m/s"
density = "1000 kg/m^3"
[[medium.region]]
kind = "box"
lower = ["-6 mm", "-2 mm"]
upper = ["1 mm", "25 mm"]
sound_speed = "2200 m/s"
[target]
position = ["9 mm", "2 mm"]
bone_speed = "2000 m/s"
[record]
frequencies = ["500 kHz"]
[run]
threads = 1
"""


def test_steered_sources_arrive_in_phase(tmp_path):
    """A slab covers a part of the aperture: with steering the amplitudes of single sources nearly add up."""
    tables = [
        f'[[source]]\nkind = "line"\nstart = ["-14 mm", "{y - 1} mm"]\nend = ["-14 mm", "{y + 1} mm"]\n'
        'frequency = "500 kHz"\namplitude = "10 kPa"\n'
        for y in (-9, 0, 8)
    ]

    def amplitude(sources: list[str], steering: str) -> dict[str, object]:
        text = STEERED.replace("[record]", f'steering = "{steering}"\n[record]') + "".join(sources)
        return load(case(tmp_path, text), replace=True).run(visible=False).summary["details"]["target"]

    alone = sum(amplitude([table], "none")["pressure_Pa"] for table in tables)
    steered, plain, reversed_time = (amplitude(tables, name) for name in ("ray", "none", "time-reversal"))
    assert 0.93 < steered["pressure_Pa"] / alone < 1.02
    assert steered["pressure_Pa"] < reversed_time["pressure_Pa"] and 0.99 < reversed_time["pressure_Pa"] / alone < 1.001
    assert max(reversed_time["steering"][f"sources.{k}"]["delay_s"] for k in range(3)) < 2e-6
    assert plain["pressure_Pa"] < 0.8 * alone
    delays = [steered["steering"][f"sources.{k}"]["delay_s"] for k in range(3)]
    assert min(delays) == 0.0 and max(delays) > 1e-6 and "steering" not in plain
    phases = [steered["steering"][f"sources.{k}"]["phase_rad"] for k in range(3)]
    np.testing.assert_allclose(np.exp(1j * np.array(phases)), np.exp(-2j * np.pi * 5e5 * np.array(delays)), atol=1e-9)
    page = target_section({"target": steered}, None)
    assert "phase (degrees)" in page and f"{1e6 * delays[1]:.4g}" in page
    assert "phase (degrees)" not in target_section({"target": plain}, None)
