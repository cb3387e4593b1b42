# SPDX-License-Identifier: BSD-3-Clause
"""SolidBody bodies: the one set of primitives of vessels, obstacles and media of all kinds of case."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from case_files import SOURCE, check_case
from seiche.case.flow.geometry import build
from seiche.case.solids import SOLID, SolidTable, body_of
from seiche.case.ultrasound.medium import medium_of
from seiche.case.ultrasound.schema import MediumTable
from seiche.case.waves.media import Media
from seiche.case.waves.schema import MaterialTable
from seiche.domain.links import check_sites
from seiche.domain.sites import LINK_VECTORS, LinkKind
from seiche.domain.solids import SolidBody
from seiche.errors import CaseError
from seiche.io.formats.stl import write_stl
from seiche.ultrasound import Grid
from voxel_files import image_of

ORIGIN = ["0 m", "0 m", "0 m"]
SPHERE = {"kind": "sphere", "center": ORIGIN, "radius": "0.8 m"}
TUBE = {"kind": "cylinder", "start": ["-1 m", "0.1 m", "0 m"], "end": ["1 m", "0.3 m", "0.5 m"], "radius": "0.4 m"}
BODIES: dict[str, tuple[dict[str, Any], float]] = {
    "sphere": (SPHERE, 4 / 3 * np.pi * 0.8**3),
    "shell": ({"kind": "shell", "center": ORIGIN, "inner": "0.5 m", "outer": "1 m"}, 4 / 3 * np.pi * 0.875),
    "ellipsoid": ({"kind": "ellipsoid", "center": ORIGIN, "radii": ["1 m", "0.5 m", "0.7 m"]}, 4 / 3 * np.pi * 0.35),
    "box": ({"kind": "box", "low": ["-1 m", "0 m", "0 m"], "high": ["1 m", "0.5 m", "1 m"]}, 1.0),
    "cylinder": (TUBE, np.pi * 0.16 * np.sqrt(4.29)),
    "cone": (
        {**{k: TUBE[k] for k in ("start", "end")}, "kind": "cone", "start_radius": "0.6 m", "end_radius": "0 m"},
        np.pi * 0.12 * np.sqrt(4.29),
    ),
    "capsule": ({**TUBE, "kind": "capsule"}, np.pi * 0.16 * (np.sqrt(4.29) + 1.6 / 3)),
    "torus": (
        {"kind": "torus", "center": ORIGIN, "axis": [1, 1, 0], "radius": "0.9 m", "section": "0.3 m"},
        2 * np.pi**2 * 0.9 * 0.09,
    ),
    "difference": (
        {"kind": "difference", "of": [SPHERE, {"kind": "box", "lower": ["0 m"] * 3, "upper": ["2 m"] * 3}]},
        7 / 6 * np.pi * 0.8**3,
    ),
    "intersection": (
        {"kind": "intersection", "of": [SPHERE, {"kind": "layer", "bottom": "0 m", "top": "5 m"}]},
        2 / 3 * np.pi * 0.8**3,
    ),
    "union": (
        {"kind": "union", "of": [SPHERE, {"kind": "sphere", "center": ["3 m", "0 m", "0 m"], "radius": "0.4 m"}]},
        4 / 3 * np.pi * (0.8**3 + 0.4**3),
    ),
}  # fmt: skip


def body(table: dict[str, Any], dim: int = 3, folder: Path = Path()) -> SolidBody:
    checked = SOLID._validated(table)
    assert isinstance(checked, SolidTable)
    return body_of(checked, dim, folder, "solid")


@pytest.mark.parametrize("name", BODIES)
def test_a_body_has_its_volume_and_a_depth_below_the_distance(name: str) -> None:
    """The rate of change of the depth is at most one, so that a depth excludes the surface from a neighbourhood."""
    table, volume = BODIES[name]
    solid = body(table)
    low, high = solid.bounds()
    random = np.random.default_rng(0)
    points = low + random.random((200_000, 3)) * (high - low)
    depth = solid.depth(points)
    inside = solid.contains(list(points.T))
    assert np.array_equal(inside, depth >= 0.0)
    assert inside.mean() * np.prod(high - low) == pytest.approx(volume, rel=0.015)
    assert solid.measure()[0] == pytest.approx(volume, rel=0.02)
    step = 0.1 * random.normal(size=points.shape)
    change = np.abs(solid.depth(points + step) - depth)
    assert (change <= np.linalg.norm(step, axis=1) * (1 + 1e-12)).all()
    outside = low - 0.5 + random.random((50_000, 3)) * (high - low + 1.0)
    beyond = np.any((outside < low) | (outside > high), axis=1)
    assert not solid.contains(list(outside[beyond].T)).any()


@pytest.mark.parametrize("name", BODIES)
def test_no_cell_with_a_surface_is_missed(name: str) -> None:
    solid = body(BODIES[name][0])
    low = np.random.default_rng(1).random((2000, 3)) * 3.0 - 1.5
    high = low + 0.2
    samples = low[:, None] + 0.2 * np.random.default_rng(2).random((1, 100, 3))
    flags = solid.contains([samples[..., axis] for axis in range(3)])
    varies = flags.any(axis=1) & ~flags.all(axis=1)
    assert varies.any() and solid.cuts(list(low.T), list(high.T))[varies].all()


def test_bodies_of_files_are_those_of_their_content(tmp_path: Path) -> None:
    """A sphere as an STL surface, and as a mask, has the volume of the sphere."""
    from seiche.domain.voxels import VoxelRegion, surface_of_region

    image = image_of(lambda points: np.linalg.norm(points, axis=1) < 0.8, (0.05,) * 3, (40, 40, 40))
    write_stl(tmp_path / "a.stl", surface_of_region(image, VoxelRegion()))
    np.save(tmp_path / "a.npy", image.values)
    corner = [f"{c} m" for c in image.origin]
    for table in (
        {"kind": "stl", "file": "a.stl", "unit": "1 m"},
        {"kind": "image", "file": "a.npy", "voxel": ["5 cm"] * 3, "position": corner},
    ):
        solid = body(table, folder=tmp_path)
        points = np.random.default_rng(0).random((100_000, 3)) * 2.0 - 1.0
        depth = solid.depth(points)
        exact = 0.8 - np.linalg.norm(points, axis=1)
        assert (depth >= 0).mean() * 8 == pytest.approx(4 / 3 * np.pi * 0.8**3, rel=0.02)
        assert np.abs(depth - exact)[np.abs(exact) < 0.1].max() < 0.07
        step = 0.05 * np.random.default_rng(3).normal(size=points.shape)
        assert (np.abs(solid.depth(points + step) - depth) <= 1.001 * np.linalg.norm(step, axis=1)).all()


@pytest.mark.parametrize(
    ("table", "dim", "message"),
    [
        ({"kind": "sphere", "center": ["0 m"] * 2, "radius": "1 m"}, 3, "solid.center: needs 3 numbers"),
        (BODIES["torus"][0], 2, "solid.kind: a torus needs three axes, not 2"),
        ({"kind": "union", "of": [SPHERE, {**SPHERE, "center": ["0 m"]}]}, 3, r"solid.of\[1\].center: needs 3 numbers"),
    ],
)
def test_a_body_with_wrong_axes_is_named(table: dict[str, Any], dim: int, message: str) -> None:
    with pytest.raises(CaseError, match=message):
        body(table, dim)


def flow_tables(geometry: dict[str, Any]) -> dict[str, Any]:
    iolets = [
        {"name": name, "kind": "pressure", "pressure": "0 mmHg", "center": [f"{x} mm", "0 mm", "0 mm"],
         "normal": [-x / 3.0, 0.0, 0.0], "radius": "1.5 mm"}
        for name, x in (("a", -3), ("b", 3))
    ]  # fmt: skip
    return {
        "solver": "flow",
        "geometry": {"spacing": "0.1 mm", **geometry},
        "fluid": {"viscosity": "4 mPa s"},
        "lattice": {"tau": 0.8},
        "time": {"steps": 10},
        "iolet": iolets,
    }


def axis(x: float) -> list[str]:
    return [f"{x} mm", "0 mm", "0 mm"]


def test_a_vessel_is_a_combination_of_bodies_with_obstacles(tmp_path: Path) -> None:
    """A tube with a spherical sac and a ball inside: the links end on the surfaces of the bodies."""
    tube = {"kind": "cylinder", "start": axis(-4), "end": axis(4), "radius": "1 mm"}
    sac = {"kind": "sphere", "center": axis(0), "radius": "1.5 mm"}
    ball = {"kind": "sphere", "center": axis(0), "radius": "0.5 mm"}
    tables = flow_tables({"solid": {"kind": "union", "of": [tube, sac]}, "obstacle": [ball]})
    sites = build(check_case(tables, SOURCE), tmp_path, SOURCE).sites
    check_sites(sites)
    cap = np.sqrt(1.5**2 - 1.0)
    sac_volume = 2 * np.pi * (1.5**2 * cap - cap**3 / 3)
    volume = sac_volume + np.pi * (6 - 2 * cap) - 4 / 3 * np.pi * 0.5**3
    assert len(sites) * 1e-3 == pytest.approx(volume, rel=0.01)
    row, k = np.nonzero(sites.link_kind == LinkKind.WALL)
    step = sites.link_fraction[row, k].astype(float)[:, None] * LINK_VECTORS[k]
    points = 1e3 * (np.asarray(sites.origin) + sites.spacing * (sites.coords[sites.boundary[row]] + step))
    radius, across = np.linalg.norm(points, axis=1), np.hypot(points[:, 1], points[:, 2])
    assert np.min([abs(radius - 1.5), abs(radius - 0.5), abs(across - 1.0)], axis=0).max() < 1e-4


def test_obstacles_are_possible_in_a_surface(tmp_path: Path) -> None:
    ball = {"kind": "sphere", "center": ["-5 mm", "0.2 mm", "0 mm"], "radius": "0.6 mm"}
    shape = {"shape": {"kind": "bifurcation"}}
    tables = flow_tables(shape) | {"iolet": [
        {"name": name, "kind": "pressure", "pressure": "0 mmHg"} for name in ("inlet", "outlet1", "outlet2")
    ]}  # fmt: skip
    tables["geometry"]["spacing"] = "0.2 mm"
    plain = build(check_case(tables, SOURCE), tmp_path, SOURCE).sites
    tables["geometry"]["obstacle"] = [ball]
    blocked = build(check_case(tables, SOURCE), tmp_path, SOURCE).sites
    check_sites(blocked)
    depth = body(ball).depth(np.asarray(plain.origin) + plain.spacing * plain.coords)
    assert len(plain) - len(blocked) == np.count_nonzero(depth >= 0.0) > 100
    tables["geometry"]["obstacle"] = [{**ball, "center": ["-5 mm", "20 mm", "0 mm"]}]
    with pytest.raises(CaseError, match="obstacle 1 contains no lattice node"):
        build(check_case(tables, SOURCE), tmp_path, SOURCE)


def test_a_normal_out_of_a_vessel_is_named(tmp_path: Path) -> None:
    tables = flow_tables({"solid": {"kind": "cylinder", "start": axis(-3), "end": axis(3), "radius": "1 mm"}})
    tables["iolet"][0]["normal"] = [-1.0, 0.0, 0.0]
    with pytest.raises(CaseError, match=r'iolet\["a"\].normal: points out of the fluid; reverse it'):
        build(check_case(tables, SOURCE), tmp_path, SOURCE)
    with pytest.raises(CaseError, match=r"geometry.solid: is infinite; take its intersection"):
        build(
            check_case(flow_tables({"solid": {"kind": "layer", "bottom": "0 m", "top": "1 m"}}), SOURCE),
            tmp_path,
            SOURCE,
        )


@pytest.mark.parametrize("dim", [2, 3])
def test_ultrasound_and_waves_have_the_same_regions(tmp_path: Path, dim: int) -> None:
    """The union of a capsule and a ball, at points and averaged over cells; an image is a region, too."""
    where = {
        "kind": "union",
        "of": [
            {"kind": "capsule", "start": ["-4 mm"] * dim, "end": ["4 mm"] * dim, "radius": "1.5 mm"},
            {"kind": "ball", "center": ["5 mm", *["0 mm"] * (dim - 1)], "radius": "2 mm"},
        ],
    }
    grid = Grid((24,) * dim, 1e-3)
    region = {"kind": "solid", "where": where, "sound_speed": "3000 m/s", "density": "2000 kg/m^3"}
    table = {"sound_speed": "1500 m/s", "density": "1000 kg/m^3", "region": [region]}
    points = np.stack(np.meshgrid(*(grid.positions(axis) for axis in grid.axes), indexing="ij"), -1)
    inside = body(where, dim).contains([points[..., axis] for axis in range(dim)])
    sharp = medium_of(MediumTable.model_validate({**table, "average": False}), grid, tmp_path)
    np.testing.assert_array_equal(sharp.density, np.where(inside, 2000.0, 1000.0))
    density = np.asarray(medium_of(MediumTable.model_validate(table), grid, tmp_path).density)
    assert density.mean() == pytest.approx(np.asarray(sharp.density).mean(), rel=0.02)
    assert ((density > 1000.0) & (density < 2000.0)).any()
    tables = [
        {"name": "a", "density": "1000 kg/m^3", "cp": "1500 m/s"},
        {"name": "b", "density": "2000 kg/m^3", "cp": "3000 m/s", "where": where},
    ]
    media = Media([MaterialTable.model_validate(one) for one in tables], dim, tmp_path)
    np.testing.assert_array_equal(media.at(points.reshape(-1, dim))[0], np.asarray(sharp.density).reshape(-1))
    np.save(tmp_path / "a.npy", inside)
    image = {"kind": "image", "file": "a.npy", "voxel": ["1 mm"] * dim, "position": ["-12 mm"] * dim, "smoothing": 0.0}
    tables[1]["where"] = image
    media = Media([MaterialTable.model_validate(one) for one in tables], dim, tmp_path)
    np.testing.assert_array_equal(media.at(points.reshape(-1, dim))[0], np.asarray(sharp.density).reshape(-1))


def test_a_wrong_key_in_a_part_is_named(tmp_path: Path) -> None:
    tables = flow_tables({"solid": {"kind": "union", "of": [SPHERE, {**SPHERE, "radius": "-1 m"}]}})
    with pytest.raises(CaseError, match=r"geometry\.solid\.of\[1\]\.radius"):
        check_case(tables, SOURCE)
    tables = flow_tables({"solid": {"kind": "pyramid"}})
    with pytest.raises(CaseError, match="pyramid"):
        check_case(tables, SOURCE)
