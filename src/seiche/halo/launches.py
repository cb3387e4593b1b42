# SPDX-License-Identifier: BSD-3-Clause
"""Launches that put messages together and take them apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np

from seiche.backend import Array, Backend
from seiche.kernels.registry import Store
from seiche.kernels.registry.halo import halo_move, halo_pack_parts

Action: TypeAlias = Literal["Pack", "Unpack", "UnpackAdd"]
Launch: TypeAlias = Callable[[], None]


def moves(
    backend: Backend,
    action: Action,
    store: Store,
    array: int,
    slots: Array,
    sizes: tuple[int, ...],
    addresses: tuple[int, ...],
    together: bool,
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
    if action == "Pack" and len(runs) > 1 and backend.asynchronous:
        return (_packed_at_once(backend, store, array, slots, runs),)
    kernel = backend.load(halo_move(action, store))
    first_slot, launches, done = backend.pointer(slots), [], 0
    for address, length in runs:
        slot_address = first_slot + done * np.dtype(np.uint32).itemsize
        arguments = backend.pack(kernel, array=array, slots=slot_address, buffer=address)
        launches.append(kernel.bind(arguments, 0, length // size))
        done += length // size
    return tuple(launches)


def _packed_at_once(backend: Backend, store: Store, array: int, slots: Array, runs: list[list[int]]) -> Launch:
    counts = np.array([length for _, length in runs], np.int64) // np.dtype(store).itemsize
    buffers = backend.upload(np.array([address for address, _ in runs], np.uint64))
    starts = backend.upload(np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64))
    kernel = backend.load(halo_pack_parts(store))
    members = {"array": array, "slots": slots, "buffers": buffers, "starts": starts, "parts": len(runs)}
    launch = kernel.bind(backend.pack(kernel, **members), 0, int(counts.sum()))

    def run(kept: tuple[Array, Array] = (buffers, starts)) -> None:
        del kept  # the launch reads them
        launch()

    return run
