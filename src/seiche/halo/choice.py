# SPDX-License-Identifier: BSD-3-Clause
"""Choose a transport: predict the duration of each and time those with short predictions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, TypeVar

import numpy as np

from seiche.backend import Backend
from seiche.domain.world import World
from seiche.errors import TransportError

_log = logging.getLogger("seiche.halo")
_T = TypeVar("_T")
_Integers: TypeAlias = Sequence[int]

#: Tolerance of predictions: transports predicted below this factor times the best measured duration are timed, too.
TOLERANCE_FACTOR = 1.5
#: A measurement that deviates by this factor indicates an unsuitable machine file; all transports are then timed.
OUTLIER_FACTOR = 3.0


@dataclass(frozen=True)
class Decision:
    """The chosen transport, and seconds by transport: predicted for all, measured for those that were timed.

    `reason`: why all were timed, or why the choice was reconsidered; "" in the regular case.
    """

    transport: str
    predicted: dict[str, float] = field(default_factory=dict)
    measured: dict[str, float] = field(default_factory=dict)
    reason: str = ""

    def change_since_choice(self, seconds: float) -> str:
        """Return a sentence that compares the present duration with that of the choice."""
        at_choice = self.measured[self.transport]
        return f"{self.transport} took {at_choice * 1e6:.3g} us when it was chosen, {seconds * 1e6:.3g} us now"

    def describe(self) -> str:
        """Return the decision as one line."""
        ranked = sorted((seconds, name) for name, seconds in self.predicted.items() if np.isfinite(seconds))
        entries = []
        for seconds, name in ranked:
            timed = f", measured {self.measured[name] * 1e6:.3g}" if name in self.measured else ""
            entries.append(f"{name} {seconds * 1e6:.3g} us predicted{timed}")
        return f"transport {self.transport}: {'; '.join(entries)}{f' ({self.reason})' if self.reason else ''}"


class Predictor(Protocol):
    """Predicts the seconds of one exchange for each transport that is available on all ranks."""

    def __call__(
        self, backend: Backend, world: World, peers: _Integers, sent: _Integers, received: _Integers, *, graphs: bool
    ) -> dict[str, float]:
        """Return the seconds of the slowest rank by transport; empty if no prediction is possible (collective).

        Args:
            backend: the device.
            world: the ranks.
            peers: ranks that this rank exchanges with.
            sent: bytes to each peer.
            received: bytes from each peer.
            graphs: predict for exchanges replayed in graphs, where the transport is capturable.
        """


def drifted(expected: float, measured: float, factor: float = TOLERANCE_FACTOR) -> bool:
    """Return whether a duration differs from the expected one by more than `factor`, in either direction."""
    return not expected / factor <= measured <= expected * factor


def decide(
    world: World,
    times: Mapping[str, float],
    open_candidate: Callable[[str], _T],
    measure: Callable[[_T], float],
    close: Callable[[_T], None],
    *,
    fallback_reason: str = "",
) -> tuple[_T, Decision] | None:
    """Return the fastest candidate and the decision, or None if no candidate can be opened (collective).

    The candidate with the shortest prediction is timed first, then each predicted below TOLERANCE_FACTOR times the best
    measurement. If a measurement deviates from its prediction by more than OUTLIER_FACTOR, all candidates are timed.

    Args:
        world: the ranks.
        times: predicted seconds by name, equal on all ranks.
        open_candidate: opens the named candidate, or raises TransportError on all ranks.
        measure: returns the measured seconds of a candidate, equal on all ranks.
        close: closes a candidate that was not chosen.
        fallback_reason: reason not to rely on the predictions from the start; "" if there is none.
    """
    chosen_candidate: _T | None = None
    chosen_name = ""
    measured: dict[str, float] = {}
    for name in sorted(times, key=lambda name: (times[name], name)):
        if chosen_name and not fallback_reason and times[name] >= TOLERANCE_FACTOR * measured[chosen_name]:
            break
        try:
            candidate = open_candidate(name)
        except TransportError as error:  # raised on all ranks together
            if world.rank == 0:
                _log.info("%s is not used: %s", name, error)
            continue
        measured[name] = measure(candidate)
        if not fallback_reason and drifted(times[name], measured[name], OUTLIER_FACTOR):
            fallback_reason = (
                f"{name} deviates from its prediction by more than a factor of {OUTLIER_FACTOR:g}: all were timed"
            )
        if not chosen_name or measured[name] < measured[chosen_name]:
            if chosen_candidate is not None:
                close(chosen_candidate)
            chosen_candidate, chosen_name = candidate, name
        else:
            close(candidate)
    if chosen_candidate is None:
        return None
    decision = Decision(chosen_name, dict(times), measured, fallback_reason)
    if world.rank == 0:
        (_log.warning if fallback_reason else _log.info)("%s", decision.describe())
    return chosen_candidate, decision
