# SPDX-License-Identifier: BSD-3-Clause
"""Flow and waves on many GPUs; `seiche.load("case.toml").run()` is the shortest way in.

Importing this package loads nothing else: every part is imported when it is first named.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seiche.case.loading import load as load

__version__ = "0.1.0"

_PARTS = (
    *("backend", "case", "cells", "couple", "domain", "errors", "flow", "halo", "io", "machine", "observe", "report"),
    *("solver", "ultrasound", "waves"),
)


def __getattr__(name: str) -> Any:
    """Import the part called `name` on first use."""
    if name == "load":
        return import_module("seiche.case.loading").load
    if name in _PARTS:
        return import_module(f"seiche.{name}")
    raise AttributeError(f"module 'seiche' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the parts that can be named, loaded or not."""
    return sorted([*globals(), *_PARTS, "load"])
