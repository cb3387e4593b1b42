# SPDX-License-Identifier: BSD-3-Clause
"""Decomposition of a grid: global transforms or a local Fourier basis, by the predicted cost of a step.

The cost follows from the bytes of theory/ultrasound, sections 3, 12 and 13, at the rates of a machine file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from seiche.backend import open_backend
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.kernels.registry import Real
from seiche.ultrasound.elastic_medium import absorbs
from seiche.ultrasound.extents import line_precision, widen_overlaps
from seiche.ultrasound.local_basis import Part, best_split, parts_of, possible_splits
from seiche.ultrasound.problem import Problem

if TYPE_CHECKING:  # machine files are read on several ranks only
    from seiche.machine.laws.file import Machine
    from seiche.machine.laws.locality import RankPlacement

Basis: TypeAlias = Literal["auto", "local", "global"]
Splits: TypeAlias = Mapping[tuple[int, ...], Sequence[Part]]
#: Default width of the overlaps: errors of 1e-3 to 1e-4 at four points per wavelength.
OVERLAP = 12
#: Bytes per point and step in single precision: passes and transforms, without and with power-law absorption.
_PASSES, _TRANSFORM = {False: 120, True: 180}, 24
#: Passes and transforms together where kernels transform the lines of a part.
_BY_LINES = {False: 220, True: 328}
_TRANSFORMS = {False: 10, True: 14}
#: Bytes read and written to pack a message's half spectrum, or to taper a field.
_PACK_BYTES = 8


@dataclass(frozen=True)
class Decomposition:
    """Decomposition of a grid among several ranks.

    Attributes:
        basis: "local": overlapping parts with separate transforms; "global": slabs with transforms of the whole grid;
            "auto": the faster one by the machine file in use. The default is local, or global for axis-wise schemes.
            One rank has the whole grid unless a basis is given.
        overlap: minimum number of points that parts of the local basis share with each neighbour; widened where this
            allows line transforms.
        split: pieces along each axis of the local basis; by default those with the least work.
        slope: slope of the bell function of the local basis; by default the best one for the overlap.
        transport: of the messages.
    """

    basis: str | None = None
    overlap: int = OVERLAP
    split: tuple[int, ...] | None = None
    slope: float | None = None
    transport: str = "auto"


@dataclass(frozen=True)
class Plan:
    """The chosen basis, and the predicted seconds of a step for each; none without a machine file.

    `split` are the pieces along each axis of the local basis, None for those with the least work.
    """

    basis: str
    predicted: dict[str, float] = field(default_factory=dict)
    split: tuple[int, ...] | None = None

    def describe(self) -> str:
        """Return the plan as one line."""
        times = "; ".join(
            f"{name} {1e3 * seconds:.3g} ms per step predicted" for name, seconds in self.predicted.items()
        )
        split = "" if self.split is None else f" {' x '.join(map(str, self.split))}"
        return f"basis {self.basis}{split}" + (f": {times}" if times else "")


def check_basis(basis: str) -> None:
    """Raise CaseError for an unknown basis."""
    if basis not in get_args(Basis):
        raise CaseError(f"basis: {basis!r} is not {', '.join(get_args(Basis)[:-1])} or {get_args(Basis)[-1]}")


def basis_of(basis: str, scheme: str, shape: tuple[int, ...], *, elastic: bool = False) -> str:
    """Return the basis of a scheme for a requested one.

    Raises:
        CaseError: a local one unless the scheme is exact, or transforms of the whole grid in an elastic medium.
    """
    check_basis(basis)
    if elastic:
        if basis == "global":
            raise CaseError('basis: an elastic medium has no global basis; use "local"')
        return "local"
    if scheme == "exact":
        return basis
    if basis == "local":
        raise CaseError(f'basis: the {scheme} scheme has no local basis; use "global"')
    if len(shape) == 1:
        raise CaseError(
            f"scheme: on a grid with one axis the {scheme} scheme requires a single rank; use the exact scheme"
        )
    return "global"


def choose(
    problem: Problem,
    splits: Splits,
    machine: Machine | None,
    placements: Sequence[RankPlacement],
    size: int,
    *,
    lines: Real | None = None,
) -> Plan:
    """Return the plan for basis "auto": the faster one, or the local one without a machine file.

    Args:
        problem: the whole problem.
        splits: of the local basis, with their parts; empty where the grid cannot be cut for it.
        machine: measured rates, if any.
        placements: hosts and processors of all ranks.
        size: bytes of a number.
        lines: precision of line transforms in kernels, if they are used.

    Raises:
        CaseError: the grid can be cut neither into slabs nor for a local basis.
    """
    from seiche.ultrasound.slabs import slabs_of

    slabs: Sequence[Part] | None
    try:
        slabs = slabs_of(problem.shape, len(placements))
    except CaseError:
        if not splits:
            raise
        slabs = None
    if not splits:
        return Plan("global")
    if machine is None:
        return Plan("local")
    seconds_by_split = {
        split: _local_seconds(problem, parts, machine, placements, size, lines=lines) for split, parts in splits.items()
    }
    split = min(seconds_by_split, key=lambda split: seconds_by_split[split])
    seconds_by_basis = {"local": seconds_by_split[split]}
    if slabs is not None:
        seconds_by_basis["global"] = _global_seconds(problem, slabs, machine, placements, size)
    predicted = {name: seconds for name, seconds in seconds_by_basis.items() if np.isfinite(seconds)}
    if not predicted:
        return Plan("local")
    basis = min(predicted, key=lambda name: predicted[name])
    return Plan(basis, predicted, split if basis == "local" else None)


def _memory_seconds(machine: Machine, size: int, gpus: bool, points: int, bytes_a_point: float) -> float:
    """Return the time of a rank's memory traffic; `bytes_a_point` is for single precision."""
    kind = "device" if gpus else "host"
    if kind not in machine.memory:
        return float("inf")
    rate = machine.memory[kind] / max(1, int(machine.hardware.get("ranks", 1)))
    return points * bytes_a_point * size / 4 / rate


def _local_seconds(
    problem: Problem,
    parts: Sequence[Part],
    machine: Machine,
    placements: Sequence[RankPlacement],
    size: int,
    *,
    lines: Real | None,
) -> float:
    from seiche.machine.laws.halo_times import transport_times

    gpus, power = all(placement.gpu for placement in placements), problem.has_fractional_terms
    fields = 1 + problem.dimensions + 2 * power
    points = max(int(np.prod(part.shape)) for part in parts)
    by_lines = lines is not None and widen_overlaps(parts, lines) is not None
    library = _PASSES[power] + _TRANSFORM * _TRANSFORMS[power] + _PACK_BYTES * fields
    work = _BY_LINES[power] if by_lines else library
    total = _memory_seconds(machine, size, gpus, points, work)
    max_rank_time = 0.0
    for part in parts:
        received = [shared_points(part, peer) * size for peer in parts]
        sent = [shared_points(peer, part) * size for peer in parts]
        peers = [peer.rank for peer in parts]
        times = transport_times(machine, placements, part.rank, peers, sent=sent, received=received)
        max_rank_time = max(
            max_rank_time, fields * min(times.values())
        )  # one message per field, without overlap in time
    return total + max_rank_time


def _global_seconds(
    problem: Problem, slabs: Sequence[Part], machine: Machine, placements: Sequence[RankPlacement], size: int
) -> float:
    from seiche.machine.laws.predict import exchange_times, layout_of

    gpus, power = all(placement.gpu for placement in placements), problem.has_fractional_terms
    points = max(int(np.prod(part.shape)) for part in slabs)
    work = _PASSES[power] + (_TRANSFORM + _PACK_BYTES) * _TRANSFORMS[power]
    message = points * size / len(slabs)
    times = exchange_times(machine, layout_of(placements), message, whole_messages=True, gpus=gpus)
    exchange = min(times.values(), default=float("inf"))
    return _memory_seconds(machine, size, gpus, points, work) + _TRANSFORMS[power] * exchange


def shared_points(part: Part, owner: Part) -> int:
    """Return the number of overlap points of a part that another part owns, or itself where it is periodic."""
    counts = []
    for window, owner_window in zip(part.windows, owner.windows, strict=True):
        numbers: npt.NDArray[np.int64] = window.indices(clipped=False)
        counts.append(
            int(np.count_nonzero((numbers >= owner_window.start) & (numbers < owner_window.start + owner_window.core)))
        )
    owned = int(np.prod([window.core for window in part.windows])) if part.rank == owner.rank else 0
    return int(np.prod(counts)) - owned


def received_numbers(problem: Problem, part: Part) -> int:
    """Return the numbers that a rank receives in each step for the overlaps of its part of a local basis.

    In a fluid these are the pressure, the velocities and the fields of a power law, in all overlaps. In an elastic
    medium, for each cut axis, the stresses and velocities that are differentiated along it, with absorption also the
    accelerations, beyond the ends of owned lines.
    """
    core = math.prod(window.core for window in part.windows)
    if problem.elastic is None:
        fields = 1 + problem.dimensions + 2 * problem.has_fractional_terms
        return fields * (math.prod(part.shape) - core)
    fields = problem.dimensions * (3 if absorbs(problem) else 2)
    beyond_lines = (core // window.core * (window.extent - window.core) for window in part.windows)
    return fields * sum(beyond_lines)


def plan_of(problem: Problem, world: World, decomposition: Decomposition, options: Mapping[str, Any]) -> Plan:
    """Return the requested plan, or that of the machine model (collective); `options` are the solver's."""
    scheme, split = options.get("scheme", "exact"), decomposition.split
    requested = decomposition.basis or ("local" if scheme == "exact" else "global")
    basis = basis_of(requested, scheme, problem.shape, elastic=problem.elastic is not None)
    if basis == "global" and split is not None:
        raise CaseError(f"split: {split} applies only to the local basis; the global basis uses slabs")
    if basis != "auto" or split is not None:
        return Plan("local" if basis == "auto" else basis, split=split)
    from seiche.machine.in_use import machine_in_use
    from seiche.machine.laws.locality import rank_placements

    machine = machine_in_use(world, None)
    lines = line_precision(options)
    splits_by_axes = possible_splits(problem.shape, world.size, decomposition.overlap)
    splits = {cut: _for_lines(parts, lines) for cut, parts in splits_by_axes.items()}
    backend = open_backend(options.get("device", "cpu"), options.get("threads"), world.local_rank)
    size = np.dtype(options.get("precision", "float32")).itemsize
    return choose(problem, splits, machine, rank_placements(backend, world), size, lines=lines)


def parts_for(
    shape: tuple[int, ...],
    ranks: int,
    basis: str,
    *,
    split: tuple[int, ...] | None,
    overlap: int,
    lines: Real | None = None,
) -> list[Part]:
    """Return the parts of a grid by rank, with overlaps widened for `lines`; raise CaseError if it cannot be cut."""
    if basis == "global":
        from seiche.ultrasound.slabs import slabs_of

        return slabs_of(shape, ranks)
    parts = parts_of(shape, best_split(shape, ranks, overlap) if split is None else split, overlap)
    if len(parts) != ranks:
        raise CaseError(f"split: {split} makes {len(parts)} parts for {ranks} ranks")
    return _for_lines(parts, lines)


def _for_lines(parts: list[Part], lines: Real | None) -> list[Part]:
    return parts if lines is None else widen_overlaps(parts, lines) or parts
