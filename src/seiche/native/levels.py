# SPDX-License-Identifier: BSD-3-Clause
"""Instruction set levels of the CPU kernels; as a script, print the level of this machine."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

#: CPU features required by each level, as in /proc/cpuinfo, best level first (x86-64 psABI).
LEVELS = {
    "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx2", "bmi2", "fma", "f16c"},
    "x86-64-v3": {"avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"},
    "x86-64-v2": {"ssse3", "sse4_1", "sse4_2", "popcnt"},
    "portable": set(),
}


def cpu_field(field: str) -> str:
    """Return a field of the first processor in /proc/cpuinfo, empty if missing."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(field):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return ""


def levels_of(features: Iterable[str]) -> list[str]:
    """Return the levels of a processor with these features, best first."""
    present = set(features)
    return [level for level, needed in LEVELS.items() if needed <= present]


if __name__ == "__main__":
    print(levels_of(cpu_field("flags").split())[0])
