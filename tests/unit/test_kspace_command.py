# SPDX-License-Identifier: BSD-3-Clause
"""The command lines of kspaceFirstOrder-OMP and -CUDA: what every flag means, which GPU, interrupted runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import numpy as np
import pytest

import seiche
from seiche.backend import cuda as cuda_backend
from seiche.domain.world import World
from seiche.dropin import launch
from seiche.dropin.options import Options, parse
from seiche.dropin.program import main
from seiche.errors import CaseError

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from kwave_files import write_input

IN_OUT = {"input": "a", "output": "b"}
AGGREGATES = [f"{q}_{kind}" for q in "pu" for kind in ("rms", "max", "min", "max_all", "min_all")]
FLAGS: list[tuple[str, dict[str, Any]]] = [
    ("-t 3", {"threads": 3}),
    ("-g 2", {"gpus": (2,)}),
    ("-g 3,0,1", {"gpus": (3, 0, 1)}),
    ("-g0", {"gpus": (0,)}),
    ("-g", {"gpus": ()}),
    ("-g -t 2", {"gpus": (), "threads": 2}),
    ("-r 20", {"progress": 20}),
    ("-c 9", {"compression": 9}),
    ("-s 11", {"first": 10}),
    ("--benchmark 7", {"benchmark": 7}),
    ("--verbose 2", {"verbose": 2}),
    ("--verbose=1", {"verbose": 1}),
    ("--checkpoint_file f --checkpoint_interval 60", {"checkpoint_file": "f", "checkpoint_interval": 60.0}),
    ("--checkpoint_file f --checkpoint_timesteps 9", {"checkpoint_file": "f", "checkpoint_steps": 9}),
    (
        "--checkpoint_timesteps 9 --checkpoint_interval 60 --checkpoint_file f",
        {"checkpoint_file": "f", "checkpoint_steps": 9, "checkpoint_interval": 60.0},
    ),
    ("--overlap 0", {"overlap": 0}),
    ("--copy_sensor_mask", {"copy_sensor_mask": True}),
    ("-p", {"quantities": ["p"]}),
    ("--p_raw", {"quantities": ["p"]}),
    ("-u", {"quantities": ["u"]}),
    ("--u_raw -p", {"quantities": ["u", "p"]}),
    ("--u_non_staggered_raw", {"quantities": ["u_non_staggered"]}),
    *((f"--{name}", {"quantities": [name]}) for name in AGGREGATES),
    ("--p_final --u_final", {"quantities": [], "final": ["p_final", "u_final"]}),
    ("--u_non --copy --p_fi", {"quantities": ["u_non_staggered"], "copy_sensor_mask": True, "final": ["p_final"]}),
]


@pytest.mark.parametrize(("flags", "meaning"), FLAGS, ids=[flags for flags, _ in FLAGS])
@pytest.mark.parametrize("first", [True, False], ids=["after the files", "before the files"])
def test_flag_means_what_the_manual_says(flags, meaning, first):
    files = ["-i", "a", "-o", "b"]
    words = [*files, *flags.split()] if first else [*flags.split(), *files]
    assert parse(words) == Options(**({"quantities": ["p"]} | IN_OUT | meaning))


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("-g 0,,1", "-g : not a whole number"),
        ("-g 0,0", "-g 0,0: a GPU is selected twice"),
        ("--overlap 2", "--overlap 2: not 0 or between 4 and 32"),
        ("--overlap 33", "--overlap 33: not between 0 and 32"),
        ("--p_m", "option --p_m not a unique prefix"),
    ],
)
def test_wrong_flag_is_rejected(flags, words):
    with pytest.raises(CaseError) as caught:
        parse(["-i", "a", "-o", "b", *flags.split()])
    assert str(caught.value) == words


class Runtime:
    """GPUs by the share of their memory that is free; None: reserved for another process."""

    CUDARuntimeError = RuntimeError

    def __init__(self, *free: float | None) -> None:
        self._free, self._at = free, 0

    def getDeviceCount(self) -> int:  # noqa: N802 (as CUDA has it)
        return len(self._free)

    def setDevice(self, number: int) -> None:  # noqa: N802
        if self._free[number] is None:
            raise RuntimeError("all CUDA-capable devices are busy or unavailable")
        self._at = number

    def memGetInfo(self) -> tuple[int, int]:  # noqa: N802
        return int(1000 * (self._free[self._at] or 0)), 1000


@pytest.mark.parametrize(
    ("free", "chosen"),
    [((0.99, 0.99), 0), ((0.3, 0.95), 1), ((None, 0.2, 0.9), 2), ((0.1, 0.6, 0.5), 1), ((None,), None), ((), None)],
)
def test_first_gpu_that_nobody_uses_is_taken(free, chosen, monkeypatch):
    runtime = Runtime(*free)
    monkeypatch.setattr(cuda_backend, "_cupy", lambda: SimpleNamespace(cuda=SimpleNamespace(runtime=runtime)))
    assert cuda_backend.first_free() == chosen


def test_rank_has_the_gpu_at_its_place_in_the_list(monkeypatch):
    assert launch.device_of((), World.serial()) == "cuda:free"
    assert launch.device_of((5,), World.serial()) == "cuda:5"
    assert launch.device_of((), World(1, 2, 1, 2)) == "cuda"
    assert [launch.device_of((3, 1), World(r, 2, r, 2)) for r in range(2)] == ["cuda:3", "cuda:1"]
    assert launch.device_of((3, 1), World(3, 4, 1, 2)) == "cuda:1"  # two ranks on each of two hosts
    with pytest.raises(CaseError, match=r"^-g 0,1: 2 GPUs for 3 ranks on this host; select one GPU per rank$"):
        launch.device_of((0, 1), World(0, 3, 0, 3))
    monkeypatch.setenv("SEICHE_DROPIN_RANKS", "2")
    with pytest.raises(CaseError, match=r"^-g: the ranks are not connected; mpi4py and mpiexec use different MPI"):
        launch.device_of((0, 1), World.serial())


@pytest.mark.parametrize("missing", ["mpiexec", "mpi4py"])
def test_several_gpus_without_mpi_are_rejected_in_one_line(missing, monkeypatch, tmp_path, capsys):
    if missing == "mpiexec":
        monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
        monkeypatch.setenv("PATH", str(tmp_path))
    else:
        monkeypatch.setattr(launch.importlib.util, "find_spec", lambda name: None)
    assert main(["-i", "a", "-o", "b", "-g", "0,1"], "kspaceFirstOrder-CUDA", "cuda") == 1
    words = f"-g: several GPUs require MPI, but {missing} is not installed; install it or select one GPU"
    assert capsys.readouterr().err == f"kspaceFirstOrder-CUDA: {words}\n"


def test_several_gpus_start_the_same_line_with_a_rank_each(monkeypatch):
    monkeypatch.setattr(launch.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(launch.shutil, "which", lambda name: "/where/mpiexec")
    monkeypatch.setattr(sys, "executable", "/elsewhere/python")
    became: list[Any] = []
    monkeypatch.setattr(launch.os, "execve", lambda *words: became.extend(words))
    launch.start_ranks(3, ["-i", "a b", "-g", "2,0,1"])
    path, command, environment = became
    assert path == "/where/mpiexec" and environment["SEICHE_DROPIN_RANKS"] == "3"
    assert command[:5] == ["/where/mpiexec", "-n", "3", "/elsewhere/python", "-c"]
    assert command[6:] == ["-i", "a b", "-g", "2,0,1"]


def test_what_is_reported_grows_with_verbose(tmp_path, capsys):
    shape = (1, 20, 24)
    write_input(tmp_path / "in.h5", shape, p0_source_flag=1, p0_source_input=np.ones(shape))
    flags = ["-i", str(tmp_path / "in.h5"), "-o", str(tmp_path / "out.h5"), "-r", "100", "-t", "1", "--p_max"]
    message = []
    for level in range(3):
        assert main([*flags, "--verbose", str(level)], "kspaceFirstOrder-OMP", "cpu") == 0
        message.append(capsys.readouterr().out.splitlines())
    assert [len(lines) for lines in message] == [1, 3, 5]
    assert message[1][0].startswith(f"kspaceFirstOrder-OMP: {tmp_path / 'in.h5'} on ")
    assert message[1][2].startswith("data_loading ") and "total " in message[1][2]
    assert message[2][1:3] == ["24 x 20 points, 40 steps of 2e-08 s", "records: p_max"]


# Interrupted runs: a program of its own, so that signals end it.

RECORDS = ["-p", "-u", *(f"--{name}" for name in AGGREGATES), "--p_final", "--u_final", "--u_non_staggered_raw"]
STEPS = 12_000
PROGRAM = "import sys; from seiche.dropin.command import omp; omp()"


@pytest.fixture
def long_run(tmp_path: Path) -> list[str]:
    """Return the command of a run of seconds: an absorbing medium with a source that acts all the time."""
    shape = (1, 20, 24)
    signals = np.sin(0.05 * np.arange(STEPS)).reshape(1, -1, 1)
    source: dict[str, Any] = {"p_source_flag": STEPS, "p_source_mode": 1, "p_source_many": 0}
    source |= {"p_source_input": signals, "p_source_index": np.array([[[200]]])}
    write_input(tmp_path / "in.h5", shape, Nt=STEPS, absorbing_flag=2, alpha_coeff=0.5, alpha_power=2.0, **source)
    files = ["-i", str(tmp_path / "in.h5"), "-o", str(tmp_path / "out.h5")]
    return [sys.executable, "-c", PROGRAM, *files, *RECORDS, "-r", "1", "-s", "101", "-t", "1"]


def started(command: list[str]) -> subprocess.Popen[str]:
    source = str(Path(seiche.__file__).resolve().parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(command: list[str]) -> str:
    job = started(command)
    _, error = job.communicate(timeout=120)
    assert job.returncode == 0, error
    return error


def datasets_of(path: Path) -> dict[str, np.ndarray]:
    with h5py.File(path) as file:
        return {name: file[name][()] for name in file}


def interrupted(command: list[str], number: int) -> tuple[int, str]:
    """Send a signal after part of the segment; return the status and the output."""
    job = started(command)
    assert job.stdout is not None
    job.stdout.readline()
    job.stdout.readline()
    job.send_signal(number)
    _, error = job.communicate(timeout=120)
    return job.returncode, error


@pytest.mark.slow
def test_runs_that_signals_interrupt_continue_with_bitwise_equal_results(long_run, tmp_path):
    out, state = tmp_path / "out.h5", tmp_path / "state.h5"
    finished(long_run)
    full = datasets_of(out)
    out.unlink()
    leg = [*long_run, "--checkpoint_file", str(state), "--checkpoint_interval", "1000"]
    # A first segment is interrupted: it stores its state and reports this.
    status, error = interrupted(leg, signal.SIGTERM)
    assert status == 0
    reached = int(datasets_of(out)["t_index"].item())
    assert 0 < reached < STEPS
    words = f"stopped by SIGTERM at step {reached} of {STEPS}; run the same command to continue from {state}"
    assert error == f"kspaceFirstOrder-OMP: {words}\n"
    # A second one is killed: what the first left is still good, rows that were written since are written again.
    before = state.read_bytes()
    assert interrupted(leg, signal.SIGKILL)[0] == -signal.SIGKILL
    assert state.read_bytes() == before and int(datasets_of(out)["t_index"].item()) == reached
    finished([*leg, "--checkpoint_timesteps", "2000"])
    assert int(datasets_of(out)["t_index"].item()) == min(STEPS, reached + 2000)
    finished(leg)
    assert not state.exists()
    result = datasets_of(out)
    assert set(result) == set(full)
    for name, values in full.items():
        np.testing.assert_array_equal(result[name], values, err_msg=name)


def test_signal_without_a_checkpoint_file_ends_the_run_with_its_status(long_run, tmp_path):
    status, error = interrupted(long_run, signal.SIGINT)
    assert status == 128 + signal.SIGINT
    assert error.startswith("kspaceFirstOrder-OMP: stopped by SIGINT at step ")
    assert error.endswith(f" of {STEPS}; the output is incomplete\n")


def test_output_and_checkpoint_of_two_run_segments_are_rejected(tmp_path, capsys):
    shape = (1, 20, 24)
    write_input(tmp_path / "in.h5", shape, p0_source_flag=1, p0_source_input=np.ones(shape))
    out, state = tmp_path / "out.h5", tmp_path / "state.h5"
    flags = ["-i", str(tmp_path / "in.h5"), "-o", str(out), "--checkpoint_file", str(state)]
    flags += ["--checkpoint_timesteps", "15"]
    assert main(flags, "kspaceFirstOrder-OMP", "cpu") == 0
    older = state.read_bytes()
    assert main(flags, "kspaceFirstOrder-OMP", "cpu") == 0
    state.write_bytes(older)
    capsys.readouterr()
    assert main(flags, "kspaceFirstOrder-OMP", "cpu") == 1
    words = f"t_index: is 30, but 15 in {state}: from another run segment"
    assert capsys.readouterr().err == f"kspaceFirstOrder-OMP: {out}: {words}\n"


INTERRUPTED = """
import os, signal, sys

class Finder:
    def find_spec(self, name, *_):
        if name == sys.argv[2]:
            os.kill(os.getpid(), signal.Signals[sys.argv[1]])

sys.meta_path.insert(0, Finder())
from seiche.dropin.command import omp
omp()
"""


@pytest.mark.parametrize("module", ["seiche.dropin.program", "numpy", "seiche.dropin.segment"])
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_during_the_imports_ends_the_program_with_one_line(name: str, module: str) -> None:
    ended = started([sys.executable, "-c", INTERRUPTED, name, module])
    output, error = ended.communicate(timeout=60)
    assert error == f"kspaceFirstOrder-OMP: stopped by signal {name} during start-up; nothing was written\n"
    assert output == "" and ended.returncode == 128 + signal.Signals[name]
