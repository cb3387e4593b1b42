# SPDX-License-Identifier: BSD-3-Clause
"""Start of the commands kspaceFirstOrder-OMP and kspaceFirstOrder-CUDA, which a signal ends with one line."""

from __future__ import annotations

import gc
import sys

from seiche.start import rare_collections, signals_during_start


def omp() -> None:
    """Run kspaceFirstOrder-OMP."""
    _run("kspaceFirstOrder-OMP", "cpu")


def cuda() -> None:
    """Run kspaceFirstOrder-CUDA."""
    _run("kspaceFirstOrder-CUDA", "cuda")


def _run(program: str, device: str) -> None:
    with signals_during_start(program):
        with rare_collections():
            from seiche.dropin.program import main
        try:
            status = main(sys.argv[1:], program, device)
        finally:
            gc.freeze()  # as for the command `seiche`
    sys.exit(status)
