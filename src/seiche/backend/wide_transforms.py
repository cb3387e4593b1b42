# SPDX-License-Identifier: BSD-3-Clause
"""Fourier transforms on the CPU by kernels that process several lines at once in SIMD vectors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, cast

import numpy as np

from seiche.backend.arrays import Array
from seiche.backend.base import Backend, Kernel
from seiche.backend.transforms import FFTW_MAX_PRIME, Bound, Transforms, has_factors_up_to, padded_view
from seiche.kernels.registry import KernelSpec, Real
from seiche.kernels.registry.kspace_wide import LANES, wide_axis, wide_rows

#: Minimum number of grid points; for smaller grids, the compilation of the kernels takes longer than they save. The
#: second number is for extents with large prime factors, for which the libraries take several times as long.
MIN_POINTS, MIN_POINTS_OF_PRIMES = 1 << 17, 1 << 15


def enough_points(shape: tuple[int, int, int]) -> bool:
    """Return whether a grid has the points from which kernels are compiled for its transforms."""
    small_primes = all(has_factors_up_to(FFTW_MAX_PRIME, extent) for extent in shape)
    return int(np.prod(shape)) >= (MIN_POINTS if small_primes else MIN_POINTS_OF_PRIMES)


def wide_kernels(shape: tuple[int, int, int], real: Real) -> dict[tuple[int, bool], KernelSpec] | None:
    """Return the kernels by axis and direction (whether inverse), or None if the length of an axis is not supported."""
    axes = [axis for axis in range(3) if shape[axis] > 1]
    if len(axes) < 2 or axes[-1] != 2:
        return None
    kernels: dict[tuple[int, bool], KernelSpec] = {}
    for axis, inverse in product(axes, (False, True)):
        spec = (wide_rows if axis == 2 else wide_axis)(shape[axis], real, inverse=inverse)
        if spec is None:
            return None
        kernels[axis, inverse] = spec
    return kernels


class WideTransforms(Transforms):
    """Transforms along all axes by kernels, except that `columns` uses a library."""

    name = "lines in vectors"

    def __init__(self, backend: Backend, library: Transforms, kernels: dict[tuple[int, bool], KernelSpec]) -> None:
        """Load the kernels.

        Raises:
            BackendUnavailable: no compiler is installed.
            KernelCompileError: the compiler is too old.
        """
        super().__init__(library.shape, library.real.name)
        self._backend, self._library = backend, library
        self._kernels: dict[tuple[int, bool], Kernel] = {key: backend.load(spec) for key, spec in kernels.items()}
        self._lanes = LANES[cast(Real, self.real.name)]
        self._roots = {
            axis: backend.upload(np.exp(-2j * np.pi * np.arange(n) / n).astype(self.complex))
            for axis, n in enumerate(self.shape)
        }

    def forward(self, source: Array | None, spectrum: Array) -> Bound:
        """Bind the transforms along rows, followed by those along the other axes."""
        rows = self._bind_rows(source, spectrum, inverse=False)
        return _sequence(
            [rows, *(self._bind_axis(axis, spectrum, inverse=False) for axis in (1, 0) if self._has(axis))]
        )

    def inverse(self, spectrum: Array) -> Bound:
        """Bind the transforms along the other axes, followed by those along rows."""
        rows = self._bind_rows(None, spectrum, inverse=True)
        return _sequence([*(self._bind_axis(axis, spectrum, inverse=True) for axis in (0, 1) if self._has(axis)), rows])

    def columns(self, values: Array, *, inverse: bool) -> Bound:
        """Bind the transform of the library."""
        return self._library.columns(values, inverse=inverse)

    def _has(self, axis: int) -> bool:
        return self.shape[axis] > 1

    def _bind_rows(self, source: Array | None, spectrum: Array, *, inverse: bool) -> Bound:
        """Bind the transforms of each field; rows of fields whose scales may differ are not combined."""
        spectra = spectrum.reshape(-1, *self.spectrum_shape)
        fields = padded_view(spectra, self.shape[2]) if source is None else source.reshape(-1, *self.shape)
        row_count, stride = self.shape[0] * self.shape[1], 2 * self.half if source is None else self.shape[2]
        common = {"roots": self._roots[2], "rows": row_count, "apart": stride}
        items = -(-row_count // (2 * self._lanes))
        pairs = zip(fields, spectra, strict=True)
        return _sequence([self._bind(2, inverse, items, {"reals": f, "spectra": s, **common}) for f, s in pairs])

    def _bind_axis(self, axis: int, spectrum: Array, *, inverse: bool) -> Bound:
        extents = self.spectrum_shape
        inner = int(np.prod(extents[axis + 1 :]))
        blocks = int(spectrum.size) // (inner * extents[axis])
        batches, rest = divmod(inner, self._lanes)
        remaining = -(-blocks // (self._lanes // rest)) if rest else 0  # batches with lines of several blocks
        members = {"spectra": spectrum, "roots": self._roots[axis], "inner": inner, "blocks": blocks}
        return self._bind(axis, inverse, blocks * batches + remaining, members)

    def _bind(self, axis: int, inverse: bool, items: int, members: dict[str, Any]) -> Bound:
        kernel = self._kernels[axis, inverse]
        launch = kernel.bind(self._backend.pack(kernel, **members), 0, items)

        def run(_alive: Any = members) -> None:  # keeps the arrays alive, since kernels store addresses only
            launch()

        return run


def _sequence(calls: Sequence[Bound]) -> Bound:
    """Return a function that calls all `calls` in order."""

    def run() -> None:
        for call in calls:
            call()

    return run
