# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of immersed bodies, `kernels/ibm/`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from .flow import ladd_velocity, nash_pressure, observe, stream_collide
from .membrane import LIST_MEMORY
from .spec import CPP_TYPE, REALS, KernelSpec, Members, Real, grouped, pointers, typed_members

Delta = Literal["hat", "roma", "peskin", "cosine"]
#: Assumptions of kernels about the sites around vertices, defined in `kernels/ibm/bricks.hpp`.
Space = Literal["open", "walled", "odd"]

#: Support of the smoothed delta functions.
SUPPORT: dict[Delta, int] = {"hat": 2, "roma": 3, "peskin": 4, "cosine": 4}
#: Sites of a brick along an axis.
BRICK = 8
#: Vertices that a team interpolates, by support, and its threads: at least three per vertex at a time.
GROUPS, _GROUP_THREADS = {2: 40, 3: 40, 4: 32}, 128
#: Per team: items of kernels that rarely have work, and bricks whose lists are sorted.
RARE_GROUP, SORT_GROUP = 1024, 16
#: Words of the state that kernels write: stale, used, lost.
STATE_WORDS = 3

#: Description of the kernels in the CPU table.
BUILT = "delta functions of support 3 and 4, except on boxes whose period is not a multiple of a brick"

BRICKS: Members = (
    *pointers("rows fluid"),
    ("inverse_shape", ("float64", 3)),
    *typed_members(("int32", 3), "shape periodic"),
)
_LISTS = pointers("first count tally entries")
_VERTICES: Members = (*pointers("positions inverse listed state"), ("stride", "int64"))


def locate_vertices(delta: Delta, real: Real, space: Space) -> KernelSpec:
    """Initial data of vertices that were placed from outside."""
    name = f"LocateVertices<{delta.capitalize()},{CPP_TYPE[real]},Space::{space}>"
    members: Members = (("bricks", BRICKS), ("vertices", _VERTICES))
    return KernelSpec(name, "ibm/vertices.hpp", members, threads=128, max_registers=144)


def interpolate(delta: Delta, real: Real, space: Space) -> KernelSpec:
    """Velocity of vertices, and their motion."""
    arrays, factors = pointers("flow velocity slip"), typed_members(real, "weight previous_weight")
    members: Members = (("bricks", BRICKS), ("vertices", _VERTICES), *arrays, *factors)
    name = f"Interpolate<{delta.capitalize()},{CPP_TYPE[real]},Space::{space}>"
    blocks, registers = (2, 255) if real == "float64" else (3, 168)
    spills = delta == "peskin" and real == "float32"  # 8 bytes on sm_80
    spec = KernelSpec(name, "ibm/vertices.hpp", members, threads=128, blocks=blocks, max_registers=registers)
    return replace(spec, may_spill=spills)


def interpolate_group(delta: Delta, real: Real, space: Space) -> KernelSpec:
    """The same with a group of vertices per team."""
    single = interpolate(delta, real, space)
    members: Members = (("one", single.members), ("count", "int64"))
    name = single.type.replace("Interpolate", "InterpolateGroup")
    # With walls or in FP64 the compiler spills unnecessarily unless the number of resident teams is specified.
    threads = _GROUP_THREADS
    resident, registers = (384, 168) if real == "float64" else (480, 128)
    spec = KernelSpec(name, single.header, members, threads=threads, max_registers=registers, team=True)
    if space != "open" or real == "float64":
        return replace(spec, blocks=-(-resident // threads))
    # 72 registers hold all velocities of a plane with support 3; a few spilled bytes take less time than 48.
    return replace(spec, blocks=7, may_spill=True)


def count_vertices(delta: Delta) -> KernelSpec:
    """Count the vertices that act on each brick."""
    members: Members = (("bricks", BRICKS), ("lists", _LISTS), *pointers("positions listed state"), ("stride", "int64"))
    return KernelSpec(f"CountVertices<{delta.capitalize()}>", "ibm/lists.hpp", members, threads=128)


def place_lists() -> KernelSpec:
    """Offsets of the lists of all bricks."""
    return KernelSpec("PlaceLists", "ibm/lists.hpp", (("lists", _LISTS), ("state", "ptr")))


def fill_lists(delta: Delta) -> KernelSpec:
    """List the vertices that act on each brick."""
    members: Members = (("bricks", BRICKS), ("lists", _LISTS), *pointers("positions state"), ("stride", "int64"))
    return KernelSpec(f"FillLists<{delta.capitalize()}>", "ibm/lists.hpp", members, threads=128)


def sort_lists() -> KernelSpec:
    """Sort the lists by vertex number."""
    members: Members = (("lists", _LISTS), ("state", "ptr"), ("count", "int64"), ("memory", LIST_MEMORY))
    return KernelSpec("SortLists", "ibm/lists.hpp", members, threads=64, team=True)


def spread(delta: Delta, real: Real) -> KernelSpec:
    """Forces of vertices on the sites of a brick."""
    lists: Members = (("bricks", BRICKS), ("lists", _LISTS), ("corner", "ptr"), ("vertices", _VERTICES))
    name = f"Spread<{delta.capitalize()},{CPP_TYPE[real]}>"
    # 48 registers: more resident teams hide the latency, which outweighs a few spilled words.
    blocks, members = 10 if real == "float32" else 7, (*lists, *pointers("force field touched"))
    return KernelSpec(name, "ibm/spread.hpp", members, threads=128, blocks=blocks, team=True, may_spill=True)


def clear_inside() -> KernelSpec:
    """Reset the marks of all sites."""
    return KernelSpec("ClearInside", "ibm/inside.hpp", pointers("inside"))


def mark_inside() -> KernelSpec:
    """Mark sites inside cells."""
    integers = (*typed_members("int64", "stride first"), *typed_members("int32", "vertices count"))
    members: Members = (("bricks", BRICKS), *pointers("inside positions faces"), *integers)
    # 60 bytes on sm_100; none on the others
    return KernelSpec("MarkInside", "ibm/inside.hpp", members, threads=128, team=True, may_spill=True)


def built_kernels() -> Iterator[KernelSpec]:
    """Yield the specialisations of the CPU table."""
    deltas: tuple[Delta, ...] = ("roma", "peskin")
    spaces: tuple[Space, ...] = ("open", "walled")
    yield place_lists()
    yield sort_lists()
    yield clear_inside()
    yield mark_inside()
    for delta in deltas:
        yield grouped(count_vertices(delta), RARE_GROUP)
        yield grouped(fill_lists(delta), RARE_GROUP)
        for real in REALS:
            yield spread(delta, real)
            for space in spaces:
                yield locate_vertices(delta, real, space)
                yield interpolate_group(delta, real, space)


def default_kernels() -> Iterator[KernelSpec]:
    """Yield the sweeps and iolets of flow with cells, of the layouts that are chosen on a CPU."""
    for layout, slots in (("list-aa-even", "table"), ("list-aa-odd", "table"), ("tiles-8", "own")):
        for real in REALS:
            for relaxation in ("constant", f"inside-{slots}"):
                yield stream_collide(layout, real, real, relaxation, f"immersed-{slots}")
                yield observe(layout, real, real, relaxation, f"immersed-{slots}")
            yield nash_pressure(layout, real, real, f"immersed-{slots}")
            yield ladd_velocity(layout, real, real, f"immersed-{slots}")


def other_kernels() -> Iterator[KernelSpec]:
    """Yield representatives of kernels compiled on first use: of each family those that need the most registers."""
    deltas: tuple[Delta, ...] = ("hat", "cosine")
    for delta in deltas:
        yield grouped(count_vertices(delta), RARE_GROUP)
        yield grouped(fill_lists(delta), RARE_GROUP)
        for real in REALS:
            yield spread(delta, real)
            yield interpolate_group(delta, real, "walled")
    for real in REALS:
        for layout in ("tiles-8", "moments"):
            for relaxation in ("constant", "inside-own"):
                yield stream_collide(layout, real, real, relaxation, "immersed-own", collision="regularised")
            yield observe(layout, real, real, "inside-table", "immersed-table")
            yield stream_collide(layout, real, real, "inside-own 3", "immersed-own", collision="regularised")
        yield stream_collide("list-aa-odd", real, real, "inside-table 3", "immersed-table")
        yield nash_pressure("moments", real, real, "immersed-own")
        yield ladd_velocity("moments", real, real, "immersed-own")
        yield locate_vertices("peskin", real, "odd")
        yield interpolate_group("peskin", real, "odd")
        yield interpolate("peskin", real, "odd")
