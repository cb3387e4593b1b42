# SPDX-License-Identifier: BSD-3-Clause
"""A flow case with cells, in lattice units."""

from __future__ import annotations

from dataclasses import dataclass

from seiche.case.blood.schema import BloodCase
from seiche.case.flow.setup import FlowSetup
from seiche.couple.open.vessel import OpenVessel
from seiche.couple.suspension import CellsSetup


@dataclass(frozen=True)
class BloodSetup(FlowSetup):
    """A flow case with `cells`, before a solver is created."""

    case: BloodCase
    cells: CellsSetup | None = None
    immersed = True

    @property
    def notes(self) -> tuple[str, ...]:
        """Return the notes on the flow and on the positions of cells."""
        return (*super().notes, *(self.cells.notes if self.cells is not None else ()))


def open_vessel(setup: BloodSetup) -> OpenVessel:
    """Return the open vessel of a case with a reservoir and a packing."""
    case, units, scale = setup.case, setup.units, setup.invariants.velocity_scale
    table, packing = case.reservoir, case.packing
    assert table is not None and packing is not None
    return OpenVessel(
        sites=setup.vessel.sites,
        model=setup.model,
        viscosity=(setup.invariants.tau[0] - 0.5) / 3,
        peak=units.to_lattice("velocity", scale) if scale else None,
        delta=case.coupling.delta,
        every=table.every,
        hematocrit=table.hematocrit or packing.hematocrit,
        length=units.to_lattice("length", table.length) if table.length is not None else None,
        seed=table.seed,
        precision=setup.precision,
        device=case.run.device,
        threads=case.run.threads,
    )


def free_layers(setup: BloodSetup) -> dict[str, float]:
    """Return the depth (sites) of the layer without packed cells at each opening; empty without a reservoir."""
    return open_vessel(setup).excluded_layers() if setup.case.reservoir is not None else {}
