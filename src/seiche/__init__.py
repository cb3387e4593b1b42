# SPDX-License-Identifier: BSD-3-Clause
"""Flow and waves on many GPUs. The shortest way to run a case is `seiche.load("case.toml").run()`.

Subpackages are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seiche.case.loading import load as load

__version__ = "0.2.0"

_PARTS = (
    *("backend", "case", "cells", "couple", "domain", "errors", "flow", "halo", "io", "machine", "observe", "report"),
    *("solver", "ultrasound", "waves"),
)


def __getattr__(name: str) -> Any:
    """Import the subpackage `name` on first use."""
    if name == "load":
        return import_module("seiche.case.loading").load
    if name in _PARTS:
        return import_module(f"seiche.{name}")
    raise AttributeError(f"module 'seiche' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the available names, imported or not."""
    return sorted([*globals(), *_PARTS, "load"])
