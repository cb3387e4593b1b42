# SPDX-License-Identifier: BSD-3-Clause
"""Outputs that a run cannot write are refused before it begins, with one line each."""

from __future__ import annotations

import pytest

from case_files import setup_of, tube_tables
from seiche.case.limits import refuse_too_many_states
from seiche.errors import CaseError


def test_more_states_than_a_file_holds_are_refused() -> None:
    tables = tube_tables() | {"time": {"steps": 1_000_050}, "output": {"fields": [{"file": "u.vtkhdf", "every": 100}]}}
    refuse_too_many_states(setup_of(tables), first_step=200)
    with pytest.raises(
        CaseError, match=r'output\.fields\["u\.vtkhdf"\]\.every: gives 10001 states, a file holds at most'
    ):
        refuse_too_many_states(setup_of(tables | {"time": {"steps": 1_000_150}}))
