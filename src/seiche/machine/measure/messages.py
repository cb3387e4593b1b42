# SPDX-License-Identifier: BSD-3-Clause
"""Timing of MPI messages: ping-pong, several simultaneous messages of a rank, several simultaneous senders."""

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
from seiche.observe.repeat import Timing, TimingSeries, Work, repeated, timed_pair, timed_together

SIZES = tuple(2**k for k in range(23))
#: Numbers of simultaneous messages and their bytes; bytes of messages of simultaneous senders.
COUNTS, GAP_SIZES = (2, 4, 8, 16, 32), (8, 512, 8192)
INJECTED = (1 << 16, 1 << 18, 1 << 20)
#: Bytes of simultaneous messages in both directions.
DUPLEX = (1 << 17, 1 << 19, 1 << 21)
_TAG = 17

#: Allocates a number of bytes that MPI can use.
Buffers: TypeAlias = Callable[[int], Any]


def host_buffers(size: int) -> npt.NDArray[np.uint8]:
    """Return initialised host memory."""
    return np.ones(max(1, size), np.uint8)


def device_buffers(backend: Backend) -> Buffers:
    """Return an allocator of device memory."""

    def buffers(size: int) -> Any:
        array = backend.zeros(max(1, size), np.uint8)
        backend.synchronize()
        return array

    return buffers


def cpus_for(world: World, places: Sequence[RankPlace], pair: tuple[int, int], target: Locality) -> set[int] | None:
    """Return the CPUs that put this rank of a pair into class `target`, None if no binding is needed."""
    if world.rank not in pair or target == "off-node":
        return None
    cpus = bindings(places[pair[0]], places[pair[1]], target)
    return None if cpus is None else cpus[pair.index(world.rank)]


def ping_pong(world: World, pair: tuple[int, int], buffers: Buffers, size: int) -> Work:
    """Return the work of a ping-pong; its seconds are those of one direction."""
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
    selected: Sequence[tuple[int, int]],
    target: Locality,
    buffers: Buffers,
    *,
    seconds: float,
) -> list[TimingSeries]:
    """Return timings of one message between each of the pairs, one pair after the other (collective)."""
    curves, share = [], seconds / len(selected)
    for pair in selected:
        with bound(cpus_for(world, places, pair, target)):
            curves.append(timed_pair(world, pair, SIZES, partial(ping_pong, world, pair, buffers), share))
    return curves


def both_ways(
    world: World,
    places: Sequence[RankPlace],
    pair: tuple[int, int],
    target: Locality,
    buffers: Buffers,
    *,
    seconds: float,
) -> TimingSeries:
    """Return timings of simultaneous large messages in both directions (collective)."""
    with bound(cpus_for(world, places, pair, target)):
        return timed_pair(world, pair, DUPLEX, partial(_exchange, world, pair, buffers), seconds)


def _exchange(world: World, pair: tuple[int, int], buffers: Buffers, size: int) -> Work:
    comm: Any = world.comm
    other = pair[1] if world.rank == pair[0] else pair[0]
    out, into = buffers(size), buffers(size)
    return repeated(lambda: comm.Sendrecv(out, other, _TAG, into, other, _TAG))


def bursts(
    world: World,
    places: Sequence[RankPlace],
    pair: tuple[int, int],
    target: Locality,
    buffers: Buffers,
    *,
    seconds: float,
) -> list[tuple[int, int, Timing]]:
    """Return (count, bytes of each, timing) of simultaneous messages from one rank to another (collective)."""
    rows: list[tuple[int, int, Timing]] = []
    share = seconds / len(GAP_SIZES)
    with bound(cpus_for(world, places, pair, target)):
        for size in GAP_SIZES:
            curve = timed_pair(world, pair, COUNTS, partial(_burst, world, pair, buffers, size), share)
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
        for persistent in sends + receives:
            persistent.Free()
        return spent / 2

    return run


def injection(
    world: World,
    places: Sequence[RankPlace],
    selected: Sequence[tuple[int, int]],
    target: Locality,
    buffers: Buffers,
    *,
    seconds: float,
) -> list[tuple[int, int, Timing]]:
    """Return (senders, bytes of the message of each, timing) of simultaneous senders (collective)."""
    rows: list[tuple[int, int, Timing]] = []
    senders = sorted({*(2**k for k in range(len(selected).bit_length())), len(selected)} - {0})
    share = seconds / (len(senders) * len(INJECTED))
    for count in senders:
        for size in INJECTED:
            own_pair = next((pair for pair in selected[:count] if world.rank in pair), None)
            with bound(cpus_for(world, places, own_pair, target) if own_pair else None):
                work = ping_pong(world, own_pair, buffers, size) if own_pair else lambda count: 0.0
                rows.append((count, size, timed_together(world, work, share, active=own_pair is not None)))
    return rows
