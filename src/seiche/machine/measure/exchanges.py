# SPDX-License-Identifier: BSD-3-Clause
"""Timing of whole halo exchanges between two ranks: pack, send in both directions, wait, unpack."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seiche.backend import Backend
from seiche.domain.world import World
from seiche.errors import TransportError
from seiche.halo import HaloExchange, HaloPlan
from seiche.halo.transports import TransportName
from seiche.machine.laws.locality import RankPlacement, bound
from seiche.machine.laws.models import Locality
from seiche.machine.measure.messages import cpus_for
from seiche.observe.repeat import Timing, TimingSeries, joined, rounds

#: Bytes of a message; each size opens a separate transport.
SIZES = tuple(2**k for k in range(3, 26))
_VALUE_BYTES = 4
#: Bytes up to which the time of a message is dominated by latency.
_SMALL = 1024


def exchange_curve(
    world: World,
    backend: Backend,
    placements: Sequence[RankPlacement],
    pair: tuple[int, int],
    target: Locality,
    *,
    transport: TransportName,
    seconds: float,
) -> TimingSeries | str:
    """Return timings of exchanges with a transport as in steps (graphs on GPUs), or the reason for none (collective).

    Ranks outside the pair exchange no data.
    """
    timings, size_shares = dict[int, Timing](), rounds(SIZES, seconds)
    with bound(cpus_for(world, placements, pair, target) if backend.host_memory else None):
        # The clock of the first rank decides which sizes are timed.
        while (next_size := world.bcast(next(size_shares, None) if world.rank == 0 else None)) is not None:
            size, share = next_size
            peers = tuple(rank for rank in pair if rank != world.rank) if world.rank in pair else ()
            try:
                timing = _exchange(world, backend, peers, size, transport=transport, seconds=share)
                timings[size] = joined(timings[size], timing) if size in timings else timing
            except TransportError as error:  # raised on all ranks
                return str(error)
    return TimingSeries(list(timings), list(timings.values()), len(SIZES) - len(timings))


def neighbour_gap(
    world: World, backend: Backend, pair: TimingSeries, transport: TransportName, seconds: float
) -> float:
    """Return the additional seconds of each further neighbour in an exchange of small messages (collective).

    All ranks exchange with all others at the same time.

    Raises:
        TransportError: the transport is not available.
    """
    additional = []
    for size, pair_seconds in zip(pair.sizes, pair.seconds, strict=True):
        if size <= _SMALL:
            peers = tuple(rank for rank in range(world.size) if rank != world.rank)
            share = seconds / _SMALL.bit_length()
            all_seconds = _exchange(world, backend, peers, size, transport=transport, seconds=share).minimum
            additional.append((all_seconds - pair_seconds) / (world.size - 2))
    return max(0.0, float(np.median(additional)))


def _exchange(
    world: World, backend: Backend, peers: tuple[int, ...], size: int, *, transport: TransportName, seconds: float
) -> Timing:
    """Time exchanges of `size` bytes with each peer (collective)."""
    count = size // _VALUE_BYTES
    pieces = tuple(np.arange(k * count, (k + 1) * count, dtype=np.uint32) for k in range(2 * len(peers)))
    plan = HaloPlan(peers, pieces[: len(peers)], pieces[len(peers) :])
    exchange = HaloExchange(backend, world, plan, "float32", transport)
    try:
        return exchange.timing(seconds=seconds)
    finally:
        exchange.close()
