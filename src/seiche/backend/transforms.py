# SPDX-License-Identifier: BSD-3-Clause
"""Real Fourier transforms of grids on the CPU, bound to arrays once and executed repeatedly.

A transform covers the last three axes. A spectrum has n/2 + 1 complex numbers along the last axis; neither direction
scales. The inverse transform works in place: the reals of a row then occupy the beginning of the memory of its
spectrum ("padded" rows). FFTW is used if pyfftw is installed and the extents suit it, otherwise SciPy's pocketfft.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend.arrays import Array
from seiche.backend.folder import cache_folder, write_atomically
from seiche.backend.pocketfft import pocketfft

#: A bound transform: a function without arguments.
Bound = Callable[[], None]


class Transforms(ABC):
    """Transforms of one shape and precision on one device.

    Args:
        shape: extents of the three axes; 1 for axes that the grid lacks.
        real: "float32" or "float64".
    """

    #: Name of the library.
    name: str

    def __init__(self, shape: tuple[int, int, int], real: str) -> None:
        """Store shape and precision, and derive the axes."""
        self.shape, self.real = shape, np.dtype(real)
        self.complex = np.dtype(f"complex{16 * self.real.itemsize}")
        self.half = shape[2] // 2 + 1
        self.axes = tuple(axis for axis in range(3) if shape[axis] > 1) or (2,)
        if 2 not in self.axes:
            self.axes = (*self.axes, 2)

    @property
    def spectrum_shape(self) -> tuple[int, int, int]:
        """Return the shape of one spectrum."""
        return (*self.shape[:2], self.half)

    def traffic(self, spectra: Array) -> int:
        """Return the minimum traffic of transforms of these spectra in bytes: one read and write per axis."""
        return 2 * sum(extent > 1 for extent in self.shape) * int(spectra.size) * self.complex.itemsize

    @abstractmethod
    def forward(self, source: Array | None, spectrum: Array) -> Bound:
        """Return a function that transforms (count, *shape) reals to (count, *spectrum_shape).

        Without a source, the reals are the padded rows in `spectrum`. Binding may destroy the arrays' content.
        """

    @abstractmethod
    def inverse(self, spectrum: Array) -> Bound:
        """Return a function that transforms spectra to padded rows in place. Binding may destroy their content."""

    @abstractmethod
    def columns(self, values: Array, *, inverse: bool) -> Bound:
        """Return a function that transforms complex numbers (n, m) along the first axis in place, without scaling.

        Binding may destroy their content.
        """


def padded_view(spectrum: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    """Return the reals in the rows of (..., half) spectra as a view (..., length)."""
    return spectrum.view(spectrum.real.dtype)[..., :length]


#: Bytes of the pieces that SciPy transforms along all axes but the first; a piece fits the cache.
_PIECE_BYTES = 1 << 20


class ScipyTransforms(Transforms):
    """pocketfft of SciPy, always available.

    Its real transforms return new arrays; they are therefore computed piece by piece. Complex transforms along the
    first axis are computed in place.
    """

    name = "SciPy pocketfft"

    def __init__(self, shape: tuple[int, int, int], real: str, threads: int) -> None:
        """Use `threads` threads."""
        super().__init__(shape, real)
        self._threads, self._pocketfft = threads, pocketfft()
        first = self.axes[0]
        self._extents = shape[first:]
        extents = (*self._extents[:-1], self.half)
        self._volumes = (-1, *extents)
        count = max(1, _PIECE_BYTES // (int(np.prod(extents[1:])) * self.complex.itemsize))
        self._pieces = [slice(k, k + count) for k in range(0, extents[0], count)]
        self._inner = tuple(range(1, len(extents)))

    def forward(self, source: Array | None, spectrum: Array) -> Bound:
        """Return a function that transforms each piece, and then along the first axis."""
        spectra = spectrum.reshape(self._volumes)
        reals = padded_view(spectra, self.shape[2]) if source is None else source.reshape(-1, *self._extents)

        def run() -> None:
            if spectra.ndim == 2:  # rows, for example of slabs in two dimensions: one call for all is faster
                spectra[...] = self._pocketfft.real_to_complex(reals, (1,), self._threads)
                return
            for volume, target in zip(reals, spectra, strict=True):
                for piece in self._pieces:
                    target[piece] = self._pocketfft.real_to_complex(volume[piece], self._inner, self._threads)
                self._pocketfft.complex_in_place(target, True, self._threads)

        return run

    def inverse(self, spectrum: Array) -> Bound:
        """Return a function that transforms along the first axis, and then each piece."""
        spectra = spectrum.reshape(self._volumes)
        reals = padded_view(spectra, self.shape[2])
        extents = [self._extents[axis] for axis in self._inner]

        def run() -> None:
            if spectra.ndim == 2:
                reals[...] = self._pocketfft.complex_to_real(spectra, [self._extents[0]], (1,), self._threads)
                return
            for volume, target in zip(spectra, reals, strict=True):
                self._pocketfft.complex_in_place(volume, False, self._threads)
                for piece in self._pieces:
                    target[piece] = self._pocketfft.complex_to_real(volume[piece], extents, self._inner, self._threads)

        return run

    def columns(self, values: Array, *, inverse: bool) -> Bound:
        """Return a function that transforms along the first axis."""
        return lambda: self._pocketfft.complex_in_place(values, not inverse, self._threads)


#: Largest prime factor of extents for which FFTW, which has kernels for factors up to 13, is chosen without a setting.
#: With larger ones, such as 61 or 19 * 23, it takes longer than pocketfft.
FFTW_MAX_PRIME = 13
_WISDOM_LOCK = threading.Lock()
#: Separates the parts of the wisdom (one per precision) in its file.
_SEPARATOR = b"\n----\n"


class FftwTransforms(Transforms):
    """FFTW through pyfftw, with measured plans; its wisdom is stored in the cache folder."""

    name = "FFTW"

    def __init__(self, shape: tuple[int, int, int], real: str, threads: int, effort: str = "FFTW_MEASURE") -> None:
        """Load the stored wisdom, which may contain plans from a greater effort ("FFTW_PATIENT": several minutes)."""
        super().__init__(shape, real)
        if "pyfftw" not in sys.modules:
            _share_threads()
        import pyfftw

        self._pyfftw, self._threads, self.effort = pyfftw, threads, effort
        self._file = cache_folder() / f"fftw-{self.real.name}.wisdom"
        try:
            pyfftw.import_wisdom(tuple(self._file.read_bytes().split(_SEPARATOR)))
        except (OSError, ValueError, IndexError):
            pass  # no wisdom, or unreadable: plans are measured

    def forward(self, source: Array | None, spectrum: Array) -> Bound:
        """Return the execution of a plan."""
        reals = padded_view(spectrum, self.shape[2]) if source is None else source
        return self._plan(reals, spectrum, "FFTW_FORWARD")

    def inverse(self, spectrum: Array) -> Bound:
        """Return the execution of a plan."""
        return self._plan(spectrum, padded_view(spectrum, self.shape[2]), "FFTW_BACKWARD")

    def columns(self, values: Array, *, inverse: bool) -> Bound:
        """Return the execution of a plan."""
        return self._plan(values, values, "FFTW_BACKWARD" if inverse else "FFTW_FORWARD", (0,))

    def _plan(
        self, source: npt.NDArray[Any], target: npt.NDArray[Any], direction: str, axes: tuple[int, ...] | None = None
    ) -> Bound:
        if axes is None:
            axes = tuple(axis - 3 for axis in self.axes)
        with _WISDOM_LOCK:
            plan = self._pyfftw.FFTW(
                source, target, axes=axes, direction=direction, flags=(self.effort,), threads=self._threads
            )
            try:
                wisdom = _SEPARATOR.join(self._pyfftw.export_wisdom())
                write_atomically(self._file, lambda path: path.write_bytes(wisdom))
            except OSError:
                pass  # the folder is not writable: the next run measures again
        source[...] = 0
        target[...] = 0
        return plan.execute  # type: ignore[no-any-return]


def _share_threads() -> None:
    """Make FFTW use the same OpenMP runtime as the kernels, if both use GNU's.

    pyfftw includes a copy of that runtime. Its idle threads and those of the kernels would occupy each other's cores.
    A library loaded with global visibility takes precedence over such a copy.
    """
    try:
        mappings = Path("/proc/self/maps").read_text().split("\n")
    except OSError:
        return  # another operating system
    for path in dict.fromkeys(line.split(maxsplit=5)[-1] for line in mappings if line.count("/")):
        if Path(path).name.startswith("libgomp"):
            ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
            return


def cpu_transforms(shape: tuple[int, int, int], real: str, threads: int) -> Transforms:
    """Return the faster of the installed transforms, or those of SEICHE_FFT ("scipy", "fftw" or "fftw-patient")."""
    setting = os.environ.get("SEICHE_FFT", "")
    use_fftw = bool(setting) or all(has_factors_up_to(FFTW_MAX_PRIME, extent) for extent in shape)
    if setting != "scipy" and use_fftw and importlib.util.find_spec("pyfftw") is not None:
        return FftwTransforms(shape, real, threads, "FFTW_PATIENT" if setting == "fftw-patient" else "FFTW_MEASURE")
    return ScipyTransforms(shape, real, threads)


def has_factors_up_to(limit: int, number: int) -> bool:
    """Return whether all prime factors of a positive number are at most `limit`."""
    for factor in range(2, limit + 1):
        while number % factor == 0:
            number //= factor
    return number == 1
