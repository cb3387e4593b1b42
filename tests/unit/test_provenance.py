# SPDX-License-Identifier: BSD-3-Clause
"""Published numbers name stored results, and stored results name commits that exist and had no uncommitted changes."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from benchmarks.page.stored import origin_of

ROOT = Path(__file__).resolve().parents[2]
RESULTS, MACHINES = ROOT / "benchmarks" / "results", ROOT / "benchmarks" / "machines"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: Machine files from before `seiche bench machine` stored a commit. Pages say that it was not recorded. No file may be
#: added.
WITHOUT_COMMIT = {
    *("cpu2-epyc.json", "cpu2.json", "h200x2-2026-11-22.json", "h200x2.json", "h200x4-2026-11-22.json"),
    *("h200x4.json", "h200x8.json"),
}
#: Parts of the theory with tables that name neither a stored result nor a trial: definitions, formulas, bounds, results
#: of tests, and numbers from before the rule. No part may be added with measured numbers.
TABLES_WITHOUT_RESULT = {
    ("cells", "5. One thread block per cell"),
    ("cells", "8. Surface viscosity"),
    ("cells", "9. Validation"),
    ("coupling", "Cells in flow: theory"),
    ("coupling", "1. The immersed boundary"),
    ("coupling", "3. Data"),
    ("coupling", "6. Largest stable time step"),
    ("coupling", "9. Validation"),
    ("coupling", "Automatic checks"),
    ("flow", "Flow in vessels"),
    ("flow", "1. Velocity set and populations"),
    ("flow", "4. One step"),
    ("flow", "6. Storage"),
    ("flow", "Stability of openings"),
    ("flow", "10. Units"),
    ("flow", "Automatic checks"),
    ("movement", "2. The fit"),
    ("ultrasound", "3. One step with the exact correction"),
    ("ultrasound", "Transforms and memory traffic"),
    ("ultrasound", "4. Axis-wise schemes"),
    ("ultrasound", "Automatic checks"),
    ("ultrasound", "11. Validation"),
    ("ultrasound", "12. Several ranks: a local Fourier basis"),
    ("ultrasound", "13. Several ranks: transforms of the whole grid"),
    ("ultrasound", "Two layouts"),
    ("ultrasound", "14. Media averaged over cells"),
    ("ultrasound", "15. Axisymmetric media and sources"),
    ("ultrasound", "16. Propagation between planes"),
    ("waves", "Waves in fluids and solids"),
    ("waves", "3. Right-hand side and flux"),
    ("waves", "4. Hanging faces"),
    ("waves", "7. Time step"),
    ("waves", "10. Gradients"),
    ("waves", "Automatic checks"),
}
#: Commits after this one obey the rule about bounds.
BOUNDS_SINCE = "ed38534421"
STORED = sorted([*RESULTS.glob("*.json"), *MACHINES.glob("*.json")])
#: Twelve hexadecimal digits, at least one of them a letter.
COMMIT = re.compile(r"\b(?=\d*[a-f])[0-9a-f]{12}\b")
#: A stored result in a text: its name has the device.
FILE = re.compile(r"`(?:benchmarks/(?:results|machines)/)?([a-z0-9-]*(?:cpu|h\d00)[a-z0-9-]*\.json)`")


def git(*words: str) -> str:
    """Return the output of a git command here; skip the test in a copy without the history."""
    try:
        run = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        pytest.skip("no git history: not a clone")
    return run.stdout


@cache
def history() -> frozenset[str]:
    if git("rev-parse", "--is-shallow-repository").strip() != "false":
        pytest.skip("a shallow clone has no history")
    if Path(git("rev-parse", "--show-toplevel").strip()) != ROOT:
        pytest.skip("the repository around this copy is another one")
    return frozenset(git("rev-list", "HEAD").split())


def exists(commit: str) -> bool:
    return any(known.startswith(commit) for known in history())


def commits_in(value: Any) -> Iterator[str]:
    """Yield the value of every key "commit" of a document."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key == "commit":
                yield item
            else:
                yield from commits_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from commits_in(item)


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.name)
def test_a_stored_result_names_its_commit(path: Path) -> None:
    commits = [*commits_in(json.loads(path.read_text()))]
    assert not {"", "unknown"} & {*commits}, f"{path.name} does not know its commit: measure again in a clone"
    assert bool(commits) != (path.name in WITHOUT_COMMIT)
    assert not any("dirty" in commit for commit in commits), f"{path.name} has results of uncommitted changes"
    for commit in commits:
        assert exists(commit), f"{path.name}: commit {commit} does not exist"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_commits_and_stored_results_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text()
    assert [name for name in FILE.findall(text) if not _exists(name)] == []
    assert [commit for commit in COMMIT.findall(text) if not exists(commit)] == []


def _exists(name: str) -> bool:
    return (RESULTS / name).exists() or (MACHINES / name).exists()


def test_pages_say_where_a_commit_is_missing() -> None:
    assert origin_of("abc-dirty") == "commit abc, with uncommitted changes"
    assert origin_of("unknown") == origin_of("") == "commit not recorded"


def test_numbers_of_the_readme_outside_its_table_are_those_of_stored_results() -> None:
    text = (ROOT / "README.md").read_text()
    prose = re.sub(r"```.*?```|<!-- measured -->.*?<!-- /measured -->", "", text, flags=re.DOTALL)
    result = [" ".join(words.split()) for words in re.findall(r"[\d.]+(?: to [\d.]+)?\s+times", prose)]
    rows = [
        row
        for name in ("ultrasound-ranks-all-h200x2.json", "ultrasound-ranks-h200x2.json")
        for row in json.loads((RESULTS / name).read_text())["rows"]
        if (row["ranks"], row["scheme"]) == (2, "exact")
    ]
    ratios = {
        basis: [row["milliseconds"] / row["milliseconds_alone"] for row in rows if row["basis"] == basis]
        for basis in ("local", "global")
    }
    # The second file has the local basis of today, the first one its earlier extents.
    today = ratios["local"][-8:]
    expected = [f"{min(today):.1f} to {max(today):.2f} times", f"2.3 to {max(ratios['global']):.1f} times"]
    assert min(ratios["global"]) == pytest.approx(2.3, abs=0.05)
    assert result == expected
    units = re.findall(r"\d\s?(?:MLUPS|GLUPS|GB/s|TB/s|us|ms|%)(?![\w/])", prose)
    assert units == []


def test_each_part_of_the_tuning_page_names_its_results_or_says_that_they_are_trials() -> None:
    text = (ROOT / "docs" / "performance" / "tuning.md").read_text()
    parts = re.split(r"^(?=##+ )", text, flags=re.MULTILINE)[1:]
    assert len(parts) > 10
    for part in parts:
        stored = [name for name in FILE.findall(part) if _exists(name)]
        assert stored or "trial" in part.lower() or "](index.md" in part, part.partition("\n")[0]


def test_tables_of_the_theory_name_their_results_or_say_that_they_are_trials() -> None:
    unnamed = set()
    for page in sorted((ROOT / "docs" / "theory").glob("*.md")):
        for part in re.split(r"^(?=##+ )", page.read_text(), flags=re.MULTILINE):
            has_table = re.search(r"^\|[-| :]+\|$", part, flags=re.MULTILINE) is not None
            if has_table and "trial" not in part.lower() and not any(map(_exists, FILE.findall(part))):
                unnamed.add((page.stem, part.partition("\n")[0].lstrip("# ")))
    assert unnamed == TABLES_WITHOUT_RESULT


def test_no_commit_changes_bounds_together_with_a_stored_validation() -> None:
    if not exists(BOUNDS_SINCE):
        pytest.skip("the history begins after the rule")
    changed = git("log", "--no-merges", "--format=commit %h", "--name-only", f"{BOUNDS_SINCE}..HEAD")
    for commit in changed.split("commit ")[1:]:
        name, *files = commit.split()
        results = [file for file in files if re.match(r"benchmarks/results/validate-.*\.json$", file)]
        checks = [file for file in files if file.startswith("src/seiche/validate/")]
        assert not (results and checks), f"commit {name} stores {results} and changes {checks}: make two commits"
