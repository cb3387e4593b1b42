# SPDX-License-Identifier: BSD-3-Clause
"""Kernels whose teams transform lines along one axis, of `kernels/kspace/lines.hpp`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import log2, prod

from .kspace import CPP, DensityKind, cpp_bool, density_type, medium_type
from .line_teams import REST, TEAMS, UNTIMED, LineTeam
from .spec import CPP_TYPE, KernelSpec, Members, Real

#: Greatest length of lines, and how many of them a batch has two of, so that the scratch of a batch has 64 KiB.
CAPACITIES = {128: 16, 256: 16, 512: 8, 1024: 4, 2048: 2}
#: Factors that a thread takes at once, and the longest line whose length is known while compiling.
LARGEST_RADIX, LONGEST_FIXED = 16, 4096
#: Largest factor of rows, where few factors do with it: threads then hold less and more of them are resident.
_ROW_RADIX = 8
#: Lines up to this length fill whole lines of memory side by side: 128 bytes of a spectrum.
_LONGEST_WIDE = 640
#: Complex numbers that a thread is to hold, in a kernel with much else and in one that transforms spectra alone, and
#: the most threads of a team.
_HELD, _SIDE_HELD, _MOST_THREADS = 8, 20, 512
_PLAN: Members = (("roots", "ptr"), ("length", "int32"), ("stages", "int32"), ("radix", ("int32", 16)))
LINES: Members = (("outer", "int64"), ("inner", "int64"), ("batches", "int64"), ("plan", _PLAN))


@dataclass(frozen=True)
class LineShape:
    """How a team works on lines: its C++ type, how many complex lines of two real ones it has, and its threads.

    `blocks` of them are to be resident, 0 where the kernel may say. `cost` is what threads do for a number, in a model:
    1 where none is ever idle and each holds what it should.
    """

    cpp: str
    real: Real
    lanes: int
    threads: int
    blocks: int = 0
    cost: float = 1.0


def any_lines(length: int, last: bool, real: Real) -> LineShape | None:
    """Return how lines of any length are worked on, along the last axis or another; None if they are too long."""
    capacity = next((each for each in CAPACITIES if each >= length), None)
    if capacity is None:
        return None
    lanes = CAPACITIES[capacity] // (2 if real == "float64" else 1)
    return LineShape(f"{CPP}AnyLines<{CPP_TYPE[real]},{capacity},{lanes},{cpp_bool(last)}>", real, lanes, 256)


@cache
def radices_of(length: int, largest: int = LARGEST_RADIX) -> tuple[int, ...] | None:
    """Return factors of a length, as few and then as small as can be, large ones outside; None with a prime above 7.

    A length of 1 has one factor.
    """
    best: tuple[int, ...] | None = None

    def search(rest: int, largest: int, found: tuple[int, ...]) -> None:
        nonlocal best
        if best is not None and len(found) + (rest > 1) > len(best):
            return
        if rest == 1:
            if best is None or (len(found), max(found), sum(found)) < (len(best), max(best), sum(best)):
                best = found
            return
        for radix in range(min(largest, rest), 1, -1):
            if rest % radix == 0 and radix not in (11, 13):
                search(rest // radix, radix, (*found, radix))

    if length == 1:
        return (1,)
    search(length, largest, ())
    # The largest at both ends: forward and backward then leave the same distances between numbers that change hands.
    return None if best is None else (*best[::2], *best[1::2][::-1])


def fixed_lines(length: int, last: bool, real: Real) -> LineShape | None:
    """Return how lines of this very length are worked on, None where its factors are not."""
    radices = _radices(length, last)
    if radices is None:
        return None
    lanes = max(1, 256 * _HELD // length) if last else _side_lanes(length, real)
    return _shape("FixedLines", radices, last, real, lanes, held=_HELD)


def fixed_transform(length: int, last: bool, real: Real) -> LineShape | None:
    """Return the transform of complex lines of this length, None where its factors are not.

    Along the last axis threads side by side are on the same line, else on neighbouring lines.
    """
    radices = _radices(length, last)
    if radices is None:
        return None
    if last:
        return _shape("FixedTransform", radices, last, real, max(1, 256 * _HELD // length), held=_HELD)
    if (timed := _timed(length, real)) is not None:
        return team_shape(timed[2])
    lanes = _side_lanes(length, real) * (2 if 256 < length <= _LONGEST_WIDE else 1)
    return _shape("FixedTransform", radices, last, real, lanes, held=_SIDE_HELD)


def fixed_pass(length: int, real: Real) -> LineShape | None:
    """Return the transform of passes that multiply spectra between two of them, along an axis that is not the last."""
    timed = _timed(length, real)
    return fixed_transform(length, False, real) if timed is None else team_shape(timed[0])


def _timed(length: int, real: Real) -> tuple[LineTeam, float, LineTeam] | None:
    return TEAMS.get(length) if real == "float32" else None


def step_cost(length: int, last: bool, real: Real) -> float:
    """Return what a step takes a number where an axis has this length (ps on one H100), infinite without lines."""
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
    if not 2 <= length <= LONGEST_FIXED:
        return None
    small = radices_of(length, _ROW_RADIX) if last else None
    return small if small is not None and len(small) <= 3 else radices_of(length)


def _side_lanes(length: int, real: Real) -> int:
    lanes = (16 if length <= 256 else 8) if real == "float32" else 8 if length <= 256 else 4
    return lanes if length <= 1024 else lanes // 2


def _shape(name: str, radices: tuple[int, ...], last: bool, real: Real, lanes: int, *, held: int) -> LineShape:
    """Return a shape whose threads hold about `held` numbers, with few of them idle."""
    length = prod(radices)
    most = _MOST_THREADS if real == "float32" else _MOST_THREADS // 2

    def cost(threads: int) -> float:
        rounds = [-(-length // radix * lanes // threads) for radix in radices]
        work = sum(count * threads * radix for count, radix in zip(rounds, radices, strict=True))
        return work / (length * lanes * len(radices)) * (1 + 0.15 * abs(log2(lanes * length / threads / held)))

    threads = min(range(32, most + 1, 32), key=cost)
    text = ",".join(map(str, radices))
    cpp = f"{CPP}{name}<{CPP_TYPE[real]},{CPP}Radices<{text}>,{lanes},{threads},{cpp_bool(last)}>"
    return LineShape(cpp, real, lanes, threads, cost=cost(threads))


def _line(name: str, members: Members, shape: LineShape, rest: str = "") -> KernelSpec:
    """Return a kernel whose items are batches of lines."""
    cpp = f"{CPP}{name}{shape.cpp}{rest}>"
    # Some versions of the assembler spill a few words of addresses outside the butterflies.
    most = 255 if shape.threads <= 256 else 128
    return KernelSpec(
        cpp, "kspace/lines.hpp", members, threads=shape.threads, team=True, max_registers=most, may_spill=True
    )


def line_filter(shape: LineShape) -> KernelSpec:
    """A factor on the spectrum of lines."""
    members: Members = (("in", "ptr"), ("out", "ptr"), ("factor", "ptr"), ("lines", LINES))
    return _line("LineFilter<", members, shape)


def line_correction(density: DensityKind, varying: bool, shape: LineShape) -> KernelSpec:
    """One axis of the correction with the local sound speed."""
    kind, density_members = density_type(density, shape.real)
    medium, medium_members = medium_type(varying, shape.real)
    members: Members = (
        ("p", "ptr"),
        ("sum", "ptr"),
        ("forward", "ptr"),
        ("back", "ptr"),
        ("density", density_members),
        ("medium", medium_members),
        ("lines", LINES),
        ("component", "int64"),
        ("scale", shape.real),
        ("first", "int32"),
    )
    return _line(f"LineCorrection<{kind},{medium},", members, shape)


def line_step(
    density: DensityKind, varying: bool, nonlinear: bool, shape: LineShape, *, momentum: bool = True, mass: bool = True
) -> KernelSpec:
    """One axis of a step."""
    kind, density_members = density_type(density, shape.real)
    medium, medium_members = medium_type(varying, shape.real)
    names = ("p", "u", "rho", "total", "rate", "forward", "back", "pml", "pml_staggered")
    members: Members = (
        *((name, "ptr") for name in names),
        ("density", density_members),
        ("medium", medium_members),
        ("lines", LINES),
        ("component", "int64"),
        ("dt", shape.real),
        ("first", "int32"),
    )
    halves = f",{cpp_bool(momentum)},{cpp_bool(mass)}"
    return _line(f"LineStep<{kind},{medium},{cpp_bool(nonlinear)},", members, shape, halves)


def other_kernels() -> Iterator[KernelSpec]:
    """Yield the largest kernels: lines of any length, and of lengths with many factors."""
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
