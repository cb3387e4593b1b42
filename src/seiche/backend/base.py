# SPDX-License-Identifier: BSD-3-Clause
"""Interface of all devices: the only connection between solvers and hardware."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend.arrays import Array, argument_dtype
from seiche.backend.transforms import Transforms
from seiche.kernels.registry import KernelSpec

#: Copies that `copy_times` measures; the first ones are for warm-up.
COPIES, WARM_UP_COPIES = 9, 2


class Kernel(ABC):
    """A kernel of one backend."""

    def __init__(self, spec: KernelSpec, bytes_per_item: int) -> None:
        """Store the specification and the minimum memory traffic of an item in bytes."""
        self.spec, self.bytes_per_item = spec, bytes_per_item
        self.dtype = argument_dtype(spec.members)

    @abstractmethod
    def bind(self, arguments: npt.NDArray[np.void], begin: int, end: int) -> Callable[[], None]:
        """Return a function that runs the items begin ... end - 1 with a copy of the packed `arguments`."""


class Stream(ABC):
    """A queue of work that is executed in order; two streams run concurrently."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until all work launched so far is done."""

    @abstractmethod
    def record(self) -> Any:
        """Return an event that completes with the work launched so far."""

    @abstractmethod
    def wait(self, event: Any) -> None:
        """Make later work of this stream wait for `event` of another stream."""


class Graph(ABC):
    """Captured work that can be launched repeatedly."""

    @abstractmethod
    def launch(self) -> None:
        """Run the captured work on the current stream."""


class Backend(ABC):
    """A device: memory, kernels, streams. `pack` packs arguments; kernels are launched in the current stream."""

    name: str
    #: Whether it is a GPU; prefer the more specific properties below where one applies.
    is_gpu: bool
    #: Number of multiprocessors of a GPU.
    multiprocessors: int
    #: PCI address of a GPU, None for other devices.
    pci_address: str | None = None
    #: Lines for the user about slower ways that this device had to use.
    notes: tuple[str, ...] = ()

    @property
    def host_memory(self) -> bool:
        """Whether arrays are in host memory, so the host needs no copies."""
        return not self.is_gpu

    @property
    def concurrent_streams(self) -> bool:
        """Whether kernels are asynchronous and several streams run concurrently."""
        return self.is_gpu

    @property
    def has_graphs(self) -> bool:
        """Whether the device replays captured work without launches by the host."""
        return self.is_gpu

    @property
    def prefers_fused_transforms(self) -> bool:
        """Whether transforms of lines inside kernels are faster than library transforms between kernels."""
        return self.is_gpu

    @abstractmethod
    def describe(self) -> str:
        """Return a description of the device for reports."""

    @abstractmethod
    def zeros(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """Return memory filled with zeros."""

    @abstractmethod
    def upload(self, host: npt.NDArray[Any]) -> Array:
        """Return a copy of `host` on the device."""

    @abstractmethod
    def assign(self, array: Array, host: npt.NDArray[Any]) -> None:
        """Overwrite `array` with `host` of the same shape and dtype."""

    @abstractmethod
    def download(self, array: Array) -> npt.NDArray[Any]:
        """Return a copy of `array` on the host, after all work that writes to it."""

    @abstractmethod
    def pointer(self, array: Array) -> int:
        """Return the address of the first element."""

    @abstractmethod
    def pinned(self, shape: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return host memory for direct copies to and from the device."""

    @abstractmethod
    def copy_to_host(self, array: Array, host: npt.NDArray[Any]) -> None:
        """Start a copy of `array` into pinned `host`, in the order of the current stream."""

    @abstractmethod
    def copy_to_device(self, host: npt.NDArray[Any], array: Array) -> None:
        """Start a copy of pinned `host` into `array`, in the order of the current stream."""

    @abstractmethod
    def load(self, spec: KernelSpec) -> Kernel:
        """Return the kernel for a specialisation, from a table or the cache, or compiled.

        Raises:
            KernelCompileError: compilation failed, or the size of the argument struct differs from that in Python.
        """

    @abstractmethod
    def transforms(self, shape: tuple[int, int, int], real: str) -> Transforms:
        """Return real Fourier transforms of grids of this shape ("float32" or "float64")."""

    @abstractmethod
    def stream(self, *, high_priority: bool = False) -> Stream:
        """Return a new stream; `with backend.use(stream)` makes it current. Urgent streams have priority."""

    @abstractmethod
    def current(self) -> Stream:
        """Return the current stream."""

    @abstractmethod
    def use(self, stream: Stream) -> Any:
        """Return a context in which `stream` is current."""

    @abstractmethod
    def await_event(self, event: Any) -> None:
        """Wait, in any host thread, for an event of a stream."""

    @abstractmethod
    def capture(self, work: Callable[[], None]) -> Graph:
        """Return the kernels that `work` launches as a graph (they are not run)."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until the device is idle."""

    @abstractmethod
    def clock(self) -> Any:
        """Return a clock for stage timers (`record()`, `elapsed(begin, end)` in seconds)."""

    @abstractmethod
    def annotate(self, name: str) -> Any:
        """Return a context that is labelled `name` in a profiler's timeline."""

    @abstractmethod
    def sum(self, array: Array) -> float:
        """Return the sum of all elements in double precision."""

    def max_abs(self, array: Array) -> float:
        """Return the largest magnitude of an element, or NaN if any element is NaN; 0 for an empty array."""
        return float(max(array.max(), -array.min())) if array.size else 0.0

    @abstractmethod
    def max(self, array: Array) -> float:
        """Return the largest element, or NaN if any element is NaN."""

    @abstractmethod
    def free_memory(self) -> int:
        """Return the number of bytes that can still be allocated."""

    @abstractmethod
    def used_memory(self) -> int:
        """Return the bytes of device memory that this process uses, 0 if unknown."""

    @abstractmethod
    def copy_times(self, synchronise: Callable[[], None], sharers: int = 1) -> tuple[int, npt.NDArray[np.float64]]:
        """Return the bytes, read plus written, of a large copy in device memory, and the seconds of COPIES copies.

        `synchronise` is called before each copy, for example a barrier of ranks that share a memory. `sharers`
        processes of this host make such copies at the same time.

        Raises:
            BackendUnavailable: the free memory is insufficient; `synchronise` has not been called.
        """

    def pack(self, kernel: Kernel, **members: Any) -> npt.NDArray[np.void]:
        """Return the argument struct of `kernel`; arrays are replaced by addresses, nested members are dicts.

        Raises:
            KeyError: a member is missing or unknown.
        """
        record = np.zeros((), kernel.dtype)
        self._fill(record, kernel.dtype, members)
        return record

    def _fill(self, record: npt.NDArray[np.void], dtype: np.dtype[Any], members: dict[str, Any]) -> None:
        names = dtype.names or ()
        if set(members) != set(names) - {"unused"}:
            raise KeyError(f"kernel arguments are {sorted(members)}, expected {sorted(names)}")
        for name, value in members.items():
            inner = dtype[name]
            if isinstance(value, dict):
                self._fill(record[name], inner, value)
            elif inner == np.uint64 and not isinstance(value, (int, np.integer)):
                record[name] = 0 if value is None else self.pointer(value)
            else:
                record[name] = value
