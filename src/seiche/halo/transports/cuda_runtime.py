# SPDX-License-Identifier: BSD-3-Clause
"""The CUDA runtime, for transports and measurements between GPUs."""

from __future__ import annotations

from typing import Any

#: cudaMemcpyDefault: the driver infers host or device from the addresses.
MEMCPY_DEFAULT = 4
#: cudaIpcMemLazyEnablePeerAccess: map memory of another GPU on first use.
IPC_LAZY = 1


def cuda_runtime() -> Any:
    """Return CuPy's CUDA runtime; only for ranks that have a CUDA backend."""
    import cupy

    return cupy.cuda.runtime
