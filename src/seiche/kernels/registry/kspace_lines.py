# SPDX-License-Identifier: BSD-3-Clause
"""Kernels whose teams transform lines along one axis, `kernels/kspace/lines.hpp`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from math import log2, prod

from .kspace import CPP, DensityKind, cpp_bool, density_type, medium_type
from .line_teams import REST, TEAMS, UNTIMED, LineTeam
from .spec import CPP_TYPE, KernelSpec, Members, Real, pointers, typed_members

#: Maximum length of lines, and the number of line pairs in a batch whose scratch has 64 KiB.
CAPACITIES = {128: 16, 256: 16, 512: 8, 1024: 4, 2048: 2}
#: Maximum factor that a thread transforms, and the longest line whose length is a compile-time constant.
MAX_RADIX, MAX_FIXED_LENGTH = 16, 4096
#: Maximum factor of rows if three factors suffice: fewer registers per thread, so more threads are resident.
_ROW_RADIX = 8
#: Adjacent lines up to this length fill whole memory lines: 128 bytes of a spectrum.
_MAX_WIDE_LENGTH = 640
#: Target number of complex numbers per thread in kernels with much other work, and in pure transforms of spectra.
_PER_THREAD, _SIDE_PER_THREAD = 8, 20
_MAX_THREADS = 512
_PLAN: Members = (("roots", "ptr"), *typed_members("int32", "length stages"), ("radix", ("int32", 16)))
LINES: Members = (*typed_members("int64", "outer inner batches"), ("plan", _PLAN))


@dataclass(frozen=True)
class LineShape:
    """Division of lines among the threads of a team.

    Attributes:
        cpp: C++ type.
        real: precision.
        lanes: complex lines (pairs of real ones) of a team.
        threads: threads of a team.
        blocks: teams to be resident (0: chosen by the kernel).
        cost: modelled work of the threads per number; 1 if no thread is idle and each has the target number.
    """

    cpp: str
    real: Real
    lanes: int
    threads: int
    blocks: int = 0
    cost: float = 1.0


def any_lines(length: int, last: bool, real: Real) -> LineShape | None:
    """Return the shape for lines of any length, along the last axis or another; None if they are too long."""
    capacity = next((capacity for capacity in CAPACITIES if capacity >= length), None)
    if capacity is None:
        return None
    lanes = CAPACITIES[capacity] // (2 if real == "float64" else 1)
    return LineShape(f"{CPP}AnyLines<{CPP_TYPE[real]},{capacity},{lanes},{cpp_bool(last)}>", real, lanes, 256)


@cache
def radices_of(length: int, max_radix: int = MAX_RADIX) -> tuple[int, ...] | None:
    """Return the fewest, then smallest factors of a length, the large ones outside; None with a prime above 7.

    A length of 1 has one factor.
    """
    best: tuple[int, ...] | None = None

    def search(quotient: int, max_radix: int, factors: tuple[int, ...]) -> None:
        nonlocal best
        if best is not None and len(factors) + (quotient > 1) > len(best):
            return
        if quotient == 1:
            if best is None or (len(factors), max(factors), sum(factors)) < (len(best), max(best), sum(best)):
                best = factors
            return
        for radix in range(min(max_radix, quotient), 1, -1):
            if quotient % radix == 0 and radix not in (11, 13):
                search(quotient // radix, radix, (*factors, radix))

    if length == 1:
        return (1,)
    search(length, max_radix, ())
    # The largest at both ends: forward and backward transforms then exchange numbers over the same distances.
    return None if best is None else (*best[::2], *best[1::2][::-1])


def fixed_lines(length: int, last: bool, real: Real) -> LineShape | None:
    """Return the shape for lines of exactly this length; None if its factors are not supported."""
    radices = _radices(length, last)
    if radices is None:
        return None
    lanes = max(1, 256 * _PER_THREAD // length) if last else _side_lanes(length, real)
    return _shape("FixedLines", radices, last, real, lanes, per_thread=_PER_THREAD)


def fixed_transform(length: int, last: bool, real: Real) -> LineShape | None:
    """Return the shape for transforms of complex lines of this length; None if its factors are not supported.

    Along the last axis adjacent threads work on the same line, otherwise on adjacent lines.
    """
    radices = _radices(length, last)
    if radices is None:
        return None
    if last:
        lanes = max(1, 256 * _PER_THREAD // length)
        return _shape("FixedTransform", radices, last, real, lanes, per_thread=_PER_THREAD)
    if (timed := _timed(length, real)) is not None:
        return team_shape(timed[2])
    lanes = _side_lanes(length, real) * (2 if 256 < length <= _MAX_WIDE_LENGTH else 1)
    return _shape("FixedTransform", radices, last, real, lanes, per_thread=_SIDE_PER_THREAD)


def fixed_pass(length: int, real: Real) -> LineShape | None:
    """Return the shape for passes that multiply spectra between two transforms, along an axis before the last."""
    timed = _timed(length, real)
    return fixed_transform(length, False, real) if timed is None else team_shape(timed[0])


def _timed(length: int, real: Real) -> tuple[LineTeam, float, LineTeam] | None:
    return TEAMS.get(length) if real == "float32" else None


def step_cost(length: int, last: bool, real: Real) -> float:
    """Return the modelled picoseconds per number and step for an axis of this length (one H100), or infinity."""
    shape = fixed_transform(length, last, real)
    if shape is None:
        return float("inf")
    timed = None if last else _timed(length, real)
    return REST + (shape.cost * UNTIMED if timed is None else timed[1])


def team_shape(team: LineTeam) -> LineShape:
    """Return the shape of a team in single precision."""
    text = ",".join(map(str, team.radices))
    cpp = f"{CPP}FixedTransform<float,{CPP}Radices<{text}>,{team.lanes},{team.threads},false>"
    return LineShape(cpp, "float32", team.lanes, team.threads, team.blocks)


def _radices(length: int, last: bool) -> tuple[int, ...] | None:
    if not 2 <= length <= MAX_FIXED_LENGTH:
        return None
    small = radices_of(length, _ROW_RADIX) if last else None
    return small if small is not None and len(small) <= 3 else radices_of(length)


def _side_lanes(length: int, real: Real) -> int:
    lanes = (16 if length <= 256 else 8) if real == "float32" else 8 if length <= 256 else 4
    return lanes if length <= 1024 else lanes // 2


def _shape(name: str, radices: tuple[int, ...], last: bool, real: Real, lanes: int, *, per_thread: int) -> LineShape:
    """Return the shape with about `per_thread` numbers per thread and few idle threads."""
    length = prod(radices)
    limit = _MAX_THREADS if real == "float32" else _MAX_THREADS // 2

    def cost(threads: int) -> float:
        rounds = [-(-length // radix * lanes // threads) for radix in radices]
        work = sum(count * threads * radix for count, radix in zip(rounds, radices, strict=True))
        return work / (length * lanes * len(radices)) * (1 + 0.15 * abs(log2(lanes * length / threads / per_thread)))

    threads = min(range(32, limit + 1, 32), key=cost)
    text = ",".join(map(str, radices))
    cpp = f"{CPP}{name}<{CPP_TYPE[real]},{CPP}Radices<{text}>,{lanes},{threads},{cpp_bool(last)}>"
    return LineShape(cpp, real, lanes, threads, cost=cost(threads))


def _line(name: str, members: Members, shape: LineShape, flags: str = "") -> KernelSpec:
    """Return a kernel with one item per batch of lines."""
    # Some versions of the assembler spill a few words of addresses outside the butterflies.
    limit = 255 if shape.threads <= 256 else 128
    spec = KernelSpec(f"{CPP}{name}{shape.cpp}{flags}>", "kspace/lines.hpp", members, threads=shape.threads)
    return replace(spec, max_registers=limit, team=True, may_spill=True)


def line_filter(shape: LineShape) -> KernelSpec:
    """Multiply the spectrum of lines by a factor."""
    members: Members = (*pointers("in out factor"), ("lines", LINES))
    return _line("LineFilter<", members, shape)


def line_correction(density: DensityKind, varying: bool, shape: LineShape) -> KernelSpec:
    """Correction for the local sound speed along one axis."""
    kind, density_members = density_type(density, shape.real)
    medium, medium_members = medium_type(varying, shape.real)
    policies: Members = (("density", density_members), ("medium", medium_members), ("lines", LINES))
    scalars: Members = (("component", "int64"), ("scale", shape.real), ("first", "int32"))
    members: Members = (*pointers("p sum forward back"), *policies, *scalars)
    return _line(f"LineCorrection<{kind},{medium},", members, shape)


def line_step(
    density: DensityKind, varying: bool, nonlinear: bool, shape: LineShape, *, momentum: bool = True, mass: bool = True
) -> KernelSpec:
    """A step along one axis."""
    kind, density_members = density_type(density, shape.real)
    medium, medium_members = medium_type(varying, shape.real)
    arrays = pointers("p u rho total rate forward back pml pml_staggered")
    policies: Members = (("density", density_members), ("medium", medium_members), ("lines", LINES))
    members: Members = (*arrays, *policies, ("component", "int64"), ("dt", shape.real), ("first", "int32"))
    halves = f",{cpp_bool(momentum)},{cpp_bool(mass)}"
    return _line(f"LineStep<{kind},{medium},{cpp_bool(nonlinear)},", members, shape, halves)


def other_kernels() -> Iterator[KernelSpec]:
    """Yield the largest kernels: any length, and lengths with many factors."""
    shapes = [any_lines(256, last, "float32") for last in (False, True)]
    shapes += [any_lines(1024, last, "float64") for last in (False, True)]
    shapes += [fixed_lines(512, last, real) for last in (False, True) for real in ("float32", "float64")]
    shapes += [fixed_lines(420, False, "float32")]
    for shape in shapes:
        assert shape is not None
        yield line_filter(shape)
        yield line_correction("mean", True, shape)
        for momentum, mass in ((True, True), (True, False), (False, True)):
            yield line_step("mean", True, True, shape, momentum=momentum, mass=mass)
