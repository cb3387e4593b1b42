# SPDX-License-Identifier: BSD-3-Clause
"""Write the performance page and the README's table from the stored benchmark results.

`python -m benchmarks.page [ROOT]` reads ROOT/benchmarks/results/*.json (as `seiche bench flow`, `blood`,
`ultrasound` and `waves` write them with `--json`) and ROOT/benchmarks/machines/*.json, writes
ROOT/docs/performance/index.md and movement.md, draws docs/figures/blood-shares.png if there are cells on a GPU and a
CPU, and replaces what stands between the two marks in ROOT/README.md. ROOT is the repository, the current folder by
default.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.page.blood import blood_part, draw_compared, ranks_part
from benchmarks.page.movement import movement_page
from benchmarks.page.stored import Result, read_results
from benchmarks.page.ultrasound import ultrasound_part
from benchmarks.page.waves import waves_part

from seiche.bench import blood as bench_blood
from seiche.bench import blood_ranks as bench_blood_ranks
from seiche.bench import ultrasound as bench_ultrasound
from seiche.bench import waves as bench_waves
from seiche.bench.flow import FlowRow
from seiche.bench.ultrasound_ranks import UltrasoundRanksRow
from seiche.report.table import markdown

#: What the generated part of the README stands between.
MARKS = ("<!-- measured -->", "<!-- /measured -->")
NOTHING = "No result is stored yet: `seiche bench flow --json benchmarks/results/NAME.json` makes one.\n"

_INTRODUCTION = """\
# Performance

Made by `python -m benchmarks.page` from the files in `benchmarks/results/`; do not edit it by hand. To
add a result, run `seiche bench flow --json benchmarks/results/NAME.json` on a quiet machine and make the page again.

MLUPS are million updates of fluid sites a second. *B/update* is what the scheme must move for one update, by the count
in the [theory](../theory/flow.md#6-storage): populations read and written, adjacency or tables, relaxation rates.
GB/s is the product of both. *Of copy* compares it with a plain copy of a large array (bytes read plus bytes written),
measured in the same process on the same cores or device. Each rate is the best of three runs of the length that was
asked for; the copy is the best of five on the CPU, the median of seven on a GPU. Where caches help, a share may exceed
100 %.
"""


def page(
    results: Sequence[Result[FlowRow]],
    blood: Sequence[Result[bench_blood.BloodRow]] = (),
    ultrasound: Sequence[Result[bench_ultrasound.UltrasoundRow]] = (),
    waves: Sequence[Result[bench_waves.WavesRow]] = (),
    ultrasound_ranks: Sequence[Result[UltrasoundRanksRow]] = (),
    blood_ranks: Sequence[Result[bench_blood_ranks.BloodRanksRow]] = (),
) -> str:
    """Return the text of the performance page."""
    sections = [_section(result) for result in results] or [NOTHING]
    cells = (blood_part(blood), ranks_part(blood_ranks))
    others = (*cells, ultrasound_part(ultrasound, ultrasound_ranks), waves_part(waves))
    return "\n".join([_INTRODUCTION, *sections, *filter(None, others)])


def _section(result: Result[FlowRow]) -> str:
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
    return result.head + markdown(columns, lines, text_columns=4)


def readme_table(results: Sequence[Result[FlowRow]]) -> str:
    """Return the fastest layout of every device, case, fluid and precision as a table."""
    if not results:
        return NOTHING
    best: dict[tuple[str, ...], tuple[Result[FlowRow], FlowRow]] = {}
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


def _rows(results: Sequence[Result[FlowRow]]) -> Iterator[tuple[Result[FlowRow], FlowRow]]:
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


def pages(root: Path) -> dict[Path, str]:
    """Return what is made from the stored results: both pages and the README, by file.

    Raises:
        FormatError: a result or a machine file is not what it must be.
    """
    folder, target, readme = root / "benchmarks" / "results", root / "docs" / "performance", root / "README.md"
    results, blood = read_results(folder, "flow", FlowRow), read_results(folder, "blood", bench_blood.BloodRow)
    ultrasound = read_results(folder, "ultrasound", bench_ultrasound.UltrasoundRow)
    waves = read_results(folder, "waves", bench_waves.WavesRow)
    ultrasound_ranks = read_results(folder, "ultrasound-ranks", UltrasoundRanksRow)
    blood_ranks = read_results(folder, "blood-ranks", bench_blood_ranks.BloodRanksRow)
    return {
        target / "index.md": page(results, blood, ultrasound, waves, ultrasound_ranks, blood_ranks),
        target / "movement.md": movement_page(root / "benchmarks" / "machines", folder),
        readme: with_table(readme.read_text(), readme_table(results)),
    }


def main(root: Path) -> None:
    """Bring pages, figure and README up to date."""
    for path, text in pages(root).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    blood = read_results(root / "benchmarks" / "results", "blood", bench_blood.BloodRow)
    draw_compared(blood, root / "docs" / "figures" / "blood-shares.png")
