# SPDX-License-Identifier: BSD-3-Clause
"""Registry of kernel specialisations: C++ type, header and layout of the argument struct.

There is one module per folder of kernels. Its functions return the `KernelSpec`s that solvers load. The build writes
the CPU table from `built_kernels()`, and that of a wheel also from `default_kernels()`. The GPU gate compiles
`all_kernels()`. Other kernels are compiled on first use. The package imports only the standard library, because the
build imports it.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from .rare import is_rare
from .spec import CPP_TYPE, KernelSpec, Member, Members, Real, Store, grouped

__all__ = ["CPP_TYPE", "KernelSpec", "Member", "Members", "Real", "Store", "grouped", "is_rare"]

#: Modules by their functions; they are imported when needed, so that a solver loads only those that it uses.
_BUILT = ("flow", "halo", "ibm", "membrane", "reduce", "sites")
_DEFAULT = ("dg", "ibm", "kspace", "kspace_radial", "kspace_ranks", "resident")
_OTHER = (
    *("dg", "dg_adjoint", "flow", "halo", "ibm", "kspace", "membrane", "resident"),
    *("kspace_elastic", "kspace_lines", "kspace_passes", "kspace_radial", "kspace_ranks"),
)
#: Folders below `kernels/` with a module of the same name.
_FOLDERS = frozenset({"dg", "flow", "halo", "ibm", "kspace", "membrane", "reduce", "sites"})


def _modules(names: tuple[str, ...]) -> Iterator[Any]:
    """Yield the modules of these names."""
    for name in names:
        yield import_module(f"{__name__}.{name}")


def built_kernels() -> Iterator[KernelSpec]:
    """Yield every specialisation of the CPU table once."""
    for module in _modules(_BUILT):
        yield from module.built_kernels()


def default_kernels() -> Iterator[KernelSpec]:
    """Yield the kernels that default settings of all solvers need beyond the table, so that wheels need no compiler."""
    for module in _modules(_DEFAULT):
        yield from module.default_kernels()


def other_kernels() -> Iterator[KernelSpec]:
    """Yield representatives of kernels compiled on first use: of each family those that need the most registers."""
    for module in _modules(_OTHER):
        yield from module.other_kernels()


def all_kernels() -> Iterator[KernelSpec]:
    """Yield the kernels of the GPU gate: the smaller CPU table and representatives of all others."""
    yield from built_kernels()
    yield from other_kernels()


def describe_built(spec: KernelSpec) -> str:
    """Describe the kernels of the same folder in the CPU table, for users without a compiler."""
    folder = spec.header.partition("/")[0]
    if folder not in _FOLDERS:
        return "the kernels of Seiche itself"
    (module,) = _modules((folder,))
    return str(module.BUILT)
