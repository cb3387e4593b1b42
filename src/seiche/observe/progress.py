# SPDX-License-Identifier: BSD-3-Clause
"""Progress of a run: a live bar on a terminal, periodic lines in a log."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Self, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

#: Seconds over which the rate is averaged.
_WINDOW = 5.0
_LINE_WIDTH = 24


def unit_of_rate(item: str) -> str:
    """Return the unit of a million updates of an item per second."""
    return "MLUPS" if item == "sites" else f"M {item}/s"


class Progress:
    """Step, rate in million updates per second and remaining time.

    A terminal shows a bar at the bottom; other output scrolls above it. A log gets one line every `every` seconds and
    one at the end.

    Args:
        steps: last step of the run.
        sites: number of items on all ranks.
        item: kind of item: "sites", "elements" or "points".
        first: first step of the run.
        visible: whether to show anything (on the first rank only).
        stream: output; standard error by default.
        every: seconds between two lines in a log.
        clock: returns seconds.
    """

    def __init__(
        self,
        steps: int,
        sites: int,
        *,
        item: str = "sites",
        first: int = 0,
        visible: bool = True,
        stream: TextIO | None = None,
        every: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.steps, self.sites, self.step, self._first = steps, sites, first, first
        self._visible, self._every, self._clock, self._unit = visible, every, clock, unit_of_rate(item)
        self._stream = stream if stream is not None else sys.stderr
        self._samples: deque[tuple[float, int]] = deque()
        self._last_line = 0.0
        self._begin = 0.0
        self._bar: Bar | None = None
        self._imbalance: float | None = None
        self._checkpoint: int | None = None
        self._physics: Mapping[str, str] = {}

    @property
    def rate(self) -> float:
        """Return the recent number of steps per second, or 0 before two updates."""
        if len(self._samples) < 2:
            return 0.0
        (begin, first), (end, last) = self._samples[0], self._samples[-1]
        return (last - first) / (end - begin) if end > begin else 0.0

    @property
    def mlups(self) -> float:
        """Return the rate in million updates per second."""
        return self.rate * self.sites * 1e-6

    @property
    def remaining_seconds(self) -> float | None:
        """Return the remaining seconds at the current rate, or None if it is unknown."""
        return (self.steps - self.step) / self.rate if self.rate > 0 else None

    def update(
        self,
        step: int,
        *,
        imbalance: float | None = None,
        checkpoint: int | None = None,
        physics: Mapping[str, str] | None = None,
    ) -> None:
        """Update to `step` completed steps.

        `imbalance` is the ratio of maximum to mean compute time of ranks, `checkpoint` the step of the last checkpoint,
        `physics` are physical quantities by name, as text.
        """
        now = self._clock()
        self.step, self._checkpoint, self._physics = step, checkpoint, physics or {}
        self._imbalance = imbalance if imbalance is not None else self._imbalance
        self._samples.append((now, step))
        while len(self._samples) > 2 and self._samples[1][0] <= now - _WINDOW:
            self._samples.popleft()
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=step - self._first, status_text=self.status_text())
        elif self._visible and now - self._last_line >= self._every:
            self._last_line = now
            self._write_line()

    def __enter__(self) -> Self:
        """Start the clock and show the bar."""
        self._begin = self._last_line = self._clock()
        self._samples.append((self._begin, self._first))
        if self._visible and self._stream.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, TaskProgressColumn, TextColumn
            from rich.progress import Progress as Bar

            columns = (BarColumn(bar_width=None), TaskProgressColumn(), TextColumn("{task.fields[status_text]}"))
            console = Console(file=self._stream, highlight=False)
            self._bar = Bar(*columns, console=console, refresh_per_second=4, transient=False, expand=True)
            self._bar.add_task("run", total=max(1, self.steps - self._first), status_text=self.status_text())
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Show the final state with the mean rate of the run."""
        self._samples = deque([(self._begin, self._first), (self._clock(), self.step)])
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self.step - self._first, status_text=self.status_text())
            self._bar.stop()
            self._bar = None
        elif self._visible:
            self._write_line()

    def state(self) -> dict[str, str | float | None]:
        """Return the entries of the status page."""
        remaining = self.remaining_seconds
        imbalance = None if self._imbalance is None else f"{self._imbalance - 1:.0%} above the mean".replace("%", " %")
        return {
            "share": (self.step - self._first) / max(1, self.steps - self._first),
            "step": f"{self.step} of {self.steps}",
            **self._physics,
            "rate": f"{self.mlups:.1f} {self._unit}, {self.rate:.3g} steps per second",
            "time to go": None if remaining is None else _duration(remaining),
            "busiest rank": imbalance,
            "last checkpoint": "none" if self._checkpoint is None else f"step {self._checkpoint}",
        }

    def status_text(self) -> str:
        """Return the text next to the bar."""
        remaining = self.remaining_seconds
        text = "" if remaining is None or self.step >= self.steps else f"  {_duration(remaining)} to go"
        if self._imbalance is not None:
            text += f"  {100 * (self._imbalance - 1):.0f} % imbalance"
        text += "".join(f"  {name} {value}" for name, value in self._physics.items())
        if self._checkpoint is not None:
            text += f"  checkpoint {self._checkpoint}"
        return f"step {self.step}/{self.steps}  {self.mlups:.1f} {self._unit}{text}"

    def _write_line(self) -> None:
        share = (self.step - self._first) / max(1, self.steps - self._first)
        bar = ("#" * round(share * _LINE_WIDTH)).ljust(_LINE_WIDTH, ".")
        self._stream.write(f"[{bar}] {share:4.0%}  {self.status_text()}\n")
        self._stream.flush()


def _duration(seconds: float) -> str:
    minutes, whole_seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{whole_seconds:02d}" if hours else f"{minutes}:{whole_seconds:02d}"
