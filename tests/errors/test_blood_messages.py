# SPDX-License-Identifier: BSD-3-Clause
"""Cells that cannot be: the one line each gets at check time."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from case_files import blood_tables, case_error, changed, toml_of
from seiche.case.blood.estimates import blood_estimates
from seiche.case.loading import load, prepare
from seiche.cells import icosphere, read_mesh
from seiche.domain.surface import Surface
from seiche.errors import CaseError, UnstableError
from seiche.io.formats.pos import write_pos
from seiche.io.formats.stl import write_stl
from seiche.solver.estimate import warnings_of


def narrow(tables: dict[str, Any]) -> dict[str, Any]:
    return changed(tables, "geometry.shape", {"kind": "tube", "radius": "3 um", "length": "20 um", "periodic": True})


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("packing.hematocrit", 0.8, "packing.hematocrit = 0.8: expected a number above 0 and at most 0.6"),
        (
            "packing.hematocrit",
            0.01,
            "packing.hematocrit = 0.01: gives less than one cell; the volume of the vessel is 17.7 times that",
        ),
        ("packing.hematocrit", 1.5, "packing.hematocrit: 1.5 is out of range; expected < 1"),
        (
            "lattice.tau",
            80.0,
            "lattice: tau = 80 is out of range (<= 20 for trt)",
        ),
        (
            "cells.0.volume",
            "1 MPa",
            'lattice: a time step of 3.56e-08 s is unstable for cells "red": the volume allows at most',
        ),
        ("cells.0.area_ratio", 1e5, 'is unstable for cells "red": the area ratio allows at most'),
        ("cells.0.area_ratio", 1e9, "the area ratio allows at most"),
        ("cells.0.area_ratio", 1e10, 'cells["red"].area_ratio: 10000000000.0 is out of range; expected <= 1e+09'),
        (
            "contact",
            {"adhesion": {"depth": "1e-18 J", "steepness": "5 1/um", "rest": "2 um", "reach": "1 um"}},
            "contact.adhesion: rest = 2e-06 m must be below reach = 1e-06 m, otherwise there is no attraction",
        ),
        ("cells.0.shape.vertices", 100, 'cells["red"]: mesh: 100 vertices: expected one of 12, 42, 162'),
        ("cells.0.shape.diameter", "0 um", 'cells["red"].shape.diameter: "0 um" is out of range; expected > 0'),
        ("cells.0.inner_viscosity", "0 mPa s", 'inner_viscosity: "0 mPa s" is out of range; expected > 0'),
        ("cells.0.shear_modulus", "5.3 um", 'shear_modulus: "5.3 um" is a length; expected a surface modulus such as'),
        ("cells.0.strain_modulus", "5 uN/m", "give exactly one of shear_modulus, strain_modulus; shear_modulus and"),
        ("cells.0.law", "neo-hookean", 'area_ratio is only allowed with law = "skalak"'),
        ("cells.0.positions", "red.pos", 'cells["red"].positions: is not allowed with [packing]; give one of them'),
        ("cells.0.positions_from", "box", 'cells["red"]: positions_from is only allowed with positions'),
        ("cells.0.positions_outside", "drop", 'cells["red"]: positions_outside is only allowed with positions'),
        (
            "output",
            {"cells": {"file": "a.vtkhdf", "every": 1, "positions_from": "box"}},
            "positions_from is only allowed with a .pos file",
        ),
        ("cells.0.share", 0.0, "cells: the shares of all types are zero; at least one must be positive"),
        ("cells", [], 'cells: is missing; solver = "blood" needs a [[cells]] table for each type of cells'),
        ("packing", None, 'cells["red"].positions: is missing; give positions for all types, or [packing]'),
        ("solver", "flow", 'cells: cells are only allowed with solver = "blood"'),
        (
            "contact",
            {"reach": "5 um"},
            "contact.reach: 5e-06 m is more than a third of the periodic extent along x; use "
            "a shorter reach or a longer vessel",
        ),
        ("coupling", {"slip": -0.1}, "coupling.slip: -0.1 is out of range; expected >= 0"),
        ("coupling", {"slip": 2}, "coupling.slip: 2 is out of range; expected <= 1"),
        ("coupling", {"slip": "text"}, 'coupling.slip: "text" is not a number'),
        (
            "reservoir",
            {},
            'reservoir: the vessel has no inlet; set role = "inlet" for the iolet through which cells enter',
        ),
        ("output", {"cells": {"file": "a.vtu", "every": 1}}, '"a.vtu" must end with .vtkhdf or .pos'),
        (
            "output",
            {"cells": {"file": "a.pos", "every": "1 ps"}},
            'output.cells["a.pos"].every: is shorter than half a time step of',
        ),
        (
            "fluid",
            {"rheology": {"kind": "carreau-yasuda", "preset": "human"}},
            "cells: inner_viscosity requires a Newtonian fluid outside the cells; set fluid.viscosity",
        ),
    ],
)
def test_an_impossible_case_with_cells_gives_a_one_line_error(
    path: str, value: Any, expected: str, tmp_path: Path
) -> None:
    tables = blood_tables()
    if path == "fluid":
        tables["cells"][0]["inner_viscosity"] = "6 mPa s"
        tables["lattice"]["tau"] = 0.6
    assert expected in case_error(tmp_path, changed(tables, path, value))


def test_contact_that_is_too_stiff_for_the_time_step_is_spoken_of(tmp_path: Path) -> None:
    tables = blood_tables()

    def advice(contact: dict[str, Any]) -> list[str]:
        path = tmp_path / "case.toml"
        path.write_text(toml_of(changed(tables, "contact", contact)))
        return [line for line in warnings_of(blood_estimates(prepare(path))) if line.startswith("contact")]

    assert not advice({"strength": "1 pN", "wall_strength": "10 pN"})
    (line,) = advice({"strength": "10 nN"})
    message = re.fullmatch(r"contact.strength: stiffness times mobility .*; use at most (\S+) N", line)
    assert message is not None and not advice({"strength": f"{0.99 * float(message[1]):.3g} N"})
    deep = {"depth": "1e-14 J", "steepness": "10 1/um", "rest": "0.3 um", "reach": "0.8 um"}
    (line,) = advice({"adhesion": deep})
    assert line.startswith("contact.adhesion.depth: stiffness times mobility")
    tables["geometry"]["shape"] = {"kind": "tube", "radius": "6 um", "length": "12 um", "periodic": True}
    (line,) = advice({"strength": "1 pN", "wall_strength": "10 nN"})
    assert line.startswith("contact.wall_strength: stiffness times mobility")
    # A wall that reaches less far is stiffer with the same strength.
    least = [
        float(
            advice({"strength": "10 nN", "reach": "1 um", "wall_reach": reach})[0].split("use at most ")[1].split()[0]
        )
        for reach in ("0.5 um", "1 um")
    ]
    assert least[0] == pytest.approx(0.5 * least[1], rel=0.05)


def test_more_inner_viscosities_than_sites_can_distinguish_are_rejected(tmp_path: Path) -> None:
    tables = blood_tables()
    first = tables["cells"][0]
    tables["cells"] = [{**first, "name": f"kind {k}", "inner_viscosity": f"{k + 2} mPa s"} for k in range(8)]
    assert case_error(tmp_path, tables) == ("viscosity_contrast: 8 different inner viscosities; the maximum is 7")


def test_a_wide_support_in_a_short_period_is_rejected(tmp_path: Path) -> None:
    shape = {"kind": "box", "size": ["12 um", "12 um", "3 um"]}
    expected = (
        "coupling.delta: the support of 4 sites (peskin) does not fit the periodic extent of 6 sites along "
        "z; at least 8 sites are needed"
    )
    assert case_error(tmp_path, changed(blood_tables(), "geometry.shape", shape)) == expected


def test_cells_larger_than_the_vessel_are_rejected(tmp_path: Path) -> None:
    expected = r'cells\["red"\].shape: a cell of 2.\d+ x [78.]+\d* x [78.]+\d* um is larger than the vessel; use'
    assert re.match(expected, case_error(tmp_path, narrow(blood_tables())))


def test_a_wall_that_reaches_less_far_than_its_points_is_rejected(tmp_path: Path) -> None:
    tables = changed(narrow(blood_tables()), "contact", {"wall_reach": "0.3 um"})
    assert case_error(tmp_path, tables) == (
        "contact.wall_reach: 3e-07 m is below one spacing, 5e-07 m; cells could pass between the points of the wall"
    )


def test_contact_with_a_wall_that_reaches_round_a_vessel_is_rejected(tmp_path: Path) -> None:
    shape = {"kind": "tube", "radius": "6 um", "length": "20 um", "periodic": True}
    tables = changed(changed(blood_tables(), "geometry.shape", shape), "contact", {"wall_reach": "7 um"})
    assert case_error(tmp_path, tables) == (
        "contact.wall_reach: 7e-06 m is more than a third of the periodic extent along x; use "
        "a shorter reach or a longer vessel"
    )


def test_open_meshes_are_rejected_and_inverted_ones_are_reversed(tmp_path: Path) -> None:
    ball = icosphere(162)
    shape = {"kind": "mesh", "file": "ball.stl", "unit": "2 um"}
    tables = changed(blood_tables(), "cells.0.shape", shape)
    write_stl(tmp_path / "ball.stl", Surface(ball.vertices, ball.faces[1:]))
    assert case_error(tmp_path, tables).startswith('cells["red"]: ')
    assert "the mesh is open: 3 edges belong to one triangle only" in case_error(tmp_path, tables)
    write_stl(tmp_path / "ball.stl", Surface(ball.vertices, np.ascontiguousarray(ball.faces[:, ::-1])))
    assert read_mesh(tmp_path / "ball.stl").volume == pytest.approx(ball.volume, rel=1e-6)


def test_a_mesh_that_is_not_there_is_named(tmp_path: Path) -> None:
    shape = {"kind": "mesh", "file": "ball.off", "unit": "2 um"}
    text = case_error(tmp_path, changed(blood_tables(), "cells.0.shape", shape))
    assert text == f"cells: {tmp_path / 'ball.off'}: No such file or directory"


@pytest.mark.parametrize(
    ("centers", "shape", "expected"),
    [
        (
            [[6, 6, 6], [6, 6, 7]],
            "box",
            'cells: positions: 1 pairs of cells overlap, the first are cell 0 of "red" and cell 1',
        ),
        ([[6, 0, 0], [6, 5, 0]], "tube", "red.pos: cell 1 at (6, 5, 0) um is not inside the vessel"),
        ([[6, 0, 0], [1e10, 0, 0]], "tube", "red.pos: cell 1 at (1e+10, 0, 0) um is not inside the vessel"),
    ],
)
def test_given_places_are_checked(centers: list[list[float]], shape: str, expected: str, tmp_path: Path) -> None:
    write_pos(tmp_path / "red.pos", 1e-6 * np.array(centers, float), np.stack([np.eye(3)] * 2))
    tables = blood_tables()
    del tables["packing"]
    tables["cells"][0]["positions"] = "red.pos"
    if shape == "tube":
        tables["geometry"]["shape"] = {"kind": "tube", "radius": "7 um", "length": "12 um", "periodic": True}
    assert expected in case_error(tmp_path, tables)


def test_a_checkpoint_without_cells_is_rejected(tmp_path: Path) -> None:
    tables = blood_tables()
    flow = {key: value for key, value in tables.items() if key not in ("cells", "packing")}
    tables["time"]["steps"] = flow["time"]["steps"] = 4
    for name, item in (("flow", {**flow, "solver": "flow"}), ("blood", tables)):
        item["output"] = {"checkpoint": {"every": 2}, "folder": name}
        (tmp_path / f"{name}.toml").write_text(toml_of(item))
        with load(tmp_path / f"{name}.toml") as simulation:
            simulation.run(steps=2)
    with pytest.raises(
        CaseError, match=r'flow/checkpoint\.seiche: the checkpoint belongs to a case with solver = "flow"'
    ):
        load(tmp_path / "blood.toml", restart=tmp_path / "flow" / "checkpoint.seiche", output=tmp_path / "new")
    with pytest.raises(
        CaseError, match=r'blood/checkpoint\.seiche: the checkpoint belongs to a case with solver = "blood"'
    ):
        load(tmp_path / "flow.toml", restart=tmp_path / "blood" / "checkpoint.seiche", output=tmp_path / "new")
    other = changed(tables, "cells.0.name", "white")
    (tmp_path / "other.toml").write_text(toml_of(other))
    with pytest.raises(
        CaseError, match=r"--restart: the types of cells in the checkpoint differ from those of .*other\.toml"
    ):
        load(tmp_path / "other.toml", restart=tmp_path / "blood" / "checkpoint.seiche", output=tmp_path / "new")


def off_file(folder: Path, vertices: list[tuple[float, float, float]], faces: list[tuple[int, int, int]]) -> str:
    """Write an .off file; return its name."""
    rows = [f"{len(vertices)} {len(faces)} 0", *(" ".join(map(str, v)) for v in vertices)]
    rows += [" ".join(map(str, (3, *face))) for face in faces]
    (folder / "mesh.off").write_text("OFF\n" + "\n".join(rows) + "\n")
    return "mesh.off"


CORNERS = [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)]
FACES = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]


def test_meshes_that_no_cell_can_have_are_rejected(tmp_path: Path) -> None:
    tables = changed(
        blood_tables(),
        "cells.0.shape",
        {"kind": "mesh", "file": off_file(tmp_path, CORNERS, FACES), "unit": "3 um"},
    )
    assert (
        "'red': an edge of its mesh joins two vertices with three neighbours each; a subdivision surface requires"
        in case_error(tmp_path, tables)
    )
    flat = [(x, y, 0.0) for x, y, _ in CORNERS[:3]] + [(0.2, 0.2, 0.0)]
    off_file(tmp_path, flat, FACES)
    assert "the mesh is flat: it encloses no volume" in case_error(tmp_path, tables)
    ball = icosphere(42)
    off_file(tmp_path, ball.vertices.tolist(), ball.faces.tolist())
    crossed = ball.vertices.copy()
    crossed[[0, 20]] = crossed[[20, 0]]
    off_file(tmp_path, crossed.tolist(), ball.faces.tolist())
    assert 'cells["red"]: mesh: the surface intersects itself: triangles' in case_error(tmp_path, tables)
    off_file(tmp_path, ball.vertices.tolist(), ball.faces.tolist())
    tables["cells"][0]["shape"]["unit"] = "3 mm"
    assert 'cells["red"]: a cell of 1.' in (line := case_error(tmp_path, tables))
    assert "is larger than the vessel of 1.73e-15 m^3; check the unit of its mesh" in line


@pytest.mark.parametrize("name", ["cells.wall.vtkhdf", "cells.000000010.vtkhdf", "cells.vtkhdf.series"])
def test_no_output_has_a_name_that_a_series_of_cells_makes(name: str, tmp_path: Path) -> None:
    output = {"cells": [{"file": "cells.vtkhdf", "every": 10}], "checkpoint": {"file": name}}
    assert case_error(tmp_path, changed(blood_tables(), "output", output)) == (
        f'output: two outputs write the file "{name}", one is output.cells["cells.vtkhdf"]'
    )


def test_names_of_types_can_stand_in_names_of_files(tmp_path: Path) -> None:
    expected = 'cells["../red"].name: "../red" is not a valid name; use letters, digits, spaces, - and _'
    assert expected in case_error(tmp_path, changed(blood_tables(), "cells.0.name", "../red"))


def test_a_run_that_ends_in_nothing_physical_does_not_say_done(tmp_path: Path) -> None:
    """Nothing is due at the last step but its end."""
    tables = changed(blood_tables(), "body_force", {"force": ["1e13 N/m^3", "0 N/m^3", "0 N/m^3"]})
    tables["time"]["steps"] = 30
    (tmp_path / "case.toml").write_text(toml_of(tables))
    with pytest.raises(UnstableError):
        load(tmp_path / "case.toml", output=tmp_path / "out").run()


def test_a_restart_with_cells_of_another_size_is_rejected(tmp_path: Path) -> None:
    tables = changed(blood_tables(), "time", {"steps": 2})
    tables["output"] = {"checkpoint": {"every": 2}}
    (tmp_path / "case.toml").write_text(toml_of(tables))
    load(tmp_path / "case.toml", output=tmp_path / "out").run()
    tables["cells"][0]["shape"]["diameter"], tables["time"]["steps"] = "6 um", 4
    (tmp_path / "other.toml").write_text(toml_of(tables))
    expected = r'--restart: undeformed cells "red" have 0\.4517 times the volume of those in the checkpoint'
    with pytest.raises(CaseError, match=expected):
        load(tmp_path / "other.toml", output=tmp_path / "two", restart=tmp_path / "out" / "checkpoint.seiche")


def test_a_restart_says_what_the_case_asks_otherwise_and_keeps_what_was_seen(tmp_path: Path) -> None:
    tables = changed(blood_tables(), "time", {"steps": 4})
    tables["body_force"] = {"force": ["1e5 N/m^3", "0 N/m^3", "0 N/m^3"]}
    tables["output"] = {"checkpoint": {"every": 2}}
    (tmp_path / "case.toml").write_text(toml_of(tables))
    first = load(tmp_path / "case.toml", output=tmp_path / "out")
    first.run(steps=2)
    tables["cells"][0]["shear_modulus"], tables["coupling"] = "4 uN/m", {"delta": "cosine"}
    (tmp_path / "other.toml").write_text(toml_of(tables))
    second = load(tmp_path / "other.toml", output=tmp_path / "two", restart=tmp_path / "out" / "checkpoint.seiche")
    assert first.blood is not None and second.blood is not None and not first.blood.changes
    assert second.blood.changes == [
        "cells.red.shear_modulus is 4e-06, but 5.3e-06 in the checkpoint",
        "coupling.delta is cosine, but peskin in the checkpoint",
    ]
    assert second.blood.statistics.volume_drift == first.blood.statistics.volume_drift > 0
    second.close()
    (tmp_path / "flat.toml").write_text(toml_of(changed(tables, "cells.0.model", "triangles")))
    with pytest.raises(CaseError, match=r'cells "red" have model = "loop" in the checkpoint but "triangles" in'):
        load(tmp_path / "flat.toml", output=tmp_path / "two", restart=tmp_path / "out" / "checkpoint.seiche")
    tables["geometry"]["shape"]["size"] = ["12 um", "12 um", "13 um"]
    (tmp_path / "longer.toml").write_text(toml_of(tables))
    with pytest.raises(CaseError, match=r"the checkpoint was written with a different geometry than .*longer\.toml"):
        load(tmp_path / "longer.toml", output=tmp_path / "two", restart=tmp_path / "out" / "checkpoint.seiche")
