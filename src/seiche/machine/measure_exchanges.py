# SPDX-License-Identifier: BSD-3-Clause
"""Time whole halo exchanges between two ranks: packed, sent both ways at once, waited for and unpacked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seiche.backend import Backend
from seiche.domain.world import World
from seiche.errors import TransportError
from seiche.halo import HaloExchange, HaloPlan
from seiche.halo.transports import TransportName
from seiche.machine.locality import Place, bound
from seiche.machine.measure_messages import cpus_for
from seiche.machine.models import Locality
from seiche.machine.repeat import Series, shares

#: Bytes of a message; each size opens a transport of its own.
SIZES = tuple(2**k for k in range(3, 26))
_VALUE = 4


def exchange_curve(
    world: World,
    backend: Backend,
    places: Sequence[Place],
    pair: tuple[int, int],
    wanted: Locality,
    transport: TransportName,
    seconds: float,
) -> Series | str:
    """Return timings of exchanges by a transport, as steps do them (on GPUs in graphs), or why not (collective).

    Ranks beside the pair have nothing to exchange.
    """
    curve, turns = Series(), shares(SIZES, seconds)
    with bound(cpus_for(world, places, pair, wanted) if not backend.asynchronous else None):
        # The first rank's clock says which sizes there is time for.
        while (turn := world.bcast(next(turns, None) if world.rank == 0 else None)) is not None:
            size, share = turn
            count = size // _VALUE
            peers = tuple(rank for rank in pair if rank != world.rank) if world.rank in pair else ()
            here = np.arange(count, dtype=np.uint32)
            plan = HaloPlan(peers, (here,) * len(peers), (here + count,) * len(peers))
            exchange = HaloExchange(backend, world, plan, "float32", transport)
            try:
                curve.add(size, exchange.timing(seconds=share))
            except TransportError as error:  # raised on all ranks together
                return str(error)
            exchange.close()
    return curve
