# SPDX-License-Identifier: BSD-3-Clause
"""The machine file that the environment names, and what it predicts of a halo's transports."""

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
from seiche.machine.laws.locality import places
from seiche.machine.measure.adapt import adapted

_log = logging.getLogger("seiche.machine")

#: Names the machine file that transports are chosen by.
VARIABLE = "SEICHE_MACHINE"

#: Machines by file, ranks and device: reading is cheap, measuring a part of one again is not.
_machines: dict[tuple[str, int, str], Machine] = {}


def machine_in_use(world: World, backend: Backend | None) -> Machine | None:
    """Return the machine of the file that SEICHE_MACHINE names, None without one (collective).

    On a machine unlike the file its cheap part is measured again with `backend`, once, after a warning; without one
    the file is believed.

    Raises:
        FormatError: it is no machine file.
        CaseError: it cannot be read.
    """
    path = os.environ.get(VARIABLE)
    if not path:
        return None
    key = (path, world.size, "" if backend is None else type(backend).__name__)
    if key not in _machines:
        try:
            machine = read_machine(path)
        except OSError as error:
            reason = f"cannot be read: {error.strerror or error}"
            raise CaseError(f"machine file {path} {reason} ({VARIABLE} names it)") from None
        _machines[key] = machine if backend is None else adapted(machine, world, backend, warn=_log.warning)
    return _machines[key]


def predict_transports(
    backend: Backend, world: World, peers: Sequence[int], sent: Sequence[int], received: Sequence[int], *, graphs: bool
) -> dict[str, float]:
    """Return what the machine file predicts of each transport, nothing without a file (`halo.choice.Predictor`)."""
    machine = machine_in_use(world, backend)
    if machine is None:
        return {}
    at = places(backend, world)
    return predicted(
        world, transport_times(machine, at, world.rank, peers, sent=sent, received=received, graphs=graphs)
    )


def predicted(world: World, times: Mapping[str, float]) -> dict[str, float]:
    """Return for each transport the time of the slowest rank, those that are infinite left out (collective)."""
    names = sorted(set.intersection(*map(set, world.allgather(list(times)))))
    slowest = world.allreduce_max(np.array([times[name] for name in names]))
    return {name: float(seconds) for name, seconds in zip(names, slowest, strict=True) if np.isfinite(seconds)}
