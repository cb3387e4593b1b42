# SPDX-License-Identifier: BSD-3-Clause
"""What pictures show: wall shear stress of a tube, record sections, colour scales with a source."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image

from seiche.case.flow.wall import make_wall, wall_surface
from seiche.case.labels import Labelled, LabelledArrays
from seiche.cli import main
from seiche.domain.shapes import tube
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.flow import FlowModel, Newtonian, PressureIolet, Solver, VelocityIolet
from seiche.report.color_range import color_top
from seiche.report.section_figure import SectionStyle, distances_along_line, scaled_traces, section_of
from seiche.report.surface import DrawnSurface, shaded_triangles
from seiche.report.ultrasound_figure import Panel, UltrasoundPicture, ultrasound_figure


def test_wall_shear_stress_of_a_tube_is_drawn_uniform_within_five_per_cent() -> None:
    sites = tube(radius=8.0, length=40.0, spacing=1.0)
    iolets = (VelocityIolet(mean=0.01, ramp=100.0), PressureIolet(mean=1.0))
    solver = Solver(sites, FlowModel(Newtonian(viscosity=0.1), iolets=iolets), device="cpu")
    solver.advance(1500)
    stress = solver.fields(["wall_shear_stress"])["wall_shear_stress"]
    wall = make_wall(sites, wall_surface(sites), solver.owned)
    drawn = shaded_triangles(DrawnSurface(wall.vertices, wall.faces, wall.sample(World.serial(), stress)))
    inside = np.abs(drawn.corners.mean(axis=1)[:, 0] - 20.0) < 8.0
    values = drawn.values[inside]
    assert inside.sum() > 20_000
    assert np.abs(values / values.mean() - 1).max() < 0.05 and values.std() < 0.02 * values.mean()
    # Of the sites next to the wall, on stairs, the stress varies much more.
    near = np.abs(sites.coords[wall.sites][:, 0] - 20.0) < 8.0
    at_sites = np.linalg.norm(stress[wall.field_rows], axis=1)[near]
    assert at_sites.std() > 0.1 * at_sites.mean()


def test_divided_triangles_keep_area_and_linear_values() -> None:
    vertices = np.array([[0.0, 0, 0], [2, 0, 0], [0, 1, 0], [2, 1, 0]])
    faces = np.array([[0, 1, 2], [1, 3, 2]])
    drawn = shaded_triangles(DrawnSurface(vertices, faces, 3 * vertices[:, 0] + vertices[:, 1]))
    sides = drawn.corners[:, 1:] - drawn.corners[:, :1]
    areas = 0.5 * np.cross(sides[:, 0], sides[:, 1])[:, 2]
    assert (areas > 0).all() and areas.sum() == pytest.approx(2.0)
    np.testing.assert_allclose(drawn.values, drawn.corners.mean(axis=1) @ [3, 1, 0], atol=1e-12)
    np.testing.assert_allclose(drawn.normals, np.tile([0.0, 0, 1], (len(areas), 1)), atol=1e-12)


def test_a_source_does_not_saturate_the_picture(tmp_path: Path) -> None:
    x = np.linspace(-0.01, 0.01, 101)
    radius = np.hypot(*np.meshgrid(x, x, indexing="ij"))
    pressure = np.cos(3e3 * radius) / np.sqrt(np.maximum(radius, 2e-4))
    pressure[50, 50] = 5e3  # the source point
    top, is_clipped = color_top(pressure)
    assert is_clipped and top < 0.02 * pressure.max()
    assert np.mean(np.abs(pressure) > 0.2 * top) > 0.5
    assert color_top(np.array([1.0, -1.5])) == (1.5, False) and color_top(np.zeros(3)) == (1.0, False)
    speed = np.where(x[:, None] + 0 * x > 0, 3000.0, 1500.0)
    panel = Panel("final pressure", "Pa", pressure, both_signs=True)
    ultrasound_figure(tmp_path / "a.png", "a.png", UltrasoundPicture([x, x], [panel], speed))
    picture = np.asarray(Image.open(tmp_path / "a.png").convert("RGB"), float)
    # Red and blue waves over a large part of the panel, not one red point on white.
    assert np.mean(picture[..., 0] - picture[..., 2] > 40) > 0.02
    assert np.mean(picture[..., 2] - picture[..., 0] > 40) > 0.02


def wave(receivers: int, angle: float = 0.3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return positions on a line, times, and a pulse that travels along it at 2000 m/s."""
    along, times = np.linspace(0.0, 990.0, receivers), np.linspace(0.0, 1.0, 501)
    positions = 100.0 + along[:, None] * [np.cos(angle), np.sin(angle)]
    delay = times - 0.2 - along[:, None] / 2000.0
    return positions, times, np.exp(-((delay / 0.02) ** 2)) * (1 + along[:, None] / 100)


def test_a_section_orders_receivers_by_their_distance() -> None:
    positions, times, traces = wave(12)
    order = np.random.default_rng(1).permutation(np.arange(1, 12))
    mixed = np.concatenate([[0], order])
    section = section_of(positions[mixed], times, traces[mixed], ("vz", "m/s"))
    assert section is not None
    np.testing.assert_allclose(section.distances, np.linspace(0.0, 990.0, 12), atol=1e-9)
    arrivals = section.times[section.traces.argmax(axis=1)]
    np.testing.assert_allclose(arrivals, 0.2 + section.distances / 2000.0, atol=2e-3)
    assert distances_along_line(positions + np.eye(12)[:, :2] * 200) is None
    assert distances_along_line(np.zeros((3, 2))) is None


def test_gain_and_clip() -> None:
    traces = wave(12)[2]
    common, clip = scaled_traces(traces, SectionStyle(percentile=100.0))
    assert clip == pytest.approx(traces.max()) and common.max() == 1.0 and common[0].max() < 0.2
    each, _ = scaled_traces(traces, SectionStyle(gain="trace", percentile=100.0))
    np.testing.assert_allclose(each.max(axis=1), 1.0)
    clipped, value = scaled_traces(traces, SectionStyle(percentile=95.0))
    assert np.mean(np.abs(traces) > value) == pytest.approx(0.05, abs=0.01) and clipped.max() == 1.0
    assert np.isfinite(scaled_traces(np.zeros((2, 3)), SectionStyle())[0]).all()
    for arguments, text in (
        ({"gain": "x"}, "gain 'x'"),
        ({"style": "x"}, "style 'x'"),
        ({"percentile": 5.0}, "percent"),
    ):
        with pytest.raises(CaseError, match=text):
            SectionStyle(**arguments)


def test_render_draws_a_section_of_the_receivers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    positions, times, traces = wave(24)
    with h5py.File(tmp_path / "receivers.h5", "w") as file:
        file["time"], file["position"] = times, positions
        file["name"], file["field"] = [str(k) for k in range(24)], ["vx", "vy"]
        file["samples"] = np.stack([0 * traces, traces], axis=2)
    for style in ("wiggle", "image"):
        target = tmp_path / f"{style}.png"
        options = ["--section", "vy", "--style", style, "--gain", "trace", "--size", "120x100", "--dpi", "127"]
        assert main(["render", str(tmp_path), *options, "-o", str(target)]) == 0
        picture = np.asarray(Image.open(target).convert("L"), float)
        assert picture.shape == (500, 600)
        # The arrival goes from the upper left to the lower right.
        dark = picture[60:440, 100:560] < 90
        # Lobes of wiggles are wider than the lines of quiet traces.
        rows, columns = np.nonzero(dark[:, 4:] & dark[:, 2:-2] & dark[:, :-4])
        assert np.corrcoef(rows, columns)[0, 1] > 0.8
    assert main(["render", str(tmp_path), "--section", "vz"]) == 2
    assert "--section vz: the receivers have vx, vy" in capsys.readouterr().err


def test_plot_draws_many_receivers_on_a_line_as_a_section() -> None:
    positions, times, traces = wave(20)
    arrays = {"receiver_vy": Labelled(traces.T, ("record_time", "receiver"), "m/s")}
    coordinates = {"record_time": Labelled(times, ("record_time",), "s")}
    coordinates |= {f"receiver_{axis}": Labelled(positions[:, k], ("receiver",), "m") for k, axis in enumerate("xy")}
    panel = LabelledArrays("line", 1.0, arrays, coordinates).plot("receiver_vy").figure.axes[0]
    assert panel.get_xlabel() == "distance along the line (m)" and panel.get_ylabel() == "time (s)"
    assert panel.yaxis_inverted() and "99th percentile" in panel.get_title()
