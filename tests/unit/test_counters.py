# SPDX-License-Identifier: BSD-3-Clause
"""Counts of the processor: of all threads, in the blocks only; numbers of the report from given counts."""

from __future__ import annotations

import os
import sys
import threading
import time
from dataclasses import replace

import pytest
from test_run_report import check_page, summary_of

from seiche.observe.counters import COUNTERS, ProcessCounters
from seiche.report import compare_report
from seiche.report.processor import counts_of, processor_section
from seiche.report.run_report import text
from seiche.report.summary import content_of

#: Time on a processor, a counter that needs no hardware.
CPU_TIME = {"cpu_ns": COUNTERS["cpu_ns"]}


def compute(seconds: float) -> None:
    """Use a processor for `seconds` of this thread."""
    begin = time.thread_time()
    while time.thread_time() - begin < seconds:
        pass


@pytest.mark.skipif(sys.platform != "linux", reason="counters of Linux")
def test_all_threads_count_in_the_blocks_only() -> None:
    counters, started, stop = ProcessCounters(CPU_TIME), threading.Event(), threading.Event()

    def earlier() -> None:
        started.wait()
        compute(0.05)
        stop.wait()

    thread = threading.Thread(target=earlier)
    thread.start()
    compute(0.1)  # before the block
    begin = time.process_time()
    with counters.counting():
        if counters.reason is not None:
            stop.set()
            started.set()
            pytest.skip(counters.reason)
        started.set()
        later = threading.Thread(target=compute, args=(0.05,))
        later.start()
        compute(0.05)
        later.join()
        while time.process_time() - begin < 0.15:
            time.sleep(0.001)
        elapsed = time.process_time() - begin
    compute(0.1)  # after it
    stop.set()
    thread.join()
    assert counters.totals["cpu_ns"] * 1e-9 == pytest.approx(elapsed, abs=0.02)
    open_files = len(os.listdir("/proc/self/fd"))
    with counters.counting():
        compute(0.05)
    assert counters.totals["cpu_ns"] * 1e-9 == pytest.approx(elapsed + 0.05, abs=0.03)
    assert len(os.listdir("/proc/self/fd")) == open_files


@pytest.mark.skipif(sys.platform != "linux", reason="counters of Linux")
def test_counts_of_the_processor_are_possible_or_have_a_reason() -> None:
    counters = ProcessCounters()
    assert counters.as_dict() == {"unavailable": "no steps were counted"}
    with counters.counting():
        compute(0.05)
    result = counters.as_dict()
    if counters.reason is None:
        assert 0.05 < result["cpu_ns"] * 1e-9 < 1.0
        assert 0.2 < result["cycles"] / result["cpu_ns"] < 7.0  # GHz
        assert 0.1 < result["instructions"] / result["cycles"] < 10.0
    else:
        assert result == {"unavailable": counters.reason} and "counters" in counters.reason


def test_counters_that_do_not_exist_are_named() -> None:
    counters = ProcessCounters({"nothing": (0, 999)})
    with counters.counting():
        pass
    assert counters.reason is not None and counters.totals == {}


def test_reports_have_instructions_per_cycle_and_frequency() -> None:
    """Two ranks with 2 and 1 instructions per cycle, at 2 and 4 GHz; the second run executes twice as many."""
    summary = summary_of(2)
    counts = {"cycles": [2e9, 4e9], "instructions": [4e9, 4e9], "cpu_ns": [1e9, 1e9]}
    first = replace(summary, movement={**summary.movement, "counters": counts})
    total = counts_of(first.movement)
    assert total is not None and (total.ipc, total.frequency) == pytest.approx((8 / 6, 3e9))
    page = check_page(text(content_of(first)))
    assert "instructions per cycle 1.33 1 2" in page.prose and "frequency, GHz 3 2 4" in page.prose
    doubled = {name: [2 * value for value in values] for name, values in counts.items()}
    second = replace(summary, movement={**summary.movement, "counters": doubled})
    compared = check_page(compare_report.text([content_of(first), content_of(second)], ["a", "b"]))
    assert "instructions per cycle 1.333 1.333" in compared.prose
    assert "scaling of instructions 1.000 0.500" in compared.prose
    without = compare_report.text([content_of(first), content_of(summary)], ["a", "b"])
    assert "instructions per cycle" not in without
    reason = {"counters": {"unavailable": "the processor has none"}}
    assert "are unknown: the processor has none." in processor_section(reason)
