# SPDX-License-Identifier: BSD-3-Clause
"""`seiche validate`: run families of checks, print pass or fail for each, store and draw them."""

from __future__ import annotations

import json as json_format
import math
import re
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import seiche
from seiche.backend import open_backend
from seiche.errors import CaseError
from seiche.io.files import replacing
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
    """Run the checks and return 0 if every one passed, else 1.

    Args:
        families: the checks, in the order in which they run.
        device: where the solver runs.
        quick: smaller sizes.
        json: file to store the results in, those there are after every family.
        plots: folder to draw comparisons in.
        only: parts of the names of families: the others are left out, and what is stored is not complete.

    Raises:
        BackendUnavailable: the device is not there.
        CaseError: no family has such a name.
        OSError: a result cannot be written.
    """
    begin = time.perf_counter()
    chosen = picked(families, only)
    described = open_backend(device).describe()
    for folder in (plots, json.parent if json is not None else None):
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def keep(so_far: Sequence[Check], done: int) -> None:
        if json is not None:
            seconds = time.perf_counter() - begin
            store(json, so_far, device=described, quick=quick, seconds=seconds, complete=done == len(families))

    checks = run_checks(Setting(device, quick), chosen, keep)
    seconds = time.perf_counter() - begin
    Console(highlight=False).print(results_table(checks, f"seiche {seiche.__version__} on {described}"))
    if plots is not None:
        for check in checks:
            if check.plot is not None:
                check.plot(plots / picture_name(check.name))
    failed = [check for check in checks if not check.passed]
    verdict = "all passed" if not failed else f"{len(failed)} did not pass"
    print(f"seiche: {len(checks)} checks in {seconds:.0f} s: {verdict}")
    return 1 if failed else 0


def picked(families: Sequence[Family], only: Sequence[str]) -> Sequence[Family]:
    """Return the families whose names have one of the texts `only`, all without any.

    Raises:
        CaseError: a text is in none of them.
    """
    names = [f"{family.__module__.rpartition('.')[2]} {family.__name__}".replace("_", " ") for family in families]
    wanted = [text.lower().replace("_", " ").strip() for text in only]
    for text, given in zip(wanted, only, strict=True):
        if not any(text in name for name in names):
            raise CaseError(f"--only {given}: no check has this in its name; there are: {', '.join(names)}")
    return [
        family
        for family, name in zip(families, names, strict=True)
        if not wanted or any(text in name for text in wanted)
    ]


def run_checks(
    setting: Setting,
    families: Sequence[Family],
    keep: Callable[[Sequence[Check], int], None] = lambda so_far, done: None,
) -> list[Check]:
    """Run every family, saying on a terminal which one is at work; `keep` is given what there is after so many."""
    console = Console(stderr=True, highlight=False)
    checks: list[Check] = []
    with console.status("") as status:
        for number, family in enumerate(families, start=1):
            status.update(f"{number} of {len(families)}: {family.__name__.replace('_', ' ')}")
            checks += family(setting)
            keep(checks, number)
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
        word = "recorded" if check.passed and check.sense == "recorded" else "pass" if check.passed else "FAIL"
        table.add_row(check.name, f"{check.value:.3g} {check.unit}".rstrip(), bound, word)
    return table


def store(path: Path, checks: Sequence[Check], **run: Any) -> None:
    """Write the results and what is known of the run as JSON; `path` keeps what it had until that is complete."""
    results = [
        {
            "name": check.name,
            "value": float(check.value) if math.isfinite(check.value) else None,
            "bound": None if check.sense == "recorded" else float(check.bound),
            "sense": check.sense,
            "unit": check.unit,
            "reference": check.reference,
            "passed": check.passed,
        }
        for check in checks
    ]
    document = {
        "version": seiche.__version__,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        **run,
        "passed": all(check.passed for check in checks),
        "checks": results,
    }
    with replacing(path) as part:
        Path(part).write_text(json_format.dumps(document, indent=2) + "\n")


def picture_name(name: str) -> str:
    """Return the file name of a check's picture."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") + ".png"
