# SPDX-License-Identifier: BSD-3-Clause
"""The documentation: links resolve, cited equations exist, signatures are those of the code, marked blocks run.

A comment before a fenced block says what a test does with it: `<!-- runnable -->` runs Python as a script and the
lines of a shell block that call `seiche`; `<!-- runnable: a => b; c => d -->` replaces text first, to make it quick;
`<!-- file: NAME -->` only writes the block to a file for the blocks that follow on the same page, and
`<!-- append: NAME -->` appends it. `<!-- produces: NAMES -->` states files that exist at the end of the page.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from benchmarks.page import page as performance_page
from benchmarks.page.stored import read_results
from tools.docstrings import resolve

from page_blocks import ROOT, blocks, one_block
from seiche.bench.flow import FlowRow, document
from seiche.cli import main
from seiche.kernels.registry import flow as registry

KERNELS = ROOT / "src" / "seiche" / "kernels"
PAGES = [page for page in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]) if "_build" not in page.parts]
THEORY = ROOT / "docs" / "theory" / "flow.md"
#: The theory page of each folder of kernels and solver that has one of its own; flow's is that of all others.
PAGES_OF = {
    **{"kspace": "ultrasound", "ultrasound": "ultrasound", "membrane": "cells", "cells": "cells"},
    **{"dg": "waves", "waves": "waves", "ibm": "coupling", "couple": "coupling"},
    **{"machine": "movement", "observe": "movement"},
}
#: Packages whose sources cite theory pages.
SOLVERS = ("cells", "couple", "flow", "machine", "observe", "ultrasound")
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


def quick(text: str, replacements: str) -> str:
    """Apply `a => b; c => d`, each of which must find its text."""
    for change in replacements.split("; ") if replacements else ():
        before, _, after = change.partition(" => ")
        assert before in text, f"{before!r} is not in the block"
        text = text.replace(before, after)
    return text


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub and MyST make them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    page = ROOT / name
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if re.match(r"https?://", target):
            continue
        path, _, anchor = target.partition("#")
        result = (page.parent / path).resolve() if path else page
        assert result.exists(), f"{name}: {target}"
        assert result.is_relative_to(ROOT)
        if anchor:
            assert anchor in anchors(result), f"{name}: {target}"


def test_every_page_is_in_the_table_of_contents() -> None:
    folder = ROOT / "docs"
    listed = re.findall(r"^[\w./-]+$", (folder / "index.md").read_text(), re.MULTILINE)
    decisions = {f"decisions/{page.stem}" for page in (folder / "decisions").glob("0*.md")}
    pages = [page for page in PAGES if page.is_relative_to(folder)]
    remote = {str(page.relative_to(folder).with_suffix("")) for page in pages} - {"index"}
    assert remote - decisions == set(listed) - {"---", "auto_gallery/index"}
    index = (folder / "decisions" / "index.md").read_text()
    assert all(f"({Path(name).name}.md)" in index for name in decisions)


def cited(text: str) -> set[int]:
    """Return the equation numbers in "eq. 3", "eqs. 8 and 12" or "eqs. 7 to 10" of comments."""
    flat = re.sub(r"\s*\n\s*(///|#)?\s*", " ", text)
    numbers: set[int] = set()
    for first, word, last in re.findall(r"\beqs?\. (\d+)(?:( to |, | and )(\d+))?", flat):
        end = int(last) if last else int(first)
        numbers |= set(range(int(first), end + 1)) if word == " to " else {int(first), end}
    return numbers


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("(eq. 3)", {3}), ("eqs. 8 and\n/// 12).", {8, 12}), ("eqs. 7 to 9", {7, 8, 9}), ("seq. 4", set())],
)
def test_citations_are_understood(text: str, numbers: set[int]) -> None:
    assert cited(text) == numbers


def theory_of(path: Path) -> Path:
    """Return the theory page that a source cites."""
    return ROOT / "docs" / "theory" / f"{PAGES_OF.get(path.parent.name, 'flow')}.md"


def sources() -> list[Path]:
    solvers = [path for name in SOLVERS for path in (ROOT / "src" / "seiche" / name).glob("*.py")]
    return [*KERNELS.rglob("*.hpp"), *solvers]


@pytest.mark.parametrize(
    ("page", "at_least", "in_headers"),
    [("flow", 22, 16), ("ultrasound", 22, 0), ("cells", 14, 14), ("coupling", 13, 0), ("movement", 23, 0)],
)
def test_cited_equations_exist(page: str, at_least: int, in_headers: int) -> None:
    text = (ROOT / "docs" / "theory" / f"{page}.md").read_text()
    equations = [int(number) for number in re.findall(r"\\tag\{(\d+)\}", text)]
    assert len(equations) == len(set(equations))
    assert set(equations) >= set(range(1, at_least + 1))
    headers: set[int] = set()
    for path in sources():
        if theory_of(path).stem == page:
            assert cited(path.read_text()) <= set(equations), path
            headers |= cited(path.read_text()) if path.suffix == ".hpp" else set()
    assert headers >= set(range(1, in_headers + 1))


def test_the_stages_of_the_coupling_are_those_of_its_theory() -> None:
    couple = ROOT / "src" / "seiche" / "couple"
    names = re.findall(r'Stage\("([^"]+)"', (couple / "immersed.py").read_text() + (couple / "inside.py").read_text())
    section = (THEORY.parent / "coupling.md").read_text().partition("## 2. A step")[2].partition("## 3.")[0]
    assert sorted(names) == ["interpolate velocity", "list vertices", "mark inside", "spread force"]
    assert all(f"\n{name} " in section for name in names)


def test_cited_sections_exist() -> None:
    for path in sources():
        page = theory_of(path)
        sections = set(re.findall(r"^## (\d+)\. ", page.read_text(), re.MULTILINE))
        assert set(re.findall(rf"theory/{page.stem}, section (\d+)", path.read_text())) <= sections, path


def test_the_stages_of_ultrasound_are_those_of_its_solver() -> None:
    page = ROOT / "docs" / "theory" / "ultrasound.md"
    section = page.read_text().partition("## 3. One step")[2].partition("$$")[0]
    solver = "".join(path.read_text() for path in (ROOT / "src" / "seiche" / "ultrasound").glob("*.py"))
    stages = re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)
    assert len(stages) == 8
    assert all(f'"{stage}"' in solver for stage in stages)


def test_the_stages_of_the_theory_are_those_of_the_solver() -> None:
    flow = ROOT / "src" / "seiche" / "flow"
    solver = "".join((flow / name).read_text() for name in ("steps.py", "iolet_stages.py", "walls.py"))
    section = THEORY.read_text().partition("## 4. One step")[2].partition("## 5.")[0]
    stages = re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)
    assert len(stages) == 21
    overview = (ROOT / "ARCHITECTURE.md").read_text()
    assert all(f'"{stage}"' in solver and stage in overview for stage in stages)


API = re.findall(r"^### `([\w.]+)\((.*)\)`$", (ROOT / "docs" / "reference" / "api.md").read_text(), re.MULTILINE)


@pytest.mark.parametrize(("name", "arguments"), API, ids=[name for name, _ in API])
def test_signatures_of_the_reference_are_those_of_the_code(name: str, arguments: str) -> None:
    parameters = [p for p in inspect.signature(resolve(name)).parameters.values() if p.name != "self"]
    shown: list[str] = []
    for parameter in parameters:
        star = parameter.kind is parameter.KEYWORD_ONLY and not any(text.startswith("*") for text in shown)
        shown += ["*"] if star else []
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}
        shown.append(stars.get(parameter.kind, "") + parameter.name)
    assert arguments == ", ".join(shown)


def test_the_reference_names_the_fields_of_sites_and_every_error() -> None:
    page = (ROOT / "docs" / "reference" / "api.md").read_text()
    for name in ("errors.SeicheError", "domain.sites.SiteSet", "domain.world.World"):
        kind = resolve(f"seiche.{name}")
        assert kind.__name__ in page
        if dataclasses.is_dataclass(kind):
            assert all(f"`{field.name}`" in page or field.name in page for field in dataclasses.fields(kind))
    import seiche.errors

    errors = [k for k, v in vars(seiche.errors).items() if inspect.isclass(v) and issubclass(v, Exception)]
    assert all(f"`{name}`" in page for name in errors)


RUNNABLE = [str(page.relative_to(ROOT)) for page in PAGES if any(kind == "runnable" for kind, *_ in blocks(page))]


@pytest.mark.parametrize("name", RUNNABLE)
def test_marked_blocks_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("out"))
    monkeypatch.chdir(tmp_path)
    for mark, argument, language, text in blocks(ROOT / name):
        if mark == "file":
            (tmp_path / argument).write_text(text)
        elif mark == "append":
            with (tmp_path / argument).open("a") as file:
                file.write(text)
        elif mark == "runnable" and language == "python":
            run_script(quick(text, argument), tmp_path)
        elif mark == "runnable":
            calls = [line for line in quick(text, argument).splitlines() if "seiche " in line]
            assert calls
            for line in calls:
                words = shlex.split(line)
                assert main(words[words.index("seiche") + 1 :]) == 0, line
    for files in re.findall(r"<!-- produces: (.*?) -->", (ROOT / name).read_text()):
        missing = [file for file in files.split() if not (tmp_path / file).is_file()]
        assert not missing


def run_script(text: str, folder: Path, timeout: float = 100) -> None:
    """Run a script in `folder` with the package that this process uses."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    run = subprocess.run(
        [sys.executable, "-c", text],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert run.returncode == 0, run.stderr


def test_the_first_example_is_short() -> None:
    (text,) = [text for _, _, language, text in blocks(ROOT / "README.md") if language == "python"]
    assert len([line for line in text.splitlines() if line]) <= 12


def test_the_kernel_of_the_how_to_compiles_and_fits_its_registration(tmp_path: Path) -> None:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++")
    from seiche.backend.cache import source_of

    page = "docs/howto/add-a-kernel.md"
    scope = dict(vars(registry))
    exec(one_block(page, "registry"), scope)
    folder = tmp_path / "kernels"
    shutil.copytree(KERNELS, folder)
    (folder / "flow" / "kinetic_energy.hpp").write_text(one_block(page, "kernel"))
    specs = [scope["kinetic_energy"](layout, "float32", "float16", "uniform") for layout in registry.LAYOUTS]
    text = "".join(source_of(spec) for spec in specs)
    text += "".join(f"template void for_each<{spec.type}>(const void*, Index, Index, int);\n" for spec in specs)
    flags = [
        "-std=c++20",
        "-Wall",
        "-Werror",
        "-Wno-unknown-pragmas",
        "-O0",
        "-c",
        f"-I{folder}",
        "-o",
        os.devnull,
        "-xc++",
        "-",
    ]
    text = text.replace("template void for_each", "template void seiche::for_each")
    run = subprocess.run([compiler, *flags], input=text, capture_output=True, text=True, timeout=100, check=False)
    assert run.returncode == 0, run.stderr


CLI = sorted((ROOT / "src" / "seiche" / "cli").glob("*.py"))


def test_commands_of_make_and_options_of_seiche_exist() -> None:
    targets = set(re.findall(r"^(\w[\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    options = "".join(path.read_text() for path in CLI)
    for page in PAGES:
        text = page.read_text()
        assert set(re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE)) <= targets, page
        for line in re.findall(r"^(?:mpiexec .*|srun )?seiche .*$", text, re.MULTILINE):
            for option in re.findall(r" --([a-z-]+)", line):
                assert f"--{option}" in options or f"{option.replace('-', '_')}:" in options, line


def test_extras_of_the_readme_are_those_of_the_project() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    section = (ROOT / "README.md").read_text().partition("## Extras")[2].partition("## More")[0]
    shown = {
        name for line in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE) for name in re.findall(r"`(\w+)`", line)
    }
    assert shown == set(extras)


def test_the_citation_has_the_keys_and_the_version_of_the_project() -> None:
    lines = (ROOT / "CITATION.cff").read_text().splitlines()
    keys = dict(line.split(": ", 1) for line in lines if re.match(r"[a-z-]+: ", line))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert keys["cff-version"] == "1.2.0"
    assert {"message", "title"} <= set(keys)
    assert "  - name: The Seiche developers" in lines
    assert (keys["version"], keys["license"]) == (project["version"], project["license"])


def test_the_changelog_keeps_the_headings_of_keep_a_changelog() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    releases = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert releases and all(
        re.fullmatch(r"\[Unreleased\]|\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", name) for name in releases
    )
    changes = set(re.findall(r"^### (.*)$", text, re.MULTILINE))
    assert changes <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert version in text


def test_performance_page_and_readme_are_made_from_the_stored_results() -> None:
    for path, text in performance_page.pages(ROOT).items():
        assert path.read_text() == text, f"{path}: run python -m benchmarks.page"


def flow_row(layout: str, mlups: float) -> FlowRow:
    return FlowRow("tube", layout, "float32", "float32", "newtonian", 1_040_000, 1, 640, mlups, 189.0, 9.45, 0.7, 10)


def test_the_table_of_the_readme_has_the_fastest_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEICHE_COMMIT", "0123456789ab")
    stored = document([flow_row("list-aa", 50.0), flow_row("tiles-4", 60.0)], "a processor", 13.5e9)
    (tmp_path / "one.json").write_text(json.dumps(stored))
    (tmp_path / "two.json").write_text(json.dumps({"benchmark": "other"}))
    (result,) = read_results(tmp_path, "flow", FlowRow)
    assert [asdict(row) for row in result.rows] == stored["rows"]
    table = performance_page.readme_table([result])
    assert table.count("\n") == 3
    assert "| a processor | tube | tiles-4 | float32 / float32 | 1,040,000 | 60 | 9.4 | 70% |" in table
    assert performance_page.readme_table([replace(result, commit="0123456789ab-dirty")]).count("\n") == 1
    page = performance_page.page([result])
    assert "| tube | list-aa | float32 / float32 | newtonian | 1,040,000 | 1 |  | 50.0 | 189.0 | 9.4 | 70% |  |" in page
    assert "copy 13.5 GB/s" in page
