# SPDX-License-Identifier: BSD-3-Clause
"""`seiche validate machine`: run the checks of the models of data movement, print pass or fail for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from seiche.report import validate_flow
from seiche.report.validation import movement, observation
from seiche.report.validation.check import Check, Setting

#: Every family of checks, in the order in which they run.
FAMILIES: tuple[Callable[[Setting], list[Check]], ...] = (
    movement.protocols,
    movement.recovered_terms,
    movement.printed_tables,
    movement.this_machine,
    observation.plans,
    observation.efficiencies,
    observation.overhead,
)


def main(
    *,
    device: str = "cpu",
    quick: bool = False,
    json: Path | None = None,
    plots: Path | None = None,
    only: Sequence[str] = (),
) -> int:
    """Run the checks, return 0 if every one passed, else 1; arguments and errors as in `validate_flow.main`."""
    return validate_flow.main(device=device, quick=quick, json=json, plots=plots, only=only, families=FAMILIES)
