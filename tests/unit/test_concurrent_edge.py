# SPDX-License-Identifier: BSD-3-Clause
"""Sites next to another rank are swept concurrently with the interior on a device: the order of its streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from seiche.flow.steps import Steps
from seiche.observe.stage import Stage


class Order:
    """A stream; `seen` lists the work done or awaited."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def record(self) -> frozenset[str]:
        return frozenset(self.seen)

    def wait(self, event: frozenset[str]) -> None:
        self.seen |= event


class Device:
    """A device that only notes what is done after what."""

    def __init__(self, *, concurrent_streams: bool = True) -> None:
        self.concurrent_streams, self.main = concurrent_streams, Order()
        self._now, self.before = self.main, dict[str, frozenset[str]]()

    def stream(self, *, high_priority: bool = False) -> Order:
        return Order()

    def current(self) -> Order:
        return self._now

    @contextmanager
    def use(self, stream: Order) -> Iterator[None]:
        retained, self._now = self._now, stream
        yield
        self._now = retained

    def action(self, name: str) -> Callable[[], None]:
        def run() -> None:
            self.before[name] = frozenset(self._now.seen)
            self._now.seen.add(name)

        return run


def done(
    device: Device, *, arrays: int = 2, capturable: bool = True, timing_stages: bool = False, walls: bool = False
) -> dict[str, frozenset[str]]:
    """Return what each stage of a step was after."""
    parts: Any = SimpleNamespace(arrays=[None] * arrays, capturable=capturable, timing_stages=timing_stages)
    precision = ("float32", "float32")
    steps = Steps(device, parts, parts, parts, precision=precision, walls=parts, iolets=parts, timers=parts)  # type: ignore[arg-type]
    names = ("receive", "walls edge", "edge") if walls else ("receive", "edge")
    stages = [Stage(name, device.action(name)) for name in names]
    send, edges = steps._overlapped([Stage("send", device.action("send"))], stages)
    device.action("step before")()
    assert [stage.name for stage in (*send, *edges)] == ["send", *names]
    for stage in (*send, Stage("interior", device.action("interior")), *edges, Stage("next", device.action("next"))):
        stage.action()
    return device.before


def test_the_edge_waits_for_its_halo_and_not_for_the_interior_and_what_follows_for_both() -> None:
    before = done(Device())
    assert before["receive"] == {"step before", "send"}
    assert before["edge"] == {"step before", "send", "receive"}
    assert before["interior"] == {"step before", "send"}
    assert before["next"] == {"step before", "send", "receive", "edge", "interior"}


@pytest.mark.parametrize(
    "other",
    [{"arrays": 1}, {"capturable": False}, {"timing_stages": True}, {"walls": True}],
    ids=["one copy", "messages by the host", "timed by stages", "walls that move"],
)
def test_all_go_one_after_the_other_where_they_must(other: dict[str, Any]) -> None:
    before = done(Device(), **other)
    assert before["edge"] >= {"send", "receive", "interior"}


def test_a_processor_has_one_order() -> None:
    assert done(Device(concurrent_streams=False))["edge"] == {"step before", "send", "interior", "receive"}
