# SPDX-License-Identifier: BSD-3-Clause
"""How a grid is shared among ranks: transforms of the whole grid, or a local Fourier basis, by what a step would cost.

What counts is the bytes of theory/ultrasound, sections 3, 12 and 13, at the rates of a machine file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from seiche.backend import open_backend
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.kernels.registry import Real
from seiche.machine.in_use import machine_in_use
from seiche.machine.laws.file import Machine
from seiche.machine.laws.halo_times import transport_times
from seiche.machine.laws.locality import RankPlace, places
from seiche.machine.laws.predict import exchange_times, layout_of
from seiche.ultrasound.extents import lines_of, widened
from seiche.ultrasound.local_basis import Part, best_split, parts_of, possible_splits
from seiche.ultrasound.problem import Problem
from seiche.ultrasound.slabs import slabs_of

Basis: TypeAlias = Literal["auto", "local", "global"]
Splits: TypeAlias = Mapping[tuple[int, ...], Sequence[Part]]
#: Width of the overlaps by default: errors of 1e-3 to 1e-4 at four points a wavelength.
OVERLAP = 12
#: Bytes a point and step in single precision: passes and transforms, without and with power-law absorption.
_PASSES, _TRANSFORM = {False: 120, True: 180}, 24
#: Both where kernels transform lines, on a part.
_BY_LINES = {False: 220, True: 328}
_TRANSFORMS = {False: 10, True: 14}
#: Read and written by the packing of a message's half spectrum, or by the taper of a field.
_PACKED = 8


@dataclass(frozen=True)
class Sharing:
    """How several ranks share a grid.

    Attributes:
        basis: "local": parts that overlap, with transforms of their own; "global": slabs whose transforms cover the
            whole grid; "auto": what the machine file in use makes the faster. By default local, global for schemes
            along one axis. One rank has the whole grid unless a basis is named.
        overlap: points that parts share with each neighbour, at least: some more where that makes parts whose lines the
            kernels can transform. Of the local basis, as `split` and `slope`.
        split: pieces along each axis; by default those with the least work.
        slope: of the bell; the one that suits the overlap by default.
        transport: how messages travel.
    """

    basis: str | None = None
    overlap: int = OVERLAP
    split: tuple[int, ...] | None = None
    slope: float | None = None
    transport: str = "auto"


@dataclass(frozen=True)
class Plan:
    """What was chosen, and the seconds of a step that were predicted of each; none without a machine file.

    `split` are the pieces along each axis of the local basis, None for those with the least work.
    """

    basis: str
    predicted: dict[str, float] = field(default_factory=dict)
    split: tuple[int, ...] | None = None

    def describe(self) -> str:
        """Return the plan as one line."""
        times = "; ".join(f"{name} {1e3 * seconds:.3g} ms a step predicted" for name, seconds in self.predicted.items())
        split = "" if self.split is None else f" {' x '.join(map(str, self.split))}"
        return f"basis {self.basis}{split}" + (f": {times}" if times else "")


def check_basis(basis: str) -> None:
    """Refuse an unknown basis.

    Raises:
        CaseError: naming those that there are.
    """
    if basis not in get_args(Basis):
        raise CaseError(f"basis: {basis!r} is not {', '.join(get_args(Basis)[:-1])} or {get_args(Basis)[-1]}")


def basis_of(basis: str, scheme: str, shape: tuple[int, ...]) -> str:
    """Return the basis that a scheme takes where this one is asked for; only the exact scheme has a local one.

    Raises:
        CaseError: an unknown basis, or one that goes with the exact scheme only.
    """
    check_basis(basis)
    if scheme == "exact":
        return basis
    if basis == "local":
        raise CaseError(f'basis: the {scheme} scheme has no local basis; take "global"')
    if len(shape) == 1:
        raise CaseError(f"scheme: the {scheme} scheme runs on one rank where the grid has one axis")
    return "global"


def choose(
    problem: Problem,
    splits: Splits,
    machine: Machine | None,
    places: Sequence[RankPlace],
    size: int,
    *,
    lines: Real | None = None,
) -> Plan:
    """Return the plan of a problem whose basis is left open: the faster one, the local one without a machine file.

    Args:
        problem: the whole problem.
        splits: of the local basis, with their parts; empty where the grid cannot be cut for it.
        machine: what was measured, if anything.
        places: of all ranks.
        size: bytes of a number.
        lines: precision in which kernels transform the lines of parts, if they do.

    Raises:
        CaseError: the grid cannot be shared in either way.
    """
    slabs: Sequence[Part] | None
    try:
        slabs = slabs_of(problem.shape, len(places))
    except CaseError:
        if not splits:
            raise
        slabs = None
    if not splits:
        return Plan("global")
    if machine is None:
        return Plan("local")
    local = {
        split: _local_seconds(problem, parts, machine, places, size, lines=lines) for split, parts in splits.items()
    }
    split = min(local, key=lambda split: local[split])
    times = {"local": local[split]}
    if slabs is not None:
        times["global"] = _global_seconds(problem, slabs, machine, places, size)
    known = {name: seconds for name, seconds in times.items() if np.isfinite(seconds)}
    if not known:
        return Plan("local")
    basis = min(known, key=lambda name: known[name])
    return Plan(basis, known, split if basis == "local" else None)


def _is_power_law(problem: Problem) -> bool:
    return problem.absorption is not None and not problem.absorption.stokes


def _memory_seconds(machine: Machine, size: int, gpus: bool, points: int, bytes_a_point: float) -> float:
    """Return how long a rank's memory takes for bytes that are told for single precision."""
    kind = "device" if gpus else "host"
    if kind not in machine.memory:
        return float("inf")
    rate = machine.memory[kind] / max(1, int(machine.hardware.get("ranks", 1)))
    return points * bytes_a_point * size / 4 / rate


def _local_seconds(
    problem: Problem,
    parts: Sequence[Part],
    machine: Machine,
    places: Sequence[RankPlace],
    size: int,
    *,
    lines: Real | None,
) -> float:
    gpus, power = all(place.gpu for place in places), _is_power_law(problem)
    fields = 1 + problem.dimensions + 2 * power
    points = max(int(np.prod(part.shape)) for part in parts)
    by_lines = lines is not None and widened(parts, lines) is not None
    library = _PASSES[power] + _TRANSFORM * _TRANSFORMS[power] + _PACKED * fields
    work = _BY_LINES[power] if by_lines else library
    total = _memory_seconds(machine, size, gpus, points, work)
    slowest = 0.0
    for part in parts:
        received = [shared_points(part, other) * size for other in parts]
        sent = [shared_points(other, part) * size for other in parts]
        peers = [other.rank for other in parts]
        times = transport_times(machine, places, part.rank, peers, sent=sent, received=received)
        slowest = max(slowest, fields * min(times.values()))  # a message a field; none counts as hidden
    return total + slowest


def _global_seconds(
    problem: Problem, slabs: Sequence[Part], machine: Machine, places: Sequence[RankPlace], size: int
) -> float:
    gpus, power = all(place.gpu for place in places), _is_power_law(problem)
    points = max(int(np.prod(part.shape)) for part in slabs)
    work = _PASSES[power] + (_TRANSFORM + _PACKED) * _TRANSFORMS[power]
    message = points * size / len(slabs)
    times = exchange_times(machine, layout_of(places), message, whole=True, gpus=gpus)
    exchange = min(times.values(), default=float("inf"))
    return _memory_seconds(machine, size, gpus, points, work) + _TRANSFORMS[power] * exchange


def shared_points(part: Part, owner: Part) -> int:
    """Return how many points of the overlaps of a part belong to another one, or to itself where it wraps round."""
    counts = []
    for mine, others in zip(part.windows, owner.windows, strict=True):
        numbers: npt.NDArray[np.int64] = mine.indices(clipped=False)
        counts.append(int(np.count_nonzero((numbers >= others.start) & (numbers < others.start + others.core))))
    own = int(np.prod([one.core for one in part.windows])) if part.rank == owner.rank else 0
    return int(np.prod(counts)) - own


def plan_of(problem: Problem, world: World, sharing: Sharing, options: Mapping[str, Any]) -> Plan:
    """Return the plan that is asked for, or the one of the machine model (collective); `options` are the solver's."""
    scheme, split = options.get("scheme", "exact"), sharing.split
    basis = basis_of(sharing.basis or ("local" if scheme == "exact" else "global"), scheme, problem.shape)
    if basis == "global" and split is not None:
        raise CaseError(f"split: {split} goes with the local basis; the global one has slabs")
    if basis != "auto" or split is not None:
        return Plan("local" if basis == "auto" else basis, split=split)
    machine = machine_in_use(world, None)
    lines = lines_of(options)
    possible = possible_splits(problem.shape, world.size, sharing.overlap)
    splits = {one: _for_lines(parts, lines) for one, parts in possible.items()}
    backend = open_backend(options.get("device", "cpu"), options.get("threads"), world.local_rank)
    size = np.dtype(options.get("precision", "float32")).itemsize
    return choose(problem, splits, machine, places(backend, world), size, lines=lines)


def parts_for(
    shape: tuple[int, ...],
    ranks: int,
    basis: str,
    *,
    split: tuple[int, ...] | None,
    overlap: int,
    lines: Real | None = None,
) -> list[Part]:
    """Return the parts of a grid, one a rank; overlaps are wider where `lines` of that precision need it.

    Raises:
        CaseError: the grid cannot be cut so.
    """
    if basis == "global":
        return slabs_of(shape, ranks)
    parts = parts_of(shape, best_split(shape, ranks, overlap) if split is None else split, overlap)
    if len(parts) != ranks:
        raise CaseError(f"split: {split} makes {len(parts)} parts for {ranks} ranks")
    return _for_lines(parts, lines)


def _for_lines(parts: list[Part], lines: Real | None) -> list[Part]:
    return parts if lines is None else widened(parts, lines) or parts
