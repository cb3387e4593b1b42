# SPDX-License-Identifier: BSD-3-Clause
"""`seiche run` and `seiche check` for cases of waves."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from seiche.case.account import print_shares

if TYPE_CHECKING:
    from seiche.domain.world import World


def run(
    case: Path,
    device: str | None,
    restart: Path | None,
    output: Path | None,
    overrides: Sequence[str],
    world: World,
    *,
    ranks_info: bool = False,
    serve: int | None = None,
) -> None:
    """Run a case and print how it went (collective); `serve` is the port of the status page.

    Raises:
        CaseError: the case is wrong, or the port is taken.
    """
    from seiche.case.run import decisions_of
    from seiche.case.waves.simulation import load_waves

    simulation = load_waves(case, device=device, overrides=overrides, restart=restart, output=output, world=world)
    if world.rank == 0:
        for note in simulation.setup.notes:
            print(f"seiche: note: {note}", file=sys.stderr)
    if ranks_info:
        print_shares(world, simulation.setup.mesh.count, "elements")
    outcome = simulation.run(serve=serve)
    report = simulation.report()
    if world.rank != 0:
        return
    print(report)
    ghosts = simulation.solver.ghosts
    for line in decisions_of(ghosts.exchanges if ghosts is not None else ()):
        print(f"seiche: {line}")
    if outcome.stopped is None:
        print(
            f"seiche: done: step {outcome.step:,} ({simulation.time:.4g} s) after {outcome.seconds:.1f} s; "
            f"results in {simulation.folder}"
        )
    else:
        path = simulation.checkpoint_path
        print(f"seiche: stopped by {outcome.stopped} at step {outcome.step:,}; go on with --restart {path}")


def check(case: Path, device: str | None, ranks: int | None, changes: Sequence[str], world: World) -> None:
    """Print what a case is and what it will cost; rank 0 makes the whole mesh (collective)."""
    from seiche.case.agreement import on_rank_zero
    from seiche.case.waves.check import describe
    from seiche.case.waves.setup import prepare

    def lines() -> list[str]:
        setup = prepare(case, [*changes, *([f"run.device={device}"] if device else [])])
        return describe(setup, ranks or world.size)

    text = on_rank_zero(world, lines)
    if world.rank == 0:
        print("\n".join(text))
