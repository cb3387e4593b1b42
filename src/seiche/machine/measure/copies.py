# SPDX-License-Identifier: BSD-3-Clause
"""Timing of copies between host and device memory and within a device, of kernel launches and graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from seiche.backend import Backend
from seiche.domain.world import World
from seiche.kernels.registry.halo import halo_move
from seiche.machine.laws.file import Launch
from seiche.observe.repeat import Timing, TimingSeries, Work, queued, repeated, timed, timed_sizes, timed_together

SIZES = tuple(2**k for k in range(2, 27))
#: Total bytes of simultaneous copies by processes that share a GPU.
SHARED_SIZES = tuple(2**k for k in range(12, 23, 2))
#: Kernels in the longer of two graphs.
_KERNELS = 32


def staged(backend: Backend, direction: Literal["h2d", "d2h"], max_size: int) -> Callable[[int], Work]:
    """Return by size the work of copies between pinned host memory and the device, each with a wait."""
    host = backend.pinned(max_size, np.uint8)
    host[:] = 1
    device = backend.zeros(max_size, np.uint8)

    def work_of(size: int) -> Work:
        host_part, memory = host[:size], device[:size]

        def once() -> None:
            if direction == "h2d":
                backend.copy_to_device(host_part, memory)
            else:
                backend.copy_to_host(memory, host_part)
            backend.current().synchronize()

        return repeated(once)

    return work_of


def staged_copies(backend: Backend, direction: Literal["h2d", "d2h"], seconds: float) -> TimingSeries:
    """Return timings of copies by size."""
    return timed_sizes(SIZES, staged(backend, direction, SIZES[-1]), seconds)


def shared_copies(
    backend: Backend, world: World, sharers: Sequence[int], direction: Literal["h2d", "d2h"], seconds: float
) -> list[tuple[int, int, Timing]]:
    """Return (processes, bytes of all, timing) for ranks that copy at the same time (collective)."""
    active = world.rank in sharers
    work_of = staged(backend, direction, SHARED_SIZES[-1]) if active else lambda size: repeated(lambda: None)
    share, count = seconds / len(SHARED_SIZES), len(sharers)
    return [(count, size, timed_together(world, work_of(size // count), share, active=active)) for size in SHARED_SIZES]


def device_copies(backend: Backend, seconds: float) -> TimingSeries:
    """Return timings of queued copies within device memory."""
    source, target = (backend.zeros(SIZES[-1], np.uint8) for _ in range(2))

    def work_of(size: int) -> Work:
        a, b = source[:size], target[:size]

        def once() -> None:
            b[...] = a

        return queued(backend, once)

    return timed_sizes(SIZES, work_of, seconds)


def launches(backend: Backend) -> Launch:
    """Return the costs of launching a kernel of one item, alone and in graphs, and of a wait between streams."""
    kernel = backend.load(halo_move("Pack", "float32"))
    array, buffer = (backend.zeros(1, np.float32) for _ in range(2))
    slots = backend.zeros(1, np.uint32)
    launch = kernel.bind(backend.pack(kernel, array=array, slots=slots, buffer=buffer), 0, 1)

    def launch_repeatedly() -> None:
        for _ in range(_KERNELS):
            launch()

    short, long = backend.capture(launch), backend.capture(launch_repeatedly)
    short_seconds, long_seconds = (timed(queued(backend, graph.launch)).minimum for graph in (short, long))
    graph_kernel = max(0.0, (long_seconds - short_seconds) / (_KERNELS - 1))
    second_stream = backend.stream()
    return Launch(
        kernel=timed(queued(backend, launch)).minimum,
        event=timed(queued(backend, lambda: second_stream.wait(backend.current().record()))).minimum,
        graph=max(0.0, short_seconds - graph_kernel),
        graph_kernel=graph_kernel,
    )
