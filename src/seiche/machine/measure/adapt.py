# SPDX-License-Identifier: BSD-3-Clause
"""Adapt a machine file to the present machine: if they differ, warn and repeat the fast measurements."""

from __future__ import annotations

from collections.abc import Callable

from seiche.backend import Backend, open_backend
from seiche.domain.world import World
from seiche.machine.laws.file import Machine
from seiche.machine.laws.locality import differences, hardware, rank_placements
from seiche.machine.measure.survey import measure

#: Seconds of repeated measurements: messages, copies and launches up to the sizes that fit; no files.
ADAPT_SECONDS = 4.0


def adapted(
    machine: Machine,
    world: World,
    device: str | Backend = "cpu",
    *,
    seconds: float = ADAPT_SECONDS,
    warn: Callable[[str], None] = lambda text: None,
) -> Machine:
    """Return the machine unchanged if these ranks run on it, otherwise with new measurements (collective).

    Values that these ranks cannot measure (such as the network, from one host) are those of the file.

    Args:
        machine: the machine of a file.
        world: the ranks.
        device: "cpu", "cuda", "cuda:K" or an open device.
        seconds: duration of the measurements.
        warn: called on rank 0 with the differences, in one line.

    Raises:
        BackendUnavailable: the device does not exist.
    """
    backend = device if isinstance(device, Backend) else open_backend(device, world.threads(), world.local_rank)
    placements = rank_placements(backend, world)
    changes = world.bcast(differences(machine.hardware, hardware(placements, world.library())))
    if not changes:
        return machine
    if world.rank == 0:
        warn(
            f"machine file {machine.name!r} is from another machine ({'; '.join(changes)}); latencies and "
            "bandwidths are measured again"
        )
    new_machine = measure(world, backend, seconds=seconds)
    measured = {(entry.path, entry.locality) for entry in new_machine.paths}
    retained = [entry for entry in machine.paths if (entry.path, entry.locality) not in measured]
    rates = {(entry.path, entry.locality) for entry in new_machine.injection}
    limits = [entry for entry in machine.injection if (entry.path, entry.locality) not in rates]
    return new_machine.model_copy(
        update={
            "name": f"{new_machine.name} (with {machine.name})",
            "source": f"{new_machine.source}; other values from {machine.name}",
            "paths": [*new_machine.paths, *retained],
            "injection": [*new_machine.injection, *limits],
            "files": machine.files,
        }
    )
