# SPDX-License-Identifier: BSD-3-Clause
"""Runs of several types of cells: what they write, and how they continue from a checkpoint."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from case_files import blood_tables, cell_state, changed, toml_of
from seiche.case.blood.check import describe
from seiche.case.blood.setup import BloodSetup
from seiche.case.loading import load, prepare
from seiche.case.simulation import Simulation
from seiche.errors import CaseError
from seiche.io.cell_files import read_list, read_surfaces
from seiche.io.formats.pos import read_pos

ROOT = Path(__file__).parents[2]


def case_file(folder: Path, tables: dict[str, Any]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "case.toml").write_text(toml_of(tables))
    return folder / "case.toml"


def several_types() -> dict[str, Any]:
    tables = blood_tables()
    tables["cells"][0]["share"] = 2
    tables["cells"].append(
        {
            "name": "platelet",
            "shape": {"kind": "ellipsoid", "half_axes": ["1.2 um", "1.2 um", "0.5 um"], "vertices": 42},
            "model": "triangles",
            "law": "neo-hookean",
            "shear_modulus": "100 uN/m",
            "bending": "2e-18 J",
        }
    )
    tables["packing"]["hematocrit"] = 0.17
    tables["body_force"] = {"force": ["1e5 N/m^3", "0 N/m^3", "0 N/m^3"]}
    tables["lattice"]["velocity_scale"] = "10 mm/s"
    tables["output"] = {
        "cells": [{"file": "cells.vtkhdf", "every": 20}, {"file": "cells.pos", "every": 40}],
        "checkpoint": {"every": 20},
    }
    return tables


def state_of(simulation: Simulation) -> np.ndarray:
    assert simulation.blood is not None
    return cell_state(simulation.blood)[0]


def test_several_types_run_are_written_and_continue_with_bitwise_equal_results(tmp_path: Path) -> None:
    case = case_file(tmp_path, several_types())
    full = load(case, output=tmp_path / "whole")
    lines = full.run().lines
    assert full.blood is not None
    folder = tmp_path / "whole"
    states = read_list(folder / "cells.vtkhdf")
    assert [path.name for path, _ in states] == ["cells.000000020.vtkhdf", "cells.000000040.vtkhdf"]
    surfaces = read_surfaces(states[-1][0])
    assert surfaces.time == pytest.approx(full.time)
    assert len(surfaces.vertices) == 3 * 162 + 1 * 42
    assert np.unique(surfaces.on_faces["cell"]).tolist() == [0, 1, 2, 3]
    assert np.bincount(surfaces.on_faces["type"]).tolist() == [3 * 320, 80]
    centers = np.array([surfaces.vertices[162 * k : 162 * (k + 1)].mean(axis=0) for k in range(3)])
    assert (centers >= -1e-6).all() and (centers <= 12.5e-6).all()
    # In all of the box the force moves everything alike: u = g t, half a step of it at once.
    expected = 1e5 / 1025 * full.time
    assert surfaces.on_vertices["velocity"][:, 0].mean() == pytest.approx(expected, rel=0.02)
    at, _ = read_pos(folder / "cells.000000040.red.pos")
    assert np.abs(at - centers).max() < 0.05e-6 or np.abs(np.abs(at - centers).max() - 12e-6) < 0.05e-6
    assert (at >= 0).all() and (at <= 12e-6).all()
    assert len(read_pos(folder / "cells.000000040.platelet.pos")[0]) == 1
    summary = json.loads((folder / "summary.json").read_text())["details"]["cells"]
    assert summary["types"]["platelet"] == {"cells": 1, "vertices": 42}
    assert summary["hematocrit"] == pytest.approx(0.17, rel=0.15)
    assert summary["largest_volume_change"] < 0.005
    (line,) = [line for line in lines if line.startswith("cells: 4, hematocrit ")]
    changes = f"largest change of a volume {summary['largest_volume_change']:.2%}, of an area"
    assert line.startswith(f"cells: 4, hematocrit {summary['hematocrit']:.4f} (0.17 requested), {changes}")
    estimates = {entry["name"]: entry for entry in json.loads((folder / "summary.json").read_text())["estimates"]}
    entry = estimates["largest change of the volume of a cell so far"]
    assert entry["value"] == summary["largest_volume_change"] > 0
    assert entry["warning"] is None
    assert estimates["largest change of the area of a cell so far"]["value"] == summary["largest_area_change"]
    first = load(case, output=tmp_path / "parts")
    first.run(steps=20)
    second = load(case, output=tmp_path / "parts", restart=tmp_path / "parts" / "checkpoint.seiche")
    second.run()
    assert np.array_equal(state_of(second), state_of(full))
    flow = [item.solver.state()["populations"] for item in (second, full)]
    assert np.array_equal(*flow)
    assert [path.name for path, _ in read_list(tmp_path / "parts" / "cells.vtkhdf")] == [p.name for p, _ in states]


def test_states_of_cells_are_never_replaced(tmp_path: Path) -> None:
    """Neither by a run that continues from an earlier step nor by a case that reads them."""
    case, folder = case_file(tmp_path, several_types()), tmp_path / "out"
    first = load(case, output=folder)
    first.run(steps=20)
    first.close()
    retained = folder / "kept.seiche"
    retained.write_bytes((folder / "checkpoint.seiche").read_bytes())
    load(case, output=folder, restart=retained).run()
    states = {path.name: path.read_bytes() for path in folder.glob("cells.0*")}
    assert len(states) == 2 + 2
    other = case_file(tmp_path, changed(several_types(), "body_force.force", ["1.1e5 N/m^3", "0 N/m^3", "0 N/m^3"]))
    load(other, output=folder, restart=retained).run()
    assert {path.name: path.read_bytes() for path in folder.glob("cells.0*")} == states
    listed = read_list(folder / "cells.from-20.vtkhdf")
    assert [path.name for path, _ in listed] == ["cells.000000020.vtkhdf", "cells.from-20.000000040.vtkhdf"]
    assert all(path.exists() for path, _ in listed)
    # From the checkpoint of that branch its series continues.
    longer = case_file(tmp_path, changed(several_types(), "time.steps", 60))
    load(longer, output=folder, restart=folder / "checkpoint.seiche").run()
    names = [path.name for path, _ in read_list(folder / "cells.from-20.vtkhdf")]
    assert names == [path.name for path, _ in listed] + ["cells.from-20.000000060.vtkhdf"]
    assert {path.name: path.read_bytes() for path in folder.glob("cells.0*")} == states
    placed = several_types()
    del placed["packing"]
    for number, name in enumerate(("red", "platelet")):
        placed["cells"][number]["positions"] = f"out/cells.000000040.{name}.pos"
    with pytest.raises(CaseError, match=r'output.cells\["cells.pos"\]: would overwrite .*platelet.pos, which the case'):
        load(case_file(tmp_path, placed), output=folder, replace=True)
    assert (folder / "cells.000000040.platelet.pos").exists()


def test_types_without_an_inner_viscosity_have_that_of_the_fluid(tmp_path: Path) -> None:
    tables = changed(several_types(), "cells.0.inner_viscosity", "2.4 mPa s")
    simulation = load(case_file(tmp_path, tables), output=tmp_path / "out")
    assert simulation.blood is not None and simulation.blood.blood.boundary.inside is not None
    inside, sites = simulation.blood.blood.boundary.inside, simulation.setup.vessel.sites
    platelet = simulation.blood.populations()[1]
    volume = 3 * simulation.blood.cells.volumes()[0]
    assert inside.sites().sum() == pytest.approx(volume, rel=0.03)
    middle = np.round(platelet.vertices.mean(axis=(0, 1))).astype(np.int64) % 24
    assert not inside.sites()[sites.find(middle[None])].any()
    lines = "\n".join(describe(simulation.setup, measure=False))
    assert "viscosity in red 2 times that of the fluid" in " ".join(lines.split())
    assert "viscosity in platelet" not in lines
    assert re.search("tau inside cells +1.5 ", lines)
    stiff = prepare(case_file(tmp_path, changed(tables, "cells.0.inner_viscosity", "60 mPa s")))
    assert isinstance(stiff, BloodSetup)
    lines = "\n".join(describe(stiff, measure=False))
    assert 'advice: cells["red"]: inner over outer viscosity 50 is above 10: outside the validated range' in lines
    assert 'advice: cells["red"]: tau inside cells 25.5 is above 20: flow inside cells lags by about' in lines
    simulation.run(steps=2)
    assert inside.sites().sum() == pytest.approx(volume, rel=0.03)


def test_types_have_different_viscosities_inside(tmp_path: Path) -> None:
    """A site has the viscosity of the cell that it is in, in the output too; a restart keeps the bits."""
    tables = changed(several_types(), "cells.0.inner_viscosity", "2.4 mPa s")
    tables["cells"][1]["inner_viscosity"] = "6 mPa s"
    tables = changed(tables, "coupling", {"mark_every": 8})
    tables["output"]["checkpoint"] = {"every": 20}
    simulation = load(case_file(tmp_path, tables), output=tmp_path / "out")
    assert simulation.blood is not None and simulation.blood.blood.boundary.inside is not None
    inside, sites = simulation.blood.blood.boundary.inside, simulation.setup.vessel.sites
    volumes, kinds = simulation.blood.cells.volumes(), inside.sites()
    red, small = ((kinds == kind).sum() for kind in (1, 2))
    assert red == pytest.approx(3 * volumes[0], rel=0.06)
    assert small == pytest.approx(volumes[1], abs=4)  # sites in a body of 21: the count depends on where it lies
    for kind, population in enumerate(simulation.blood.populations(), start=1):
        middles = np.round(population.vertices.mean(axis=1)).astype(np.int64) % 24
        assert (kinds[sites.find(middles)] == kind).all() or kind == 1  # a biconcave cell may be thin in its middle
    viscosity = simulation.fields(["viscosity"])["viscosity"]
    np.testing.assert_allclose(viscosity, np.array([1.2e-3, 2.4e-3, 6e-3])[kinds], rtol=1e-5)
    simulation.run()
    second = load(case_file(tmp_path, tables), output=tmp_path / "out", restart=simulation.checkpoints.path)
    assert np.array_equal(state_of(second), state_of(simulation))
    fresh = load(case_file(tmp_path, tables), output=tmp_path / "again")
    fresh.run(steps=20)
    path = fresh.checkpoint()
    fresh.close()
    resumed = load(case_file(tmp_path, tables), output=tmp_path / "again", restart=path)
    resumed.run()
    assert np.array_equal(state_of(resumed), state_of(simulation))


def test_vtk_reads_the_cells(tmp_path: Path) -> None:
    vtk = pytest.importorskip("vtkmodules.vtkIOHDF")
    load(case_file(tmp_path, several_types()), output=tmp_path / "out").run()
    reader = vtk.vtkHDFReader()
    reader.SetFileName(str(tmp_path / "out" / "cells.000000040.vtkhdf"))
    reader.Update()
    data = reader.GetOutput()
    with h5py.File(tmp_path / "out" / "cells.000000040.vtkhdf") as file:
        points = file["VTKHDF/Points"].shape[0]
    assert data.GetNumberOfPoints() == points == 3 * 162 + 42
    assert data.GetNumberOfCells() == 3 * 320 + 80
    assert data.GetPointData().GetArray("velocity").GetNumberOfComponents() == 3
    assert data.GetCellData().GetArray("cell") is not None
