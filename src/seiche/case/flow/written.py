# SPDX-License-Identifier: BSD-3-Clause
"""Which files a run writes, and that none of them is one that it reads or one of another kind."""

from __future__ import annotations

import glob
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any

from seiche.case.flow.schema import Case
from seiche.case.flow.schema_geometry import Bifurcation
from seiche.case.flow.setup import Setup
from seiche.case.places_old import KINDS, refuse_stranger
from seiche.io.cell_files import is_made_by


def written(case: Case) -> Iterator[tuple[str, str]]:
    """Yield (key, name inside the output folder) of every file that a run of `case` may write."""
    output = case.output
    for kind, tables in (("fields", output.fields), ("surface", output.surface), ("cells", output.cells)):
        yield from ((f'output.{kind}["{table.file}"]', table.file) for table in tables)
    for table in output.extraction:
        yield f'output.extraction["{table.file}"]', table.file
        yield f'output.extraction["{table.file}"]', str(PurePath(table.file).with_suffix(".off"))
    if output.averages is not None:
        yield "output.averages.file", output.averages.file
    yield "output.checkpoint.file", output.checkpoint.file
    for key, name in (("picture", output.picture), ("summary", output.summary), ("trace", output.trace)):
        if name is not None:
            yield f"output.{key}", name
    if isinstance(case.geometry.shape, Bifurcation) and case.geometry.shape.stl is not None:
        yield "geometry.shape.stl", case.geometry.shape.stl


#: What files are, by the keys that name them where their endings do not tell.
_KINDS = {"output.checkpoint.file": "checkpoint", "output.summary": "summary"}
#: Endings of series, whose states have names of their own.
_SERIES = (".vtkhdf", ".pos")


def refuse_strangers(case: Case, folder: Path) -> None:
    """Refuse to replace files in `folder` that no run of any case has written, as far as that can be told.

    Raises:
        CaseError: one has the name of an output, or of one of its states, and is a file of another kind.
    """
    for key, name in written(case):
        path = folder / name
        kind = _KINDS.get(key) or KINDS.get(path.suffix.lower(), "")
        states = glob.escape(path.stem) + ".*" + glob.escape(path.suffix)
        for one in (path, *sorted(path.parent.glob(states) if path.suffix.lower() in _SERIES else ())):
            refuse_stranger(key, one, kind)


def overwritten(setup: Setup, folder: Path) -> Iterator[str]:
    """Yield a message for each file in `folder` that the run would write, and that the case is or reads."""
    source = Path(setup.source)
    tables = setup.case.model_dump(exclude={"output"})
    names = {source, *(source.parent / text for text in _texts(tables))}
    read = {path.resolve() for path in names if _is_file(path)}
    said = ", which the case reads; give it another name or folder"
    series = {table.file for table in setup.case.output.cells}
    for key, name in written(setup.case):
        if name not in series and (folder / name).resolve() in read:
            yield f"{key}: would overwrite {folder / name}{said}"
    for name in sorted(series):
        place = (folder / name).parent.resolve() / PurePath(name).name
        for path in sorted(path for path in read if is_made_by(place, path)):
            yield f'output.cells["{name}"]: would overwrite {path}{said}'


def _texts(value: Any) -> Iterator[str]:
    """Yield every text in nested tables: some of them are names of files."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a text that can be no name
        return False
