# SPDX-License-Identifier: BSD-3-Clause
"""A whole run with its outputs takes no more memory on rank 0 than on other ranks, for every kind of case."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from launch import run_ranks
from rank_memory import peak_memory, reset_peak_memory

from seiche.case.loading import load
from seiche.domain.world import World

_END = "[output]\ncheckpoint = { every = 4 }\n[run]\nthreads = 1\nprecision = "
#: A case of each kind, with the place of a number, a small one and a large one.
CASES = {
    "flow": (
        """solver = "flow"
        geometry = { spacing = "NUMBER um", shape = { kind = "tube", radius = "1 mm", length = "6 mm" } }
        fluid = { density = "1000 kg/m^3", viscosity = "1 mPa s" }
        lattice.tau = 0.6
        time.steps = 4
        iolet = [
          { name = "inlet", kind = "velocity", velocity = "3 mm/s" },
          { name = "outlet", kind = "pressure", pressure = "0 Pa" },
        ]
        [[output.fields]]
        file = "flow.vtkhdf"
        every = 2
        fields = ["pressure", "velocity"]
        [[output.surface]]
        file = "wall.vtkhdf"
        every = 4
        fields = ["wall_shear_stress"]
        """
        + _END
        + '{ compute = "float32" }',
        ("200", "30"),
    ),
    "blood": (
        """solver = "blood"
        body_force.force = ["1.2e6 N/m^3", "0 N/m^3", "0 N/m^3"]
        fluid = { density = "1025 kg/m^3", viscosity = "1.2 mPa s" }
        lattice = { tau = 1.0, velocity_scale = "10 mm/s" }
        time.steps = 4
        packing = { hematocrit = 0.3, seed = 1 }
        [geometry]
        spacing = "0.5 um"
        shape = { kind = "tube", radius = "10 um", length = "NUMBER um", periodic = true }
        [[cells]]
        name = "red"
        shape = { kind = "biconcave", vertices = 162 }
        [[output.cells]]
        file = "cells.vtkhdf"
        every = 2
        """
        + _END
        + '{ compute = "float32" }',
        ("20", "300"),
    ),
    "ultrasound": (
        """solver = "ultrasound"
        grid = { shape = [NUMBER, NUMBER, NUMBER], spacing = "0.1 mm", steps = 4 }
        medium.material = "water"
        record.maps = ["p_max_all"]
        [[source]]
        kind = "initial-ball"
        center = ["0 mm", "0.1 mm", "0 mm"]
        radius = "1 mm"
        pressure = "1 kPa"
        [[output.snapshots]]
        file = "section.h5"
        every = 2
        normal = "z"
        at = "0 mm"
        """
        + _END
        + '"float32"',
        ("32", "160"),
    ),
    "waves": (
        """solver = "waves"
        time.steps = 4
        [mesh]
        lower = ["0 km", "0 km", "-4 km"]
        upper = ["8 km", "8 km", "0 km"]
        size = "NUMBER m"
        nodes = 5
        [[material]]
        name = "bedrock"
        density = "2700 kg/m^3"
        cp = "5200 m/s"
        cs = "3000 m/s"
        [boundary]
        lower = ["absorbing", "absorbing", "absorbing"]
        upper = ["absorbing", "absorbing", "free"]
        [[source]]
        position = ["2.5 km", "4.1 km", "-1.7 km"]
        moment = "1.3e16 N m"
        tensor = [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
        time = { kind = "gaussian", sigma = "0.25 s" }
        [[receiver]]
        name = "ROCK"
        position = ["1.5 km", "6 km", "-1 km"]
        [[output.snapshots]]
        file = "section.h5"
        every = 2
        normal = "y"
        at = "4 km"
        points = 60
        """
        + _END
        + '"float32"',
        ("2000", "300"),
    ),
}


def run_measured(kind: str, folder: str) -> None:
    """Run the small case, which imports and compiles, then the large one; compare what the latter adds on each rank."""
    world = World.from_mpi()
    text, numbers = CASES[kind]
    world.alltoall([np.zeros(1 << 21)] * world.size)  # touches the buffers of the MPI library
    for number in numbers:
        target = Path(folder) / number
        if world.rank == 0:
            target.mkdir()
            (target / "case.toml").write_text(text.replace("NUMBER", number))
        world.barrier()
        before = reset_peak_memory()
        with load(target / "case.toml", world=world) as simulation:
            simulation.run()
        peaks = np.array(world.allgather(peak_memory() - before))
    if world.rank == 0:
        print(kind, *(f"{peak / 1e6:.0f} MB" for peak in peaks))
    assert np.median(peaks) > 100e6, f"{peaks / 1e6} MB: the case is too small for the comparison"
    assert peaks[0] <= 1.1 * np.median(peaks), f"{peaks / 1e6} MB"


@pytest.mark.nightly
@pytest.mark.parametrize("kind", CASES)
def test_a_run_takes_no_more_memory_on_rank_zero(kind: str, tmp_path: Path) -> None:
    """In processes of their own, in which no earlier test has left memory in the heaps."""
    pytest.importorskip("pymetis")
    print(run_ranks(4, run_measured, kind, str(tmp_path), timeout=280.0, new_processes=True))
