# SPDX-License-Identifier: BSD-3-Clause
"""`seiche check --picture`: what each kind of case draws before it runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from case_files import blood_tables, toml_of, tube_tables
from seiche.case.kinds import kind_of
from seiche.case.load import read_source
from seiche.cli import main
from seiche.report import case_figure
from seiche.report.case_figure import CasePicture, disc
from ultrasound_cases import BASIC
from waves_cases import BLOCK, FORCE, SOIL


def picture_of(path: Path) -> CasePicture:
    source = read_source(path)
    draw = kind_of(source).picture
    assert draw is not None
    return draw(source)


def test_a_vessel_is_drawn_with_its_openings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The thickness of the fluid adds up to the number of sites on every panel."""
    (tmp_path / "case.toml").write_text(toml_of(tube_tables()))
    picture = picture_of(tmp_path / "case.toml")
    assert [group.name for group in picture.groups] == ["inlet", "outlet"]
    totals = [np.nansum(panel.values) for panel in picture.panels]
    assert len(totals) == 3 and totals == pytest.approx([totals[0]] * 3) and totals[0] > 0.1
    assert picture.panels[0].extent == pytest.approx((0.0, 4e-3, -1e-3, 1e-3))
    file = tmp_path / "case.png"
    assert main(["check", str(tmp_path / "case.toml"), "--picture", str(file)]) == 0
    assert file.read_bytes().startswith(b"\x89PNG") and not (tmp_path / "out").exists()
    assert f"picture: {file}" in capsys.readouterr().out
    file.write_text("notes of the user")
    assert main(["check", str(tmp_path / "case.toml"), "--picture", str(file)]) == 2
    assert file.read_text() == "notes of the user"
    assert main(["check", str(tmp_path / "case.toml"), "--picture", str(tmp_path / "a.txt")]) == 2
    assert "has no known suffix; expected .png, .pdf, .svg" in capsys.readouterr().err


def test_blood_has_its_cells(tmp_path: Path) -> None:
    (tmp_path / "case.toml").write_text(toml_of(blood_tables()))
    picture = picture_of(tmp_path / "case.toml")
    groups = picture.groups
    assert [group.name for group in groups] == ["4 red"] and groups[0].points.shape == (4, 3)
    bodies = groups[0].bodies
    assert bodies is not None and len(bodies) == 4
    np.testing.assert_allclose(bodies.mean(axis=1), groups[0].points, atol=1e-7)
    widths = np.linalg.norm(bodies[:, :, None] - bodies[:, None], axis=-1).max(axis=(1, 2))
    np.testing.assert_allclose(widths, widths[0])
    assert 7e-6 < widths[0] < 8.5e-6  # a red cell


def drawn(picture: CasePicture, monkeypatch: pytest.MonkeyPatch) -> Figure:
    stored: list[Figure] = []
    monkeypatch.setattr(case_figure, "store", lambda figure, *arguments: stored.append(figure))
    case_figure.case_figure("a.png", picture)
    return stored[0]


def test_a_uniform_medium_has_its_value_as_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "case.toml").write_text(BASIC)
    figure = drawn(picture_of(tmp_path / "case.toml"), monkeypatch)
    assert figure.get_suptitle().endswith("\nuniform sound speed: 1500 m/s")
    assert len(figure.axes) == 1  # no colour bar
    figure.canvas.draw()
    box = figure.axes[0].get_tightbbox().transformed(figure.transFigure.inverted())
    assert box.x0 < 0.2 and box.x1 > 0.8  # the panel fills the page


def test_panels_of_a_vessel_have_one_scale_and_one_unit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "case.toml").write_text(toml_of(blood_tables()))
    picture = picture_of(tmp_path / "case.toml")
    figure = drawn(picture, monkeypatch)
    figure.canvas.draw()
    *panels, bar = figure.axes
    assert len(panels) == 3 and bar.get_ylabel() == "thickness of the fluid (µm)"
    assert all(axes.get_xlabel().endswith("(µm)") and axes.get_ylabel().endswith("(µm)") for axes in panels)
    scales = [axes.get_window_extent().width / np.ptp(axes.get_xlim()) for axes in panels]
    assert scales == pytest.approx([scales[0]] * 3, rel=0.05)
    # The outlines of cells are those of whole cells, and of their images beyond periodic ends.
    outlines = [path.vertices for path in panels[0].collections[0].get_paths()]
    assert len(outlines) >= 4 and max(np.ptp(points, axis=0).max() for points in outlines) > 5.0


def test_ultrasound_has_its_medium_sources_and_sensors(tmp_path: Path) -> None:
    (tmp_path / "case.toml").write_text(BASIC)
    picture = picture_of(tmp_path / "case.toml")
    assert len(picture.panels) == 1 and (picture.panels[0].values == 1500.0).all()
    assert picture.groups and picture.outlines[0][0] == "absorbing layer"
    low, high = picture.panels[0].extent[::2], picture.panels[0].extent[1::2]
    for group in picture.groups:
        assert (group.points >= np.array(low) - 1e-9).all() and (group.points <= np.array(high) + 1e-9).all()


def test_waves_have_their_media_sources_and_receivers(tmp_path: Path) -> None:
    where = 'where = { kind = "layer", bottom = "0 m", top = "5 m" }'
    rock = SOIL.replace("soil", "rock").replace("800", "900") + where
    text = BLOCK + 'size = "5 m"' + SOIL + rock + FORCE + '[time]\nduration = "10 ms"\n'
    (tmp_path / "case.toml").write_text(text)
    picture = picture_of(tmp_path / "case.toml")
    assert [group.name for group in picture.groups] == ["sources", "receivers"]
    np.testing.assert_allclose(picture.groups[1].points, [[12.0, 10.0, 10.0]])
    below, across = picture.panels[:2]
    assert (below.values == 900.0).all() and below.title == "z = 4 m"
    half = len(across.values) // 2
    assert (across.values[:half] == 900.0).all() and (across.values[half + 1 :] == 800.0).all()


def test_a_disc_has_its_radius_and_points_along_its_normal() -> None:
    points = disc((1.0, 2.0, 3.0), (0.0, 3.0, 4.0), 0.5)
    offsets = points[:49] - np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(np.linalg.norm(offsets, axis=1), 0.5)
    np.testing.assert_allclose(offsets @ np.array([0.0, 0.6, 0.8]), 0.0, atol=1e-12)
    np.testing.assert_allclose(points[50], [1.0, 2.3, 3.4])
