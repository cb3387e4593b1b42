# SPDX-License-Identifier: BSD-3-Clause
"""Cells in a case file: units, places, memory and meshes."""

from __future__ import annotations

import gc
import json
import re
import tomllib
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial import cKDTree

from case_files import blood_tables, changed, open_blood_tables, toml_of
from seiche.backend.cpu import CpuBackend
from seiche.case.blood.cells import membrane
from seiche.case.blood.check import describe, memory_of_cells, memory_of_tube
from seiche.case.blood.run import BloodRun
from seiche.case.blood.schema import CellTable
from seiche.case.blood.setup import BloodSetup, open_vessel
from seiche.case.blood.tubes import plan_tubes
from seiche.case.flow.units import LatticeUnits
from seiche.case.loading import load, prepare
from seiche.cells import Skalak, red_cell
from seiche.cells.mesh import biconcave, ellipsoid
from seiche.cells.overlap import overlapping_pairs
from seiche.cells.red import AREA_RATIO, MODEL
from seiche.cells.space import FluidSpace, sparse_points, wall_points
from seiche.cli import main
from seiche.couple.limits import SPRING
from seiche.couple.open.inlet_reservoir import InletReservoir
from seiche.domain import shapes
from seiche.domain.surface import Surface
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.flow import Solver
from seiche.io.formats.pos import write_pos
from seiche.io.formats.stl import write_stl
from seiche.validate.cells.red_cells import PLASMA, CellLattice

ROOT = Path(__file__).parents[2]


def case_file(folder: Path, tables: dict[str, Any]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "case.toml").write_text(toml_of(tables))
    return folder / "case.toml"


def prepared(folder: Path, tables: dict[str, Any]) -> BloodSetup:
    return setup_of(case_file(folder, tables))


def setup_of(case: Path) -> BloodSetup:
    setup = prepare(case)
    assert isinstance(setup, BloodSetup)
    return setup


def test_moduli_become_numbers_of_the_lattice(tmp_path: Path) -> None:
    """Capillary number mu g a/G and a^2 G/k_b are the same in both units; k_s = 3 G."""
    setup = prepared(tmp_path, blood_tables())
    assert setup.cells is not None
    law, units = setup.cells.types[0].model.law, setup.units
    viscosity = (setup.invariants.tau[0] - 0.5) / 3
    assert viscosity * (1e3 * units.step) * (4e-6 / units.spacing) / law.shear == pytest.approx(
        1.2e-3 * 1e3 * 4e-6 / 5.3e-6
    )
    model = setup.cells.types[0].model
    assert law.shear * (4e-6 / units.spacing) ** 2 / model.bending == pytest.approx(5.3e-6 * 16e-12 / 2e-19)
    cell = blood_tables()["cells"][0]
    del cell["shear_modulus"]
    other = prepared(tmp_path, changed(blood_tables(), "cells", [{**cell, "strain_modulus": "15.9 uN/m"}]))
    assert other.cells is not None
    assert other.cells.types[0].model.law.shear == pytest.approx(law.shear)


def test_the_red_cell_of_cases_examples_docs_and_checks_is_one(tmp_path: Path) -> None:
    """The default of a case file, what examples and docs use and what is validated are `seiche.cells.red`."""
    default = CellTable(name="red")
    units = LatticeUnits(1e-6, 1e-6, 1000.0, 0.0)
    bare = membrane(default, units, 1.0 / 6.0)
    length, force = units.spacing, units.scale("force")
    for name in ("bending", "area", "local_area", "volume", "viscosity"):
        assert getattr(bare, name) == pytest.approx(getattr(MODEL.in_units(length, force, units.step), name))
    assert bare.spring == pytest.approx(SPRING / 6)
    assert bare.spontaneous_curvature == MODEL.spontaneous_curvature == "rest"
    assert (bare.law.shear, bare.shell, bare.points) == (
        pytest.approx(MODEL.in_units(length, force).law.shear),
        MODEL.shell,
        MODEL.points,
    )
    assert isinstance(bare.law, Skalak)
    assert bare.law.area_ratio == AREA_RATIO
    cell = red_cell(162)
    np.testing.assert_allclose(np.ptp(cell.mesh.vertices[:, 0]), 1e6 * default.shape.diameter, rtol=0.01)
    lattice = CellLattice(0.5, 4e-6, PLASMA)
    checked = lattice.red_cell(162)
    np.testing.assert_allclose(0.5 * checked.mesh.vertices, cell.mesh.vertices)
    tension = lattice.force / lattice.spacing
    for name, unit in (
        ("area", tension),
        ("local_area", tension),
        ("volume", tension / lattice.spacing),
        ("viscosity", tension * lattice.step),
    ):
        assert getattr(checked.model, name) * unit == pytest.approx(getattr(cell.model, name))
    # Examples and the page name no modulus of a red cell but those by which they differ on purpose.
    known = {"name", "shape", "share", "positions", "positions_from", "positions_outside", "inner_viscosity"}
    texts = [path.read_text() for path in (ROOT / "examples").glob("*/case*.toml")]
    texts += re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "howto" / "blood.md").read_text(), re.DOTALL)
    red = [t for text in texts for t in tomllib.loads(text).get("cells", []) if t["name"] == "red"]
    assert len(red) >= 3
    assert all(set(table) <= known | {"area", "volume"} for table in red)
    assert set().union(*red) & {"area", "volume"} == {"area", "volume"}  # of the fast flow of blood-tube


def test_a_round_tube_is_as_wide_as_its_links_say() -> None:
    sites = shapes.tube(12.0, 20.0, 1.0, axis=(1.0, 0.0, 0.0), periodic=True)
    space = FluidSpace(sites)
    middle = -np.asarray(sites.origin)
    points = np.random.default_rng(1).uniform([0, -3, -3], [20, 27, 27], (4000, 3))
    exact = np.hypot(points[:, 1] - middle[1], points[:, 2] - middle[2]) - 12.0
    error = np.abs(space.distance(points) - exact)
    assert error[np.abs(exact) < 3].max() < 0.2
    assert error.max() < 0.6
    assert space.volume == len(sites)


def test_the_points_of_a_wall_that_push_leave_no_holes() -> None:
    sites = shapes.tube(9.3, 20.0, 1.0, axis=(1.0, 0.3, 0.2))
    every = wall_points(sites)[0]
    subset = sparse_points(every)
    assert len(subset) < 0.4 * len(every)
    between = cKDTree(subset).query(every)[0]
    assert between.max() < 1.0  # the reach of their force
    assert sparse_points(np.zeros((0, 3))).shape == (0, 3)


def test_check_says_what_cells_are_and_what_limits_the_step(tmp_path: Path) -> None:
    setup = prepared(tmp_path, blood_tables())
    lines = describe(setup, measure=False)
    text = "\n".join(lines)
    assert "cells red        4 of 162 vertices (loop), area 140.4 um^2, volume 97.38 um^3" in text
    assert "G = 5.3 uN/m (k_s = 3 G = 15.9 uN/m), area modulus 251.3 uN/m, bending 2e-19 J" in text
    assert re.search(r"s, set by the (volume|shear modulus|area ratio|area|local area|bending) \(\d+%\)", text)
    assert "hematocrit       0.2254 (0.22 requested), 4 cells, no overlaps" in text
    coarse = prepared(tmp_path, changed(blood_tables(), "coupling", {"delta": "roma"}))
    assert any(
        "mean edge 2.004 spacings is above 1.6: fluid leaks through the membrane with roma" in line
        for line in describe(coarse)
    )


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"geometry.shape.radius": "9 um", "geometry.shape.length": "30 um", "cells.0.shape.vertices": 642},
        {"lattice.layout": "tiles-8", "run.precision": {"compute": "float32"}},
        {"fluid.viscosity": "2 mPa s"},
    ],
)
def test_memory_is_what_the_check_says(
    changes: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = blood_tables()
    tables["geometry"]["shape"] = {"kind": "tube", "radius": "7 um", "length": "12 um", "periodic": True}
    tables["cells"][0]["inner_viscosity"] = "2 mPa s"
    for path, value in changes.items():
        tables = changed(tables, path, value)
    setup = prepared(tmp_path, tables)
    solver = Solver(
        setup.vessel.sites,
        setup.model,
        precision=setup.precision,
        layout=tables["lattice"].get("layout", "auto"),
        immersed=True,
    )
    zeros, allocated = CpuBackend.zeros, []

    def counting(self: CpuBackend, *arguments: Any) -> Any:
        array = zeros(self, *arguments)
        allocated.append(array.nbytes)
        return array

    monkeypatch.setattr(CpuBackend, "zeros", counting)
    BloodRun(setup, solver)
    assert setup.cells is not None and setup.cells.packing is not None
    predicted = memory_of_cells(setup, setup.cells)
    assert predicted.total == pytest.approx(sum(allocated), rel=0.1)
    cells = len(setup.cells.packing.kinds)
    parts = predicted.site * len(setup.vessel.sites) + cells * predicted.cell["red"]
    assert parts == pytest.approx(predicted.total, rel=0.02)


def test_memory_of_a_reservoir_is_what_the_check_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = changed(open_blood_tables(4.0, 10.0, 50), "cells.0.inner_viscosity", "2 mPa s")
    setup = prepared(tmp_path, changed(tables, "lattice.layout", "tiles-8"))
    assert setup.cells is not None
    plan = plan_tubes(setup, setup.cells)["inlet"]
    zeros, allocated = CpuBackend.zeros, []

    def counting(self: CpuBackend, *arguments: Any) -> Any:
        array = zeros(self, *arguments)
        allocated.append(weakref.ref(array if array.base is None else array.base))
        return array

    monkeypatch.setattr(CpuBackend, "zeros", counting)
    tube = InletReservoir(open_vessel(setup), setup.cells, "inlet", plan.prism, World.serial())
    assert len(tube.sites) == plan.sites
    gc.collect()  # what packing and the start needed is gone
    held = sum(item.nbytes for one in allocated if (item := one()) is not None)
    monkeypatch.undo()
    predicted = memory_of_tube(setup, setup.cells, plan)
    assert predicted.flow + predicted.cells == pytest.approx(held, rel=0.1)
    lines = describe(setup, measure=False)
    (line,) = [line for line in lines if line.startswith("memory inlet")]
    assert float(line.split()[2]) * 1e6 == pytest.approx(held, rel=0.1)
    assert any(line.startswith("layout tiles-8") and "without the reservoirs" in line for line in lines)


def test_a_reservoir_is_long_enough_for_each_type_of_cells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With a share of 0.05, ten red cells would be without a platelet; one in 4,000 is more than a tube can have."""
    tables = open_blood_tables(3.0, 16.0, 50)
    tables["cells"].append(changed(tables["cells"][0], "share", 0.05) | {"name": "small"})
    tables["cells"][1]["shape"] = {"kind": "sphere", "diameter": "1.6 um", "vertices": 42}
    case = case_file(tmp_path, tables)
    lines = describe(setup_of(case), measure=False)
    (line,) = [line for line in lines if line.startswith("reservoir inlet")]
    result = re.search(r"([\d,]+) cells \((\d+) ball, (\d+) small\) in a tube of .* hematocrit ([\d.]+)", line)
    assert result is not None
    assert int(result[2]) > 0 < int(result[3])
    assert float(result[4]) == pytest.approx(0.1, rel=0.02)
    assert not any('is a "' in line for line in lines if line.startswith("advice"))
    case = case_file(tmp_path, changed(tables, "cells.1.share", 0.00025))
    message = (
        r'reservoir of iolet\["inlet"\]: none of its \d+ cells is a "small", whose share is 0.00025, so none enters'
    )
    lines = describe(setup_of(case), measure=False)
    assert any(re.match("advice: " + message + "; use a larger reservoir.length or share", line) for line in lines)
    assert main(["run", str(case)]) == 0
    assert re.search("seiche: note: " + message, capsys.readouterr().err)


def test_positions_come_from_a_file_as_they_went_into_it(tmp_path: Path) -> None:
    setup = prepared(tmp_path, blood_tables())
    assert setup.cells is not None and setup.cells.packing is not None
    centers, turns = setup.cells.packing.of_kind(0)
    sites = setup.vessel.sites
    write_pos(tmp_path / "red.pos", centers * sites.spacing + np.asarray(sites.origin), turns)
    tables = blood_tables()
    del tables["packing"]
    tables["cells"][0]["positions"] = "red.pos"
    second = prepared(tmp_path, tables).cells
    assert second is not None and second.packing is not None
    assert np.abs(second.packing.centers - centers).max() < 1e-6
    assert np.abs(second.packing.rotations - turns).max() < 1e-6
    assert second.packing.hematocrit == pytest.approx(setup.cells.packing.hematocrit)


def test_positions_may_count_from_the_corner_of_the_lattice_as_in_hemocell(tmp_path: Path) -> None:
    """HemoCell's lattice begins one spacing outside the box around the vessel; it drops cells outside."""
    tables = changed(blood_tables(), "packing", None)
    tables["geometry"]["shape"] = {"kind": "tube", "radius": "7 um", "length": "12 um", "periodic": True}
    tables["cells"][0] |= {"positions": "red.pos", "positions_from": "box", "positions_outside": "drop"}
    (tmp_path / "red.pos").write_text("3\n6 7.5 7.5 0 0 0\n6 7.5 0 0 0 0\n6 17.5 7.5 0 0 0\n")
    setup = prepared(tmp_path, tables)
    assert setup.cells is not None and setup.cells.packing is not None
    (position,), sites = setup.cells.packing.centers, setup.vessel.sites
    # The axis of the tube is 7 um from its box, 7.5 um from HemoCell's first site; x counts from the first site.
    np.testing.assert_allclose(position * sites.spacing + sites.origin, [6.25e-6, 0, 0], atol=1e-9)
    vertices = setup.cells.surfaces[0].vertices @ setup.cells.packing.rotations[0].T
    assert np.ptp(vertices, axis=0).argmin() == 1
    note = 'cells["red"].positions: red.pos: 2 of 3 cells are not inside the vessel and were dropped'
    assert f"advice: {note}" in describe(setup, measure=False)
    tables |= {"time": {"steps": 2}, "output": {"cells": {"file": "at.pos", "every": 1, "positions_from": "box"}}}
    simulation = load(case_file(tmp_path, tables), output=tmp_path / "out")
    simulation.run()
    assert note in json.loads((tmp_path / "out" / "summary.json").read_text())["details"]["notes"]
    row = np.loadtxt(tmp_path / "out" / "at.000000002.pos", skiprows=1)
    np.testing.assert_allclose(row, [6, 7.5, 7.5, 0, 0, 0], atol=1e-3)


def test_surfaces_that_do_not_meet_may_be_specified_although_their_control_points_enclose_more(tmp_path: Path) -> None:
    """A packing of the meshes of cells is no packing of the larger polyhedra of the points that move."""
    cell = red_cell(162)
    wide, moving = (np.ptp(surface.vertices[:, 0]) for surface in (cell.mesh, cell.moving_mesh()))
    between = 6 + 0.5 * (wide + moving)
    tables = changed(blood_tables(), "packing", None)
    tables["geometry"]["shape"]["size"] = ["20 um", "12 um", "12 um"]
    tables["cells"] = [{"name": "red", "shape": {"kind": "biconcave", "vertices": 162}, "positions": "red.pos"}]
    write_pos(tmp_path / "red.pos", 1e-6 * np.array([(6, 6, 6), (between, 6, 6)]), np.stack([np.eye(3)] * 2))
    setup = prepared(tmp_path, tables)
    assert setup.cells is not None and setup.cells.packing is not None
    assert len(overlapping_pairs(setup.cells.surfaces, setup.cells.packing, np.zeros(3))) == 1
    write_pos(tmp_path / "red.pos", 1e-6 * np.array([(6, 6, 6), (5.99 + wide, 6, 6)]), np.stack([np.eye(3)] * 2))
    with pytest.raises(CaseError, match="1 pairs of cells overlap"):
        prepared(tmp_path, tables)


def test_positions_are_of_the_middle_of_the_box_around_the_mesh(tmp_path: Path) -> None:
    """As in HemoCell: a mesh of a file may have more vertices on one side; its angles turn it as it is in the file."""
    ball = ellipsoid((2.0, 1.0, 1.5), 162)
    uneven = ball.vertices * np.where(ball.vertices[:, :1] > 0, [1.4, 1.0, 1.0], 1.0)
    write_stl(tmp_path / "cell.stl", Surface(uneven + np.array([3.0, 0.0, 0.0]), ball.faces))
    tables = changed(blood_tables(), "packing", None)
    tables["cells"][0] |= {"shape": {"kind": "mesh", "file": "cell.stl", "unit": "1 um"}, "positions": "red.pos"}
    tables["cells"][0] |= {"model": "triangles", "shear_modulus": "5 uN/m"}
    (tmp_path / "red.pos").write_text("1\n6 6 5 0 0 90\n")
    setup = prepared(tmp_path, tables)
    assert setup.cells is not None and setup.cells.packing is not None
    points = setup.cells.surfaces[0].vertices - setup.cells.surfaces[0].vertices.mean(axis=0)
    at = points @ setup.cells.packing.rotations[0].T + setup.cells.packing.centers[0]
    box = 1e6 * (np.stack([at.min(axis=0), at.max(axis=0)]) * setup.vessel.sites.spacing + setup.vessel.sites.origin)
    np.testing.assert_allclose(box.mean(axis=0), [6, 6, 5], atol=1e-5)
    np.testing.assert_allclose(np.ptp(box, axis=0), [2.0, 4.8, 3.0], rtol=1e-5)


def write_mesh(path: Path, vertices: np.ndarray, faces: np.ndarray) -> None:
    """Write a mesh with numbers as other programs do."""
    points = ["{:.9g} {:.9g} {:.9g}".format(*point) for point in vertices]
    if path.suffix == ".off":
        lines = ["OFF", f"{len(points)} {len(faces)} 0", *points, *("3 {} {} {}".format(*face) for face in faces)]
    elif path.suffix == ".msh":
        lines = ["$MeshFormat", "2.2 0 8", "$EndMeshFormat", "$Nodes", str(len(points))]
        lines += [f"{k} {point}" for k, point in enumerate(points, 1)] + ["$EndNodes", "$Elements", str(len(faces))]
        lines += ["{} 2 2 0 1 {} {} {}".format(k, *face) for k, face in enumerate(faces + 1, 1)] + ["$EndElements"]
    else:
        write_stl(path, Surface(vertices, faces))
        return
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("model", ["loop", "triangles"])
@pytest.mark.parametrize("ending", ["off", "stl", "msh"])
def test_a_mesh_from_a_file_is_the_cell_that_is_built_in(ending: str, model: str, tmp_path: Path) -> None:
    """Area, volume, moduli and the longest time step are those of the same shape without a file; and it runs."""
    built = changed(blood_tables(), "cells.0.model", model)
    # With a modulus of each triangle eigenvalues lie so close that their iteration depends on the order of vertices.
    built = changed(changed(built, "packing.hematocrit", 0.06), "cells.0.local_area", "0 N/m")
    expected = prepared(tmp_path, built).cells
    shape = biconcave(162)
    write_mesh(tmp_path / f"red.{ending}", shape.vertices, shape.faces)
    tables = changed(built, "cells.0.shape", {"kind": "mesh", "file": f"red.{ending}", "unit": "1 um"})
    simulation = load(case_file(tmp_path, tables), output=tmp_path / "out")
    cells = simulation.setup.cells
    assert cells is not None and expected is not None
    assert cells.surfaces[0].volume == pytest.approx(expected.surfaces[0].volume, rel=1e-5)
    assert cells.surfaces[0].area == pytest.approx(expected.surfaces[0].area, rel=1e-5)
    assert cells.types[0].model == expected.types[0].model
    assert cells.limits[0].ratio == pytest.approx(expected.limits[0].ratio, rel=1e-2)
    simulation.run(steps=2)
    assert simulation.blood is not None
    simulation.blood.record()
    assert simulation.blood.statistics.volume_drift < 1e-6


@pytest.mark.parametrize(
    "shape",
    [
        {"kind": "biconcave", "vertices": 2562},
        {"kind": "sphere", "diameter": "6 um", "vertices": 642},
        {"kind": "ellipsoid", "half_axes": ["3 um", "2.5 um", "1.5 um"], "vertices": 642},
    ],
)
def test_built_in_shapes_have_their_volume(shape: dict[str, Any], tmp_path: Path) -> None:
    exact = {"biconcave": 94.09 * (7.57 / 7.82) ** 3, "sphere": 36 * np.pi, "ellipsoid": 4 / 3 * np.pi * 3 * 2.5 * 1.5}[
        shape["kind"]
    ]
    tables = changed(changed(blood_tables(), "cells.0.shape", shape), "packing.hematocrit", 0.06)
    cells = prepared(tmp_path, tables).cells
    assert cells is not None
    assert cells.volumes()[0] / 8 == pytest.approx(exact, rel=0.012)
