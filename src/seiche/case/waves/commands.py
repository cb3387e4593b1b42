# SPDX-License-Identifier: BSD-3-Clause
"""`seiche run` and `seiche check` for cases of waves."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from seiche.errors import CaseError

if TYPE_CHECKING:
    from seiche.domain.world import World


def run(
    case: Path,
    device: str | None,
    restart: Path | None,
    output: Path | None,
    overrides: Sequence[str],
    unused: Mapping[str, object],
    world: World,
) -> None:
    """Run a case and print how it went (collective).

    Raises:
        CaseError: an option among `unused` is given: waves do not have it.
    """
    from seiche.case.waves.simulation import load_waves

    for name, value in unused.items():
        if value is not None:
            raise CaseError(f"{name}: is for cases of flow and blood; {case} is one of waves")
    simulation = load_waves(case, device=device, overrides=overrides, restart=restart, output=output, world=world)
    notes = simulation.setup.notes
    if world.rank == 0:
        for note in notes:
            print(f"seiche: note: {note}", file=sys.stderr)
    outcome = simulation.run()
    report = simulation.report()
    if world.rank != 0:
        return
    print(report)
    if outcome.stopped is None:
        print(
            f"seiche: done: step {outcome.step:,} ({simulation.time:.4g} s) after {outcome.seconds:.1f} s; "
            f"results in {simulation.folder}"
        )
    else:
        path = simulation.checkpoint_path
        print(f"seiche: stopped by {outcome.stopped} at step {outcome.step:,}; go on with --restart {path}")


def check(case: Path, device: str | None, ranks: int | None, changes: Sequence[str], world: World) -> None:
    """Print what a case is and what it will cost (collective)."""
    from seiche.case.waves.check import describe
    from seiche.case.waves.setup import prepare

    setup = prepare(case, [*changes, *([f"run.device={device}"] if device else [])], world)
    _ = setup.notes  # collective
    if world.rank == 0:
        print("\n".join(describe(setup, ranks or world.size)))
