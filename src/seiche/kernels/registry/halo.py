# SPDX-License-Identifier: BSD-3-Clause
"""Kernels that move halo messages, of `kernels/halo/`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from .spec import CPP_TYPE, KernelSpec, Members, Real, Store

#: What the CPU table has, in words.
BUILT = "every message"
#: Values that a team moves, and its threads, where a message has many.
SEVERAL, SEVERAL_THREADS = 2048, 256


def halo_move(action: Literal["Pack", "Unpack", "UnpackAdd"], store: Store) -> KernelSpec:
    """Move slots of an array into a message, or a message into slots."""
    names = ("array", "slots", "buffer") if action == "Pack" else ("buffer", "slots", "array")
    return KernelSpec(f"{action}<{CPP_TYPE[store]}>", "halo/move.hpp", tuple((name, "ptr") for name in names))


def halo_pack_parts(store: Store) -> KernelSpec:
    """Move slots of an array into several messages at once."""
    members: Members = (*((name, "ptr") for name in ("array", "slots", "buffers", "starts")), ("parts", "int32"))
    return KernelSpec(f"PackParts<{CPP_TYPE[store]}>", "halo/parts.hpp", members)


def halo_several(move: KernelSpec) -> KernelSpec:
    """Move SEVERAL values by a team, many by a thread, as `halo_move` or `halo_pack_parts` does one by one."""
    name = f"Several<{move.type},{SEVERAL_THREADS},{SEVERAL // SEVERAL_THREADS}>"
    members: Members = (("move", move.members), ("end", "int64"))
    return replace(move, type=name, members=members, threads=SEVERAL_THREADS, team=True)


def halo_publish() -> KernelSpec:
    """The word to every neighbour that a message lies in its memory."""
    return KernelSpec("Publish", "halo/flags.hpp", (("flags", "ptr"), ("sent", "ptr")), threads=32)


def halo_await() -> KernelSpec:
    """The wait for a message of every neighbour."""
    members: Members = (("flags", "ptr"), ("received", "ptr"), ("failed", "ptr"), ("patience", "uint64"))
    return KernelSpec("Await", "halo/flags.hpp", members, threads=32)


def built_kernels() -> Iterator[KernelSpec]:
    """Yield the specialisations of the CPU table."""
    yield halo_publish()
    yield halo_await()
    reals: tuple[Real, ...] = ("float64", "float32")
    for real in reals:
        yield halo_move("UnpackAdd", real)
    stores: tuple[Store, ...] = ("float64", "float32", "float16")
    for store in stores:
        yield halo_move("Pack", store)
        yield halo_move("Unpack", store)
        for move in (halo_move("Pack", store), halo_move("Unpack", store), halo_pack_parts(store)):
            yield halo_several(move)


def other_kernels() -> Iterator[KernelSpec]:
    """Yield representatives of what is compiled on first use: here what only GPUs need."""
    stores: tuple[Store, ...] = ("float64", "float32", "float16")
    for store in stores:
        yield halo_pack_parts(store)
