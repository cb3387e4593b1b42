# SPDX-License-Identifier: BSD-3-Clause
"""Transforms on the CPU by kernels that have lines side by side in vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from seiche.backend.arrays import Array
from seiche.backend.base import Backend, Kernel
from seiche.backend.transforms import Bound, Transforms, padded_view
from seiche.kernels.registry import KernelSpec, Real
from seiche.kernels.registry.kspace_wide import LANES, wide_rows, wide_side

#: Fewer points are not worth the seconds in which the kernels of their lengths are compiled.
LEAST_POINTS = 1 << 17


def wide_kernels(shape: tuple[int, int, int], real: Real) -> dict[tuple[int, bool], KernelSpec] | None:
    """Return the kernels of each axis, there and back; None where they do not do all of these."""
    axes = [axis for axis in range(3) if shape[axis] > 1]
    if len(axes) < 2 or axes[-1] != 2:
        return None
    found = {
        (axis, back): (wide_rows if axis == 2 else wide_side)(shape[axis], real, inverse=back)
        for axis in axes
        for back in (False, True)
    }
    known = {key: spec for key, spec in found.items() if spec is not None}
    return known if len(known) == len(found) else None


class WideTransforms(Transforms):
    """All axes by kernels; what has only one axis by a library."""

    name = "lines in vectors"

    def __init__(self, backend: Backend, library: Transforms, kernels: dict[tuple[int, bool], KernelSpec]) -> None:
        """Load the kernels.

        Raises:
            BackendUnavailable: there is no compiler for them.
            KernelCompileError: the compiler is too old for them.
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
        """Return the transform along rows and then along the other axes."""
        rows = self._bind_rows(source, spectrum, back=False)
        return _in_turn([rows, *(self._bind_side(axis, spectrum, back=False) for axis in (1, 0) if self._has(axis))])

    def inverse(self, spectrum: Array) -> Bound:
        """Return the transform along the other axes and then along rows."""
        rows = self._bind_rows(None, spectrum, back=True)
        return _in_turn([*(self._bind_side(axis, spectrum, back=True) for axis in (0, 1) if self._has(axis)), rows])

    def columns(self, values: Array, *, back: bool) -> Bound:
        """Return the library's."""
        return self._library.columns(values, back=back)

    def _has(self, axis: int) -> bool:
        return self.shape[axis] > 1

    def _bind_rows(self, source: Array | None, spectrum: Array, *, back: bool) -> Bound:
        """Return the transforms of each field: rows of two, one perhaps far larger, never share a complex line."""
        spectra = spectrum.reshape(-1, *self.spectrum_shape)
        fields = padded_view(spectra, self.shape[2]) if source is None else source.reshape(-1, *self.shape)
        count, apart = self.shape[0] * self.shape[1], 2 * self.half if source is None else self.shape[2]
        more = {"roots": self._roots[2], "rows": count, "apart": apart}
        items = -(-count // (2 * self._lanes))
        return _in_turn(
            [
                self._bind(2, back, items, {"reals": reals, "spectra": one, **more})
                for reals, one in zip(fields, spectra, strict=True)
            ]
        )

    def _bind_side(self, axis: int, spectrum: Array, *, back: bool) -> Bound:
        extents = self.spectrum_shape
        inner = int(np.prod(extents[axis + 1 :]))
        batches, blocks = -(-inner // self._lanes), int(spectrum.size) // (inner * extents[axis])
        members = {"spectra": spectrum, "roots": self._roots[axis], "inner": inner, "batches": batches}
        return self._bind(axis, back, blocks * batches, members)

    def _bind(self, axis: int, back: bool, items: int, members: dict[str, Any]) -> Bound:
        kernel = self._kernels[axis, back]
        launch = kernel.bind(self._backend.pack(kernel, **members), 0, items)

        def run(_: Any = members) -> None:  # kernels know addresses only
            launch()

        return run


def _in_turn(parts: Sequence[Bound]) -> Bound:
    def run() -> None:
        for part in parts:
            part()

    return run
