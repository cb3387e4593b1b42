# SPDX-License-Identifier: BSD-3-Clause
"""The job scripts of the guide to clusters, with stand-ins for the launchers: binding, and continuation of a run."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "run-on-a-cluster.md"
#: First directive of a script, launcher, words of the binding, whether the run itself ends before the time limit.
SYSTEMS = {
    "#SBATCH": ("srun", ["--cpus-per-task=8", "--cpu-bind=cores", "--gpu-bind=none"], False),
    "#PBS": ("mpiexec", ["--ppn", "4", "--cpu-bind", "depth", "--depth", "8"], True),
    "#BSUB": ("jsrun", ["--cpu_per_rs", "32", "--gpu_per_rs", "4", "--bind", "packed:8"], True),
}


def script_of(directive: str) -> str:
    """Return the script of the guide with these directives."""
    (script,) = (text for text in re.findall(r"```sh\n(.*?)```", GUIDE.read_text(), re.S) if f"\n{directive} " in text)
    return str(script)


@pytest.mark.parametrize("directive", SYSTEMS)
def test_a_job_starts_bound_ranks_and_continues_from_a_checkpoint(directive: str, tmp_path: Path) -> None:
    launcher, binding, is_limited = SYSTEMS[directive]
    (tmp_path / "job.sh").write_text(script_of(directive))
    (tmp_path / "bin").mkdir()
    stand_in = tmp_path / "bin" / launcher
    stand_in.write_text('#!/bin/bash\nprintf "%q " "$OMP_NUM_THREADS" "$@"\n')
    stand_in.chmod(0o755)
    checkpoint = "vessel/out/checkpoint.seiche"
    system = {"SLURM_CPUS_PER_TASK": "8", "PBS_O_WORKDIR": str(tmp_path)}
    environment = system | {"PATH": f"{tmp_path / 'bin'}:{os.defpath}"}
    for again in (["--replace"], ["--restart", checkpoint]):
        done = subprocess.run(
            ["bash", "job.sh"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        threads, *words = shlex.split(done.stdout)
        options, command = words[: words.index("seiche")], words[words.index("seiche") :]
        assert (threads, done.stderr) == ("8", "")
        assert f" {shlex.join(binding)} " in f" {shlex.join(options)} "
        limit = ["--set", "run.wall_clock=115 min"] if is_limited else []
        assert command == ["seiche", "run", "vessel/case.toml", "--device", "cuda", *limit, *again]
        (tmp_path / checkpoint).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / checkpoint).touch()
