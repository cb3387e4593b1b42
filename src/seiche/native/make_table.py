# SPDX-License-Identifier: BSD-3-Clause
"""Write the C++ sources of the CPU kernel table from the registry: `make_table.py REGISTRY OUTPUT_FOLDER PARTS`.

A hash of the registry's folder (the kernel headers) goes along, so that a library built from other headers is refused.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def load_registry(path: Path) -> ModuleType:
    """Load the registry by its file, since the package that it belongs to is not installed yet."""
    spec = importlib.util.spec_from_file_location("registry", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"no registry at {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules["registry"] = module
    spec.loader.exec_module(module)
    return module


def headers_hash(folder: Path) -> str:
    """Return a hash of every kernel header below `folder`; the backends use it too."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.hpp")):
        digest.update(path.relative_to(folder).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def main(registry_path: str, output: str, parts: str) -> None:
    """Spread the rows over `parts` source files, so that they compile side by side."""
    registry = load_registry(Path(registry_path))
    kernels = list(registry.built_kernels())
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    count = int(parts)
    for part in range(count):
        rows = kernels[part::count]
        headers = sorted({kernel.header for kernel in rows})
        text = "".join(f'#include "{header}"\n' for header in [*headers, "row.hpp"])
        text += f"namespace seiche {{\nextern const Row table_{part}[];\nextern const int table_{part}_size;\n"
        text += f"const Row table_{part}[] = {{\n"
        text += "".join(f"    SEICHE_ROW({kernel.type}),\n" for kernel in rows)
        text += f"}};\nconst int table_{part}_size = {len(rows)};\n}}  // namespace seiche\n"
        write_if_changed(folder / f"table_{part}.cpp", text)
    text = '#include "row.hpp"\nnamespace seiche {\n'
    text += "".join(f"extern const Row table_{p}[];\nextern const int table_{p}_size;\n" for p in range(count))
    text += "const Row* const tables[] = {" + ", ".join(f"table_{p}" for p in range(count)) + "};\n"
    text += "const int* const table_sizes[] = {" + ", ".join(f"&table_{p}_size" for p in range(count)) + "};\n"
    text += f"const int table_count = {count};\n"
    text += f'const char* const headers_hash = "{headers_hash(Path(registry_path).parent)}";\n}}  // namespace seiche\n'
    write_if_changed(folder / "tables.cpp", text)


def write_if_changed(path: Path, text: str) -> None:
    """Leave an unchanged file alone, so that nothing is compiled again for it."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
