# SPDX-License-Identifier: BSD-3-Clause
"""A small case of ultrasound for tests: an arc that emits a tone in water."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from seiche.case.loading import load
from seiche.domain.world import World
from seiche.ultrasound.problem import Pml, Problem

BASIC = """solver = "ultrasound"
[grid]
shape = [48, 40]
spacing = "0.5 mm"
cfl = 0.3
steps = 60
[layer]
points = 6
[medium]
sound_speed = "1500 m/s"
density = "1000 kg/m^3"
[[source]]
kind = "arc"
position = ["-8 mm", "0 mm"]
focus = ["2 mm", "0 mm"]
radius = "10 mm"
diameter = "8 mm"
frequency = "500 kHz"
amplitude = "60 kPa"
[record]
points = [["0 mm", "1 mm"]]
frequencies = ["500 kHz"]
periods = 1
maps = ["p_max_all"]
"""


def case(folder: Path, text: str = BASIC) -> Path:
    """Return the path of the written case file."""
    path = folder / "case.toml"
    path.write_text(text)
    return path


def shared_case(folder: Path, text: str, world: World) -> Path:
    """Return the path of the case file that the first rank wrote into its `folder` (collective)."""
    folder = Path(world.bcast(str(folder)))
    if world.rank == 0:
        case(folder, text)
    world.barrier()
    return folder / "case.toml"


def layered_pulse(shape: tuple[int, ...], **changes: Any) -> Problem:
    """Return a pressure pulse at a third of every axis in two layers; `changes` are its steps and other changes."""
    x = np.meshgrid(*(np.arange(n) for n in shape), indexing="ij")
    in_second_layer = x[0] >= shape[0] // 2
    values: dict[str, Any] = {
        "axes": ("x", "y", "z")[: len(shape)],
        "shape": shape,
        "spacing": (1e-4, 1.2e-4, 0.9e-4)[: len(shape)],
        "dt": 1.5e-8,
        "reference_speed": 1800.0,
        "sound_speed": np.where(in_second_layer, 1800.0, 1500.0),
        "density": np.where(in_second_layer, 1200.0, 1000.0),
        "pml": (Pml(3, 2.0),) * len(shape),
        "initial_pressure": 1e6 * np.exp(-sum((a - n / 3) ** 2 for a, n in zip(x, shape, strict=True)) / 8),
    }
    return Problem(**(values | changes))


def checkpoint_of(path: Path, folder: Path, steps: int) -> Path:
    """Run the first steps of a case; return their checkpoint in `folder`."""
    checkpoint = folder / "middle.seiche"
    first = load(path, output=folder / "first")
    first.run(steps=steps, visible=False)
    first.checkpoint(checkpoint)
    first.close()
    return checkpoint


def assert_restart_has_the_same_bits(path: Path, folder: Path, steps: int) -> set[str]:
    """Compare a run with one that is restarted after `steps` steps; return the names of its arrays."""
    through = load(path, output=folder / "through").run(visible=False)
    checkpoint = checkpoint_of(path, folder, steps)
    second = load(path, output=folder / "second", restart=checkpoint).run(visible=False)
    for name, values in through.arrays.items():
        np.testing.assert_array_equal(second.arrays[name], values, err_msg=name)
    return set(through.arrays)
