# SPDX-License-Identifier: BSD-3-Clause
"""The comparison of predicted and measured steps: what it stores, takes from another run and rejects."""

from __future__ import annotations

import json
import math
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import pytest

from prediction_cases import case_file, machine
from seiche.bench import predict as bench_predict
from seiche.case.plans import planned_case
from seiche.case.predictions import predict_case
from seiche.cli import main
from seiche.domain.rank_locations import hosts_of
from seiche.domain.world import World
from seiche.errors import CaseError, FormatError
from seiche.halo.transports import TransportName
from seiche.machine.laws.file import read_machine, write_machine
from seiche.machine.laws.steps import stored_scales
from seiche.observe.plan import base_name

UNITS = {"time": "s", "size": "B", "rate": "B/s"}


def compare(folder: Path, names: list[str], *, hosts: int = 1, **options: Any) -> list[bench_predict.PredictionRow]:
    known = folder / "toy.json"
    if World.from_mpi().rank == 0:
        paths = machine().paths
        paths += [path.model_copy(update={"locality": "off-node"}) for path in paths if hosts > 1]
        write_machine(known, machine(units=UNITS, paths=paths))
    World.from_mpi().barrier()
    return bench_predict.main(machine=known, device="cpu", names=names, seconds=0.05, **options)


def test_what_one_rank_took_is_what_is_predicted_for_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored = tmp_path / "one.json"
    (first,) = compare(tmp_path, ["waves"], output=stored)
    assert first.step_scaled is None
    assert first.exchange == first.measured_exchange == 0.0
    assert set(first.errors) == {"step"}
    assert "waves on 1: step " in capsys.readouterr().out
    content = json.loads(stored.read_text())
    assert content["schema"] == bench_predict.SCHEMA
    (second,) = compare(tmp_path, ["waves"], earlier=[stored])
    assert second.step_scaled is not None
    # The stages of the first run add up to its step.
    assert sum(seconds for seconds, _ in first.stages.values()) == pytest.approx(first.measured_step, rel=1e-9)
    assert second.step_scaled == pytest.approx(first.measured_step, rel=1e-9)


def test_what_stages_took_is_kept_in_the_machine_file_and_predicts_other_cases(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (row,) = compare(tmp_path, ["waves"], keep=True)
    retained = read_machine(tmp_path / "toy.json")
    assert list(retained.stages) == ["host"]
    assert stored_scales(retained, "waves", gpu=False) == row.scales
    assert stored_scales(retained, "waves", gpu=True) is stored_scales(retained, "flow", gpu=False) is None
    case = planned_case(case_file(tmp_path, "waves"), device="cpu")
    plain = predict_case(case, retained.model_copy(update={"stages": {}}), [1, 2])
    known = predict_case(case, retained, [1, 2])
    for without, with_scales in zip(plain.strong, known.strong, strict=True):
        for name, seconds in without.computing.items():
            factor = row.scales[base_name(name)].best if base_name(name) in row.scales else 1.0
            assert with_scales.computing[name] == pytest.approx(factor * seconds)
    assert known.notes == ["stage times are calibrated with times that `seiche bench predict` measured on this machine"]
    assert main(["bench", "predict", "--keep"]) == 2
    assert "--keep needs an existing machine file: pass it with --machine" in capsys.readouterr().err


def test_what_is_no_example_and_no_earlier_result_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="example 'smoke' is not one of flow, blood, ultrasound, waves"):
        bench_predict.main(names=["smoke"])
    with pytest.raises(CaseError, match="size 'huge' is not one of small, large"):
        bench_predict.main(size="huge")
    path = tmp_path / "x.json"
    path.write_text("{}")
    with pytest.raises(FormatError, match="expected 'seiche-bench-predict-1'"):
        compare(tmp_path, ["waves"], earlier=[path])
    for rows, output in (
        (3, "'int' object is not iterable"),
        ([{"case": "waves"}], "'scales' is missing"),
        ([{"case": "waves", "scales": {"update": {"best": "x", "low": 1, "high": 1}}}], "1 validation error"),
    ):
        path.write_text(json.dumps({"schema": "seiche-bench-predict-1", "rows": rows}))
        with pytest.raises(FormatError, match=f"rows: not as written by `seiche bench predict --json`: {output}"):
            compare(tmp_path, ["waves"], earlier=[path])
    path.write_text("no")
    assert main(["bench", "predict", "--from", str(path), "--device", "cpu"]) == 2


@pytest.mark.ranks(2)
def test_steps_and_exchanges_of_every_solver_are_compared_on_two_ranks() -> None:
    with TemporaryDirectory() as here:
        folder = Path(World.from_mpi().bcast(here))
        hosts = len(set(hosts_of(World.from_mpi())))
        rows = compare(folder, ["flow", "blood", "ultrasound", "waves"], hosts=hosts)
        World.from_mpi().barrier()
    if World.from_mpi().rank:
        assert rows == []
        return
    assert [row.case for row in rows] == ["flow", "blood", "ultrasound", "waves"]
    for row in rows:
        assert row.transport in get_args(TransportName)
        assert row.scales
        for error in (row.errors["step"], row.errors["exchange"]):
            assert math.isfinite(error)
        assert row.measured_exchange > 0
