# SPDX-License-Identifier: BSD-3-Clause
"""Read and write memory of another process of this host with one copy (cross-memory attach of Linux).

MPI libraries send large messages inside a host this way. If the system forbids it, they copy twice, through shared
memory, and are several times slower.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from seiche.domain.rank_locations import pid_namespace

#: prctl: permit any process of this user to attach to this one (required by the Yama security module).
_SET_PTRACER, _ANYONE = 0x59616D61, -1

#: Bytes of the random number with which other processes verify that they access the right memory.
NONCE = 16
_nonce = np.frombuffer(os.urandom(NONCE), np.uint8).copy()


class _IoVector(ctypes.Structure):
    _fields_ = (("address", ctypes.c_void_p), ("size", ctypes.c_size_t))


@cache
def _library() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def permit_access() -> None:
    """Permit other processes of this user to read and write the memory of this one."""
    if hasattr(_library(), "prctl"):
        mask = 2 ** (8 * ctypes.sizeof(ctypes.c_ulong)) - 1
        _library().prctl(_SET_PTRACER, ctypes.c_ulong(_ANYONE & mask), 0, 0, 0)


class Process(NamedTuple):
    """A process to be accessed by others: its process ID and the namespace of this, a nonce and its address."""

    pid: int
    namespace: str
    address: int
    nonce: bytes


def this_process() -> Process:
    """Return this process and permit others to access its memory."""
    permit_access()
    return Process(os.getpid(), pid_namespace(), int(_nonce.ctypes.data), _nonce.tobytes())


def verify_process(process: Process) -> None:
    """Verify another process by reading its nonce.

    Raises:
        OSError: its memory cannot be read, or the process ID belongs to another process (as in another container).
    """
    if process.namespace != pid_namespace():
        raise OSError(f"process ID {process.pid} belongs to another PID namespace, as in another container")
    content = np.zeros(NONCE, np.uint8)
    read_memory(process.pid, process.address, content)
    if content.tobytes() != process.nonce:
        raise OSError(f"process ID {process.pid} belongs to another process")


def read_memory(process: int, address: int, target: npt.NDArray[np.uint8]) -> None:
    """Fill `into` from the memory at `address` of another process.

    Raises:
        OSError: the system does not provide or permit this, or the address is invalid.
    """
    _move("process_vm_readv", process, address, target)


def write_memory(process: int, address: int, source: npt.NDArray[np.uint8]) -> None:
    """Copy `source` to `address` in the memory of another process.

    Raises:
        OSError: as `read_memory`.
    """
    _move("process_vm_writev", process, address, source)


def _move(name: str, process: int, address: int, array: npt.NDArray[np.uint8]) -> None:
    try:
        call = getattr(_library(), name)
    except AttributeError as error:
        raise OSError(f"this system does not provide {name}") from error
    call.restype = ctypes.c_ssize_t
    copied = 0
    while copied < array.nbytes:
        local = _IoVector(array.ctypes.data + copied, array.nbytes - copied)
        remote = _IoVector(address + copied, array.nbytes - copied)
        count, flags = ctypes.c_ulong(1), ctypes.c_ulong(0)
        moved = call(ctypes.c_int(process), ctypes.byref(local), count, ctypes.byref(remote), count, flags)
        if moved <= 0:
            number = ctypes.get_errno()
            raise OSError(number, f"{name}: {os.strerror(number)}")
        copied += int(moved)
