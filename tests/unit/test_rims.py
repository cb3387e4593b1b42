# SPDX-License-Identifier: BSD-3-Clause
"""Iolets of an STL surface that say no place are its open rims, in order of size or by name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from case_files import SOURCE, changed, check_case, toml_of, tube_tables, vessel_of
from seiche.case.flow.rims import planes_of, rims_of
from seiche.cli import main
from seiche.domain.bifurcation import bifurcation_surface
from seiche.domain.surface import Surface
from seiche.errors import CaseError
from seiche.io.formats.stl import read_stl, write_stl


@pytest.fixture(scope="module")
def stl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an STL of a bifurcation: open rims of radius 1.5, 1.25 and 1.12 mm, coordinates in metres."""
    path = tmp_path_factory.mktemp("stl") / "vessel.stl"
    write_stl(path, bifurcation_surface()[0])
    return path


def tables(stl: Path, *names: str) -> dict[str, Any]:
    case = changed(tube_tables(), "geometry", {"spacing": "0.3 mm", "stl": str(stl), "unit": "1 m"})
    case["iolet"] = [{"name": name, "kind": "pressure", "pressure": "0 mmHg"} for name in names]
    return case


def message(case: dict[str, Any]) -> str:
    with pytest.raises(CaseError) as raised:
        vessel_of(case)
    assert "\n" not in str(raised.value)
    return str(raised.value).removeprefix(f"{SOURCE}: ")


def test_rims_are_the_openings_that_the_shape_was_made_with(stl: Path) -> None:
    sites = vessel_of(tables(stl, "inlet", "left", "right")).sites
    placed = vessel_of(
        changed(
            changed(tube_tables(), "geometry", {"spacing": "0.3 mm", "shape": {"kind": "bifurcation"}}),
            "iolet",
            [{"name": n, "kind": "pressure", "pressure": "0 mmHg"} for n in ("inlet", "outlet1", "outlet2")],
        )
    ).sites
    for result, true in zip(sites.iolets, bifurcation_surface()[1], strict=True):
        assert np.allclose(result.center, true.center, atol=2e-7)
        assert np.allclose(result.normal, true.normal, atol=1e-6)
        assert result.radius == pytest.approx(true.radius, rel=2e-3)
    assert len(sites) == pytest.approx(len(placed), rel=2e-3)
    assert [np.count_nonzero(sites.link_iolet == k) for k in range(3)] == pytest.approx(
        [np.count_nonzero(placed.link_iolet == k) for k in range(3)], rel=0.05
    )


def test_names_of_rims_and_given_places_come_before_the_order_of_size(stl: Path) -> None:
    case = tables(stl, "a", "rim0", "b")
    surface = Surface(np.asarray(read_stl(stl).vertices), read_stl(stl).faces)
    by_name = planes_of(check_case(case, SOURCE), surface)
    assert [plane.name for plane in by_name] == ["a", "rim0", "b"]
    assert [plane.radius for plane in by_name] == pytest.approx([1.25e-3, 1.5e-3, 1.12e-3], rel=2e-3)
    assert all(plane.role == "outlet" for plane in by_name)
    case = tables(stl, "a", "b", "c")
    case["iolet"][2] |= {"center": ["-9 mm", "0 mm", "0 mm"], "normal": [1, 0, 0], "radius": "1.6 mm"}
    case["iolet"][0]["radius"] = "1.3 mm"
    with_place = planes_of(check_case(case, SOURCE), surface)
    assert [plane.radius for plane in with_place] == pytest.approx([1.3e-3, 1.12e-3, 1.6e-3], rel=2e-3)


def test_rims_of_one_size_are_ordered_by_their_place() -> None:
    angle = np.arange(40) * np.pi / 20
    ring = np.stack([np.zeros(40), np.cos(angle), np.sin(angle)], axis=1)
    jitter = 1.0 + 1e-5 * np.random.default_rng(5).random(40)[:, None]
    vertices = np.concatenate([ring, ring * jitter + np.array([4.0, 0, 0])])
    side = [(k, 40 + k, (k + 1) % 40) for k in range(40)]
    side += [((k + 1) % 40, 40 + k, 40 + (k + 1) % 40) for k in range(40)]
    tube = Surface(vertices, np.array(side, np.int32))
    assert [rim.center[0] for rim in rims_of(tube)] == pytest.approx([0.0, 4.0])
    turned = Surface(vertices * np.array([-1, 1, 1]), np.array(side, np.int32)[:, ::-1].copy())
    assert [rim.center[0] for rim in rims_of(turned)] == pytest.approx([-4.0, 0.0])


def test_a_hole_is_no_opening_when_the_iolets_name_their_rims(stl: Path, tmp_path: Path) -> None:
    surface = read_stl(stl)
    points = np.asarray(surface.vertices)[surface.faces].mean(axis=1)
    hole = np.linalg.norm(points - points[len(points) // 3], axis=1) < 1.5e-4
    write_stl(tmp_path / "hole.stl", Surface(surface.vertices, surface.faces[~hole]))
    vessel = vessel_of(tables(tmp_path / "hole.stl", "rim0", "rim1", "rim2"))
    assert [note for note in vessel.notes if note.startswith("hole of radius")]
    output = message(tables(tmp_path / "hole.stl", "a", "b", "c"))
    assert output.startswith(
        "iolet: 3 iolets (a, b, c) without a center, but 4 unassigned open rims (rim0 of radius 0.0015 m at (-0."
    )
    assert output.endswith("set the center of each iolet, or use the name of its rim")


def test_arguments_that_do_not_match_are_reported_in_one_line(stl: Path, tmp_path: Path) -> None:
    assert message(tables(stl, "a", "b")).startswith(
        "iolet: 2 iolets (a, b) without a center, but 3 unassigned open rims (rim0 of"
    )
    assert "4 iolets (a, b, c, d) without a center, but 3 unassigned open rims" in message(
        tables(stl, "a", "b", "c", "d")
    )
    assert message(tables(stl, "a", "rim1", "rim3")) == (
        'iolet["rim3"].name: no unassigned open rim has this name; unassigned are rim0, rim2'
    )
    assert message(tables(stl, "rim0", "rim1", "rim2", "rim7")).endswith("unassigned are none")
    lost = tables(stl, "a", "b", "c")
    lost["iolet"][1]["normal"] = [1, 0, 0]
    assert message(lost) == 'iolet["b"].center: is missing; a normal requires a center'
    half = tables(stl, "a", "b", "c")
    half["iolet"][1]["center"] = ["0 m", "0 m", "0 m"]
    assert message(half).startswith(
        'iolet["b"].normal: is missing; a closed surface requires center, normal and radius'
    )
    assert "unassigned open rims (none)" in message(tables(stl, "rim0", "rim1", "rim2", "x"))
    closed = read_stl(stl)
    write_stl(tmp_path / "closed.stl", closed.capped(closed.boundary_loops()))
    assert message(tables(tmp_path / "closed.stl", "a")) == (
        'iolet["a"].center: is missing; the surface has no open rim, so center, normal and radius are required'
    )


def test_check_lists_the_rims_and_proposes_tables(
    stl: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "case.toml"
    path.write_text(toml_of(tables(stl, "inlet", "left", "right")))
    assert main(["check", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == ('rim0: center (-0.009, 0, 0) m, normal (1, 0, 0) inwards, radius 0.0015 m, iolet "inlet"')
    assert [line.rpartition(", ")[2] for line in lines[:3]] == ['iolet "inlet"', 'iolet "left"', 'iolet "right"']
    assert "[[iolet]]" not in lines
    path.write_text(toml_of(tables(stl, "inlet")))
    assert main(["check", str(path)]) == 2
    out, error = capsys.readouterr()
    assert error.startswith(
        f"seiche: error: {path}: iolet: 1 iolet (inlet) without a center, but 3 unassigned open rims"
    )
    assert out.count("no iolet") == 3
    # The proposed tables, put into the case, make it whole.
    proposal = out.partition("tables for the rims without an iolet:")[2]
    path.write_text(toml_of(tables(stl)).replace("iolet = []\n", "") + proposal)
    assert main(["check", str(path)]) == 0
    out = capsys.readouterr().out
    assert 'radius 0.001119 m, iolet "rim2"' in out
    assert re.search(r"^iolet rim0 +outlet at \(-0\.009, ", out, re.MULTILINE)
