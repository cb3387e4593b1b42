# SPDX-License-Identifier: BSD-3-Clause
"""Memory of arrays, whatever they are: copied to and from the host, and opened by other processes of the host.

Arrays of the host are NumPy's; others' memory is reached by cross-memory attach. Arrays of a GPU are those that show a
`__cuda_array_interface__`; others' memory is mapped (CUDA IPC). Copies of a GPU go into CuPy's current stream.
"""

from __future__ import annotations

import ctypes
import os
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.errors import TransportError
from seiche.halo.transports.cuda_runtime import cuda_runtime
from seiche.halo.transports.single_copy import NONCE, read_memory, recognise, this_process, write_memory

Bytes = npt.NDArray[np.uint8]

#: The driver sees which address is whose (cudaMemcpyDefault).
_ANY = 4
#: Let memory of another GPU be mapped when it is first used (cudaIpcMemLazyEnablePeerAccess).
_LAZY = 1


class RemoteMemory(ABC):
    """Memory of another process of this host."""

    @abstractmethod
    def read(self, offset: int, host: Bytes) -> None:
        """Start a copy from `offset` into host memory of this process."""

    @abstractmethod
    def write(self, host: Bytes, offset: int) -> None:
        """Start a copy of host memory of this process to `offset`."""

    @abstractmethod
    def store(self, address: int, size: int, offset: int) -> None:
        """Start a copy of `size` bytes at `address`, memory of the same kind in this process, to `offset`."""

    @abstractmethod
    def close(self) -> None:
        """Let go of it."""


class Memory(ABC):
    """How the bytes of one kind of array are copied and shared.

    `device` is the number of the GPU and `bus` its PCI address, None for the host.
    """

    device: int | None = None
    bus: str | None = None

    @abstractmethod
    def address(self, array: Any) -> int:
        """Return where the array's first byte is."""

    @abstractmethod
    def staging(self, size: int) -> Bytes:
        """Return host memory that copies to and from need no detour for."""

    @abstractmethod
    def read(self, address: int, host: Bytes) -> None:
        """Start a copy from `address` into host memory."""

    @abstractmethod
    def write(self, host: Bytes, address: int) -> None:
        """Start a copy of host memory to `address`."""

    @abstractmethod
    def copy(self, source: int, target: int, size: int) -> None:
        """Start a copy between two addresses of this process."""

    @abstractmethod
    def wait(self) -> None:
        """Wait for the copies started so far, and for work of the current stream."""

    @abstractmethod
    def share(self, address: int) -> Any:
        """Return what another process of this host needs to open the memory at `address`."""

    @abstractmethod
    def open(self, handle: Any) -> RemoteMemory:
        """Open memory that another process shares; the window begins at its `address`.

        Raises:
            OSError: it cannot be opened.
        """


def memory_of(array: Any) -> Memory:
    """Return the memory of an array.

    Raises:
        TransportError: neither NumPy's nor of a GPU, or its elements do not lie one behind the other.
    """
    if isinstance(array, np.ndarray):
        if not array.flags.c_contiguous:
            raise TransportError(f"an array of shape {array.shape} is not contiguous: copy it first")
        return HostMemory()
    if not hasattr(array, "__cuda_array_interface__"):
        raise TransportError(f"{type(array).__name__} is no array of NumPy or of a GPU")
    if array.__cuda_array_interface__.get("strides") is not None:
        raise TransportError(f"an array of shape {array.shape} is not contiguous: copy it first")
    return DeviceMemory()


def bytes_at(address: int, size: int) -> Bytes:
    """Return host memory at an address as an array; who owns it must outlive it."""
    if size == 0:
        return np.zeros(0, np.uint8)
    return np.frombuffer(memoryview((ctypes.c_uint8 * size).from_address(address)), np.uint8)


class HostMemory(Memory):
    """NumPy arrays."""

    def address(self, array: Any) -> int:
        """Return the address of the data."""
        return int(array.ctypes.data)

    def staging(self, size: int) -> Bytes:
        """Return ordinary memory."""
        return np.empty(size, np.uint8)

    def read(self, address: int, host: Bytes) -> None:
        """Copy at once."""
        host[:] = bytes_at(address, host.size)

    def write(self, host: Bytes, address: int) -> None:
        """Copy at once."""
        bytes_at(address, host.size)[:] = host

    def copy(self, source: int, target: int, size: int) -> None:
        """Copy at once."""
        bytes_at(target, size)[:] = bytes_at(source, size)

    def wait(self) -> None:
        """Return: copies are done when they return."""

    def share(self, address: int) -> Any:
        """Return process and address, and let other processes in."""
        return this_process(), address

    def open(self, handle: Any) -> RemoteMemory:
        """Recognise the process, and try one byte."""
        process, address = handle
        window = _Attached(process.number, address)
        if address:
            recognise(process)
            window.read(0, np.empty(1, np.uint8))
        return window


class _Attached(RemoteMemory):
    """Host memory of another process."""

    def __init__(self, process: int, address: int) -> None:
        self._process, self._address = process, address

    def read(self, offset: int, host: Bytes) -> None:
        read_memory(self._process, self._address + offset, host)

    def write(self, host: Bytes, offset: int) -> None:
        write_memory(self._process, self._address + offset, host)

    def store(self, address: int, size: int, offset: int) -> None:
        self.write(bytes_at(address, size), offset)

    def close(self) -> None:
        pass


#: By the number of a GPU: the handle of memory that this process has there, and the nonce in it.
_proofs: dict[int, tuple[bytes, bytes]] = {}


class DeviceMemory(Memory):
    """Arrays of one GPU."""

    device: int

    def __init__(self, device: int | None = None) -> None:
        """Use the current GPU, or make `device` the current one."""
        self._runtime = cuda_runtime()
        if device is not None:
            self._runtime.setDevice(device)
        self.device = int(self._runtime.getDevice())
        self.bus = str(self._runtime.deviceGetPCIBusId(self.device))

    def address(self, array: Any) -> int:
        """Return the address on the device."""
        return int(array.__cuda_array_interface__["data"][0])

    def staging(self, size: int) -> Bytes:
        """Return page-locked memory."""
        import cupy

        return np.frombuffer(cupy.cuda.alloc_pinned_memory(max(1, size)), np.uint8, size)

    def read(self, address: int, host: Bytes) -> None:
        """Queue the copy."""
        self.copy(address, host.ctypes.data, host.size)

    def write(self, host: Bytes, address: int) -> None:
        """Queue the copy."""
        self.copy(host.ctypes.data, address, host.size)

    def copy(self, source: int, target: int, size: int) -> None:
        """Queue the copy."""
        if size:
            self._runtime.memcpyAsync(target, source, size, _ANY, self.stream())

    def stream(self) -> int:
        """Return the current stream's handle."""
        import cupy

        return int(cupy.cuda.get_current_stream().ptr)

    def wait(self) -> None:
        """Wait for the current stream."""
        self._runtime.streamSynchronize(self.stream())

    def share(self, address: int) -> Any:
        """Return the handle of the allocation and the place in it: a pool hands out parts of what it allocated."""
        if not address:
            return b"", 0, b"", b""
        base, size = ctypes.c_uint64(), ctypes.c_size_t()
        driver = ctypes.CDLL("libcuda.so.1")
        status = driver.cuMemGetAddressRange_v2(ctypes.byref(base), ctypes.byref(size), ctypes.c_uint64(address))
        if status:
            raise TransportError(f"the allocation of GPU memory at {address:#x} is not known (CUDA error {status})")
        return bytes(self._runtime.ipcGetMemHandle(base.value)), address - base.value, *self._proof()

    def _proof(self) -> tuple[bytes, bytes]:
        """Return the handle of memory of this process on the GPU, and the nonce that is in it."""
        if self.device not in _proofs:
            nonce = os.urandom(NONCE)
            place = self._runtime.malloc(NONCE)
            self._runtime.memcpy(place, np.frombuffer(nonce, np.uint8).ctypes.data, NONCE, _ANY)
            self._runtime.deviceSynchronize()
            _proofs[self.device] = bytes(self._runtime.ipcGetMemHandle(place)), nonce
        return _proofs[self.device]

    def _recognise(self, name: bytes, nonce: bytes) -> None:
        found = np.zeros(NONCE, np.uint8)
        base = int(self._runtime.ipcOpenMemHandle(name, _LAZY))
        self._runtime.memcpy(found.ctypes.data, base, NONCE, _ANY)
        self._runtime.ipcCloseMemHandle(base)
        if found.tobytes() != nonce:
            raise OSError("a handle of GPU memory opened that of another process")

    def open(self, handle: Any) -> RemoteMemory:
        """Recognise the process, and map the allocation."""
        name, offset, *proof = handle
        if not name:
            return _Mapped(self, 0, 0)
        try:
            self._recognise(*proof)
            base = int(self._runtime.ipcOpenMemHandle(name, _LAZY))
        except self._runtime.CUDARuntimeError as error:
            raise OSError(str(error)) from error
        return _Mapped(self, base, offset)


class _Mapped(RemoteMemory):
    """Memory of a GPU that another process allocated."""

    def __init__(self, memory: DeviceMemory, base: int, offset: int) -> None:
        self._memory, self._base, self._address = memory, base, base + offset

    def read(self, offset: int, host: Bytes) -> None:
        self._memory.read(self._address + offset, host)

    def write(self, host: Bytes, offset: int) -> None:
        self._memory.write(host, self._address + offset)

    def store(self, address: int, size: int, offset: int) -> None:
        self._memory.copy(address, self._address + offset, size)

    def close(self) -> None:
        if self._base:
            cuda_runtime().ipcCloseMemHandle(self._base)
            self._base = 0
