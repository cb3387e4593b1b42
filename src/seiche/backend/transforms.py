# SPDX-License-Identifier: BSD-3-Clause
"""Real Fourier transforms of grids on the CPU, bound to arrays once and called often.

A transform covers the last three axes. A spectrum has half + 1 = n/2 + 1 complex numbers along the last axis and no
scaling in either direction. Backwards a transform always works in place: the reals of a row then lie at the beginning
of the room of its half row ("padded" rows). FFTW is used where pyfftw is installed, else SciPy's pocketfft.
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
from seiche.backend.folder import cache_folder, write_whole

#: What a transform is when it is bound: a call without arguments.
Bound = Callable[[], None]


class Transforms(ABC):
    """Transforms of one shape and precision on one device.

    Args:
        shape: extents of the three axes; 1 where the grid has none.
        real: "float32" or "float64".
    """

    #: Which library computes.
    name: str

    def __init__(self, shape: tuple[int, int, int], real: str) -> None:
        """Keep the shape."""
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

    def moved(self, spectra: Array) -> int:
        """Return the bytes that transforms of these spectra must move: read and written once for each axis."""
        return 2 * sum(extent > 1 for extent in self.shape) * int(spectra.size) * self.complex.itemsize

    @abstractmethod
    def forward(self, source: Array | None, spectrum: Array) -> Bound:
        """Return the call that transforms (count, *shape) reals into (count, *spectrum_shape).

        Without a source the reals are the padded rows in `spectrum` itself. Binding may lose the arrays' content.
        """

    @abstractmethod
    def inverse(self, spectrum: Array) -> Bound:
        """Return the call that transforms spectra into padded rows in place. Binding may lose their content."""

    @abstractmethod
    def columns(self, values: Array, *, back: bool) -> Bound:
        """Return the call that transforms complex numbers (n, m) along the first axis in place, without scaling.

        Binding may lose their content.
        """


def padded_view(spectrum: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    """Return the reals in the rows of (..., half) spectra as a view (..., length)."""
    return spectrum.view(spectrum.real.dtype)[..., :length]


#: Bytes of the pieces that SciPy transforms along all axes but the first: they stay in the cache in between.
_PIECE = 1 << 20


class ScipyTransforms(Transforms):
    """pocketfft of SciPy: there wherever Seiche is.

    It gives new arrays for real transforms, so that these are done piece by piece; complex ones along the first axis
    are done in place.
    """

    name = "SciPy pocketfft"

    def __init__(self, shape: tuple[int, int, int], real: str, threads: int) -> None:
        """Use so many threads."""
        super().__init__(shape, real)
        self._threads = threads
        dropped = self.axes[0]
        self._extents = shape[dropped:]
        whole = (*self._extents[:-1], self.half)
        self._volumes = (-1, *whole)
        count = max(1, _PIECE // (int(np.prod(whole[1:])) * self.complex.itemsize))
        self._pieces = [slice(k, k + count) for k in range(0, whole[0], count)]
        self._inner = tuple(range(1, len(whole)))

    def forward(self, source: Array | None, spectrum: Array) -> Bound:
        """Return a call of rfftn for each piece, and of fft along the first axis."""
        from scipy import fft

        spectra = spectrum.reshape(self._volumes)
        reals = padded_view(spectra, self.shape[2]) if source is None else source.reshape(-1, *self._extents)

        def run() -> None:
            if spectra.ndim == 2:  # rows, as of slabs in two dimensions: a call for each of them would take longer
                spectra[...] = fft.rfft(reals, axis=1, workers=self._threads)
                return
            for one, target in zip(reals, spectra, strict=True):
                for piece in self._pieces:
                    target[piece] = fft.rfftn(one[piece], axes=self._inner, workers=self._threads)
                self._in_place(fft.fft, target)

        return run

    def inverse(self, spectrum: Array) -> Bound:
        """Return a call of ifft along the first axis, and of irfftn for each piece."""
        from scipy import fft

        spectra = spectrum.reshape(self._volumes)
        reals = padded_view(spectra, self.shape[2])
        extents = [self._extents[axis] for axis in self._inner]

        def run() -> None:
            if spectra.ndim == 2:
                reals[...] = fft.irfft(spectra, self._extents[0], axis=1, norm="forward", workers=self._threads)
                return
            for one, target in zip(spectra, reals, strict=True):
                self._in_place(fft.ifft, one)
                for piece in self._pieces:
                    target[piece] = fft.irfftn(
                        one[piece], s=extents, axes=self._inner, norm="forward", workers=self._threads
                    )

        return run

    def columns(self, values: Array, *, back: bool) -> Bound:
        """Return a call of fft or ifft."""
        from scipy import fft

        return lambda: self._in_place(fft.ifft if back else fft.fft, values)

    def _in_place(self, transform: Callable[..., Any], values: npt.NDArray[Any]) -> None:
        """Transform along the first axis without scaling."""
        norm = "backward" if transform.__name__ == "fft" else "forward"
        found = transform(values, axis=0, norm=norm, overwrite_x=True, workers=self._threads)
        if not np.may_share_memory(found, values):
            values[...] = found


_WISDOM_LOCK = threading.Lock()
#: Between the parts of the wisdom (a part a precision) in its file.
_BETWEEN = b"\n----\n"


class FftwTransforms(Transforms):
    """FFTW through pyfftw, planned by measuring; what was learnt is kept in the folder of compiled kernels."""

    name = "FFTW"
    #: How long plans are sought: FFTW's word for it. Plans that were found more patiently are taken from disk, too.
    effort = "FFTW_MEASURE"

    def __init__(self, shape: tuple[int, int, int], real: str, threads: int) -> None:
        """Load what is known of earlier plans."""
        super().__init__(shape, real)
        if "pyfftw" not in sys.modules:
            _share_threads()
        import pyfftw

        self._pyfftw, self._threads = pyfftw, threads
        self._file = cache_folder() / f"fftw-{self.real.name}.wisdom"
        try:
            pyfftw.import_wisdom(tuple(self._file.read_bytes().split(_BETWEEN)))
        except (OSError, ValueError, IndexError):
            pass  # no wisdom, or unreadable: plans are measured again

    def forward(self, source: Array | None, spectrum: Array) -> Bound:
        """Return the execution of a plan."""
        reals = padded_view(spectrum, self.shape[2]) if source is None else source
        return self._plan(reals, spectrum, "FFTW_FORWARD")

    def inverse(self, spectrum: Array) -> Bound:
        """Return the execution of a plan."""
        return self._plan(spectrum, padded_view(spectrum, self.shape[2]), "FFTW_BACKWARD")

    def columns(self, values: Array, *, back: bool) -> Bound:
        """Return the execution of a plan."""
        return self._plan(values, values, "FFTW_BACKWARD" if back else "FFTW_FORWARD", (0,))

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
                wisdom = _BETWEEN.join(self._pyfftw.export_wisdom())
                write_whole(self._file, lambda part: part.write_bytes(wisdom))
            except OSError:
                pass  # no folder to keep it in: the next run measures again
        source[...] = 0
        target[...] = 0
        return plan.execute  # type: ignore[no-any-return]


class PatientFftwTransforms(FftwTransforms):
    """FFTW with plans that are sought for minutes."""

    effort = "FFTW_PATIENT"


def _share_threads() -> None:
    """Let FFTW compute with the threads that kernels have already, where both have GNU's OpenMP.

    pyfftw brings a copy of that runtime. Its threads and those of the kernels would wait for work in turns, each on the
    cores that the others need. What is loaded for all libraries is found by name before such a copy.
    """
    try:
        mapped = Path("/proc/self/maps").read_text().split("\n")
    except OSError:
        return  # another operating system
    for path in dict.fromkeys(line.split(maxsplit=5)[-1] for line in mapped if line.count("/")):
        if Path(path).name.startswith("libgomp"):
            ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
            return


def cpu_transforms(shape: tuple[int, int, int], real: str, threads: int) -> Transforms:
    """Return the fastest transforms that are installed; SEICHE_FFT = "scipy", "fftw" or "fftw-patient" chooses."""
    wanted = os.environ.get("SEICHE_FFT", "")
    if wanted != "scipy" and importlib.util.find_spec("pyfftw") is not None:
        kind = PatientFftwTransforms if wanted == "fftw-patient" else FftwTransforms
        return kind(shape, real, threads)
    return ScipyTransforms(shape, real, threads)
