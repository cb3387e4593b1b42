# SPDX-License-Identifier: BSD-3-Clause
"""Instructions per cycle and frequency of the processors of a run, from counts of its ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from seiche.report.html import escape, number, section, table


@dataclass(frozen=True)
class Counts:
    """Sums over ranks: cycles and instructions outside the kernel, and seconds on a processor, in all steps."""

    cycles: float
    instructions: float
    seconds: float

    @property
    def ipc(self) -> float:
        """Return instructions per cycle."""
        return self.instructions / self.cycles

    @property
    def frequency(self) -> float:
        """Return cycles per second on a processor, Hz."""
        return self.cycles / self.seconds


def counts_of(movement: Mapping[str, Any], rank: int | None = None) -> Counts | None:
    """Return the counts of a rank, by default of all ranks together; None if the processor was not counted."""
    counters = movement.get("counters") or {}
    if "cycles" not in counters:
        return None
    values = (counters["cycles"], counters["instructions"], counters["cpu_ns"])
    cycles, instructions, nanoseconds = (sum(value) if rank is None else value[rank] for value in values)
    return Counts(cycles, instructions, nanoseconds * 1e-9) if cycles > 0 and nanoseconds > 0 else None


def processor_section(movement: Mapping[str, Any]) -> str:
    """Return the section of the processors, or one line that states why there are no counts."""
    counters = movement.get("counters") or {}
    if "unavailable" in counters:
        reason = f"<p>Instructions per cycle and frequency are unknown: {escape(counters['unavailable'])}.</p>"
        return section("Processors", reason)
    total = counts_of(movement)
    if total is None:
        return ""
    ranks = [counts_of(movement, rank) for rank in range(len(counters["cycles"]))]
    ipcs = [counts.ipc for counts in ranks if counts is not None]
    frequencies = [counts.frequency * 1e-9 for counts in ranks if counts is not None]
    rows = [
        ("instructions per cycle", number(total.ipc), number(min(ipcs)), number(max(ipcs))),
        ("frequency, GHz", number(total.frequency * 1e-9), number(min(frequencies)), number(max(frequencies))),
    ]
    note = "<p>Of all threads in all steps, including active waiting for messages; without the time in the kernel.</p>"
    return section("Processors", table(("", "all ranks", "lowest rank", "highest rank"), rows), note)
