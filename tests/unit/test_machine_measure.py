# SPDX-License-Identifier: BSD-3-Clause
"""Measuring a machine: the places of ranks, the number of repetitions, and reports of missing measurements."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seiche.bench import choice as bench_choice
from seiche.bench import collectives as bench_collectives
from seiche.bench import machine as bench_machine
from seiche.bench import predict as bench_predict
from seiche.bench.results import provenance
from seiche.case import predictions
from seiche.cli import main
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.halo.transports import single_copy
from seiche.io import files
from seiche.machine.laws.file import FittedPiece, Measured, read_machine, write_machine
from seiche.machine.laws.locality import (
    RankPlacement,
    bindings,
    bound,
    differences,
    gpu_numa_node,
    hardware,
    locality,
    numa_cpus,
    pairs,
)
from seiche.machine.measure import files as measure_files
from seiche.machine.measure import probes
from seiche.machine.measure.adapt import adapted
from seiche.machine.measure.survey import measure, trust_of
from seiche.observe import repeat
from seiche.report import stored

NEAR = RankPlacement("a", {0: (0, 1)}, "0000:01:00.0", "H200", 0)
FAR = RankPlacement("a", {1: (2, 3)}, "0000:02:00.0", "H200", 1)
LOOSE = RankPlacement("a", {0: (0, 1), 1: (2, 3)})
OTHER = RankPlacement("b", {0: (0, 1)}, "0000:01:00.0", "H200", 0)


def test_classes_follow_hosts_and_numa_nodes() -> None:
    assert locality(NEAR, NEAR) == "on-socket"
    assert locality(NEAR, FAR) == locality(NEAR, FAR, gpus=True) == "on-node"
    assert locality(NEAR, LOOSE) == "on-node"
    assert locality(NEAR, OTHER) == "off-node"
    # Where the system does not tell a GPU's node, all are near.
    unknown = RankPlacement("a", {0: (0,)}, "0000:03:00.0", "H200")
    assert locality(unknown, unknown, gpus=True) == "on-socket"


def test_ranks_that_may_run_anywhere_are_bound_for_a_class() -> None:
    assert bindings(LOOSE, LOOSE, "on-socket") == ({0, 1}, {0, 1})
    assert bindings(LOOSE, LOOSE, "on-node") == ({0, 1}, {2, 3})
    assert bindings(NEAR, NEAR, "on-node") is None


def test_pairs_are_disjoint_and_of_their_class() -> None:
    ranks = [NEAR, NEAR, FAR, FAR, OTHER, OTHER]
    assert pairs(ranks, "on-socket") == [(0, 1), (2, 3)]
    assert pairs(ranks, "on-node") == [(0, 2), (1, 3)]
    assert pairs(ranks, "off-node") == [(0, 4), (1, 5)]
    # Two ranks on one GPU are no pair of GPUs.
    assert pairs([NEAR, NEAR, FAR], "on-socket", gpus=True) == []
    assert pairs([NEAR, NEAR, FAR], "on-node", gpus=True) == [(0, 2)]
    assert pairs([LOOSE], "on-node") == pairs([LOOSE], "off-node") == []
    assert pairs([LOOSE, LOOSE], "on-node", gpus=True) == []


def test_numa_nodes_are_read_from_the_system(tmp_path: Path) -> None:
    for node, text in {0: "0-1,8\n", 1: "2-3\n", 10: "\n"}.items():
        (tmp_path / f"node{node}").mkdir()
        (tmp_path / f"node{node}" / "cpulist").write_text(text)
    assert numa_cpus({1, 2, 8}, tmp_path) == {0: (1, 8), 1: (2,)}
    assert numa_cpus({5, 4}, tmp_path / "none") == {0: (4, 5)}
    (tmp_path / "0000:3b:00.0").mkdir()
    (tmp_path / "0000:3b:00.0" / "numa_node").write_text("1\n")
    assert gpu_numa_node("0000:3B:00.0", tmp_path) == 1
    (tmp_path / "0000:3b:00.0" / "numa_node").write_text("-1\n")
    assert gpu_numa_node("0000:3B:00.0", tmp_path) is None
    assert gpu_numa_node("0000:ff:00.0", tmp_path) is None


def test_processes_come_back_to_their_cpus() -> None:
    before = os.sched_getaffinity(0)
    with bound({min(before)}):
        assert os.sched_getaffinity(0) == {min(before)}
    with bound({99999}):  # no such CPU: nothing changes
        assert os.sched_getaffinity(0) == before
    with bound(None):
        pass
    assert os.sched_getaffinity(0) == before


def test_minimum_and_spread_of_repetitions() -> None:
    timing = repeat.summary([2e-3, 1e-3, 3e-3], 10)
    assert (timing.minimum, timing.spread, timing.repetitions) == (pytest.approx(1e-4), pytest.approx(1.0), 30)


def test_time_is_shared_among_sizes_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(repeat.time, "perf_counter", lambda: clock[0])

    def work_of(size: int) -> repeat.Work:
        def run(count: int) -> float:
            clock[0] += count * size * 1e-3
            return count * size * 1e-3

        return run

    curve = repeat.timed_sizes([1, 2, 4, 1000, 2000], work_of, 1.0)
    assert curve.sizes == [1, 2, 4, 1000]  # 1000 takes seconds: nothing after it
    assert curve.omitted == 1
    assert curve.seconds == pytest.approx([1e-3, 2e-3, 4e-3, 1.0])
    assert min(timing.repetitions for timing in curve.timings) == repeat.MIN_BATCHES
    slow = repeat.timed_sizes([1000, 2000, 4000], work_of, 1.0)
    assert slow.sizes == [1000, 2000]  # a fit needs two


def test_sizes_are_timed_in_rounds_until_the_time_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program stops this one during the first third; one window for each size would have met it."""
    clock, busy_until = [0.0], 1.0
    monkeypatch.setattr(repeat.time, "perf_counter", lambda: clock[0])

    def work_of(size: int) -> repeat.Work:
        def run(count: int) -> float:
            taken = count * size * 1e-6 * (500.0 if clock[0] < busy_until else 1.0)
            clock[0] += taken
            return taken

        return run

    sizes = [100, 200, 400, 800]
    curve = repeat.timed_sizes(sizes, work_of, 3.0)
    assert curve.sizes == sizes
    assert curve.seconds == pytest.approx([1e-6 * size for size in sizes])
    assert clock[0] == pytest.approx(3.0, rel=0.2)
    # Two rounds after the first third agree, so the minima are reproduced.
    assert all(len(timing.rounds) > 2 and timing.reproduced for timing in curve.timings)


@pytest.mark.parametrize(
    ("rounds", "reproduced"),
    [((1.0,), False), ((1.0, 1.09), True), ((1.11, 1.0), False), ((3.0, 1.05, 2.0, 1.0), True), ((), False)],
)
def test_a_minimum_is_reproduced_by_another_round(rounds: tuple[float, ...], reproduced: bool) -> None:
    timing = repeat.Timing(1.0, 0.0, 1, rounds)
    assert timing.reproduced is reproduced
    assert timing.part(4).reproduced is reproduced and timing.part(4).rounds == tuple(value / 4 for value in rounds)
    first, second = repeat.Timing(1.0, 0.0, 1, rounds[:1]), repeat.Timing(1.0, 0.0, 1, rounds[1:])
    assert repeat.joined(first, second).rounds == rounds


def test_trust_is_the_fraction_of_reproduced_times_of_all_paths() -> None:
    piece = FittedPiece(begin=1, end=2, alpha=1e-6, beta=1e-9)
    sizes: dict[str, Any] = {"sizes": [1, 2], "seconds": [1e-6, 1e-6], "pieces": [piece]}
    paths = [
        Measured(path="host", locality="on-socket", reproduced=[True, False], **sizes),
        Measured(path="host", locality="off-node", reproduced=[True, True], **sizes),
    ]
    assert trust_of(paths) == 0.75
    # Sizes for which the time was too short were planned, but not reproduced.
    assert trust_of([*paths, paths[1].model_copy(update={"omitted": 2})]) == pytest.approx(5 / 8)
    assert trust_of([]) is None


def test_two_measurements_of_one_operation_are_joined() -> None:
    timing = repeat.joined(repeat.Timing(2.0, 0.5, 10), repeat.Timing(1.0, 1.0, 30))
    assert timing == repeat.Timing(1.0, pytest.approx((10 * 3 + 30 * 2) / 40 - 1), 40)


def test_a_machine_of_one_rank_says_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEICHE_COMMIT", "0123456789ab")
    result = measure(World.serial(), seconds=1.0, folder=tmp_path)
    assert result.paths == [] and result.commit == "0123456789ab"
    assert result.absent["host"] == "only one rank: start with mpiexec on two or more"
    assert result.absent["nccl"] == result.absent["h2d"] == "no GPU"
    assert result.memory["host"] > 1e8
    low, high = result.memory_intervals["host"]
    assert low <= result.memory["host"] <= high
    assert result.launch["host"].kernel > 0
    assert result.files is not None
    assert result.files.rate > 1e5
    assert result.probes["device_mpi"].works is None
    assert list(tmp_path.iterdir()) == []
    assert measure(World.serial(), seconds=1.0).absent["files"] == "no folder was specified"


def test_the_command_writes_a_machine_file_and_never_over_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.json"
    assert main(["bench", "machine", "--device", "cpu", "--seconds", "1", "--name", "mine", "--json", str(path)]) == 0
    assert read_machine(path).name == "mine"
    output = capsys.readouterr().out
    assert "copy bandwidth of host memory" in output
    assert "processes can read each other's memory (single copy)" in output
    assert "not measured: nccl: no GPU" in output
    assert "more ranks" not in output
    crowded = read_machine(path)
    bench_machine.show(
        crowded.model_copy(update={"hardware": {**crowded.hardware, "ranks": 9, "hosts": 2, "cores": 4}})
    )
    assert "more ranks (9) than cores (8): messages are slow" in capsys.readouterr().out
    with pytest.raises(CaseError, match=r"m\.json exists: move it, or choose another file with --json"):
        bench_machine.main(device="cpu", output=path)
    with pytest.raises(CaseError, match="there is no folder"):
        bench_machine.main(device="cpu", output=tmp_path / "none" / "m.json")
    with pytest.raises(CaseError, match=r"--folder .*none: this folder does not exist"):
        bench_machine.main(device="cpu", folder=tmp_path / "none", output=tmp_path / "n.json")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["m.json"]


def test_a_folder_that_takes_no_files_is_absent_and_the_rest_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> float:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(measure_files, "_small_writes", full)
    result = measure(World.serial(), seconds=1.0, folder=tmp_path)
    assert result.files is None
    assert result.absent["files"] == f"{tmp_path} is not writable: No space left on device"
    assert result.memory["host"] > 1e8


def test_results_replace_results_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.json"
    stored.check_output_path(None)
    stored.check_output_path(path)
    path.write_text(json.dumps({**provenance("choice", "a device"), "rows": []}, indent=1))
    stored.check_output_path(path)
    write_machine(path, read_machine("summit"))
    before = path.read_bytes()
    other = f"{path} exists and contains other data; choose another file with --json"
    for command in (
        lambda: bench_choice.main(machine=path, output=path, world=World(size=2)),
        lambda: bench_collectives.main(device="cpu", machine=path, output=path, world=World.serial()),
        lambda: bench_predict.main(machine=path, output=path, world=World.serial()),
        lambda: predictions.main(path, machine=path, ranks="1", output=path),
    ):
        with pytest.raises(CaseError, match=re.escape(other)):
            command()
    assert path.read_bytes() == before
    with pytest.raises(CaseError, match=r"cannot write .*: Is a directory"):
        stored.check_output_path(tmp_path)
    with pytest.raises(CaseError, match=r"there is no folder .*none"):
        stored.check_output_path(tmp_path / "none" / "x.json")
    with pytest.raises(CaseError, match=r"x\.toml: 'toml' is not a picture format; use one of .*png"):
        predictions.main(path, machine=path, ranks="1", figure=tmp_path / "x.toml")
    monkeypatch.setattr(files.os, "access", lambda path, mode: False)
    with pytest.raises(CaseError, match=r"the folder .* is not writable"):
        stored.check_output_path(tmp_path / "y.json")


def test_a_file_of_another_machine_is_detected_by_its_hardware() -> None:
    here = hardware([NEAR, FAR], "MPICH 5")
    assert differences(here, here) == []
    assert differences({}, here) == []
    assert differences({**here, "gpus": ["H200"] * 8}, here) == []
    assert differences({**here, "gpus": ["V100"]}, here) == ["gpus is ['H200', 'H200'], but ['V100'] in the file"]
    assert differences({**here, "mpi": "Open MPI"}, here) == ["mpi is 'MPICH 5', but 'Open MPI' in the file"]
    assert differences({**here, "host": "x", "ranks": 9, "hosts": 3}, here) == []


def test_on_another_machine_the_cheap_part_is_measured_again() -> None:
    summit, output = read_machine("summit"), list[str]()
    result = adapted(summit, World.serial(), seconds=1.0, warn=output.append)
    assert "machine file 'summit' is from another machine (cpu is " in output[0]
    assert "latencies and bandwidths are measured again" in output[0]
    assert result.paths == summit.paths  # one rank measures no messages
    assert result.memory["host"] > 1e8
    assert result.name.endswith("(with summit)")
    same = result.model_copy(update={"paths": []})
    assert adapted(same, World.serial(), seconds=1.0, warn=output.append) is same
    assert len(output) == 1


@pytest.mark.parametrize(
    ("code", "works", "reason"),
    [
        ("raise SystemExit(0)", True, "a message between two arrays of GPU memory arrived"),
        ("raise SystemExit(1)", False, "ended with status 1"),
        ("import os; os.kill(os.getpid(), 11)", False, "ended with signal 11"),
        ("import time; time.sleep(60)", False, "did not arrive in 1 s"),
    ],
)
def test_an_mpi_that_crashes_takes_only_the_probe_with_it(
    code: str, works: bool, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = subprocess.run

    def instead(command: list[str], **options: object) -> object:
        assert not any(name.startswith("PMI_") for name in options["env"])  # type: ignore[attr-defined]
        return run([sys.executable, "-c", code], **options)  # type: ignore[call-overload]

    monkeypatch.setenv("PMI_RANK", "0")
    if "sleep" in code:
        monkeypatch.setattr(probes, "_TIMEOUT", 1.0)
    monkeypatch.setattr(probes, "accepts_device_addresses", lambda: True)
    monkeypatch.setattr(probes.subprocess, "run", instead)
    result = probes.device_mpi(World(comm=_Alone()), gpus=True)
    assert result.works is works
    assert reason in result.reason


class _Alone:
    """A communicator of one rank."""

    @staticmethod
    def bcast(value: object, root: int) -> object:
        del root
        return value


def test_memory_of_another_process_is_read_where_the_system_allows_it() -> None:
    own = np.arange(1000, dtype=np.uint8)
    into = np.zeros_like(own)
    try:
        single_copy.read_memory(os.getpid(), own.ctypes.data, into)
    except OSError as error:
        assert error.errno in (errno.EPERM, errno.ENOSYS, None), error  # None: no such call
        assert probes.single_copy(World.serial(), [LOOSE]).works in (False, None)
        return
    assert (into == own).all()
    single_copy.write_memory(os.getpid(), into.ctypes.data, own[::-1].copy())
    assert (into == own[::-1]).all()
    with pytest.raises(OSError, match="process_vm_readv: Bad address"):
        single_copy.read_memory(os.getpid(), 8, into)
    assert probes.single_copy(World.serial(), [LOOSE]).works in (True, None)


def test_refused_memory_of_another_process_is_reported_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def blocked(*arguments: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(probes, "verify_process", blocked)
    result = probes.single_copy(World.serial(), [LOOSE])
    assert result.works is False
    assert result.reason == ("Operation not permitted: large host messages are copied twice and can be 20 times slower")
