# SPDX-License-Identifier: BSD-3-Clause
"""Time MPI messages: one there and back, several at once from one rank, one each from several ranks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from seiche.backend import Backend
from seiche.domain.world import World
from seiche.machine.laws.locality import RankPlace, bindings, bound
from seiche.machine.laws.models import Locality
from seiche.observe.repeat import Timing, TimingSeries, Work, timed_pair, timed_together

SIZES = tuple(2**k for k in range(23))
#: Messages under way at once, and their sizes; senders at once, and their messages.
COUNTS, GAP_SIZES = (2, 4, 8, 16, 32), (8, 512, 8192)
INJECTED = (1 << 16, 1 << 18, 1 << 20)
#: Messages both ways at once.
DUPLEX = (1 << 17, 1 << 19, 1 << 21)
_TAG = 17

#: Returns memory of so many bytes that MPI may be given.
Buffers: TypeAlias = Callable[[int], Any]


def host_buffers(size: int) -> npt.NDArray[np.uint8]:
    """Return host memory, touched."""
    return np.ones(max(1, size), np.uint8)


def device_buffers(backend: Backend) -> Buffers:
    """Return what gives memory of a device."""

    def buffers(size: int) -> Any:
        array = backend.zeros(max(1, size), np.uint8)
        backend.synchronize()
        return array

    return buffers


def cpus_for(world: World, places: Sequence[RankPlace], pair: tuple[int, int], wanted: Locality) -> set[int] | None:
    """Return the CPUs that put this rank of a pair where the class wants it, None where it need not move."""
    if world.rank not in pair or wanted == "off-node":
        return None
    found = bindings(places[pair[0]], places[pair[1]], wanted)
    return None if found is None else found[pair.index(world.rank)]


def ping_pong(world: World, pair: tuple[int, int], buffers: Buffers, size: int) -> Work:
    """Return the work of one message there and back; its seconds are those of one way."""
    comm: Any = world.comm
    first = world.rank == pair[0]
    other = pair[1] if first else pair[0]
    out, into, word = buffers(size), buffers(size), np.zeros(1, np.uint8)

    def run(count: int) -> float:
        comm.Sendrecv(word, other, _TAG, np.empty_like(word), other, _TAG)
        begin = time.perf_counter()
        if first:
            for _ in range(count):
                comm.Send(out, other, _TAG)
                comm.Recv(into, other, _TAG)
        else:
            for _ in range(count):
                comm.Recv(into, other, _TAG)
                comm.Send(out, other, _TAG)
        return (time.perf_counter() - begin) / 2

    return run


def messages(
    world: World,
    places: Sequence[RankPlace],
    found: Sequence[tuple[int, int]],
    wanted: Locality,
    buffers: Buffers,
    *,
    seconds: float,
) -> list[TimingSeries]:
    """Return timings of one message between each of the pairs, one pair after the other (collective)."""
    curves = []
    for pair in found:
        with bound(cpus_for(world, places, pair, wanted)):
            curves.append(
                timed_pair(world, pair, SIZES, partial(ping_pong, world, pair, buffers), seconds / len(found))
            )
    return curves


def both_ways(
    world: World,
    places: Sequence[RankPlace],
    pair: tuple[int, int],
    wanted: Locality,
    buffers: Buffers,
    *,
    seconds: float,
) -> TimingSeries:
    """Return timings of large messages that two ranks send each other at the same time (collective)."""
    with bound(cpus_for(world, places, pair, wanted)):
        return timed_pair(world, pair, DUPLEX, partial(_exchange, world, pair, buffers), seconds)


def _exchange(world: World, pair: tuple[int, int], buffers: Buffers, size: int) -> Work:
    comm: Any = world.comm
    other = pair[1] if world.rank == pair[0] else pair[0]
    out, into = buffers(size), buffers(size)

    def run(count: int) -> float:
        begin = time.perf_counter()
        for _ in range(count):
            comm.Sendrecv(out, other, _TAG, into, other, _TAG)
        return time.perf_counter() - begin

    return run


def bursts(
    world: World,
    places: Sequence[RankPlace],
    pair: tuple[int, int],
    wanted: Locality,
    buffers: Buffers,
    *,
    seconds: float,
) -> list[tuple[int, int, Timing]]:
    """Return (messages at once, bytes of each, timing) for several messages from one rank to another (collective)."""
    rows: list[tuple[int, int, Timing]] = []
    with bound(cpus_for(world, places, pair, wanted)):
        for size in GAP_SIZES:
            curve = timed_pair(
                world, pair, COUNTS, partial(_burst, world, pair, buffers, size), seconds / len(GAP_SIZES)
            )
            rows += [(count, size, timing) for count, timing in zip(curve.sizes, curve.timings, strict=True)]
    return rows


def _burst(world: World, pair: tuple[int, int], buffers: Buffers, size: int, messages: int) -> Work:
    comm: Any = world.comm
    first = world.rank == pair[0]
    other = pair[1] if first else pair[0]
    outs, intos = ([buffers(size) for _ in range(messages)] for _ in range(2))

    def run(count: int) -> float:
        word = np.zeros(1, np.uint8)
        sends = [comm.Send_init(out, other, k) for k, out in enumerate(outs)]
        receives = [comm.Recv_init(into, other, k) for k, into in enumerate(intos)]
        request = type(sends[0])
        comm.Sendrecv(word, other, messages, np.empty_like(word), other, messages)
        begin = time.perf_counter()
        for _ in range(count):
            request.Startall(receives)
            if not first:
                request.Waitall(receives)
            request.Startall(sends)
            request.Waitall(sends)
            if first:
                request.Waitall(receives)
        spent = time.perf_counter() - begin
        for each in sends + receives:
            each.Free()
        return spent / 2

    return run


def injection(
    world: World,
    places: Sequence[RankPlace],
    found: Sequence[tuple[int, int]],
    wanted: Locality,
    buffers: Buffers,
    *,
    seconds: float,
) -> list[tuple[int, int, Timing]]:
    """Return (senders, bytes of each one's message, timing) for pairs that send at the same time (collective)."""
    rows: list[tuple[int, int, Timing]] = []
    senders = sorted({*(2**k for k in range(len(found).bit_length())), len(found)} - {0})
    share = seconds / (len(senders) * len(INJECTED))
    for count in senders:
        for size in INJECTED:
            mine = next((pair for pair in found[:count] if world.rank in pair), None)
            with bound(cpus_for(world, places, mine, wanted) if mine else None):
                work = ping_pong(world, mine, buffers, size) if mine else _idle
                rows.append((count, size, timed_together(world, work, share, active=mine is not None)))
    return rows


def _idle(count: int) -> float:
    del count
    return 0.0
