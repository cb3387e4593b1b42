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
from seiche.domain.set_up_ranks import own_part
from seiche.domain.sharing import joined_sites
from seiche.domain.site_rows import Indices, part_of
from seiche.domain.sites import IoletPlane, SiteSet
from seiche.kernels.registry import sites as registry

#: Boundary sites per pass; bounds the memory of intersections.
_CHUNK = 1 << 12


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
        first_rows = order[first]
        disc = np.where(crossings.front, crossings.iolet, -1)[first_rows].astype(np.int16)
        return _NearestDiscs(key[first_rows], crossings.fraction[first_rows], disc)

    def between(self, first: int, end: int) -> tuple[Floats, npt.NDArray[np.int16]] | tuple[None, None]:
        """Return fractions and discs (rows, 26) of the rows `first` ... `end` - 1, None if no link of them has one."""
        used = slice(*np.searchsorted(self.key, [26 * first, 26 * end]))
        if used.start == used.stop:
            return None, None
        fraction, disc = np.full((end - first, 26), np.inf), np.full((end - first, 26), -1, np.int16)
        fraction.reshape(-1)[self.key[used] - 26 * first] = self.fraction[used]
        disc.reshape(-1)[self.key[used] - 26 * first] = self.disc[used]
        return fraction, disc


@dataclass(frozen=True)
class CutLinks:
    """Links of this rank's share of the boundary sites.

    `boundary` (m,) are ascending numbers of sites of the vessel, and the other arrays those of a `SiteSet`. `rows` of
    them have links through openings. `unresolved` links meet neither wall nor disc; they are cut half way.
    """

    boundary: Indices
    kind: npt.NDArray[np.uint8]
    iolet: npt.NDArray[np.int16]
    fraction: npt.NDArray[np.float32]
    normal: npt.NDArray[np.float32]
    rows: Indices
    unresolved: int


def cut_links(
    lattice: CandidateNodes, iolets: Sequence[IoletPlane], crossings: Crossings, find_walls: WallFinder
) -> CutLinks:
    """Return the links of this rank's share of the sites."""
    own_runs = own_part(lattice.rows.site)
    crossings = crossings.between(*lattice.rows.site[[own_runs.start, own_runs.stop]].tolist())
    boundary, links = _boundary(lattice, crossings, own_runs)
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
    number = int(unresolved.sum(dtype=np.int64))
    return CutLinks(boundary, kind, iolet, fraction, normal, np.flatnonzero(opens), number)


def linked_sites(lattice: CandidateNodes, iolets: Sequence[IoletPlane], links: CutLinks) -> SiteSet:
    """Return the sites with the links of all ranks (collective)."""
    own_runs = own_part(lattice.rows.site)
    part = SiteSet(
        lattice.shape, part_of(lattice.rows, own_runs).coords(), lattice.spacing, lattice.origin, lattice.periodic,
        links.boundary - lattice.rows.site[own_runs.start], links.kind, links.iolet, links.fraction, links.normal,
        tuple(iolets),
    )  # fmt: skip
    return joined_sites(part)


def _boundary(lattice: CandidateNodes, crossings: Crossings, own_runs: range) -> tuple[Indices, npt.NDArray[np.uint32]]:
    """Return the sites (m,) of the runs `own` with absent neighbours or links through discs, and these links' bits."""
    boundary, links = lattice.rows.incomplete(own_runs)
    node = np.sort(crossings.node)
    complete = node[np.searchsorted(boundary, node) == np.searchsorted(boundary, node, side="right")]
    if len(complete):
        complete = complete[np.append(True, complete[1:] != complete[:-1])]
        position = np.searchsorted(boundary, complete)
        boundary, links = np.insert(boundary, position, complete), np.insert(links, position, np.uint32(0))
    bits = np.uint32(1) << crossings.direction.astype(np.uint32)
    np.bitwise_or.at(links, np.searchsorted(boundary, crossings.node), bits)
    return boundary, links
