# SPDX-License-Identifier: BSD-3-Clause
"""Device backends: arrays, kernels, streams, events and graphs; `open_backend("cuda:1")` opens one."""

from __future__ import annotations

from contextlib import suppress
from threading import Thread

import numpy as np

from seiche.backend.arrays import Array
from seiche.backend.base import Backend, Kernel, Stream
from seiche.backend.device import Device, parse_device
from seiche.errors import BackendUnavailable, CaseError

#: Upper limit of the number of threads: OpenMP ends the process if it cannot create them.
MAX_THREADS = 4096

__all__ = ["Array", "Backend", "Device", "Kernel", "Stream", "gpu_address", "open_backend", "parse_device"]


def open_backend(device: str, threads: int | None = None, local_rank: int = 0) -> Backend:
    """Return the backend for a device: `cpu`, `cuda` (the GPU of this rank), `cuda:K` or `cuda:free`.

    `cuda:free` is the first GPU whose memory is mostly free (`cuda.first_free`). `cpu:planned` and `cuda:planned`
    count operations without performing them (`planned.py`).

    Args:
        device: name of the device.
        threads: CPU threads of this process; None: all that the process may use.
        local_rank: number of this process on its host, for `cuda` without a number.

    Raises:
        BackendUnavailable: the device does not exist, or its libraries are not installed.
        CaseError: `threads` is not a whole number from 1 to MAX_THREADS.
    """
    if threads is not None:
        if not isinstance(threads, (int, np.integer)):
            raise CaseError(f"threads: {threads!r} is not a whole number")
        if not 1 <= threads <= MAX_THREADS:
            expected = ">= 1" if threads < 1 else f"<= {MAX_THREADS}"
            raise CaseError(f"threads: {threads} is out of range; expected {expected}")
    parsed = parse_device(device)
    if parsed.is_planned:
        from seiche.backend.planned import PlannedBackend

        return PlannedBackend(gpu=parsed.is_gpu)
    if not parsed.is_gpu:
        from seiche.backend.cpu import CpuBackend

        return CpuBackend(threads)
    from seiche.backend.cuda import CudaBackend, first_free

    return CudaBackend(first_free()) if parsed.first_free else CudaBackend(parsed.number, local_rank)


def gpu_address(device: str, local_rank: int = 0) -> str | None:
    """Return the PCI address of the GPU that `open_backend` would open, which is not opened; None if there is none."""
    parsed = parse_device(device)
    if not parsed.is_gpu or parsed.is_planned or parsed.first_free:
        return None
    from seiche.backend.cuda import gpu_number, pci_address

    try:
        return pci_address(gpu_number(parsed.number, local_rank))
    except BackendUnavailable:  # reported when it is opened
        return None


def prepare_device(device: str, local_rank: int = 0) -> Thread | None:
    """Create the context of a GPU in a thread, beside the set-up on the host, and return the thread.

    `open_backend` then takes less time, and reports all errors. None for other devices.
    """
    parsed = parse_device(device)
    if not parsed.is_gpu or parsed.is_planned:
        return None

    def create() -> None:
        from seiche.backend.cuda import create_context, first_free

        with suppress(BackendUnavailable):
            create_context(first_free() if parsed.first_free else parsed.number, local_rank)

    thread = Thread(target=create, name="context of a GPU")
    thread.start()
    return thread
