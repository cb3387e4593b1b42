# SPDX-License-Identifier: BSD-3-Clause
"""Estimates of waves: resolution, receivers near sources represented as deltas, elements cut by interfaces."""

from __future__ import annotations

import math
from collections.abc import Iterator

from seiche.case.waves.setup import COARSE, WaveSetup
from seiche.solver import Estimate

#: Distance from a delta, in elements, up to which velocities may be wrong by tens of per cent (theory/waves, 13).
DELTA_REACH = 3.0


def wave_estimates(setup: WaveSetup) -> list[Estimate]:
    """Return the estimates of a wave case before a run, the same on every rank."""
    return [*_resolution(setup), *_near_deltas(setup), *_cut(setup)]


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


def _near_deltas(setup: WaveSetup) -> Iterator[Estimate]:
    """Yield the distance of the nearest receiver from a source that is represented as a delta."""
    distances = {number: setup.distance(number) for number in setup.deltas}
    if distances and math.isfinite(nearest := min(distances.values())):
        number = min(distances, key=distances.__getitem__)
        yield Estimate(
            name="nearest receiver",
            value=nearest,
            unit="elements",
            where=f"source[{number}], a delta",
            least=DELTA_REACH,
            effect="velocities at this receiver may be wrong by tens of per cent",
            remedy="use smaller elements, or put the source where it can have an incident field",
            source="theory/waves.md#13-waves-near-point-sources",
        )


def _cut(setup: WaveSetup) -> Iterator[Estimate]:
    """Yield the fraction of elements that interfaces cut."""
    if setup.cut:
        averaged = setup.case.mesh.material == "average"
        yield Estimate(
            name="elements cut by interfaces",
            value=100 * setup.cut / setup.mesh.total,
            unit="%",
            greatest=None if averaged else 0.0,
            effect="waves at the interfaces are of first order",
            remedy='set mesh.material = "average" for second order, or put sides of elements on the interfaces',
            source="theory/waves.md#14-interfaces-inside-elements",
        )
