# SPDX-License-Identifier: BSD-3-Clause
"""Dense random packings of undeformed cells, which grow from a small size and push each other apart (eq. 12).

A large vessel is filled with copies of a packed periodic tile. Cells that intersect the wall are removed, and then
random cells until the requested hematocrit is reached (Ames et al. 2020). If too few cells remain, those at the wall
are retained and pushed inwards.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from seiche.backend import Backend, open_backend
from seiche.backend.host_threads import on_threads
from seiche.cells.growth import Growth, centered, lengths_of, radius_of
from seiche.cells.overlap import Packing, overlapping_pairs, placed
from seiche.cells.vessels import Box, Vessel, check_sizes
from seiche.domain.surface import Surface
from seiche.errors import CaseError
from seiche.set_up import set_up_stage

__all__ = ["MAX_HEMATOCRIT", "Packing", "cell_counts", "fill", "pack", "press"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

#: Approximate maximum hematocrit of random packings of bodies as flat as red cells.
MAX_HEMATOCRIT = 0.6
#: Number of cells above which copies of a tile are used, with about TILE_CELLS cells at TILE_HEMATOCRIT.
MAX_GROWN_CELLS, TILE_CELLS, TILE_HEMATOCRIT = 2000, 216, 0.5
#: Fraction of TILE_HEMATOCRIT above which the tile is denser than the vessel, and the factor by which it is.
_DENSE_FRACTION, _DENSITY_MARGIN = 0.9, 1.06
#: Number of cells up to which growth is repeated from other random positions, since cells may block each other in a
#: narrow vessel, and maximum number of attempts.
_MAX_RESTARTED_CELLS, _MAX_STARTS = 100, 6
#: Cells whose vertices are tested at once against the wall.
_CELLS_AT_ONCE = 1024
#: Initial size of cells that are pushed away from the wall.
_PRESS_START_SCALE = 0.75


@set_up_stage("pack")
def pack(
    vessel: Vessel,
    surfaces: Sequence[Surface],
    hematocrit: float,
    *,
    shares: Sequence[float] | None = None,
    gap: float | None = None,
    seed: int = 0,
    backend: Backend | None = None,
) -> Packing:
    """Pack undeformed cells into a vessel up to a hematocrit.

    Args:
        vessel: the space.
        surfaces: closed meshes of the cells, one per type.
        hematocrit: volume of the cells, divided by that of the vessel.
        shares: fraction of the number of cells, by type; equal fractions by default.
        gap: minimum distance of cells from each other and from walls; 2 % of the largest radius by default.
        seed: seed of the random positions.
        backend: device of the computation; the CPU by default.

    Returns:
        A packing without overlaps.

    Raises:
        CaseError: the hematocrit cannot be reached, a cell is larger than the vessel, or a mesh is invalid.
    """
    check_sizes(vessel, surfaces)
    if not 0 < hematocrit <= MAX_HEMATOCRIT:
        raise CaseError(f"hematocrit = {hematocrit:g}: expected a number above 0 and at most {MAX_HEMATOCRIT:g}")
    fractions = np.asarray(shares if shares is not None else np.ones(len(surfaces)), np.float64)
    if len(fractions) != len(surfaces) or not (np.isfinite(fractions) & (fractions >= 0)).all() or fractions.sum() <= 0:
        raise CaseError(
            f"shares {fractions.tolist()}: expected one share, zero or more, for each of {len(surfaces)} types"
        )
    fractions = fractions / fractions.sum()
    volumes = np.array([surface.volume for surface in surfaces])
    counts = cell_counts(vessel.volume, volumes, fractions, hematocrit)
    count = int(counts.sum())
    if count < 1:
        raise CaseError(
            f"hematocrit = {hematocrit:g}: gives less than one cell; the volume of the vessel is "
            f"{vessel.volume / volumes.min():.3g} times that of a cell"
        )
    radius = max(radius_of(surface) for surface in surfaces)
    distance = 0.02 * radius if gap is None else gap
    # Cells enlarged by half the gap must not overlap; the following is a lower bound of their volume (Brunn-Minkowski).
    required = float(counts @ (np.cbrt(volumes) + np.cbrt(4 / 3 * np.pi) * 0.5 * distance) ** 3) / vessel.volume
    if required > 1:
        raise CaseError(
            f"gap: {count} cells with this gap need at least {required:.3g} times the volume of the vessel; use a "
            "smaller gap or a lower hematocrit"
        )
    device = backend or open_backend("cpu")
    if count <= MAX_GROWN_CELLS:
        return _grown(
            vessel, surfaces, np.repeat(np.arange(len(surfaces)), counts), distance, seed=seed, backend=device
        )
    tile_hematocrit = max(
        TILE_HEMATOCRIT, _DENSITY_MARGIN * hematocrit if hematocrit > _DENSE_FRACTION * TILE_HEMATOCRIT else 0.0
    )
    tile_hematocrit = min(tile_hematocrit, MAX_HEMATOCRIT)
    edge = float((TILE_CELLS * (fractions @ volumes) / tile_hematocrit) ** (1 / 3))
    extent = vessel.high - vessel.low
    fitted_edges = extent / np.maximum(np.round(extent / edge), 1)
    tile = Box(tuple(np.where(vessel.periodic, fitted_edges, edge).tolist()))
    packed = pack(tile, surfaces, tile_hematocrit, shares=fractions.tolist(), gap=distance, seed=seed, backend=device)
    try:
        return fill(vessel, surfaces, tile, packed, hematocrit, gap=distance, seed=seed)
    except CaseError:
        return press(vessel, surfaces, tile, packed, counts, gap=distance, seed=seed, backend=device)


def _grown(
    vessel: Vessel, surfaces: Sequence[Surface], kinds: Integers, gap: float, *, seed: int, backend: Backend
) -> Packing:
    """Grow cells from random positions; if a small number of cells jams, retry from other positions."""
    starts: list[int | list[int]] = [
        seed,
        *([seed, attempt] for attempt in range(1, _MAX_STARTS if len(kinds) <= _MAX_RESTARTED_CELLS else 1)),
    ]
    for start in starts:
        try:
            return Growth(vessel, surfaces, kinds, gap, seed=start, backend=backend).packed()
        except CaseError as error:
            jammed = error
    raise jammed


def press(
    vessel: Vessel,
    surfaces: Sequence[Surface],
    tile: Box,
    packed: Packing,
    counts: Integers,
    *,
    gap: float,
    seed: int = 0,
    backend: Backend | None = None,
) -> Packing:
    """Fill a vessel with copies of a packed periodic tile and push cells away from its wall and from each other.

    Of the cells with centers inside the vessel, `counts` of each type are retained, preferably those far from the wall.

    Raises:
        CaseError: too few cells are inside, or overlaps remain.
    """
    copies = _copies(vessel, tile, packed)
    depth, random = -vessel.distance(copies.centers), np.random.default_rng(seed)
    chosen: list[Integers] = []
    for kind, count in enumerate(counts.tolist()):
        rows = np.flatnonzero((copies.kinds == kind) & (depth > 0))
        if len(rows) < count:
            raise CaseError(
                f"hematocrit = {packed.hematocrit:.3f} of a tile: only {len(rows)} of {count} cells of type {kind} "
                "are inside the vessel; use a lower hematocrit"
            )
        at_wall = depth[rows] < centered(surfaces[kind]).max()
        order = np.lexsort((random.random(len(rows)), -np.where(at_wall, depth[rows], np.inf)))
        surplus = len(rows) - count
        # Half of the surplus is removed at the wall, the other half at random positions.
        removed = np.concatenate([order[len(rows) - surplus // 2 :], order[: surplus - surplus // 2]])
        chosen.append(np.delete(rows, removed))
    start = copies.subset(np.sort(np.concatenate(chosen)), 0.0)
    device = backend or open_backend("cpu")
    return Growth(vessel, surfaces, start.kinds, gap, seed=seed, backend=device, start=start).packed(_PRESS_START_SCALE)


def _copies(vessel: Vessel, tile: Box, packed: Packing) -> Packing:
    """Return the copies of a tile that cover the box around a vessel."""
    copies = np.ceil((vessel.high - vessel.low) / tile.high - 1e-9).astype(int)
    shifts = np.stack(np.meshgrid(*map(np.arange, copies), indexing="ij"), axis=-1).reshape(-1, 3) * tile.high
    return Packing(
        (packed.centers[None] + shifts[:, None] + vessel.low).reshape(-1, 3),
        np.tile(packed.rotations, (len(shifts), 1, 1)),
        np.tile(packed.kinds, len(shifts)),
        packed.hematocrit,
    )


def fill(
    vessel: Vessel,
    surfaces: Sequence[Surface],
    tile: Box,
    packed: Packing,
    hematocrit: float,
    *,
    gap: float,
    seed: int = 0,
) -> Packing:
    """Fill a vessel with copies of a packed periodic tile, and remove random cells until the hematocrit is reached.

    Cells closer to a wall than `gap` are omitted, as are cells that overlap because a period of the vessel is not a
    whole number of tiles.

    Raises:
        CaseError: the hematocrit of the cells inside is too low.
    """
    extent = vessel.high - vessel.low
    copies = np.ceil(extent / tile.high - 1e-9).astype(int)
    seam = np.array(vessel.periodic) & (np.abs(copies * tile.high - extent) > 1e-9 * extent)
    all_copies = _copies(vessel, tile, packed)
    inside = all_copies.subset(np.flatnonzero(_fits(vessel, surfaces, all_copies, gap, seam)), 0.0)
    # Copies overlap as little as the cells of the tile, except where the vessel repeats within a tile.
    reach = 2 * max(radius_of(surface) for surface in surfaces)
    near_low, near_high = inside.centers < vessel.low + reach, inside.centers > vessel.high - reach
    at_seam = np.flatnonzero(((near_low | near_high) & seam).any(axis=1))
    overlaps = at_seam[overlapping_pairs(surfaces, inside.subset(at_seam, 0.0), lengths_of(vessel))]
    chosen = np.setdiff1d(np.arange(len(inside.centers)), overlaps[:, 0])
    volumes = np.array([surface.volume for surface in surfaces])[inside.kinds]
    order = np.random.default_rng(seed).permutation(chosen)
    cumulative = np.cumsum(volumes[order]) / vessel.volume
    achieved = float(cumulative[-1]) if len(cumulative) else 0.0
    count = int(np.searchsorted(cumulative, hematocrit * (1 + 1e-9)))
    half = 0.5 * float(volumes.mean()) / vessel.volume if len(volumes) else 0.0
    if achieved < hematocrit - half:
        raise CaseError(
            f"hematocrit = {hematocrit:g}: copies of a packed tile reach only {achieved:.3f} in the vessel; use a "
            "lower hematocrit"
        )
    if count < len(cumulative) and cumulative[count] - hematocrit <= half:
        count += 1
    return inside.subset(np.sort(order[:count]), float(cumulative[count - 1]) if count else 0.0)


def _fits(
    vessel: Vessel, surfaces: Sequence[Surface], packing: Packing, gap: float, seam: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Return flags of the cells whose vertices are at least `gap` inside and do not cross the upper end of a `seam`."""
    points = [centered(surface) for surface in surfaces]
    fits = np.empty(len(packing.centers), bool)
    vessel.distance(packing.centers[:1])  # builds its search tree once, before the threads begin

    def test(cells: slice) -> None:
        """Set the flags of some cells."""
        kinds = packing.kinds[cells]
        for kind, body in enumerate(points):
            rows = cells.start + np.flatnonzero(kinds == kind)
            vertices = placed(body, packing.centers[rows], packing.rotations[rows])
            nearest = vessel.distance(vertices.reshape(-1, 3)).reshape(len(rows), -1).max(axis=1)
            crosses = ((vertices > vessel.high) & seam).any(axis=(1, 2))
            fits[rows] = ~((nearest > -gap) | crosses)

    starts = range(0, len(fits), _CELLS_AT_ONCE)
    on_threads(test, (slice(start, min(start + _CELLS_AT_ONCE, len(fits))) for start in starts))
    return fits


def cell_counts(volume: float, volumes: Floats, fractions: Floats, hematocrit: float) -> Integers:
    """Return the number of cells of each type in a vessel of this `volume`; `volumes` (types,) are those of cells.

    The total is as close to the hematocrit as possible; the fractions of types are `fractions` (types,), rounded to
    whole cells.
    """
    count = round(hematocrit * volume / float(fractions @ volumes))
    exact_counts = fractions * count
    counts = np.floor(exact_counts).astype(np.int64)
    counts[np.argsort(counts - exact_counts, kind="stable")[: count - counts.sum()]] += 1
    return counts
