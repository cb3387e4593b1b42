# SPDX-License-Identifier: BSD-3-Clause
"""Write the C++ sources of the CPU kernel table from the registry: `make_table.py KERNELS OUTPUT_FOLDER PARTS TABLE`.

TABLE is `common`, or `defaults`, which also has the kernels that the default settings of all solvers need, or
`frequent`, that without the kernels whose instruction set hardly matters.

The names of the included kernel headers and a hash of their content are added, to reject a library built from others.
"""

from __future__ import annotations

import hashlib
import importlib.util
import posixpath
import re
import sys
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Protocol


class KernelRow(Protocol):
    """Properties of a kernel that the table needs."""

    @property
    def type(self) -> str:
        """C++ type of the functor."""

    @property
    def header(self) -> str:
        """Header file relative to the kernel folder."""


def load_registry(kernels: Path) -> ModuleType:
    """Load the registry from its folder, because the package is not installed yet."""
    folder = kernels / "registry"
    spec = importlib.util.spec_from_file_location(
        "registry", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    if spec is None or spec.loader is None:
        raise SystemExit(f"no registry in {kernels}")
    module = importlib.util.module_from_spec(spec)
    sys.modules["registry"] = module
    spec.loader.exec_module(module)
    return module


#: Tables: the kernels of most runs; in wheels also those for the default settings of every solver, at the instruction
#: sets above the lowest one without the rare kernels.
TABLES = ("common", "defaults", "frequent")


def rows_of(registry: ModuleType, table: str) -> list[KernelRow]:
    """Return the kernels of a table, each once."""
    rows: list[KernelRow] = list(registry.built_kernels())
    if table != "common":
        rows += registry.default_kernels()
    if table == "frequent":
        rows = [kernel for kernel in rows if not registry.is_rare(kernel)]
    return list(dict.fromkeys(rows))


def table_headers(kernels: Iterable[KernelRow]) -> list[str]:
    """Return the headers that a table of these kernels includes."""
    return ["launch.hpp", *sorted({kernel.header for kernel in kernels})]


def headers_hash(folder: Path, headers: Iterable[str]) -> str:
    """Return a hash of these headers and of all headers that they include; also used by the backends."""
    contents: dict[str, bytes] = {}
    pending = list(headers)
    while pending:
        header = pending.pop()
        if header in contents:
            continue
        contents[header] = (folder / header).read_bytes()
        for name in re.findall(rb'^#include "(.+)"', contents[header], re.MULTILINE):
            included = posixpath.normpath(posixpath.join(posixpath.dirname(header), name.decode()))
            pending.append(included if (folder / included).exists() else name.decode())
    digest = hashlib.sha256()
    for header in sorted(contents):
        digest.update(header.encode() + b"\0" + contents[header])
    return digest.hexdigest()


def parts_of(kernels: Iterable[KernelRow], count: int) -> list[list[KernelRow]]:
    """Distribute the rows over `count` parts for parallel compilation.

    A part has consecutive kernels of one folder: a changed header recompiles only the parts of its folder, and kernels
    that call the same functions (SEICHE_CALLED) are compiled together.
    """
    folders: dict[str, list[KernelRow]] = {}
    for kernel in kernels:
        folders.setdefault(kernel.header.partition("/")[0], []).append(kernel)
    total = sum(map(len, folders.values()))
    spare = count - len(folders)
    parts: list[list[KernelRow]] = []
    for rows in folders.values():
        share = 1 + spare * len(rows) // total
        ends = [len(rows) * part // share for part in range(share + 1)]
        parts += [rows[begin:end] for begin, end in pairwise(ends)]
    return parts + [[] for _ in range(count - len(parts))]


def main(kernels_folder: str, output: str, parts: str, table: str) -> None:
    """Write one source file per part, and the table of the parts."""
    source = Path(kernels_folder)
    registry = load_registry(source)
    kernels = rows_of(registry, table)
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    count = int(parts)
    for part, rows in enumerate(parts_of(kernels, count)):
        text = "".join(f'#include "{header}"\n' for header in [*table_headers(rows), "row.hpp"])
        text += f"namespace seiche {{\nextern const Row table_{part}[];\nextern const int table_{part}_size;\n"
        text += f"const Row table_{part}[] = {{\n"
        text += "".join(f"    SEICHE_ROW({kernel.type}),\n" for kernel in rows) or "    Row{},\n"
        text += f"}};\nconst int table_{part}_size = {len(rows)};\n}}  // namespace seiche\n"
        write_if_changed(folder / f"table_{part}.cpp", text)
    text = '#include "row.hpp"\nnamespace seiche {\n'
    text += "".join(f"extern const Row table_{p}[];\nextern const int table_{p}_size;\n" for p in range(count))
    text += "const Row* const tables[] = {" + ", ".join(f"table_{p}" for p in range(count)) + "};\n"
    text += "const int* const table_sizes[] = {" + ", ".join(f"&table_{p}_size" for p in range(count)) + "};\n"
    text += f"const int table_count = {count};\n"
    headers = table_headers(kernels)
    text += f'const char* const headers = "{" ".join(headers)}";\n'
    text += f'const char* const headers_hash = "{headers_hash(source, headers)}";\n}}  // namespace seiche\n'
    write_if_changed(folder / "tables.cpp", text)


def write_if_changed(path: Path, text: str) -> None:
    """Write a file only if its text changes, to avoid recompilation."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
