# SPDX-License-Identifier: BSD-3-Clause
"""Choose a transport by what the machine file predicts, and time what may be the best."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from seiche.backend import Backend
from seiche.domain.world import World
from seiche.errors import CaseError, TransportError

_log = logging.getLogger("seiche.halo")
_T = TypeVar("_T")

#: A prediction may be wrong by this factor: what promises less than this times the best time measured is tried.
DRIFT = 1.5
#: A time that is so many times its prediction, or such a part of it, shows a file of another machine, or of another
#: day: what it says of the others is not believed either, and all of them are tried.
FAR = 3.0
#: Names the machine file that transports are chosen by.
VARIABLE = "SEICHE_MACHINE"


@dataclass(frozen=True)
class Decision:
    """What was chosen: seconds predicted of every transport, and measured of those that were tried.

    `reason` says why all were tried, or why another choice was made before; "" where nothing was out of order.
    """

    transport: str
    predicted: dict[str, float] = field(default_factory=dict)
    measured: dict[str, float] = field(default_factory=dict)
    reason: str = ""

    def now_takes(self, seconds: float) -> str:
        """Return that what was chosen takes another time now, in words."""
        then = self.measured[self.transport]
        return f"{self.transport} took {then * 1e6:.3g} us when it was chosen, {seconds * 1e6:.3g} us now"

    def describe(self) -> str:
        """Return the decision as one line."""
        known = sorted((seconds, name) for name, seconds in self.predicted.items() if np.isfinite(seconds))
        parts = []
        for seconds, name in known:
            tried = f", measured {self.measured[name] * 1e6:.3g}" if name in self.measured else ""
            parts.append(f"{name} {seconds * 1e6:.3g} us predicted{tried}")
        return f"transport {self.transport}: {'; '.join(parts)}{f' ({self.reason})' if self.reason else ''}"


#: Machines by file, ranks and device: reading is cheap, measuring a part of one again is not.
_machines: dict[tuple[str, int, str], Any] = {}


def machine_in_use(world: World, backend: Backend | None) -> Any:
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
    key = (path, world.size, "" if backend is None else backend.name.partition(":")[0])
    if key not in _machines:
        from seiche.machine.adapt import adapted
        from seiche.machine.file import read_machine

        try:
            machine = read_machine(path)
        except OSError as error:
            reason = f"cannot be read: {error.strerror or error}"
            raise CaseError(f"machine file {path} {reason} ({VARIABLE} names it)") from None
        _machines[key] = machine if backend is None else adapted(machine, world, backend, warn=_log.warning)
    return _machines[key]


def predicted(world: World, times: Mapping[str, float]) -> dict[str, float]:
    """Return for each transport the time of the slowest rank, those that are infinite left out (collective)."""
    names = sorted(set.intersection(*map(set, world.allgather(list(times)))))
    slowest = world.allreduce_max(np.array([times[name] for name in names]))
    return {name: float(seconds) for name, seconds in zip(names, slowest, strict=True) if np.isfinite(seconds)}


def drifted(expected: float, found: float, factor: float = DRIFT) -> bool:
    """Return whether a time is more than `factor` times the expected one, or less than that part of it."""
    return not expected / factor <= found <= expected * factor


def decide(
    world: World,
    times: Mapping[str, float],
    make: Callable[[str], _T],
    trial: Callable[[_T], float],
    drop: Callable[[_T], None],
    *,
    doubt: str = "",
) -> tuple[_T, Decision] | None:
    """Return the best of what `make` makes, and why; None if nothing could be made (collective).

    The cheapest by prediction is made and timed, then every other one that promises less than DRIFT times the best time
    so far: the model says what cannot win, the clock what does. Once a time is FAR from its prediction, all are tried.

    Args:
        world: the ranks.
        times: predicted seconds by name, equal on all ranks.
        make: makes what is called so, or raises TransportError on all ranks.
        trial: times it; equal on all ranks.
        drop: gives back one that is not taken.
        doubt: why predictions are not believed from the start, if they are not.
    """
    best: _T | None = None
    chosen = ""
    measured: dict[str, float] = {}
    for name in sorted(times, key=lambda each: (times[each], each)):
        if chosen and not doubt and times[name] >= DRIFT * measured[chosen]:
            break
        try:
            made = make(name)
        except TransportError:  # raised on all ranks together: the next one
            continue
        measured[name] = trial(made)
        if not doubt and drifted(times[name], measured[name], FAR):
            doubt = f"{name} is far from its prediction: all were tried"
        if not chosen or measured[name] < measured[chosen]:
            if best is not None:
                drop(best)
            best, chosen = made, name
        else:
            drop(made)
    if best is None:
        return None
    decision = Decision(chosen, dict(times), measured, doubt)
    if world.rank == 0:
        (_log.warning if doubt else _log.info)("%s", decision.describe())
    return best, decision
