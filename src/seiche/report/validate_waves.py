# SPDX-License-Identifier: BSD-3-Clause
"""`seiche validate waves`: run the checks of the wave solver, print pass or fail for each, store and draw them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from seiche.report import validate_flow
from seiche.report.validation import wave_sources, waves
from seiche.report.validation.check import Check, Setting
from seiche.report.validation.layer_over_half_space import layer_over_half_space

#: Every family of checks, in the order in which they run.
FAMILIES: tuple[Callable[[Setting], list[Check]], ...] = (
    waves.spectrum,
    waves.orders,
    waves.hanging_orders,
    waves.interfaces,
    waves.two_layers,
    waves.interface_waves,
    wave_sources.monopole,
    wave_sources.force,
    wave_sources.lamb,
    layer_over_half_space,
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
