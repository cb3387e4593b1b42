# SPDX-License-Identifier: BSD-3-Clause
"""Resident memory of a rank, also of libraries."""

from __future__ import annotations

import ctypes
from pathlib import Path


def reset_peak_memory() -> int:
    """Set the recorded peak of the resident memory of this process to the present one and return it, in bytes."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:  # otherwise memory that is free, but still in the heap, hides as much of the next peak
        trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return peak_memory()


def peak_memory() -> int:
    """Return the largest resident memory of this process, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
