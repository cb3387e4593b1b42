# SPDX-License-Identifier: BSD-3-Clause
"""Files with the results of checks: stored after every family, continued by a later run, merged into one."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import seiche
from seiche.errors import CaseError
from seiche.io.files import replacing
from seiche.observe.origin import commit
from seiche.validate.check import Check

#: What results must have in common to be in one file.
ORIGIN = "version", "commit", "device", "quick"


@dataclass(frozen=True)
class FamilyResult:
    """The checks of a family that has run, with its name (subject and function) and duration in seconds."""

    name: str
    seconds: float
    checks: Sequence[Check]


def store(path: Path, results: Sequence[FamilyResult], **run: Any) -> None:
    """Write results and the attributes of the run (`run`) to a JSON file, atomically."""
    checks = [check for result in results for check in result.checks]
    document = {
        "version": seiche.__version__,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        **run,
        "seconds": sum(result.seconds for result in results),
        "passed": all(check.passed for check in checks),
        "families": [{"name": result.name, "seconds": result.seconds} for result in results],
        "checks": [_row(check) for check in checks],
    }
    with replacing(path) as temporary:
        Path(temporary).write_text(json.dumps(document, indent=2) + "\n")


def _row(check: Check) -> dict[str, Any]:
    return {
        "name": check.name,
        "value": float(check.value) if math.isfinite(check.value) else None,
        "bound": None if check.sense == "recorded" or math.isnan(check.bound) else float(check.bound),
        **{name: getattr(check, name) for name in ("sense", "unit", "reference", "family", "passed")},
    }


def load(path: Path) -> tuple[dict[str, Any], list[FamilyResult]]:
    """Return the document in a file and the results of its families, without figures; CaseError for another file."""
    try:
        document = json.loads(path.read_bytes())
        checks = [_check(row) for row in document["checks"]]
        results = [
            FamilyResult(row["name"], float(row["seconds"]), [check for check in checks if check.family == row["name"]])
            for row in document["families"]
        ]
        for name in (*ORIGIN, "subjects", "complete"):
            document[name]
    except OSError as error:
        raise CaseError(f"{path}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CaseError(f"{path}: is not a file of results that can be continued or merged") from error
    return document, results


def _check(row: dict[str, Any]) -> Check:
    missing_value = math.inf if row["sense"] == "recorded" else math.nan
    return Check(
        row["name"],
        math.nan if row["value"] is None else float(row["value"]),
        missing_value if row["bound"] is None else float(row["bound"]),
        row["sense"],
        row["unit"],
        row["reference"],
        family=row["family"],
    )


def continued(path: Path, **origin: Any) -> list[FamilyResult]:
    """Return the results in a file to which others of this version and commit, and of this `origin`, may be added.

    An absent file has none. CaseError if its results have another origin.
    """
    if not path.exists():
        return []
    document, results = load(path)
    _agree(path, document, {"version": seiche.__version__, "commit": commit(), **origin}, "this run")
    return results


def merge(paths: Sequence[Path], target: Path, order: Sequence[str]) -> tuple[list[FamilyResult], str]:
    """Merge files of results into one, with the families in the order of their names `order`.

    Return the results and the description of their device.

    The file is complete if it has every family of its subjects. CaseError if the files differ in `ORIGIN`, share a
    family, or have a family without a name in `order`.
    """
    documents = [load(path) for path in paths]
    first = documents[0][0]
    families: dict[str, FamilyResult] = {}
    for path, (document, results) in zip(paths, documents, strict=True):
        _agree(path, document, first, str(paths[0]))
        for result in results:
            if result.name in families or result.name not in order:
                problem = "is in another file too" if result.name in families else "is no check of this version"
                raise CaseError(f"{path}: {result.name} {problem}")
            families[result.name] = result
    subjects = {subject: None for document, _ in documents for subject in document["subjects"]}
    results = [families[name] for name in order if name in families]
    store(
        target,
        results,
        **{name: first[name] for name in ORIGIN},
        date=max(document["date"] for document, _ in documents),
        subjects=list(subjects),
        complete=all(name in families for name in order if name.split()[0] in subjects),
    )
    return results, str(first["device"])


def _agree(path: Path, document: dict[str, Any], other: dict[str, Any], name: str) -> None:
    for key in ORIGIN:
        if document[key] != other[key]:
            raise CaseError(f"{path}: its {key} is {document[key]}, that of {name} is {other[key]}")
