# SPDX-License-Identifier: BSD-3-Clause
"""Estimates of waves: resolution and time step."""

from __future__ import annotations

from collections.abc import Iterator

from seiche.case.waves.setup import COARSE, WaveSetup
from seiche.solver import Estimate


def wave_estimates(setup: WaveSetup) -> list[Estimate]:
    """Return the estimates of a wave case before a run, the same on every rank."""
    return [*_resolution(setup)]


def _resolution(setup: WaveSetup) -> Iterator[Estimate]:
    if setup.resolution is not None:
        fewest, advised, frequency = setup.resolution
        yield Estimate(
            name="nodes per shortest wavelength",
            value=fewest,
            where=f"{frequency:.3g} Hz, the highest frequency",
            least=advised,
            effect=f"the error is above {COARSE:.0%} per wavelength",
            remedy="use smaller elements (mesh.size) or more nodes (mesh.nodes)",
            source="theory/waves.md#6-mesh",
        )
