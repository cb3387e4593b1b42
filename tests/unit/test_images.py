# SPDX-License-Identifier: BSD-3-Clause
"""Images of voxels: files of all formats give the same voxels in space, and regions in them a vessel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from case_files import SOURCE, check_case
from seiche.case.flow.geometry import FlowVessel, build
from seiche.domain.voxels import VoxelImage, VoxelRegion, surface_of_region
from seiche.errors import CaseError, FormatError
from seiche.io.images import read_image
from voxel_files import OBLIQUE, cylinder, image_of, write_dicom, write_nifti

VOXEL = (0.5e-3, 0.4e-3, 0.8e-3)


@pytest.fixture
def small() -> VoxelImage:
    """Return an oblique image of 5 by 6 by 7 voxels with distinct values."""
    image = image_of(lambda points: np.arange(len(points)) % 200, VOXEL, (5, 6, 7), OBLIQUE)
    return VoxelImage(image.values, image.matrix, image.origin + np.array([1e-3, -2e-3, 3e-3]))


def assert_same(image: VoxelImage, other: VoxelImage) -> None:
    np.testing.assert_array_equal(image.values, other.values)
    np.testing.assert_allclose(image.matrix, other.matrix, atol=1e-9)
    np.testing.assert_allclose(image.origin, other.origin, atol=1e-8)


@pytest.mark.parametrize("unit", ["mm", "micron", "meter", "unknown"])
@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
def test_nifti_has_its_axes_and_unit(tmp_path: Path, small: VoxelImage, unit: str, suffix: str) -> None:
    """The unit is that of the header, millimetres if it states none."""
    pytest.importorskip("nibabel")
    write_nifti(tmp_path / f"a{suffix}", small, unit)
    assert_same(read_image(tmp_path / f"a{suffix}"), small)
    scaled = read_image(tmp_path / f"a{suffix}", unit={"micron": 1e-5, "meter": 10.0}.get(unit, 1e-2))
    np.testing.assert_allclose(scaled.matrix, 10 * small.matrix, rtol=1e-5)


def test_dicom_slices_are_sorted_by_position_and_rescaled(tmp_path: Path, small: VoxelImage) -> None:
    pytest.importorskip("pydicom")
    (tmp_path / "series").mkdir()
    write_dicom(
        tmp_path / "series", VoxelImage(small.values * 2.0 - 50, small.matrix, small.origin), slope=2.0, intercept=-50
    )
    (tmp_path / "series" / "notes.txt").write_text("not an image")
    image = read_image(tmp_path / "series")
    sign = np.sign(np.linalg.det(small.matrix))  # the reader sorts along the normal of rows and columns
    values, origin = small.values, small.origin
    matrix = small.matrix.copy()
    if sign < 0:
        origin = origin + matrix @ np.array([0.0, 0.0, values.shape[2] - 1.0])
        values, matrix[:, 2] = values[:, :, ::-1], -matrix[:, 2]
    np.testing.assert_allclose(image.values, values * 2.0 - 50)
    np.testing.assert_allclose(image.matrix, matrix, atol=1e-8)
    np.testing.assert_allclose(image.origin, origin, atol=1e-8)
    files = sorted((tmp_path / "series").glob("*.dcm"))
    files[3].unlink()
    with pytest.raises(FormatError, match="slices are missing or given twice"):
        read_image(tmp_path / "series")
    with pytest.raises(FormatError, match=r"is one slice; give the folder of the DICOM series"):
        read_image(files[0])


def test_numpy_and_tiff_have_the_voxels_of_the_case(tmp_path: Path, small: VoxelImage) -> None:
    tifffile = pytest.importorskip("tifffile")
    straight = VoxelImage(small.values, np.diag(VOXEL), np.zeros(3))
    np.save(tmp_path / "a.npy", small.values)
    np.savez_compressed(tmp_path / "a.npz", mask=small.values)
    tifffile.imwrite(tmp_path / "a.tif", small.values.T)
    (tmp_path / "stack").mkdir()
    for k in range(small.values.shape[2]):
        tifffile.imwrite(tmp_path / "stack" / f"{2 * k + 8}.tif", small.values[:, :, k].T)
    for name in ("a.npy", "a.npz", "a.tif", "stack"):
        assert_same(read_image(tmp_path / name, voxel=VOXEL), straight)
        with pytest.raises(FormatError, match=r"voxel size: is not in the file; add the key voxel"):
            read_image(tmp_path / name)
    moved = read_image(tmp_path / "a.npy", voxel=VOXEL, origin=(1.0, 2.0, 3.0))
    np.testing.assert_array_equal(moved.origin, [1.0, 2.0, 3.0])


def test_tiff_of_imagej_and_ome_states_its_voxels(tmp_path: Path, small: VoxelImage) -> None:
    tifffile = pytest.importorskip("tifffile")
    resolution = (1e-3 / VOXEL[0], 1e-3 / VOXEL[1])
    tifffile.imwrite(
        tmp_path / "j.tif", small.values.T, imagej=True, resolution=resolution,
        metadata={"spacing": VOXEL[2] * 1e3, "unit": "mm", "axes": "ZYX"},
    )  # fmt: skip
    sizes = {f"PhysicalSize{axis}": size * 1e6 for axis, size in zip("XYZ", VOXEL, strict=True)}
    tifffile.imwrite(tmp_path / "o.ome.tif", small.values.T, metadata={"axes": "ZYX", **sizes})
    for name in ("j.tif", "o.ome.tif"):
        image = read_image(tmp_path / name)
        np.testing.assert_array_equal(image.values, small.values)
        np.testing.assert_allclose(np.diag(image.matrix), VOXEL, rtol=1e-5)


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.nii", "a.nii.gz", "a.tif"])
def test_damaged_files_give_one_line(tmp_path: Path, name: str) -> None:
    pytest.importorskip("nibabel"), pytest.importorskip("tifffile")
    (tmp_path / name).write_bytes(b"\x93NUMPY and other bytes" * 20)
    with pytest.raises(FormatError) as error:
        read_image(tmp_path / name, voxel=(1.0, 1.0, 1.0))
    assert "\n" not in str(error.value)


def test_a_sampled_image_is_linear_between_voxels(small: VoxelImage) -> None:
    slope = np.array([3.0, -2.0, 5.0])
    index = np.stack(np.meshgrid(*map(np.arange, small.values.shape), indexing="ij"), -1)
    image = VoxelImage((index @ small.matrix.T + small.origin) @ slope, small.matrix, small.origin)
    inner = np.random.default_rng(1).random((50, 3)) * (np.array(small.values.shape) - 1)
    points = inner @ small.matrix.T + small.origin
    np.testing.assert_allclose(image.at(points), points @ slope, atol=1e-12)
    outside = small.origin + small.matrix @ np.array([-0.6, 0.0, 0.0])
    assert image.at(outside[None], outside=7.0) == [7.0]


@pytest.mark.parametrize("voxel", [(1.0, 1.0, 1.0), (1.0, 1.0, 2.0)])
def test_the_surface_of_a_mask_converges_to_a_sphere(voxel: tuple[float, float, float]) -> None:
    """The volume converges with the voxel size, and the area is not that of stairs (50 % too large)."""
    for count in (16, 32, 64):
        size = tuple(2.0 / count * v for v in voxel)
        shape = tuple(int(2.6 / s) for s in size)
        image = image_of(lambda points: np.linalg.norm(points - 0.013, axis=1) < 1.0, size, shape, OBLIQUE)
        surface = surface_of_region(image, VoxelRegion())
        assert surface.volume > 0.0 and not surface.boundary_loops()
        assert surface.volume == pytest.approx(4 / 3 * np.pi, rel=0.04 * (16 / count) ** 1.7)
        assert surface.area == pytest.approx(4 * np.pi, rel=0.03)


def test_limits_of_grey_values_give_a_surface_between_voxels() -> None:
    """The level of a field that is linear near the surface is exact to second order, without smoothing."""
    image = image_of(lambda points: np.zeros(len(points)), (0.1, 0.1, 0.15), (30, 30, 20), OBLIQUE)
    index = np.stack(np.meshgrid(*map(np.arange, image.values.shape), indexing="ij"), -1)
    grey = 1000.0 - 500.0 * np.linalg.norm(index @ image.matrix.T + image.origin, axis=-1)
    surface = surface_of_region(VoxelImage(grey, image.matrix, image.origin), VoxelRegion(above=500.0))
    np.testing.assert_allclose(np.linalg.norm(surface.vertices, axis=1), 1.0, atol=3e-3)


def build_tables(tables: dict[str, Any], folder: Path) -> FlowVessel:
    return build(check_case(tables, SOURCE), folder, SOURCE)


def tables(**image: object) -> dict[str, Any]:
    return {
        "solver": "flow",
        "geometry": {"spacing": "0.25 mm", "image": image},
        "fluid": {"viscosity": "4 mPa s"},
        "lattice": {"tau": 0.8},
        "time": {"steps": 10},
        "iolet": [
            {"name": "a", "kind": "pressure", "pressure": "0 mmHg", "center": ["-3 mm", "0 mm", "0 mm"],
             "normal": [1.0, 0.0, 0.0], "radius": "2 mm"},
            {"name": "b", "kind": "pressure", "pressure": "0 mmHg", "center": ["3 mm", "0 mm", "0 mm"],
             "normal": [-1.0, 0.0, 0.0], "radius": "2 mm"},
        ],
    }  # fmt: skip


def test_a_label_becomes_a_vessel_with_openings(tmp_path: Path) -> None:
    """A tube of radius 1 mm along x in an oblique image, cut by two planes 6 mm apart; another label is ignored."""
    pytest.importorskip("nibabel")
    image = image_of(cylinder(1e-3, (1.0, 0.0, 0.0), 8e-3), (0.2e-3, 0.2e-3, 0.3e-3), (60, 60, 40), OBLIQUE)
    values = image.values * 3
    values[:4, :4, :4] = 1
    write_nifti(tmp_path / "a.nii.gz", VoxelImage(values, image.matrix, image.origin))
    vessel = build_tables(tables(file="a.nii.gz", labels=[3]), tmp_path)
    sites = vessel.sites
    assert len(sites) * sites.spacing**3 == pytest.approx(np.pi * 1e-6 * 6e-3, rel=0.03)
    assert [plane.name for plane in sites.iolets] == ["a", "b"]
    with pytest.raises(CaseError, match=r"no voxel of the image is in the region; its values are 0, 1, 3"):
        build_tables(tables(file="a.nii.gz", labels=[2]), tmp_path)


def test_a_vessel_that_leaves_the_image_is_open_there(tmp_path: Path) -> None:
    """The rims at the borders of the image are openings, as those of a surface."""
    image = image_of(cylinder(1e-3, (1.0, 0.0, 0.0)), (0.2e-3, 0.2e-3, 0.2e-3), (30, 20, 20))
    np.save(tmp_path / "a.npy", image.values.astype(bool))
    voxel = ["0.2 mm"] * 3
    case = tables(file="a.npy", voxel=voxel)
    case["iolet"] = [{"name": name, "kind": "pressure", "pressure": "0 mmHg"} for name in ("rim0", "rim1")]
    sites = build_tables(case, tmp_path).sites
    assert len(sites) * sites.spacing**3 == pytest.approx(np.pi * 1e-6 * 5.8e-3, rel=0.04)
    assert sorted(plane.center[0] for plane in sites.iolets) == pytest.approx([0.0, 5.8e-3], abs=1e-9)


def test_an_image_repeats_along_periodic_axes(tmp_path: Path) -> None:
    """The period is that of the voxels, and the sites at both ends are neighbours."""
    image = image_of(cylinder(1e-3, (1.0, 0.0, 0.0)), (0.25e-3,) * 3, (16, 12, 12))
    np.save(tmp_path / "a.npy", image.values)
    case = tables(file="a.npy", voxel=["0.25 mm"] * 3)
    case["geometry"]["periodic"] = ["x"]
    case["iolet"], case["body_force"] = [], {"force": ["100 N/m^3", "0 N/m^3", "0 N/m^3"]}
    sites = build_tables(case, tmp_path).sites
    assert sites.periodic == (True, False, False) and sites.shape[0] == 16
    layers = np.bincount(sites.coords[:, 0])
    assert (layers == layers[0]).all()
    assert layers[0] * sites.spacing**2 == pytest.approx(np.pi * 1e-6, rel=0.05)


@pytest.mark.parametrize(("keyword", "value"), [("ImageOrientationPatient", [1.0, 0.0]), ("PixelSpacing", [1.0])])
def test_an_invalid_value_in_a_later_slice_is_one_line(
    tmp_path: Path, small: VoxelImage, keyword: str, value: list[float]
) -> None:
    pydicom = pytest.importorskip("pydicom")
    write_dicom(tmp_path, small)
    for path in sorted(tmp_path.glob("*.dcm"))[1:]:  # whichever slice comes first is valid or not the only one
        item = pydicom.dcmread(path)
        setattr(item, keyword, value)
        item.save_as(path)
    with pytest.raises(FormatError, match=f"{keyword}: cannot be read"):
        read_image(tmp_path)


def test_images_that_declare_more_than_free_memory_are_refused_before_they_are_read(
    tmp_path: Path, small: VoxelImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    nibabel, tifffile = pytest.importorskip("nibabel"), pytest.importorskip("tifffile")
    pydicom = pytest.importorskip("pydicom")
    write_nifti(tmp_path / "a.nii.gz", small, "mm")
    tifffile.imwrite(tmp_path / "a.tif", small.values.T, compression="zlib")
    write_dicom(tmp_path / "series", small)
    monkeypatch.setattr("seiche.io.arrays.available_memory", lambda: 100)

    def fail(*arguments: Any, **options: Any) -> None:
        raise AssertionError("the values were read")

    monkeypatch.setattr(nibabel.arrayproxy.ArrayProxy, "__array__", fail)
    monkeypatch.setattr(tifffile.TiffPageSeries, "asarray", fail)
    monkeypatch.setattr(pydicom.FileDataset, "pixel_array", property(fail))
    for name in ("a.nii.gz", "a.tif", "series"):
        with pytest.raises(FormatError, match="only 100 bytes of memory are free"):
            read_image(tmp_path / name, voxel=VOXEL)


def test_a_tiff_whose_pages_form_a_loop_is_read_to_its_end(tmp_path: Path, small: VoxelImage) -> None:
    tifffile = pytest.importorskip("tifffile")
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, small.values[:, :, 0].T, metadata=None)
    with tifffile.TiffFile(path) as file:
        first, count = file.pages[0].offset, len(file.pages[0].tags)
    content = bytearray(path.read_bytes())
    content[first + 2 + 12 * count : first + 6 + 12 * count] = first.to_bytes(4, "little")
    path.write_bytes(content)
    assert read_image(path, voxel=VOXEL[:2]).values.shape == small.values.shape[:2]
