# SPDX-License-Identifier: BSD-3-Clause
"""Values of a case that may be changed during a run: those of iolets, the body force, amplitudes of sources."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.case.messages import nearest
from seiche.case.quantities import MAX_VALUE, shorten
from seiche.domain.world import World
from seiche.errors import CaseError

#: A number, or the components of a vector.
ControlValue = float | tuple[float, ...]


@dataclass(frozen=True)
class Limits:
    """A lower limit of a number in SI units; the limit itself is allowed if `inclusive`."""

    minimum: float = -math.inf
    inclusive: bool = True

    def problem(self, values: npt.NDArray[np.float64]) -> str:
        """Return the expected range if one of the `values` is outside, otherwise ""."""
        inside = values >= self.minimum if self.inclusive else values > self.minimum
        return "" if inside.all() else f"{'>=' if self.inclusive else '>'} {self.minimum:g}"


@dataclass(frozen=True)
class Control:
    """A value that may be changed: `value` in SI units, None if a table or a default defines it.

    `apply` sets a new value within `limits` from the next step on.
    """

    value: ControlValue | None
    apply: Callable[[Any], None]
    limits: Limits = Limits()


class Steering(MutableMapping[str, ControlValue | None]):
    """Current values by name, in SI units; `steering[name] = value` sets one. Checkpoints contain changed values.

    The names are those of the case: none can be added or removed.
    """

    def __init__(self, controls: Mapping[str, Control], world: World) -> None:
        """Give access to the `controls` of a case; `changed` contains the values set so far."""
        self._controls, self._world = controls, world
        self._values = {name: control.value for name, control in controls.items()}
        self.changed: dict[str, ControlValue] = {}

    def __getitem__(self, name: str) -> ControlValue | None:
        """Return the value `name`; CaseError for an unknown name, or anything else than a name."""
        if not isinstance(name, str):
            raise CaseError(f"steering: {shorten(name)} is not a name")
        if name not in self._values:
            raise CaseError(f"steering: {shorten(name)} is unknown{nearest(name, list(self))}")
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        """Return whether the case has a value `name`."""
        return isinstance(name, str) and name in self._values

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._values)

    def __len__(self) -> int:
        """Return the number of values."""
        return len(self._values)

    def __repr__(self) -> str:
        """Return the current values as text."""
        return repr(self._values)

    def __delitem__(self, name: str) -> None:
        """Raise a CaseError: values are changed, not removed."""
        raise CaseError(f"steering: {shorten(name)} cannot be removed; set another value")

    def get(self, name: Any, default: Any = None) -> Any:
        """Return the value `name`, or `default` if the case has no such value."""
        return self[name] if name in self else default

    def __setitem__(self, name: str, value: Any) -> None:
        """Set `value` for the next steps (collective).

        Raises:
            CaseError: the name is unknown, the value not allowed or different between ranks; the run is unchanged.
        """
        array = _as_array(value)
        shown = shorten(value)
        fingerprint = (shorten(name), shown, None if array is None else (array.shape, array.tobytes()))
        if len(set(self._world.allgather(fingerprint))) > 1:
            raise CaseError(f"steering: ranks set different values; this rank sets {shorten(name)} to {shown}")
        current, key = self[name], f"steering[{name!r}]"
        if array is None:
            raise CaseError(f"{key}: {shown} is not a number")
        shape = (len(current),) if isinstance(current, tuple) else ()
        if array.shape != shape:
            raise CaseError(f"{key}: {shown} has shape {array.shape}; expected {shape}")
        if not np.isfinite(array).all():
            raise CaseError(f"{key}: {shown} is not finite")
        if not (np.abs(array) < MAX_VALUE).all():
            raise CaseError(f"{key}: {shown} is out of range (up to {MAX_VALUE:g} in SI units)")
        if problem := self._controls[name].limits.problem(array):
            raise CaseError(f"{key}: {shown} is out of range; expected {problem}")
        new: ControlValue = tuple(array.tolist()) if shape else float(array)
        if new != current:
            self._controls[name].apply(new)
        self._values[name] = self.changed[name] = new


def _as_array(value: Any) -> npt.NDArray[np.float64] | None:
    """Return a number or an array of numbers in FP64, None for anything else, such as text."""
    try:
        array = np.asarray(value)
        if array.dtype == object and any(element is None for element in array.flat):
            return None
        return array.astype(np.float64) if array.dtype.kind in "iufO" else None
    except (TypeError, ValueError, OverflowError):
        return None
