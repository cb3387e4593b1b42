# SPDX-License-Identifier: BSD-3-Clause
"""Creation of a new case: a folder with a commented, complete case file, or a copy of an example.

Templates are in `case/templates`, one for each kind. Examples are in the package or, in a clone, in the repository.
"""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from seiche.case.kinds import KINDS
from seiche.case.messages import nearest
from seiche.case.quantities import shorten
from seiche.errors import CaseError

_PACKAGE = Path(__file__).resolve().parents[1]
TEMPLATES = Path(__file__).resolve().parent / "templates"
#: Maximum size of an example file, bytes; the build does not install larger files (CMakeLists.txt).
MAX_FILE_BYTES = 1024 * 1024
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}")
_SCRIPT = '''"""Runs the case of this folder: python case.py, or mpiexec -n 2 python case.py."""

from pathlib import Path

import seiche

with seiche.load(Path(__file__).with_name("case.toml"), replace=True) as sim:
    # sim.every(function, steps=100) calls function(sim) during the run; the page
    # "Call your own functions during a run" of the documentation has examples.
    outcome = sim.run()
    if sim.world.rank == 0:
        print(*outcome.lines, sep="\\n")
        print(f"{outcome.step} steps; files: {', '.join(path.name for path in outcome.files)}")
'''


@dataclass(frozen=True)
class Example:
    """An example: its `folder`, the `solver` of its case file (or "script"), and a description in one `line`."""

    folder: Path
    solver: str
    line: str

    @property
    def name(self) -> str:
        """Return the name of the folder."""
        return self.folder.name


def examples_folder() -> Path:
    """Return the folder of the examples, in the installed package or otherwise in the repository of this clone.

    Raises:
        CaseError: there is no such folder.
    """
    for folder in (_PACKAGE / "examples", _PACKAGE.parents[1] / "examples"):
        if folder.is_dir():
            return folder
    raise CaseError(f"new: there are no examples in {_PACKAGE}; reinstall Seiche")


def examples() -> list[Example]:
    """Return the examples by name; CaseError if this installation has none."""
    return [_example(folder) for folder in sorted(examples_folder().iterdir()) if any(_files(folder))]


def _example(folder: Path) -> Example:
    case = folder / "case.toml"
    if not case.is_file():
        script = next(path for path in sorted(folder.iterdir()) if path.suffix == ".py")
        text = script.read_text(encoding="utf-8").partition('"""')[2]
        return Example(folder, "script", text.partition("\n")[0].removesuffix('"""'))
    text = case.read_text(encoding="utf-8")
    sentence = " ".join(
        line.removeprefix("#").strip() for line in text.split("\n\n")[0].splitlines() if line[:1] == "#"
    )
    return Example(folder, str(tomllib.loads(text)["solver"]), re.split(r"(?<=[.?!])\s|:\s", sentence)[0])


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files of an example that are to be copied: no results, no hidden files and no large files."""
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        parts = path.relative_to(folder).parts
        excluded = any(part in ("out", "__pycache__") or part.startswith(".") for part in parts)
        if path.is_file() and not excluded and path.stat().st_size <= MAX_FILE_BYTES:
            yield path


def list_examples() -> list[str]:
    """Return one line for each example: name, kind, description."""
    listed = examples()
    width = max(len(example.name) for example in listed)
    return [f"{example.name:<{width}}  {example.solver:<10}  {example.line}" for example in listed]


def new_case(kind: str, name: str | None = None, *, like: str | None = None, script: bool = False) -> list[Path]:
    """Write a new case to the folder `name` in the working folder, and return its files.

    Args:
        kind: a key of `KINDS`.
        name: name of the folder; by default that of the example, or of the kind.
        like: name of an example to copy instead of the template.
        script: whether to write also `case.py`, a script that runs the case.

    Raises:
        CaseError: the kind or example is unknown, the example is of another kind, the name is invalid, or the folder
            exists.
    """
    if kind not in KINDS:
        raise CaseError(f"new: {shorten(kind)} is not a kind of case; expected {', '.join(KINDS)}")
    contents = _example_files(kind, like) if like is not None else {"case.toml": TEMPLATES / f"{kind}.toml"}
    folder = Path(name if name is not None else like or kind)
    if not _NAME.fullmatch(folder.name):
        raise CaseError(f"new: {shorten(str(folder))} is not a usable folder name; use letters, digits, - and _")
    if os.path.lexists(folder):
        raise CaseError(f"new: {folder} already exists; give another name, or remove it")
    try:
        folder.mkdir(parents=True)
        for inner, source in contents.items():
            (folder / inner).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, folder / inner)
    except OSError as error:
        raise CaseError(f"new: cannot write {folder}: {error.strerror}") from None
    if like is None:
        case = folder / "case.toml"
        case.write_text(case.read_text(encoding="utf-8").replace('"NAME"', f'"{folder.name}"', 1), encoding="utf-8")
    if script and "case.py" not in contents:
        (folder / "case.py").write_text(_SCRIPT, encoding="utf-8")
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _example_files(kind: str, like: str) -> dict[str, Path]:
    """Return the files of the example `like` by their name relative to its folder."""
    by_name = {example.name: example for example in examples()}
    if like not in by_name:
        raise CaseError(f"new: {shorten(like)} is not an example{nearest(like, list(by_name))}")
    example = by_name[like]
    if example.solver not in (kind, "script"):
        raise CaseError(f'new: the example {like} is a case of {example.solver}; use "seiche new {example.solver}"')
    return {str(path.relative_to(example.folder)): path for path in _files(example.folder)}
