# SPDX-License-Identifier: BSD-3-Clause
"""The part of a grid on each rank: all of it, or a piece (theory/ultrasound, sections 12 and 13)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seiche.backend import parse_device
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.kernels.registry import Real
from seiche.ultrasound.extents import line_precision, widen_overlaps
from seiche.ultrasound.line_passes import line_shape, too_long
from seiche.ultrasound.local_basis import Part, part_problem
from seiche.ultrasound.plan import Decomposition, Plan, parts_for, plan_of
from seiche.ultrasound.problem import Problem, Window

if TYPE_CHECKING:
    from seiche.ultrasound.overlaps import LocalBasis
    from seiche.ultrasound.slabs import Slabs


@dataclass(frozen=True, eq=False)
class Partition:
    """The parts of a grid, one per rank.

    Attributes:
        world: the ranks.
        shape: points along each axis of the whole grid.
        parts: all of them.
        problem: on the part of this rank, overlaps included.
        transforms: of the scheme ("auto", "library" or "lines"), the same on every rank.
        basis: the decomposition, None where one rank has the whole grid.
        plan: the reason for it, None there.
    """

    world: World
    shape: tuple[int, ...]
    parts: Sequence[Part]
    problem: Problem
    transforms: str
    basis: LocalBasis | Slabs | None = None
    plan: Plan | None = None

    @property
    def part(self) -> Part:
        """Return the part of this rank."""
        return self.parts[self.world.rank]

    @property
    def keys(self) -> npt.NDArray[np.int64]:
        """Return the indices of this rank's owned points in the whole grid, in C order."""
        axes = np.ix_(*(np.arange(axis_slice.start, axis_slice.stop) for axis_slice in self.part.grid_slices))
        return np.asarray(np.ravel_multi_index(axes, self.shape), np.int64).reshape(-1)

    def owned(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return values of the part, of any shape, at this rank's owned points as a block."""
        return np.ascontiguousarray(values.reshape(self.part.shape)[self.part.core])

    def padded(self, values: npt.NDArray[Any], real: np.dtype[Any]) -> npt.NDArray[Any]:
        """Return values at the owned points, of any shape, as an array over the part (points,), zero in overlaps."""
        part = np.zeros(self.part.shape, real)
        block = part[self.part.core]
        block[...] = np.reshape(values, block.shape)
        return part.reshape(-1)

    def gathered(self, block: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the blocks of all ranks as one array; collective."""
        if len(self.parts) == 1:
            return block
        field = np.empty(self.shape, block.dtype)
        for part, values in zip(self.parts, self.world.allgather(block), strict=True):
            field[part.grid_slices] = values
        return field


def partition_of(problem: Problem, world: World, decomposition: Decomposition, options: Mapping[str, Any]) -> Partition:
    """Return the parts of a problem for options of the solver (collective); raise CaseError if it cannot be cut."""
    shape, transforms = problem.shape, options["transforms"]
    if world.size == 1 and decomposition.basis is None:
        return Partition(world, shape, [Part(0, tuple(Window(n, 0, n, 0) for n in shape))], problem, transforms)
    from seiche.machine.collectives import ALGORITHMS
    from seiche.ultrasound.overlaps import LocalBasis
    from seiche.ultrasound.slabs import Slabs, column_problem, slab_problem

    plan, exact = plan_of(problem, world, decomposition, options), options["scheme"] == "exact"
    elastic = problem.elastic is not None
    lines = line_precision(options, elastic=elastic)
    parts = parts_for(shape, world.size, plan.basis, split=plan.split, overlap=decomposition.overlap, lines=lines)
    basis: LocalBasis | Slabs
    if plan.basis == "local":
        if elastic and lines is not None:
            _check_lengths(
                problem, parts, lines, fixed=transforms == "lines" or parse_device(options.get("device", "cpu")).is_gpu
            )
        basis = LocalBasis(world, parts, decomposition.slope, decomposition.transport)
        local_problem = part_problem(problem, parts[world.rank])
        if lines is not None and world.size > 1 and not elastic:  # lines on all ranks, or on none
            if widen_overlaps(parts, lines) is None and transforms == "lines":
                sizes = "; ".join(sorted({"x".join(map(str, part.shape)) for part in parts}))
                raise CaseError(
                    f'transforms: no extent close to parts of {sizes} points has only factors up to 7; use "library"'
                )
            transforms = "library" if widen_overlaps(parts, lines) is None else "lines"
    else:
        columns = None if exact else column_problem(problem, world.size, world.rank)
        transport = decomposition.transport if decomposition.transport in ALGORITHMS else "auto"
        basis = Slabs(world, parts, transport, columns)
        local_problem = slab_problem(problem, parts, world.rank, axis_wise=not exact)
    return Partition(world, shape, parts, local_problem, transforms, basis, plan)


def _check_lengths(problem: Problem, parts: Sequence[Part], real: Real, *, fixed: bool) -> None:
    """Raise CaseError on every rank if an axis of any part of an elastic medium is too long for the kernels."""
    for part in parts:
        for axis, (name, length) in enumerate(zip(problem.axes, part.shape, strict=True)):
            if line_shape(length, axis == problem.dimensions - 1, real, fixed) is None:
                raise CaseError(too_long(length, name))
