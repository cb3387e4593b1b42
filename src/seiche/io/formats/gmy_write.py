# SPDX-License-Identifier: BSD-3-Clause
"""Writer of HemeLB geometry files, `.gmy` version 4 and the `.gmy+` of HemePure."""

from __future__ import annotations

import zlib
from typing import Literal

import numpy as np
import numpy.typing as npt

from seiche.domain.links import check_sites
from seiche.domain.sites import LinkKind, SiteSet
from seiche.errors import CaseError
from seiche.io.files import replacing
from seiche.io.formats.gmy_block import FluidRecords, encode_block
from seiche.io.formats.gmy_header import MAGIC, VERSION, PathLike

#: Weights of HemePure's tool for a site by the highest kind of its links; "corner" has wall and iolet links.
SITE_WEIGHTS = {"fluid": 1, "wall": 2, "inlet": 4, "outlet": 4, "corner": 4}


def write_gmy(
    path: PathLike,
    sites: SiteSet,
    block: int = 8,
    *,
    level: int = 9,
    weights: npt.ArrayLike | Literal["sites"] | None = None,
) -> None:
    """Write `sites` in blocks of `block`^3 sites, zlib-compressed with `level`: as `.gmy`, with `weights` as `.gmy+`.

    `weights` (blocks,) are the costs of the blocks in the order of the file; "sites" sums those of their sites
    (`SITE_WEIGHTS`). With `block`, `level` and `weights` of `read_gmy_header(source)`, a file read with `orient=False`
    is reproduced byte for byte. Inlets and outlets are numbered separately in the order of `sites.iolets`; the format
    has no spacing and origin. Raises CaseError for inconsistent, missing or periodic sites and for invalid weights.
    `path` is replaced only by a complete file.
    """
    if any(sites.periodic):
        raise CaseError("a .gmy file cannot describe periodic directions")
    if not len(sites):
        raise CaseError("a .gmy file needs at least one site")
    if block < 1:
        raise CaseError(f"blocks of {block}^3 sites are empty; block must be at least 1")
    try:
        check_sites(sites)
    except ValueError as reason:
        raise CaseError(f"these sites cannot be written as .gmy: {reason}") from None
    numbers = _numbers_by_role(sites)
    counts = tuple(-(-extent // block) for extent in sites.shape)
    owner = np.ravel_multi_index(tuple((sites.coords // block).T.astype(np.int64)), counts)
    order = np.argsort(owner, kind="stable")
    ends = np.searchsorted(owner[order], np.arange(int(np.prod(counts)) + 1))
    costs = (
        _costs(sites, owner, len(ends) - 1) if isinstance(weights, str) else _validated_weights(weights, len(ends) - 1)
    )
    row_of = np.full(len(sites), -1, np.int64)
    row_of[sites.boundary] = np.arange(len(sites.boundary))
    table = np.zeros((len(ends) - 1, 3), ">u4")
    streams = []
    for number in np.unique(owner).tolist():
        members = order[ends[number] : ends[number + 1]]
        words = encode_block(_records(sites, members, row_of[members], numbers, block), block)
        streams.append(zlib.compress(words.astype(">u4").tobytes(), level))
        table[number] = len(members), len(streams[-1]), 4 * len(words)
    preamble = np.array([*MAGIC, VERSION, *counts, block, 0], ">u4")
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.write(preamble.tobytes())
        file.write((table if costs is None else np.insert(table, 1, costs, axis=1)).tobytes())
        file.writelines(streams)


def _costs(sites: SiteSet, owner: npt.NDArray[np.int64], blocks: int) -> npt.NDArray[np.int64]:
    """Return the sum (blocks,) of the weights of the sites of each block, `owner` (n,) the block of each site."""
    by_kind = np.array([SITE_WEIGHTS[name] for name in ("fluid", "wall", "inlet", "outlet")])
    weight = np.ones(len(sites), np.int64) * SITE_WEIGHTS["fluid"]
    corner = (sites.link_kind == LinkKind.WALL).any(axis=1) & (sites.link_kind >= LinkKind.INLET).any(axis=1)
    weight[sites.boundary] = np.where(corner, SITE_WEIGHTS["corner"], by_kind[sites.link_kind.max(axis=1, initial=0)])
    return np.bincount(owner, weight, blocks).astype(np.int64)


def _validated_weights(weights: npt.ArrayLike | None, blocks: int) -> npt.NDArray[np.int64] | None:
    if weights is None:
        return None
    costs = np.asarray(weights, np.int64)
    if costs.shape != (blocks,):
        raise CaseError(f"{costs.size} weights for the {blocks} blocks of the .gmy+ file; expected one for each")
    if costs.min() < 0 or costs.max() >= 2**32:
        raise CaseError(f"a weight of a .gmy+ file must be in 0 ... 2^32 - 1, not {costs.min()} ... {costs.max()}")
    return costs


def _numbers_by_role(sites: SiteSet) -> npt.NDArray[np.int64]:
    """Return for each iolet its number among those of the same role, then 0 for "none" at the index -1."""
    inlet = np.array([plane.role == "inlet" for plane in sites.iolets], bool)
    return np.append(np.where(inlet, np.cumsum(inlet), np.cumsum(~inlet)) - 1, 0)


def _records(
    sites: SiteSet,
    members: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
    numbers: npt.NDArray[np.int64],
    block: int,
) -> FluidRecords:
    linked = np.flatnonzero(rows >= 0)
    row = rows[linked]
    kind = sites.link_kind[row]
    iolet = np.where(kind >= LinkKind.INLET, numbers[sites.link_iolet[row]], 0)
    return FluidRecords(
        sites.coords[members] % block, linked, kind, iolet, sites.link_fraction[row], sites.wall_normal[row]
    )
