# SPDX-License-Identifier: BSD-3-Clause
"""`seiche validate`: run families of checks, and print, store and plot their results."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

import seiche
from seiche.backend import open_backend
from seiche.errors import CaseError, SeicheError
from seiche.validate.check import Check, Family, Setting
from seiche.validate.results import FamilyResult, continued, store


def main(
    families: Sequence[Family],
    *,
    device: str = "cpu",
    quick: bool = False,
    json: Path | None = None,
    plots: Path | None = None,
    only: Sequence[str] = (),
    resume: bool = False,
) -> int:
    """Run the checks and return 0 if all passed, else 1.

    Args:
        families: the families of checks, in order.
        device: device of the solvers.
        quick: whether to use smaller sizes.
        json: file for the results, updated after every family.
        plots: folder for the figures.
        only: names, or parts of names, of the families to run; if others are missing in the stored results, these are
            marked as incomplete.
        resume: whether to keep the results in `json` and to run only the families without any.

    Raises:
        BackendUnavailable: the device does not exist.
        CaseError: no family has such a name; results to be resumed are of another commit, device or size.
        OSError: a result cannot be written.
    """
    if resume and json is None:
        raise CaseError("--resume: requires the file with the results, --json FILE")
    selected = selected_families(families, only)
    description = open_backend(device).describe()
    for folder in (plots, json.parent if json is not None else None):
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
    names = [label_of(family) for family in families]
    earlier_results = continued(json, device=description, quick=quick) if resume and json is not None else []

    def save(results: Sequence[FamilyResult]) -> None:
        if json is not None:
            results_so_far = [*earlier_results, *results]
            store(
                json,
                sorted(
                    results_so_far, key=lambda result: names.index(result.name) if result.name in names else len(names)
                ),
                device=description,
                quick=quick,
                subjects=list(dict.fromkeys(subject_of(family) for family in families)),
                complete={*names} <= {result.name for result in results_so_far},
            )

    present = {result.name for result in earlier_results}
    results = run_checks(
        Setting(device, quick), [family for family in selected if label_of(family) not in present], save
    )
    chosen = {label_of(family) for family in selected}
    return report([*(result for result in earlier_results if result.name in chosen), *results], description, plots)


def report(results: Sequence[FamilyResult], device: str, plots: Path | None = None) -> int:
    """Print the results, draw the figures in the folder `plots`, and return 0 if all checks passed, else 1."""
    checks = [check for result in results for check in result.checks]
    Console(highlight=False).print(results_table(checks, f"seiche {seiche.__version__} on {device}"))
    if plots is not None:
        for check in checks:
            if check.plot is not None:
                check.plot(plots / picture_name(check.name))
    failed = [check for check in checks if not check.passed]
    verdict = "all passed" if not failed else f"{len(failed)} failed"
    print(f"seiche: {len(checks)} checks in {sum(result.seconds for result in results):.0f} s: {verdict}")
    return 1 if failed else 0


def selected_families(families: Sequence[Family], only: Sequence[str]) -> Sequence[Family]:
    """Return the families that have one of the texts `only` as name or, if none has, in their names; by default all.

    CaseError for unknown texts.
    """
    names = [label_of(family).lower() for family in families]
    chosen: set[str] = set()
    for argument in only:
        text = argument.lower().replace("_", " ").strip()
        matching_names = {name for name in names if name == text} or {name for name in names if text in name}
        if not matching_names:
            raise CaseError(f"--only {argument}: no check has this text in its name; the names are {', '.join(names)}")
        chosen |= matching_names
    return [family for family, name in zip(families, names, strict=True) if not only or name in chosen]


def name_of(family: Family) -> str:
    """Return the name of a family: its module and its function."""
    return f"{family.__module__.rpartition('.')[2]} {family.__name__}".replace("_", " ")


def subject_of(family: Family) -> str:
    """Return the package of a family, such as "flow"; "" outside `seiche.validate`."""
    parts = family.__module__.split(".")
    return parts[2] if parts[:2] == ["seiche", "validate"] and len(parts) > 3 else ""


def label_of(family: Family) -> str:
    """Return the subject and the name of a family, such as "flow decay shear wave"."""
    return f"{subject_of(family)} {name_of(family)}".strip()


def checks_of(family: Family, setting: Setting) -> list[Check]:
    """Return the checks of a family with its name; one that fails if the family cannot be computed."""
    try:
        checks = family(setting)
    except (SeicheError, ArithmeticError, MemoryError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        checks = [Check(f"{name_of(family)}: {reason}", math.nan, math.nan)]
    return [replace(check, family=label_of(family)) for check in checks]


def run_checks(
    setting: Setting,
    families: Sequence[Family],
    save: Callable[[Sequence[FamilyResult]], None] = lambda results: None,
) -> list[FamilyResult]:
    """Run every family, with its name on the terminal; after each, pass all results so far to `save`.

    A family that raises an error counts as a failed check, and the next ones run.
    """
    console = Console(stderr=True, highlight=False)
    results: list[FamilyResult] = []
    with console.status("") as status:
        for number, family in enumerate(families, start=1):
            status.update(f"{number} of {len(families)}: {family.__name__.replace('_', ' ')}")
            begin = time.perf_counter()
            checks = checks_of(family, setting)
            results.append(FamilyResult(label_of(family), time.perf_counter() - begin, checks))
            save(results)
    return results


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


def picture_name(name: str) -> str:
    """Return the file name of the figure of a check."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") + ".png"
