# SPDX-License-Identifier: BSD-3-Clause
"""Use a machine file on the machine at hand: where they differ, say so and measure the cheap part again."""

from __future__ import annotations

from collections.abc import Callable

from seiche.backend import Backend, open_backend
from seiche.domain.world import World
from seiche.machine.laws.file import Machine
from seiche.machine.laws.locality import differences, hardware, places
from seiche.machine.measure.survey import measure

#: Seconds of measuring again: messages, copies and launches, up to the sizes that fit; no files.
CHEAP = 4.0


def adapted(
    machine: Machine,
    world: World,
    device: str | Backend = "cpu",
    *,
    seconds: float = CHEAP,
    warn: Callable[[str], None] = lambda text: None,
) -> Machine:
    """Return the machine as it is if these ranks run on it, else with what could be measured here in its place.

    What cannot be measured on these ranks (the network from one host) stays as the file has it. Collective.

    Args:
        machine: of a file.
        world: the ranks.
        device: "cpu", "cuda" or "cuda:K", or one that is open.
        seconds: of measuring.
        warn: called on rank 0 with a line for each difference.

    Raises:
        BackendUnavailable: no such device.
    """
    backend = device if isinstance(device, Backend) else open_backend(device, world.threads(), world.local_rank)
    at = places(backend, world)
    unlike = world.bcast(differences(machine.hardware, hardware(at, world.library())))
    if not unlike:
        return machine
    if world.rank == 0:
        warn(
            f"machine file {machine.name!r} is not of this machine: {'; '.join(unlike)}; measuring the cheap part again"
        )
    here = measure(world, backend, seconds=seconds)
    fresh = {(each.path, each.locality) for each in here.paths}
    kept = [each for each in machine.paths if (each.path, each.locality) not in fresh]
    rates = {(each.path, each.locality) for each in here.injection}
    limits = [each for each in machine.injection if (each.path, each.locality) not in rates]
    return here.model_copy(
        update={
            "name": f"{here.name} (with {machine.name})",
            "source": f"{here.source}; the rest from {machine.name}",
            "paths": [*here.paths, *kept],
            "injection": [*here.injection, *limits],
            "files": machine.files,
        }
    )
