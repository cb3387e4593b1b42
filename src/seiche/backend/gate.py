# SPDX-License-Identifier: BSD-3-Clause
"""The NVRTC gate: compile every registered kernel for sm_80, sm_90 and sm_100, without a GPU.

`python -m seiche.backend.gate` prints registers and spills of each kernel and fails if one exceeds its limit. Arguments
select kernels: those whose C++ type or header contains one of them.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat

from seiche.backend.cache import compile_kernel
from seiche.errors import KernelCompileError
from seiche.kernels.registry import KernelSpec, all_kernels

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")


@dataclass(frozen=True)
class Usage:
    """Registers per thread and spilled bytes (stores plus loads) of a kernel, reported by the assembler."""

    registers: int
    spilled: int


def usage_of(log: str) -> Usage:
    """Read registers and spills from the assembler's verbose log.

    Raises:
        KernelCompileError: the log does not contain them.
    """
    registers = re.search(r"Used (\d+) registers", log)
    spills = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", log)
    if registers is None or spills is None:
        raise KernelCompileError(f"the log of the assembler contains no register or spill counts: {log!r}")
    return Usage(int(registers[1]), int(spills[1]) + int(spills[2]))


def check_kernel(spec: KernelSpec, architecture: str) -> tuple[Usage, str | None]:
    """Compile one kernel; return its usage and a description of the violated limit, if any."""
    usage = usage_of(compile_kernel(spec, architecture, verbose=True).log)
    if usage.registers > spec.max_registers:
        return usage, f"{usage.registers} registers, {spec.max_registers} allowed"
    if usage.spilled and not spec.may_spill:
        return usage, f"{usage.spilled} bytes spilled"
    return usage, None


def _check_all(spec: KernelSpec, architectures: Sequence[str]) -> list[tuple[Usage, str | None]]:
    return [check_kernel(spec, architecture) for architecture in architectures]


def run(specs: Iterable[KernelSpec], architectures: Sequence[str] = ARCHITECTURES) -> int:
    """Check all kernels on all cores; print one line per kernel and return the number of failures."""
    failures = 0
    print(f"{'registers/spilled bytes: ' + ' '.join(architectures):<52} kernel")
    kernels = list(specs)
    # Spawned, not forked: the caller may have threads.
    with ProcessPoolExecutor(os.cpu_count(), mp_context=multiprocessing.get_context("spawn")) as pool:
        for spec, checked in zip(
            kernels, pool.map(_check_all, kernels, repeat(architectures), chunksize=4), strict=True
        ):
            for architecture, (_, violation) in zip(architectures, checked, strict=True):
                if violation:
                    failures += 1
                    print(f"FAILED {architecture}: {spec.type}: {violation}")
            columns = " ".join(f"{usage.registers:>4}/{usage.spilled}" for usage, _ in checked)
            print(f"{columns:<24} {spec.type}", flush=True)
    print(f"{len(kernels)} kernels for {', '.join(architectures)}: {failures} failures")
    return failures


def selected(patterns: Sequence[str]) -> list[KernelSpec]:
    """Return the kernels whose type or header contains one of the `patterns`; all kernels if there are none."""
    return [
        spec
        for spec in all_kernels()
        if not patterns or any(pattern in spec.type + spec.header for pattern in patterns)
    ]


def main(patterns: Sequence[str]) -> int:
    """Check the selected kernels and return the exit status: 1 if one fails, 2 if there is none."""
    specs = selected(patterns)
    if not specs:
        print(f"no kernel has {' or '.join(map(repr, patterns))} in its type or header", file=sys.stderr)
        return 2
    return 1 if run(specs) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
