# SPDX-License-Identifier: BSD-3-Clause
"""`make bench-guard`: stages that became slower are found, and all hot kernels are in its cases."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Callable

import pytest
from tools import bench_guard

from seiche.bench.hot_kernels import answer, cases, stage_seconds
from seiche.errors import CaseError


def times_of(*values: dict[str, float]) -> Callable[[], dict[str, float]]:
    """Return a measurement that gives these values in turn."""
    repeated = itertools.cycle(values)
    return lambda: next(repeated)


def test_a_slower_stage_is_named_and_noise_is_not() -> None:
    usual = {"sweep": 1.0, "openings": 0.2, "clock": 0.001}
    # Other processes make some measurements slower, never faster.
    noisy = times_of({**usual, "sweep": 1.4}, {**usual, "openings": 0.4}, usual)
    assert bench_guard.compare(noisy, times_of(usual))[2] == {}
    slow = {**usual, "openings": 0.22, "clock": 0.01}
    assert bench_guard.compare(times_of(slow), times_of(usual))[2] == pytest.approx({"openings": 1.1})
    assert bench_guard.compare(times_of(usual), times_of(slow))[2] == {}


def test_a_case_is_prepared_again_before_its_kernel_counts_as_slower() -> None:
    # The addresses of the first arrays are unfavourable, those of the second are not.
    addresses: list[float] = []
    measured = bench_guard.compare(
        lambda: {"sweep": addresses[-1]}, times_of({"sweep": 1.0}), lambda: addresses.append([1.2, 1.0][len(addresses)])
    )
    assert (measured[2], addresses) == ({}, [1.2, 1.0])


def test_divided_stages_are_compared_as_a_whole() -> None:
    old = {"sweep": 1.0, "stress": 0.4}
    assert bench_guard.slower({"sweep": 1.0, "stress 1": 0.2, "stress 2": 0.2}, old) == {}
    found = bench_guard.slower({"sweep": 1.0, "stress 1": 0.2, "stress 2": 0.3}, old)
    assert found == pytest.approx({"stages with other names": 1.25})


def test_every_hot_kernel_has_a_case_and_is_timed_by_stage() -> None:
    stages: set[str] = set()
    for build in cases("cpu", (4000, 32, 24, 2)).values():
        solver = build()
        solver.advance(1)
        seconds = stage_seconds(solver, 2)
        assert seconds and min(seconds.values()) > 0
        stages |= set(seconds)
    assert {
        *("stream-collide interior", "pressure iolets", "interpolate velocity", "membrane forces", "contact forces"),
        *("spread force", "gradient", "divergence", "absorption", "axis x", "elements", "velocities", "stresses"),
    } <= stages


def test_a_version_answers_commands_in_lines_of_json() -> None:
    available = cases("cpu", (4000, 32, 24, 2))
    name = "waves acoustic runge-kutta"
    answers = io.StringIO()
    answer(io.StringIO(f"cases\nopen {name}\ntime 2\n"), answers, available)
    names, opened, times = map(json.loads, answers.getvalue().splitlines())
    assert (names, opened, list(times)) == (list(available), name, ["elements"])
    for line in ("time 2\n", "open nothing\n", "stop\n"):
        with pytest.raises(CaseError, match="expected cases, open NAME"):
            answer(io.StringIO(line), answers, available)
