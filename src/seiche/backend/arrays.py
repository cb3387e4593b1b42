# SPDX-License-Identifier: BSD-3-Clause
"""Device arrays, and the argument structs of kernels."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from seiche.kernels.registry import Members

#: Memory of a backend: a NumPy array on the CPU, a CuPy array on a GPU. Only the backend accesses its contents.
Array: TypeAlias = Any


def argument_dtype(members: Members) -> np.dtype[Any]:
    """Return the NumPy dtype with the layout of the C++ argument struct (natural alignment)."""
    fields: list[tuple[Any, ...]] = []
    for name, kind in members:
        if kind == "ptr":
            fields.append((name, np.uint64))
        elif isinstance(kind, str):
            fields.append((name, np.dtype(kind)))
        elif isinstance(kind[0], str):
            fields.append((name, np.dtype(kind[0]), (kind[1],)))
        else:
            fields.append((name, argument_dtype(kind)))
    return np.dtype(fields, align=True)
