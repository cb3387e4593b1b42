# SPDX-License-Identifier: BSD-3-Clause
"""Outputs of a case beyond whole fields: chosen sites, averages over windows, the stop of a steady flow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import seiche
from case_files import tube_file
from seiche.case.flow.schema_shapes import Nearest, Plane, Segment, Sphere
from seiche.case.flow.where import select
from seiche.case.loading import prepare
from seiche.domain import shapes
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.io.vtkhdf import CAPACITY_LIMIT

TUBE = shapes.tube(1e-3, 4e-3, 0.25e-3)
PLACE = np.array(TUBE.origin) + TUBE.spacing * TUBE.coords
SERIES = {"file": "set.vtkhdf", "every": 50, "fields": ["pressure", "traction"]}


def test_a_plane_holds_one_layer_of_sites():
    chosen = select(Plane(kind="plane", point=["2.1 mm", "0 mm", "0 mm"], normal=[2, 0, 0]), TUBE, "key")
    np.testing.assert_array_equal(chosen, np.flatnonzero(TUBE.coords[:, 0] == 8))


def test_a_line_holds_a_chain_of_sites_without_gaps():
    ends = ["0.1 mm", "-0.5 mm", "0.1 mm"], ["3.9 mm", "0.5 mm", "0.4 mm"]
    chosen = TUBE.coords[select(Segment(kind="line", start=ends[0], end=ends[1]), TUBE, "key")]
    assert np.unique(chosen[:, 0]).tolist() == list(range(16))
    assert 16 <= len(chosen) < 16 * 5


def test_a_sphere_and_points_hold_what_lies_there():
    center = np.array([2e-3, 0.1e-3, -0.2e-3])
    sphere = Sphere(kind="sphere", center=["2 mm", "0.1 mm", "-0.2 mm"], radius="0.6 mm")
    expected = np.flatnonzero(np.linalg.norm(PLACE - center, axis=1) <= 0.6e-3)
    np.testing.assert_array_equal(select(sphere, TUBE, "key"), expected)
    requested = [["1.1 mm", "0.1 mm", "0.1 mm"], ["2.1 mm", "0.1 mm", "-0.2 mm"], ["2.11 mm", "0.1 mm", "-0.2 mm"]]
    result = select(Nearest(kind="points", points=requested), TUBE, "key")
    places = np.array([[1.1, 0.1, 0.1], [2.1, 0.1, -0.2]]) * 1e-3
    nearest = [int(np.argmin(np.linalg.norm(PLACE - position, axis=1))) for position in places]
    assert result.tolist() == sorted(nearest)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (
            {"kind": "sphere", "center": ["1 m", "0 m", "0 m"], "radius": "1 mm"},
            'output.fields["set.vtkhdf"].where: contains no fluid site; the vessel lies between '
            "(0.000125, -0.000875, -0.000875) and (0.003875, 0.000875, 0.000875) m",
        ),
        (
            {"kind": "points", "points": [["0 mm", "0 mm", "9 mm"]]},
            'output.fields["set.vtkhdf"].where: the point (0, 0, 0.009) m is 32.5 spacings from the nearest fluid site',
        ),
        (
            {"kind": "plane", "point": ["0 m", "0 m", "0 m"], "normal": [0, 0, 0]},
            "output.fields[0].where: normal: its length is zero; expected a direction normal to the plane",
        ),
        (
            {"kind": "plan", "point": ["0 m", "0 m", "0 m"], "normal": [0, 0, 0]},
            'output.fields[0].where.kind: "plan" is not known; expected "plane", "line", "points", "sphere"; '
            'did you mean "plane"?',
        ),
    ],
)
def test_a_set_that_holds_nothing_is_named(tmp_path: Path, where: dict[str, Any], message: str):
    path = tube_file(tmp_path, {"output.fields": [SERIES | {"where": where}]})
    with pytest.raises(CaseError) as caught:
        seiche.load(path, world=World.serial())
    assert str(caught.value) == f"{path}: {message}"


@pytest.mark.parametrize(
    ("averages", "message"),
    [
        ({"start": 60, "window": 50}, "output.averages: the first window ends at step 110, after the run (100 steps)"),
        (
            {"window": 50, "every": 60},
            "output.averages.every: 60 steps; expected from half a step to the window of 50 steps",
        ),
        (
            {"every": 0},
            'output.averages.every: 0 is not an interval; expected a time such as "0.5 ms", or at least one step',
        ),
    ],
)
def test_windows_that_are_invalid_are_rejected(tmp_path: Path, averages: dict[str, Any], message: str):
    path = tube_file(tmp_path, {"output.averages": {"file": "a.vtkhdf"} | averages})
    with pytest.raises(CaseError) as caught:
        prepare(path)
    assert str(caught.value) == f"{path}: {message}"


def test_more_windows_than_a_file_holds_are_rejected(tmp_path: Path):
    path = tube_file(tmp_path, {"time.steps": 2**40, "output.averages": {"file": "a.vtkhdf", "window": 1, "every": 1}})
    with pytest.raises(CaseError) as caught:
        prepare(path)
    assert str(caught.value) == (
        f"{path}: output.averages.window: gives more than {CAPACITY_LIMIT} states, the limit of a file; increase it"
    )


def test_an_interval_below_a_step_is_rejected(tmp_path: Path):
    path = tube_file(tmp_path, {"time.steady": 1e-6, "time.steady_interval": "1 ns"})
    with pytest.raises(CaseError, match=r"time.steady_interval: is shorter than half a time step of 0.00156 s$"):
        prepare(path)


def averaged(folder: Path, name: str) -> dict[str, np.ndarray]:
    with h5py.File(folder / name) as file:
        return {key: np.array(values) for key, values in file["VTKHDF/CellData"].items()}


def test_averages_of_a_run_that_was_stopped_within_a_window_are_those_of_a_whole_run(tmp_path: Path):
    averages = {"file": "means.vtkhdf", "start": 20, "window": 40, "every": 4}
    path = tube_file(tmp_path, {"output.averages": averages})
    with seiche.load(path, output=tmp_path / "whole", world=World.serial()) as full:
        finished = full.run()
        assert "means.vtkhdf" in [file.name for file in finished.files]
    expected = averaged(tmp_path / "whole", "means.vtkhdf")
    triangles = len(expected["oscillatory_shear_index"]) // 2
    assert len(expected["mean_wall_shear_stress"]) == 2 * triangles
    mean = expected["time_averaged_wall_shear_stress"][triangles:].mean()
    assert mean == pytest.approx(4 * 4e-3 * 2e-3 / 1e-3, rel=0.25)
    assert expected["oscillatory_shear_index"].min() >= 0
    with seiche.load(path, output=tmp_path / "part", world=World.serial()) as first:
        first.run(50)
        first.checkpoint()
    restart = tmp_path / "part" / "checkpoint.seiche"
    with seiche.load(path, output=tmp_path / "part", restart=restart, world=World.serial()) as second:
        second.run()
    result = averaged(tmp_path / "part", "means.from-50.vtkhdf")
    for name, values in expected.items():
        np.testing.assert_array_equal(result[name], values, err_msg=name)


def test_a_run_stops_when_its_flow_is_steady(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tube_file(tmp_path, {"time": {"steps": 100_000, "steady": 1e-4, "steady_interval": 100}})
    simulation = seiche.load(path, world=World.serial())
    outcome = simulation.run()
    assert outcome.step % 100 == 0
    assert 300 <= outcome.step < 10_000
    assert outcome.stopped is not None
    assert outcome.stopped.startswith("a steady flow (relative change of the velocity ")
    assert outcome.stopped.endswith(" in 100 steps)")
    assert (simulation.folder / "summary.json").exists()
    assert (simulation.folder / "checkpoint.seiche").exists()


@pytest.mark.ranks(1, 2, 3)
def test_sets_and_averages_hold_the_same_on_any_number_of_ranks(tmp_path: Path):
    world = World.from_mpi()
    folder = Path(world.bcast(str(tmp_path)))
    plane = {"kind": "plane", "point": ["1 mm", "0 mm", "0 mm"], "normal": [1, 0, 0]}
    if world.rank == 0:
        averages = {"file": "means.vtkhdf", "window": 50}
        tube_file(folder, {"output.fields": [SERIES | {"where": plane}], "output.averages": averages})
        seiche.load(folder / "case.toml", output=folder / "alone", world=World.serial()).run()
    world.barrier()
    seiche.load(folder / "case.toml", output=folder / "together", world=world).run()
    for name in ("set.vtkhdf", "means.vtkhdf"):
        single, together = (averaged(folder / run, name) for run in ("alone", "together"))
        assert single
        for field, values in single.items():
            result = together[field]
            assert result.shape == values.shape
            np.testing.assert_array_equal(np.sort(result, axis=0), np.sort(values, axis=0), err_msg=field)
