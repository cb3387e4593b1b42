# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of cells that are resident on several ranks, `kernels/ibm/` and `kernels/membrane/` (decision 19)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from . import ibm, membrane
from .ibm import Delta, Space
from .spec import CPP_TYPE, REALS, KernelSpec, Member, Members, Real, pointers, typed_members

#: Roles of a cell on a rank: owned and on no other rank, owned with copies elsewhere, copy of another rank's cell.
OWNED_ONLY, OWNED_SHARED, GHOST = 1, 2, 3
#: Sets of roles as masks of bits 1 << role for kernels: owned, on several ranks, resident.
OWNED, REPLICATED, RESIDENT = 0b0110, 0b1100, 0b1110
#: Number of ranks that fit the masks of cells.
MAX_RANKS = 512

_SELECTED: Member = ("chosen", (("role", "ptr"), ("first", "int64"), ("items_per_cell", "int32"), ("roles", "uint32")))
_LISTED: Member = ("listed", (*pointers("cells count"), ("first", "int64"), ("items_per_cell", "int32")))


def _wrapped(spec: KernelSpec, name: str, *members: Member) -> KernelSpec:
    header = f"{spec.header.partition('/')[0]}/resident.hpp"
    return replace(spec, type=name, header=header, members=(("inner", spec.members), *members))


def resident(spec: KernelSpec) -> KernelSpec:
    """Return the kernel `spec` for items of cells in selected roles."""
    return _wrapped(spec, f"Resident<{spec.type}>", _SELECTED)


def resident_groups(spec: KernelSpec, group: int) -> KernelSpec:
    """Return the kernel whose teams handle `group` items of `spec` each, for cells in selected roles."""
    wrapped = _wrapped(spec, f"ResidentGroups<{spec.type},{group}>", _SELECTED, ("end", "int64"))
    return replace(wrapped, threads=256, blocks=3, team=True)


def resident_list(spec: KernelSpec) -> KernelSpec:
    """Return the kernel `spec`, with one item per cell, for the cells in a list."""
    return _wrapped(spec, f"ResidentList<{spec.type}>", _LISTED)


def resident_items(spec: KernelSpec) -> KernelSpec:
    """Return the kernel `spec` for items of listed cells in selected roles."""
    return _wrapped(spec, f"ResidentItems<{spec.type}>", _LISTED, _SELECTED)


def interpolate_resident(delta: Delta, real: Real, space: Space) -> KernelSpec:
    """Velocity and motion of the vertices of cells in selected roles, a group per team."""
    return _interpolate("InterpolateResident", delta, real, space, _SELECTED, ("end", "int64"))


def interpolate_owned(delta: Delta, real: Real, space: Space) -> KernelSpec:
    """Velocity of vertices of listed cells, a group per team; zero if the closest site belongs to another rank."""
    return _interpolate("InterpolateOwned", delta, real, space, _LISTED, ("owned", "ptr"))


def _interpolate(name: str, delta: Delta, real: Real, space: Space, *extra: Member) -> KernelSpec:
    members: Members = (("one", ibm.interpolate(delta, real, space).members), *extra)
    kind = f"{name}<{delta.capitalize()},{CPP_TYPE[real]},Space::{space}>"
    return replace(ibm.interpolate_group(delta, real, space), type=kind, header="ibm/resident.hpp", members=members)


def contact_force_resident(real: Real) -> KernelSpec:
    """Short-range forces on vertices of cells in selected roles, VERTEX_GROUP per team."""
    contact_force = membrane.contact_force(real)
    members: Members = (("inner", contact_force.members), _SELECTED, ("end", "int64"))
    return replace(contact_force, type=f"Resident{contact_force.type}", members=members, blocks=6)


def clear_lists() -> KernelSpec:
    """Reset of the counts of vertices in bricks of other ranks."""
    return KernelSpec("ClearLists", "ibm/resident.hpp", pointers("tally"))


def move_vertices(real: Real) -> KernelSpec:
    """Motion of vertices with their velocities."""
    members: Members = (
        *pointers("positions interpolated velocity slip"),
        ("stride", "int64"),
        *typed_members(real, "weight previous_weight"),
    )
    return KernelSpec(f"MoveVertices<{CPP_TYPE[real]}>", "ibm/resident.hpp", members)


def find_holders(real: Real) -> KernelSpec:
    """The ranks that need a cell."""
    arrays = pointers("sets ranks homes positions velocity holders needed home result")
    integers: Members = (*typed_members("int64", "stride first"), *typed_members("int32", "vertices words"))
    members: Members = (("bricks", ibm.BRICKS), *arrays, *integers, ("margins", ("int32", 3)))
    return KernelSpec(f"FindHolders<{CPP_TYPE[real]}>", "ibm/sharing.hpp", members, threads=64, team=True)


def write_slots() -> KernelSpec:
    """Slots of messages of whole cells."""
    members: Members = (*pointers("slots entries"), ("stride", "int64"))
    return KernelSpec("WriteSlots", "ibm/sharing.hpp", members, threads=128, team=True)


def move_cells(real: Real) -> KernelSpec:
    """Copies of cells between two arrays."""
    members: Members = (*pointers("source target entries"), *typed_members("int64", "source_stride stride"))
    return KernelSpec(f"MoveCells<{CPP_TYPE[real]}>", "ibm/sharing.hpp", members, threads=128, team=True)


def default_kernels() -> Iterator[KernelSpec]:
    """Yield the kernels of cells on several ranks, with the default delta function, red cells and flat platelets."""
    yield from (clear_lists(), write_slots(), membrane.contact_reset(), resident(ibm.mark_inside()))
    for spec in (membrane.contact_moved(), membrane.contact_count(), membrane.contact_fill()):
        yield resident_groups(spec, membrane.POINT_GROUP)
    for spec in (ibm.count_vertices("peskin"), ibm.fill_lists("peskin")):
        yield resident_groups(spec, ibm.RARE_GROUP)
    for real in REALS:
        yield from (resident_items(move_vertices(real)), resident(find_holders(real)), move_cells(real))
        yield contact_force_resident(real)
        for capacity, law in product(membrane.CAPACITIES[:2], (membrane.SKALAK, membrane.SKALAK.with_viscosity())):
            force = membrane.membrane_force(membrane.loop_shell(law, real, 3, 12), real, capacity)
            yield from (resident(force), resident_list(force))
        platelet = membrane.membrane_force(
            membrane.flat_shell(membrane.NEO_HOOKEAN, real), real, membrane.CAPACITIES[0]
        )
        yield from (platelet, resident(platelet), resident_list(platelet))
        for space in ("open", "walled"):
            locate = ibm.locate_vertices("peskin", real, space)
            yield from (interpolate_resident("peskin", real, space), interpolate_owned("peskin", real, space))
            yield from (resident(locate), resident_items(locate))


def other_kernels() -> Iterator[KernelSpec]:
    """Yield representatives of kernels compiled on first use: of each family those that need the most registers."""
    yield clear_lists()
    yield write_slots()
    yield resident(ibm.mark_inside())
    for spec in (membrane.contact_moved(), membrane.contact_count(), membrane.contact_fill()):
        yield resident_groups(spec, membrane.POINT_GROUP)
    for real in REALS:
        yield resident_items(move_vertices(real))
        yield find_holders(real)
        yield move_cells(real)
        force = membrane.membrane_force(membrane.loop_shell(membrane.SKALAK, real, 3, 12), real, 642)
        yield from (resident(force), resident_list(force), contact_force_resident(real))
        for space in ("open", "walled", "odd"):
            yield interpolate_resident("peskin", real, space)
            yield interpolate_owned("peskin", real, space)
        locate = ibm.locate_vertices("peskin", real, "walled")
        yield from (resident(locate), resident_items(locate))
    yield resident_groups(ibm.count_vertices("peskin"), ibm.RARE_GROUP)
    yield resident_groups(ibm.fill_lists("peskin"), ibm.RARE_GROUP)
