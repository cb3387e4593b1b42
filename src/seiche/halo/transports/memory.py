# SPDX-License-Identifier: BSD-3-Clause
"""Memory of arrays on host or GPU: copies to and from the host, and access from other processes of the host.

Host arrays are NumPy arrays; other processes access them by cross-memory attach. GPU arrays are objects with a
`__cuda_array_interface__`; other processes map them (CUDA IPC). GPU copies use CuPy's current stream.
"""

from __future__ import annotations

import ctypes
import os
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.errors import TransportError
from seiche.halo.transports.cuda_runtime import IPC_LAZY, MEMCPY_DEFAULT, cuda_runtime
from seiche.halo.transports.single_copy import NONCE, read_memory, this_process, verify_process, write_memory

Bytes = npt.NDArray[np.uint8]


class RemoteMemory(ABC):
    """Memory of another process of this host."""

    @abstractmethod
    def read(self, offset: int, host: Bytes) -> None:
        """Start a copy from `offset` to host memory of this process."""

    @abstractmethod
    def write(self, host: Bytes, offset: int) -> None:
        """Start a copy from host memory of this process to `offset`."""

    @abstractmethod
    def store(self, address: int, size: int, offset: int) -> None:
        """Start a copy of `size` bytes from `address`, memory of the same kind in this process, to `offset`."""

    @abstractmethod
    def close(self) -> None:
        """Release the memory."""


class Memory(ABC):
    """Copies and sharing for one kind of array.

    `device` is the GPU number and `bus` its PCI address; both are None for the host.
    """

    device: int | None = None
    bus: str | None = None

    @abstractmethod
    def address(self, array: Any) -> int:
        """Return the address of the first byte."""

    @abstractmethod
    def staging(self, size: int) -> Bytes:
        """Return host memory suitable for direct copies."""

    @abstractmethod
    def read(self, address: int, host: Bytes) -> None:
        """Start a copy from `address` to host memory."""

    @abstractmethod
    def write(self, host: Bytes, address: int) -> None:
        """Start a copy from host memory to `address`."""

    @abstractmethod
    def copy(self, source: int, target: int, size: int) -> None:
        """Start a copy within this process."""

    @abstractmethod
    def wait(self) -> None:
        """Wait for the copies started so far and for the work of the current stream."""

    @abstractmethod
    def share(self, address: int) -> Any:
        """Return the handle with which another process of this host can open the memory at `address`."""

    @abstractmethod
    def open(self, handle: Any) -> RemoteMemory:
        """Open memory shared by another process, starting at its `address`.

        Raises:
            OSError: it cannot be opened.
        """


def memory_of(array: Any) -> Memory:
    """Return the kind of memory of an array.

    Raises:
        TransportError: the array is neither a NumPy nor a GPU array, or it is not contiguous.
    """
    if isinstance(array, np.ndarray):
        if not array.flags.c_contiguous:
            raise TransportError(f"an array of shape {array.shape} is not contiguous; copy it first")
        return HostMemory()
    if not hasattr(array, "__cuda_array_interface__"):
        raise TransportError(f"{type(array).__name__} is not a NumPy or GPU array")
    if array.__cuda_array_interface__.get("strides") is not None:
        raise TransportError(f"an array of shape {array.shape} is not contiguous; copy it first")
    return DeviceMemory()


def bytes_at(address: int, size: int) -> Bytes:
    """Return host memory at an address as an array; its owner must outlive it."""
    if size == 0:
        return np.zeros(0, np.uint8)
    return np.frombuffer(memoryview((ctypes.c_uint8 * size).from_address(address)), np.uint8)


class HostMemory(Memory):
    """NumPy arrays."""

    def address(self, array: Any) -> int:
        """Return the host address."""
        return int(array.ctypes.data)

    def staging(self, size: int) -> Bytes:
        """Return ordinary memory."""
        return np.empty(size, np.uint8)

    def read(self, address: int, host: Bytes) -> None:
        """Copy immediately."""
        host[:] = bytes_at(address, host.size)

    def write(self, host: Bytes, address: int) -> None:
        """Copy immediately."""
        bytes_at(address, host.size)[:] = host

    def copy(self, source: int, target: int, size: int) -> None:
        """Copy immediately."""
        bytes_at(target, size)[:] = bytes_at(source, size)

    def wait(self) -> None:
        """Return: host copies are synchronous."""

    def share(self, address: int) -> Any:
        """Return process and address, and permit access by other processes."""
        return this_process(), address

    def open(self, handle: Any) -> RemoteMemory:
        """Verify the process by its nonce and read one byte."""
        process, address = handle
        window = _AttachedMemory(process.pid, address)
        if address:
            verify_process(process)
            window.read(0, np.empty(1, np.uint8))
        return window


class _AttachedMemory(RemoteMemory):
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


#: By GPU number: IPC handle of a small allocation of this process, and the nonce stored in it.
_proofs: dict[int, tuple[bytes, bytes]] = {}


class DeviceMemory(Memory):
    """Arrays of one GPU."""

    device: int

    def __init__(self, device: int | None = None) -> None:
        """Use the current GPU, or make `device` current."""
        self._runtime = cuda_runtime()
        if device is not None:
            self._runtime.setDevice(device)
        self.device = int(self._runtime.getDevice())
        self.bus = str(self._runtime.deviceGetPCIBusId(self.device))

    def address(self, array: Any) -> int:
        """Return the device address."""
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
            self._runtime.memcpyAsync(target, source, size, MEMCPY_DEFAULT, self.stream())

    def stream(self) -> int:
        """Return the handle of the current stream."""
        import cupy

        return int(cupy.cuda.get_current_stream().ptr)

    def wait(self) -> None:
        """Wait for the current stream."""
        self._runtime.streamSynchronize(self.stream())

    def share(self, address: int) -> Any:
        """Return the handle of the allocation and the offset in it, since memory pools subdivide allocations."""
        if not address:
            return b"", 0, b"", b""
        base, size = ctypes.c_uint64(), ctypes.c_size_t()
        driver = ctypes.CDLL("libcuda.so.1")
        status = driver.cuMemGetAddressRange_v2(ctypes.byref(base), ctypes.byref(size), ctypes.c_uint64(address))
        if status:
            raise TransportError(f"there is no allocation of GPU memory at {address:#x} (CUDA error {status})")
        return bytes(self._runtime.ipcGetMemHandle(base.value)), address - base.value, *self._proof()

    def _proof(self) -> tuple[bytes, bytes]:
        """Return the IPC handle of this process's nonce on the GPU, and the nonce."""
        if self.device not in _proofs:
            nonce = os.urandom(NONCE)
            address = self._runtime.malloc(NONCE)
            self._runtime.memcpy(address, np.frombuffer(nonce, np.uint8).ctypes.data, NONCE, MEMCPY_DEFAULT)
            self._runtime.deviceSynchronize()
            _proofs[self.device] = bytes(self._runtime.ipcGetMemHandle(address)), nonce
        return _proofs[self.device]

    def _verify(self, handle: bytes, nonce: bytes) -> None:
        content = np.zeros(NONCE, np.uint8)
        base = int(self._runtime.ipcOpenMemHandle(handle, IPC_LAZY))
        self._runtime.memcpy(content.ctypes.data, base, NONCE, MEMCPY_DEFAULT)
        self._runtime.ipcCloseMemHandle(base)
        if content.tobytes() != nonce:
            raise OSError("the handle of GPU memory belongs to another process")

    def open(self, handle: Any) -> RemoteMemory:
        """Verify the process by its nonce and map the allocation."""
        ipc_handle, offset, *proof = handle
        if not ipc_handle:
            return _MappedMemory(self, 0, 0)
        try:
            self._verify(*proof)
            base = int(self._runtime.ipcOpenMemHandle(ipc_handle, IPC_LAZY))
        except self._runtime.CUDARuntimeError as error:
            raise OSError(str(error)) from error
        return _MappedMemory(self, base, offset)


class _MappedMemory(RemoteMemory):
    """GPU memory allocated by another process."""

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
