# SPDX-License-Identifier: BSD-3-Clause
"""Tables, weights and circuits of iolets: a wrong file or key gets one line that names it; no bytes crash a reader."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from case_files import changed, toml_of, tube_tables
from seiche.case.loading import prepare
from seiche.errors import CaseError, FormatError, SeicheError
from seiche.io.formats import columns
from seiche.io.formats.columns import read_time_table, read_weights

INLET = {"name": "inlet", "kind": "velocity"}
OUTLET = {"name": "outlet", "kind": "pressure"}
CIRCUIT = {"name": "outlet", "kind": "windkessel", "resistance": "1 mmHg s/mL", "compliance": "1 mL/mmHg"}


@pytest.mark.parametrize(
    ("reader", "text", "message"),
    [
        (read_time_table, "", "whole file: no row; expected two columns, time and value"),
        (read_time_table, "# 1 2\n", "whole file: no row; expected two columns, time and value"),
        (read_time_table, "0 1\n1\n", "line 2: 1 columns; expected two, time and value"),
        (read_time_table, "0 1 2\n", "line 1: 3 columns; expected two, time and value"),
        (read_time_table, "0 1\n0 2\n", "line 2: time 0 is not after 0; times must ascend"),
        (read_time_table, "0 nan\n", 'line 1: "nan" is not a number below 1e+30'),
        (read_time_table, "0 1_0\n", 'line 1: "1_0" is not a number below 1e+30'),
        (read_time_table, "0 1e31\n", 'line 1: "1e31" is not a number below 1e+30'),
        (read_time_table, "0 1e99999\n", 'line 1: "1e99999" is not a number below 1e+30'),
        (read_time_table, "0 \u00b5\n", "line 1: not ASCII text"),
        (read_time_table, "0 1\n" + 1001 * "x", "line 2: longer than 1000 characters"),
        (read_time_table, "0 \x01\n", 'line 1: "?" is not a number below 1e+30'),
        (read_weights, "", "whole file: no row; expected four columns, x y z weight"),
        (read_weights, "0 1 2\n", "line 1: 3 columns; expected four, x y z weight"),
        (read_weights, "0 1 2.5 1\n", 'line 1: "2.5" is not a whole number, the coordinate of a site'),
        (read_weights, "0 1 9999999999 1\n", 'line 1: "9999999999" is not a whole number, the coordinate of a site'),
        (read_weights, "0 1 2 1\n0 1 2 3\n", "line 2: the site 0 1 2 appears twice"),
        (read_weights, "0 1 2 x\n", 'line 1: "x" is not a number below 1e+30'),
    ],
)
def test_a_broken_file_is_named_by_line_and_reason(
    tmp_path: Path, reader: Callable[[Path], Any], text: str, message: str
):
    path = tmp_path / "columns.txt"
    path.write_text(text)
    with pytest.raises(FormatError) as caught:
        reader(path)
    assert str(caught.value) == f"{path}: {message}"


def test_too_much_is_rejected_before_it_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "columns.txt"
    path.write_text("0 1\n1 2\n2 3\n")
    monkeypatch.setattr(columns, "MAX_ROWS", 2)
    with pytest.raises(FormatError, match=r"line 3: more than 2 rows$"):
        read_time_table(path)
    monkeypatch.setattr(columns, "MAX_BYTES", 1 << 20)
    path.write_bytes(b"0 1\n" * (1 << 18) + b"#")
    with pytest.raises(FormatError, match=r"byte 1048576: a table has at most 1 MiB$"):
        read_time_table(path)


@given(st.binary(max_size=200) | st.text(st.sampled_from("0123456789.eE+- \n\t#nan"), max_size=80).map(str.encode))
def test_any_bytes_are_read_or_rejected_in_one_line(content: bytes):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "columns.txt"
        path.write_bytes(content)
        for reader in (read_time_table, read_weights):
            try:
                reader(path)
            except FormatError as error:
                assert "\n" not in str(error)
                assert str(error).startswith(f"{path}: ")


FILES = {
    "rise.txt": "0 1\n1 2\n",
    "one.txt": "0 1\n",
    "bad.txt": "0\n",
    "one_site.txt": "0 0 0 1\n",
    "nothing.txt": "".join(f"0 {y} {z} 0\n" for y in range(8) for z in range(8)),
}


@pytest.mark.parametrize(
    ("place", "table", "message"),
    [
        (1, OUTLET, '{case}: iolet["outlet"]: give exactly one of pressure, table; none is given'),
        (
            1,
            OUTLET | {"pressure": "1 Pa", "table": "rise.txt"},
            '{case}: iolet["outlet"]: give exactly one of pressure, table; pressure and table are given',
        ),
        (
            1,
            OUTLET | {"pressure": "1 Pa", "repeat": True},
            '{case}: iolet["outlet"]: repeat is only allowed with table',
        ),
        (
            0,
            {"name": "inlet", "kind": "velocity", "velocity": "1 mm/s", "table_scale": 0.5},
            '{case}: iolet["inlet"]: table_scale is only allowed with table',
        ),
        (
            1,
            OUTLET | {"table": "rise.txt", "period": "1 s"},
            '{case}: iolet["outlet"]: period is not allowed with table, which defines the values in time',
        ),
        (
            1,
            OUTLET | {"table": "gone.txt"},
            '{case}: iolet["outlet"].table: cannot read {folder}/gone.txt: No such file or directory',
        ),
        (1, OUTLET | {"table": "bad.txt"}, "{folder}/bad.txt: line 1: 1 columns; expected two, time and value"),
        (
            1,
            OUTLET | {"table": "rise.txt", "repeat": True},
            "{folder}/rise.txt: last row: 2 differs from the first value 1; a repeated table must end with its first "
            "value",
        ),
        (
            1,
            OUTLET | {"table": "one.txt", "repeat": True},
            "{folder}/one.txt: whole file: one row; a repeated table needs at least two",
        ),
        (
            1,
            OUTLET | {"pressure": "1 Pa", "scheme": "nach"},
            '{case}: iolet["outlet"].scheme: "nach" is not known; expected "nash", "anti-bounce-back" or "plane"; '
            'did you mean "nash"?',
        ),
        (
            0,
            INLET | {"table": "rise.txt", "profile": "womersley"},
            '{case}: iolet["inlet"]: table is not allowed with profile = "womersley"; give harmonics or a waveform',
        ),
        (
            0,
            INLET | {"velocity": "1 mm/s", "profile": "computed", "weights": "one_site.txt"},
            '{case}: iolet["inlet"]: weights are not allowed with profile = "computed"; give one of the two',
        ),
        (
            0,
            INLET | {"velocity": "1 mm/s", "weights": "one_site.txt"},
            "{case}: iolet 'inlet': its profile has no value for 52 of its sites, such as [0, 0, 2]",
        ),
        (
            0,
            INLET | {"flow_rate": "1 mL/s", "weights": "nothing.txt"},
            '{case}: iolet["inlet"].weights: the weights give no inflow; use positive weights',
        ),
        (
            1,
            CIRCUIT | {"resistance": "1 Pa"},
            '{case}: iolet["outlet"].resistance: "1 Pa" is a pressure; expected a resistance such as "1.2 mmHg s/mL"',
        ),
        (
            1,
            CIRCUIT | {"resistance": "0 Pa s/m^3"},
            '{case}: iolet["outlet"].resistance: "0 Pa s/m^3" is out of range; expected > 0',
        ),
        (
            1,
            CIRCUIT | {"proximal_resistance": "-1 Pa s/m^3"},
            '{case}: iolet["outlet"].proximal_resistance: "-1 Pa s/m^3" is out of range; expected >= 0',
        ),
        (
            1,
            CIRCUIT | {"compliance": "1 m/s"},
            '{case}: iolet["outlet"].compliance: "1 m/s" is a velocity; expected a compliance such as "1.5 mL/mmHg"',
        ),
    ],
)
def test_a_wrong_iolet_gives_a_one_line_error(tmp_path: Path, place: int, table: dict[str, Any], message: str):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    path = tmp_path / "case.toml"
    path.write_text(toml_of(changed(tube_tables(), f"iolet.{place}", table)))
    with pytest.raises((CaseError, FormatError)) as caught:
        prepare(path)
    expected = message.format(case=path, folder=tmp_path)
    assert str(caught.value) == expected
    assert isinstance(caught.value, SeicheError)
