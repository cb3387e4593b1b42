# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of ultrasound on several ranks."""

from __future__ import annotations

from collections.abc import Iterator

from .kspace import ROWS
from .spec import CPP_TYPE, KernelSpec, Members, Real


def taper(real: Real) -> KernelSpec:
    """Fields times the bell of the overlaps, into padded rows."""
    members: Members = (
        ("field", "ptr"),
        ("work", "ptr"),
        ("bell", "ptr"),
        ("rows", ROWS),
        ("fields", "int32"),
        ("padded", "int32"),
    )
    return KernelSpec(f"kspace::Taper<{CPP_TYPE[real]}>", "kspace/taper.hpp", members, threads=128, team=True)


def other_kernels() -> Iterator[KernelSpec]:
    """Yield representatives of what is compiled on first use."""
    yield taper("float32")
    yield taper("float64")
