# SPDX-License-Identifier: BSD-3-Clause
"""Time one exchange of a transport, packing included, without touching anybody's arrays."""

from __future__ import annotations

import numpy as np

from seiche.backend import Backend
from seiche.domain.world import World
from seiche.halo.launches import moves
from seiche.halo.transports import Transport
from seiche.kernels.registry import Store
from seiche.observe.repeat import Timing, queued, timed_together

#: Exchanges in the graph by which one is timed.
_EXCHANGES = 64


def timed_exchange(
    backend: Backend, world: World, store: Store, transport: Transport, seconds: float, *, graph: bool
) -> Timing:
    """Return the timing of one exchange of messages that are as long as ever, and nobody's (collective).

    All slots of the transport are used in turn, with nothing else under way.

    Args:
        backend: the device.
        world: the ranks.
        store: type of the values.
        transport: what carries them.
        seconds: of timing.
        graph: where all is device work, it is timed as a part of a graph of many exchanges.
    """
    size = np.dtype(store).itemsize
    longest = max(1, sum(transport.sent) // size, sum(transport.received) // size)
    slots = backend.upload(np.arange(longest, dtype=np.uint32))
    array = backend.zeros(longest, store)
    place = backend.pointer(array)
    given, sent, received = (store, place, slots), transport.sent, transport.received
    packs = [moves(backend, "Pack", *given, sizes=sent, addresses=each) for each in transport.outgoing]
    unpacks = [moves(backend, "Unpack", *given, sizes=received, addresses=each) for each in transport.incoming]

    def once() -> None:
        for slot in range(transport.slots):
            transport.acquire(slot)
            for launch in packs[slot]:
                launch()
            transport.send(slot)
            transport.receive(slot)
            for launch in unpacks[slot]:
                launch()
            transport.release(slot)

    if not (graph and backend.has_graphs and transport.capturable):
        return timed_together(world, queued(backend, once), seconds).part(transport.slots)
    rounds = max(1, _EXCHANGES // transport.slots)

    def many() -> None:
        for _ in range(rounds):
            once()

    world.barrier()
    once()  # what is opened on first use cannot be captured
    backend.synchronize()
    replay = backend.capture(many)
    return timed_together(world, queued(backend, replay.launch), seconds).part(rounds * transport.slots)
