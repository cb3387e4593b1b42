# SPDX-License-Identifier: BSD-3-Clause
"""CPU backend: kernels from the table built at installation or compiled on first use, NumPy arrays, OpenMP threads."""

from __future__ import annotations

import ctypes
import os
import platform
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend.arrays import Array
from seiche.backend.base import COPIES, WARM_UP_COPIES, Backend, Graph, Kernel, Stream
from seiche.backend.host_compiler import ROW, compiled_row
from seiche.backend.host_threads import host_threads
from seiche.backend.ranges import profiler_ranges
from seiche.backend.transforms import Transforms, cpu_transforms
from seiche.errors import BackendUnavailable, KernelCompileError
from seiche.kernels.registry import KernelSpec
from seiche.native.levels import LEVELS, cpu_field, levels_of
from seiche.native.make_table import headers_hash
from seiche.set_up import set_up_stage

#: Arrays that each way of `seiche_move` reads or writes, and the way in which threads first write to the arrays.
_ARRAYS_MOVED, _PLACE_PAGES = (2, 2, 2, 3), 4
#: Numbers of each of the two arrays that all processes of a host move together.
_MOVED_NUMBERS = 1 << 25
_NATIVE = Path(__file__).resolve().parent.parent / "native"


class _KernelRow(ctypes.Structure):
    _fields_ = (("type", ctypes.c_char_p), ("launch", ctypes.c_void_p), ("size", ctypes.c_int), ("bytes", ctypes.c_int))


def _built_levels(folder: Path) -> list[str]:
    """Return the instruction sets with kernels in `folder`, the best one first."""
    return [level for level in LEVELS if (folder / f"seiche_{level}.so").exists()]


def _selected_levels(folder: Path) -> list[str]:
    """Return the instruction sets of this processor with kernels in `folder`, the best one first.

    SEICHE_CPU_LEVEL selects the best one.

    Raises:
        BackendUnavailable: there are no such kernels.
    """
    requested, built_levels, supported = (
        os.environ.get("SEICHE_CPU_LEVEL"),
        _built_levels(folder),
        levels_of(cpu_field("flags").split()),
    )
    if requested:
        lower = list(LEVELS)[list(LEVELS).index(requested) :] if requested in built_levels else []
        candidates, target, setting = lower, f"SEICHE_CPU_LEVEL={requested}", requested
    else:
        candidates, target, setting = supported, f"this processor ({supported[0]})", "all"
    built_candidates = [level for level in candidates if level in built_levels]
    if not built_candidates:
        raise BackendUnavailable(
            f"no CPU kernels for {target} in {folder}, only for {', '.join(built_levels) or 'none'}: install Seiche on"
            f" this machine (pip install .) or with -C cmake.define.SEICHE_LEVELS={setting}"
        )
    return built_candidates


@cache
def _library(path: Path) -> ctypes.CDLL:
    """Load a table.

    Raises:
        BackendUnavailable: it was built from other kernel headers.
    """
    # Idle threads release their cores soon, for other processes.
    os.environ.setdefault("GOMP_SPINCOUNT", "20000")
    library = ctypes.CDLL(str(path))
    if not _built_from_present_headers(library):
        raise BackendUnavailable(f"{path} was built from other kernel headers: reinstall Seiche (pip install .)")
    library.seiche_find.argtypes, library.seiche_find.restype = [ctypes.c_char_p], ctypes.POINTER(_KernelRow)
    library.seiche_launch.argtypes = [
        ctypes.POINTER(_KernelRow),
        ctypes.c_void_p,
        *[ctypes.c_longlong] * 2,
        ctypes.c_int,
    ]
    library.seiche_launch.restype = None
    library.seiche_move.argtypes = [*[ctypes.c_void_p] * 2, ctypes.c_longlong, *[ctypes.c_int] * 2]
    library.seiche_move.restype = None
    return library


def _built_from_present_headers(library: ctypes.CDLL) -> bool:
    """Return whether the kernel headers are those from which a table was built."""
    try:
        library.seiche_headers.restype = library.seiche_headers_hash.restype = ctypes.c_char_p
        headers = library.seiche_headers().decode().split()
        return bool(library.seiche_headers_hash().decode() == headers_hash(_NATIVE.parent / "kernels", headers))
    except (AttributeError, FileNotFoundError):  # a table of an earlier version; a header that no longer exists
        return False


@cache
def _table() -> tuple[ctypes.CDLL, str]:
    """Return the table for the best instruction set, and the name of that set."""
    level = _selected_levels(_NATIVE)[0]
    return _library(_NATIVE / f"seiche_{level}.so"), level


@cache
def _built_row(kernel_type: str) -> Any:
    """Return the row of a kernel in the table of the best instruction set that has it, or None.

    In a wheel, only the table of the lowest set has the rare kernels (`kernels/registry/rare.py`).
    """
    libraries = (_library(_NATIVE / f"seiche_{level}.so") for level in _selected_levels(_NATIVE))
    rows = (library.seiche_find(kernel_type.encode()) for library in libraries)
    return next((row for row in rows if row), None)


@cache
def _compiled_row(spec: KernelSpec, level: str) -> Any:
    """Return the row of a library with a single kernel, compiled if necessary; the library remains loaded."""
    library = ctypes.CDLL(str(compiled_row(spec, level)))
    return ctypes.pointer(_KernelRow.in_dll(library, ROW))


class CpuKernel(Kernel):
    """A row of the table, or of a library compiled at run time."""

    def __init__(self, spec: KernelSpec, threads: int) -> None:
        """Find or compile the row and compare the size of its argument struct with Python's."""
        self._library, level = _table()
        self._row = _built_row(spec.type) or _compiled_row(spec, level)
        super().__init__(spec, int(self._row.contents.bytes))
        if self._row.contents.size != self.dtype.itemsize:
            raise KernelCompileError(
                f"{spec.type}: the argument struct has {self._row.contents.size} B in C++ but {self.dtype.itemsize} "
                "B in Python"
            )
        self._threads = threads

    def bind(self, arguments: npt.NDArray[np.void], begin: int, end: int) -> Callable[[], None]:
        """Return a function that runs the row's loop."""
        packed = arguments.copy()
        launch, row, address, threads = self._library.seiche_launch, self._row, packed.ctypes.data, self._threads

        def run(_alive: npt.NDArray[np.void] = packed) -> None:
            launch(row, address, begin, end, threads)

        return run


class CpuStream(Stream):
    """All work on the CPU is synchronous, so every stream is idle."""

    def synchronize(self) -> None:
        """Do nothing: no work is pending."""

    def record(self) -> Any:
        """Return an event that is already complete."""
        return None

    def wait(self, event: Any) -> None:
        """Do nothing: the event is already complete."""


class CpuGraph(Graph):
    """A function that replaces captured work."""

    def __init__(self, work: Callable[[], None]) -> None:
        """Store the function."""
        self._work = work

    def launch(self) -> None:
        """Call the function."""
        self._work()


class CpuClock:
    """The clock of the host, in seconds."""

    on_host = True

    def record(self) -> float:
        """Return the present time."""
        return time.perf_counter()

    def elapsed(self, begin: float, end: float) -> float:
        """Return the seconds from `begin` to `end`."""
        return end - begin


def available_memory() -> int:
    """Return the memory that the system reports as available in bytes, 0 if unknown."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


class CpuBackend(Backend):
    """CPU cores with OpenMP threads."""

    name = "cpu"
    is_gpu = False
    multiprocessors = 0

    def __init__(self, threads: int | None = None) -> None:
        """Use `threads` threads, by default all that the process may use (see `host_threads`)."""
        self._library, _ = _table()
        self.threads = max(1, threads or host_threads())
        self._stream = CpuStream()
        self._kernels: dict[KernelSpec, CpuKernel] = {}
        self._ranges = profiler_ranges()

    def describe(self) -> str:
        """Return processor and threads."""
        return f"{cpu_field('model name') or platform.machine()}, {self.threads} threads"

    def zeros(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """Return zeroed memory aligned to a cache line."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        raw = np.zeros(size + 64, np.uint8)
        offset = -raw.ctypes.data % 64
        return raw[offset : offset + size].view(dtype).reshape(shape)

    @set_up_stage("upload")
    def upload(self, host: npt.NDArray[Any]) -> Array:
        """Return an aligned copy."""
        array = self.zeros(host.shape, host.dtype)
        array[...] = host
        return array

    def assign(self, array: Array, host: npt.NDArray[Any]) -> None:
        """Overwrite in place."""
        array[...] = host

    def download(self, array: Array) -> npt.NDArray[Any]:
        """Return a copy."""
        return np.array(array)

    def pointer(self, array: Array) -> int:
        """Return the address."""
        return int(array.ctypes.data)

    def pinned(self, shape: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return ordinary memory."""
        return np.zeros(shape, dtype)

    def copy_to_host(self, array: Array, host: npt.NDArray[Any]) -> None:
        """Copy synchronously."""
        host[...] = array

    def copy_to_device(self, host: npt.NDArray[Any], array: Array) -> None:
        """Copy synchronously."""
        array[...] = host

    def load(self, spec: KernelSpec) -> Kernel:
        """Return the kernel from the table, or compile it."""
        if spec not in self._kernels:
            with set_up_stage("compile"):
                self._kernels[spec] = CpuKernel(spec, self.threads)
        return self._kernels[spec]

    def transforms(self, shape: tuple[int, int, int], real: str) -> Transforms:
        """Return compiled kernels for large grids if a compiler is installed, otherwise FFTW or SciPy.

        SEICHE_FFT selects a library for grids of any size. `notes` states if kernels could not be compiled.
        """
        from seiche.backend.wide_transforms import WideTransforms, enough_points, wide_kernels

        library = cpu_transforms(shape, real, self.threads)
        if os.environ.get("SEICHE_FFT") or not enough_points(shape):
            return library
        kernels = wide_kernels(shape, real)  # type: ignore[arg-type]
        if kernels is None:
            return library
        try:
            return WideTransforms(self, library, kernels)
        except (BackendUnavailable, KernelCompileError) as error:
            extents, reason = " x ".join(str(n) for n in shape if n > 1), shorten(str(error), 160)
            note = f"{library.name} transforms {extents} points, slower than kernels, which did not compile: {reason}"
            self.notes += (note,) if note not in self.notes else ()
            return library

    def stream(self, *, high_priority: bool = False) -> Stream:
        """Return the only stream."""
        return self._stream

    def current(self) -> Stream:
        """Return the only stream."""
        return self._stream

    def use(self, stream: Stream) -> Any:
        """Return a context without effect."""
        return nullcontext(stream)

    def await_event(self, event: Any) -> None:
        """Do nothing: the event is already complete."""

    def capture(self, work: Callable[[], None]) -> Graph:
        """Return the work as a graph without capturing."""
        return CpuGraph(work)

    def synchronize(self) -> None:
        """Do nothing: no work is pending."""

    def clock(self) -> CpuClock:
        """Return the host's clock."""
        return CpuClock()

    def annotate(self, name: str) -> Any:
        """Return a range of a profiler, without effect if none started the process."""
        return self._ranges(name)

    def sum(self, array: Array) -> float:
        """Return the sum in double precision."""
        return float(np.sum(array, dtype=np.float64))

    def max(self, array: Array) -> float:
        """Return the largest element, or NaN if any element is NaN."""
        return float(np.max(array)) if array.size else 0.0

    def free_memory(self) -> int:
        """Return the available memory of the system."""
        return available_memory()

    def used_memory(self) -> int:
        """Return the resident memory of this process."""
        try:
            return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except OSError:
            return 0

    def copy_times(self, synchronise: Callable[[], None], sharers: int = 1) -> tuple[int, npt.NDArray[np.float64]]:
        """Time the fastest way to move arrays to and from memory: copies, an update in place and a sum.

        The `sharers` of a host move arrays of 256 MiB together, at least 16 MiB each: more than its caches hold.
        """
        count, free_bytes = max(_MOVED_NUMBERS // sharers, 1 << 21), self.free_memory()
        size = 8 * count >> 20
        problem = BackendUnavailable(
            f"the free memory is insufficient for copies of {size} MiB that measure the bandwidth"
        )
        if 0 < free_bytes < 2 * 8 * count * sharers:
            raise problem
        try:
            source, target = self.zeros(count, np.float64), self.zeros(count, np.float64)
        except MemoryError:
            raise problem from None
        arguments = (target.ctypes.data, source.ctypes.data, count)
        self._library.seiche_move(*arguments, _PLACE_PAGES, self.threads)
        seconds = np.empty((len(_ARRAYS_MOVED), COPIES))
        ways = list(range(len(_ARRAYS_MOVED)))
        for k in range(COPIES):
            for way in ways:
                synchronise()
                begin = time.perf_counter()
                self._library.seiche_move(*arguments, way, self.threads)
                seconds[way, k] = (time.perf_counter() - begin) * 2 / _ARRAYS_MOVED[way]
            if k == WARM_UP_COPIES:  # the other rounds repeat only the fastest way
                ways = [int(np.argmin(seconds[:, 1 : k + 1].min(axis=1)))]
        return 2 * 8 * count, seconds[ways[0]]
