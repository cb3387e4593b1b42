# SPDX-License-Identifier: BSD-3-Clause
"""Host memory that processes of one host map, behind the calls that `peer` makes to the CUDA runtime.

The memory is an anonymous file (memfd). Another process opens it through the file descriptors of its owner in `/proc`,
so the limit of `/dev/shm` does not apply.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from typing import Any

import numpy as np

from seiche.halo.transports.single_copy import permit_access


class SharedMemoryRuntime:
    """Allocates, shares and maps memory; the names and arguments are those of the CUDA runtime."""

    CUDARuntimeError = OSError

    def __init__(self) -> None:
        """Start without memory."""
        self._own: dict[int, tuple[mmap.mmap, int]] = {}
        self._mapped: dict[int, mmap.mmap] = {}

    def malloc(self, size: int) -> int:
        """Return the address of `size` bytes that other processes can map.

        Raises:
            OSError: the system does not provide such memory, or has not enough.
        """
        if not hasattr(os, "memfd_create"):
            raise OSError("this system has no anonymous files (memfd)")
        permit_access()
        file = os.memfd_create("seiche", os.MFD_CLOEXEC)
        try:
            os.posix_fallocate(file, 0, size)
            pages = mmap.mmap(file, size)
        except OSError:
            os.close(file)
            raise
        address = _address(pages)
        self._own[address] = pages, file
        return address

    def free(self, address: int) -> None:
        """Release memory of this process."""
        pages, file = self._own.pop(address)
        pages.close()
        os.close(file)

    def memset(self, address: int, value: int, size: int) -> None:
        """Fill memory with a byte."""
        ctypes.memset(address, value, size)

    def memcpy(self, target: int, source: int, size: int, kind: int) -> None:
        """Copy memory; the `kind` of copy is irrelevant on the host."""
        del kind
        ctypes.memmove(target, source, size)

    def ipcGetMemHandle(self, address: int) -> bytes:  # noqa: N802
        """Return the handle with which another process of this host maps the memory."""
        pages, file = self._own[address]
        return f"{os.getpid()} {file} {len(pages)}".encode()

    def ipcOpenMemHandle(self, handle: bytes, flags: int) -> int:  # noqa: N802
        """Map memory of another process and return its address here.

        Raises:
            OSError: the process does not exist on this host, or its memory cannot be opened.
        """
        del flags
        process, number, size = map(int, handle.split())
        file = os.open(f"/proc/{process}/fd/{number}", os.O_RDWR | os.O_CLOEXEC)
        try:
            pages = mmap.mmap(file, size)
        except ValueError as error:  # the file of another process that has this number
            raise OSError(str(error)) from error
        finally:
            os.close(file)
        address = _address(pages)
        self._mapped[address] = pages
        return address

    def ipcCloseMemHandle(self, address: int) -> None:  # noqa: N802
        """Unmap memory of another process."""
        self._mapped.pop(address).close()


def _address(pages: mmap.mmap) -> int:
    array: Any = np.frombuffer(pages, np.uint8)
    return int(array.ctypes.data)
