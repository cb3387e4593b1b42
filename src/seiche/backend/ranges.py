# SPDX-License-Identifier: BSD-3-Clause
"""Named ranges in the timeline of a profiler (NVTX), on any device."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

#: Set by profilers such as Nsight Systems in the processes that they start.
PROFILER_VARIABLE = "NVTX_INJECTION64_PATH"

Ranges = Callable[[str], AbstractContextManager[Any]]


def nvtx() -> Any | None:
    """Return CuPy's module for NVTX ranges, None without CuPy."""
    try:
        return importlib.import_module("cupy.cuda.nvtx")
    except ImportError:
        return None


def profiler_ranges() -> Ranges:
    """Return a function whose context is a range of this name, without effect unless a profiler started the process."""
    library = nvtx() if PROFILER_VARIABLE in os.environ else None
    if library is None:
        return nullcontext

    @contextmanager
    def labelled(name: str) -> Iterator[None]:
        library.RangePush(name)
        try:
            yield
        finally:
            library.RangePop()

    return labelled
