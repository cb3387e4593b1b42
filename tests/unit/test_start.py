# SPDX-License-Identifier: BSD-3-Clause
"""Commands start fast: what they import before they read their input."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("start", "slow"),
    [
        (
            "import sys; sys.argv = ['seiche', '--version']; from seiche.__main__ import main; main()",
            ["numpy", "typer"],
        ),
        (
            "import seiche.dropin.program",
            [
                *("pydantic", "typer", "scipy.optimize", "matplotlib", "seiche.flow"),
                *(
                    "seiche.halo.exchange",
                    "seiche.machine.collectives",
                    "seiche.domain.sites",
                    "seiche.ultrasound.slabs",
                ),
                *("seiche.kernels.registry.dg", "seiche.kernels.registry.flow", "seiche.kernels.registry.membrane"),
            ],
        ),
    ],
)
def test_commands_start_without_packages_that_are_slow_to_import(start: str, slow: list[str]) -> None:
    program = f"{start}\nimport sys\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert not set(slow) & set(run.stdout.split())
