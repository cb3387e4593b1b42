# SPDX-License-Identifier: BSD-3-Clause
"""Real Fourier transforms on a GPU: cuFFT plans, in place, without scaling, in the current stream."""

from __future__ import annotations

from typing import Any

from seiche.backend.arrays import Array
from seiche.backend.transforms import Bound, Transforms


class CufftTransforms(Transforms):
    """cuFFT through CuPy's plans; `cupy` is the module, imported only by the backend."""

    name = "cuFFT"

    def __init__(self, shape: tuple[int, int, int], real: str, cupy: Any) -> None:
        """Plans are created on first use, one per kind, and shared by all arrays of that kind."""
        super().__init__(shape, real)
        self._cupy, self._cufft = cupy, cupy.cuda.cufft
        self._area: Any = None
        self._plans: dict[tuple[Any, ...], Any] = {}

    def _plan(self, kind: str, count: int) -> Any:
        """Return the plan of a kind: "from" (unpadded reals to a spectrum), "forward" or "inverse" in place."""
        extents = tuple(self.shape[axis] for axis in self.axes)
        halves = (*extents[:-1], self.half)
        padded = (*extents[:-1], 2 * self.half)
        single = self.real.itemsize == 4
        reals = extents if kind == "from" else padded
        sizes = [1, 1]
        for k, layout in enumerate((reals, halves)):
            for extent in layout:
                sizes[k] *= extent
        layouts: tuple[Any, ...]
        if kind == "inverse":
            code = self._cufft.CUFFT_C2R if single else self._cufft.CUFFT_Z2D
            layouts = (halves, 1, sizes[1], reals, 1, sizes[0])
        else:
            code = self._cufft.CUFFT_R2C if single else self._cufft.CUFFT_D2Z
            layouts = (reals, 1, sizes[0], halves, 1, sizes[1])
        return self._cached_plan((kind, count), extents, layouts, code, count)

    def _cached_plan(
        self, key: tuple[Any, ...], extents: tuple[int, ...], layouts: tuple[Any, ...], code: int, count: int
    ) -> Any:
        if key not in self._plans:
            with self._cupy.cuda.using_allocator(self._work_area):
                self._plans[key] = self._cufft.PlanNd(extents, *layouts, code, count, "C", len(extents) - 1, None)
        return self._plans[key]

    def _work_area(self, size: int) -> Any:
        """Return a work area of at least this size, shared by all plans, which run in sequence on a stream."""
        if self._area is None or self._area.mem.size < size:
            self._area = self._cupy.get_default_memory_pool().malloc(max(size, 1))
        return self._area

    def _batches(self, count: int) -> list[slice]:
        """Return the batches of executions: single volumes, or all planes or rows, which are many and small."""
        return [slice(0, count)] if self.shape[0] == 1 else [slice(k, k + 1) for k in range(count)]

    def forward(self, source: Array | None, spectrum: Array) -> Bound:
        """Return executions of the plan."""
        batches = self._batches(len(spectrum))
        plan = self._plan("forward" if source is None else "from", batches[0].stop)
        pairs = [(spectrum[k] if source is None else source[k], spectrum[k]) for k in batches]

        def run() -> None:
            for reals, target in pairs:
                plan.fft(reals, target, self._cufft.CUFFT_FORWARD)

        return run

    def inverse(self, spectrum: Array) -> Bound:
        """Return executions of the plan."""
        batches = self._batches(len(spectrum))
        plan = self._plan("inverse", batches[0].stop)
        spectra = [spectrum[k] for k in batches]

        def run() -> None:
            for batch in spectra:
                plan.fft(batch, batch, self._cufft.CUFFT_INVERSE)

        return run

    def columns(self, values: Array, *, inverse: bool) -> Bound:
        """Return one execution of a plan for all columns."""
        length, count = (int(n) for n in values.shape)
        code = self._cufft.CUFFT_C2C if self.real.itemsize == 4 else self._cufft.CUFFT_Z2Z
        layouts = ((length,), count, 1) * 2
        plan = self._cached_plan(("columns", length, count), (length,), layouts, code, count)
        direction = self._cufft.CUFFT_INVERSE if inverse else self._cufft.CUFFT_FORWARD
        return lambda: plan.fft(values, values, direction)
