# SPDX-License-Identifier: BSD-3-Clause
"""What every device offers: the only interface between the solvers and the hardware."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend.arrays import Array, argument_dtype
from seiche.backend.transforms import Transforms
from seiche.kernels.registry import KernelSpec

#: Copies that `copy_times` measures; the first ones warm up.
COPIES, COPIES_TO_WARM_UP = 9, 2


class Kernel(ABC):
    """A kernel of one backend, ready to be given arguments."""

    def __init__(self, spec: KernelSpec, bytes_per_item: int) -> None:
        """Remember what is run and the memory traffic that one item must cause."""
        self.spec = spec
        self.bytes_per_item = bytes_per_item
        self.dtype = argument_dtype(spec.members)

    @abstractmethod
    def bind(self, arguments: npt.NDArray[np.void], begin: int, end: int) -> Callable[[], None]:
        """Return a call that runs the items begin ... end - 1 with a copy of the packed `arguments`."""


class Stream(ABC):
    """Work in order; two streams run side by side."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until all work given so far is done."""

    @abstractmethod
    def record(self) -> Any:
        """Return an event that is reached when all work given so far is done."""

    @abstractmethod
    def wait(self, event: Any) -> None:
        """Let later work of this stream start only after `event` of another stream."""


class Graph(ABC):
    """Work that was captured once and can be launched again as a whole."""

    @abstractmethod
    def launch(self) -> None:
        """Run the captured work on the current stream."""


class Backend(ABC):
    """A device: memory, kernels, streams. Arguments are packed by `pack`, kernels launched in the current stream."""

    name: str
    #: Whether it is a GPU; ask what is meant (below) where that has a name of its own.
    is_gpu: bool
    #: Multiprocessors of a GPU: so many teams have one for themselves.
    multiprocessors: int
    #: PCI address of a GPU, None for other devices.
    pci_address: str | None = None

    @property
    def host_memory(self) -> bool:
        """Whether arrays lie in the host's memory, so that nothing needs a copy to get there."""
        return not self.is_gpu

    @property
    def concurrent_streams(self) -> bool:
        """Whether kernels return before they are done, and those of several streams run side by side."""
        return self.is_gpu

    @property
    def has_graphs(self) -> bool:
        """Whether captured work is replayed by the device alone, which saves the host's launches."""
        return self.is_gpu

    @property
    def prefers_fused_transforms(self) -> bool:
        """Whether transforms of lines inside of kernels are faster than those of a library between kernels."""
        return self.is_gpu

    @abstractmethod
    def describe(self) -> str:
        """Return the device in words, for reports."""

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
        """Return a copy of `array` on the host, after all work that writes it."""

    @abstractmethod
    def pointer(self, array: Array) -> int:
        """Return the address of the first element."""

    @abstractmethod
    def pinned(self, shape: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return host memory that the device copies from and to without a detour."""

    @abstractmethod
    def copy_to_host(self, array: Array, host: npt.NDArray[Any]) -> None:
        """Start a copy of `array` into pinned `host`, in the order of the current stream."""

    @abstractmethod
    def copy_to_device(self, host: npt.NDArray[Any], array: Array) -> None:
        """Start a copy of pinned `host` into `array`, in the order of the current stream."""

    @abstractmethod
    def load(self, spec: KernelSpec) -> Kernel:
        """Return the kernel for a specialisation, compiled or found in the cache or table.

        Raises:
            KernelCompileError: the compiler refused it, or its argument struct has another size than Python packs.
        """

    @abstractmethod
    def transforms(self, shape: tuple[int, int, int], real: str) -> Transforms:
        """Return real Fourier transforms of grids of this shape in a precision ("float32" or "float64")."""

    @abstractmethod
    def stream(self, *, urgent: bool = False) -> Stream:
        """Return a new stream; `with backend.use(stream)` makes it current. Urgent work goes before other work."""

    @abstractmethod
    def current(self) -> Stream:
        """Return the stream that work goes to now."""

    @abstractmethod
    def use(self, stream: Stream) -> Any:
        """Return a context in which work goes to `stream`."""

    @abstractmethod
    def await_event(self, event: Any) -> None:
        """Wait, in any thread of the host, until `event` of a stream is reached."""

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
        """Return a context that shows up under `name` in a profiler's time line."""

    @abstractmethod
    def sum(self, array: Array) -> float:
        """Return the sum of all elements in double precision."""

    @abstractmethod
    def max(self, array: Array) -> float:
        """Return the greatest element, NaN if there is one."""

    @abstractmethod
    def free_memory(self) -> int:
        """Return the bytes that can still be allocated."""

    @abstractmethod
    def used_memory(self) -> int:
        """Return the bytes that this process holds of the device's memory, 0 where that is not known."""

    @abstractmethod
    def copy_times(self, ready: Callable[[], None]) -> tuple[int, npt.NDArray[np.float64]]:
        """Return the bytes, read plus written, of a large copy in the device's memory, and the seconds of COPIES.

        `ready` is called before each, so that ranks which share a memory copy at the same time.
        """

    def pack(self, kernel: Kernel, **members: Any) -> npt.NDArray[np.void]:
        """Return the argument struct of `kernel`; arrays become addresses, nested members are dicts.

        Raises:
            KeyError: a member is missing or unknown.
        """
        record = np.zeros((), kernel.dtype)
        self._fill(record, kernel.dtype, members)
        return record

    def _fill(self, record: npt.NDArray[np.void], dtype: np.dtype[Any], members: dict[str, Any]) -> None:
        names = dtype.names or ()
        if set(members) != set(names) - {"unused"}:
            raise KeyError(f"kernel arguments {sorted(members)} are not {sorted(names)}")
        for name, value in members.items():
            inner = dtype[name]
            if isinstance(value, dict):
                self._fill(record[name], inner, value)
            elif inner == np.uint64 and not isinstance(value, (int, np.integer)):
                record[name] = 0 if value is None else self.pointer(value)
            else:
                record[name] = value
