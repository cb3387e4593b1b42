# SPDX-License-Identifier: BSD-3-Clause
"""Kernels that pack and unpack halo messages, `kernels/halo/`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from .spec import CPP_TYPE, REALS, STORES, KernelSpec, Members, Store, pointers

#: Description of the kernels in the CPU table.
BUILT = "all kernels for messages"
#: Values that a team moves, and its threads, for messages with many values.
VALUES_PER_GROUP, GROUP_THREADS = 2048, 256


def halo_move(action: Literal["Pack", "Unpack", "UnpackAdd"], store: Store) -> KernelSpec:
    """Copy slots of an array to a message, or a message to slots."""
    return KernelSpec(f"{action}<{CPP_TYPE[store]}>", "halo/move.hpp", pointers("array slots buffer"))


def halo_wide_move(action: Literal["Pack", "Unpack"], store: Store) -> KernelSpec:
    """Copy like `halo_move` between a message and slots with 64-bit numbers."""
    return KernelSpec(f"Wide{action}<{CPP_TYPE[store]}>", "halo/wide.hpp", pointers("array slots buffer"))


def halo_pack_parts(store: Store) -> KernelSpec:
    """Copy slots of an array to several messages."""
    members: Members = (*pointers("array slots buffers starts"), ("parts", "int32"))
    return KernelSpec(f"PackParts<{CPP_TYPE[store]}>", "halo/parts.hpp", members)


def halo_move_groups(move: KernelSpec) -> KernelSpec:
    """Move SEVERAL values per team, several per thread, like `halo_move` or `halo_pack_parts`."""
    name = f"Several<{move.type},{GROUP_THREADS},{VALUES_PER_GROUP // GROUP_THREADS}>"
    members: Members = (("move", move.members), ("end", "int64"))
    return replace(move, type=name, members=members, threads=GROUP_THREADS, team=True)


def halo_publish() -> KernelSpec:
    """Notify every neighbour that its message is complete."""
    return KernelSpec("Publish", "halo/flags.hpp", pointers("flags sent"), threads=32)


def halo_await() -> KernelSpec:
    """Wait for a message from every neighbour."""
    members: Members = (*pointers("flags received failed"), ("timeout", "uint64"))
    return KernelSpec("Await", "halo/flags.hpp", members, threads=32)


def built_kernels() -> Iterator[KernelSpec]:
    """Yield the specialisations of the CPU table."""
    yield halo_publish()
    yield halo_await()
    for real in REALS:
        yield halo_move("UnpackAdd", real)
    for store in STORES:
        yield halo_move("Pack", store)
        yield halo_move("Unpack", store)
        for move in (halo_move("Pack", store), halo_move("Unpack", store), halo_pack_parts(store)):
            yield halo_move_groups(move)


def other_kernels() -> Iterator[KernelSpec]:
    """Yield representatives of kernels compiled on first use: those that only GPUs or very large ranks need."""
    yield from map(halo_pack_parts, STORES)
    for store in STORES:
        for move in (halo_wide_move("Pack", store), halo_wide_move("Unpack", store)):
            yield from (move, halo_move_groups(move))
