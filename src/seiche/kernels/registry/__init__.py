# SPDX-License-Identifier: BSD-3-Clause
"""Every kernel specialisation that Seiche may launch: its C++ type, its header and the layout of its argument struct.

One module a folder of kernels. The build writes the CPU table from `built_kernels()`, the GPU gate compiles
`all_kernels()`, and the solvers ask for `KernelSpec`s by the functions of the modules; what is not built is compiled
when it is first used. Only the standard library is used, so that a build can import it.
"""

from __future__ import annotations

from collections.abc import Iterator

from . import dg, flow, halo, held, ibm, kspace, kspace_lines, kspace_passes, kspace_ranks, membrane, reduce
from .spec import CPP_TYPE as CPP_TYPE
from .spec import KernelSpec as KernelSpec
from .spec import Member as Member
from .spec import Members as Members
from .spec import Real as Real
from .spec import Store as Store
from .spec import grouped as grouped

#: Folders below `kernels/`, each with the module that lists its kernels.
_FOLDERS = {
    **{"dg": dg, "flow": flow, "halo": halo, "ibm": ibm},
    **{"kspace": kspace, "membrane": membrane, "reduce": reduce},
}


def built_kernels() -> Iterator[KernelSpec]:
    """Yield every specialisation of the CPU table once."""
    for folder in _FOLDERS.values():
        yield from folder.built_kernels()


def other_kernels() -> Iterator[KernelSpec]:
    """Yield representatives of what is compiled on first use: of each family the ones that need most registers."""
    for folder in _FOLDERS.values():
        yield from folder.other_kernels()
    yield from held.other_kernels()
    yield from kspace_lines.other_kernels()
    yield from kspace_passes.other_kernels()
    yield from kspace_ranks.other_kernels()


def all_kernels() -> Iterator[KernelSpec]:
    """Yield what the GPU gate checks: the whole CPU table, and the representatives of the rest."""
    yield from built_kernels()
    yield from other_kernels()


def built_in_words(spec: KernelSpec) -> str:
    """Return what the CPU table has of a kernel's folder: for whoever has no compiler for the rest."""
    folder = _FOLDERS.get(spec.header.partition("/")[0])
    return str(folder.BUILT) if folder is not None else "one of Seiche's own kernels"
