# SPDX-License-Identifier: BSD-3-Clause
"""Outputs that a run cannot write are rejected before it begins, with one line each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from case_files import changed, setup_of, toml_of, tube_tables
from seiche.case.flow.limits import check_limits, check_state_counts
from seiche.case.loading import load, prepare
from seiche.case.output import OutputTarget
from seiche.case.output_targets import check_targets
from seiche.cli import main
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.io.formats.pos import write_pos


def write(folder: Path, tables: dict[str, Any]) -> Path:
    path = folder / "case.toml"
    path.write_text(toml_of(tables))
    return path


def test_more_states_than_a_file_holds_are_rejected() -> None:
    tables = tube_tables() | {"time": {"steps": 1_000_050}, "output": {"fields": [{"file": "u.vtkhdf", "every": 100}]}}
    check_state_counts(setup_of(tables), first_step=200)
    with pytest.raises(
        CaseError, match=r'output\.fields\["u\.vtkhdf"\]\.every: gives 10001 states, the limit of a file is'
    ):
        check_state_counts(setup_of(tables | {"time": {"steps": 1_000_150}}))


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ({"summary": "../case.toml"}, 'output.summary: "../case.toml" is not a path inside output.folder'),
        ({"checkpoint": {"file": "/x"}}, 'output.checkpoint.file: "/x" is not a path inside output.folder'),
        (
            {"fields": [{"file": "a/../../b", "every": 1}]},
            'output.fields[0].file: "a/../../b" is not a path inside output.folder',
        ),
        ({"picture": "x.foo"}, 'output.picture: "x.foo" has no known suffix; expected .png, .pdf, .svg'),
    ],
)
def test_outputs_stay_in_their_folder(tmp_path: Path, output: dict[str, Any], message: str) -> None:
    with pytest.raises(CaseError) as caught:
        prepare(write(tmp_path, tube_tables() | {"output": output}))
    assert str(caught.value) == f"{tmp_path / 'case.toml'}: {message}"


@pytest.mark.parametrize("name", ["case.toml", "vessel.stl"])
def test_no_file_that_the_case_reads_is_overwritten(tmp_path: Path, name: str) -> None:
    tables = changed(tube_tables(), "output", {"folder": ".", "summary": name})
    (tmp_path / "vessel.stl").write_text("kept")
    tables["title"] = "vessel.stl"  # any text of the case may be the name of a file
    path = write(tmp_path, tables)
    with pytest.raises(CaseError, match=f"output.summary: would overwrite .*{name}, which the case reads"):
        prepare(path)
    remote = changed(tables, "output.folder", "out")
    with pytest.raises(CaseError, match="which the case reads"):
        load(write(tmp_path, remote), output=tmp_path, world=World.serial())
    assert (tmp_path / "vessel.stl").read_text() == "kept"


@pytest.mark.parametrize(
    ("name", "key", "kind"),
    [
        ("checkpoint.seiche", "output.checkpoint.file", "checkpoint"),
        ("summary.json", "output.summary", "summary"),
        ("u.vtkhdf", 'output.fields["u.vtkhdf"]', "HDF5 file"),
        ("u.000000100.vtkhdf", 'output.fields["u.vtkhdf"]', "HDF5 file"),
        ("flow.png", "output.picture", "PNG picture"),
    ],
)
def test_no_file_of_another_kind_is_replaced(tmp_path: Path, name: str, key: str, kind: str) -> None:
    output = {"fields": [{"file": "u.vtkhdf", "every": 1}], "checkpoint": {"every": 1}, "picture": "flow.png"}
    path = write(tmp_path, tube_tables() | {"output": output, "time": {"steps": 2}})
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_text("my notes")
    with pytest.raises(CaseError) as caught:
        load(path, world=World.serial())
    remote = tmp_path / "out" / name
    assert str(caught.value) == f"{key}: {remote} exists but is not a valid {kind}; choose another output name"
    assert remote.read_text() == "my notes"
    remote.unlink()
    for _ in range(2):  # with --replace, a run may overwrite the results of an earlier one
        with load(path, world=World.serial(), replace=True) as simulation:
            simulation.run()
    with pytest.raises(CaseError, match="the folder contains the results of an earlier run"):
        load(path, world=World.serial())


@pytest.mark.parametrize("name", ["red.pos", "red.000000010.pos", "red.000000010.red.pos"])
def test_no_file_that_holds_no_positions_of_cells_is_replaced(tmp_path: Path, name: str) -> None:
    targets = [OutputTarget('output.cells["red.pos"]', tmp_path / "red.pos", series=True)]
    check_targets(targets, ())
    remote = tmp_path / name
    for text in ("mine", "", "12 angry men\n"):
        remote.write_text(text)
        with pytest.raises(CaseError) as caught:
            check_targets(targets, ())
        assert str(caught.value) == (
            f'output.cells["red.pos"]: {remote} exists but is not a valid .pos file; choose another output name'
        )
    write_pos(remote, np.zeros((2, 3)), np.stack([np.eye(3)] * 2))
    check_targets(targets, ())
    write_pos(remote, np.zeros((0, 3)), np.zeros((0, 3, 3)))
    check_targets(targets, ())


def test_sites_of_an_output_are_looked_for_before_the_run(tmp_path: Path) -> None:
    where = {"kind": "sphere", "center": ["9 m", "0 m", "0 m"], "radius": "1 mm"}
    tables = tube_tables() | {"output": {"fields": [{"file": "u.vtkhdf", "every": 1, "where": where}]}}
    with pytest.raises(CaseError, match=r'output\.fields\["u\.vtkhdf"\]\.where: contains no fluid site'):
        check_limits(setup_of(tables))


def test_a_window_that_begins_after_the_run_is_rejected() -> None:
    averages = {"file": "a.vtkhdf", "start": 100}
    tables = tube_tables() | {"time": {"steps": 40}, "output": {"averages": averages}}
    message = "output.averages.start: step 100 is not before the end of the run of 40 steps"
    with pytest.raises(CaseError, match=message):
        check_limits(setup_of(tables))


def test_a_run_says_which_extractions_are_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plane = {"sites": "plane", "point": ["9 m", "0 m", "0 m"], "normal": [1.0, 0.0, 0.0]}
    extraction = {"file": "far.xtr", "every": 2, "fields": ["velocity"]} | plane
    tables = tube_tables() | {"time": {"steps": 2}, "output": {"extraction": [extraction]}}
    assert main(["run", str(write(tmp_path, tables))]) == 0
    assert 'output.extraction["far.xtr"]: the selection contains no site' in capsys.readouterr().err
