# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of what moves in the fluid, of `kernels/ibm/`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from .flow import ladd_velocity, nash_pressure, observe, stream_collide
from .spec import CPP_TYPE, KernelSpec, Members, Real, grouped

Delta = Literal["hat", "roma", "peskin", "cosine"]
#: What kernels may take for granted of the sites around vertices; `kernels/ibm/bricks.hpp` says what.
Space = Literal["open", "walled", "odd"]

#: Support of the smoothed delta functions.
SUPPORT: dict[Delta, int] = {"hat": 2, "roma": 3, "peskin": 4, "cosine": 4}
#: Sites of a brick along an axis.
BRICK = 8
#: Vertices that a team interpolates, items of kernels that rarely have anything to do, and bricks whose lists it sorts.
GROUP, RARE_GROUP, SORT_GROUP = 32, 1024, 16
#: Words of the state that kernels leave: stale, used, lost.
STATE_WORDS = 3

#: What the CPU table has, in words.
BUILT = "the functions of support 3 and 4 on any sites but boxes that repeat after a part of a brick"

BRICKS: Members = (
    ("rows", "ptr"),
    ("fluid", "ptr"),
    ("each", ("float64", 3)),
    ("shape", ("int32", 3)),
    ("periodic", ("int32", 3)),
)
_LISTS: Members = tuple((name, "ptr") for name in ("first", "count", "tally", "entries"))
_VERTICES: Members = (*((name, "ptr") for name in ("place", "first", "t", "listed", "state")), ("stride", "int64"))


def settle(delta: Delta, real: Real, space: Space) -> KernelSpec:
    """What must be known of vertices that were put somewhere from outside."""
    name = f"Settle<{delta.capitalize()},{CPP_TYPE[real]},Space::{space}>"
    members: Members = (("bricks", BRICKS), ("vertices", _VERTICES))
    return KernelSpec(name, "ibm/vertices.hpp", members, threads=128, max_registers=144)


def interpolate(delta: Delta, real: Real, space: Space) -> KernelSpec:
    """Velocity of vertices, and their motion."""
    members: Members = (
        ("bricks", BRICKS),
        ("vertices", _VERTICES),
        ("flow", "ptr"),
        ("velocity", "ptr"),
        ("slip", "ptr"),
        ("now", real),
        ("before", real),
    )
    name = f"Interpolate<{delta.capitalize()},{CPP_TYPE[real]},Space::{space}>"
    blocks, registers = (2, 255) if real == "float64" else (3, 168)
    return KernelSpec(name, "ibm/vertices.hpp", members, threads=128, blocks=blocks, max_registers=registers)


def interpolate_group(delta: Delta, real: Real, space: Space) -> KernelSpec:
    """The same, of GROUP vertices by a team."""
    one = interpolate(delta, real, space)
    members: Members = (("one", one.members), ("count", "int64"))
    name = one.type.replace("Interpolate", "InterpolateGroup")
    # The compiler spills without need where walls are, unless it is told how many teams are to be resident.
    threads = GROUP * SUPPORT[delta]
    resident, registers = (384, 168) if real == "float64" else (512, 128)
    blocks = 0 if space == "open" else -(-resident // threads)
    return KernelSpec(name, one.header, members, threads=threads, blocks=blocks, max_registers=registers, team=True)


def count_vertices(delta: Delta) -> KernelSpec:
    """Vertices in the bricks on which they act, counted."""
    members: Members = (
        ("bricks", BRICKS),
        ("lists", _LISTS),
        *((name, "ptr") for name in ("place", "listed", "state")),
        ("stride", "int64"),
    )
    return KernelSpec(f"CountVertices<{delta.capitalize()}>", "ibm/lists.hpp", members, threads=128)


def place_lists() -> KernelSpec:
    """Room for the list of every brick."""
    return KernelSpec("PlaceLists", "ibm/lists.hpp", (("lists", _LISTS), ("state", "ptr")))


def fill_lists(delta: Delta) -> KernelSpec:
    """Vertices in the lists of the bricks on which they act."""
    members: Members = (("bricks", BRICKS), ("lists", _LISTS), ("listed", "ptr"), ("state", "ptr"), ("stride", "int64"))
    return KernelSpec(f"FillLists<{delta.capitalize()}>", "ibm/lists.hpp", members, threads=128)


def sort_lists() -> KernelSpec:
    """Lists in the order of the vertices."""
    members: Members = (("lists", _LISTS), ("state", "ptr"), ("count", "int64"))
    return KernelSpec("SortLists", "ibm/lists.hpp", members, threads=64, team=True)


def spread(delta: Delta, real: Real) -> KernelSpec:
    """Forces of vertices on the sites of a brick."""
    members: Members = (
        ("bricks", BRICKS),
        ("lists", _LISTS),
        ("corner", "ptr"),
        ("vertices", _VERTICES),
        *((name, "ptr") for name in ("force", "field", "touched")),
    )
    name = f"Spread<{delta.capitalize()},{CPP_TYPE[real]}>"
    # 40 registers: more teams at a time hide what they wait for, and a few words kept in memory cost less than that.
    blocks = 12 if real == "float32" else 0
    return KernelSpec(name, "ibm/spread.hpp", members, threads=128, blocks=blocks, team=True, may_spill=bool(blocks))


def clear_inside() -> KernelSpec:
    """No site inside."""
    return KernelSpec("ClearInside", "ibm/inside.hpp", (("inside", "ptr"),))


def mark_inside() -> KernelSpec:
    """Sites inside cells."""
    members: Members = (
        ("bricks", BRICKS),
        *((name, "ptr") for name in ("inside", "place", "faces")),
        *((name, "int64") for name in ("stride", "first")),
        *((name, "int32") for name in ("vertices", "count")),
    )
    # 60 bytes on sm_100; none on the others
    return KernelSpec("MarkInside", "ibm/inside.hpp", members, threads=128, team=True, may_spill=True)


def built_kernels() -> Iterator[KernelSpec]:
    """Yield the specialisations of the CPU table."""
    reals: tuple[Real, ...] = ("float64", "float32")
    deltas: tuple[Delta, ...] = ("roma", "peskin")
    spaces: tuple[Space, ...] = ("open", "walled")
    yield place_lists()
    yield sort_lists()
    yield clear_inside()
    yield mark_inside()
    for delta in deltas:
        yield grouped(count_vertices(delta), RARE_GROUP)
        yield grouped(fill_lists(delta), RARE_GROUP)
        for real in reals:
            yield spread(delta, real)
            for space in spaces:
                yield settle(delta, real, space)
                yield interpolate_group(delta, real, space)


def other_kernels() -> Iterator[KernelSpec]:
    """Yield representatives of what is compiled on first use: of each family the ones that need most registers."""
    reals: tuple[Real, ...] = ("float64", "float32")
    deltas: tuple[Delta, ...] = ("hat", "cosine")
    for delta in deltas:
        yield grouped(count_vertices(delta), RARE_GROUP)
        yield grouped(fill_lists(delta), RARE_GROUP)
        for real in reals:
            yield spread(delta, real)
            yield interpolate_group(delta, real, "walled")
    for real in reals:
        for layout in ("tiles-8", "moments"):
            for relaxation, force in (("constant", "immersed-own"), ("inside-own", "immersed-own")):
                yield stream_collide(layout, real, real, relaxation, force, collision="regularised")
            yield observe(layout, real, real, "inside-table", "immersed-table")
        yield nash_pressure("moments", real, real, "immersed-own")
        yield ladd_velocity("moments", real, real, "immersed-own")
        yield settle("peskin", real, "odd")
        yield interpolate_group("peskin", real, "odd")
        yield interpolate("peskin", real, "odd")
