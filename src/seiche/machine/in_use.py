# SPDX-License-Identifier: BSD-3-Clause
"""The machine file named by the environment, and its predictions for the transports of a halo."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence

import numpy as np

from seiche.backend import Backend
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.machine.laws.file import Machine, read_machine
from seiche.machine.laws.halo_times import transport_times
from seiche.machine.laws.locality import rank_placements
from seiche.machine.measure.adapt import adapted

_log = logging.getLogger("seiche.machine")

#: Environment variable with the path of the machine file by which transports are chosen.
VARIABLE = "SEICHE_MACHINE"

#: Cache by file, ranks and device, because adapting a machine repeats measurements.
_machines: dict[tuple[str, int, str], Machine] = {}


def machine_in_use(world: World, backend: Backend | None) -> Machine | None:
    """Return the machine of the file named by SEICHE_MACHINE, None if it is not set (collective).

    If the hardware differs from the file, the fast measurements are repeated with `backend`, once, after a warning.
    Without a backend the file is used unchanged.

    Raises:
        FormatError: not a machine file.
        CaseError: the file cannot be read.
    """
    path = os.environ.get(VARIABLE)
    if not path:
        return None
    key = (path, world.size, "" if backend is None else type(backend).__name__)
    if key not in _machines:
        try:
            machine = read_machine(path)
        except CaseError as error:
            raise CaseError(f"{VARIABLE}: {error}") from None
        _machines[key] = machine if backend is None else adapted(machine, world, backend, warn=_log.warning)
    return _machines[key]


def predicted_transport_times(
    backend: Backend, world: World, peers: Sequence[int], sent: Sequence[int], received: Sequence[int], *, graphs: bool
) -> dict[str, float]:
    """Return the predicted seconds of each transport, empty without a file (`halo.choice.Predictor`)."""
    machine = machine_in_use(world, backend)
    if machine is None:
        return {}
    placements = rank_placements(backend, world)
    times = transport_times(machine, placements, world.rank, peers, sent=sent, received=received, graphs=graphs)
    return predicted(world, times)


def predicted(world: World, times: Mapping[str, float]) -> dict[str, float]:
    """Return the time of the slowest rank for each transport with a finite time (collective)."""
    names = sorted(set.intersection(*map(set, world.allgather(list(times)))))
    max_times = world.allreduce_max(np.array([times[name] for name in names]))
    return {name: float(seconds) for name, seconds in zip(names, max_times, strict=True) if np.isfinite(seconds)}
