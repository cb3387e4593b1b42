# SPDX-License-Identifier: BSD-3-Clause
"""Overrides, and files that are not case files: one line names each."""

from __future__ import annotations

from pathlib import Path

import pytest

from case_files import changed, read_case, toml_of, tube_tables
from seiche.cli import main
from seiche.errors import CaseError, FormatError


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("foo", 'override "foo": expected key=value, such as "run.device=cuda"'),
        (
            "solver=waves",
            'override "solver=waves": the other keys belong to solver "flow"; write a case file for "waves"',
        ),
        ("title.x=1", 'override "title.x=1": "title" is not a table'),
        ("iolet.exit.kind=1", 'override "iolet.exit.kind=1": no entry "exit" in the list'),
    ],
)
def test_a_wrong_override_is_named(tmp_path: Path, override: str, message: str) -> None:
    path = tmp_path / "case.toml"
    path.write_text(toml_of(changed(tube_tables(), "title", "x")))
    with pytest.raises(CaseError) as caught:
        read_case(path, [override])
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a = [", "end of document: not TOML: Invalid value"),
        (b"a = 1\na = = 2", "line 2, column 5: not TOML: Invalid value"),
        (b"\xff", "byte 0: not UTF-8 text"),
        (b"a = " + b"[" * 5000, "whole file: tables or lists are nested too deeply"),
        (b"#" * (4 * 2**20 + 1), "byte 4194304: exceeds the limit of 4 MiB of a case file"),
    ],
)
def test_a_file_that_is_not_toml_is_a_format_error(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "case.toml"
    path.write_bytes(content)
    with pytest.raises(FormatError) as caught:
        read_case(path)
    assert str(caught.value).startswith(f"{path}: {message}")


def test_an_absent_case_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match=r"nope\.toml: cannot read the case file: No such file or directory"):
        read_case(tmp_path / "nope.toml")


def test_folders_and_scripts_instead_of_a_case_file_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case, script = tmp_path / "case.toml", tmp_path / "case.py"
    case.write_text(toml_of(tube_tables()))
    script.write_text("import seiche\n")
    for path, kind in ((tmp_path, "a folder"), (script, "a Python script")):
        for command in ("run", "check"):
            assert main([command, str(path)]) == 2
            expected = f"seiche: error: {path}: is {kind}, not a case file; did you mean {case}?\n"
            assert capsys.readouterr().err == expected
    (tmp_path / "empty").mkdir()
    assert main(["run", str(tmp_path / "empty")]) == 2
    assert capsys.readouterr().err.endswith("empty: is a folder, not a case file\n")
    assert main(["report", str(case)]) == 2
    error = capsys.readouterr().err
    assert "not a summary of a run" in error and "expected the output folder of a run, or its summary.json" in error
    assert error.count("\n") == 1
