# SPDX-License-Identifier: BSD-3-Clause
"""Entries of the registry: C++ type of a kernel, its header, and the members of its argument struct."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Real = Literal["float64", "float32"]
Store = Literal["float64", "float32", "float16"]
REALS: tuple[Real, ...] = ("float64", "float32")
STORES: tuple[Store, ...] = ("float64", "float32", "float16")

#: C++ types of the precisions.
CPP_TYPE = {"float64": "double", "float32": "float", "float16": "f16"}

#: A member of an argument struct: its name, and "ptr", a NumPy scalar name, (scalar name, length) or nested members.
Member = tuple[str, "str | tuple[str, int] | tuple[Member, ...]"]
Members = tuple[Member, ...]


def pointers(names: str) -> Members:
    """Return pointer members with these names, separated by spaces."""
    return typed_members("ptr", names)


def typed_members(kind: str | tuple[str, int], names: str) -> Members:
    """Return members of one type, with names separated by spaces."""
    return tuple((name, kind) for name in names.split())


@dataclass(frozen=True)
class KernelSpec:
    """One specialisation of a kernel.

    Attributes:
        type: C++ type of the functor inside namespace seiche.
        header: file below `kernels/`, or full path for a kernel of another package (docs/howto/add-a-kernel.md).
        members: members of the functor in order.
        threads: threads of a block on a GPU.
        items: items of a thread.
        blocks: blocks to be resident on a multiprocessor, which bounds the registers (0: the compiler's choice).
        max_registers: limit that the GPU gate checks.
        may_spill: whether the gate permits spilled registers.
        team: the functor defines a `Scratch`, and a block handles one item.
        parts: further headers with types that the functor uses.
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
        """Return the template arguments of the GPU loop in C++."""
        return f"{self.threads},{self.blocks},{self.items}"


def grouped(spec: KernelSpec, group: int) -> KernelSpec:
    """Return the kernel whose teams handle `group` items of `spec` each: members `item` and their `count`."""
    members: Members = (("item", spec.members), ("count", "int64"))
    return replace(spec, type=f"Grouped<{spec.type},{group}>", members=members, threads=256, blocks=3, team=True)
