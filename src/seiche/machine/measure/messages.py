# SPDX-License-Identifier: BSD-3-Clause
"""Timing of MPI messages: ping-pong, several simultaneous messages from a rank, several simultaneous senders."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from seiche.backend import Backend
from seiche.domain.world import World
from seiche.machine.laws.locality import RankPlacement, bindings, bound
from seiche.machine.laws.models import Locality
from seiche.observe.repeat import Timing, TimingSeries, Work, repeated, timed_pair, timed_together

SIZES = tuple(2**k for k in range(23))
#: Numbers of simultaneous messages and their bytes.
MESSAGE_COUNTS, GAP_SIZES = (2, 4, 8, 16, 32), (8, 512, 8192)
#: Bytes of messages from simultaneous senders: latency and rate of a node.
SENDER_GAP_SIZES, INJECTION_SIZES = (8, 512), (1 << 16, 1 << 18, 1 << 20)
#: Bytes of simultaneous messages in both directions.
DUPLEX_SIZES = (1 << 17, 1 << 19, 1 << 21)
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


def cpus_for(
    world: World, placements: Sequence[RankPlacement], pair: tuple[int, int], target: Locality
) -> set[int] | None:
    """Return the CPUs that put this rank of a pair into class `target`, None if no binding is needed."""
    if world.rank not in pair or target == "off-node":
        return None
    cpus = bindings(placements[pair[0]], placements[pair[1]], target)
    return None if cpus is None else cpus[pair.index(world.rank)]


def ping_pong(world: World, pair: tuple[int, int], buffers: Buffers, size: int) -> Work:
    """Return the work of a ping-pong; its seconds are those of one direction."""
    comm: Any = world.comm
    first = world.rank == pair[0]
    peer = pair[1] if first else pair[0]
    outgoing, incoming, sync_byte = buffers(size), buffers(size), np.zeros(1, np.uint8)

    def run(count: int) -> float:
        comm.Sendrecv(sync_byte, peer, _TAG, np.empty_like(sync_byte), peer, _TAG)
        begin = time.perf_counter()
        if first:
            for _ in range(count):
                comm.Send(outgoing, peer, _TAG)
                comm.Recv(incoming, peer, _TAG)
        else:
            for _ in range(count):
                comm.Recv(incoming, peer, _TAG)
                comm.Send(outgoing, peer, _TAG)
        return (time.perf_counter() - begin) / 2

    return run


def _exchange(world: World, pair: tuple[int, int], buffers: Buffers, size: int) -> Work:
    comm: Any = world.comm
    peer = pair[1] if world.rank == pair[0] else pair[0]
    outgoing, incoming = buffers(size), buffers(size)
    return repeated(lambda: comm.Sendrecv(outgoing, peer, _TAG, incoming, peer, _TAG))


def _burst(world: World, pair: tuple[int, int], buffers: Buffers, size: int, messages: int) -> Work:
    comm: Any = world.comm
    first = world.rank == pair[0]
    peer = pair[1] if first else pair[0]
    outgoing, incoming = ([buffers(size) for _ in range(messages)] for _ in range(2))

    def run(count: int) -> float:
        sync_byte = np.zeros(1, np.uint8)
        sends = [comm.Send_init(buffer, peer, k) for k, buffer in enumerate(outgoing)]
        receives = [comm.Recv_init(buffer, peer, k) for k, buffer in enumerate(incoming)]
        request = type(sends[0])
        comm.Sendrecv(sync_byte, peer, messages, np.empty_like(sync_byte), peer, messages)
        begin = time.perf_counter()
        for _ in range(count):
            request.Startall(receives)
            if not first:
                request.Waitall(receives)
            request.Startall(sends)
            request.Waitall(sends)
            if first:
                request.Waitall(receives)
        elapsed = time.perf_counter() - begin
        for persistent in sends + receives:
            persistent.Free()
        return elapsed / 2

    return run


@dataclass(frozen=True)
class MessageTimer:
    """Timings of messages between pairs of ranks in class `target`, from memory of `buffers` (collective)."""

    world: World
    placements: Sequence[RankPlacement]
    target: Locality
    buffers: Buffers

    def _cpus(self, pair: tuple[int, int]) -> set[int] | None:
        return cpus_for(self.world, self.placements, pair, self.target)

    def _timed(
        self, pair: tuple[int, int], sizes: Sequence[int], work: Callable[..., Work], seconds: float, *extra: int
    ) -> TimingSeries:
        return timed_pair(self.world, pair, sizes, partial(work, self.world, pair, self.buffers, *extra), seconds)

    def one_way(self, selected: Sequence[tuple[int, int]], seconds: float) -> list[TimingSeries]:
        """Return timings of one message between each of the pairs, one pair after the other (collective)."""
        curves, share = [], seconds / len(selected)
        for pair in selected:
            with bound(self._cpus(pair)):
                curves.append(self._timed(pair, SIZES, ping_pong, share))
        return curves

    def both_ways(self, pair: tuple[int, int], seconds: float) -> TimingSeries:
        """Return timings of simultaneous large messages in both directions (collective)."""
        with bound(self._cpus(pair)):
            return self._timed(pair, DUPLEX_SIZES, _exchange, seconds)

    def bursts(self, pair: tuple[int, int], seconds: float) -> list[tuple[int, int, Timing]]:
        """Return (count, bytes of each, timing) of simultaneous messages from one rank to another (collective)."""
        rows: list[tuple[int, int, Timing]] = []
        share = seconds / len(GAP_SIZES)
        with bound(self._cpus(pair)):
            for size in GAP_SIZES:
                curve = self._timed(pair, MESSAGE_COUNTS, _burst, share, size)
                rows += [(count, size, timing) for count, timing in zip(curve.sizes, curve.timings, strict=True)]
        return rows

    def injection(self, selected: Sequence[tuple[int, int]], seconds: float) -> list[tuple[int, int, Timing]]:
        """Return (senders, bytes of the message from each, timing) of simultaneous senders (collective)."""
        rows: list[tuple[int, int, Timing]] = []
        senders = sorted({*(2**k for k in range(len(selected).bit_length())), len(selected)} - {0})
        sizes = SENDER_GAP_SIZES + INJECTION_SIZES
        share = seconds / (len(senders) * len(sizes))
        for count in senders:
            for size in sizes:
                own_pair = next((pair for pair in selected[:count] if self.world.rank in pair), None)
                with bound(self._cpus(own_pair) if own_pair else None):
                    work = ping_pong(self.world, own_pair, self.buffers, size) if own_pair else lambda count: 0.0
                    rows.append((count, size, timed_together(self.world, work, share, active=own_pair is not None)))
        return rows
