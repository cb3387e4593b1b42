# SPDX-License-Identifier: BSD-3-Clause
"""Time one exchange of a transport, including packing, on scratch arrays."""

from __future__ import annotations

import numpy as np

from seiche.backend import Backend
from seiche.domain.world import World
from seiche.halo.launches import message_launches
from seiche.halo.transports import Transport
from seiche.kernels.registry import Store
from seiche.observe.repeat import Timing, queued, timed_together

#: Exchanges in the graph that is timed.
_EXCHANGES = 64


def timed_exchange(
    backend: Backend, world: World, store: Store, transport: Transport, seconds: float, *, graph: bool
) -> Timing:
    """Return the timing of one exchange of messages of the transport's sizes (collective).

    All buffers of the transport are used in turn; no other exchange may be in flight.

    Args:
        backend: the device.
        world: the ranks.
        store: type of the values.
        transport: the transport to time.
        seconds: duration of the timing.
        graph: time a graph of many exchanges if the transport is capturable.
    """
    size = np.dtype(store).itemsize
    max_count = max(1, sum(transport.sent) // size, sum(transport.received) // size)
    slots = backend.upload(np.arange(max_count, dtype=np.uint32))
    array = backend.zeros(max_count, store)
    common_arguments, sent, received = (store, backend.pointer(array), slots), transport.sent, transport.received
    packs = [
        message_launches(backend, "Pack", *common_arguments, sizes=sent, addresses=slot_addresses)
        for slot_addresses in transport.outgoing
    ]
    unpacks = [
        message_launches(backend, "Unpack", *common_arguments, sizes=received, addresses=slot_addresses)
        for slot_addresses in transport.incoming
    ]

    def exchange_all_buffers() -> None:
        for buffer_index in range(transport.buffer_count):
            transport.acquire(buffer_index)
            for launch in packs[buffer_index]:
                launch()
            transport.send(buffer_index)
            transport.receive(buffer_index)
            for launch in unpacks[buffer_index]:
                launch()
            transport.release(buffer_index)

    if not (graph and backend.has_graphs and transport.capturable):
        return timed_together(world, queued(backend, exchange_all_buffers), seconds).part(transport.buffer_count)
    rounds = max(1, _EXCHANGES // transport.buffer_count)

    def exchange_repeatedly() -> None:
        for _ in range(rounds):
            exchange_all_buffers()

    world.barrier()
    exchange_all_buffers()  # resources opened on first use cannot be captured
    backend.synchronize()
    replay = backend.capture(exchange_repeatedly)
    return timed_together(world, queued(backend, replay.launch), seconds).part(rounds * transport.buffer_count)
