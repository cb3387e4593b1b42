# SPDX-License-Identifier: BSD-3-Clause
"""`seiche new`: templates that run and fit the schema, copies of examples, and nothing that is overwritten."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from seiche.case import new
from seiche.case.kinds import KINDS, kind_named
from seiche.case.schema_tables import fields_of, models_in
from seiche.cli import main
from seiche.errors import CaseError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_case_passes_the_check_without_advice_and_runs(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", kind, "aorta"]) == 0
    assert 'title = "aorta"' in Path("aorta/case.toml").read_text()
    assert f"seiche run {Path('aorta/case.toml')}" in capsys.readouterr().out
    assert main(["check", "aorta/case.toml"]) == 0
    advice = [line for line in capsys.readouterr().out.splitlines() if line.startswith("advice")]
    assert [line for line in advice if "two dimensions" not in line] == []  # a delta is known to be inexact near it
    assert main(["run", "aorta/case.toml"]) == 0
    assert Path("aorta/out/summary.json").is_file() and list(Path("aorta/out").glob("*.png"))


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_of_a_template_also_in_its_comments_is_in_the_schema(kind: str) -> None:
    text = (new.TEMPLATES / f"{kind}.toml").read_text()
    # Every key in a comment becomes a line: as a text, its value need not fit with the others.
    lines = [re.sub(r"^# (?=\[|[a-z_A-Z]+ = )", "", line) for line in text.splitlines()]
    seen: dict[str, set[str]] = {}
    table = ""
    for line in lines:
        if result := re.match(r"\[+([a-z_.]+)\]+", line):
            table = result[1]
        elif result := re.match(r"([A-Za-z_]+) = ", line):
            seen.setdefault(table, set()).add(result[1])
    assert len(seen) > 5
    for path, keys in seen.items():
        models: list[Any] = [kind_named(kind).schema]
        for name in path.split(".") if path else ():
            inner = [fields_of(model)[name] for model in models if name in fields_of(model)]
            models = [model for field in inner for model in models_in(field.annotation, *field.metadata)]
        assert models, path
        assert keys <= {key for model in models for key in fields_of(model)}, path


@pytest.mark.parametrize("kind", KINDS)
def test_choices_and_pages_that_a_template_names_exist(kind: str) -> None:
    text = (new.TEMPLATES / f"{kind}.toml").read_text()
    pages = re.findall(r'page "([^"]+)"', text.replace("\n# ", " "))
    headings = [page.read_text().partition("\n")[0] for page in (ROOT / "docs").rglob("*.md")]
    assert pages and all(sum(re.match(rf"# {page}(:|$)", line) is not None for line in headings) == 1 for page in pages)
    assert "docs/" not in text  # a wheel has no pages
    assert f"seiche schema {kind}" in text
    assert max(map(len, text.splitlines())) <= 120
    assert tomllib.loads(text)["solver"] == kind


def test_the_flow_of_a_new_case_becomes_steady(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "flow"]) == 0
    assert main(["run", "flow/case.toml"]) == 0
    text = capsys.readouterr().out
    (balance,) = re.findall(r"inflow - outflow (\S+) %$", text, re.MULTILINE)
    assert abs(float(balance)) < 0.1 and "not steady" not in text


def test_every_example_can_be_copied_with_its_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "--list"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in shown} == {path.name for path in (ROOT / "examples").iterdir()}
    assert all(len(line.split(maxsplit=2)) == 3 for line in shown)
    for example in new.examples():
        kind = "waves" if example.solver == "script" else example.solver
        files = new.new_case(kind, f"my/{example.name}", like=example.name)
        for path in files:
            original = example.folder / path.relative_to(f"my/{example.name}")
            assert path.read_bytes() == original.read_bytes()
    assert Path("my/gmy_cylinder/cylinder.gmy").is_file()
    assert main(["check", "my/gmy_cylinder/case.toml"]) == 0


def test_a_copy_has_neither_results_nor_large_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "examples" / "small"
    (folder / "out").mkdir(parents=True)
    (folder / "case.toml").write_text('# A tube: of water.\nsolver = "flow"\n')
    (folder / "out" / "summary.json").write_text("{}")
    (folder / "large.stl").write_bytes(bytes(new.MAX_FILE_BYTES + 1))
    (folder / "small.stl").write_bytes(bytes(10))
    monkeypatch.setattr(new, "examples_folder", lambda: tmp_path / "examples")
    assert new.list_examples() == ["small  flow        A tube"]
    assert [path.name for path in new.new_case("flow", like="small")] == ["case.toml", "small.stl"]


def test_nothing_that_exists_is_overwritten(capsys: pytest.CaptureFixture[str]) -> None:
    Path("flow").mkdir()
    Path("gone").symlink_to("nowhere")
    for name in ("flow", "gone"):
        assert main(["new", "flow", name]) == 2
        error = capsys.readouterr().err
        assert f"{name} already exists" in error and error.count("\n") == 1
    assert list(Path("flow").iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["new"], "the kind is missing"),
        (["new", "flwo"], "expected flow, blood, ultrasound, waves"),
        (["new", "flow", "--like", "tubee"], 'did you mean "tube"'),
        (["new", "blood", "--like", "tube"], "is a case of flow"),
        (["new", "flow", 'a"b'], "not a usable folder name"),
        (["new", "flow", ".."], "not a usable folder name"),
    ],
)
def test_errors_give_one_line_errors(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert list(Path().iterdir()) == []


def test_the_script_runs_the_case() -> None:
    assert main(["new", "flow", "--python"]) == 0
    done = subprocess.run([sys.executable, "flow/case.py"], capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    assert "flow.vtkhdf" in done.stdout


def test_examples_of_the_package_come_before_those_of_a_clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "src" / "seiche"
    package.mkdir(parents=True)
    monkeypatch.setattr(new, "_PACKAGE", package)
    with pytest.raises(CaseError, match="no examples"):
        new.examples_folder()
    for folder in (tmp_path / "examples", package / "examples"):
        folder.mkdir()
        assert new.examples_folder() == folder


def test_the_page_names_every_example() -> None:
    page = (ROOT / "docs" / "examples.md").read_text()
    assert all(f"`{example.name}`" in page for example in new.examples())


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("flow", ("sites across", "step = (tau - 0.5) / 3", "Mach number")),
        ("blood", ("162", "step = (tau - 0.5) / 3")),
        ("ultrasound", ("points per wavelength", "cfl", "wavelength is c / f")),
        ("waves", ("shortest wavelength", "largest stable one")),
    ],
)
def test_templates_advise_on_resolution_and_time_step(kind: str, words: tuple[str, ...]) -> None:
    comments = "".join(line.partition("#")[2] for line in (new.TEMPLATES / f"{kind}.toml").read_text().splitlines())
    assert all(word in comments for word in words)
