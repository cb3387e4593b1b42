# SPDX-License-Identifier: BSD-3-Clause
"""`seiche validate ultrasound`: run the checks of the k-space solver, print pass or fail for each, store and draw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from seiche.report import validate_flow
from seiche.report.validation import sound_pulses, sound_tones
from seiche.report.validation.check import Check, Setting

#: Every family of checks, in the order in which they run.
FAMILIES: tuple[Callable[[Setting], list[Check]], ...] = (
    sound_pulses.photoacoustic_gaussian,
    sound_pulses.photoacoustic_sphere,
    sound_pulses.power_laws,
    sound_pulses.absorbing_layer,
    sound_tones.harmonics,
    sound_tones.bone,
    sound_tones.contrast,
    sound_tones.orders,
    sound_tones.transducers,
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
