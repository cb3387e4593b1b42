# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of what moves in the fluid, of `kernels/ibm/`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from .spec import CPP_TYPE, KernelSpec, Members, Real

Delta = Literal["hat", "roma", "peskin", "cosine"]
#: What kernels may take for granted of the sites around vertices; `kernels/ibm/bricks.hpp` says what.
Space = Literal["open", "walled", "odd"]

#: Support of the smoothed delta functions.
SUPPORT: dict[Delta, int] = {"hat": 2, "roma": 3, "peskin": 4, "cosine": 4}
#: Sites of a brick along an axis.
BRICK = 8
#: Words of the state that kernels leave: stale, used, lost.
STATE_WORDS = 3

#: What the CPU table has, in words.
BUILT = "nothing"

BRICKS: Members = (
    ("rows", "ptr"),
    ("fluid", "ptr"),
    ("each", ("float64", 3)),
    ("shape", ("int32", 3)),
    ("periodic", ("int32", 3)),
)
_LISTS: Members = tuple((name, "ptr") for name in ("first", "count", "tally", "entries"))
_VERTICES: Members = (
    *((name, "ptr") for name in ("place", "first", "t", "listed", "state")),
    ("stride", "int64"),
)


def settle(delta: Delta, real: Real, space: Space) -> KernelSpec:
    """What must be known of vertices that were put somewhere from outside."""
    name = f"Settle<{delta.capitalize()},{CPP_TYPE[real]},Space::{space}>"
    return KernelSpec(name, "ibm/vertices.hpp", (("bricks", BRICKS), ("vertices", _VERTICES)), threads=128)


def interpolate(delta: Delta, real: Real, space: Space) -> KernelSpec:
    """Velocity of vertices, and their motion."""
    members: Members = (
        ("bricks", BRICKS),
        ("vertices", _VERTICES),
        ("flow", "ptr"),
        ("velocity", "ptr"),
        ("now", real),
        ("before", real),
    )
    name = f"Interpolate<{delta.capitalize()},{CPP_TYPE[real]},Space::{space}>"
    return KernelSpec(name, "ibm/vertices.hpp", members, threads=256, max_registers=255 if real == "float64" else 160)


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
    members: Members = (
        ("bricks", BRICKS),
        ("lists", _LISTS),
        ("listed", "ptr"),
        ("state", "ptr"),
        ("stride", "int64"),
    )
    return KernelSpec(f"FillLists<{delta.capitalize()}>", "ibm/lists.hpp", members, threads=128)


def sort_lists() -> KernelSpec:
    """Lists in the order of the vertices."""
    return KernelSpec("SortLists", "ibm/lists.hpp", (("lists", _LISTS), ("state", "ptr")), threads=64)


def spread(delta: Delta, real: Real) -> KernelSpec:
    """Forces of vertices on the sites of a brick."""
    members: Members = (
        ("bricks", BRICKS),
        ("lists", _LISTS),
        ("corner", "ptr"),
        ("vertices", _VERTICES),
        ("force", "ptr"),
        ("field", "ptr"),
    )
    name = f"Spread<{delta.capitalize()},{CPP_TYPE[real]}>"
    return KernelSpec(name, "ibm/spread.hpp", members, threads=32, team=True)


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
    """Yield the specialisations of the CPU table: here none."""
    yield from ()


def other_kernels() -> Iterator[KernelSpec]:
    """Yield representatives of what is compiled on first use: of each family the ones that need most registers."""
    reals: tuple[Real, ...] = ("float64", "float32")
    deltas: tuple[Delta, ...] = ("hat", "roma", "peskin", "cosine")
    spaces: tuple[Space, ...] = ("open", "walled", "odd")
    yield place_lists()
    yield sort_lists()
    yield clear_inside()
    yield mark_inside()
    for delta in deltas:
        yield count_vertices(delta)
        yield fill_lists(delta)
        for real in reals:
            yield spread(delta, real)
            for space in spaces if delta == "peskin" else spaces[:1]:
                yield settle(delta, real, space)
                yield interpolate(delta, real, space)
