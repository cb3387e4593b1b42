# SPDX-License-Identifier: BSD-3-Clause
"""No bytes in place of a case file do more than raise a CaseError or FormatError of one line."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from case_files import SOURCE, changed, check_case, check_read_or_rejected, toml_of, tube_tables
from seiche.errors import CaseError

VALID = toml_of(tube_tables()).encode()
PATHS = [
    "geometry",
    "geometry.spacing",
    "geometry.shape",
    "geometry.shape.radius",
    "geometry.shape.axis",
    "fluid",
    "fluid.viscosity",
    "fluid.rheology",
    "lattice.tau",
    "lattice.layout",
    "time.steps",
    "time.steady",
    "iolet",
    "iolet.0",
    "iolet.0.velocity",
    "iolet.0.kind",
    "iolet.0.waveform",
    "iolet.0.table",
    "iolet.0.weights",
    "iolet.1.scheme",
    "iolet.0.harmonics",
    "iolet.1.name",
    "run",
    "run.precision",
    "output",
    "output.fields",
    "output.averages",
    "output.checkpoint",
]
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=30)
    | st.sampled_from(["1 mm", "tube", "1 s", "velocity", "womersley", 10**400, 1e308])
)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=8) | st.sampled_from(["kind", "file", "every", "preset"]), inner, max_size=4)
    ),
    max_leaves=12,
)


def read(content: bytes) -> None:
    check_read_or_rejected(content, "case.toml", 1000)


@given(st.binary(max_size=300))
def test_any_bytes(content: bytes) -> None:
    read(content)


@given(st.integers(0, len(VALID)))
def test_a_truncated_case(length: int) -> None:
    read(VALID[:length])


@given(st.integers(0, 8 * len(VALID) - 1))
def test_a_flipped_bit(bit: int) -> None:
    content = bytearray(VALID)
    content[bit // 8] ^= 1 << bit % 8
    read(bytes(content))


@settings(max_examples=300)
@given(st.sampled_from(PATHS), values)
def test_any_value_instead_of_another(path: str, value: Any) -> None:
    tables = changed(tube_tables(), path.rpartition(".")[0] or path, {}) if "." not in path else tube_tables()
    *parents, last = path.split(".")
    table: Any = tables
    for name in parents:
        table = table[int(name)] if isinstance(table, list) else table.setdefault(name, {})
    table[int(last) if isinstance(table, list) else last] = value
    try:
        check_case(tables, SOURCE)
    except CaseError as error:
        assert str(error).startswith(f"{SOURCE}: ")
        assert "\n" not in str(error)


def test_a_key_that_cannot_be_printed_keeps_its_message_on_one_line() -> None:
    with pytest.raises(CaseError) as caught:
        check_case(changed(tube_tables(), "geometry", {"a\nb\x85": 1, "spacing": "1 mm"}), SOURCE)
    assert str(caught.value).startswith(f"{SOURCE}: geometry.a?b?: unknown key")
