# SPDX-License-Identifier: BSD-3-Clause
"""Counters of the processor: cycles and instructions of all threads of this process (perf_event_open of Linux)."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: Number of the system call by machine.
_SYSTEM_CALLS = {"x86_64": 298, "aarch64": 241}
#: Type and configuration of the counters: hardware cycles and instructions, and nanoseconds on a processor.
COUNTERS = {"cycles": (0, 0), "instructions": (0, 1), "cpu_ns": (1, 1)}
#: Of struct perf_event_attr: count in threads created later, too; neither the kernel nor a hypervisor.
_FLAGS = 1 << 1 | 1 << 5 | 1 << 6
#: Read also the time enabled and running: counters share the registers of the processor.
_READ_FORMAT = 1 | 2
_PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")


class ProcessCounters:
    """Sums of the counters over `counting()` blocks.

    Attributes:
        totals: counts by name (`COUNTERS`); empty if a counter could not be read.
        reason: why there are no counts, None if there are.
    """

    def __init__(self, counters: dict[str, tuple[int, int]] | None = None) -> None:
        """Start at zero; by default with all counters."""
        self._counters = COUNTERS if counters is None else counters
        self.totals: dict[str, float] = {}
        self.reason: str | None = "no steps were counted"

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count in the block; without an effect on it if that is not possible."""
        files: dict[str, list[int]] = {name: [] for name in self._counters}
        try:
            self._open(files)
            self.reason = None
        except OSError as error:
            self.reason = _reason(error)
        try:
            yield
            if self.reason is None:
                for name, descriptors in files.items():
                    self.totals[name] = self.totals.get(name, 0.0) + sum(map(_count, descriptors))
        finally:
            for descriptor in (number for descriptors in files.values() for number in descriptors):
                os.close(descriptor)

    def _open(self, files: dict[str, list[int]]) -> None:
        """Open all counters for the present threads of this process, which cannot count in the past."""
        threads = [int(name) for name in os.listdir("/proc/self/task")]
        for name, (kind, configuration) in self._counters.items():
            for thread in threads:
                try:
                    files[name].append(_opened(kind, configuration, thread))
                except ProcessLookupError:  # it has ended
                    continue

    def as_dict(self) -> dict[str, Any]:
        """Return the counts, or the reason why there are none, for a summary."""
        return dict(self.totals) if self.reason is None else {"unavailable": self.reason}


def _opened(kind: int, configuration: int, thread: int) -> int:
    """Return the descriptor of a counter of a thread on any processor."""
    number = _SYSTEM_CALLS.get(platform.machine())
    if number is None or platform.system() != "Linux":
        raise OSError(0, f"counters are not supported on {platform.system()} {platform.machine()}")
    values = (kind, 64, configuration, 0, 0, _READ_FORMAT, _FLAGS, 0, 0, 0)
    attributes = ctypes.create_string_buffer(struct.pack("=IIQQQQQIIQ", *values))
    library = ctypes.CDLL(None, use_errno=True)
    close_on_exec = 8
    arguments = (ctypes.c_long(number), attributes, ctypes.c_int(thread), ctypes.c_int(-1), ctypes.c_int(-1))
    descriptor = library.syscall(*arguments, ctypes.c_ulong(close_on_exec))
    if descriptor < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(descriptor)


def _count(descriptor: int) -> float:
    """Return the count, extrapolated if the counter ran only part of the time."""
    value, enabled, running = struct.unpack("=QQQ", os.read(descriptor, 24))
    return value * enabled / running if running else 0.0


def _reason(error: OSError) -> str:
    if error.errno in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV):
        return "the processor, or its virtual machine, has no counters of cycles and instructions"
    paranoid = _PARANOID.read_text().strip() if _PARANOID.exists() else "unknown"
    return f"the processor's counters cannot be read ({error.strerror}; perf_event_paranoid = {paranoid})"
