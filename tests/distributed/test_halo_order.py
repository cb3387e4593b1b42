# SPDX-License-Identifier: BSD-3-Clause
"""Transports staged through the host, on a device that does its work as late as the waits of streams and host allow.

What is not waited for has not happened yet, so a wait that is missing shows as old values: a GPU would hide it mostly.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from launch import run_ranks
from test_halo_ranks import Model

from seiche.backend.base import Stream
from seiche.backend.cpu import CpuBackend


class LateStream(Stream):
    """Work that is done when somebody waits for it."""

    def __init__(self) -> None:
        self.work: deque[Callable[[], None]] = deque()
        self.given = self.done = 0

    def give(self, work: Callable[[], None]) -> None:
        self.work.append(work)
        self.given += 1

    def catch_up(self, count: int) -> None:
        while self.done < count:
            self.done += 1
            self.work.popleft()()

    def synchronize(self) -> None:
        self.catch_up(self.given)

    def record(self) -> Any:
        return self, self.given

    def wait(self, event: Any) -> None:
        stream, count = event
        self.give(lambda: stream.catch_up(count))


class LateClock:
    def __init__(self, backend: LateBackend) -> None:
        self._backend = backend

    def record(self) -> Any:
        return self._backend.now.record()


class LateBackend(CpuBackend):
    """A CPU that behaves as a device with memory and streams of its own."""

    is_gpu = True

    def __init__(self) -> None:
        super().__init__(1)
        self.now = LateStream()

    def stream(self) -> Stream:
        return LateStream()

    def current(self) -> Stream:
        return self.now

    @contextmanager
    def use(self, stream: Stream) -> Iterator[Stream]:
        before, self.now = self.now, stream
        yield stream
        self.now = before

    def clock(self) -> Any:
        return LateClock(self)

    def load(self, spec: Any) -> Any:
        kernel, backend = super().load(spec), self

        class Late:
            dtype = kernel.dtype

            def bind(self, arguments: Any, begin: int, end: int) -> Callable[[], None]:
                run = kernel.bind(arguments, begin, end)
                return lambda: backend.now.give(run)

        return Late()

    def copy_to_host(self, array: Any, host: Any) -> None:
        self.now.give(lambda: host.__setitem__(..., array))

    def copy_to_device(self, host: Any, array: Any) -> None:
        self.now.give(lambda: array.__setitem__(..., host))

    def download(self, array: Any) -> Any:
        self.now.synchronize()
        return array.copy()


def late_exchanges_bring_the_values_of_their_step(transport: str) -> None:
    from seiche.domain.world import World
    from seiche.halo import HaloExchange

    world, backend = World.from_mpi(), LateBackend()
    model = Model(world.size, 3)
    exchange = HaloExchange(backend, world, model.plan(world), "float64", transport)  # type: ignore[arg-type]
    arrays = [model.start_array(backend, "float64") for _ in range(2)]
    owned = [array[: len(model.mine)] for array in arrays]

    def double(part: np.ndarray) -> None:
        part *= 2.0

    # One exchange a step, as a solver does; the work between the steps is queued like any kernel.
    for step in range(6):
        exchange.start(arrays[0])
        backend.now.give(lambda: double(owned[0]))
        exchange.finish(arrays[0])
        if step == 5:
            backend.now.give(lambda: owned[0].__imul__(0.5))
            model.check_gathered(world.rank, backend.download(arrays[0]), "float64", 2.0**5)

    # Two exchanges in flight, the later one with other values than the earlier.
    backend.now.give(lambda: double(owned[1]))
    backend.assign(arrays[0], model.start_array(backend, "float64"))
    for _ in range(4):
        exchange.start(arrays[0])
        exchange.start(arrays[1])
        exchange.finish(arrays[0])
        exchange.finish(arrays[1])
        for k in range(2):
            backend.now.give(lambda k=k: double(owned[k]))
    for k in range(2):
        backend.now.give(lambda k=k: owned[k].__imul__(0.5))
        model.check_gathered(world.rank, backend.download(arrays[k]), "float64", 2.0 ** (3 + k))
    exchange.close()


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_device_that_works_late_gets_the_values_of_each_step(ranks: int) -> None:
    run_ranks(ranks, late_exchanges_bring_the_values_of_their_step, "host")


@pytest.mark.parametrize("transport", ["two_step", "three_step"])
def test_a_device_that_works_late_gets_values_of_other_hosts(transport: str) -> None:
    run_ranks(3, late_exchanges_bring_the_values_of_their_step, transport, layout="2+1")
