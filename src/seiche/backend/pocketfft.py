# SPDX-License-Identifier: BSD-3-Clause
"""Unscaled transforms by SciPy's pocketfft, loaded without the package `scipy.fft`.

Importing this package takes longer than all other parts of a short run together, because it imports `scipy.special`.
The extension module inside it depends on NumPy only. It is not a public interface of SciPy: if it is missing or does
not accept these arguments, the public functions are used. Both give bitwise identical results.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

_Array = npt.NDArray[Any]
#: Arguments of the extension: no scaling, no array for the result.
_UNSCALED, _NEW = 0, None


class Pocketfft(Protocol):
    """Unscaled transforms of the given axes by `workers` threads."""

    def real_to_complex(self, values: _Array, axes: tuple[int, ...], workers: int) -> _Array:
        """Return spectra with n/2 + 1 complex numbers along the last of the axes."""

    def complex_to_real(self, spectra: _Array, extents: list[int], axes: tuple[int, ...], workers: int) -> _Array:
        """Return reals with these extents along the axes."""

    def complex_in_place(self, values: _Array, forward: bool, workers: int) -> None:
        """Transform complex numbers along the first axis."""


class ExtensionPocketfft:
    """The extension module of SciPy."""

    def __init__(self, module: Any) -> None:
        """Store the module."""
        self._module = module

    def real_to_complex(self, values: _Array, axes: tuple[int, ...], workers: int) -> _Array:
        """Return spectra."""
        return self._module.r2c(values, axes, True, _UNSCALED, _NEW, workers)  # type: ignore[no-any-return]

    def complex_to_real(self, spectra: _Array, extents: list[int], axes: tuple[int, ...], workers: int) -> _Array:
        """Return reals."""
        return self._module.c2r(spectra, axes, extents[-1], False, _UNSCALED, _NEW, workers)  # type: ignore[no-any-return]

    def complex_in_place(self, values: _Array, forward: bool, workers: int) -> None:
        """Transform in place."""
        self._module.c2c(values, (0,), forward, _UNSCALED, values, workers)


class PublicPocketfft:
    """The functions of `scipy.fft`."""

    def __init__(self) -> None:
        """Import the package."""
        from scipy import fft

        self._fft = fft

    def real_to_complex(self, values: _Array, axes: tuple[int, ...], workers: int) -> _Array:
        """Return spectra."""
        return self._fft.rfftn(values, axes=axes, workers=workers)  # type: ignore[no-any-return]

    def complex_to_real(self, spectra: _Array, extents: list[int], axes: tuple[int, ...], workers: int) -> _Array:
        """Return reals."""
        return self._fft.irfftn(spectra, s=extents, axes=axes, norm="forward", workers=workers)  # type: ignore[no-any-return]

    def complex_in_place(self, values: _Array, forward: bool, workers: int) -> None:
        """Transform in place."""
        if forward:
            result = self._fft.fft(values, axis=0, overwrite_x=True, workers=workers)
        else:
            result = self._fft.ifft(values, axis=0, norm="forward", overwrite_x=True, workers=workers)
        if not np.may_share_memory(result, values):
            values[...] = result


@cache
def pocketfft() -> Pocketfft:
    """Return the transforms of the installed SciPy."""
    module = _extension()
    return PublicPocketfft() if module is None else ExtensionPocketfft(module)


def _extension() -> Any:
    """Return the extension module if it works as expected, else None."""
    package = importlib.util.find_spec("scipy")
    if package is None or not package.submodule_search_locations:
        return None
    folder = Path(package.submodule_search_locations[0]) / "fft" / "_pocketfft"
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        path = folder / f"pypocketfft{suffix}"
        if path.exists():
            return _working(path)
    return None


def _working(path: Path) -> Any:
    """Return the extension module in a file if it passes a test of all functions, else None."""
    try:
        spec = importlib.util.spec_from_file_location("scipy.fft._pocketfft.pypocketfft", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        transforms = ExtensionPocketfft(module)
        spectra = transforms.real_to_complex(np.array([[1.0, 2.0, 4.0]]), (1,), 1)
        reals = transforms.complex_to_real(spectra, [3], (1,), 1)
        columns = np.array([[1.0 + 0.0j], [2.0 + 0.0j]])
        transforms.complex_in_place(columns, True, 1)
    except (ImportError, AttributeError, TypeError, ValueError):
        return None
    exact = np.allclose(reals, [[3.0, 6.0, 12.0]]) and np.array_equal(columns, [[3.0], [-1.0]])
    return module if exact and spectra[0, 0] == 7.0 else None
