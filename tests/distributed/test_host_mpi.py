# SPDX-License-Identifier: BSD-3-Clause
"""Ranks of the MPI library of a host, selected by its ABI: results are those of the library installed with Seiche."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import launch
import numpy as np
import pytest
from host_mpi import host_mpi

from prediction_cases import case_file
from seiche.case.loading import load
from seiche.domain.world import World

CHANGES = {
    "flow": ("time.steps=20",),
    "blood": ("time.steps=6", "cells.red.shape.vertices=42"),
    "ultrasound": ("grid.steps=20",),
    "waves": ("time.steps=20",),
}
RANKS = 2


def run_and_digest(folder: str, kind: str) -> None:
    """Run a case and print its library and a digest of its results, from rank 0."""
    world = World.from_mpi()
    out = Path(folder) / f"out-{'-'.join(world.library().split()[:4])}"
    with load(Path(folder) / f"{kind}.toml", overrides=CHANGES[kind], output=out, world=world) as simulation:
        simulation.run(visible=False)
        arrays = simulation.result().arrays
        if world.rank == 0:
            digest = hashlib.sha256()
            for name in sorted(arrays):
                digest.update(np.ascontiguousarray(arrays[name].values).tobytes())
            print(f"size {world.size}; {world.library()}; digest {digest.hexdigest()}")


def run_on(command: list[str], environment: dict[str, str], folder: Path, kind: str) -> list[str]:
    """Return size, library and digest of a run."""
    words = launch.process_command(run_and_digest, folder, kind)
    done = subprocess.run(
        [*command, "-n", str(RANKS), *words], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("size ")]
    return line.split("; ")


@pytest.mark.parametrize("name", ["openmpi", "mpich"])
@pytest.mark.parametrize("kind", CHANGES)
def test_a_run_with_the_library_of_the_host_has_the_same_bits(kind: str, name: str, tmp_path: Path) -> None:
    other = host_mpi(name)
    case_file(tmp_path, kind)
    size, library, digest = run_on([launch.mpiexec()], launch.environment(), tmp_path, kind)
    assert size == f"size {RANKS}" and library.startswith("MPICH")
    found = run_on([other.mpiexec], other.environment(), tmp_path, kind)
    assert found[0] == size and found[2] == digest
    assert found[1].startswith("Open MPI" if name == "openmpi" else "MPICH") and found[1] != library


def test_the_launcher_of_another_library_is_named(tmp_path: Path) -> None:
    """Without the variables of its ABI, the ranks of Open MPI are not connected by MPICH."""
    other = host_mpi("openmpi")
    case = case_file(tmp_path, "flow")
    variables = {name: text for name, text in other.environment().items() if not name.startswith("MPI4PY_")}
    command = [other.mpiexec, "-n", "2", sys.executable, "-m", "seiche", "run", str(case)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode != 0 and "OMPI_COMM_WORLD_SIZE=2" in done.stderr
    assert not (tmp_path / "out").exists()
