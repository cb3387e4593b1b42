# SPDX-License-Identifier: BSD-3-Clause
"""The stand-ins of k-Wave's executables on several ranks: one output, as of one rank; legs; one line for errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from launch import environment, run_ranks

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from kwave_files import write_input
from seiche.dropin.program import main

SHAPE = (1, 48, 40)
RECORDS = [f"--{q}_{kind}" for q in "pu" for kind in ("raw", "rms", "max", "min", "max_all", "min_all", "final")]


def command(program: str, *arguments: str) -> None:
    sys.exit(main(list(arguments), f"kspaceFirstOrder-{program}", {"OMP": "cpu", "CUDA": "cuda"}[program]))


def write_problem(folder: Path, **more: Any) -> list[str]:
    """Write a smooth ball in two layers and a source that acts for half of the time; return the files as flags."""
    y, x = np.meshgrid(np.arange(48) - 20.0, np.arange(40) - 18.0, indexing="ij")
    speed, density = np.full(SHAPE, 1500.0), np.full(SHAPE, 1000.0)
    speed[:, 30:], density[:, 30:] = 1800.0, 1200.0
    data: dict[str, Any] = {"c_ref": 1800.0, "c0": speed, "rho0": density, "absorbing_flag": 1, "alpha_coeff": 0.5}
    data |= {"alpha_power": 1.5, "p0_source_flag": 1, "p0_source_input": 1e6 * np.exp(-(x**2 + y**2) / 32)[None]}
    data |= {"p_source_flag": 20, "p_source_mode": 1, "p_source_many": 0, "p_source_index": np.array([[[1200, 500]]])}
    data |= {"p_source_input": 1e-3 * np.sin(0.3 * np.arange(20)).reshape(1, -1, 1)}
    data |= {"sensor_mask_index": np.arange(7, 1920, 31).reshape(1, 1, -1)}
    write_input(folder / "in.h5", SHAPE, **(data | more))
    return ["-i", str(folder / "in.h5"), "-o", str(folder / "out.h5"), "-r", "50"]


def datasets_of(folder: Path) -> dict[str, Any]:
    with h5py.File(folder / "out.h5") as file:
        return {
            name: np.concatenate([one[key][()].ravel() for key in one]) if isinstance(one, h5py.Group) else one[()]
            for name, one in file.items()
        }


def largest_difference(found: dict[str, Any], wanted: dict[str, Any]) -> float:
    """Return the largest difference of any record over the largest number of its quantity."""
    assert set(found) == set(wanted)
    worst = 0.0
    for name in wanted:
        if name[:2] in ("p_", "p") or (name[0] == "u" and name[1] in "xy"):
            scale = max(
                float(np.abs(wanted[other]).max()) for other in wanted if other.split("_")[0] == name.split("_")[0]
            )
            worst = max(worst, float(np.abs(found[name].astype(float) - wanted[name]).max()) / scale)
    return worst


@pytest.mark.parametrize(("overlap", "tolerance"), [(0, 2e-6), (8, 5e-3)], ids=["global", "local"])
def test_two_ranks_write_what_one_writes_in_one_run_segment_or_in_several(overlap, tolerance, tmp_path):
    flags = [*write_problem(tmp_path), *RECORDS, "-s", "6", "--overlap", str(overlap)]
    assert main(flags, "kspaceFirstOrder-OMP", "cpu") == 0
    one = datasets_of(tmp_path)
    output = run_ranks(2, command, "OMP", *flags)
    shown = [line.split()[0] for line in output.splitlines() if ": warning: " not in line]
    assert shown == ["50.0", "100.0"]
    two = datasets_of(tmp_path)
    assert largest_difference(two, one) < tolerance
    state = tmp_path / "state.h5"
    (tmp_path / "out.h5").unlink()
    for leg in range(2):
        assert state.exists() == (leg > 0)
        run_ranks(2, command, "OMP", *flags, "--checkpoint_file", str(state), "--checkpoint_timesteps", "25")
    assert not state.exists()
    for name, values in datasets_of(tmp_path).items():
        np.testing.assert_array_equal(values, two[name], err_msg=name)


def test_cuboids_of_a_sensor_may_lie_across_the_cut(tmp_path):
    corners = np.array([[[5, 20, 1, 30, 30, 1], [1, 1, 1, 2, 2, 1]]])
    mask = {"sensor_mask_type": 1, "sensor_mask_index": None, "sensor_mask_corners": corners}
    flags = [*write_problem(tmp_path, **mask), "--p_raw", "--u_max", "--overlap", "0"]
    assert main(flags, "kspaceFirstOrder-OMP", "cpu") == 0
    one = datasets_of(tmp_path)
    run_ranks(2, command, "OMP", *flags)
    assert largest_difference(datasets_of(tmp_path), one) < 2e-6


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--overlap", "32"], "split: 48x40 points cannot be cut for 2 ranks with overlap 32"),
        (["-o", "none/out.h5", "--overlap", "8"], "-o none/out.h5: there is no folder none"),
        (["-o", "/", "--overlap", "8"], "/: file: cannot be written"),
    ],
)
def test_errors_of_all_ranks_or_of_the_first_are_reported_once(flags, words, tmp_path):
    output = run_ranks(2, command, "OMP", *write_problem(tmp_path), *flags, expect=1)
    assert output.count("kspaceFirstOrder-OMP: ") == 1 and words in output and len(output.splitlines()) == 1


def test_several_gpus_start_ranks_that_report_once(tmp_path):
    """On a machine without those GPUs: the ranks are started, and one of them reports what is missing."""
    call = "from seiche.dropin.command import cuda; cuda()"
    job = [sys.executable, "-c", call, *write_problem(tmp_path), "-g", "4000,4001"]
    done = subprocess.run(job, env=environment(), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith("kspaceFirstOrder-CUDA: ")
    assert "CUDA" in done.stderr or "CuPy" in done.stderr
