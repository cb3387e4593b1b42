# SPDX-License-Identifier: BSD-3-Clause
"""The part of a labelled result that pictures and meshes need, and the positions of its arrays in space."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

AXES = ("x", "y", "z")


class NamedArray(Protocol):
    """An array with the names of its dimensions and its SI unit."""

    @property
    def values(self) -> npt.NDArray[Any]: ...  # noqa: D102
    @property
    def dims(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def unit(self) -> str: ...  # noqa: D102


class ResultArrays(Protocol):
    """Fields and records by name, and their coordinates, at one time (s)."""

    @property
    def title(self) -> str: ...  # noqa: D102
    @property
    def time(self) -> float: ...  # noqa: D102
    @property
    def arrays(self) -> Mapping[str, NamedArray]: ...  # noqa: D102
    @property
    def coordinates(self) -> Mapping[str, NamedArray]: ...  # noqa: D102


def axes_of(item: NamedArray) -> tuple[str, ...]:
    """Return the axes of space among the dimensions of an array."""
    return tuple(name for name in item.dims if name in AXES)


def is_at_nodes(item: NamedArray) -> bool:
    """Return whether an array has values at the nodes of elements."""
    return {"element", "node"} <= set(item.dims)


def is_field(item: NamedArray) -> bool:
    """Return whether an array has values in space, and no other dimension than components."""
    other_dims = set(item.dims) - {*AXES, "element", "node", "component", "stress_component"}
    return not other_dims and bool(axes_of(item) or is_at_nodes(item))


def node_positions(result: ResultArrays) -> Floats:
    """Return the positions of the nodes of all elements, (elements, nodes, axes)."""
    coordinates = [result.coordinates[axis].values for axis in AXES if axis in result.coordinates]
    return np.stack(coordinates, axis=-1)


def node_values(item: NamedArray) -> npt.NDArray[Any]:
    """Return values at nodes with their components last, (elements, nodes[, components])."""
    return np.moveaxis(item.values, 1, -1) if item.values.ndim == 3 else item.values


def nodes_along(count: int, axes: int) -> int:
    """Return the number of nodes along each axis of an element of `count` nodes."""
    return int(np.rint(count ** (1 / axes)))
