# SPDX-License-Identifier: BSD-3-Clause
"""Transforms of lines side by side in vectors: `kspace/wide.hpp`, for CPUs alone."""

from __future__ import annotations

from .kspace import CPP, cpp_bool
from .kspace_lines import radices_of
from .spec import CPP_TYPE, KernelSpec, Members, Real

#: Lines in a vector of 64 bytes.
LANES: dict[Real, int] = {"float32": 16, "float64": 8}
#: The longest lines, of which a thread has two batches on its stack, and the largest factor taken at once.
_LONGEST, _RADIX = 1024, 8


def wide_side(length: int, real: Real, *, inverse: bool) -> KernelSpec | None:
    """Return the transform of lines of this length along an axis before the last, None where `wide_rows` has none."""
    members: Members = (("spectra", "ptr"), ("roots", "ptr"), ("inner", "int64"), ("batches", "int64"))
    return _wide("WideSide", length, real, members, inverse=inverse)


def wide_rows(length: int, real: Real, *, inverse: bool) -> KernelSpec | None:
    """Return the transform of rows of reals; None where they are too long or have a prime factor above 7."""
    pointers = tuple((name, "ptr") for name in ("reals", "spectra", "roots"))
    return _wide("WideRows", length, real, (*pointers, ("rows", "int64"), ("apart", "int64")), inverse=inverse)


def _wide(name: str, length: int, real: Real, members: Members, *, inverse: bool) -> KernelSpec | None:
    radices = radices_of(length, _RADIX) if 2 <= length <= _LONGEST else None
    if radices is None:
        return None
    factors = f"{CPP}Radices<{','.join(map(str, radices))}>"
    cpp = f"{CPP}{name}<{CPP_TYPE[real]},{factors},{LANES[real]},{cpp_bool(inverse)}>"
    return KernelSpec(cpp, "kspace/wide.hpp", members, team=True)
