# SPDX-License-Identifier: BSD-3-Clause
"""A device that does nothing but count: what a step would launch and move, and how much memory it would hold.

Solvers are made on it as on any other, so that the plans of a run, on any number of ranks, are known before it. Memory
is asked for and never written, which costs nothing. Tables that are uploaded are there and can be read.
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

#: The header of the kernels that pack and unpack messages.
_MESSAGES = "halo/move.hpp"


@dataclass
class Ledger:
    """What was done since it was cleared.

    Attributes:
        launches: kernels, with the number of their items, and transforms.
        transformed: bytes that transforms must read and write.
        exchanges: messages that left together: (peer, bytes sent, bytes received) each.
        arrivals: exchanges that were received, in their order.
    """

    launches: int = 0
    kernels: list[tuple[PlannedKernel, int]] = field(default_factory=list)
    transformed: int = 0
    exchanges: list[tuple[tuple[int, int, int], ...]] = field(default_factory=list)
    arrivals: int = 0

    def clear(self) -> None:
        """Begin anew."""
        self.launches = self.transformed = self.arrivals = 0
        self.kernels, self.exchanges = [], []

    @property
    def bytes(self) -> int:
        """Return what kernels and transforms must read and write, as kernels declare it, but for messages."""
        return self.transformed + sum(
            kernel.bytes_per_item * items for kernel, items in self.kernels if kernel.spec.header != _MESSAGES
        )

    @property
    def packed(self) -> int:
        """Return what kernels must read and write that put messages together and take them apart."""
        return sum(kernel.bytes_per_item * items for kernel, items in self.kernels if kernel.spec.header == _MESSAGES)


class PlannedKernel(Kernel):
    """A kernel whose launches are counted; it is found, or compiled, when its bytes are asked for, or to run it."""

    def __init__(self, spec: KernelSpec, backend: PlannedBackend) -> None:
        """Remember where launches are counted."""
        self.spec, self.dtype, self._backend = spec, argument_dtype(spec.members), backend

    @property
    def bytes_per_item(self) -> int:  # type: ignore[override]
        """Return the memory traffic that one item must cause."""
        return self._backend.real(self.spec).bytes_per_item

    def bind(self, arguments: npt.NDArray[np.void], begin: int, end: int) -> Callable[[], None]:
        """Return the call that counts the items begin ... end - 1."""
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
    """Transforms that are counted."""

    name = "planned"

    def __init__(self, shape: tuple[int, int, int], real: str, ledger: Ledger) -> None:
        """Remember where to count."""
        super().__init__(shape, real)
        self._ledger = ledger

    def forward(self, source: Array | None, spectrum: Array) -> Bound:
        """Return the call that counts transforms of all spectra."""
        return self._counted(spectrum)

    def inverse(self, spectrum: Array) -> Bound:
        """Return the call that counts transforms of all spectra."""
        return self._counted(spectrum)

    def columns(self, values: Array, *, back: bool) -> Bound:
        """Return the call that counts one transform of all columns."""
        return self._ran(1, 2 * int(values.size) * self.complex.itemsize)

    def _counted(self, spectrum: Array) -> Bound:
        return self._ran(sum(extent > 1 for extent in self.shape), self.moved(spectrum))

    def _ran(self, launches: int, moved: int) -> Bound:
        def run() -> None:
            self._ledger.launches += launches
            self._ledger.transformed += moved

        return run


#: What decides how large arrays and messages of cells are: who needs them, where they go, whether they are whole.
_RUN = ("FindHolders<", "MembraneForce<", "MoveCells<", "WriteSlots", "Pack<", "PackParts<", "Unpack<")


class PlannedBackend(CpuBackend):
    """A processor or, with `gpu`, a device that works beside its host.

    Attributes:
        ledger: what was done.
        memory: bytes that are held, tables and fields.
        running: whether the few kernels run that decide about sizes of cells' arrays.
    """

    name = "planned"

    def __init__(self, *, gpu: bool = False) -> None:
        """Count."""
        super().__init__(1)
        self.is_gpu = gpu
        self.multiprocessors = 0
        self.ledger, self.memory, self.running = Ledger(), 0, False
        self._planned: dict[KernelSpec, PlannedKernel] = {}

    def describe(self) -> str:
        """Return that nothing runs here."""
        return "planned: nothing is computed"

    def zeros(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """Return memory that nobody writes, of which the system therefore gives none."""
        try:
            return self._held(np.zeros(shape, dtype))
        except MemoryError:  # more than the system would promise
            return self._held(np.broadcast_to(np.zeros((), dtype), shape))

    def upload(self, host: npt.NDArray[Any]) -> Array:
        """Return a copy of the table."""
        return self._held(np.array(host, order="C"))

    def _held(self, array: npt.NDArray[Any]) -> Array:
        size = int(array.nbytes)
        self.memory += size
        weakref.finalize(array, self._free, size)
        return array

    def _free(self, size: int) -> None:
        self.memory -= size

    def assign(self, array: Array, host: npt.NDArray[Any]) -> None:
        """Overwrite tables; fields stay as they are."""
        if array.flags.writeable:
            array[...] = host

    def load(self, spec: KernelSpec) -> Kernel:
        """Return the kernel that counts in the place of another."""
        if spec not in self._planned:
            self._planned[spec] = PlannedKernel(spec, self)
        return self._planned[spec]

    def real(self, spec: KernelSpec) -> Kernel:
        """Return the kernel of the processor.

        Raises:
            KernelCompileError, BackendUnavailable: it is not in the table and cannot be compiled.
        """
        return super().load(spec)

    def runs(self, spec: KernelSpec) -> bool:
        """Return whether a kernel is run, too."""
        return any(name in spec.type for name in _RUN)

    def transforms(self, shape: tuple[int, int, int], real: str) -> Transforms:
        """Return transforms that count."""
        return PlannedTransforms(shape, real, self.ledger)

    def use(self, stream: Any) -> Any:
        """Return a context that changes nothing."""
        return nullcontext(stream)

    def free_memory(self) -> int:
        """Return 0: nobody knows."""
        return 0
