# SPDX-License-Identifier: BSD-3-Clause
"""Kernels that generate the sites of a vessel and their links, `kernels/sites/`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from .spec import KernelSpec, Members, pointers, typed_members

WallName = Literal["RoundTube", "Plates"]

#: Sites of a block that `run_starts` handles (`RunStarts::block`).
BLOCK = 4096
#: Description of the kernels in the CPU table.
BUILT = "all kernels for the sites of a vessel"
_TRIPLE: tuple[str, int] = ("float64", 3)
_PAIR: tuple[str, int] = ("float64", 2)
_COORDS: tuple[str, int] = ("int32", 3)
#: Members of the walls of the built-in shapes.
WALLS: dict[WallName, Members] = {
    "RoundTube": (("axis", _TRIPLE), ("radius", "float64")),
    "Plates": typed_members(_PAIR, "center half"),
}
_ENDS: Members = (("axis", _TRIPLE), ("length", "float64"), ("bounded", "int32"))
_GRID: Members = (("origin", _TRIPLE), ("spacing", "float64"), ("shape", _COORDS))
_TRIANGLES: Members = pointers("corners vertices")
_ROWS: Members = (*pointers("first begin end site row"), *typed_members(_COORDS, "shape periodic"))


def wall_distance(wall: WallName) -> KernelSpec:
    """Evaluate the distance of points from a wall."""
    members: Members = (("wall", WALLS[wall]), *pointers("points out"))
    return KernelSpec(f"WallDistance<{wall}>", "sites/shapes.hpp", members)


def fluid_runs(wall: WallName, *, fill: bool) -> KernelSpec:
    """Count the runs of fluid nodes in each row of a box, or write them."""
    members: Members = (("grid", _GRID), ("wall", WALLS[wall]), ("ends", _ENDS), ("tolerance", "float64"))
    name = f"FluidRuns<{wall},{_flag(fill)}>"
    return KernelSpec(name, "sites/voxels.hpp", (*members, *pointers("first counts begin end")))


def run_coords() -> KernelSpec:
    """Write the coordinates of the sites of each run."""
    return KernelSpec("RunCoords", "sites/rows.hpp", (("rows", _ROWS), ("low", _COORDS), ("out", "ptr")))


def absent_links(*, fill: bool) -> KernelSpec:
    """Count the sites of each run with absent neighbours, or write them."""
    members: Members = (("rows", _ROWS), *pointers("first counts sites links"))
    return KernelSpec(f"AbsentLinks<{_flag(fill)}>", "sites/links.hpp", members)


def wall_roots(wall: WallName) -> KernelSpec:
    """Find the intersections of links with a wall."""
    members: Members = (("wall", WALLS[wall]), ("origin", _TRIPLE), ("spacing", "float64"))
    return KernelSpec(
        f"WallRoots<{wall}>", "sites/links.hpp", (*members, *pointers("coords node direction fraction normal"))
    )


def cut_links() -> KernelSpec:
    """Classify the links of sites that leave the fluid."""
    names = "links first hit_fraction hit_normal hit_iolet disc_fraction disc kinds"
    results = "kind iolet fraction normal opens unresolved"
    return KernelSpec("CutLinks", "sites/links.hpp", pointers(f"{names} {results}"))


def line_crossings(*, fill: bool) -> KernelSpec:
    """Count the crossings of triangles with lattice lines along z, or write them."""
    members: Members = (("surface", _TRIANGLES), ("shape", _COORDS), *pointers("first counts row height sign"))
    return KernelSpec(f"LineCrossings<{_flag(fill)}>", "sites/triangles.hpp", members)


def wound_runs(*, fill: bool) -> KernelSpec:
    """Count the runs of nodes inside a surface in each row, or write them."""
    members: Members = (*pointers("first height sign"), ("nz", "int32"), *pointers("target counts begin end open"))
    return KernelSpec(f"WoundRuns<{_flag(fill)}>", "sites/triangles.hpp", members)


def nodes_on_surface(*, fill: bool) -> KernelSpec:
    """Count the nodes on triangles, or write them."""
    members: Members = (("surface", _TRIANGLES), ("shape", _COORDS), ("reach", "float64"))
    return KernelSpec(
        f"NodesOnSurface<{_flag(fill)}>", "sites/triangles.hpp", (*members, *pointers("first counts nodes"))
    )


def triangle_cells(*, fill: bool) -> KernelSpec:
    """Count the cells of nodes whose links may meet triangles, or write them."""
    members: Members = (("surface", _TRIANGLES), ("shape", _COORDS), *typed_members("float64", "longest margin"))
    return KernelSpec(
        f"TriangleCells<{_flag(fill)}>", "sites/surface_hits.hpp", (*members, *pointers("first counts pieces cells"))
    )


def surface_link_hits() -> KernelSpec:
    """Find the first triangles that links meet."""
    members: Members = (
        *(("surface", _TRIANGLES), ("shape", _COORDS)),
        *pointers("coords node direction first cells cell_first"),
        ("cell_count", "int64"),
        *pointers("faces group unit label"),
        *typed_members("float64", "edge_tolerance reach margin"),
        *pointers("fraction normal iolet"),
    )
    # 48 bytes on sm_100; it runs once, in the set-up.
    return KernelSpec("SurfaceLinkHits", "sites/surface_hits.hpp", members, may_spill=True)


def run_starts(*, fill: bool) -> KernelSpec:
    """Count the runs that begin in each block of ascending sites, or write their first sites."""
    members: Members = (*pointers("coords"), ("count", "int64"), *pointers("first counts starts"))
    return KernelSpec(f"RunStarts<{_flag(fill)}>", "sites/neighbours.hpp", members)


def run_neighbours() -> KernelSpec:
    """Find the neighbours of sites along one direction."""
    members: Members = (("own", _ROWS), ("all", _ROWS), ("vector", _COORDS), ("out", "ptr"))
    return KernelSpec("RunNeighbours", "sites/neighbours.hpp", members)


def tile_items() -> KernelSpec:
    """Find the items of sites in tiles."""
    members: Members = (("rows", _ROWS), ("edge", "int32"), ("extent", _COORDS), ("keys", "ptr"), ("tiles", "int64"))
    return KernelSpec("TileItems", "sites/neighbours.hpp", (*members, *pointers("number item")))


def block_links() -> KernelSpec:
    """Sum the weights of cubes of sites and count the links between them."""
    members: Members = (("rows", _ROWS), ("blocks", _ROWS), ("edge", "int32"))
    # 52 bytes on sm_100; it runs once, in the set-up.
    names = pointers("site_weights weights links")
    return KernelSpec("BlockLinks", "sites/blocks.hpp", (*members, *names), may_spill=True)


def owner_pieces(*, fill: bool) -> KernelSpec:
    """Count the pieces of runs with one owner, or write them."""
    members: Members = (("rows", _ROWS), ("blocks", _ROWS), ("edge", "int32"))
    names = pointers("owner first counts starts owners")
    return KernelSpec(f"OwnerPieces<{_flag(fill)}>", "sites/blocks.hpp", (*members, *names))


def remote_links(*, fill: bool) -> KernelSpec:
    """Count the links of each run of a rank to sites of other ranks, or write them."""
    members: Members = (("own", _ROWS), ("all", _ROWS), ("vector", _COORDS), *pointers("start end"))
    names = pointers("first counts rows sites")
    # 8 bytes on sm_90; it runs once for each direction, in the set-up.
    members = (*members, ("pieces", "int64"), *names)
    return KernelSpec(f"RemoteLinks<{_flag(fill)}>", "sites/owned.hpp", members, may_spill=True)


def placed_slots() -> KernelSpec:
    """Find the slots that populations arrive from along one direction, in a list of sites in another order."""
    members: Members = (*pointers("upwind item"), *typed_members("int64", "toward back"), ("out", "ptr"))
    return KernelSpec("PlacedSlots", "sites/owned.hpp", members)


def slot_runs(*, fill: bool) -> KernelSpec:
    """Count the pieces of the runs of slots of an adjacency, or write runs and pieces."""
    members: Members = (("adjacency", "ptr"), ("stride", "int64"), ("directions", "int32"))
    return KernelSpec(
        f"SlotRuns<{_flag(fill)}>", "sites/neighbours.hpp", (*members, *pointers("first counts rows pieces"))
    )


def built_kernels() -> Iterator[KernelSpec]:
    """Yield the specialisations of the CPU table."""
    yield run_coords()
    yield cut_links()
    yield surface_link_hits()
    yield run_neighbours()
    yield tile_items()
    yield block_links()
    yield placed_slots()
    for wall in WALLS:
        yield wall_distance(wall)
        yield wall_roots(wall)
    for fill in (False, True):
        yield absent_links(fill=fill)
        yield line_crossings(fill=fill)
        yield wound_runs(fill=fill)
        yield nodes_on_surface(fill=fill)
        yield triangle_cells(fill=fill)
        yield run_starts(fill=fill)
        yield slot_runs(fill=fill)
        yield owner_pieces(fill=fill)
        yield remote_links(fill=fill)
        for wall in WALLS:
            yield fluid_runs(wall, fill=fill)


def _flag(value: bool) -> str:
    return "true" if value else "false"
