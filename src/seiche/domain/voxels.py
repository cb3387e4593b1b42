# SPDX-License-Identifier: BSD-3-Clause
"""Images of voxels in space, and the surface of a region in them.

The region is given by labels or by limits of the values. Its surface is the zero level of a field on the voxels,
interpolated linearly between their centres (marching cubes). For limits, the field is the value minus the limit. For
labels, it is the signed distance to the other voxels: half-way between voxels of the region and others (shape-based
interpolation: Raya and Udupa, IEEE Trans. Med. Imaging 9 (1990) 32-42). The stairs of the voxels are removed by the
smoothing 2 G(s) - G(sqrt(2) s) with Gaussians G of width s, which leaves cubic polynomials, and thus the radii of
vessels, unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.domain.surface import Floats, Surface, along_axis
from seiche.errors import CaseError
from seiche.set_up import set_up_stage

#: Voxels around a region that are kept when an image is cropped; smoothing and distances need no more.
_MARGIN = 8
#: Corners of a cube in the order of libigl.
_CORNERS = ((0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1))


@dataclass(frozen=True, eq=False)
class VoxelImage:
    """Values of voxels in space.

    `values` has one axis per dimension, two or three; the centre of the voxel with index i is at
    `matrix` @ i + `origin` in metres.
    """

    values: npt.NDArray[Any]
    matrix: Floats
    origin: Floats

    @property
    def voxel(self) -> Floats:
        """Return the distances (m) between adjacent voxels along each axis of `values`."""
        return np.asarray(np.linalg.norm(self.matrix, axis=0))

    def indices(self, points: Floats) -> Floats:
        """Return the (fractional) index (n, dim) of points (n, dim) in metres."""
        offset, inverse = points - self.origin, np.linalg.inv(self.matrix)
        return np.stack([along_axis(offset, row) for row in inverse], axis=-1)

    def at(self, points: Floats, outside: float | None = None) -> Floats:
        """Return values (n,) at points (n, dim), interpolated linearly between the centres of voxels.

        Beyond the outermost centres, values are those of the nearest voxel up to half a voxel. Further away they are
        `outside`, or those of the nearest voxel if it is None.
        """
        from scipy.ndimage import map_coordinates

        index = self.indices(points)
        extent = np.array(self.values.shape) - 1.0
        values = map_coordinates(np.asarray(self.values, np.float64), np.clip(index, 0.0, extent).T, order=1)
        if outside is not None:
            beyond = np.any((index < -0.5 - 1e-9) | (index > extent + 0.5 + 1e-9), axis=1)
            values = np.where(beyond, outside, values)
        return np.asarray(values)

    def corners(self) -> Floats:
        """Return the corners (2^dim, dim) of the image, which are half a voxel beyond the outermost centres."""
        dim = self.values.ndim
        index = np.stack(np.meshgrid(*((-0.5, n - 0.5) for n in self.values.shape), indexing="ij"), -1)
        return np.asarray(index.reshape(-1, dim) @ self.matrix.T + self.origin)


@dataclass(frozen=True)
class VoxelRegion:
    """A region of an image: voxels with one of `labels`, or with values from `above` to `below`.

    Without any of them, the voxels that are not zero. `smoothing` is the width of the Gaussian in voxels; None is 1 for
    labels and 0 for limits.
    """

    labels: tuple[int, ...] | None = None
    above: float | None = None
    below: float | None = None
    smoothing: float | None = None

    @property
    def has_limits(self) -> bool:
        """Return whether the region is given by limits of the values."""
        return self.above is not None or self.below is not None

    def contains(self, values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return flags of the voxels in the region."""
        if self.labels is not None:
            return np.isin(values, np.array(self.labels))
        if not self.has_limits:
            return np.asarray(values != 0)
        low = -np.inf if self.above is None else self.above
        high = np.inf if self.below is None else self.below
        return np.asarray((values >= low) & (values <= high))


def field_of_region(
    image: VoxelImage, region: VoxelRegion, periodic: Sequence[bool] = (False, False, False)
) -> VoxelImage:
    """Return the part of an image around a region, with a field that is positive in the region and negative outside.

    Along `periodic` axes of the image it repeats, and the field includes the first layer of the next period. CaseError
    if the region is empty or fills the image.
    """
    from scipy.ndimage import gaussian_filter

    inside = region.contains(image.values)
    if not inside.any() or inside.all():
        state = "no voxel" if not inside.any() else "every voxel"
        raise CaseError(f"{state} of the image is in the region; {_found(image.values)}")
    low, high = [], []
    for axis, repeats in enumerate(periodic[: inside.ndim]):
        used = np.flatnonzero(inside.any(axis=tuple(k for k in range(inside.ndim) if k != axis)))
        first, last = int(used[0]) - _MARGIN, int(used[-1]) + _MARGIN + 1
        size = inside.shape[axis]
        low.append(-_MARGIN if repeats else max(0, first))
        high.append(size + _MARGIN if repeats else min(size, last))
    rows = [np.arange(a, b) % n for a, b, n in zip(low, high, inside.shape, strict=True)]
    values, flags = image.values[np.ix_(*rows)], inside[np.ix_(*rows)]
    field = _limit_field(values, flags, region) if region.has_limits else _distance(flags, image.voxel)
    width = region.smoothing if region.smoothing is not None else 0.0 if region.has_limits else 1.0
    if width > 0.0:
        field = 2.0 * gaussian_filter(field, width, mode="nearest") - gaussian_filter(
            field, np.sqrt(2.0) * width, mode="nearest"
        )
    field[field == 0.0] = 1e-9 * np.abs(field).max()
    crop = [slice(_MARGIN, len(r) - _MARGIN + 1) if p else slice(None) for r, p in zip(rows, periodic, strict=False)]
    start = np.array([0 if p else a for a, p in zip(low, periodic, strict=False)], np.float64)
    return VoxelImage(field[tuple(crop)], image.matrix, image.origin + image.matrix @ start)


@set_up_stage("voxelise")
def surface_of_region(
    image: VoxelImage, region: VoxelRegion, periodic: Sequence[bool] = (False, False, False)
) -> Surface:
    """Return the surface (metres) of a region of an image of three axes, open where it leaves the image.

    Along the `periodic` axes of the image its ends are one period apart. CaseError if there is no surface.
    """
    import igl

    if image.values.ndim != 3:
        raise CaseError(f"the image has {image.values.ndim} axes; a surface needs three")
    field = field_of_region(image, region, periodic)
    values, shape = field.values, np.array(field.values.shape)
    positive = values > 0.0
    count = np.zeros(shape - 1, np.int8)
    for corner in _CORNERS:
        count += positive[tuple(slice(c, n - 1 + c) for c, n in zip(corner, shape, strict=True))]
    cubes = np.argwhere((count > 0) & (count < 8))
    if not len(cubes):
        raise CaseError("the region has no surface inside the image; check labels, limits and smoothing")
    nodes = (cubes[:, None, :] + np.array(_CORNERS)).reshape(-1, 3)
    used, number = np.unique(np.ravel_multi_index(tuple(nodes.T), tuple(shape)), return_inverse=True)
    index = np.stack(np.unravel_index(used, tuple(shape)), axis=1).astype(np.float64)
    vertices, faces, _ = igl.marching_cubes(
        -values.reshape(-1)[used].astype(np.float64), index, number.reshape(-1, 8).astype(np.int64), 0.0
    )
    corners = (vertices @ field.matrix.T + field.origin)[faces]
    if np.linalg.det(field.matrix) < 0.0:  # libigl orients the triangles towards lower values
        corners = corners[:, ::-1]
    return Surface.from_triangles(np.ascontiguousarray(corners))


def _limit_field(values: npt.NDArray[Any], inside: npt.NDArray[np.bool_], region: VoxelRegion) -> Floats:
    """Return the distance of values from the nearer limit, positive between the limits."""
    field = np.full(values.shape, np.inf)
    if region.above is not None:
        np.minimum(field, values - region.above, out=field)
    if region.below is not None:
        np.minimum(field, region.below - values, out=field)
    smallest = 1e-9 * max(float(np.abs(field).max()), np.finfo(float).tiny)
    return np.where(inside, np.maximum(field, smallest), field)


def _distance(inside: npt.NDArray[np.bool_], voxel: Floats) -> Floats:
    """Return the signed distance to the boundary of flags, positive inside, in the smallest voxel size.

    It is the distance to the nearest voxel on the other side less half a voxel, so the boundary is half-way.
    """
    from scipy.ndimage import distance_transform_edt

    size = voxel / voxel.min()
    within, beyond = (distance_transform_edt(flags, sampling=size) for flags in (inside, ~inside))
    return np.asarray(np.where(inside, within - 0.5, 0.5 - beyond))


def _found(values: npt.NDArray[Any]) -> str:
    """Return a text about the values of an image."""
    if values.dtype.kind in "iub":
        distinct = np.unique(values)
        if len(distinct) <= 20:
            return "its values are " + ", ".join(str(int(value)) for value in distinct)
    return f"its values are from {float(values.min()):g} to {float(values.max()):g}"
