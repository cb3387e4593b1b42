# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of ultrasound on several ranks."""

from __future__ import annotations

from collections.abc import Iterator

from .kspace import ROWS
from .spec import CPP_TYPE, KernelSpec, Members, Real, pointers, typed_members


def taper(real: Real) -> KernelSpec:
    """Product of fields and the bell function of the overlaps, in padded rows."""
    members: Members = (*pointers("field work bell"), ("rows", ROWS), *typed_members("int32", "fields padded"))
    return KernelSpec(f"kspace::Taper<{CPP_TYPE[real]}>", "kspace/taper.hpp", members, threads=128, team=True)


def default_kernels() -> Iterator[KernelSpec]:
    """Yield the kernels of the local basis."""
    yield taper("float32")
    yield taper("float64")


def other_kernels() -> Iterator[KernelSpec]:
    """Yield all: the GPU gate compiles them."""
    yield from default_kernels()
