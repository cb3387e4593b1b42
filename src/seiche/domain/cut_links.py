# SPDX-License-Identifier: BSD-3-Clause
"""Classify every link that leaves the fluid by the first wall or opening it meets (`kernels/sites/links.hpp`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seiche.domain.candidates import CandidateNodes, Crossings, Floats, WallFinder
from seiche.domain.host_passes import offsets, run_pass
from seiche.domain.links import flags_of_links, role_kinds
from seiche.domain.site_rows import Indices
from seiche.domain.sites import IoletPlane, SiteSet
from seiche.kernels.registry import sites as registry

#: Boundary sites per pass; bounds the memory of intersections.
_CHUNK = 1 << 14


@dataclass(frozen=True)
class _NearestDiscs:
    """The first disc on each link that meets one.

    `key` (q,) ascending: 26 row + direction, with rows of the boundary; `disc` (q,): the opening, -1 for its back.
    """

    key: Indices
    fraction: Floats
    disc: npt.NDArray[np.int16]

    @staticmethod
    def of(crossings: Crossings, boundary: Indices) -> _NearestDiscs:
        """Select the nearest disc on each link; among equally near ones the last."""
        key = 26 * np.searchsorted(boundary, crossings.node) + crossings.direction
        order = np.lexsort((-np.arange(len(key)), crossings.fraction, key))
        _, first = np.unique(key[order], return_index=True)
        chosen = order[first]
        disc = np.where(crossings.front, crossings.iolet, -1)[chosen].astype(np.int16)
        return _NearestDiscs(key[chosen], crossings.fraction[chosen], disc)

    def between(self, first: int, end: int) -> tuple[Floats, npt.NDArray[np.int16]] | tuple[None, None]:
        """Return fractions and discs (rows, 26) of the rows `first` ... `end` - 1, None if no link of them has one."""
        used = slice(*np.searchsorted(self.key, [26 * first, 26 * end]))
        if used.start == used.stop:
            return None, None
        fraction, disc = np.full((end - first, 26), np.inf), np.full((end - first, 26), -1, np.int16)
        fraction.reshape(-1)[self.key[used] - 26 * first] = self.fraction[used]
        disc.reshape(-1)[self.key[used] - 26 * first] = self.disc[used]
        return fraction, disc


def with_cut_links(
    lattice: CandidateNodes, iolets: Sequence[IoletPlane], crossings: Crossings, find_walls: WallFinder
) -> tuple[SiteSet, Indices, int]:
    """Return the sites with their links, the rows of the boundary with links through openings, and a number.

    The number is that of the links that meet neither wall nor disc; they are cut half way.
    """
    boundary, links = _boundary(lattice, crossings)
    discs = _NearestDiscs.of(crossings, boundary)
    count, kinds = len(boundary), role_kinds(iolets)
    kind, iolet = np.empty((count, 26), np.uint8), np.empty((count, 26), np.int16)
    fraction, normal = np.empty((count, 26), np.float32), np.empty((count, 3), np.float32)
    opens, unresolved = np.empty(count, np.uint8), np.empty(count, np.uint8)
    spec = registry.cut_links()
    for begin in range(0, count, _CHUNK):
        rows = slice(begin, min(begin + _CHUNK, count))
        row, direction = map(np.ascontiguousarray, np.nonzero(flags_of_links(links[rows])))
        hits = find_walls(lattice, boundary[rows][row], direction)
        disc_fraction, disc = discs.between(rows.start, rows.stop)
        hit = {"hit_fraction": hits.fraction, "hit_normal": hits.normal, "hit_iolet": hits.iolet}
        result = {"kind": kind[rows], "iolet": iolet[rows], "fraction": fraction[rows], "normal": normal[rows]}
        run_pass(
            spec, rows.stop - begin, links=links[rows],
            first=offsets(np.bincount(row, minlength=rows.stop - begin)), disc_fraction=disc_fraction, disc=disc,
            kinds=kinds, opens=opens[rows], unresolved=unresolved[rows], **hit, **result,
        )  # fmt: skip
    sites = SiteSet(
        lattice.shape, lattice.coords, lattice.spacing, lattice.origin, lattice.periodic,
        boundary, kind, iolet, fraction, normal, tuple(iolets),
    )  # fmt: skip
    return sites, np.flatnonzero(opens), int(unresolved.sum(dtype=np.int64))


def _boundary(lattice: CandidateNodes, crossings: Crossings) -> tuple[Indices, npt.NDArray[np.uint32]]:
    """Return the ascending sites (m,) with absent neighbours or links through discs, and the bits of these links."""
    boundary, links = lattice.rows.incomplete()
    node = np.sort(crossings.node)
    complete = node[np.searchsorted(boundary, node) == np.searchsorted(boundary, node, side="right")]
    if len(complete):
        complete = complete[np.append(True, complete[1:] != complete[:-1])]
        position = np.searchsorted(boundary, complete)
        boundary, links = np.insert(boundary, position, complete), np.insert(links, position, np.uint32(0))
    bits = np.uint32(1) << crossings.direction.astype(np.uint32)
    np.bitwise_or.at(links, np.searchsorted(boundary, crossings.node), bits)
    return boundary, links
