# SPDX-License-Identifier: BSD-3-Clause
"""CT images as ultrasound media: curves, and interpolation at the points of a grid in any position."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from seiche.case.ultrasound.ct import hounsfield_of
from seiche.case.ultrasound.ct_schema import CtTable
from seiche.case.ultrasound.medium import medium_of
from seiche.case.ultrasound.schema import MediumTable
from seiche.domain.voxels import VoxelImage
from seiche.errors import CaseError
from seiche.ultrasound import Grid
from seiche.ultrasound.ct import tissue_of_ct
from voxel_files import OBLIQUE, image_of, write_dicom, write_nifti


def medium(folder: Path, grid: Grid, **ct: Any) -> Any:
    table = {"sound_speed": "1500 m/s", "density": "1000 kg/m^3", "alpha_power": 1.1, "ct": ct}
    return medium_of(MediumTable.model_validate(table), grid, folder)


@pytest.mark.parametrize(
    ("hounsfield", "density", "error"),
    [(0.0, 1000.0, 0.02), (40.0, 1050.0, 0.02), (-100.0, 930.0, 0.03), (1200.0, 1790.0, 0.03)],
)
def test_tissue_has_about_its_density(hounsfield: float, density: float, error: float) -> None:
    """Water, muscle, fat and compact bone; the fit is continuous to 1 %."""
    speed, value = tissue_of_ct(np.array([hounsfield]))
    assert value[0] == pytest.approx(density, rel=error)
    assert speed[0] == pytest.approx((value[0] + 349) / 0.893)
    fine = tissue_of_ct(np.linspace(-900, 3000, 40_000))[1]
    assert (np.abs(np.diff(fine)) < 0.01 * fine[1:]).all() and fine.min() > 0


def head(voxel: tuple[float, float, float], shape: tuple[int, int, int], axes: Any) -> VoxelImage:
    """Return a ball of water of radius 6 mm in a skull of 2 mm with 1000 HU, in air."""
    image = image_of(lambda points: np.zeros(len(points)), voxel, shape, axes)
    index = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1)
    radius = np.linalg.norm(index @ image.matrix.T + image.origin, axis=-1)
    values = np.select([radius < 6e-3, radius < 8e-3], [0, 1000], -1000).astype(np.int16)
    return VoxelImage(values, image.matrix, image.origin + np.array([0.03, -0.02, 0.01]))


@pytest.mark.parametrize("form", ["nifti", "dicom"])
def test_a_skull_is_the_same_from_any_image(tmp_path: Path, form: str) -> None:
    """An oblique, anisotropic image gives the skull at its position, within a voxel of its surfaces."""
    pytest.importorskip({"nifti": "nibabel", "dicom": "pydicom"}[form])
    image = head((0.4e-3, 0.4e-3, 0.5e-3), (48, 48, 40), OBLIQUE)
    if form == "nifti":
        write_nifti(tmp_path / "head.nii.gz", image)
        keys: dict[str, Any] = {"file": "head.nii.gz"}
    else:
        write_dicom(tmp_path / "head", image, slope=2.0, intercept=-1024.0)
        keys = {"file": "head"}
    grid = Grid((40, 40, 40), 0.5e-3)
    center = ["30 mm", "-20 mm", "10 mm"]
    result = medium(tmp_path, grid, **keys, center=center, axes=[[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    points = np.stack(np.meshgrid(*(grid.positions(axis) for axis in grid.axes), indexing="ij"), -1)
    radius = np.linalg.norm(points, axis=-1)
    speed = np.asarray(result.sound_speed)
    skull = (radius > 6.8e-3) & (radius < 7.2e-3)
    np.testing.assert_allclose(speed[skull], 3100.0, rtol=1e-12)
    assert (speed[(radius < 5.2e-3) | (radius > 8.8e-3)] == 1500.0).all()
    np.testing.assert_allclose(np.asarray(result.alpha_coeff)[skull], 2.0, atol=1e-6)
    turned = medium(tmp_path, grid, **keys, center=center, axes=(OBLIQUE.T * 3).tolist())
    assert np.asarray(turned.density).mean() == pytest.approx(np.asarray(result.density).mean(), rel=0.005)
    tissue = medium(tmp_path, grid, **keys, center=center, curve="tissue")
    assert (np.asarray(tissue.density)[radius > 9e-3] == 1000.0).all()  # air is replaced by the medium
    np.testing.assert_allclose(np.asarray(tissue.density)[radius < 5e-3], tissue_of_ct(np.zeros(1))[1][0], rtol=1e-12)


@pytest.mark.parametrize("axes", [[[1, 0], [0, 1]], [[0, -1], [1, 0]]])
def test_small_voxels_are_averaged_over_cells(tmp_path: Path, axes: Any) -> None:
    """Cells of 4 by 4 voxels, aligned with the image, have the mean of their voxels, with air as water."""
    values = np.random.default_rng(1).uniform(-1000, 1000, (32, 24))
    values[4:8] = -1000.0
    np.save(tmp_path / "ct.npy", values)
    grid = Grid((8, 6) if axes[0][0] else (6, 8), 1e-3)
    table = CtTable.model_validate(
        {"file": "ct.npy", "voxel": ["0.25 mm", "0.25 mm"], "center": ["4.375 mm", "3.375 mm"], "axes": axes}
    )
    rotated = values if axes[0][0] else values.T[::-1]
    if not axes[0][0]:  # the point n // 2 is half a cell from the middle, on the other side
        table = table.model_copy(update={"center": (4.375e-3, 2.375e-3)})
    expected = np.maximum(rotated, 0.0).reshape(grid.shape[0], 4, grid.shape[1], 4).mean(axis=(1, 3))
    np.testing.assert_allclose(hounsfield_of(table, grid, tmp_path, floor=0.0), expected, atol=1e-9)
    # the point by itself would be far from this mean
    assert np.abs(rotated[2::4, 2::4] - expected).max() > 300


def test_the_mass_of_a_thin_skull_does_not_depend_on_the_spacing(tmp_path: Path) -> None:
    """A shell 2 mm thick on voxels of 0.25 mm keeps its mass on grids as coarse as its thickness."""
    image = head((0.25e-3,) * 3, (80, 80, 80), None)
    np.save(tmp_path / "ct.npy", image.values)
    exact = 4 / 3 * np.pi * (8**3 - 6**3) * 1e-9 * 1100
    for spacing in (0.5e-3, 1e-3, 2e-3):
        count = round(20e-3 / spacing)
        result = medium(tmp_path, Grid((count,) * 3, spacing), file="ct.npy", voxel=["0.25 mm"] * 3)
        excess = (np.asarray(result.density) - 1000).sum() * spacing**3
        assert excess == pytest.approx(exact, rel=0.03)


def test_bone_of_an_image_shears_in_proportion_to_its_sound_speed(tmp_path: Path) -> None:
    values = np.array([[-500.0, 50.0, 100.0], [500.0, 1000.0, 2500.0]])
    np.save(tmp_path / "ct.npy", values)
    ct = {"file": "ct.npy", "bone_shear_speed": "1550 m/s", "bone_shear_absorption": [4.0, 20.0]}
    table = MediumTable.model_validate({"material": "water", "ct": ct})
    assert table.is_elastic and table.exponent == 2.0
    result = medium_of(table, Grid((2, 3), 1e-3), tmp_path)
    shear, speed = np.asarray(result.shear_speed), np.asarray(result.sound_speed)
    np.testing.assert_array_equal(shear[0, :2], 0.0)
    np.testing.assert_allclose(shear[0, 2:] / speed[0, 2:], 0.5, rtol=1e-12)
    np.testing.assert_allclose(shear[1], 0.5 * np.array([2300.0, 3100.0, 3100.0]), rtol=1e-12)
    loss = np.asarray(result.shear_alpha_coeff)
    np.testing.assert_allclose(loss[1], [4 + 16 * np.sqrt(0.5), 4, 4], rtol=1e-12)
    np.testing.assert_array_equal(loss[0, :2], 0.0)


@pytest.mark.parametrize(
    ("ct", "message"),
    [
        ({}, "ct.bone_shear_speed is missing; other parts of the medium have a shear speed"),
        ({"bone_shear_absorption": [1.0, 2.0]}, "bone_shear_speed is missing; bone_shear_absorption needs it"),
        ({"bone_shear_speed": "1500 m/s", "curve": "tissue"}, 'bone_shear_speed: needs curve = "porosity"'),
        (
            {"bone_shear_speed": "1500 m/s", "bone_shear_absorption": [-1.0, 2.0]},
            "bone_shear_absorption must not be negative",
        ),
    ],
)
def test_impossible_shear_of_an_image_is_named(ct: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        MediumTable.model_validate({"material": "water", "shear_speed": "0 m/s", "ct": {"file": "ct.npy", **ct}})


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"axes": [[1, 0], [0, 1]]}, "medium.ct.axes: expected 3 directions of 3 numbers"),
        ({"axes": [[1, 0, 0], [1, 1, 0], [0, 0, 1]]}, "medium.ct.axes: the directions are not perpendicular"),
        ({"center": ["0 m", "0 m"]}, "medium.ct.center: needs 3 numbers"),
        ({"center": ["9 m", "0 m", "0 m"]}, "no value reaches the threshold 100"),
    ],
)
def test_a_wrong_position_of_an_image_is_named(tmp_path: Path, keys: dict[str, Any], message: str) -> None:
    np.save(tmp_path / "a.npy", head((1e-3,) * 3, (20, 20, 20), None).values)
    with pytest.raises(CaseError, match=message):
        medium(tmp_path, Grid((10, 10, 10), 1e-3), file="a.npy", voxel=["1 mm"] * 3, **keys)
