# SPDX-License-Identifier: BSD-3-Clause
"""Names of devices: `cpu`, `cuda`, `cuda:K`, `cuda:free`, `cpu:planned`, `cuda:planned`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from seiche.errors import BackendUnavailable


@dataclass(frozen=True)
class Device:
    """A parsed device name: kind, number of the GPU if specified, and modifiers."""

    kind: Literal["cpu", "cuda"]
    number: int | None = None
    first_free: bool = False
    is_planned: bool = False

    @property
    def is_gpu(self) -> bool:
        """Return whether it is a GPU."""
        return self.kind == "cuda"

    @property
    def planned(self) -> str:
        """Return the name of the planned device of the same kind."""
        return f"{self.kind}:planned"


def parse_device(name: str) -> Device:
    """Parse the name of a device.

    Raises:
        BackendUnavailable: the name is unknown.
    """
    kind, colon, suffix = name.partition(":") if isinstance(name, str) else ("", "", "")
    if kind == "cpu" and not colon:
        return Device("cpu")
    if kind == "cuda" and (suffix.isdecimal() or not colon):
        return Device("cuda", int(suffix) if suffix else None)
    if kind == "cuda" and suffix == "free":
        return Device("cuda", first_free=True)
    if kind in ("cpu", "cuda") and suffix == "planned":
        return Device("cuda" if kind == "cuda" else "cpu", is_planned=True)
    raise BackendUnavailable(f"device {name!r} is unknown: use 'cpu', 'cuda' or 'cuda:K'")
