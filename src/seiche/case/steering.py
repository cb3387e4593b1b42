# SPDX-License-Identifier: BSD-3-Clause
"""Values of a case that may be changed during a run: those of iolets, the body force, amplitudes of sources."""

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
ControlValue = float | tuple[float, ...]


@dataclass(frozen=True)
class Control:
    """A value that may be changed: `value` in SI units, None if a table or a default defines it.

    `apply` sets a new value from the next step on.
    """

    value: ControlValue | None
    apply: Callable[[Any], None]


class Steering(UserDict[str, ControlValue | None]):
    """Current values by name, in SI units; `steering[name] = value` sets one. Checkpoints contain changed values."""

    def __init__(self, controls: Mapping[str, Control], world: World) -> None:
        """Give access to the `controls` of a case; `changed` contains the values set so far."""
        self._controls, self._world = controls, world
        self.data = {name: control.value for name, control in controls.items()}
        self.changed: dict[str, ControlValue] = {}

    def __missing__(self, name: str) -> ControlValue:
        """Raise a CaseError for an unknown name."""
        raise CaseError(f"steering: {name!r} is unknown{nearest(name, list(self))}")

    def __setitem__(self, name: str, value: Any) -> None:
        """Set `value` for the next steps (collective).

        Raises:
            CaseError: the name is unknown, the value not finite or different between ranks; the run is unchanged.
        """
        if len(set(self._world.allgather((name, repr(value))))) > 1:
            raise CaseError(f"steering: ranks set different values; this rank sets {name!r} to {value!r}")
        current, key = self[name], f"steering[{name!r}]"
        try:
            components = np.asarray(value, np.float64)
        except (TypeError, ValueError):
            raise CaseError(f"{key}: {value!r} is not a number") from None
        shape = (len(current),) if isinstance(current, tuple) else ()
        if components.shape != shape:
            raise CaseError(f"{key}: {value!r} has shape {components.shape}; expected {shape}")
        if not np.isfinite(components).all():
            raise CaseError(f"{key}: {value!r} is not finite")
        new: ControlValue = tuple(components.tolist()) if shape else float(components)
        if new != current:
            self._controls[name].apply(new)
        self.data[name] = self.changed[name] = new
