# SPDX-License-Identifier: BSD-3-Clause
"""Progress shows rate and remaining time, occasional lines in a log, and does not break warnings on a terminal."""

from __future__ import annotations

import io
import sys

import pytest

from seiche.observe.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_log_gets_a_line_every_ten_seconds_and_one_at_the_end() -> None:
    stream, clock = io.StringIO(), Clock()
    with Progress(1000, 2_000_000, stream=stream, clock=clock) as progress:
        for step in range(0, 1001, 10):
            clock.now = 100.0 + step * 0.04
            progress.update(step)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 5  # at 10, 20, 30 and 40 s, and at the end
    assert lines[0] == "[######..................]  25%  step 250/1000  50.0 MLUPS  0:30 to go"
    assert lines[-1] == "[########################] 100%  step 1000/1000  50.0 MLUPS"


def test_the_unit_is_that_of_what_is_computed() -> None:
    clock, stream = Clock(), io.StringIO()
    with Progress(10, 1_000_000, item="nodes", stream=stream, clock=clock) as progress:
        clock.now += 2.0
        progress.update(10)
    assert stream.getvalue().endswith("step 10/10  5.0 M nodes/s\n")


def test_rate_is_that_of_the_last_seconds_and_of_the_whole_run_at_the_end() -> None:
    clock = Clock()
    with Progress(10_000, 1_000_000, stream=io.StringIO(), clock=clock, first=50) as progress:
        assert progress.remaining_seconds is None
        for second in range(1, 101):
            clock.now += 1.0
            progress.update(50 + min(second, 50) * 100 + max(0, second - 50) * 10)
        assert progress.rate == pytest.approx(10.0)
        assert progress.mlups == pytest.approx(10.0)
        assert progress.remaining_seconds == pytest.approx((10_000 - 5550) / 10)
    assert progress.rate == pytest.approx(55.0)


def test_hidden_progress_writes_nothing() -> None:
    for stream in (io.StringIO(), Terminal()):
        with Progress(10, 10, visible=False, stream=stream, every=0.0) as progress:
            progress.update(5)
        assert stream.getvalue() == ""


def test_terminal_shows_a_bar_and_warnings_scroll_above_it_whole() -> None:
    stream = Terminal()
    with Progress(10, 1_000_000, stream=stream) as progress:
        progress.update(5)
        print("warning: flow turns back at outlet 2", file=sys.stderr)
        progress.update(10)
    shown = stream.getvalue()
    assert "step 10/10" in shown
    assert "warning: flow turns back at outlet 2\n" in shown


def test_error_in_the_run_passes_and_the_last_state_stays() -> None:
    stream = io.StringIO()
    with pytest.raises(ZeroDivisionError), Progress(10, 10, stream=stream) as progress:
        progress.update(3)
        raise ZeroDivisionError
    assert "step 3/10" in stream.getvalue()
