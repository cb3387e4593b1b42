# SPDX-License-Identifier: BSD-3-Clause
"""Readers of images, fields, HemoCell cases, sweeps and results of checks, with small files, for `fuzz_readers`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hemocell_files import write_hemocell
from seiche.case.blood.hemocell import read_hemocell
from seiche.case.sweep import SWEEP, check_own_tables, list_of
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.io.fields import FieldSeries, VoxelCells
from seiche.io.images import read_image
from seiche.report.field_section import read_field_section
from seiche.validate.results import ORIGIN
from seiche.validate.results import load as load_checks
from voxel_files import image_of, write_dicom, write_nifti

CHECK = {"name": "order", "value": 2.0, "bound": 1.8, "sense": "at least", "unit": "", "reference": "", "family": "a b"}
CHECKS = json.dumps(
    dict.fromkeys(ORIGIN, "x")
    | {"subjects": ["a"], "complete": True, "families": [{"name": "a b", "seconds": 1.0}], "checks": [CHECK]}
)
IMAGE = image_of(lambda points: points[:, 0] > 0, (1e-3, 1e-3, 2e-3), (4, 3, 3))
VOXEL = (1e-3, 1e-3, 2e-3)


def tiff_file(path: Path, **options: Any) -> None:
    import tifffile

    tifffile.imwrite(path, IMAGE.values.T, **options)


def tiff_stack(path: Path) -> None:
    import tifffile

    for number in range(3):
        tifffile.imwrite(path.with_name(f"{number}.tif"), IMAGE.values[:, :, number].T)


def dicom_series(path: Path) -> None:
    """Write a series into the folder of `path`, which is one of its slices."""
    write_dicom(path.parent, IMAGE)
    sorted(path.parent.glob("image-*.dcm"))[1].rename(path)


def field_series(path: Path) -> None:
    coords = np.stack(np.meshgrid(range(3), range(2), range(2), indexing="ij"), axis=-1).reshape(-1, 3)
    with FieldSeries(path, World.serial(), VoxelCells((3, 2, 2), coords, 1e-3), {"velocity": 3}, 2) as series:
        for time in (0.0, 1.0):
            series.write(time, {"velocity": np.ones((len(coords), 3))})


def hemocell_case(path: Path) -> None:
    write_hemocell(path.parent)


def read_hemocell_case(path: Path) -> None:
    read_hemocell(path.parent / "config.xml", path.parent, "stretched.stl")


def sweep_list(path: Path) -> None:
    content = {"case": "0", "runs": {"run-0001": {"lattice.tau": "0.8"}}, "tables": {"sweep.csv": "3:0"}}
    path.write_text(json.dumps(content))
    path.with_name("sweep.csv").write_text("run,state\n")


def read_sweep_list(path: Path) -> None:
    try:
        check_own_tables(path.parent)
    except CaseError as error:  # the digest is not that of the table
        if "was not written by this sweep" not in str(error):
            raise


#: What writes a valid file and what reads it, by the name of the file.
MORE_READERS: dict[str, tuple[Callable[[Path], Any], Callable[[Path], Any]]] = {
    "checks.json": (lambda path: path.write_text(CHECKS), load_checks),
    "fields.vtkhdf": (field_series, read_field_section),
    "image.nii": (lambda path: write_nifti(path, IMAGE), read_image),
    "image.nii.gz": (lambda path: write_nifti(path, IMAGE), read_image),
    "image.tif": (tiff_file, lambda path: read_image(path, voxel=VOXEL)),
    "packed.tif": (lambda path: tiff_file(path, compression="zlib"), lambda path: read_image(path, voxel=VOXEL)),
    "1.tif": (tiff_stack, lambda path: read_image(path.parent, voxel=VOXEL)),
    "slice.dcm": (dicom_series, lambda path: read_image(path.parent)),
    "image.npy": (lambda path: np.save(path, IMAGE.values), lambda path: read_image(path, voxel=VOXEL)),
    "image.npz": (
        lambda path: np.savez_compressed(path, mask=IMAGE.values),
        lambda path: read_image(path, voxel=VOXEL),
    ),
    "config.xml": (hemocell_case, read_hemocell_case),
    "RBC.xml": (hemocell_case, read_hemocell_case),
    SWEEP: (sweep_list, read_sweep_list),
    "runs.csv": (lambda path: path.write_text("lattice.tau, time.steps\n0.6, 20\n0.7, 30\n"), list_of),
}
