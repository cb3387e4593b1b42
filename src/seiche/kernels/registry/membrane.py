# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of membranes, of `kernels/membrane/`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from .spec import CPP_TYPE, KernelSpec, Members, Real, grouped

#: Vertices that the memory of a team may hold.
CAPACITIES = (162, 642, 2562)
#: Control points that an element of a subdivision surface may have, and the elements that a team handles at a time.
SLOTS = {12: 128, 24: 64}
#: The same on GPUs with FP32 and 12 slots, by capacity: for up to so many cells a multiprocessor, whose memory and
#: registers then are theirs.
TEAMS = {162: ((2.0, 320), (math.inf, 160)), 642: ((1.0, 512), (2.0, 320))}
#: Threads of other teams.
_THREADS = 128
#: The same of flat triangles.
FLAT_SLOTS, FLAT_CHUNK = 6, 128

#: Arrays of elements are filled up to a multiple of this.
BATCH = 16

#: What the CPU table has, in words.
BUILT = "Loop shells on icospheres of up to 642 vertices with three points of integration"

_COUNTS: Members = (("elements", "int32"), ("stride", "int32"))


@dataclass(frozen=True)
class LawKernel:
    """A law in the plane: C++ template over the precision, its numbers in order, and the header of one from outside."""

    type: str
    numbers: tuple[str, ...]
    header: str | None = None


@dataclass(frozen=True)
class Shell:
    """The elements of a membrane: C++ type, members, and the law in the plane."""

    type: str
    members: Members
    law: LawKernel


SKALAK, NEO_HOOKEAN = LawKernel("Skalak", ("shear", "area_ratio")), LawKernel("NeoHookean", ("shear",))


def _moduli(law: LawKernel, real: Real) -> Members:
    return (("law", tuple((number, real) for number in law.numbers)), ("bending", real))


def loop_shell(law: LawKernel, real: Real, points: int, slots: int, chunk: int | None = None) -> Shell:
    """Return the elements of a Loop subdivision surface, `chunk` at a time."""
    members: Members = (
        *((name, "ptr") for name in ("control", "entry", "kind", "weights", "rest")),
        *_moduli(law, real),
        *_COUNTS,
    )
    return Shell(f"LoopShell<{CPP_TYPE[real]},{law.type},{points},{slots},{chunk or SLOTS[slots]}>", members, law)


def flat_shell(law: LawKernel, real: Real) -> Shell:
    """Return flat triangles with hinges."""
    members: Members = (("control", "ptr"), ("entry", "ptr"), ("rest", "ptr"), *_moduli(law, real), *_COUNTS)
    return Shell(f"FlatShell<{CPP_TYPE[real]},{law.type}>", members, law)


def team_of(real: Real, slots: int, capacity: int, load: float) -> int | None:
    """Return the elements that a team of a GPU with a `load` of cells a multiprocessor has at a time, None: as on CPUs.

    The forces are the same bits.
    """
    teams = TEAMS.get(capacity, ()) if (real, slots) == ("float32", 12) else ()
    return next((team for most, team in teams if load <= most), None)


def membrane_force(shell: Shell, real: Real, capacity: int, team: int | None = None) -> KernelSpec:
    """Forces of the membranes of one type, by teams of as many threads as they have elements, if that is given."""
    lists = ("chunk_first", "touched", "entry_end", "ring_first", "ring", "ring_area", "share", "faces")
    members: Members = (
        *((name, "ptr") for name in ("place", "force", "slip", "measures")),
        *((name, "int64") for name in ("stride", "first")),
        ("shell", shell.members),
        *((name, "ptr") for name in lists),
        *((name, real) for name in ("area", "volume", "local_area", "mobility", "rest_area", "rest_volume")),
        *((name, "int32") for name in ("vertices", "chunks")),
    )
    return KernelSpec(
        f"MembraneForce<{shell.type},{capacity}>",
        "membrane/force.hpp",
        members,
        threads=team or _THREADS,
        blocks=4 if shell.type.startswith("Flat") and real == "float32" else 0,  # else it spills without need
        max_registers=255 if real == "float64" else 128,
        may_spill=shell.type.startswith("Flat") and real == "float64",  # 32 bytes on sm_80, none on sm_90 and sm_100
        team=True,
        parts=(shell.law.header,) if shell.law.header is not None else (),
    )


_GRID: Members = (
    ("origin", (("x", "float64"), ("y", "float64"), ("z", "float64"))),
    ("spacing", "float64"),
    ("first", "int64"),
    ("shape", ("int32", 4)),
)
#: A row of what `PackPush` knows of a kind of cell.
RIGID_KIND: Members = (("grid", _GRID), ("first_point", "int64"), ("points", "int64"), ("radius", "float64"))


def pack_push() -> KernelSpec:
    """How growing rigid cells are pushed apart."""
    names = ("centers", "rotations", "kind", "kinds", "points", "nodes", "first", "neighbors", "shifts", "out")
    members: Members = (*((name, "ptr") for name in names), ("wall", _GRID), ("scale", "float64"), ("gap", "float64"))
    return KernelSpec("PackPush", "membrane/pack.hpp", members, threads=64, max_registers=255)


_BINS: Members = (
    *((name, "ptr") for name in ("first", "count", "tally", "entries")),
    *((name, ("float64", 3)) for name in ("per_length", "lengths", "turns")),
    ("counts", ("int32", 3)),
    ("mask", "uint32"),
)
_LISTS: Members = (
    *((name, "ptr") for name in ("place", "reference", "owner", "first", "many", "pairs", "other_owner")),
    ("bins", _BINS),
    ("stride", "int64"),
    ("part", ("float32", 3)),
    ("reach", "float32"),
    ("room", "uint32"),
)
_LAW = ("strength", "reach", "exponent", "depth", "steepness", "rest", "morse_reach", "whole")
#: Points that a team puts into bins, slots that it gives room, and vertices whose lists it makes.
POINT_GROUP, SLOT_GROUP, VERTEX_GROUP = 1024, 256, 128
#: Bytes of a point in a bin, and words of the state that kernels leave.
BIN_ENTRY_BYTES, CONTACT_STATE_WORDS = 16, 3


def contact_moved() -> KernelSpec:
    """Vertices that have moved too far for their lists."""
    members: Members = (
        *((name, "ptr") for name in ("place", "reference", "state")),
        ("stride", "int64"),
        ("farthest", "float64"),
    )
    return KernelSpec("ContactMoved", "membrane/contact.hpp", members)


def contact_count() -> KernelSpec:
    """Points in bins, counted."""
    members: Members = (("place", "ptr"), ("state", "ptr"), ("stride", "int64"), ("bins", _BINS))
    return KernelSpec("ContactCount", "membrane/contact.hpp", members)


def contact_place() -> KernelSpec:
    """Room for the points of bins."""
    members: Members = (("bins", _BINS), ("state", "ptr"))
    return KernelSpec("ContactPlace", "membrane/contact.hpp", members, threads=SLOT_GROUP, team=True)


def contact_fill() -> KernelSpec:
    """Points into bins."""
    members: Members = (("place", "ptr"), ("state", "ptr"), ("stride", "int64"), ("bins", _BINS))
    return KernelSpec("ContactFill", "membrane/contact.hpp", members)


def contact_reset() -> KernelSpec:
    """Marks and counts of the lists taken back."""
    return KernelSpec("ContactReset", "membrane/contact.hpp", (("state", "ptr"),))


def contact_search() -> KernelSpec:
    """Which points a vertex may meet."""
    members: Members = (("lists", _LISTS), ("state", "ptr"), ("count", "int64"))
    return KernelSpec("ContactSearch", "membrane/contact.hpp", members, threads=VERTEX_GROUP, team=True)


def contact_force(real: Real) -> KernelSpec:
    """Short-range forces of vertices on those of other cells, or of walls."""
    members: Members = (
        *((name, "ptr") for name in ("force", "other")),
        ("other_stride", "int64"),
        ("lists", _LISTS),
        ("law", tuple((name, "float64") for name in _LAW)),
        ("state", "ptr"),
    )
    return KernelSpec(f"ContactForce<{CPP_TYPE[real]}>", "membrane/contact.hpp", members, threads=128)


def built_kernels() -> Iterator[KernelSpec]:
    """Yield the specialisations of the CPU table."""
    reals: tuple[Real, ...] = ("float64", "float32")
    for real in reals:
        for law, capacity in product((SKALAK, NEO_HOOKEAN), CAPACITIES[:2]):
            yield membrane_force(loop_shell(law, real, 3, 12), real, capacity)
        yield contact_force(real)
    for spec in (contact_moved(), contact_count(), contact_fill()):
        yield grouped(spec, POINT_GROUP)
    yield contact_place()
    yield contact_search()
    yield pack_push()


def other_kernels() -> Iterator[KernelSpec]:
    """Yield representatives of what is compiled on first use: of each family the ones that need most registers."""
    reals: tuple[Real, ...] = ("float64", "float32")
    for real in reals:
        yield membrane_force(loop_shell(SKALAK, real, 1, 12), real, 642)
        for law in (SKALAK, NEO_HOOKEAN):
            yield membrane_force(loop_shell(law, real, 3, 24), real, 2562)
            yield membrane_force(flat_shell(law, real), real, 2562)
    for capacity, teams in TEAMS.items():
        for _, team in teams:
            yield membrane_force(loop_shell(SKALAK, "float32", 3, 12, team), "float32", capacity, team)
