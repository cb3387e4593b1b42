# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of membranes, `kernels/membrane/`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from .spec import CPP_TYPE, REALS, KernelSpec, Member, Members, Real, grouped, pointers, typed_members

#: Numbers of vertices for which the memory of a team can be compiled.
CAPACITIES = (162, 642, 2562)
#: Elements that a team handles at a time, by the number of control points of an element of a subdivision surface.
SLOTS = {12: 128, 24: 64}
#: The same on GPUs with FP32 and 12 control points, by capacity: (cells per multiprocessor up to which it applies,
#: elements). With few cells, each has more memory and registers.
TEAMS = {162: ((2.0, 320), (math.inf, 160)), 642: ((1.0, 512), (2.0, 320))}
#: Threads of other teams, and threads to be resident on a multiprocessor if loops over slots are unrolled.
_THREADS, _RESIDENT = 128, 640
#: Control points of flat triangles, and the elements that a team handles at a time.
FLAT_SLOTS, FLAT_CHUNK = 6, 128

#: Arrays of elements are padded to a multiple of this.
BATCH = 16

#: Description of the kernels in the CPU table.
BUILT = "Loop shells on icospheres of up to 642 vertices with three points of integration"

_VERTICES: Member = ("vertices", "int32")
_COUNTS: Members = (("elements", "int32"), ("stride", "int32"))


@dataclass(frozen=True)
class LawKernel:
    """An in-plane law: C++ template over the precision, its parameters in order, and its header if it is external."""

    type: str
    parameters: tuple[str, ...]
    header: str | None = None
    viscous: bool = False

    def members(self, real: Real) -> Members:
        """Return the members of the C++ type."""
        arm: Members = (*pointers("relaxed"), ("stride", "int64"), ("share", "float64"), ("spring", real), _VERTICES)
        return (*typed_members(real, " ".join(self.parameters)), *((("arm", arm),) if self.viscous else ()))

    def with_viscosity(self) -> LawKernel:
        """Return the law with surface viscosity."""
        return replace(self, type=f"Viscous<{self.type}>::Of", viscous=True)


@dataclass(frozen=True)
class Shell:
    """The elements of a membrane: C++ type, members, the in-plane law, and whether a GPU unrolls loops over slots."""

    type: str
    members: Members
    law: LawKernel
    unrolled: bool = False


SKALAK, NEO_HOOKEAN = LawKernel("Skalak", ("shear", "area_ratio")), LawKernel("NeoHookean", ("shear",))


def _moduli(law: LawKernel, real: Real) -> Members:
    return (("law", law.members(real)), ("bending", real))


def loop_shell(law: LawKernel, real: Real, points: int, slots: int, chunk: int | None = None) -> Shell:
    """Return the elements of a Loop subdivision surface, `chunk` at a time."""
    members: Members = (*pointers("control entry kind weights rest"), *_moduli(law, real), *_COUNTS)
    name = f"LoopShell<{CPP_TYPE[real]},{law.type},{points},{slots},{chunk or SLOTS[slots]}>"
    return Shell(name, members, law, unrolled=law.viscous and real == "float32" and slots == min(SLOTS))


def flat_shell(law: LawKernel, real: Real) -> Shell:
    """Return flat triangles with hinges."""
    members: Members = (*pointers("control entry rest"), *_moduli(law, real), *_COUNTS)
    return Shell(f"FlatShell<{CPP_TYPE[real]},{law.type}>", members, law)


def team_of(real: Real, slots: int, capacity: int, load: float) -> int | None:
    """Return how many elements a GPU team handles at a time, for `load` cells per multiprocessor; None: as on CPUs.

    The choice does not change the forces.
    """
    teams = TEAMS.get(capacity, ()) if (real, slots) == ("float32", 12) else ()
    return next((team for limit, team in teams if load <= limit), None)


def membrane_force(shell: Shell, real: Real, capacity: int, team: int | None = None) -> KernelSpec:
    """Forces of the membranes of one type; `team`: threads, equal to the number of elements handled at a time."""
    members: Members = (
        *pointers("positions force slip measures"),
        *typed_members("int64", "stride first"),
        ("shell", shell.members),
        *pointers("chunk_first touched entry_end ring_first ring ring_area share faces"),
        *typed_members(real, "area volume local_area mobility rest_area rest_volume"),
        *typed_members("int32", "vertices chunks"),
    )
    flat, threads = shell.type.startswith("Flat"), team or _THREADS
    # Flat triangles otherwise spill unnecessarily. Unrolled loops would take 130 registers; with 96, more teams hide
    # the latency, which outweighs a few spilled words.
    blocks = _RESIDENT // threads if shell.unrolled else 4 if flat and real == "float32" else 0
    return KernelSpec(
        f"MembraneForce<{shell.type},{capacity}>",
        "membrane/force.hpp",
        members,
        threads=threads,
        blocks=blocks,
        max_registers=255 if real == "float64" else 128,
        # in FP64, 32 bytes on sm_80 with flat triangles, 88 bytes on sm_80 and sm_90 with surface viscosity
        may_spill=shell.unrolled or (real == "float64" and (flat or shell.law.viscous)),
        team=True,
        parts=(shell.law.header,) if shell.law.header is not None else (),
    )


_ORIGIN = typed_members("float64", "x y z")
_GRID: Members = (("origin", _ORIGIN), ("spacing", "float64"), ("first", "int64"), ("shape", ("int32", 4)))
#: Description of a kind of rigid cell for `PackPush`.
RIGID_KIND: Members = (("grid", _GRID), *typed_members("int64", "first_point points"), ("radius", "float64"))


def pack_push() -> KernelSpec:
    """Displacements that separate growing rigid cells."""
    arrays = pointers("centers rotations kind kinds points nodes first neighbors shifts out")
    members: Members = (*arrays, ("wall", _GRID), *typed_members("float64", "scale gap"))
    return KernelSpec("PackPush", "membrane/pack.hpp", members, threads=128, max_registers=255, team=True)


#: Skins of the lists from which a device chooses.
SKINS = 5
_UNITS: Members = (("per_length", ("float64", 3)), ("length", ("float32", 3)), ("bins", ("uint32", 3 * SKINS)))
_BINS: Members = (*pointers("first tally entries"), ("mask", "uint32"))
_CELLS: Members = (("blocks", "ptr"), ("types", "int32"))
#: Memory of contact lists, which they may share with the lists of bricks.
LIST_MEMORY: Members = (("state", "ptr"), ("blocks", "uint32"))
_SKINS: Members = typed_members(("float32", SKINS), "moved reach")
_LISTS: Members = (
    *pointers("places other groups ends pairs"),
    *(("units", _UNITS), ("bins", _BINS), ("cells", _CELLS), ("memory", LIST_MEMORY), ("touching", "float32")),
)
_LAW = typed_members("float64", "strength reach exponent depth steepness rest morse_reach units")
_PERIODS = typed_members(("float64", 3), "lengths inverses within")
_CONTACT, _CONTACT_LISTS = "membrane/contact.hpp", "membrane/contact_lists.hpp"
#: Per team: points to sort into bins, bins to assign offsets, and vertices whose lists are built.
POINT_GROUP, SLOT_GROUP, VERTEX_GROUP = 1024, 256, 128
#: Words of the state that kernels write, and entries of a block of the lists.
CONTACT_STATE_WORDS, LIST_BLOCK = 8, 4


def contact_moved() -> KernelSpec:
    """Store the places of vertices, and detect those that have moved too far for their lists."""
    arrays: Members = (*pointers("positions reference places state"), ("stride", "int64"))
    return KernelSpec("ContactMoved", _CONTACT_LISTS, (*arrays, ("units", _UNITS), ("skins", _SKINS)))


def contact_count() -> KernelSpec:
    """Store the coordinates of points, and count the points in each bin."""
    arrays: Members = (*pointers("positions points state"), ("stride", "int64"))
    return KernelSpec("ContactCount", _CONTACT_LISTS, (*arrays, ("units", _UNITS), ("bins", _BINS)))


def contact_place() -> KernelSpec:
    """Compute the offsets of bins."""
    members: Members = (("bins", _BINS), ("state", "ptr"))
    return KernelSpec("ContactPlace", _CONTACT_LISTS, members, threads=SLOT_GROUP, team=True)


def contact_fill() -> KernelSpec:
    """Sort points into bins."""
    members: Members = (*pointers("points state"), ("units", _UNITS), ("bins", _BINS))
    return KernelSpec("ContactFill", _CONTACT_LISTS, members)


def contact_reset() -> KernelSpec:
    """Reset the marks and counts of the lists."""
    return KernelSpec("ContactReset", _CONTACT_LISTS, (("memory", LIST_MEMORY),))


def contact_search() -> KernelSpec:
    """Find the points that may come into contact with a vertex."""
    members: Members = (("lists", _LISTS), ("skins", _SKINS), ("count", "int64"))
    return KernelSpec("ContactSearch", _CONTACT_LISTS, members, threads=VERTEX_GROUP, blocks=10, team=True)


def contact_force(real: Real) -> KernelSpec:
    """Short-range forces on vertices from vertices of other cells, or from walls; VERTEX_GROUP per team."""
    members: Members = (
        *pointers("force positions other"),
        *typed_members("int64", "stride other_stride"),
        ("lists", _LISTS),
        ("periods", _PERIODS),
        ("law", _LAW),
        ("count", "int64"),
    )
    return KernelSpec(
        f"ContactForce<{CPP_TYPE[real]}>", _CONTACT, members, threads=VERTEX_GROUP, blocks=8, team=True, may_spill=True
    )


def built_kernels() -> Iterator[KernelSpec]:
    """Yield the specialisations of the CPU table."""
    for real in REALS:
        for law, capacity in product((SKALAK, NEO_HOOKEAN), CAPACITIES[:2]):
            yield membrane_force(loop_shell(law, real, 3, 12), real, capacity)
        for capacity in CAPACITIES[:2]:
            yield membrane_force(loop_shell(SKALAK.with_viscosity(), real, 3, 12), real, capacity)
        yield contact_force(real)
    for spec in (contact_moved(), contact_count(), contact_fill()):
        yield grouped(spec, POINT_GROUP)
    yield contact_place()
    yield contact_search()
    yield pack_push()


def other_kernels() -> Iterator[KernelSpec]:
    """Yield representatives of kernels compiled on first use: of each family those that need the most registers."""
    for real in REALS:
        yield membrane_force(loop_shell(SKALAK, real, 1, 12), real, 642)
        for law in (SKALAK, NEO_HOOKEAN, SKALAK.with_viscosity()):
            yield membrane_force(loop_shell(law, real, 3, 24), real, 2562)
            yield membrane_force(flat_shell(law, real), real, 2562)
    for capacity, teams in TEAMS.items():
        for _, team in teams:
            for law in (SKALAK, SKALAK.with_viscosity()):
                yield membrane_force(loop_shell(law, "float32", 3, 12, team), "float32", capacity, team)
