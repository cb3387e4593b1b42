# SPDX-License-Identifier: BSD-3-Clause
"""What a row of the registry says: the C++ type of a kernel, its header, and the members of its argument struct."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Real = Literal["float64", "float32"]
Store = Literal["float64", "float32", "float16"]

#: Names of the C++ types of a precision.
CPP_TYPE = {"float64": "double", "float32": "float", "float16": "f16"}

#: A member of an argument struct: its name, and "ptr", a NumPy scalar name, (scalar name, length) or nested members.
Member = tuple[str, "str | tuple[str, int] | tuple[Member, ...]"]
Members = tuple[Member, ...]


@dataclass(frozen=True)
class KernelSpec:
    """One specialisation of a kernel.

    `type` is the C++ type of the functor inside namespace seiche, `header` its file, below `kernels/` or with its whole
    path (a kernel of another package, docs/howto/add-a-kernel.md), `members` its members in order, `parts` more
    headers, of types that it is made of. On a GPU a block has `threads` threads of `items` items each, and `blocks` of
    them are to be resident on a multiprocessor, which bounds the registers (0: the compiler's choice). `max_registers`
    is the ceiling that the GPU gate checks; no kernel may spill unless `may_spill` says so. With `team` the functor
    names a `Scratch` and a block handles one item.
    """

    type: str
    header: str
    members: Members
    threads: int = 256
    items: int = 1
    blocks: int = 0
    max_registers: int = 128
    may_spill: bool = False
    team: bool = False
    parts: tuple[str, ...] = ()

    @property
    def launch(self) -> str:
        """Return the template arguments of the GPU loop, as C++ writes them."""
        return f"{self.threads},{self.blocks},{self.items}"


def grouped(spec: KernelSpec, group: int) -> KernelSpec:
    """Return the kernel whose teams handle `group` items of `spec` each: members `item` and their `count`."""
    members: Members = (("item", spec.members), ("count", "int64"))
    return replace(spec, type=f"Grouped<{spec.type},{group}>", members=members, threads=256, blocks=3, team=True)
