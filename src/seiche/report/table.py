# SPDX-License-Identifier: BSD-3-Clause
"""The table at the end of a run: time of each stage, and its bandwidth relative to a memory copy."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seiche.observe.stage import Stage
from seiche.observe.timers import StageTime

if TYPE_CHECKING:
    from rich.table import Table

#: Name of the row of the remaining time (files, pictures, host work between stages).
OTHER = "other"


@dataclass(frozen=True)
class StageRow:
    """One row of the table.

    `seconds` is the total of the run in the proportions of the timed steps; `share` is its fraction of the wall time.
    `bandwidth` (bytes per second) and `copy_share` (fraction of the copy bandwidth) are None for a stage that is not
    memory-bound. `mean`, `minimum` and `maximum` are seconds in a step that has the stage.
    """

    name: str
    seconds: float
    share: float
    bandwidth: float | None = None
    copy_share: float | None = None
    mean: float = 0.0
    minimum: float = 0.0
    maximum: float = 0.0
    samples: int = 0


def stage_rows(
    stages: Sequence[Stage | str],
    times: Mapping[str, StageTime],
    *,
    steps: int,
    seconds: float,
    copy_bandwidth: float | None = None,
    bytes_per_step: Mapping[str, float] | None = None,
    frequency: Mapping[str, float] | None = None,
    host_overhead: Mapping[str, float] | None = None,
    step_seconds: float | None = None,
) -> list[StageRow]:
    """Return a row for each timed stage in the order of the step, and one for the remaining time.

    Args:
        stages: the step, or the names of its stages.
        times: measured times, of one rank or the mean over ranks.
        steps: number of steps.
        seconds: wall seconds of the steps.
        copy_bandwidth: bytes per second (read plus write) of a plain copy on the same cores or device.
        bytes_per_step: bytes of stages that differ from those of `stages` (the sum over ranks).
        frequency: fraction of the steps that have a stage; 1 by default.
        host_overhead: seconds of host activities between steps, by name; zero gives no row.
        step_seconds: seconds of all steps, distributed over the stages in the proportions of the timed steps. By
            default the seconds of a stage are its mean times the number of steps, with the error of the sample.
    """
    rows = []
    totals = {name: time.mean * steps * (frequency or {}).get(name, 1.0) for name, time in times.items()}
    scale = step_seconds / sum(totals.values()) if step_seconds and sum(totals.values()) > 0 else 1.0
    for stage in stages:
        name, declared = (stage, 0) if isinstance(stage, str) else (stage.name, stage.bytes)
        time = times.get(name)
        if time is None or not time.samples:
            continue
        stage_bytes = (bytes_per_step or {}).get(name, declared)
        bandwidth = stage_bytes / time.mean if stage_bytes and time.mean > 0 else None
        total = scale * totals[name]
        share = total / seconds if seconds > 0 else 0.0
        copy_share = bandwidth / copy_bandwidth if bandwidth and copy_bandwidth else None
        statistics = (time.mean, time.minimum, time.maximum, time.samples)
        rows.append(StageRow(name, total, share, bandwidth, copy_share, *statistics))
    overheads = {name: time for name, time in (host_overhead or {}).items() if time > 0.0}
    rows += [StageRow(name, time, time / seconds if seconds > 0 else 0.0) for name, time in overheads.items()]
    # Overlapping stages can add up to more than the wall time.
    remaining = max(0.0, seconds - sum(row.seconds for row in rows))
    rows.append(StageRow(OTHER, remaining, remaining / seconds if seconds > 0 else 0.0))
    return rows


def stage_table(
    rows: Sequence[StageRow],
    *,
    seconds: float,
    title: str | None = None,
    note: str | None = None,
    set_up: Mapping[str, float] | None = None,
) -> Table:
    """Return the rows as a table for the terminal, and the wall `seconds` of the run.

    The times of the stages of the `set_up` (s), which precede the run, follow.
    """
    from rich import box
    from rich.table import Table

    table = Table(title=title, caption=note, box=box.SIMPLE_HEAD, title_justify="left", caption_justify="left")
    table.add_column("stage", no_wrap=True)
    for name in ("time (s)", "share", "GB/s", "share of copy"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        bandwidth = "" if row.bandwidth is None else f"{row.bandwidth * 1e-9:.1f}"
        share_of_copy = "" if row.copy_share is None else f"{row.copy_share:.0%}"
        table.add_row(row.name, _seconds(row.seconds), f"{row.share:.1%}", bandwidth, share_of_copy)
    table.add_section()
    table.add_row("run", _seconds(seconds), "", "", "")
    if set_up:
        table.add_section()
        for name, time in set_up.items():
            table.add_row(f"set-up: {name}", _seconds(time), "", "", "")
    return table


def as_text(table: Table, width: int = 100) -> str:
    """Return the table as plain text."""
    from rich.console import Console

    stream = io.StringIO()
    Console(file=stream, width=width, color_system=None, highlight=False).print(table)
    return "\n".join(line.rstrip() for line in stream.getvalue().rstrip("\n").split("\n"))


def _seconds(value: float) -> str:
    return f"{value:.1f}" if value >= 100 else f"{value:.3g}"


def markdown(columns: Sequence[str], lines: Sequence[Sequence[str]], *, text_columns: int) -> str:
    """Return a Markdown table; the first `text_columns` columns are left-aligned, the others right-aligned."""
    rule = ["---" if k < text_columns else "---:" for k in range(len(columns))]
    return "".join(f"| {' | '.join(line)} |\n" for line in (columns, rule, *lines))
