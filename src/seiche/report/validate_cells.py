# SPDX-License-Identifier: BSD-3-Clause
"""`seiche validate cells`: run the checks of membranes and of cells in flow; print, store and draw them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from seiche.report import validate_flow
from seiche.report.validation import (
    capsule_order,
    capsule_table,
    capsules,
    membranes,
    shear_flow,
    suspensions,
    tweezers,
)
from seiche.report.validation.check import Check, Setting

#: Every family of checks, in the order in which they run.
FAMILIES: tuple[Callable[[Setting], list[Check]], ...] = (
    membranes.derivatives,
    membranes.sphere,
    membranes.rest,
    tweezers.stretching,
    capsules.small_deformation,
    capsule_order.order_in_time,
    capsule_table.neo_hookean,
    capsule_table.skalak,
    shear_flow.one_red_cell,
    suspensions.tubes,
    suspensions.shear_thinning,
    suspensions.endurance,
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
