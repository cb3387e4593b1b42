# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark of the time to the first step."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.time_to_first_step import imports_of, parse, phases_of, run

CASE = """
solver = "flow"
[geometry]
spacing = "1 mm"
shape = { kind = "box", size = ["8 mm", "8 mm", "8 mm"] }
[fluid]
viscosity = "4 mPa s"
[lattice]
tau = 0.8
[time]
steps = 4
"""


def test_the_phases_of_a_run_add_up_to_its_seconds(tmp_path: Path) -> None:
    case = tmp_path / "case.toml"
    case.write_text(CASE)
    content = run(parse([str(case), "--set", "run.threads=1"]), tmp_path)
    phases = phases_of(content)
    assert [*phases][:3] == ["interpreter", "import command", "import common modules"]
    assert {"set-up", "first step", "steps and output", "complete files", "write summary"} <= set(phases)
    assert all(wall >= 0.0 and cpu >= 0.0 for wall, cpu in phases.values())
    assert sum(wall for wall, _ in phases.values()) == pytest.approx(content["seconds"])
    assert 0.0 < sum(content["set_up"].values()) < content["seconds"]
    assert any(kernel.startswith("StreamCollide<") for kernel, _ in content["kernels"])


def test_imports_are_summed_by_package_and_by_part_of_seiche() -> None:
    text = "import time: self [us] | cumulative | imported package\n"
    text += "import time:       100 |        100 |   numpy.linalg\nimport time:        50 |        150 | numpy\n"
    text += "import time:       400 |        400 | seiche.flow.model\n"
    assert imports_of(text) == pytest.approx({"seiche.flow": 4e-4, "numpy": 1.5e-4})
