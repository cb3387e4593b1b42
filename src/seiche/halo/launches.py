# SPDX-License-Identifier: BSD-3-Clause
"""Kernel launches that pack and unpack messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np

from seiche.backend import Array, Backend
from seiche.backend.base import Kernel
from seiche.errors import TransportError
from seiche.kernels.registry import KernelSpec, Store
from seiche.kernels.registry.halo import (
    VALUES_PER_GROUP,
    halo_move,
    halo_move_groups,
    halo_pack_parts,
    halo_wide_move,
)

Action: TypeAlias = Literal["Pack", "Unpack", "UnpackAdd"]
Launch: TypeAlias = Callable[[], None]

#: From this number of values on, each thread moves several; below it, one value per thread uses the device better.
_MANY_VALUES = 1 << 18


def slot_move(action: Action, store: Store, slots: Array) -> KernelSpec:
    """Return the kernel that copies `slots`, which have 32 or 64 bits, to or from a message.

    Raises:
        TransportError: values are to be added to slots of 64 bits.
    """
    if slots.dtype == np.uint32:
        return halo_move(action, store)
    if action == "UnpackAdd":
        raise TransportError("values can only be added to arrays of at most 2^32 values; use more ranks")
    return halo_wide_move(action, store)


def message_launches(
    backend: Backend,
    action: Action,
    store: Store,
    array: int,
    slots: Array,
    *,
    sizes: tuple[int, ...],
    addresses: tuple[int, ...],
    disjoint: bool = True,
) -> tuple[Launch, ...]:
    """Return the launches for messages. Adjacent `disjoint` messages share a launch; a GPU packs all in one.

    Args:
        backend: the device.
        action: pack or unpack.
        store: type of the values.
        array: address of the array.
        slots: slots of all messages, concatenated.
        sizes: bytes of each message.
        addresses: address of each message.
        disjoint: whether no two messages write the same slot.
    """
    size = np.dtype(store).itemsize
    runs: list[list[int]] = []
    for address, length in zip(addresses, sizes, strict=True):
        if runs and disjoint and runs[-1][0] + runs[-1][1] == address:
            runs[-1][1] += length
        elif length:
            runs.append([address, length])
    wide = slots.dtype != np.uint32
    if action == "Pack" and len(runs) > 1 and backend.is_gpu and not wide:
        return (_pack_all(backend, store, array, slots, runs),)
    first_slot, launches, processed = backend.pointer(slots), [], 0
    for address, length in runs:
        slot_address = first_slot + processed * slots.dtype.itemsize
        members = {"array": array, "slots": slot_address, "buffer": address}
        launches.append(_bind_move(backend, slot_move(action, store, slots), length // size, members))
        processed += length // size
    return tuple(launches)


def _bind_move(backend: Backend, spec: KernelSpec, count: int, members: dict[str, Any]) -> Launch:
    """Return the launch that moves `count` values, several per thread on a GPU if there are many (not UnpackAdd)."""
    kernel, items, grouped = _move_kernel(backend, spec, count)
    arguments = {"move": members, "end": count} if grouped else members
    return kernel.bind(backend.pack(kernel, **arguments), 0, items)


def _move_kernel(backend: Backend, spec: KernelSpec, count: int) -> tuple[Kernel, int, bool]:
    """Return the kernel that moves `count` values, its number of items, and whether an item moves several values."""
    if backend.is_gpu and count >= _MANY_VALUES and not spec.type.startswith("UnpackAdd"):
        return backend.load(halo_move_groups(spec)), -(-count // VALUES_PER_GROUP), True
    return backend.load(spec), count, False


def packed_bytes(backend: Backend, action: Action, store: Store, count: int) -> int:
    """Return the memory traffic of packing, or unpacking, adjacent messages of `count` values with 32-bit slots."""
    kernel, items, _ = _move_kernel(backend, halo_move(action, store), count)
    return kernel.bytes_per_item * items


def _pack_all(backend: Backend, store: Store, array: int, slots: Array, runs: list[list[int]]) -> Launch:
    counts = np.array([length for _, length in runs], np.int64) // np.dtype(store).itemsize
    buffers = backend.upload(np.array([address for address, _ in runs], np.uint64))
    starts = backend.upload(np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64))
    members = {"array": array, "slots": slots, "buffers": buffers, "starts": starts, "parts": len(runs)}
    launch = _bind_move(backend, halo_pack_parts(store), int(counts.sum()), members)

    def run(alive: tuple[Array, Array] = (buffers, starts)) -> None:
        del alive  # referenced by the launch
        launch()

    return run
