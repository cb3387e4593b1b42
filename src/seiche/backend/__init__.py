# SPDX-License-Identifier: BSD-3-Clause
"""Devices behind one interface: arrays, kernels, streams, events, graphs; others need only `open_backend("cuda:1")`."""

from __future__ import annotations

import numpy as np

from seiche.backend.arrays import Array
from seiche.backend.base import Backend, Kernel, Stream
from seiche.backend.device import Device, parse_device
from seiche.errors import CaseError

#: More threads than any machine has cores: OpenMP would end the process when it cannot have them.
MOST_THREADS = 4096

__all__ = ["Array", "Backend", "Device", "Kernel", "Stream", "open_backend", "parse_device"]


def open_backend(device: str, threads: int | None = None, local_rank: int = 0) -> Backend:
    """Return the backend named by one word: `cpu`, `cuda` (the GPU of this rank), `cuda:K` or `cuda:free`.

    `cuda:free` is the first GPU that nobody uses (`cuda.first_free`).
    `cpu:planned` and `cuda:planned` are devices that only count what would be done (`planned.py`).

    Args:
        device: the word.
        threads: CPU threads of this process; None takes what the process may use.
        local_rank: which process of this host this is, for `cuda` without a number.

    Raises:
        BackendUnavailable: no such device, or its libraries are not installed.
        CaseError: not a whole number of threads from 1 to MOST_THREADS.
    """
    if threads is not None:
        if not isinstance(threads, (int, np.integer)):
            raise CaseError(f"threads: {threads!r} is not a whole number")
        if not 1 <= threads <= MOST_THREADS:
            raise CaseError(
                f"threads: {threads} is out of range; expected {'>= 1' if threads < 1 else f'<= {MOST_THREADS}'}"
            )
    word = parse_device(device)
    if word.only_planned:
        from seiche.backend.planned import PlannedBackend

        return PlannedBackend(gpu=word.is_gpu)
    if not word.is_gpu:
        from seiche.backend.cpu import CpuBackend

        return CpuBackend(threads)
    from seiche.backend.cuda import CudaBackend, first_free

    return CudaBackend(first_free()) if word.first_free else CudaBackend(word.number, local_rank)
