# SPDX-License-Identifier: BSD-3-Clause
"""Host work on threads: how many, and that an error leaves none at work."""

from __future__ import annotations

import threading
import time

import pytest

from seiche.backend.host_threads import host_threads, on_threads


def test_threads_are_those_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert host_threads() == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "5,2")  # outside and within
    assert host_threads() == 5
    monkeypatch.delenv("OMP_NUM_THREADS")
    every = host_threads()
    assert every >= 1
    for nothing in ("", "0", "-3", "many"):
        monkeypatch.setenv("OMP_NUM_THREADS", nothing)
        assert host_threads() == every


def test_an_error_is_raised_when_all_that_began_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    begun, done, both = list[int](), list[int](), threading.Barrier(2)

    def work(piece: int) -> None:
        begun.append(piece)
        if piece < 2:
            both.wait(10)
        if piece == 0:
            raise KeyboardInterrupt
        time.sleep(0.2)
        done.append(piece)

    with pytest.raises(KeyboardInterrupt):
        on_threads(work, range(50))
    assert 1 in done and set(begun) == {0, *done} and len(begun) < 50
    on_threads(done.append, [70, 71])
    assert {70, 71} <= set(done)
