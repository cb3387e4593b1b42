# SPDX-License-Identifier: BSD-3-Clause
"""Machine files that cannot be used, and the message for each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seiche.errors import CaseError, FormatError
from seiche.machine.laws.file import parse_machine, read_machine, write_machine


def document() -> dict[str, Any]:
    return {
        "schema": "seiche-machine",
        "version": 1,
        "units": {"time": "s", "size": "B", "rate": "B/s"},
        "name": "test",
        "source": "a test",
        "paths": [
            {"path": "host", "locality": "on-node", "pieces": [{"begin": 1, "end": 8, "alpha": 1e-6, "beta": 0}]}
        ],
    }


def test_a_small_file_is_enough() -> None:
    assert parse_machine(json.dumps(document()), "m.json").curve("host", "on-node").seconds(5) == 1e-6


PIECE = ("paths", 0, "pieces", 0)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("schema",), "other", "m.json: schema: expected 'seiche-machine': not a machine file"),
        (
            ("version",),
            2,
            "m.json: version: 2 is newer than 1, the latest version supported; measure",
        ),
        (("version",), "1", "m.json: version: invalid version '1': expected 1"),
        (
            ("units",),
            {"time": "us", "size": "B", "rate": "B/s"},
            "m.json: units: {'time': 'us', .*: expected {'time': 's'",
        ),
        (
            (*PIECE, "alpha"),
            1.4,
            "m.json: paths.0.pieces.0.alpha: 1.4: Input should be less than 0.5 .times are in seconds",
        ),
        ((*PIECE, "beta"), -1e-9, "paths.0.pieces.0.beta: -1e-09: Input should be greater than or equal to 0"),
        ((*PIECE, "alpha"), "fast", "paths.0.pieces.0.alpha: 'fast': Input should be a valid number"),
        (("paths", 0, "path"), "pigeon", "paths.0.path: 'pigeon': Input should be 'host', 'host_exchange'"),
        (("paths", 0, "locality"), "near", "paths.0.locality: 'near': Input should be 'on-socket'"),
        (("paths", 0, "pieces"), [], "paths.0.pieces: List should have at least 1 item"),
        (("paths", 0, "sizes"), [1, 2], "paths.0: 2 sizes but 0 seconds"),
        (("paths", 0, "sizes"), [10**400], r"paths.0.sizes.0: .*less than 4611686018427387904"),
        ((*PIECE, "beta_interval"), [1e-9, float("nan")], "paths.0.pieces.0.beta_interval.1: nan: .*finite"),
        (("hardware",), {"sockets": 1e300}, r"hardware.sockets: 1e.300: expected a whole number from 1 to 1024"),
        (("hardware",), {"cores": 0}, "hardware.cores: 0: expected a whole number from 1 to 65536"),
        (("hardware",), {"ranks": "four"}, "hardware.ranks: four: expected a whole number"),
        (("hardware",), {"hosts": True}, "hardware.hosts: True: expected a whole number"),
        (("hardware",), {"gpus": 4}, "hardware.gpus: 4: expected a list of names"),
        (
            ("memory_intervals",),
            {"host": [1e9, 2e9]},
            "memory_intervals.host: 1e.09 to 2e.09 B/s must contain memory.host .missing",
        ),
        (
            ("memory",),
            {"host": 12.0},
            "memory.host: 12.0: Input should be greater than 100000.* bytes per second",
        ),
        (("color",), "blue", "color: 'blue': Extra inputs are not permitted"),
        (("name",), None, "name: Input should be a valid string"),
    ],
)
def test_errors_are_reported_with_its_location(place: tuple[Any, ...], value: Any, message: str) -> None:
    broken = document()
    at: Any = broken
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    with pytest.raises(FormatError, match=message):
        parse_machine(json.dumps(broken), "m.json")


def test_paths_and_pieces_must_be_distinct() -> None:
    twice = document()
    twice["paths"] *= 2
    with pytest.raises(FormatError, match=r"m\.json: file: path 'host' on-node occurs twice"):
        parse_machine(json.dumps(twice), "m.json")
    falling = document()
    falling["paths"][0]["pieces"] *= 2
    with pytest.raises(FormatError, match=r"pieces begin at \[1, 1\] B: expected ascending sizes"):
        parse_machine(json.dumps(falling), "m.json")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"schema": "seiche-machine"}', '"seiche-machine"'])
def test_other_texts_are_rejected(text: str) -> None:
    with pytest.raises(FormatError, match=r"m\.json: "):
        parse_machine(text, "m.json")


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_any_value_for_the_paths_is_rejected_or_read(value: Any) -> None:
    broken = {**document(), "paths": value}
    try:
        parse_machine(json.dumps(broken), "m.json")
    except FormatError as error:
        assert "\n" not in str(error)


def test_files_are_written_whole_and_read_back(tmp_path: Path) -> None:
    machine = read_machine("summit")
    path = tmp_path / "machine.json"
    write_machine(path, machine)
    assert read_machine(path) == machine
    assert list(tmp_path.iterdir()) == [path]
    path.write_bytes(b"\xff")
    with pytest.raises(FormatError, match="byte 0: not UTF-8 text"):
        read_machine(path)
    with pytest.raises(CaseError, match=r"nowhere\.json: does not exist; measure one with `seiche bench machine`"):
        read_machine(tmp_path / "nowhere.json")
    with pytest.raises(CaseError, match="cannot be read: Is a directory"):
        read_machine(tmp_path)
