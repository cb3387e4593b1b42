# SPDX-License-Identifier: BSD-3-Clause
"""Input files of k-Wave for tests: written dataset by dataset, as specified by the format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np

ATTRIBUTES = {
    "created_by": "test",
    "creation_date": "01/01/26, 00:00:00",
    "file_description": "a test",
    "file_type": "input",
    "major_version": "1",
    "minor_version": "2",
}


def write_dataset(file: h5py.Group, name: str, value: Any, kind: str) -> None:
    """Write a dataset; a number becomes (1, 1, 1)."""
    array = np.asarray(value, "<f4" if kind == "float" else "<u8")
    dataset = file.create_dataset(name, data=array.reshape(1, 1, 1) if array.ndim == 0 else array)
    dataset.attrs["data_type"] = np.bytes_(kind)
    dataset.attrs["domain_type"] = np.bytes_("real")


def staggered(rho: np.ndarray, axis: int) -> np.ndarray:
    """Return means of neighbours along an array axis; the last plane is unchanged."""
    after = np.concatenate([rho.take(range(1, rho.shape[axis]), axis), rho.take([-1], axis)], axis)
    return 0.5 * (rho + after)


def write_input(path: Path, shape: tuple[int, int, int], **changes: Any) -> Path:
    """Write an input file of a grid (Nz, Ny, Nx); `changes` replaces or adds datasets, None omits one.

    Floats and float arrays are float datasets, integers and integer arrays long ones.
    """
    nz, ny, nx = shape
    axes = "xyz" if nz > 1 else "xy"
    data: dict[str, Any] = {"Nx": nx, "Ny": ny, "Nz": nz, "Nt": 40, "dt": 2e-8, "c_ref": 1500.0}
    data |= {f"d{axis}": 1e-4 for axis in axes}
    data |= {f"pml_{axis}_size": 4 if axis in axes else 0 for axis in "xyz"}
    data |= {f"pml_{axis}_alpha": 2.0 for axis in "xyz"}
    for name in ("ux", "uy", "uz", "p", "p0", "transducer"):
        data[f"{name}_source_flag"] = 0
    data |= {"nonuniform_grid_flag": 0, "nonlinear_flag": 0, "absorbing_flag": 0, "axisymmetric_flag": 0}
    data |= {"c0": 1500.0, "rho0": 1000.0, "sensor_mask_type": 0}
    data |= {"sensor_mask_index": np.array([[[nx * ny * nz // 2 + 1, 7, nx + 3]]])}
    data |= changes
    rho = np.asarray(data["rho0"])
    for axis in axes:
        mean = staggered(rho, 2 - "xyz".index(axis)) if rho.ndim else float(rho)
        data.setdefault(f"rho0_sg{axis}", mean)
    with h5py.File(path, "w") as file:
        for name, text in ATTRIBUTES.items():
            file.attrs[name] = np.bytes_(text)
        for name, value in data.items():
            if value is not None:
                write_dataset(file, name, value, "float" if np.asarray(value).dtype.kind == "f" else "long")
    return path
