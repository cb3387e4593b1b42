# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of a case that may change during a run: values of iolets, the body force, amplitudes of sources."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from seiche.case.messages import nearest
from seiche.domain.world import World
from seiche.errors import CaseError

#: A number, or the components of a vector.
Value = float | tuple[float, ...]


@dataclass(frozen=True)
class Control:
    """A number of a case that may change.

    Attributes:
        value: what the case gives, in SI units; None where a table in time gives it, or a default.
        apply: takes another value from the next step on.
    """

    value: Value | None
    apply: Callable[[Any], None]


class Steering(Mapping[str, Value | None]):
    """The present values by name, in SI units; `steering[name] = value` sets one from the next step on.

    Every rank sets the same values in the same order. Checkpoints record the values that were set.
    """

    def __init__(self, controls: Mapping[str, Control], world: World) -> None:
        """Let the `controls` of a case be set; nothing has been set yet."""
        self._controls, self._world = controls, world
        #: The values that were set.
        self.changed: dict[str, Value] = {}

    def __getitem__(self, name: str) -> Value | None:
        """Return the present value; CaseError for an unknown name."""
        return self.changed.get(name, self._control(name).value)

    def __contains__(self, name: object) -> bool:
        """Return whether there is such a number."""
        return name in self._controls

    def __iter__(self) -> Iterator[str]:
        """Return the names."""
        return iter(self._controls)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._controls)

    def __setitem__(self, name: str, value: Any) -> None:
        """Take `value` from the next step on (collective).

        Raises:
            CaseError: an unknown name, a number that is not finite, or ranks that differ; the run is unchanged.
        """
        if len(set(self._world.allgather((name, repr(value))))) > 1:
            raise CaseError(f"steering: the ranks set different values; this one {name!r} to {value!r}")
        control = self._control(name)
        try:
            numbers = np.asarray(value, np.float64)
        except (TypeError, ValueError):
            raise CaseError(f"steering[{name!r}]: {value!r} is not a number") from None
        if numbers.shape != np.shape(control.value if isinstance(control.value, tuple) else 0.0):
            count = len(control.value) if isinstance(control.value, tuple) else 1
            raise CaseError(f"steering[{name!r}]: {value!r} has shape {numbers.shape}; needed: {count} number(s)")
        if not np.isfinite(numbers).all():
            raise CaseError(f"steering[{name!r}]: {value!r} is not finite")
        new: Value = tuple(numbers.tolist()) if numbers.ndim else float(numbers)
        if new != self[name]:
            control.apply(new)
        self.changed[name] = new

    def _control(self, name: str) -> Control:
        if name not in self._controls:
            raise CaseError(f"steering: {name!r} is unknown{nearest(name, list(self._controls))}")
        return self._controls[name]

    def recorded(self) -> dict[str, str]:
        """Return the attributes of a checkpoint that record what was set."""
        return {"steering": json.dumps(self.changed)} if self.changed else {}

    def restore(self, record: str) -> None:
        """Set again what `recorded` has; CaseError if the case lacks one of these numbers."""
        for name, value in json.loads(record).items():
            self[name] = value
