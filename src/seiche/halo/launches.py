# SPDX-License-Identifier: BSD-3-Clause
"""Launches that put messages together and take them apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np

from seiche.backend import Array, Backend
from seiche.kernels.registry import KernelSpec, Store
from seiche.kernels.registry.halo import SEVERAL, halo_move, halo_pack_parts, halo_several

Action: TypeAlias = Literal["Pack", "Unpack", "UnpackAdd"]
Launch: TypeAlias = Callable[[], None]

#: Values from which on a thread moves several: below, a device has threads enough for each.
_MANY = 1 << 18


def moves(
    backend: Backend,
    action: Action,
    store: Store,
    array: int,
    slots: Array,
    *,
    sizes: tuple[int, ...],
    addresses: tuple[int, ...],
    together: bool = True,
) -> tuple[Launch, ...]:
    """Return the launches for messages: one where they touch and may go `together`, or where a GPU packs them.

    Args:
        backend: the device.
        action: into messages, or out of them.
        store: type of the values.
        array: address of the array.
        slots: of all messages, one behind the other.
        sizes: bytes of each message.
        addresses: where each lies.
        together: no two messages write the same slot.
    """
    size = np.dtype(store).itemsize
    runs: list[list[int]] = []
    for address, length in zip(addresses, sizes, strict=True):
        if runs and together and runs[-1][0] + runs[-1][1] == address:
            runs[-1][1] += length
        elif length:
            runs.append([address, length])
    if action == "Pack" and len(runs) > 1 and backend.is_gpu:
        return (_packed_at_once(backend, store, array, slots, runs),)
    first_slot, launches, done = backend.pointer(slots), [], 0
    for address, length in runs:
        slot_address = first_slot + done * np.dtype(np.uint32).itemsize
        members = {"array": array, "slots": slot_address, "buffer": address}
        launches.append(_bound(backend, halo_move(action, store), length // size, members))
        done += length // size
    return tuple(launches)


def _bound(backend: Backend, spec: KernelSpec, count: int, members: dict[str, Any]) -> Launch:
    """Return the launch that moves `count` values, several by a thread where there are many and these may be so."""
    if backend.is_gpu and count >= _MANY and not spec.type.startswith("UnpackAdd"):
        kernel = backend.load(halo_several(spec))
        return kernel.bind(backend.pack(kernel, move=members, end=count), 0, -(-count // SEVERAL))
    kernel = backend.load(spec)
    return kernel.bind(backend.pack(kernel, **members), 0, count)


def _packed_at_once(backend: Backend, store: Store, array: int, slots: Array, runs: list[list[int]]) -> Launch:
    counts = np.array([length for _, length in runs], np.int64) // np.dtype(store).itemsize
    buffers = backend.upload(np.array([address for address, _ in runs], np.uint64))
    starts = backend.upload(np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64))
    members = {"array": array, "slots": slots, "buffers": buffers, "starts": starts, "parts": len(runs)}
    launch = _bound(backend, halo_pack_parts(store), int(counts.sum()), members)

    def run(kept: tuple[Array, Array] = (buffers, starts)) -> None:
        del kept  # the launch reads them
        launch()

    return run
