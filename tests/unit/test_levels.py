# SPDX-License-Identifier: BSD-3-Clause
"""Instruction sets of the CPU kernels: those of a processor, the selected one, and the message if there is none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from seiche.backend import cpu
from seiche.errors import BackendUnavailable
from seiche.native import levels
from seiche.native.levels import LEVELS, cpu_field, levels_of

V3 = LEVELS["x86-64-v2"] | LEVELS["x86-64-v3"]


def test_a_processor_has_the_levels_below_its_best():
    assert levels_of(V3 | LEVELS["x86-64-v4"]) == ["x86-64-v4", "x86-64-v3", "x86-64-v2", "portable"]
    assert levels_of(V3 - {"fma"}) == ["x86-64-v2", "portable"]
    assert levels_of([]) == ["portable"]


def test_the_build_is_for_the_level_that_is_taken_here():
    printed = subprocess.run([sys.executable, levels.__file__], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == levels_of(cpu_field("flags").split())[0]


@pytest.fixture
def processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this processor one of level 3."""
    monkeypatch.setattr(cpu, "cpu_field", lambda field: " ".join(V3))
    monkeypatch.delenv("SEICHE_CPU_LEVEL", raising=False)


@pytest.mark.usefixtures("processor")
def test_the_best_library_that_runs_here_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for level in ("x86-64-v4", "x86-64-v2"):
        (tmp_path / f"seiche_{level}.so").touch()
    assert cpu._selected_level(tmp_path) == "x86-64-v2"
    (tmp_path / "seiche_x86-64-v3.so").touch()
    assert cpu._selected_level(tmp_path) == "x86-64-v3"
    monkeypatch.setenv("SEICHE_CPU_LEVEL", "x86-64-v2")
    assert cpu._selected_level(tmp_path) == "x86-64-v2"


@pytest.mark.usefixtures("processor")
def test_a_processor_without_kernels_is_reported_how_to_get_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(BackendUnavailable, match=r"this processor \(x86-64-v3\) in .*, only for none: install Seiche"):
        cpu._selected_level(tmp_path)
    (tmp_path / "seiche_x86-64-v4.so").touch()
    with pytest.raises(BackendUnavailable, match=r"only for x86-64-v4: .* -C cmake.define.SEICHE_LEVELS=all$"):
        cpu._selected_level(tmp_path)
    monkeypatch.setenv("SEICHE_CPU_LEVEL", "x86-64-v2")
    with pytest.raises(BackendUnavailable, match=r"SEICHE_CPU_LEVEL=x86-64-v2 in .*SEICHE_LEVELS=x86-64-v2$"):
        cpu._selected_level(tmp_path)
