# SPDX-License-Identifier: BSD-3-Clause
"""Memory of another process of this host, read and written with one copy (cross-memory attach of Linux).

MPI libraries send large messages inside a host this way. Where the system forbids it they copy twice, through shared
memory, and are several times slower.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

#: prctl: any process of this user may attach to this one, where the Yama security module asks.
_SET_PTRACER, _ANYONE = 0x59616D61, -1

#: Bytes of a number that its owner draws and writes into its memory: who reads it there has reached that memory.
NONCE = 16
_nonce = np.frombuffer(os.urandom(NONCE), np.uint8).copy()


class _Span(ctypes.Structure):
    _fields_ = (("address", ctypes.c_void_p), ("size", ctypes.c_size_t))


@cache
def _library() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def open_to_others() -> None:
    """Let processes of this user read and write the memory of this one."""
    if hasattr(_library(), "prctl"):
        _library().prctl(
            _SET_PTRACER, ctypes.c_ulong(_ANYONE & (2 ** (8 * ctypes.sizeof(ctypes.c_ulong)) - 1)), 0, 0, 0
        )


class Process(NamedTuple):
    """A process as another one knows it: its number, and a nonce at an address of its memory."""

    number: int
    address: int
    nonce: bytes


def this_process() -> Process:
    """Return this process, whose memory others may then read and write."""
    open_to_others()
    return Process(os.getpid(), int(_nonce.ctypes.data), _nonce.tobytes())


def recognise(process: Process) -> None:
    """Read the nonce of another process from its memory.

    Raises:
        OSError: memory cannot be read here, or the process of that number is another one, of another container, say.
    """
    found = np.zeros(NONCE, np.uint8)
    read_memory(process.number, process.address, found)
    if found.tobytes() != process.nonce:
        raise OSError(f"process {process.number} is another one here")


def read_memory(process: int, address: int, into: npt.NDArray[np.uint8]) -> None:
    """Fill `into` from the memory at `address` of another process.

    Raises:
        OSError: the system does not have or allow this, or nothing is at that address.
    """
    _move("process_vm_readv", process, address, into)


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
        raise OSError(f"this system has no {name}") from error
    call.restype = ctypes.c_ssize_t
    done = 0
    while done < array.nbytes:
        here = _Span(array.ctypes.data + done, array.nbytes - done)
        there = _Span(address + done, array.nbytes - done)
        moved = call(
            ctypes.c_int(process),
            ctypes.byref(here),
            ctypes.c_ulong(1),
            ctypes.byref(there),
            ctypes.c_ulong(1),
            ctypes.c_ulong(0),
        )
        if moved <= 0:
            number = ctypes.get_errno()
            raise OSError(number, f"{name}: {os.strerror(number)}")
        done += int(moved)
