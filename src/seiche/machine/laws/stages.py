# SPDX-License-Identifier: BSD-3-Clause
"""Roofline predictions of the stages of a step from their declared bytes."""

from __future__ import annotations

from collections.abc import Iterable

from seiche.machine.laws.file import Machine
from seiche.machine.laws.models import roofline
from seiche.observe.stage import Stage


def stage_times(stages: Iterable[Stage], machine: Machine, *, gpu: bool = False) -> dict[str, float]:
    """Return the minimum seconds of each stage in a step, by name (theory/movement, eq. 15).

    A rank has an equal share of the copy bandwidth of all ranks of the measurement. Stages that declare no bytes are
    not bound by memory and are omitted.

    Raises:
        CaseError: the file has no bandwidth of this memory.
    """
    memory = "device" if gpu else "host"
    rate = machine.copy_rate(memory) / max(1, int(machine.hardware.get("ranks", 1)))
    start = machine.launch[memory].kernel if memory in machine.launch else 0.0
    return {stage.name: roofline(stage.bytes, rate, start) for stage in stages if stage.bytes}
