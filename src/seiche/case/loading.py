# SPDX-License-Identifier: BSD-3-Clause
"""`seiche.load`: a case file of any solver, ready to run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from seiche.errors import CaseError

if TYPE_CHECKING:
    from seiche.case.flow.simulation import Simulation
    from seiche.case.ultrasound.simulation import UltrasoundSimulation
    from seiche.case.waves.simulation import WaveSimulation
    from seiche.domain.world import World


def load(
    path: Path | str,
    *,
    device: str | None = None,
    overrides: Sequence[str] = (),
    restart: Path | str | None = None,
    output: Path | str | None = None,
    world: World | None = None,
) -> Simulation | UltrasoundSimulation | WaveSimulation:
    """Return the simulation of the case file `path`, of any solver, ready to run.

    Args:
        path: case file; the files that it names are relative to its folder.
        device: "cpu", "cuda" or "cuda:1"; the case's own by default.
        overrides: changes such as "lattice.tau=0.8" or "time.duration=2 s".
        restart: checkpoint to go on from; ultrasound has none.
        output: folder of the outputs; the case's own by default.
        world: the ranks that take part; those of mpiexec by default. Ultrasound runs on one.

    Raises:
        CaseError: the case is wrong or impossible.
        FormatError: a file is broken.
        BackendUnavailable: the device is not there.
    """
    from seiche.case.flow.simulation import load as load_flow
    from seiche.case.ultrasound.simulation import is_ultrasound
    from seiche.case.ultrasound.simulation import load as load_ultrasound
    from seiche.case.waves.setup import is_waves
    from seiche.case.waves.simulation import load_waves

    if is_waves(path):
        return load_waves(path, device=device, overrides=overrides, restart=restart, output=output, world=world)
    if is_ultrasound(path, overrides):
        if restart is not None:
            raise CaseError(f"{path}: an ultrasound case has no checkpoint to go on from")
        return load_ultrasound(path, device=device, overrides=overrides, output=output)
    return load_flow(path, device=device, overrides=overrides, restart=restart, output=output, world=world)
