# SPDX-License-Identifier: BSD-3-Clause
"""Voxelise a triangulated vessel with openings into fluid sites.

The surface may be closed and cut by the iolet planes, or open with a rim at each plane. It may have holes: they do not
leak, since the inside is determined by the generalised winding number, and each is reported with its position and size.
Walls and gaps thinner than the spacing are not resolved: neighbouring sites are assumed to be connected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from seiche.domain.assemble import DroppedComponent, assemble
from seiche.domain.candidates import RIM_MARGIN, TOUCH_TOLERANCE, CandidateNodes, Floats, WallFinder, WallHits
from seiche.domain.implicit_walls import ImplicitWall
from seiche.domain.inside import nodes_inside
from seiche.domain.obstacles import no_wall, with_obstacles
from seiche.domain.periodic_ends import END_TOLERANCE, NO_IOLET, PERIODIC, PeriodicEnds
from seiche.domain.set_up_ranks import joined, own_share
from seiche.domain.sites import IoletPlane, SiteSet
from seiche.domain.solids import SolidBody
from seiche.domain.surface import Loop, Surface
from seiche.domain.surface_hits import SurfaceWall
from seiche.errors import CaseError
from seiche.set_up import set_up_stage

#: Maximum number of nodes in the bounding box; more indicate a wrong spacing or unit.
MAX_NODES = 1 << 35
#: Note about a surface that was reversed.
REVERSED_NOTE = "the surface is inside out (its volume is negative): its triangles were reversed"
#: Nodes processed per pass, so that work arrays fit in the cache.
CHUNK = 1 << 19
#: Tolerance in spacings for a triangle in the plane of an iolet, which closes the opening.
CAP_DISTANCE = 0.5


@dataclass(frozen=True)
class VoxelReport:
    """Defects found by `voxelise`.

    `holes` are open rims of the surface without an iolet (metres); `dropped` are components without an iolet, the
    largest first; `unresolved_links` met no triangle because of a hole and were cut half way. `is_reversed` is whether
    the surface was inside out.
    """

    holes: tuple[Loop, ...]
    dropped: tuple[DroppedComponent, ...]
    unresolved_links: int
    narrow: tuple[str, ...] = ()
    orientation_conflicts: str = ""
    is_reversed: bool = False

    def lines(self) -> list[str]:
        """Return one line of text for each defect."""
        lines = [REVERSED_NOTE] if self.is_reversed else []
        lines += [f"hole of radius {loop.radius:.3g} m at {_point_text(loop.center)} m" for loop in self.holes]
        lines += [
            f"{component.sites} sites around {_point_text(component.center)} m were removed: this part of the vessel"
            " has no iolet"
            for component in self.dropped
        ]
        if self.unresolved_links:
            lines.append(
                f"{self.unresolved_links} wall links run through a hole; the wall is placed half way along them"
            )
        return [*lines, *self.narrow] + ([self.orientation_conflicts] if self.orientation_conflicts else [])


@set_up_stage("voxelise")
def voxelise(
    surface: Surface,
    spacing: float,
    iolets: Sequence[IoletPlane] = (),
    *,
    origin: tuple[float, float, float] | None = None,
    periodic: tuple[bool, bool, bool] = (False, False, False),
    obstacles: Sequence[SolidBody] = (),
) -> tuple[SiteSet, VoxelReport]:
    """Return the fluid sites inside `surface` (metres) and a report of its defects.

    `spacing` is in metres. An iolet cuts the vessel within its radius (None: the whole cross-section around its
    center); its normal points into the fluid. `origin` is the position of the site (0, 0, 0); without it, sites are at
    (i + 1/2) spacing and the box is minimal.

    An inverted surface is reversed. Along `periodic` axes the surface repeats: it ends in two planes, by open rims or
    flat triangles, and its length must be a whole number of spacings. `obstacles` are solid bodies in the vessel.

    Link fractions and wall normals are those of the triangles that the links intersect.

    Raises:
        CaseError: the spacing results in no site or too many, or `origin` is inside the bounding box of the vessel.
            An iolet has no sites, its normal points out of the fluid, or two iolets are at one site. The length of a
            periodic surface is not a whole number of spacings.
    """
    conflict_text, outward = _orientation_conflict_text(surface), surface.outward()
    try:
        sites, report = _voxelise(outward, spacing, iolets, origin, periodic, obstacles=obstacles)
    except CaseError as error:
        raise CaseError(f"{conflict_text}; {error}") if conflict_text else error from None
    return sites, replace(report, orientation_conflicts=conflict_text, is_reversed=outward is not surface)


def _orientation_conflict_text(surface: Surface) -> str:
    """Return a message about neighbouring triangles of opposite orientation, "" if there are none."""
    midpoints = surface.orientation_conflicts()
    if not len(midpoints):
        return ""
    edges = f"{len(midpoints)} edges, one of them at {_point_text(midpoints[0])} m"
    return (
        f"part of the surface is inside out: triangles have opposite orientations at {edges}; orient all normals "
        "outwards"
    )


def _voxelise(
    surface: Surface,
    spacing: float,
    iolets: Sequence[IoletPlane],
    origin: tuple[float, float, float] | None,
    periodic: tuple[bool, bool, bool],
    *,
    obstacles: Sequence[SolidBody],
) -> tuple[SiteSet, VoxelReport]:
    if not (np.isfinite(spacing) and spacing > 0.0):
        raise CaseError(f"spacing = {spacing:g} m must be positive")
    planes = [_validated(plane) for plane in iolets]
    loops = surface.boundary_loops()
    extent = np.ptp(surface.vertices, axis=0) if len(surface.vertices) else np.zeros(3)
    if extent.max() < spacing:
        size = f"it is {extent.max():.3g} m long; check spacing and unit"
        raise CaseError(f"the surface contains no site at the spacing {spacing:g} m: {size}")
    ends = PeriodicEnds.of(surface, spacing, periodic)
    owner = [PERIODIC if ends.contain(loop) else iolet_of_rim(loop, planes, spacing) for loop in loops]
    narrow = _narrow_iolets(loops, owner, planes)
    caps = [(loop, index) for loop, index in zip(loops, owner, strict=True) if index >= 0 or index == PERIODIC]
    closed = surface.capped([loop for loop, _ in caps])
    lattice = _lattice(surface, spacing, origin, periodic)
    rows = nodes_inside(closed, spacing, np.asarray(lattice.origin), lattice.shape, lattice.periodic)
    if not len(rows):
        raise CaseError(f"the surface contains no site at the spacing {spacing:g} m; check spacing and unit")
    lattice = replace(lattice, rows=rows)
    planes = [_bounded(plane, lattice, caps, index) for index, plane in enumerate(planes)]
    labels = _face_labels(closed, planes, spacing)
    if caps:
        labels[len(surface.faces) :] = np.repeat([index for _, index in caps], [len(loop.vertices) for loop, _ in caps])
    wall = SurfaceWall(*ends.repeated(closed, labels))
    find, lattice = (wall.find, lattice) if not obstacles else _around(obstacles, lattice, wall)
    sites, dropped, unresolved = assemble(lattice, planes, find, trim=origin is None)
    holes = tuple(loop for loop, index in zip(loops, owner, strict=True) if index == NO_IOLET)
    return sites, VoxelReport(holes, tuple(dropped), unresolved, narrow)


def _around(
    obstacles: Sequence[SolidBody], lattice: CandidateNodes, wall: SurfaceWall
) -> tuple[WallFinder, CandidateNodes]:
    """Return the first hits of links with the surface or an obstacle, and the lattice without nodes in obstacles."""
    spacing, node = lattice.spacing, np.asarray(lattice.origin)
    low = node - 0.5 * spacing
    box = (low, low + spacing * np.array(lattice.shape))
    distance = with_obstacles(no_wall, obstacles, box, spacing, lattice.periodic, node=node)
    own_rows, solid = own_share(len(lattice.rows)), [np.zeros(0, np.int64)]
    for first in range(own_rows.start, own_rows.stop, CHUNK):
        nodes = np.arange(first, min(first + CHUNK, own_rows.stop))
        solid.append(nodes[~(distance(lattice.positions(nodes)) < -TOUCH_TOLERANCE * spacing)])
    bodies = ImplicitWall(distance, spacing)

    def find(nodes: CandidateNodes, node: npt.NDArray[np.int64], direction: npt.NDArray[np.int64]) -> WallHits:
        first, second = wall.find(nodes, node, direction), bodies.find(nodes, node, direction)
        is_body = np.nan_to_num(second.fraction, nan=np.inf) < np.nan_to_num(first.fraction, nan=np.inf)
        return WallHits(
            np.where(is_body, second.fraction, first.fraction),
            np.where(is_body[:, None], second.normal, first.normal),
            np.where(is_body, np.int16(-1), first.iolet),
        )

    return find, replace(lattice, rows=lattice.rows.without(joined(np.concatenate(solid))))


def _validated(plane: IoletPlane) -> IoletPlane:
    length = float(np.linalg.norm(plane.normal))
    if not (np.isfinite(length) and length > 0.0 and np.isfinite(plane.center).all()):
        raise CaseError(f'iolet "{plane.name}" requires a finite center and a normal that is not zero')
    if plane.radius is not None and not (np.isfinite(plane.radius) and plane.radius > 0.0):
        raise CaseError(f'iolet "{plane.name}": radius = {plane.radius:g} m must be positive')
    x, y, z = (value / length for value in plane.normal)
    return replace(plane, normal=(x, y, z))


def _lattice(
    surface: Surface,
    spacing: float,
    origin: tuple[float, float, float] | None,
    periodic: tuple[bool, bool, bool],
) -> CandidateNodes:
    """Return the empty lattice over the bounding box of `surface`."""
    low, high = surface.vertices.min(axis=0) / spacing, surface.vertices.max(axis=0) / spacing
    if (nodes := float(np.prod(high - low + 1.0))) > MAX_NODES:
        raise CaseError(
            f"the box around the surface has {nodes:.3g} nodes at the spacing {spacing:g} m; check unit and spacing"
        )
    if origin is None:
        first = np.where(periodic, low, np.floor(low))
        size = np.where(periodic, np.round(high - low), np.ceil(high) - first)
        first_site = (first + 0.5) * spacing
    else:
        first_site = np.asarray(origin, float)
        if np.any(np.ceil(low - first_site / spacing) < 0.0):
            corner = _point_text(low * spacing)
            raise CaseError(
                f"the surface extends below the origin {_point_text(origin)} m; move the origin to {corner} m"
            )
        if np.any(np.where(periodic, np.abs(first_site / spacing - low - 0.5) > END_TOLERANCE, False)):
            raise CaseError("a periodic surface begins half a spacing before the first site; omit the origin")
        size = np.where(periodic, np.round(high - low), np.floor(high - first_site / spacing) + 1.0)
    nx, ny, nz = np.maximum(size, 1).astype(np.int64).tolist()
    x, y, z = first_site.tolist()
    return CandidateNodes.of((nx, ny, nz), np.zeros((0, 3), np.int32), spacing, (x, y, z), periodic)


def iolet_of_rim(loop: Loop, planes: Sequence[IoletPlane], spacing: float) -> int:
    """Return the iolet that covers the open rim `loop`, or -1; CaseError if its normal points out of the fluid."""
    for index, plane in enumerate(planes):
        offset = np.asarray(loop.center) - plane.center
        height = float(offset @ np.asarray(plane.normal))
        lateral = float(np.linalg.norm(offset - height * np.asarray(plane.normal)))
        facing = float(np.dot(loop.normal, plane.normal))
        if abs(height) > max(2.0 * spacing, 0.5 * loop.radius) or abs(facing) < 0.5:
            continue
        if lateral <= max(loop.radius, plane.radius or 0.0):
            if facing > 0.0:
                raise CaseError(f'iolet "{plane.name}": its normal points out of the fluid; reverse it')
            return index
    return NO_IOLET


def _narrow_iolets(loops: Sequence[Loop], owner: Sequence[int], planes: Sequence[IoletPlane]) -> tuple[str, ...]:
    """Return messages about iolets that are narrower than their open rim."""
    return tuple(
        f'iolet "{planes[index].name}" of radius {planes[index].radius:.3g} m is narrower than its opening, whose '
        f"rim has a mean radius of {loop.radius:.3g} m; the rest of the opening is treated as wall"
        for loop, index in zip(loops, owner, strict=True)
        if index >= 0 and (planes[index].radius or np.inf) < 0.8 * loop.radius
    )


def _bounded(plane: IoletPlane, lattice: CandidateNodes, caps: Sequence[tuple[Loop, int]], index: int) -> IoletPlane:
    """Set the radius of an unbounded plane to that of its rim, or of the fluid cross-section around its center."""
    if plane.radius is not None:
        return plane
    rims = [loop for loop, cap_index in caps if cap_index == index]
    radii = [loop.radius + float(np.linalg.norm(np.subtract(loop.center, plane.center))) for loop in rims]
    radius = max(radii) if radii else _section_radius(plane, lattice)
    return replace(plane, radius=radius)


def _section_radius(plane: IoletPlane, lattice: CandidateNodes) -> float:
    """Return the extent from the center of the fluid connected within one spacing of the plane."""
    from scipy.ndimage import label

    node_blocks = [np.zeros((0, 3), np.int64)]
    for first in range(0, len(lattice.rows), CHUNK):
        coords = lattice.rows.coords_of(np.arange(first, min(first + CHUNK, len(lattice.rows))))
        height = (lattice.positions_of(coords) - plane.center) @ np.asarray(plane.normal)
        node_blocks.append(coords[np.abs(height) <= lattice.spacing])
    nodes = np.concatenate(node_blocks)
    if not len(nodes):
        raise CaseError(f'iolet "{plane.name}" touches no site; check its center, normal and radius')
    low = nodes.min(axis=0)
    mask = np.zeros(nodes.max(axis=0) - low + 1, bool)
    mask[tuple((nodes - low).T)] = True
    component_labels = label(mask, np.ones((3, 3, 3)))[0][tuple((nodes - low).T)]
    offset = np.linalg.norm(np.asarray(lattice.origin) + lattice.spacing * nodes - plane.center, axis=1)
    return float(offset[component_labels == component_labels[offset.argmin()]].max())


def _face_labels(surface: Surface, planes: Sequence[IoletPlane], spacing: float) -> npt.NDArray[np.int16]:
    """Return the iolet whose opening each triangle closes, -1 for the wall."""
    labels = np.full(len(surface.faces), -1, np.int16)
    area = surface.vector_areas()
    for index, plane in enumerate(planes):
        limit = np.inf if plane.radius is None else plane.radius + 2.0 * RIM_MARGIN * spacing
        near = surface.vertices_near(plane.center, limit)
        height = (surface.vertices[near] - plane.center) @ np.asarray(plane.normal)
        in_plane = np.zeros(len(surface.vertices), bool)
        in_plane[near[np.abs(height) <= CAP_DISTANCE * spacing]] = True
        faces = surface.faces_within(in_plane)
        facing = area[faces] @ np.asarray(plane.normal)
        parallel = np.abs(facing) >= 0.99 * np.linalg.norm(area[faces], axis=1)
        if facing[parallel].sum() > 0.0:
            raise CaseError(f'iolet "{plane.name}": its normal points out of the fluid; reverse it')
        labels[faces[parallel]] = index
    return labels


def _point_text(point: Sequence[float] | Floats) -> str:
    return "(" + ", ".join(f"{value:.4g}" for value in point) + ")"
