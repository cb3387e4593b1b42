# SPDX-License-Identifier: BSD-3-Clause
"""Numbers beyond 2^32 on one rank: moment storage and messages address them by 64-bit slots.

The arrays take gigabytes of addresses, but only the pages that are used occupy memory.
"""

from __future__ import annotations

import numpy as np

from seiche.backend import open_backend
from seiche.domain.world import World
from seiche.flow.moment_state import GROUPS, values_per_site
from seiche.halo.exchange import HaloExchange
from seiche.halo.plan import build_plan, narrowed
from seiche.kernels.registry.flow import MOMENT_EDGE, stream_collide

#: Points of a tile, stored numbers of a tile, and the first tile beyond 2^32 numbers in half precision.
VOLUME = MOMENT_EDGE**3
NUMBERS = values_per_site("float16") * VOLUME
FAR = (1 << 32) // NUMBERS + 3


def random_tile() -> np.ndarray:
    """Return the numbers of a tile: four floats of 1e-3 per site, then six halves."""
    random = np.random.default_rng(3)
    conserved = GROUPS["float16"][0] * VOLUME
    numbers = np.empty(NUMBERS, np.float16)
    numbers[:conserved] = (1e-3 * random.standard_normal(conserved // 2)).astype(np.float32).view(np.float16)
    numbers[conserved:] = random.standard_normal(NUMBERS - conserved)
    return numbers


def test_a_tile_beyond_32_bit_slots_is_updated_like_the_first_one():
    backend = open_backend("cpu", 1)
    kernel = backend.load(stream_collide("moments", "float32", "float16", "constant", "none", collision="regularised"))
    f_in, f_out = (backend.zeros((FAR + 1) * NUMBERS, "float16") for _ in range(2))
    table, walls = backend.zeros((FAR + 1, 28), np.uint32), backend.zeros((1, VOLUME), np.uint32)
    for tile in (0, FAR):
        f_in[tile * NUMBERS : (tile + 1) * NUMBERS] = random_tile()
        table[tile, :27], table[tile, 27] = (
            tile * NUMBERS // VOLUME,
            0xFFFFFFFF,
        )  # each tile is a periodic box without walls
    links = backend.zeros(19, np.uint32)
    layout = {"f_in": f_in, "f_out": f_out, "table": table, "walls": walls}
    layout |= {"link_rows": links, "link_masks": links, "link_values": backend.zeros(19, np.float32)}
    relaxation: dict[str, float] = {"even": 1.2, "odd": 1.2}
    arguments = backend.pack(kernel, layout=layout, relaxation=relaxation, force={})
    for tile in (0, FAR):
        kernel.bind(arguments, tile, tile + 1)()
    first, far = f_out[:NUMBERS], f_out[FAR * NUMBERS :]
    assert np.any(first.view(np.uint16) != random_tile().view(np.uint16))
    np.testing.assert_array_equal(far.view(np.uint16), first.view(np.uint16))


def test_messages_reach_slots_beyond_32_bits():
    backend, world = open_backend("cpu", 1), World.serial()
    source, ghosts = (1 << 32) + np.array([7, 5, 6]), np.array([1, (1 << 32) + 9, 2])
    plan = build_plan(world, {0: (source, ghosts)}, lambda keys: keys)
    assert plan.owned[0].dtype == plan.ghosts[0].dtype == np.int64
    assert plan.slots == (1 << 32) + 10
    array = backend.zeros(plan.slots, "float16")
    array[source] = [7.0, 5.0, 6.0]
    exchange = HaloExchange(backend, world, plan, "float16", "local")
    exchange.start(array)
    exchange.finish(array)
    np.testing.assert_array_equal(array[ghosts], [7.0, 5.0, 6.0])


def test_slots_have_the_fewest_bits_that_number_them():
    assert narrowed(np.array([0, (1 << 32) - 1])).dtype == np.uint32
    assert narrowed(np.array([0, 1 << 32])).dtype == np.int64
    assert narrowed(np.zeros(0, np.int64)).dtype == np.uint32
