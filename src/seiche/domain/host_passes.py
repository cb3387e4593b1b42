# SPDX-License-Identifier: BSD-3-Clause
"""Kernels that generate sites, by default on the threads of the host."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend, open_backend
from seiche.kernels.registry import KernelSpec

_selected: list[tuple[str, int | None]] = [("cpu", None)]


@contextmanager
def passes_on(device: str = "cpu", threads: int | None = None) -> Iterator[None]:
    """Run the passes inside this context on a device, by default on all threads that the process may use.

    Results do not depend on it. A GPU copies all arrays there and back.
    """
    _selected.append((device, threads))
    try:
        yield
    finally:
        _selected.pop()


@cache
def _backend(device: str, threads: int | None) -> Backend:
    return open_backend(device, threads)


def run_pass(spec: KernelSpec, items: int | range, **members: Any) -> None:
    """Run the items 0 ... `items` - 1 or those of a range; arrays must be contiguous and of the types of the kernel."""
    backend = _backend(*_selected[-1])
    copies: list[tuple[npt.NDArray[Any], Array]] = []
    arguments = {name: _argument(backend, name, value, copies) for name, value in members.items()}
    kernel = backend.load(spec)
    first, end = (items.start, items.stop) if isinstance(items, range) else (0, items)
    if first >= end:
        return
    kernel.bind(backend.pack(kernel, **arguments), first, end)()
    for array, copy in copies:
        if array.flags.writeable:
            array[...] = backend.download(copy)


def _argument(backend: Backend, name: str, value: Any, copies: list[tuple[npt.NDArray[Any], Array]]) -> Any:
    """Return a member of the arguments, with arrays in the memory of the device; add the copies to `copies`."""
    if isinstance(value, dict):
        return {key: _argument(backend, key, inner, copies) for key, inner in value.items()}
    if not isinstance(value, np.ndarray):
        return value
    if not value.flags.c_contiguous:
        raise ValueError(f"argument {name} is not contiguous")
    if backend.host_memory:
        return value
    copy = backend.upload(value)
    copies.append((value, copy))
    return copy


def offsets(counts: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the sums of the values before each of `counts` (n,), and of all of them, (n + 1,)."""
    result = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=result[1:])
    return result
