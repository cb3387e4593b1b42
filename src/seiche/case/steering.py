# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of a case that may change during a run: values of iolets, the body force, amplitudes of sources."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable, Mapping
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
    """A number that may change: the `value` of the case in SI units, None where a table or a default gives it.

    `apply` takes another one from the next step on.
    """

    value: Value | None
    apply: Callable[[Any], None]


class Steering(UserDict[str, Value | None]):
    """The present values by name, in SI units; `steering[name] = value` sets one, recorded in checkpoints."""

    def __init__(self, controls: Mapping[str, Control], world: World) -> None:
        """Let the `controls` of a case be set; `changed` are those that were."""
        self._controls, self._world = controls, world
        self.data = {name: control.value for name, control in controls.items()}
        self.changed: dict[str, Value] = {}

    def __missing__(self, name: str) -> Value:
        """Raise CaseError: there is no such number."""
        raise CaseError(f"steering: {name!r} is unknown{nearest(name, list(self))}")

    def __setitem__(self, name: str, value: Any) -> None:
        """Take `value` from the next step on (collective).

        Raises:
            CaseError: an unknown name, a number that is not finite, or ranks that differ; the run is unchanged.
        """
        if len(set(self._world.allgather((name, repr(value))))) > 1:
            raise CaseError(f"steering: the ranks set different values; this one {name!r} to {value!r}")
        present, key = self[name], f"steering[{name!r}]"
        try:
            numbers = np.asarray(value, np.float64)
        except (TypeError, ValueError):
            raise CaseError(f"{key}: {value!r} is not a number") from None
        shape = (len(present),) if isinstance(present, tuple) else ()
        if numbers.shape != shape:
            raise CaseError(f"{key}: {value!r} has shape {numbers.shape}; expected {shape}")
        if not np.isfinite(numbers).all():
            raise CaseError(f"{key}: {value!r} is not finite")
        new: Value = tuple(numbers.tolist()) if shape else float(numbers)
        if new != present:
            self._controls[name].apply(new)
        self.data[name] = self.changed[name] = new
