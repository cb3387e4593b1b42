# SPDX-License-Identifier: BSD-3-Clause
"""Write the performance page and the README's table from the stored benchmark results.

`python -m seiche.report.performance_page [ROOT]` reads ROOT/benchmarks/results/*.json (as `seiche bench flow`, `blood`,
`ultrasound` and `waves` write them with `--json`) and ROOT/benchmarks/machines/*.json, writes
ROOT/docs/performance/index.md and movement.md, draws docs/figures/blood-shares.png if there are cells on a GPU and a
CPU, and replaces what stands between the two marks in ROOT/README.md. ROOT is the repository, the current folder by
default.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from seiche.errors import FormatError
from seiche.report.bench_flow import Row
from seiche.report.performance_blood import BloodResult, blood_part, draw_compared, read_blood
from seiche.report.performance_movement import movement_page
from seiche.report.performance_ultrasound import UltrasoundResult, read_ultrasound, ultrasound_part
from seiche.report.performance_waves import WavesResult, read_waves, waves_part
from seiche.report.table import markdown

#: What the generated part of the README stands between.
MARKS = ("<!-- measured -->", "<!-- /measured -->")
NOTHING = "No result is stored yet: `seiche bench flow --json benchmarks/results/NAME.json` makes one.\n"

_INTRODUCTION = """\
# Performance

Made by `python -m seiche.report.performance_page` from the files in `benchmarks/results/`; do not edit it by hand. To
add a result, run `seiche bench flow --json benchmarks/results/NAME.json` on a quiet machine and make the page again.

MLUPS are million updates of fluid sites a second. *B/update* is what the scheme must move for one update, by the count
in the [theory](../theory/flow.md#6-storage): populations read and written, adjacency or tables, relaxation rates.
GB/s is the product of both. *Of copy* compares it with a plain copy of a large array (bytes read plus bytes written),
measured in the same process on the same cores or device. Each rate is the best of three runs of the length that was
asked for; the copy is the best of five on the CPU, the median of seven on a GPU. Where caches help, a share may exceed
100 %.
"""


@dataclass(frozen=True)
class Result:
    """One file: what was measured where and when; `copy` in bytes a second."""

    path: Path
    device: str
    date: str
    commit: str
    copy: float
    rows: tuple[Row, ...]


def read_results(folder: Path) -> list[Result]:
    """Return the flow benchmarks among the JSON files of `folder`, by file name.

    Raises:
        FormatError: a file is not JSON, or lacks something that a flow benchmark must hold.
    """
    results = []
    for path in sorted(folder.glob("*.json")):
        try:
            document = json.loads(path.read_text())
        except ValueError as error:
            raise FormatError(path, "whole file", f"not JSON: {error}") from None
        if isinstance(document, dict) and document.get("benchmark") == "flow":
            results.append(_result(path, document))
    return results


def _result(path: Path, document: dict[str, Any]) -> Result:
    # Columns that came later have a default: results from before do not lack them.
    needed = {field.name: field.default is MISSING for field in fields(Row)}
    try:
        rows = tuple(
            Row(**{name: row[name] for name, must in needed.items() if must or name in row}) for row in document["rows"]
        )
        copy = float(document["copy_bytes_per_second"])
        return Result(path, str(document["device"]), str(document["date"]), str(document["commit"]), copy, rows)
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(path, "rows", f"not a flow benchmark: {error}") from None


def page(
    results: Sequence[Result],
    blood: Sequence[BloodResult] = (),
    ultrasound: Sequence[UltrasoundResult] = (),
    waves: Sequence[WavesResult] = (),
) -> str:
    """Return the text of the performance page."""
    sections = [_section(result) for result in results] or [NOTHING]
    others = [part for part in (blood_part(blood), ultrasound_part(ultrasound), waves_part(waves)) if part]
    return "\n".join([_INTRODUCTION, *sections, *others])


def _section(result: Result) -> str:
    head = (
        f"## {result.device}: {result.path.stem}\n\n"
        f"{result.date}, commit {result.commit}, copy {result.copy / 1e9:.1f} GB/s, "
        f"data in `benchmarks/results/{result.path.name}`.\n\n"
    )
    columns = ("case", "layout", "compute / storage", "fluid", "sites", "ranks", "MLUPS", "B/update", "GB/s", "of copy")
    lines = [
        (
            row.case,
            row.layout,
            f"{row.compute} / {row.storage}",
            row.rheology,
            f"{row.sites:,}",
            str(row.ranks),
            f"{row.mlups:,.1f}",
            f"{row.bytes_per_update:.1f}",
            f"{row.gigabytes_per_second:,.1f}",
            f"{row.share_of_copy:.0%}",
        )
        for row in result.rows
    ]
    return head + markdown(columns, lines, text_columns=4)


def readme_table(results: Sequence[Result]) -> str:
    """Return the fastest layout of every device, case, fluid and precision as a table."""
    if not results:
        return NOTHING
    best: dict[tuple[str, ...], tuple[Result, Row]] = {}
    for result, row in _rows(results):
        key = (result.device, row.case, str(row.ranks), row.rheology, row.compute, row.storage)
        if key not in best or row.mlups > best[key][1].mlups:
            best[key] = (result, row)
    columns = ("device", "case", "layout", "compute / storage", "sites", "MLUPS", "GB/s", "of copy", "date")
    lines = [
        (
            result.device,
            row.case,
            row.layout,
            f"{row.compute} / {row.storage}",
            f"{row.sites:,}",
            f"{row.mlups:,.0f}",
            f"{row.gigabytes_per_second:,.1f}",
            f"{row.share_of_copy:.0%}",
            result.date[:10],
        )
        for result, row in best.values()
    ]
    return markdown(columns, lines, text_columns=4)


def _rows(results: Sequence[Result]) -> Iterator[tuple[Result, Row]]:
    for result in results:
        for row in result.rows:
            yield result, row


def with_table(readme: str, block: str) -> str:
    """Return the README with `block` between its marks.

    Raises:
        ValueError: the marks are not there.
    """
    begin, rest = readme.split(MARKS[0])
    _, end = rest.split(MARKS[1])
    return f"{begin}{MARKS[0]}\n{block}{MARKS[1]}{end}"


def main(root: Path) -> None:
    """Bring page and README up to date."""
    folder = root / "benchmarks" / "results"
    results, blood = read_results(folder), read_blood(folder)
    draw_compared(blood, root / "docs" / "figures" / "blood-shares.png")
    target = root / "docs" / "performance" / "index.md"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(page(results, blood, read_ultrasound(folder), read_waves(folder)))
    moved = movement_page(root / "benchmarks" / "machines", folder)
    (target.parent / "movement.md").write_text(moved)
    readme = root / "README.md"
    readme.write_text(with_table(readme.read_text(), readme_table(results)))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path.cwd())
