# SPDX-License-Identifier: BSD-3-Clause
"""Ranks share no files but outputs: each has its own home, cache, temporary folder and copy of the case."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

import nodes
import numpy as np
import pytest
from launch import run_ranks

from prediction_cases import case_file
from seiche.case.loading import load
from seiche.domain.rank_locations import hosts_of
from seiche.domain.world import World

CHANGES = {
    "flow": ("time.steps=20", 'output.fields=[{ file = "u.vtkhdf", every = 10 }]'),
    "blood": ("time.steps=4", "cells.red.shape.vertices=42"),
    "ultrasound": ("grid.steps=20", "output.file=u.h5"),
    "waves": ("time.steps=20", 'output.snapshots=[{ file = "u.h5", every = 10, points = 8 }]'),
}


def use_folders(own: Path) -> None:
    """Make `own` the place of everything that this process reads or writes, except the results."""
    for name in ("home", "tmp", "cache", "inputs"):
        (own / name).mkdir(mode=0o700)
    os.environ |= {"HOME": str(own / "home"), "TMPDIR": str(own / "tmp"), "SEICHE_CACHE": str(own / "cache")}
    os.environ.pop("XDG_CACHE_HOME", None)
    tempfile.tempdir = None


def run_in_folders(kind: str, base: str, mode: str) -> None:
    """Run a case on two ranks with folders of each, and print a digest of its results.

    In mode "mounted" the folders of the ranks have the same names, but each node has mounted another file system there.
    """
    world = World.from_mpi()
    if mode == "mounted":
        assert len(set(hosts_of(world))) == world.size
        own = Path(base, "private")
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(own)], check=True)
    else:
        own = Path(base, f"rank-{world.rank if mode == 'apart' else 0}")
        if mode == "apart" or world.rank == 0:
            own.mkdir()
    if mode != "shared" or world.rank == 0:
        use_folders(own)
        case_file(own / "inputs", kind)
    (own / "inputs" / f"of-rank-{world.rank}").touch() if mode != "shared" else None
    world.barrier()
    assert mode == "shared" or len(os.listdir(own / "inputs")) == 2  # the case, and the file of this rank only
    out = Path(base, "out")
    with load(own / "inputs" / f"{kind}.toml", overrides=CHANGES[kind], output=out, world=world) as simulation:
        simulation.run(visible=False)
        simulation.checkpoint()
        arrays = simulation.result().arrays
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(np.ascontiguousarray(arrays[name].values).tobytes())
    if world.rank == 0:
        print(f"digest {digest.hexdigest()}")


@pytest.mark.parametrize(
    "kind", ["flow", *(pytest.param(kind, marks=pytest.mark.nightly) for kind in list(CHANGES)[1:])]
)
def test_ranks_with_their_own_folders_have_the_same_results(kind: str, tmp_path: Path) -> None:
    found = {}
    missing = nodes.missing()
    for mode in ("shared", "apart", "mounted") if missing is None else ("shared", "apart"):
        base = tmp_path / mode
        (base / "private").mkdir(parents=True)
        layout = "1+1" if mode == "mounted" else ""
        text = run_ranks(2, run_in_folders, kind, base, mode, timeout=240, layout=layout, new_processes=True)
        (found[mode],) = [line for line in text.splitlines() if line.startswith("digest ")]
        assert os.listdir(base / "private") == []  # what was mounted there is gone with the nodes
    assert len(set(found.values())) == 1, found
    names = [sorted(path.name for path in (tmp_path / mode / "out").iterdir()) for mode in found]
    assert all("checkpoint.seiche" in listed and listed == names[0] for listed in names)
