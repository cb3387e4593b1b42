# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of cells that several ranks hold, of `kernels/ibm/` and `kernels/membrane/` (decision 19)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from . import ibm, membrane
from .ibm import Delta, Space
from .spec import CPP_TYPE, KernelSpec, Members, Real

#: What a cell is on a rank: a cell that no other rank holds, one that others hold too, a copy of another rank's.
ALONE, SHARED, GHOST = 1, 2, 3
#: Sets of roles, as kernels read them.
OWN, MANY, HERE = 1 << ALONE | 1 << SHARED, 1 << SHARED | 1 << GHOST, 1 << ALONE | 1 << SHARED | 1 << GHOST
#: Ranks that the masks of cells have room for.
MOST_RANKS = 512

_CHOSEN: Members = (("role", "ptr"), ("first", "int64"), ("each", "int32"), ("roles", "uint32"))
_LISTED: Members = (("cells", "ptr"), ("count", "ptr"), ("first", "int64"), ("each", "int32"))


def held(spec: KernelSpec) -> KernelSpec:
    """Return the kernel `spec` for the items of cells in certain roles only."""
    folder = spec.header.partition("/")[0]
    members: Members = (("inner", spec.members), ("chosen", _CHOSEN))
    return replace(spec, type=f"Held<{spec.type}>", header=f"{folder}/held.hpp", members=members)


def held_groups(spec: KernelSpec, group: int) -> KernelSpec:
    """Return the kernel whose teams handle `group` items of `spec` each, of cells in certain roles only."""
    folder = spec.header.partition("/")[0]
    members: Members = (("inner", spec.members), ("chosen", _CHOSEN), ("end", "int64"))
    name = f"HeldGroups<{spec.type},{group}>"
    return replace(spec, type=name, header=f"{folder}/held.hpp", members=members, threads=256, blocks=3, team=True)


def held_list(spec: KernelSpec) -> KernelSpec:
    """Return the kernel `spec`, whose items are cells, for the cells in a list."""
    folder = spec.header.partition("/")[0]
    members: Members = (("inner", spec.members), ("listed", _LISTED))
    return replace(spec, type=f"HeldList<{spec.type}>", header=f"{folder}/held.hpp", members=members)


def held_items(spec: KernelSpec) -> KernelSpec:
    """Return the kernel `spec` for the items of the cells in a list, of those in certain roles."""
    folder = spec.header.partition("/")[0]
    members: Members = (("inner", spec.members), ("listed", _LISTED), ("chosen", _CHOSEN))
    return replace(spec, type=f"HeldItems<{spec.type}>", header=f"{folder}/held.hpp", members=members)


def interpolate_held(delta: Delta, real: Real, space: Space) -> KernelSpec:
    """Velocity of vertices of cells in certain roles, and their motion, GROUP by a team."""
    group, one = ibm.interpolate_group(delta, real, space), ibm.interpolate(delta, real, space).members
    name = f"InterpolateHeld<{delta.capitalize()},{CPP_TYPE[real]},Space::{space}>"
    members: Members = (("one", one), ("chosen", _CHOSEN), ("end", "int64"))
    return replace(group, type=name, header="ibm/held.hpp", members=members)


def interpolate_owned(delta: Delta, real: Real, space: Space) -> KernelSpec:
    """Velocity of the vertices of listed cells whose closest site is owned here, zero for others, GROUP by a team."""
    group, one = ibm.interpolate_group(delta, real, space), ibm.interpolate(delta, real, space).members
    name = f"InterpolateOwned<{delta.capitalize()},{CPP_TYPE[real]},Space::{space}>"
    members: Members = (("one", one), ("listed", _LISTED), ("owned", "ptr"))
    return replace(group, type=name, header="ibm/held.hpp", members=members)


def forget_lists() -> KernelSpec:
    """Vertices in bricks that are not known here."""
    return KernelSpec("ForgetLists", "ibm/held.hpp", (("tally", "ptr"),))


def move_vertices(real: Real) -> KernelSpec:
    """Vertices by their velocities."""
    members: Members = (
        *((name, "ptr") for name in ("place", "here", "velocity", "slip")),
        ("stride", "int64"),
        ("now", real),
        ("before", real),
    )
    return KernelSpec(f"MoveVertices<{CPP_TYPE[real]}>", "ibm/held.hpp", members)


def find_holders(real: Real) -> KernelSpec:
    """Which ranks need a cell."""
    names = ("sets", "ranks", "homes", "place", "velocity", "holders", "wanted", "home", "told")
    members: Members = (
        ("bricks", ibm.BRICKS),
        *((name, "ptr") for name in names),
        *((name, "int64") for name in ("stride", "first")),
        *((name, "int32") for name in ("vertices", "words")),
        ("margins", ("int32", 3)),
    )
    return KernelSpec(f"FindHolders<{CPP_TYPE[real]}>", "ibm/sharing.hpp", members, threads=64, team=True)


def write_slots() -> KernelSpec:
    """Slots of messages of whole cells."""
    members: Members = (("slots", "ptr"), ("entries", "ptr"), ("stride", "int64"))
    return KernelSpec("WriteSlots", "ibm/sharing.hpp", members, threads=128, team=True)


def move_cells(real: Real) -> KernelSpec:
    """Cells from one place to another."""
    members: Members = (
        *((name, "ptr") for name in ("from", "to", "entries")),
        *((name, "int64") for name in ("from_stride", "stride")),
    )
    return KernelSpec(f"MoveCells<{CPP_TYPE[real]}>", "ibm/sharing.hpp", members, threads=128, team=True)


def unlist() -> KernelSpec:
    """Vertices that must be listed anew."""
    return KernelSpec("Unlist", "ibm/sharing.hpp", (("listed", "ptr"),))


def other_kernels() -> Iterator[KernelSpec]:
    """Yield representatives of what is compiled on first use: of each family the ones that need most registers."""
    reals: tuple[Real, ...] = ("float64", "float32")
    yield forget_lists()
    yield write_slots()
    yield unlist()
    yield held(ibm.mark_inside())
    for spec in (membrane.contact_moved(), membrane.contact_count(), membrane.contact_fill()):
        yield held_groups(spec, membrane.POINT_GROUP)
    for real in reals:
        yield held_items(move_vertices(real))
        yield find_holders(real)
        yield move_cells(real)
        for each in (held, held_list):
            yield each(membrane.membrane_force(membrane.loop_shell(membrane.SKALAK, real, 3, 12), real, 642))
        yield held(membrane.contact_force(real))
        for space in ("open", "walled", "odd"):
            yield interpolate_held("peskin", real, space)
            yield interpolate_owned("peskin", real, space)
        for each in (held, held_items):
            yield each(ibm.settle("peskin", real, "walled"))
    yield held_groups(ibm.count_vertices("peskin"), ibm.RARE_GROUP)
    yield held_groups(ibm.fill_lists("peskin"), ibm.RARE_GROUP)
