# SPDX-License-Identifier: BSD-3-Clause
"""A handle of GPU memory is used only if it opens memory of the rank that gave it; the CUDA runtime is a stand-in."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from seiche.backend import open_backend
from seiche.domain.emulation import emulate_ranks
from seiche.domain.rank_locations import RankLocation
from seiche.domain.world import World
from seiche.errors import TransportError
from seiche.halo.transports import memory, peer


class Runtime:
    """Memory of the host in the place of a GPU's; with `shift` handles open another place than they are of."""

    class CUDARuntimeError(Exception):
        """As CuPy's."""

    def __init__(self, shift: int = 0) -> None:
        self.shift, self.blocks = shift, dict[int, Any]()

    def malloc(self, size: int) -> int:
        block = np.full(size + 64, 7, np.uint8)
        self.blocks[int(block.ctypes.data)] = block
        return int(block.ctypes.data)

    def free(self, address: int) -> None:
        del self.blocks[address]

    def memset(self, address: int, value: int, size: int) -> None:
        ctypes.memset(address, value, size)

    def memcpy(self, target: int, source: int, size: int, kind: int) -> None:
        ctypes.memmove(target, source, size)

    def ipcGetMemHandle(self, address: int) -> bytes:  # noqa: N802
        return address.to_bytes(8, "little")

    def ipcOpenMemHandle(self, handle: bytes, flags: int) -> int:  # noqa: N802
        return int.from_bytes(handle, "little") + self.shift

    def ipcCloseMemHandle(self, address: int) -> None:  # noqa: N802
        assert address - self.shift in self.blocks

    def getDevice(self) -> int:  # noqa: N802
        return 0

    def deviceGetPCIBusId(self, device: int) -> str:  # noqa: N802
        return f"0000:{device}"

    def deviceSynchronize(self) -> None:  # noqa: N802
        """Return: everything is done at once."""


def peers_of(world: World) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...], list[int]]:
    """Return where a rank writes to and reads from, and what is in its memory before the first message."""
    other = 1 - world.rank
    transport = peer.PeerTransport(open_backend("cpu", 1), world, (other,), (8,), (8,))
    size = transport.buffer_count * peer._CACHE_LINE + peer._COUNTER_BYTES
    content = np.array(memory.bytes_at(transport._memory, size)).tolist()
    world.barrier()
    places = transport.outgoing, transport.incoming
    transport.close()
    return *places, content


@pytest.fixture(autouse=True)
def host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        peer, "rank_locations", lambda backend, world: [RankLocation("node", f"0000:{k}") for k in range(world.size)]
    )
    monkeypatch.setattr(memory, "_proofs", {})


def test_peers_that_map_each_other_write_where_the_other_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Runtime()
    monkeypatch.setattr(peer, "cuda_runtime", lambda: runtime)
    (out, into, first), (other_out, other_into, second) = emulate_ranks(2, peers_of)
    assert (out, other_out) == (other_into, into)
    assert not any(first) and not any(second)  # the nonces are gone: words count from zero
    assert runtime.blocks == {}


def test_peers_that_map_other_memory_are_rejected_on_all_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Runtime(shift=32)
    monkeypatch.setattr(peer, "cuda_runtime", lambda: runtime)

    def work(world: World) -> str:
        with pytest.raises(TransportError) as caught:
            peers_of(world)
        return str(caught.value)

    assert emulate_ranks(2, work) == ["transport 'peer': rank 0 mapped memory that does not belong to rank 1"] * 2
    assert runtime.blocks == {}


def test_an_array_of_a_gpu_is_opened_only_if_the_process_is_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Runtime()
    monkeypatch.setattr(memory, "cuda_runtime", lambda: runtime)
    array = runtime.malloc(16)
    device = memory.DeviceMemory()
    proof = device._proof()
    assert device._proof() == proof  # one for all arrays
    device.open((runtime.ipcGetMemHandle(array), 8, *proof)).close()
    runtime.shift = 32
    with pytest.raises(OSError, match="the handle of GPU memory belongs to another process"):
        device.open((runtime.ipcGetMemHandle(array), 8, *proof))
