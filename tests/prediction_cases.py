# SPDX-License-Identifier: BSD-3-Clause
"""A small case of each solver, and a machine with round numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from case_files import blood_tables, toml_of, tube_tables
from seiche.bench.prediction_cases import EXAMPLES
from seiche.machine.laws.file import FittedPiece, Launch, Machine, Measured

WAVES = """
solver = "waves"
[mesh]
lower = ["0 m", "0 m", "0 m"]
upper = ["6 m", "4 m", "4 m"]
trees = [3, 2, 2]
size = "1 m"
nodes = 3
[[material]]
name = "water"
density = "1000 kg/m^3"
cp = "1500 m/s"
[[source]]
position = ["1.3 m", "1.3 m", "1.3 m"]
volume = "1e-6 m^3"
time = { kind = "ricker", frequency = "100 Hz" }
[time]
steps = 10
"""
ULTRASOUND = EXAMPLES["ultrasound"]
for _long, _short in (
    ("[96, 64, 64]", "[64, 48, 32]"),
    ("200000", "40"),
    ("points = 10", "points = 8"),
    ('"-8 mm"', '"-4 mm"'),
    ('"8 mm"', '"4 mm"'),
):
    ULTRASOUND = ULTRASOUND.replace(_long, _short)


def case_file(folder: Path, name: str) -> Path:
    """Return a case file of the solver `name`."""
    texts = {"waves": WAVES, "ultrasound": ULTRASOUND}
    if name not in texts:
        texts |= {"flow": toml_of(tube_tables()), "blood": toml_of(blood_tables())}
    path = folder / f"{name}.toml"
    path.write_text(texts[name])
    return path


def piece(alpha: float, beta: float, width: float = 0.0) -> FittedPiece:
    """Return a law whose parameters have intervals of a relative `width`."""
    low, high = 1.0 - width, 1.0 + width
    spread = {
        "alpha_interval": (low * alpha, high * alpha),
        "beta_interval": (low * beta, high * beta),
    }
    return FittedPiece(begin=0, end=1 << 30, alpha=alpha, beta=beta, **(spread if width else {}))  # type: ignore[arg-type]


def machine(**changes: Any) -> Machine:
    """Return a node of one socket and eight cores: messages of 10 us and 1 GB/s, memory of 20 GB/s, kernels of 1 us."""
    content: dict[str, Any] = {
        "schema": "seiche-machine",
        "version": 1,
        "units": {},
        "name": "toy",
        "source": "made up",
        "hardware": {"sockets": 1, "cores": 8, "hosts": 1, "ranks": 8},
        "paths": [Measured(path="host", locality="on-socket", pieces=[piece(1e-5, 1e-9, 0.1)], gap=2e-6)],
        "memory": {"host": 2e10},
        "launch": {"host": Launch(kernel=1e-6)},
    }
    return Machine.model_validate({**content, **changes})
