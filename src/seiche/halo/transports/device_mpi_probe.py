# SPDX-License-Identifier: BSD-3-Clause
"""Send a message between two arrays of GPU memory by MPI; run it in a separate process, because it may crash."""

from __future__ import annotations

import sys


def main() -> int:
    """Return 0 if MPI transferred the contents of GPU memory correctly."""
    import cupy
    from mpi4py import MPI

    for size in (8, 1 << 20):
        out = cupy.arange(size, dtype=cupy.uint8)
        target = cupy.zeros_like(out)
        cupy.cuda.runtime.deviceSynchronize()
        MPI.COMM_SELF.Sendrecv(out, 0, 0, target, 0, 0)
        if not bool((out == target).all()):
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
