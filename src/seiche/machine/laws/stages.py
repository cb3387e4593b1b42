# SPDX-License-Identifier: BSD-3-Clause
"""Predict the stages of a step by the roofline: the bytes that each declares, at the rate of the memory."""

from __future__ import annotations

from collections.abc import Iterable

from seiche.machine.laws.file import Machine
from seiche.machine.laws.models import roofline
from seiche.observe.stage import Stage


def stage_times(stages: Iterable[Stage], machine: Machine, *, gpu: bool = False) -> dict[str, float]:
    """Return the seconds that one step of each stage takes at least, by name (theory/movement, eq. 15).

    A rank has its share of the copy bandwidth that all ranks of the measurement reached together. Stages that declare
    no bytes are left out: not memory decides about them.

    Raises:
        CaseError: the file has no bandwidth of that memory.
    """
    memory = "device" if gpu else "host"
    rate = machine.copy_rate(memory) / max(1, int(machine.hardware.get("ranks", 1)))
    start = machine.launch[memory].kernel if memory in machine.launch else 0.0
    return {stage.name: roofline(stage.bytes, rate, start) for stage in stages if stage.bytes}
