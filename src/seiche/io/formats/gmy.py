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

from seiche.domain.host_passes import offsets
from seiche.domain.links import check_sites, flags_of_links, wall_direction
from seiche.domain.set_up_ranks import own_part, set_up_world
from seiche.domain.sharing import joined_sites, on_all
from seiche.domain.site_rows import SiteRows, joined_rows
from seiche.domain.sites import LINK_VECTORS, IoletPlane, LinkKind, SiteSet
from seiche.errors import FormatError
from seiche.io.formats.gmy_block import FluidRecords, MalformedBlockError, decode_block
from seiche.io.formats.gmy_header import GmyHeader, PathLike, read_gmy_header
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
    Each rank reads its share of the blocks (collective). Raises FormatError, with byte or block, for an invalid file.
    The memory is proportional to the size of the file.
    """
    header = on_all(lambda: read_gmy_header(path))
    nx, ny, nz = (count * header.block for count in header.blocks)
    blocks = on_all(lambda: _own_blocks(path, header))
    sites = _own_sites(path, blocks, SiteSet((nx, ny, nz), np.zeros((0, 3), np.int32), spacing, origin))
    if orient:
        inwards = np.einsum("ij,ij->i", sites.wall_normal, wall_direction(sites.link_kind)) < 0.0
        sites = replace(sites, wall_normal=np.where(inwards[:, None], -sites.wall_normal, sites.wall_normal))
    return joined_sites(sites)


def _own_blocks(path: PathLike, header: GmyHeader) -> list[FluidRecords]:
    """Return the blocks with fluid of this rank's share of the layers of blocks along x; FormatError."""
    edge, counts = header.block, header.blocks
    fluid_of_layer = header.records[:, 0].reshape(counts[0], -1).sum(axis=1)
    layers, per_layer = own_part(offsets(fluid_of_layer)), counts[1] * counts[2]
    own_range = slice(layers.start * per_layer, layers.stop * per_layer)
    offset = header.body + int(header.records[: own_range.start, 1].sum())
    blocks: list[FluidRecords] = []
    with Path(path).open("rb") as file:
        file.seek(offset)
        for block_number in (own_range.start + np.flatnonzero(header.records[own_range, 0])).tolist():
            fluid, compressed_size, size = (int(value) for value in header.records[block_number])
            location = f"block {block_number} (byte {offset})"
            words = _inflate(path, location, file.read(compressed_size), size)
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
    return blocks


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


def _own_sites(path: PathLike, blocks: list[FluidRecords], box: SiteSet) -> SiteSet:
    """Join the blocks of this rank in the order of `SiteSet`, with inlets and outlets of all ranks in one list.

    Its `boundary` counts the sites of this rank. Raises FormatError on all ranks (collective).
    """
    blocks = [_no_records(), *blocks]
    coords = np.concatenate([block.coords for block in blocks])
    starts = offsets(np.array([len(block.coords) for block in blocks]))[:-1]
    rows = np.concatenate([block.rows + start for block, start in zip(blocks, starts, strict=True)])
    kind, iolet, fraction, normal = (np.concatenate([block[field] for block in blocks]) for field in range(2, 6))
    order = np.lexsort(coords.T[::-1])
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    boundary = rank[rows]
    ascending = np.argsort(boundary)
    kind, iolet, boundary = kind[ascending], iolet[ascending], boundary[ascending]
    inlets, outlets = (_iolet_count(path, kind, iolet, link_kind) for link_kind in (LinkKind.INLET, LinkKind.OUTLET))
    if inlets + outlets > np.iinfo(np.int16).max:
        raise FormatError(path, "links", f"{inlets + outlets} iolets are more than can be numbered")
    iolet_number = np.where(kind >= LinkKind.INLET, iolet + np.where(kind == LinkKind.OUTLET, inlets, 0), -1)
    no_plane = (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), 0.0
    planes = [IoletPlane(f"inlet{i}", "inlet", *no_plane) for i in range(inlets)]
    planes += [IoletPlane(f"outlet{i}", "outlet", *no_plane) for i in range(outlets)]
    sites = replace(
        box, coords=coords[order], boundary=boundary, link_kind=kind, link_iolet=iolet_number.astype(np.int16),
        link_fraction=fraction[ascending], wall_normal=normal[ascending], iolets=tuple(planes),
    )  # fmt: skip
    incomplete = _own_incomplete(sites.rows)
    on_all(lambda: _check(path, sites, incomplete))
    return replace(sites, iolets=tuple(_estimated_plane(sites, index) for index in range(len(planes))))


def _no_records() -> FluidRecords:
    links = np.zeros((0, 26), np.uint8), np.zeros((0, 26), np.int64), np.zeros((0, 26), np.float32)
    return FluidRecords(np.zeros((0, 3), np.int32), np.zeros(0, np.int64), *links, np.zeros((0, 3), np.float32))


def _own_incomplete(part: SiteRows) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return the sites of this rank with absent neighbours on all ranks, and flags of these links (collective)."""
    world = set_up_world()
    before = world.allgather((len(part.begin), len(part)))[: world.rank]
    runs, sites = (sum(counts[k] for counts in before) for k in (0, 1))
    site, links = joined_rows(part).incomplete(range(runs, runs + len(part.begin)))
    return site - sites, flags_of_links(links)


def _check(path: PathLike, sites: SiteSet, incomplete: tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]) -> None:
    try:
        check_sites(sites, incomplete)
    except ValueError as reason:
        raise FormatError(path, "sites", str(reason)) from None


def _iolet_count(path: PathLike, kind: npt.NDArray[np.uint8], iolet: npt.NDArray[np.int64], link_kind: LinkKind) -> int:
    """Return the number of iolets of the kind `link_kind` on all ranks; FormatError if one has no link (collective)."""
    used_numbers = np.unique(np.concatenate(set_up_world().allgather(np.unique(iolet[kind == link_kind]))))
    if len(used_numbers) and used_numbers[-1] != len(used_numbers) - 1:
        missing_number = int(np.flatnonzero(used_numbers != np.arange(len(used_numbers)))[0])
        raise FormatError(
            path,
            "links",
            f"no link cuts {link_kind.name.lower()} {missing_number}, but one cuts {int(used_numbers[-1])}",
        )
    return len(used_numbers)


def _estimated_plane(sites: SiteSet, index: int) -> IoletPlane:
    """Estimate an opening from its cut links: their mean, best-fit plane and largest distance (collective)."""
    row, k = np.nonzero(sites.link_iolet == index)
    vectors = LINK_VECTORS[k].astype(np.float64)
    cuts = sites.coords[sites.boundary[row]] + sites.link_fraction[row, k].astype(np.float64)[:, None] * vectors
    vectors, cuts = (np.concatenate(set_up_world().allgather(values)) for values in (vectors, cuts))
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
