# SPDX-License-Identifier: BSD-3-Clause
"""A device that counts the launches, memory traffic and allocations of a step without performing them.

Solvers are constructed on it like on any other device. This predicts the plan of a run on any number of ranks. Memory
is allocated but not written, so it occupies no pages. Uploaded tables are stored and can be read.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend.arrays import Array, argument_dtype
from seiche.backend.base import Kernel
from seiche.backend.cpu import CpuBackend
from seiche.backend.transforms import Bound, Transforms
from seiche.kernels.registry import KernelSpec

#: Headers of the kernels that pack and unpack messages.
_MESSAGE_HEADERS = ("halo/move.hpp", "halo/wide.hpp")


@dataclass
class Ledger:
    """Operations since the ledger was cleared.

    Attributes:
        launches: number of kernels and transforms.
        kernels: kernels with the number of their items.
        transformed: bytes that transforms must read and write.
        exchanges: messages sent together, (peer, bytes sent, bytes received) each.
        arrivals: number of exchanges received.
    """

    launches: int = 0
    kernels: list[tuple[PlannedKernel, int]] = field(default_factory=list)
    transformed: int = 0
    exchanges: list[tuple[tuple[int, int, int], ...]] = field(default_factory=list)
    arrivals: int = 0

    def clear(self) -> None:
        """Reset all counts."""
        self.launches = self.transformed = self.arrivals = 0
        self.kernels, self.exchanges = [], []

    @property
    def bytes(self) -> int:
        """Return the declared bytes that kernels and transforms must read and write, except for messages."""
        return self.transformed + sum(
            kernel.bytes_per_item * items
            for kernel, items in self.kernels
            if kernel.spec.header not in _MESSAGE_HEADERS
        )

    @property
    def packed(self) -> int:
        """Return the bytes that pack and unpack kernels must read and write."""
        return sum(
            kernel.bytes_per_item * items for kernel, items in self.kernels if kernel.spec.header in _MESSAGE_HEADERS
        )


class PlannedKernel(Kernel):
    """A kernel whose launches are counted; it is compiled only if its bytes are needed or if it must run."""

    def __init__(self, spec: KernelSpec, backend: PlannedBackend) -> None:
        """Store the backend that counts launches."""
        self.spec, self.dtype, self._backend = spec, argument_dtype(spec.members), backend

    @property
    def bytes_per_item(self) -> int:  # type: ignore[override]
        """Return the minimum memory traffic of an item in bytes."""
        return self._backend.real(self.spec).bytes_per_item

    def bind(self, arguments: npt.NDArray[np.void], begin: int, end: int) -> Callable[[], None]:
        """Return a function that counts the items begin ... end - 1."""
        backend, ledger = self._backend, self._backend.ledger
        launch = backend.real(self.spec).bind(arguments, begin, end) if backend.runs(self.spec) else None

        def run() -> None:
            if end > begin:
                ledger.launches += 1
                ledger.kernels.append((self, end - begin))
                if launch is not None and backend.running:
                    launch()

        return run


class PlannedTransforms(Transforms):
    """Transforms that are only counted."""

    name = "planned"

    def __init__(self, shape: tuple[int, int, int], real: str, ledger: Ledger) -> None:
        """Store the ledger."""
        super().__init__(shape, real)
        self._ledger = ledger

    def forward(self, source: Array | None, spectrum: Array) -> Bound:
        """Return a function that counts transforms of all spectra."""
        return self._count_transforms(spectrum)

    def inverse(self, spectrum: Array) -> Bound:
        """Return a function that counts transforms of all spectra."""
        return self._count_transforms(spectrum)

    def columns(self, values: Array, *, inverse: bool) -> Bound:
        """Return a function that counts one transform of all columns."""
        return self._counter(1, 2 * int(values.size) * self.complex.itemsize)

    def _count_transforms(self, spectrum: Array) -> Bound:
        return self._counter(sum(extent > 1 for extent in self.shape), self.traffic(spectrum))

    def _counter(self, launches: int, traffic: int) -> Bound:
        def run() -> None:
            self._ledger.launches += launches
            self._ledger.transformed += traffic

        return run


#: Kernels that determine the sizes of cell arrays and messages: which ranks need a cell, its motion and its validity.
_EXECUTED_KERNELS = ("FindHolders<", "MembraneForce<", "MoveCells<", "WriteSlots", "Pack<", "PackParts<", "Unpack<")


class PlannedBackend(CpuBackend):
    """A planned CPU or, with `gpu`, a planned GPU.

    Attributes:
        ledger: counts of operations.
        memory: allocated bytes of tables and fields.
        running: whether the kernels that determine the sizes of cell arrays are run.
    """

    name = "planned"

    def __init__(self, *, gpu: bool = False) -> None:
        """Create an empty ledger."""
        super().__init__(1)
        self.is_gpu = gpu
        self.ledger, self.memory, self.running = Ledger(), 0, False
        self._planned: dict[KernelSpec, PlannedKernel] = {}

    def describe(self) -> str:
        """Return a description for reports."""
        return "planned: nothing is computed"

    def zeros(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """Return memory without pages, since it is never written."""
        try:
            return self._allocated(np.zeros(shape, dtype))
        except MemoryError:  # more than the system permits
            return self._allocated(np.broadcast_to(np.zeros((), dtype), shape))

    def upload(self, host: npt.NDArray[Any]) -> Array:
        """Return a copy of the table."""
        return self._allocated(np.array(host, order="C"))

    def _allocated(self, array: npt.NDArray[Any]) -> Array:
        size = int(array.nbytes)
        self.memory += size
        weakref.finalize(array, self._free, size)
        return array

    def _free(self, size: int) -> None:
        self.memory -= size

    def assign(self, array: Array, host: npt.NDArray[Any]) -> None:
        """Overwrite a table; large fields that share one element are not changed."""
        if array.flags.writeable:
            array[...] = host

    def load(self, spec: KernelSpec) -> Kernel:
        """Return the kernel that counts in place of the actual one."""
        if spec not in self._planned:
            self._planned[spec] = PlannedKernel(spec, self)
        return self._planned[spec]

    def real(self, spec: KernelSpec) -> Kernel:
        """Return the CPU kernel.

        Raises:
            KernelCompileError, BackendUnavailable: it is not in the table and cannot be compiled.
        """
        return super().load(spec)

    def runs(self, spec: KernelSpec) -> bool:
        """Return whether a kernel can also be run."""
        return any(name in spec.type for name in _EXECUTED_KERNELS)

    def transforms(self, shape: tuple[int, int, int], real: str) -> Transforms:
        """Return transforms that are counted."""
        return PlannedTransforms(shape, real, self.ledger)

    def use(self, stream: Any) -> Any:
        """Return a context without effect."""
        return nullcontext(stream)

    def free_memory(self) -> int:
        """Return 0: the memory in use is unknown."""
        return 0
