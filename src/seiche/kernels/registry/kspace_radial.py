# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of axisymmetric grids, `kernels/kspace/radial.hpp`."""

from __future__ import annotations

from collections.abc import Iterator

from .kspace import ROWS, row_kernel
from .spec import CPP_TYPE, KernelSpec, Members, Real, pointers, typed_members


def continue_rows(real: Real) -> KernelSpec:
    """Fields continued beyond both ends of the radial axis."""
    arrays: Members = (*pointers("field padded index factor"), ("rows", ROWS), ("row_stride", "int64"))
    return row_kernel(f"ContinueRows<{CPP_TYPE[real]}>", "radial", (*arrays, *typed_members("int32", "first period")))


def axisymmetric_divergence(real: Real) -> KernelSpec:
    """Spectra of the divergence in cylindrical coordinates."""
    members: Members = (*pointers("work derivative shift kappa"), ("rows", ROWS))
    return row_kernel(f"AxisymmetricDivergence<{CPP_TYPE[real]}>", "radial", members)


def default_kernels() -> Iterator[KernelSpec]:
    """Yield all kernels."""
    reals: tuple[Real, ...] = ("float32", "float64")
    for real in reals:
        yield continue_rows(real)
        yield axisymmetric_divergence(real)


def other_kernels() -> Iterator[KernelSpec]:
    """Yield all kernels for the check of GPU kernels."""
    yield from default_kernels()
