# SPDX-License-Identifier: BSD-3-Clause
"""A bifurcation with an aneurysm at its apex, as a triangulated surface.

The wall is the zero level of a signed distance field: tubes around center lines, a spherical sac and its neck, joined
by a smooth minimum. It is meshed by marching cubes and cut flat at the three openings. The default sizes are those of a
cerebral artery, not of a patient: parent radius 1.5 mm, daughters by Murray's law (the cubes of their radii add up to
that of the parent), with the smaller one at the larger angle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from seiche.domain.sites import IoletPlane
from seiche.domain.surface import Floats, Surface
from seiche.domain.tube_union import CenterlineTube, is_rim_of, smooth_union, triple
from seiche.errors import CaseError

#: Angle by which a daughter bends back towards the parent's direction (radians).
BEND_ANGLE = np.radians(25.0)
#: Inclination of the sac towards the second daughter (radians).
LEAN_ANGLE = np.radians(6.0)
_SEGMENTS = 32
#: Nodes of the meshing grid along each side of a block.
_BLOCK = 4


def bifurcation_surface(
    parent_radius: float = 1.5e-3,
    daughter_radii: tuple[float, float] = (1.25e-3, 1.12e-3),
    angles: tuple[float, float] = (0.92, 1.08),
    sac_radius: float = 2.0e-3,
    *,
    parent_length: float = 9.0e-3,
    daughter_length: float = 9.5e-3,
    open_ends: bool = True,
    resolution: float | None = None,
) -> tuple[Surface, tuple[IoletPlane, IoletPlane, IoletPlane]]:
    """Return the surface (metres) and its openings "inlet", "outlet1" and "outlet2".

    The vessel is in the plane z = 0. Blood enters at x = -`parent_length` along +x and divides at the origin. The first
    daughter leaves towards +y and the second towards -y, at `angles` (radians) to the parent's axis; both are about
    `daughter_length` long and bent slightly forwards. The sac of `sac_radius` is on a neck at the apex; zero omits it.
    With `open_ends` the rims of the three openings are exactly in the iolet planes; otherwise they are capped.
    `resolution` is the spacing of the meshing grid (default: a tenth of the parent's radius). Raises CaseError for
    sizes that do not give one vessel with three ends.
    """
    radii = (parent_radius, *daughter_radii)
    if not (min(*radii, parent_length, daughter_length) > 0.0 and sac_radius >= 0.0):
        raise CaseError("a bifurcation requires positive radii and lengths")
    if not all(np.radians(20.0) <= angle <= np.radians(100.0) for angle in angles):
        raise CaseError(f"angles = {angles} rad must lie between 0.35 and 1.74 (20 and 100 degrees)")
    start = np.array([-parent_length, 0.0, 0.0])
    lines = [np.stack([np.zeros(3), start])]
    for side, angle in zip((1.0, -1.0), angles, strict=True):
        lines.append(_daughter(side, angle, daughter_length))
    planes, tubes = [], []
    for name, line, radius in zip(("inlet", "outlet1", "outlet2"), lines, radii, strict=True):
        outwards = (line[-1] - line[-2]) / np.linalg.norm(line[-1] - line[-2])
        role: Literal["inlet", "outlet"] = "inlet" if name == "inlet" else "outlet"
        planes.append(IoletPlane(name, role, triple(line[-1]), triple(-outwards), radius))
        tubes.append(CenterlineTube(np.concatenate([line, [line[-1] + 0.8 * radius * outwards]]), radius))
    sac = _sac_and_neck(daughter_radii, angles, sac_radius)
    widths = [0.6 * sac_radius] * len(sac) + [0.3 * parent_radius] * len(tubes)
    surface = _mesh([*sac, *tubes], widths, resolution or 0.1 * parent_radius)
    for plane, radius in zip(planes, radii, strict=True):
        surface = surface.clipped(plane.center, plane.normal, 2.2 * radius)
    loops = surface.boundary_loops()
    if len(loops) != 3 or not all(any(is_rim_of(plane, loop) for loop in loops) for plane in planes):
        raise CaseError("these sizes do not give three round openings; make the vessels longer or the sac smaller")
    return surface if open_ends else surface.capped(loops), (planes[0], planes[1], planes[2])


def _daughter(side: float, angle: float, length: float) -> Floats:
    """Return the center line (k, 3) of a daughter, a quadratic Bezier curve from the origin."""
    end_angle = angle - min(BEND_ANGLE, 0.5 * angle)
    half_length = 0.5 * length
    middle = half_length * np.array([np.cos(angle), side * np.sin(angle), 0.0])
    end = middle + half_length * np.array([np.cos(end_angle), side * np.sin(end_angle), 0.0])
    t = np.linspace(0.0, 1.0, _SEGMENTS + 1)[:, None]
    return np.asarray(2.0 * t * (1.0 - t) * middle + t * t * end)


def _sac_and_neck(daughter_radii: Sequence[float], angles: Sequence[float], radius: float) -> list[CenterlineTube]:
    """Return sac and neck; the gap between sac and daughters is a third of their radius."""
    if radius == 0.0:
        return []
    sines = np.sin(np.minimum(angles, 0.5 * np.pi))
    center_distance = float(np.max((radius + 1.3 * np.asarray(daughter_radii)) / sines))
    center = center_distance * np.array([np.cos(LEAN_ANGLE), -np.sin(LEAN_ANGLE), 0.0])
    neck = CenterlineTube(np.stack([np.zeros(3), center]), 0.6 * radius)
    return [CenterlineTube(np.stack([center, center * (1.0 + 1e-6)]), radius), neck]


def _mesh(tubes: Sequence[CenterlineTube], widths: Sequence[float], spacing: float) -> Surface:
    """Mesh the smooth union of `tubes` on a grid of `spacing`; each part is blended over its width."""
    import igl

    margin = max(widths) + 3.0 * spacing
    low = np.min([tube.points.min(axis=0) - tube.radius for tube in tubes], axis=0) - margin
    high = np.max([tube.points.max(axis=0) + tube.radius for tube in tubes], axis=0) + margin
    nx, ny, nz = (int(count) for count in np.ceil((high - low) / spacing) + 1)
    if nx * ny * nz > 1 << 26:
        raise CaseError(f"a meshing grid of {nx} x {ny} x {nz} nodes is too fine; choose a larger resolution")
    z, y, x = np.meshgrid(*(low[a] + spacing * np.arange(n) for a, n in ((2, nz), (1, ny), (0, nx))), indexing="ij")
    positions = np.stack([x.reshape(-1), y.reshape(-1), z.reshape(-1)], axis=1)
    field = _field(tubes, widths, positions.reshape(nz, ny, nx, 3), spacing)
    vertices, faces, _ = igl.marching_cubes(field, positions, nx, ny, nz, 0.0)
    surface = Surface.from_triangles(vertices[faces])
    return surface if surface.volume > 0.0 else Surface(surface.vertices, np.ascontiguousarray(surface.faces[:, ::-1]))


def _field(tubes: Sequence[CenterlineTube], widths: Sequence[float], nodes: Floats, spacing: float) -> Floats:
    """Return the signed distance of `nodes` (nz, ny, nx, 3), exact where a cell of the grid may contain the zero level.

    The signed distance changes by at most the distance between two points. Its value at the center of a block of nodes
    therefore excludes the zero level from blocks far from the wall; their nodes get that value.
    """
    ends = [np.minimum(np.arange(0, n, _BLOCK) + _BLOCK, n) - 1 for n in nodes.shape[:3]]
    starts = [np.arange(0, n, _BLOCK) for n in nodes.shape[:3]]
    centers = 0.5 * (nodes[np.ix_(*starts)] + nodes[np.ix_(*ends)])
    centers = centers.reshape(-1, 3)
    block = np.arange(len(centers)).reshape([len(start) for start in starts])
    for axis, (start, end) in enumerate(zip(starts, ends, strict=True)):
        block = np.repeat(block, end - start + 1, axis=axis)
    block = block.reshape(-1)
    field = smooth_union([tube.distance(centers) for tube in tubes], widths)[block]
    reach = np.sqrt(3.0) * 0.5 * (_BLOCK - 1) * spacing
    near_blocks = np.flatnonzero(np.abs(field) <= reach + np.sqrt(3.0) * 1.1 * spacing)
    near_blocks = near_blocks[np.argsort(block[near_blocks], kind="stable")]
    number, first = np.unique(block[near_blocks], return_index=True)
    first, positions = np.append(first, len(near_blocks)), nodes.reshape(-1, 3)[near_blocks]
    distances = [tube.distance_in_blocks(positions, first, centers[number], reach) for tube in tubes]
    field[near_blocks] = smooth_union(distances, widths)
    return field
