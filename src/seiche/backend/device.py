# SPDX-License-Identifier: BSD-3-Clause
"""The words that name devices: `cpu`, `cuda`, `cuda:K`, `cuda:free`, `cpu:planned`, `cuda:planned`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from seiche.errors import BackendUnavailable


@dataclass(frozen=True)
class Device:
    """A device as it is named: its kind, the number of a GPU if there is one, and how else it is meant."""

    kind: Literal["cpu", "cuda"]
    number: int | None = None
    first_free: bool = False
    only_planned: bool = False

    @property
    def is_gpu(self) -> bool:
        """Return whether it is a GPU."""
        return self.kind == "cuda"

    @property
    def planned(self) -> str:
        """Return the word of the device that only counts what this one would do."""
        return f"{self.kind}:planned"


def parse_device(word: str) -> Device:
    """Return the device that a word names.

    Raises:
        BackendUnavailable: it names none.
    """
    kind, colon, rest = word.partition(":") if isinstance(word, str) else ("", "", "")
    if kind == "cpu" and not colon:
        return Device("cpu")
    if kind == "cuda" and (rest.isdecimal() or not colon):
        return Device("cuda", int(rest) if rest else None)
    if kind == "cuda" and rest == "free":
        return Device("cuda", first_free=True)
    if kind in ("cpu", "cuda") and rest == "planned":
        return Device("cuda" if kind == "cuda" else "cpu", only_planned=True)
    raise BackendUnavailable(f"device {word!r} is unknown: use 'cpu', 'cuda' or 'cuda:K'")
