# SPDX-License-Identifier: BSD-3-Clause
"""Bitwise equality in FP64 between layouts, restarts, rank counts and devices, and of geometry files."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import seiche
from seiche.backend import parse_device
from seiche.domain import shapes
from seiche.domain.sites import SiteSet
from seiche.domain.world import World
from seiche.flow.choice import LAYOUT_NAMES, LayoutName
from seiche.flow.model import CarreauYasuda, FlowModel, PressureIolet, VelocityIolet
from seiche.flow.solver import FlowSolver
from seiche.flow.state import SITES
from seiche.solver.state import State
from seiche.validate.check import Check, Setting

_STEPS = 41


def combined_case(quick: bool) -> tuple[SiteSet, FlowModel]:
    """Return a tilted tube with both kinds of iolets, a body force and shear-thinning blood."""
    size = 1.0 if quick else 2.0
    iolets = (VelocityIolet(0.01, (0.01 + 0.002j,), 100.0, 0.05), PressureIolet(1.0, 0.001, 50.0))
    blood = CarreauYasuda(0.3, 0.02, 2000.0, 0.64, 0.2128)
    sites = shapes.tube(6.3 * size, 24.0 * size, 1.0, axis=(1.0, 0.2, 0.1))
    return sites, FlowModel(blood, iolets=iolets, body_force=(1e-6, 0.0, 2e-6))


def different(solver: FlowSolver, reference: State) -> int:
    """Return the number of values of the state that differ from `reference`."""
    state = solver.state()
    arrays = reference.rows[SITES].arrays
    return sum(int(np.count_nonzero(state[name] != values[:])) for name, values in arrays.items())


def layouts_and_restart(setting: Setting) -> list[Check]:
    """Check that every layout gives the same state, also after a restart in another layout."""
    sites, model = combined_case(setting.quick)
    first = setting.solver(sites, model, layout="list-ab")
    first.advance(_STEPS)
    reference = first.state()
    layouts, restarts = 0, 0
    for name, other_layout in zip(LAYOUT_NAMES, (*LAYOUT_NAMES[1:], LAYOUT_NAMES[0]), strict=True):
        solver = setting.solver(sites, model, layout=name)
        solver.advance(_STEPS)
        layouts += different(solver, reference)
        restarts += different(_resumed(setting, name, other_layout), reference)
    return [
        Check("layouts: values that differ after 41 steps", layouts, 0, unit="numbers"),
        Check("restart in another layout: values that differ", restarts, 0, unit="numbers"),
    ]


def _resumed(setting: Setting, before: LayoutName, after: LayoutName) -> FlowSolver:
    sites, model = combined_case(setting.quick)
    stopped = setting.solver(sites, model, layout=before)
    stopped.advance(_STEPS // 2 + 1)
    solver = setting.solver(sites, model, layout=after)
    solver.set_state(stopped.state())
    solver.advance(_STEPS - stopped.step)
    return solver


def devices(setting: Setting) -> list[Check]:
    """Check that the results of another device equal those of the CPU."""
    if not parse_device(setting.device).is_gpu:
        return []
    sites, model = combined_case(setting.quick)
    differing = 0
    for layout in LAYOUT_NAMES:
        cpu, other = FlowSolver(sites, model, layout=layout), setting.solver(sites, model, layout=layout)
        for solver in (cpu, other):
            solver.advance(3 * _STEPS)
        differing += different(other, cpu.state())
    return [Check(f"cpu and {setting.device}: values that differ", differing, 0, unit="numbers")]


def state_digest(world: World, layout: LayoutName, quick: bool) -> str:
    """Return a hash of the state of all ranks after `_STEPS` steps."""
    sites, model = combined_case(quick)
    solver = FlowSolver(sites, model, layout=layout, world=world)
    solver.advance(_STEPS)
    state = solver.state()
    all_populations = np.zeros((len(sites), 20))
    all_populations[solver.owned, :19], all_populations[solver.owned, 19] = state["populations"], state["relaxation"]
    digest = hashlib.sha256(world.allreduce_sum(all_populations).tobytes()).hexdigest()
    solver.close()
    return digest


def ranks(setting: Setting) -> list[Check]:
    """Check that one to four ranks, started by mpiexec, give the same state in every layout."""
    launcher = Path(sys.executable).with_name("mpiexec")
    command = str(launcher) if launcher.exists() else shutil.which("mpiexec")
    if command is None or importlib.util.find_spec("mpi4py") is None:
        return []
    module = "from seiche.validate.flow.equality import print_digests; print_digests()"
    paths = [str(Path(seiche.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "OMP_NUM_THREADS": "1"}
    probe = [command, "-n", "4", sys.executable, "-c", "from mpi4py import MPI"]
    started = subprocess.run(probe, env=environment, capture_output=True, text=True, timeout=600, check=False)
    if started.returncode != 0:
        lines = (line.strip() for line in started.stderr.splitlines() if any(map(str.isalnum, line)))
        reason = next(lines, "no reason given")
        return [Check(f"ranks 1, 2, 3, 4: not compared, mpiexec does not start: {reason}", 0, 0, "recorded")]
    expected = [state_digest(World.serial(), layout, setting.quick) for layout in LAYOUT_NAMES]
    differing = int(len(set(expected)) != 1)
    for number in (1, 2, 3, 4):
        arguments = [command, "-n", str(number), sys.executable, "-c", module, "quick" if setting.quick else "full"]
        process = subprocess.run(arguments, env=environment, capture_output=True, text=True, timeout=600, check=False)
        differing += process.stdout.split() != expected
    return [Check("ranks 1, 2, 3, 4: jobs that differ from one process", differing, 0, unit="jobs")]


def print_digests() -> None:
    """Print the digests of all layouts on rank 0; every job of `ranks` calls this function."""
    world = World.from_mpi()
    for layout in LAYOUT_NAMES:
        digest = state_digest(world, layout, sys.argv[-1] == "quick")
        if world.rank == 0:
            print(digest)


def geometry_files(setting: Setting) -> list[Check]:
    """Check that a geometry file is identical after it has been written, read and written again."""
    from seiche.io.formats.gmy import read_gmy
    from seiche.io.formats.gmy_write import write_gmy

    sites, _ = combined_case(setting.quick)
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder, "first.gmy"), Path(folder, "second.gmy")
        write_gmy(first, sites)
        write_gmy(second, read_gmy(first))
        unequal = first.read_bytes() != second.read_bytes()
    return [Check(".gmy: files that differ after a round trip", int(unequal), 0, unit="files")]
