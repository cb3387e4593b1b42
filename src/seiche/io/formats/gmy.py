# SPDX-License-Identifier: BSD-3-Clause
"""HemeLB geometry files: `.gmy` version 4 and the `.gmy+` of HemePure, read and written.

Big-endian 32-bit words: a preamble of 8, a record of 3 (`.gmy+`: 4) for each block, then one zlib stream for each
block with fluid. A block has B^3 sites, z fastest. A solid site is the word 0. A fluid site is the word 1, 26 links in
the order of `LINK_VECTORS` (0; 1 wall, fraction; 2 inlet or 3 outlet, iolet, fraction), then 0 or 1 and a normal.
Spacing and origin are in the case file, not in this file.
"""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seiche.domain.links import check_sites, wall_direction
from seiche.domain.sites import LINK_VECTORS, IoletPlane, LinkKind, SiteSet
from seiche.errors import FormatError
from seiche.io.formats.gmy_block import FluidRecords, MalformedBlockError, decode_block
from seiche.io.formats.gmy_header import GmyHeader, PathLike, parse_header, read_gmy_header
from seiche.io.formats.gmy_write import write_gmy
from seiche.set_up import set_up_stage

__all__ = ["GmyHeader", "read_gmy", "read_gmy_header", "write_gmy"]


@set_up_stage("read")
def read_gmy(
    path: PathLike, *, spacing: float = 1.0, origin: tuple[float, float, float] = (0.0, 0.0, 0.0), orient: bool = True
) -> SiteSet:
    """Read the sites of a `.gmy` or `.gmy+` file.

    `spacing` and `origin` (metres, of the site (0, 0, 0)) come from the HemeLB XML. Iolets are the inlets and then the
    outlets, "inlet0", "inlet1" ... "outlet0" ... The file does not contain their planes, so center, normal and radius
    are estimated from the cut links. Wall normals are oriented out of the fluid, by the sign of n.(sum of the wall
    links): the HemeLB tool writes them outwards, the HemePure tools inwards. With `orient=False` they are as in the
    file, for a byte-identical copy.
    Raises FormatError, with byte or block, for an invalid file. The memory is proportional to the size of the file.
    """
    data = Path(path).read_bytes()
    header = parse_header(path, data)
    offset = header.body
    blocks: list[FluidRecords] = []
    edge, counts = header.block, header.blocks
    for block_number in np.flatnonzero(header.records[:, 0]).tolist():
        fluid, compressed_size, size = (int(value) for value in header.records[block_number])
        location = f"block {block_number} (byte {offset})"
        words = _inflate(path, location, data[offset : offset + compressed_size], size)
        try:
            block = decode_block(words, edge)
        except MalformedBlockError as reason:
            raise FormatError(path, location, str(reason)) from None
        if len(block.coords) != fluid:
            raise FormatError(
                path, location, f"it has {len(block.coords)} fluid sites, but the header declares {fluid}"
            )
        corner = np.array(np.unravel_index(block_number, counts), np.int32) * edge
        blocks.append(FluidRecords(block.coords + corner, *block[1:]))
        offset += compressed_size
    sites = _sites(path, blocks, (counts[0] * edge, counts[1] * edge, counts[2] * edge), spacing, origin)
    if not orient:
        return sites
    inwards = np.einsum("ij,ij->i", sites.wall_normal, wall_direction(sites.link_kind)) < 0.0
    return replace(sites, wall_normal=np.where(inwards[:, None], -sites.wall_normal, sites.wall_normal))


def _inflate(path: PathLike, location: str, compressed: bytes, size: int) -> npt.NDArray[np.uint32]:
    """Decompress exactly `size` bytes, never more, as native words."""
    stream = zlib.decompressobj()
    try:
        data = stream.decompress(compressed, size + 1)
    except zlib.error as error:
        raise FormatError(path, location, f"its zlib stream is damaged ({error})") from None
    if len(data) != size or not stream.eof or stream.unused_data:
        raise FormatError(path, location, f"its zlib stream does not contain exactly the {size} bytes of the header")
    return np.frombuffer(data, ">u4").astype(np.uint32)


def _sites(
    path: PathLike,
    blocks: list[FluidRecords],
    shape: tuple[int, int, int],
    spacing: float,
    origin: tuple[float, float, float],
) -> SiteSet:
    """Join the blocks in the order of `SiteSet`, with inlets and outlets numbered in one list."""
    coords = np.concatenate([block.coords for block in blocks])
    starts = np.cumsum([0] + [len(block.coords) for block in blocks[:-1]])
    rows = np.concatenate([block.rows + start for block, start in zip(blocks, starts, strict=True)])
    kind, iolet, fraction, normal = (np.concatenate([block[field] for block in blocks]) for field in range(2, 6))
    order = np.lexsort(coords.T[::-1])
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    boundary = rank[rows]
    ascending = np.argsort(boundary)
    kind, fraction, normal, boundary = kind[ascending], fraction[ascending], normal[ascending], boundary[ascending]
    counts = [
        _iolet_count(path, kind, iolet[ascending], kind_of_link) for kind_of_link in (LinkKind.INLET, LinkKind.OUTLET)
    ]
    if sum(counts) > np.iinfo(np.int16).max:
        raise FormatError(path, "links", f"{sum(counts)} iolets are more than can be numbered")
    opening = kind >= LinkKind.INLET
    iolet_number = np.where(opening, iolet[ascending] + np.where(kind == LinkKind.OUTLET, counts[0], 0), -1).astype(
        np.int16
    )
    not_periodic = (False, False, False)
    sites = SiteSet(shape, coords[order], spacing, origin, not_periodic, boundary, kind, iolet_number, fraction, normal)
    no_plane = (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), 0.0
    planes = [IoletPlane(f"inlet{i}", "inlet", *no_plane) for i in range(counts[0])]
    planes += [IoletPlane(f"outlet{i}", "outlet", *no_plane) for i in range(counts[1])]
    sites = replace(sites, iolets=tuple(planes))
    try:
        check_sites(sites)
    except ValueError as reason:
        raise FormatError(path, "sites", str(reason)) from None
    return replace(sites, iolets=tuple(_estimated_plane(sites, index) for index in range(len(planes))))


def _iolet_count(path: PathLike, kind: npt.NDArray[np.uint8], iolet: npt.NDArray[np.int64], link_kind: LinkKind) -> int:
    """Return the number of iolets of the kind `link_kind`; FormatError if one has no link."""
    used_numbers = np.unique(iolet[kind == link_kind])
    if len(used_numbers) and used_numbers[-1] != len(used_numbers) - 1:
        missing = int(np.flatnonzero(used_numbers != np.arange(len(used_numbers)))[0])
        raise FormatError(
            path, "links", f"no link cuts {link_kind.name.lower()} {missing}, but one cuts {int(used_numbers[-1])}"
        )
    return len(used_numbers)


def _estimated_plane(sites: SiteSet, index: int) -> IoletPlane:
    """Estimate an opening from its cut links: mean, best-fit plane and largest distance of the cut points."""
    row, k = np.nonzero(sites.link_iolet == index)
    vectors = LINK_VECTORS[k].astype(np.float64)
    cuts = sites.coords[sites.boundary[row]] + sites.link_fraction[row, k].astype(np.float64)[:, None] * vectors
    center = cuts.mean(axis=0)
    relative = cuts - center
    values, axes = np.linalg.eigh(relative.T @ relative)
    inwards = -vectors.sum(axis=0)
    is_planar = values[1] > 4.0 * values[0] and abs(axes[:, 0] @ inwards) > 0.0
    normal = axes[:, 0] * np.sign(axes[:, 0] @ inwards) if is_planar else inwards
    length = float(np.linalg.norm(normal))
    normal = normal / length if length > 0.0 else np.array([0.0, 0.0, 1.0])
    in_plane = relative - (relative @ normal)[:, None] * normal
    radius = float(np.linalg.norm(in_plane, axis=1).max()) * sites.spacing
    position = np.asarray(sites.origin) + sites.spacing * center
    (x, y, z), (nx, ny, nz) = position.tolist(), normal.tolist()
    return replace(sites.iolets[index], center=(x, y, z), normal=(nx, ny, nz), radius=radius)
