# SPDX-License-Identifier: BSD-3-Clause
"""Compression of stored fields by the deflate filter of HDF5, and rounding of values within a stated error.

Rounded values have trailing zero bits, which compress well. Every HDF5 library reads the result without plug-ins.
See docs/decisions/0043-compression.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seiche.io.mark import new_hdf5

if TYPE_CHECKING:
    import h5py

Array = npt.NDArray[Any]
#: Level of deflate. Higher levels take up to twice as long and hardly reduce shuffled floating-point numbers further.
LEVEL = 1
#: Largest number of bytes of a chunk.
CHUNK_BYTES = 1 << 20
#: Arrays of fewer bytes are stored without chunks.
SMALL_BYTES = 1 << 12


@dataclass(frozen=True)
class ErrorBound:
    """Largest error of stored values: `absolute`, in the unit of the values, or `relative` to each value.

    Exactly one is given and positive; otherwise ValueError.
    """

    absolute: float | None = None
    relative: float | None = None

    def __post_init__(self) -> None:
        """Check the bound."""
        given = [bound for bound in (self.absolute, self.relative) if bound is not None]
        if len(given) != 1 or not 0.0 < given[0] < math.inf:
            raise ValueError(f"{self}: expected one positive bound, absolute or relative")

    def rounded(self, values: Array) -> Array:
        """Return floating-point `values` (any shape) with as few significant bits as the bound allows, in their type.

        NaN and infinities remain; a value that would overflow is not rounded.
        """
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            if self.absolute is not None:
                # The nearest multiple of a power of two, at most twice the bound.
                exponent: Any = math.frexp(2.0 * self.absolute)[1] - 1
                scaled = np.ldexp(values, -exponent)
            else:
                assert self.relative is not None
                # Mantissas from 1/2 to 1, rounded to multiples of 2^-bits, have a relative error of at most 2^-bits.
                bits = max(1, 1 - math.frexp(self.relative)[1])
                mantissas, exponents = np.frexp(values)
                exponent, scaled = exponents - bits, np.ldexp(mantissas, bits)
            result = np.ldexp(np.rint(scaled), exponent)
        return np.asarray(np.where(np.isfinite(result), result, values), values.dtype)


@dataclass(frozen=True)
class Compression:
    """Compression of a file; fields with a bound in `bounds`, by name, are rounded, all others are stored exactly."""

    bounds: Mapping[str, ErrorBound] = field(default_factory=dict)

    def attributes(self, name: str) -> dict[str, float]:
        """Return the attributes that state the bound of the field `name`: `AbsoluteError` or `RelativeError`."""
        bound = self.bounds.get(name)
        stated = {"AbsoluteError": bound.absolute, "RelativeError": bound.relative} if bound is not None else {}
        return {key: value for key, value in stated.items() if value is not None}

    def rounded(self, name: str, values: Array) -> Array:
        """Return the values of the field `name` as they are stored."""
        bound = self.bounds.get(name)
        return values if bound is None or values.dtype.kind != "f" else bound.rounded(values)


def chunk_shape(shape: tuple[int, ...], item_bytes: int) -> tuple[int, ...]:
    """Return the shape of chunks of at most `CHUNK_BYTES`: whole rows of the first axis, or parts of one row."""
    remaining, chunk = max(1, CHUNK_BYTES // item_bytes), list[int]()
    for size in reversed(shape):
        chunk.append(max(1, min(size, remaining)))
        remaining //= chunk[-1]
    return tuple(reversed(chunk))


def create_compressed(group: h5py.Group, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> h5py.Dataset:
    """Create a dataset with chunks, shuffled bytes and deflate, without writing values."""
    return group.create_dataset(
        name,
        shape,
        dtype,
        chunks=chunk_shape(shape, dtype.itemsize),
        shuffle=dtype.itemsize > 1,
        compression="gzip",
        compression_opts=LEVEL,
    )


def store_array(group: h5py.Group, name: str, values: Array, compression: Compression | None) -> h5py.Dataset:
    """Store `values` as the dataset `name`, rounded and compressed if requested.

    Returns the dataset.
    """
    if compression is not None:
        values = compression.rounded(name, values)
    if compression is not None and values.nbytes >= SMALL_BYTES:
        create_compressed(group, name, values.shape, values.dtype)[...] = values
    else:
        group[name] = values
    if compression is not None:
        group[name].attrs.update(compression.attributes(name))
    return group[name]


def compressed_copy(source: Path, target: Path) -> None:
    """Write the compressed HDF5 file `target` from `source`, chunk by chunk; OSError if that fails."""
    import h5py

    with h5py.File(source, "r", locking=False) as old, new_hdf5(target) as new:
        new.attrs.update(old.attrs)

        def copy(name: str, item: Any) -> None:
            if isinstance(item, h5py.Group):
                created = new.create_group(name)
            elif item.nbytes < SMALL_BYTES:
                new[name] = item[()]
                created = new[name]
            else:
                created = create_compressed(new, name, item.shape, item.dtype)
                for first in range(0, len(item), created.chunks[0]):
                    created[first : first + created.chunks[0]] = item[first : first + created.chunks[0]]
            for key, value in item.attrs.items():
                created.attrs.create(key, value, dtype=item.attrs.get_id(key).dtype)

        old.visititems(copy)
