# SPDX-License-Identifier: BSD-3-Clause
"""The CUDA runtime, for transports and measurements between GPUs."""

from __future__ import annotations

from typing import Any


def cuda_runtime() -> Any:
    """Return CuPy's CUDA runtime; only for ranks that have a CUDA backend."""
    import cupy

    return cupy.cuda.runtime
