# SPDX-License-Identifier: BSD-3-Clause
"""Choose a transport by what is predicted of each, and time what may be the best."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import numpy as np

from seiche.backend import Backend
from seiche.domain.world import World
from seiche.errors import TransportError

_log = logging.getLogger("seiche.halo")
_T = TypeVar("_T")

#: A prediction may be wrong by this factor: what promises less than this times the best time measured is tried.
DRIFT = 1.5
#: A time that is so many times its prediction, or such a part of it, shows a file of another machine, or of another
#: day: what it says of the others is not believed either, and all of them are tried.
FAR = 3.0


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


class Predictor(Protocol):
    """Predicts the seconds of one exchange by each transport that all ranks could use."""

    def __call__(
        self,
        backend: Backend,
        world: World,
        peers: Sequence[int],
        sent: Sequence[int],
        received: Sequence[int],
        *,
        graphs: bool,
    ) -> dict[str, float]:
        """Return seconds by transport, those of the slowest rank; empty where nothing is known (collective).

        Args:
            backend: the device.
            world: the ranks.
            peers: ranks that this one exchanges with.
            sent: bytes to each.
            received: bytes from each.
            graphs: exchanges that are device work only are replayed as parts of graphs.
        """


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
        except TransportError as error:  # raised on all ranks together: the next one
            if world.rank == 0:
                _log.info("%s is not taken: %s", name, error)
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
