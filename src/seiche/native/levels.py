# SPDX-License-Identifier: BSD-3-Clause
"""Instruction sets of the CPU kernels and the one that a processor has; as a script, print that of this machine."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

#: Best first: features that /proc/cpuinfo must show for an instruction set (x86-64 psABI, micro-architecture levels).
LEVELS = {
    "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx2", "bmi2", "fma", "f16c"},
    "x86-64-v3": {"avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"},
    "x86-64-v2": {"ssse3", "sse4_1", "sse4_2", "popcnt"},
    "portable": set(),
}


def cpu_field(field: str) -> str:
    """Return a field of the first processor in /proc/cpuinfo, empty where there is none."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(field):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return ""


def levels_of(features: Iterable[str]) -> list[str]:
    """Return the levels that a processor with these features has, the best one first."""
    there = set(features)
    return [level for level, needed in LEVELS.items() if needed <= there]


if __name__ == "__main__":
    print(levels_of(cpu_field("flags").split())[0])
