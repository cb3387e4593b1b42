# SPDX-License-Identifier: BSD-3-Clause
"""A geometry is the same for any number of ranks, each of which creates its share of it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import launch
import numpy as np
import pytest
from rank_memory import peak_memory, reset_peak_memory

from seiche.domain import cut_links, shared_memory
from seiche.domain.axial_solids import SolidCapsule, SolidCylinder
from seiche.domain.set_up_ranks import own_part, own_share, set_up_on
from seiche.domain.shapes import bifurcation_surface, box, duct, sites_from_distance, tube
from seiche.domain.sharing import shared_surface
from seiche.domain.sites import SiteSet
from seiche.domain.surface import Surface
from seiche.domain.tree_surface import tree_surface
from seiche.domain.voxelise import voxelise
from seiche.domain.voxels import VoxelImage, VoxelRegion, surface_of_region
from seiche.domain.world import World
from seiche.errors import CaseError, FormatError
from seiche.flow import FlowModel, Newtonian, Precision, PressureIolet, Regularised, Solver
from seiche.io.formats.gmy import read_gmy, write_gmy

NO_MEMORY = Path("/no such folder")


def vessel() -> SiteSet:
    surface, planes = bifurcation_surface()
    return voxelise(surface, 4e-4, planes)[0]


def vessel_with_a_hole() -> SiteSet:
    surface, planes = bifurcation_surface()
    return voxelise(Surface(surface.vertices, np.delete(surface.faces, [4000], axis=0)), 4e-4, planes)[0]


def vessel_around_a_body() -> SiteSet:
    surface, planes = bifurcation_surface()
    middle = surface.vertices.mean(axis=0)
    body = SolidCapsule(tuple(middle - 1e-3), tuple(middle + 1e-3), 1e-3)
    return voxelise(surface, 4e-4, planes, obstacles=[body])[0]


def tree() -> SiteSet:
    surface, planes = tree_surface(2e-3, 6)
    return voxelise(surface, 4e-4, planes)[0]


def mask() -> SiteSet:
    def surface() -> Surface:
        x, y, z = np.indices((24, 20, 18)) - np.array([0.0, 9.5, 8.5]).reshape(3, 1, 1, 1)
        inside = (y - 2 * np.sin(x / 6)) ** 2 + z**2 < 36.0
        image = VoxelImage(inside.astype(np.uint8), 1e-3 * np.eye(3), np.zeros(3))
        return surface_of_region(image, VoxelRegion(), (True, False, False))

    return voxelise(shared_surface(surface), 0.8e-3, periodic=(True, False, False))[0]


def solid() -> SiteSet:
    body = SolidCylinder((0.0, 0.0, 0.0), (9.0, 4.0, -3.0), 4.0)
    low, high = body.bounds()
    return sites_from_distance(lambda points: -body.depth(points), low, high, 0.5)


GEOMETRIES: dict[str, Callable[[], SiteSet]] = {
    "tube": lambda: tube(9.0, 40.0, 1.0),
    "tilted tube": lambda: tube(7.3, 40.0, 1.0, (1.0, 0.4, -0.3)),
    "periodic tube": lambda: tube(6.0, 20.0, 1.0, (0.0, 0.0, 1.0), periodic=True),
    "duct around a body": lambda: duct(8.0, 9.0, 30.0, 1.0, obstacles=[SolidCylinder((9, 0, 4), (12, 8, 5), 2.0)]),
    "box": lambda: box((3, 4, 5)),
    "vessel": vessel,
    "vessel with a hole": vessel_with_a_hole,
    "vessel around a body": vessel_around_a_body,
    "tree": tree,
    "mask": mask,
    "solid": solid,
}


def assert_equal(sites: SiteSet, expected: SiteSet, name: str = "") -> None:
    for item in fields(SiteSet):
        actual = getattr(sites, item.name)
        np.testing.assert_array_equal(actual, getattr(expected, item.name), err_msg=f"{name}: {item.name}")
        assert getattr(actual, "dtype", None) == getattr(getattr(expected, item.name), "dtype", None)


@pytest.mark.ranks(1, 2, 3, 4, nodes=("2+1",))
def test_sites_and_links_are_those_of_one_rank(monkeypatch: pytest.MonkeyPatch):
    world = World.from_mpi()
    expected = {name: make() for name, make in GEOMETRIES.items()}
    monkeypatch.setattr(shared_memory, "MIN_SHARED_BYTES", 1)
    monkeypatch.setattr(cut_links, "_CHUNK", 999)
    for name, make in GEOMETRIES.items():
        with set_up_on(world):
            sites = make()
        assert_equal(sites, expected[name], name)


@pytest.mark.ranks(2, nodes=("2+1",))
def test_ranks_without_shared_memory_have_copies(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shared_memory, "SHARED_MEMORY", NO_MEMORY)
    with set_up_on(World.from_mpi()):
        sites = GEOMETRIES["tilted tube"]()
    assert_equal(sites, GEOMETRIES["tilted tube"]())


@pytest.mark.ranks(1, 2, 3, 4)
@pytest.mark.parametrize("plus", [False, True])
def test_blocks_of_a_file_are_read_by_all_ranks(plus: bool, tmp_path: Path):
    world, source = World.from_mpi(), vessel()
    path = Path(world.bcast(str(tmp_path / ("vessel.gmy+" if plus else "vessel.gmy"))))
    if world.rank == 0:
        write_gmy(path, source, weights="sites" if plus else None)
    world.barrier()
    expected = read_gmy(path, spacing=4e-4)
    with set_up_on(world):
        sites = read_gmy(path, spacing=4e-4)
    assert_equal(sites, expected)
    np.testing.assert_array_equal(sites.link_kind, source.link_kind)
    np.testing.assert_array_equal(sites.link_fraction, source.link_fraction)
    world.barrier()


@pytest.mark.ranks(1, 3)
def test_all_ranks_reject_a_damaged_block(tmp_path: Path):
    world = World.from_mpi()
    path = Path(world.bcast(str(tmp_path / "vessel.gmy")))
    if world.rank == 0:
        write_gmy(path, GEOMETRIES["tube"]())
        data = bytearray(path.read_bytes())
        data[-9] ^= 0xFF  # in the last block, which the last rank reads
        path.write_bytes(data)
    world.barrier()
    with set_up_on(world), pytest.raises(FormatError, match=r"vessel\.gmy: block \d+ \(byte \d+\): its zlib stream"):
        read_gmy(path)
    world.barrier()


@pytest.mark.ranks(1, 3)
def test_all_ranks_reject_openings_at_one_site():
    surface, planes = bifurcation_surface()
    with set_up_on(World.from_mpi()), pytest.raises(CaseError, match="touches no site"):
        voxelise(surface, 4e-4, [*planes, planes[-1]])


@pytest.mark.ranks(1, 2, 3)
def test_shares_cover_all_items():
    world = World.from_mpi()
    weights = np.array([0, 5, 5, 6, 30, 31])
    with set_up_on(world):
        for count, multiple in ((0, 1), (2, 1), (17, 1), (17, 4)):
            shares = world.allgather(own_share(count, multiple))
            assert [item for share in shares for item in share] == list(range(count))
            assert all(share.start % multiple == 0 or share.start == count for share in shares)
        parts = world.allgather(own_part(weights))
    assert [item for part in parts for item in part] == list(range(5))


@pytest.mark.ranks(2, 4)
@pytest.mark.parametrize("name", ["tube", "vessel"])
def test_rank_zero_needs_no_more_memory_than_others(name: str):
    """Memory of each rank, without that which ranks of a host share, at the peak of the set-up."""
    world = World.from_mpi()
    surface, planes = bifurcation_surface()
    with set_up_on(world):
        tracemalloc.start()
        sites = tube(30.0, 600.0, 1.0) if name == "tube" else voxelise(surface, 1e-4, planes)[0]
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    peaks = np.array(world.allgather(peak))
    assert len(sites) > 180_000
    assert peaks[0] <= 1.1 * np.median(peaks)


def compare_memory_up_to_the_first_step(layout: str, storage: str) -> None:
    """Compare the resident memory of the ranks, also of libraries, at the peak from the vessel to the first step."""
    world = World.from_mpi()
    compute = "float32" if layout == "moments" else "float64"
    model = FlowModel(Newtonian(0.1), Regularised(), iolets=(PressureIolet(1.001), PressureIolet(0.999)))
    options = {"layout": layout, "precision": Precision(compute, storage), "world": world, "threads": 1}
    small = tube(6.0, 40.0, 1.0)
    Solver(small, model, **options).advance(1)  # imports and compiles
    before = reset_peak_memory()
    with set_up_on(world):
        sites = tube(40.0, 600.0, 1.0)
    solver = Solver(sites, model, **options)
    solver.advance(1)
    peaks = np.array(world.allgather(peak_memory() - before))
    assert len(sites) > 3_000_000
    assert peaks[0] <= 1.1 * np.median(peaks), f"{peaks / 1e6} MB"


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize(("layout", "storage"), [("moments", "float32"), ("list-aa", "float64")])
def test_rank_zero_needs_no_more_memory_than_others_up_to_the_first_step(ranks: int, layout: str, storage: str):
    """In processes of their own: memory that other tests freed but left in a heap would hide as much."""
    pytest.importorskip("pymetis")
    pytest.importorskip("scipy.sparse.csgraph")
    launch.run_ranks(ranks, compare_memory_up_to_the_first_step, layout, storage, timeout=200.0, new_processes=True)
