# SPDX-License-Identifier: BSD-3-Clause
"""`seiche validate`: run families of checks, and print, store and plot their results."""

from __future__ import annotations

import json as json_format
import math
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import seiche
from seiche.backend import open_backend
from seiche.errors import CaseError, SeicheError
from seiche.io.files import replacing
from seiche.observe.origin import commit
from seiche.validate.check import Check, Family, Setting


def main(
    families: Sequence[Family],
    *,
    device: str = "cpu",
    quick: bool = False,
    json: Path | None = None,
    plots: Path | None = None,
    only: Sequence[str] = (),
) -> int:
    """Run the checks and return 0 if all passed, else 1.

    Args:
        families: the families of checks, in order.
        device: device of the solvers.
        quick: whether to use smaller sizes.
        json: file for the results, updated after every family.
        plots: folder for the figures.
        only: parts of the names of the families to run; if given, the stored results are marked as incomplete.

    Raises:
        BackendUnavailable: the device does not exist.
        CaseError: no family has such a name.
        OSError: a result cannot be written.
    """
    begin = time.perf_counter()
    selected = selected_families(families, only)
    description = open_backend(device).describe()
    for folder in (plots, json.parent if json is not None else None):
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def save(checks: Sequence[Check], done: int) -> None:
        if json is not None:
            seconds = time.perf_counter() - begin
            store(json, checks, device=description, quick=quick, seconds=seconds, complete=done == len(families))

    checks = run_checks(Setting(device, quick), selected, save)
    seconds = time.perf_counter() - begin
    Console(highlight=False).print(results_table(checks, f"seiche {seiche.__version__} on {description}"))
    if plots is not None:
        for check in checks:
            if check.plot is not None:
                check.plot(plots / picture_name(check.name))
    failed = [check for check in checks if not check.passed]
    verdict = "all passed" if not failed else f"{len(failed)} failed"
    print(f"seiche: {len(checks)} checks in {seconds:.0f} s: {verdict}")
    return 1 if failed else 0


def selected_families(families: Sequence[Family], only: Sequence[str]) -> Sequence[Family]:
    """Return the families whose names contain one of the texts `only`, by default all; CaseError for unknown texts."""
    names = [name_of(family) for family in families]
    texts = [text.lower().replace("_", " ").strip() for text in only]
    for text, argument in zip(texts, only, strict=True):
        if not any(text in name for name in names):
            raise CaseError(f"--only {argument}: no check has this text in its name; the names are {', '.join(names)}")
    pairs = zip(families, names, strict=True)
    return [family for family, name in pairs if not texts or any(text in name for text in texts)]


def name_of(family: Family) -> str:
    """Return the name of a family: its module and its function."""
    return f"{family.__module__.rpartition('.')[2]} {family.__name__}".replace("_", " ")


def subject_of(family: Family) -> str:
    """Return the package of a family, such as "flow"; "" outside `seiche.validate`."""
    parts = family.__module__.split(".")
    return parts[2] if parts[:2] == ["seiche", "validate"] and len(parts) > 3 else ""


def checks_of(family: Family, setting: Setting) -> list[Check]:
    """Return the checks of a family with its name; one that fails if the family cannot be computed."""
    try:
        checks = family(setting)
    except (SeicheError, ArithmeticError, MemoryError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        checks = [Check(f"{name_of(family)}: {reason}", math.nan, math.nan)]
    return [replace(check, family=f"{subject_of(family)} {name_of(family)}".strip()) for check in checks]


def run_checks(
    setting: Setting,
    families: Sequence[Family],
    save: Callable[[Sequence[Check], int], None] = lambda checks, done: None,
) -> list[Check]:
    """Run every family, with its name on the terminal; after each, pass all checks so far to `save`.

    A family that raises an error counts as a failed check, and the next ones run.
    """
    console = Console(stderr=True, highlight=False)
    checks: list[Check] = []
    with console.status("") as status:
        for number, family in enumerate(families, start=1):
            status.update(f"{number} of {len(families)}: {family.__name__.replace('_', ' ')}")
            checks += checks_of(family, setting)
            save(checks, number)
    return checks


def results_table(checks: Sequence[Check], title: str) -> Table:
    """Return the checks as a table for the terminal."""
    from rich import box

    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left")
    table.add_column("check", overflow="fold")
    table.add_column("measured", justify="right", no_wrap=True)
    table.add_column("bound", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for check in checks:
        bound = {"below": "<= ", "above": ">= ", "recorded": ""}[check.sense]
        bound += "" if check.sense == "recorded" else f"{check.bound:g}"
        result = "recorded" if check.passed and check.sense == "recorded" else "pass" if check.passed else "FAIL"
        table.add_row(check.name, f"{check.value:.3g} {check.unit}".rstrip(), bound, result)
    return table


def store(path: Path, checks: Sequence[Check], **run: Any) -> None:
    """Write the results and the attributes of the run (`run`) to a JSON file, atomically."""
    results = [
        {
            "name": check.name,
            "value": float(check.value) if math.isfinite(check.value) else None,
            "bound": None if check.sense == "recorded" or math.isnan(check.bound) else float(check.bound),
            **{name: getattr(check, name) for name in ("sense", "unit", "reference", "family", "passed")},
        }
        for check in checks
    ]
    document = {
        "version": seiche.__version__,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        **run,
        "passed": all(check.passed for check in checks),
        "checks": results,
    }
    with replacing(path) as temporary:
        Path(temporary).write_text(json_format.dumps(document, indent=2) + "\n")


def picture_name(name: str) -> str:
    """Return the file name of the figure of a check."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") + ".png"
