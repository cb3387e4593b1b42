# SPDX-License-Identifier: BSD-3-Clause
"""A program that is compared: where it runs, and its measurement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


class UnavailableError(Exception):
    """The program is not installed, or cannot do the work on this device."""


@dataclass(frozen=True)
class Place:
    """Where a program runs: device, number of threads, seconds of one measurement."""

    device: str
    threads: int
    seconds: float

    @property
    def on_gpu(self) -> bool:
        """Whether the device is a GPU."""
        return self.device != "cpu"


@dataclass(frozen=True)
class Program:
    """A program that is ready: its version and a function that measures once and returns the figure and details."""

    version: str
    measure: Callable[[], tuple[float, Mapping[str, Any]]]
