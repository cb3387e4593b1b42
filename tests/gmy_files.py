# SPDX-License-Identifier: BSD-3-Clause
"""HemeLB geometry files for tests, written word by word from the format, without any code of Seiche.

Format 4: big-endian 32-bit words. The preamble is "hlb!", "gmy" 4, the version 4, the blocks along x, y, z, the sites
along the edge of a block and 0; a record for each block (z fastest) counts its fluid sites, then, in a `.gmy+` alone,
its weight, and the bytes of its zlib stream before and after inflating. A stream has the sites of its block, z fastest.
"""

from __future__ import annotations

import itertools
import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

Vector = tuple[float, float, float]
Index = tuple[int, int, int]

WALL, INLET, OUTLET = 1, 2, 3
#: The neighbours of a site in the order of the file.
NEIGHBOURS = [step for step in itertools.product((-1, 0, 1), repeat=3) if step != (0, 0, 0)]


@dataclass(frozen=True)
class Site:
    """A fluid site: (kind, fraction) by neighbour that a link does not reach, and its wall normal, out of the fluid."""

    cuts: dict[Index, tuple[int, float]]
    normal: Vector | None

    def words(self) -> bytes:
        """Return the record of the site; every opening is the first of its kind."""
        parts = [struct.pack(">I", 1)]
        for step in NEIGHBOURS:
            kind, fraction = self.cuts.get(step, (0, 0.0))
            if kind == WALL:
                parts.append(struct.pack(">If", kind, fraction))
            elif kind:
                parts.append(struct.pack(">IIf", kind, 0, fraction))
            else:
                parts.append(struct.pack(">I", 0))
        parts.append(struct.pack(">I", 0) if self.normal is None else struct.pack(">I3f", 1, *self.normal))
        return b"".join(parts)


@dataclass(frozen=True)
class Vessel:
    """Fluid sites by index in `blocks` of `edge`^3 sites, and the compression level of their tool."""

    sites: dict[Index, Site]
    blocks: Index
    edge: int
    level: int

    def file(self, weights: Sequence[int] | None = None) -> bytes:
        """Return the `.gmy` file, or with one of `weights` for each block the `.gmy+`."""
        table, streams = [], []
        for number, block in enumerate(itertools.product(*map(range, self.blocks))):
            axes = [range(self.edge * first, self.edge * (first + 1)) for first in block]
            inside = [self.sites.get((x, y, z)) for x, y, z in itertools.product(*axes)]
            fluid = sum(site is not None for site in inside)
            words = b"".join(site.words() if site else struct.pack(">I", 0) for site in inside) if fluid else b""
            stream = zlib.compress(words, self.level) if fluid else b""
            record = [fluid, len(stream), len(words)]
            if weights is not None:
                record.insert(1, weights[number])
            table.append(struct.pack(f">{len(record)}I", *record))
            streams.append(stream)
        preamble = struct.pack(">4s3sB6I", b"hlb!", b"gmy", 4, 4, *self.blocks, self.edge, 0)
        return b"".join([preamble, *table, *streams])


def four_cube() -> Vessel:
    """Return 4^3 sites in a box half a spacing away: z < 0.5 the inlet, z > 4.5 the outlet, the rest wall.

    Sites, cuts and order are those of `four_cube.gmy` of HemeLB's tests: where a link leaves by an edge of the box, it
    meets the opening.
    """
    sites = {}
    for site in itertools.product(range(1, 5), repeat=3):
        cuts = {}
        for step in NEIGHBOURS:
            x, y, z = (a + b for a, b in zip(site, step, strict=True))
            if not 1 <= z <= 4:
                cuts[step] = (INLET if z < 1 else OUTLET, 0.5)
            elif not (1 <= x <= 4 and 1 <= y <= 4):
                cuts[step] = (WALL, 0.5)
        sites[site] = Site(cuts, _face(site))
    return Vessel(sites, (1, 1, 1), 6, level=6)


def _face(site: Index) -> Vector | None:
    """Return the normal of the side of the box adjacent to `site`, y before x; None in the interior."""
    x, y, _ = site
    if y in (1, 4):
        return (0.0, -1.0 if y == 1 else 1.0, 0.0)
    return (-1.0 if x == 1 else 1.0, 0.0, 0.0) if x in (1, 4) else None


#: Radius, axis and ends of the tube of `large_cylinder` in spacings of 1.4 um: 10 um, 48 um long.
CYLINDER_RADIUS, CYLINDER_AXIS = 10 / 1.4, 7.5
CYLINDER_ENDS = (17.5 - 24 / 1.4, 17.5 + 24 / 1.4)


def large_cylinder() -> Vessel:
    """Return a round tube along z of 5576 sites.

    It has the sites and links of `large_cylinder.gmy` of HemeLB's tests, whose wall is a prism of 40 sides; here the
    fractions are those of the circle.
    """
    sites = {}
    for site in itertools.product(range(16), range(16), range(40)):
        if not _in_cylinder(site):
            continue
        cuts = {}
        for step in NEIGHBOURS:
            if not _in_cylinder(tuple(a + b for a, b in zip(site, step, strict=True))):
                cuts[step] = _first_cut(site, step)
        x, y = site[0] - CYLINDER_AXIS, site[1] - CYLINDER_AXIS
        at_wall = any(kind == WALL for kind, _ in cuts.values())
        sites[site] = Site(cuts, (x / math.hypot(x, y), y / math.hypot(x, y), 0.0) if at_wall else None)
    return Vessel(sites, (2, 2, 5), 8, level=9)


def _in_cylinder(site: Sequence[int]) -> bool:
    x, y, z = site
    round_ = math.hypot(x - CYLINDER_AXIS, y - CYLINDER_AXIS) < CYLINDER_RADIUS
    return round_ and CYLINDER_ENDS[0] < z < CYLINDER_ENDS[1]


def _first_cut(site: Index, step: Index) -> tuple[int, float]:
    """Return the kind and the fraction of the first intersection of a link that leaves the tube."""
    x, y = site[0] - CYLINDER_AXIS, site[1] - CYLINDER_AXIS
    cuts = []
    if step[2]:
        kind, end = (OUTLET, CYLINDER_ENDS[1]) if step[2] > 0 else (INLET, CYLINDER_ENDS[0])
        cuts.append(((end - site[2]) / step[2], kind))
    if step[0] or step[1]:
        # |(x, y) + t step| = radius, a quadratic in t.
        a = step[0] ** 2 + step[1] ** 2
        b, c = x * step[0] + y * step[1], x * x + y * y - CYLINDER_RADIUS**2
        cuts.append(((math.sqrt(b * b - a * c) - b) / a, WALL))
    fraction, kind = min(cuts)
    return kind, fraction
