# SPDX-License-Identifier: BSD-3-Clause
"""Errors in the tables of sources that are added from outside the package, as in docs/howto/add-a-source.md."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from page_blocks import write_files
from seiche.case.loading import prepare
from seiche.case.ultrasound.sources import SOURCES
from seiche.case.waves.pulses import PULSES
from seiche.errors import CaseError

KINDS = {"chirp": PULSES, "corners": SOURCES}


@pytest.fixture(autouse=True)
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Write the files of the page to the working folder, import its modules, and forget them afterwards."""
    write_files("docs/howto/add-a-source.md", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in KINDS:
        importlib.import_module(name)
    yield
    for name, tables in KINDS.items():
        del tables[name], sys.modules[name]


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("chirp", "source.0.time.last=3 m", 'source[0].time.last: "3 m" is a length; expected a rate such as "72 bpm"'),
        ("chirp", "source.0.time.last=-3 Hz", 'source[0].time.last: "-3 Hz" is out of range; expected > 0'),
        ("chirp", "source.0.time.lest=3 Hz", 'time.lest: unknown key; did you mean "last"?'),
        ("chirp", 'source.0.time={kind="chirp"}', "source[0].time.first: is missing; expected frequency at the start"),
        (
            "chirp",
            "source.0.time.kind=chirb",
            'source[0].time.kind: "chirb" is not known; expected "ricker", "gaussian"',
        ),
        ("chirp", "source.0.time.kind=chirb", 'did you mean "chirp"?'),
        ("chirp", "source.0.time=3", "source[0].time: 3 is not a table"),
        ("chirp", "source.0.time={}", "source[0].time: kind is missing; expected a table with the key kind"),
        ("corners", "source.0.positions=[]", "source[0].positions: has 0 entries; expected at least 2"),
        (
            "corners",
            'source.0.positions=[["0 mm"], ["1 mm"]]',
            "source[0].positions: has 1 coordinates, the grid has 2 axes",
        ),
        ("corners", "source.0.kind=3", 'source[0].kind: 3 is not known; expected "arc", "bowl", "disc"'),
        ("corners", "source.0.frequency=3 m", 'source[0].frequency: "3 m" is a length; expected a frequency'),
        ("corners", "grid.shape=[24, 20, 20]", "source[0].positions: has 2 coordinates, the grid has 3 axes"),
    ],
)
def test_an_error_names_key_and_value(name: str, change: str, message: str) -> None:
    prepare(f"{name}.toml")
    with pytest.raises(CaseError) as error:
        prepare(f"{name}.toml", [change])
    assert message in str(error.value) and "\n" not in str(error.value)


def test_a_file_of_an_added_pulse_is_an_input(tmp_path: Path) -> None:
    (tmp_path / "pulse.txt").write_text("0 0\n1 1\n2 0\n")
    change = 'source.0.time={kind="file", file="pulse.txt"}'
    assert [path.name for path in prepare("chirp.toml", [change]).inputs] == ["chirp.toml", "pulse.txt"]
    with pytest.raises(CaseError, match=r"output\.summary: would overwrite .*pulse\.txt, which the case reads"):
        prepare("chirp.toml", [change, "output.folder=.", "output.summary=pulse.txt"])
    with pytest.raises(CaseError, match=r"source\[0\]\.time\.file: 5 is not a string"):
        prepare("chirp.toml", ['source.0.time={kind="file", file=5}'])
