# SPDX-License-Identifier: BSD-3-Clause
"""Runs of a sweep: the values of the keys, and a folder that remains the same when the sweep is repeated."""

from __future__ import annotations

import csv
import hashlib
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seiche.case.folder import RECORD
from seiche.case.kinds import kind_of
from seiche.case.load import check_tables, read_source
from seiche.case.loading import verify
from seiche.case.output_targets import FILE_KINDS, check_replaceable_file
from seiche.case.own_files import digest_of, texts_of
from seiche.case.quantities import shorten
from seiche.errors import CaseError, FormatError, SeicheError
from seiche.io.files import check_replaceable, replacing

#: File in the folder of a sweep that lists its runs.
SWEEP = "sweep.json"
#: Tables of a sweep in its folder, and the first characters of the text ones.
TABLES = {"sweep.csv": "run,state", "sweep.nc": "CDF", "sweep.png": ""}
#: Entry instead of a digest while a table is being written.
_WRITING = "writing"
#: States of runs that are not checked again.
_BEGUN = ("done", "stopped", "running")
#: Maximum number of runs; a larger number is most likely a mistake.
MAX_RUNS = 10_000
_OPENING, _CLOSING = "[{(", "]})"


@dataclass(frozen=True)
class SweepRun:
    """A run of a sweep: its folder, the values of the changed keys as text, its checkpoint and its summary."""

    folder: Path
    values: Mapping[str, str]
    checkpoint: Path
    summary: Path

    @property
    def changes(self) -> list[str]:
        """Return the changes of the case, as for `seiche run --set`."""
        return [f"{key}={value}" for key, value in self.values.items()]

    @property
    def log(self) -> Path:
        """Return the file with the messages of the run."""
        return self.folder.with_suffix(".log")

    def describe(self) -> str:
        """Return the folder and the values in one line."""
        return f"{self.folder.name} ({_text_of(self.values)})"

    @property
    def state(self) -> str:
        """Return "done", "stopped", "failed", "running" (also for a killed run), or "" before the first start."""
        try:
            return str(json.loads((self.folder / RECORD).read_text()).get("state", ""))
        except (OSError, ValueError, AttributeError):
            return ""


def split_values(text: str) -> list[str]:
    """Return the values in `text`, separated by commas that are not inside brackets or quotes.

    Raises:
        CaseError: a value is empty.
    """
    parts, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter == "," and depth == 0:
            parts.append("")
            continue
        depth += (letter in _OPENING) - (letter in _CLOSING) if not quote else 0
        parts[-1] += letter
    values = [part.strip() for part in parts]
    if not all(values):
        raise CaseError(f"sweep: {shorten(text)}: a value is missing; expected values such as 0.6,0.7,0.8")
    return values


def grid_of(settings: Sequence[str]) -> list[dict[str, str]]:
    """Return the values of each run for all combinations of `settings` such as "lattice.tau=0.6,0.7".

    The last setting varies fastest.

    Raises:
        CaseError: a setting has no key or no value, or a key is given twice.
    """
    keys: dict[str, list[str]] = {}
    for setting in settings:
        key, equals, values = setting.partition("=")
        if not equals or not key.strip():
            raise CaseError(f"--set {shorten(setting)}: expected key=value,value such as lattice.tau=0.6,0.7")
        if key.strip() in keys:
            raise CaseError(f"--set {shorten(setting)}: the key is given twice; list all values in one --set")
        keys[key.strip()] = split_values(values)
    return [dict(zip(keys, values, strict=True)) for values in itertools.product(*keys.values())]


def list_of(path: Path) -> list[dict[str, str]]:
    """Return the values of each run from a CSV file, with the keys in the first row and one row for each run.

    Raises:
        CaseError: the file cannot be read.
        FormatError: a row has an empty value or not as many values as the first row.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = [row for row in csv.reader(file, skipinitialspace=True) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CaseError(f"{path}: cannot read the list: {getattr(error, 'strerror', None) or error}") from None
    keys = [key.strip() for key in rows[0]] if rows else []
    if len(rows) < 2 or not all(keys) or len(set(keys)) < len(keys):
        raise FormatError(path, "first row", "expected different keys, and below them one row for each run")
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(keys) or not all(value.strip() for value in row):
            raise FormatError(path, f"row {number}", f"expected {len(keys)} values, one for each key")
    return [dict(zip(keys, (value.strip() for value in row), strict=True)) for row in rows[1:]]


def plan_sweep(
    case: Path,
    values: Sequence[Mapping[str, str]],
    folder: Path,
    *,
    device: str | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> list[SweepRun]:
    """Return the runs for all `values` in `folder`, after checking each run that has not begun as `seiche check` does.

    A run has the same folder when the sweep is repeated with additional or other values.

    Args:
        case: case file.
        values: values of the keys of each run.
        folder: folder of the sweep.
        device: device of all runs; by default that of the case.
        report: called with one line for each invalid run, if there are several.

    Raises:
        CaseError: a case is invalid, two runs are equal, there are too many runs, or the case file has been changed
            since the first time.
    """
    if not 1 <= len(values) <= MAX_RUNS:
        raise CaseError(f"sweep: {len(values)} runs; expected 1 to {MAX_RUNS}")
    for number, row in enumerate(values):
        if row in values[:number]:
            raise CaseError(f"sweep: the run with {_text_of(row)} occurs twice")
    outputs = _checked_outputs(case, values, folder, device, report)
    digest = hashlib.sha256(case.read_bytes()).hexdigest()
    known = _known(folder)
    if known and known["case"] != digest:
        raise CaseError(
            f"{folder}: these runs belong to an earlier version of {case}; choose another folder with --output, or "
            "remove this one"
        )
    check_own_tables(folder)
    folders = {_name(row): str(name) for name, row in known.get("runs", {}).items()}
    for row in values:
        folders.setdefault(_name(row), f"run-{len(folders) + 1:04d}")
    runs = {name: dict(json.loads(row)) for row, name in folders.items()}
    _store(folder, {"tables": {}, **known, "case": digest, "runs": runs})
    run_folders = [folder / folders[_name(row)] for row in values]
    return [
        SweepRun(run_folder, dict(row), run_folder / output.checkpoint.file, run_folder / output.summary)
        for run_folder, row, output in zip(run_folders, values, outputs, strict=True)
    ]


def _checked_outputs(
    case: Path, values: Sequence[Mapping[str, str]], folder: Path, device: str | None, report: Callable[[str], None]
) -> list[Any]:
    """Return the output tables of the runs; CaseError if one of those that have not begun cannot run."""
    folders = {_name(row): str(name) for name, row in _known(folder).get("runs", {}).items()}
    outputs, problems = [], []
    for row in values:
        name = folders.get(_name(row))
        begun = name is not None and SweepRun(folder / name, row, Path(), Path()).state in _BEGUN
        try:
            source = read_source(case, [f"{key}={value}" for key, value in row.items()], device)
            checked: Any = check_tables(source.tables, str(case), kind_of(source).schema)
            outputs.append(checked.output)
            if not begun:
                verify(source)
        except SeicheError as error:
            problems.append((_text_of(row), str(error)))
    if len(problems) > 1:
        for text, message in problems:
            report(f"{text}: {message}")
        first = problems[0][0]
        raise CaseError(
            f"sweep: {len(problems)} of {len(values)} runs are invalid ({first} and {len(problems) - 1} more); "
            "no run was started"
        )
    for text, message in problems:
        raise CaseError(f"sweep: the run with {text} is invalid, so no run was started: {message}")
    return outputs


def check_own_tables(folder: Path) -> None:
    """Raise a CaseError if a table in the folder of a sweep is not one that a sweep wrote there.

    The list of runs has the digests of the tables. Lists of earlier versions have none; then, and after a sweep that
    was killed while it wrote the table, the first characters decide.
    """
    digests = _known(folder).get("tables")
    for name, start in TABLES.items():
        path = folder / name
        if not path.exists():
            continue
        message = f"{path} exists and was not written by this sweep; move it, or choose another folder with --output"
        entries = [_WRITING] if digests is None else texts_of(digests.get(name, []))
        if _WRITING in entries:
            check_replaceable(path, start, f"cannot replace {path}", message)
            check_replaceable_file("sweep", path, FILE_KINDS.get(path.suffix, ""))
        elif not path.is_file() or digest_of(path) not in entries:
            raise CaseError(message)


@contextmanager
def writing_tables(folder: Path) -> Iterator[None]:
    """Allow the tables in the folder of a sweep to be written, and store their digests.

    Raises:
        CaseError: a table is not one of the sweep, or the list of runs cannot be written.
    """
    check_own_tables(folder)
    known = _known(folder)
    _store(folder, {**known, "tables": dict.fromkeys(TABLES, _WRITING)})
    yield
    written = [name for name in TABLES if (folder / name).is_file()]
    _store(folder, {**known, "tables": {name: digest_of(folder / name) for name in written}})


def _store(folder: Path, content: Mapping[str, Any]) -> None:
    """Write the list of runs; CaseError if it cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(folder / SWEEP) as part:
            part.write_text(json.dumps(content, indent=1), encoding="utf-8")
    except OSError as error:
        raise CaseError(f"{folder}: cannot be written: {error.strerror}") from None


def _text_of(row: Mapping[str, str]) -> str:
    """Return the values in one line."""
    return ", ".join(f"{key}={value}" for key, value in row.items())


def _name(row: Mapping[str, str]) -> str:
    """Return a text that depends on the values but not on their order."""
    return json.dumps(dict(row), sort_keys=True)


def _known(folder: Path) -> dict[str, Any]:
    """Return the content of the list of runs, empty if there is none; CaseError if it is not valid."""
    path = folder / SWEEP
    if not path.exists():
        if folder.is_dir() and any(folder.iterdir()):
            raise CaseError(f"{folder}: exists and is not the folder of a sweep; choose another one with --output")
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        assert isinstance(content["case"], str) and isinstance(content["runs"], dict)
        assert isinstance(content.get("tables", {}), dict)
    except (OSError, ValueError, KeyError, TypeError, AssertionError):
        raise CaseError(f"{path}: is not a list of sweep runs; remove it, or choose another folder") from None
    return dict(content)
