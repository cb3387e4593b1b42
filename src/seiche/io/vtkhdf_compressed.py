# SPDX-License-Identifier: BSD-3-Clause
"""The structure of a compressed VTKHDF file, made from that of a file that all ranks have written in place."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seiche.io.compression import SMALL_BYTES, chunk_shape, create_compressed
from seiche.io.deflate import StoredArray, library_errors, stored_array

if TYPE_CHECKING:
    import h5py

_FIELD_GROUPS = ("CellData", "PointData")


def compressed_structure(source: Path, target: h5py.File, *, steps: int, rows: int) -> list[StoredArray]:
    """Create the groups, attributes and small datasets of the file `source` in `target`, and its large datasets empty.

    Args:
        source: a file of `seiche.io.vtkhdf.create_layout` with this number of committed `steps`.
        target: the new file.
        steps: number of steps; the space of `source` for further ones is left out.
        rows: rows of a field in a step.

    Returns:
        The large arrays, whose values are still to be written.
    """
    import h5py

    with h5py.File(source, "r", locking=False) as file:
        arrays = _contiguous_arrays(file, steps * rows, SMALL_BYTES)
        large, old, root = {array.name for array in arrays}, file["VTKHDF"], target.create_group("VTKHDF")
        _copy_attributes(old, root)

        def copy(name: str, item: Any) -> None:
            if isinstance(item, h5py.Group):
                _copy_attributes(item, root.create_group(name))
                return
            count = steps * rows if _is_field(item) else None
            if item.name in large:
                shape = item.shape if count is None else (count, *item.shape[1:])
                create_compressed(root, name, shape, item.dtype)
            else:
                root[name] = item[:count]
            _copy_attributes(item, root[name])

        old.visititems(copy)  # the link to the steps is not followed
        _copy_steps(old["Steps"], root.create_group("Steps"), steps)
    return arrays


def arrays_of(path: Path, field_rows: int) -> list[StoredArray]:
    """Return all datasets of a contiguous file that are not empty; of fields, the first `field_rows` rows."""
    import h5py

    with library_errors(path), h5py.File(path, "r", locking=False) as file:
        return _contiguous_arrays(file, field_rows, 1)


def _contiguous_arrays(file: h5py.File, field_rows: int, min_bytes: int) -> list[StoredArray]:
    import h5py

    arrays = list[StoredArray]()

    def add(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            rows = field_rows if _is_field(item) else len(item)
            shape = (rows, *item.shape[1:])
            if item.dtype.itemsize * math.prod(shape) >= min_bytes:
                arrays.append(stored_array(item, rows, chunk_shape(shape, item.dtype.itemsize)[0]))

    file["VTKHDF"].visititems(add)
    return arrays


def _is_field(dataset: h5py.Dataset) -> bool:
    return dataset.name.split("/")[-2] in _FIELD_GROUPS


def _copy_steps(old: h5py.Group, new: h5py.Group, steps: int) -> None:
    _copy_attributes(old, new)
    for name, item in old.items():
        if hasattr(item, "items"):
            _copy_steps(item, new.create_group(name), steps)
        else:
            new[name] = item[:steps]


def _copy_attributes(old: Any, new: Any) -> None:
    for name, value in old.attrs.items():
        new.attrs.create(name, value, dtype=old.attrs.get_id(name).dtype)
