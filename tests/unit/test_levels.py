# SPDX-License-Identifier: BSD-3-Clause
"""Instruction sets of the CPU kernels: those of a processor, the selected one, and the message if there is none."""

from __future__ import annotations

import ctypes
import functools
import subprocess
import sys
from pathlib import Path

import pytest

from seiche.backend import cpu
from seiche.backend.host_compiler import KERNELS, find_compiler, flags_of
from seiche.errors import BackendUnavailable
from seiche.native import levels
from seiche.native.levels import LEVELS, cpu_field, levels_of
from seiche.native.make_table import headers_hash

#: Sources of the table, which an installation does not have.
NATIVE = Path(__file__).parents[2] / "src" / "seiche" / "native"
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
    assert cpu._selected_levels(tmp_path) == ["x86-64-v2"]
    (tmp_path / "seiche_x86-64-v3.so").touch()
    assert cpu._selected_levels(tmp_path) == ["x86-64-v3", "x86-64-v2"]
    monkeypatch.setenv("SEICHE_CPU_LEVEL", "x86-64-v2")
    assert cpu._selected_levels(tmp_path) == ["x86-64-v2"]


TABLE = """#include "row.hpp"
namespace seiche {{
const Row rows[] = {{{rows}}};
const Row* const tables[] = {{rows}};
const int size = {size};
const int* const table_sizes[] = {{&size}};
const int table_count = 1;
const char* const headers = "launch.hpp flow/iolet.hpp";
const char* const headers_hash = "{digest}";
}}
#include "native.cpp"
"""


def build(folder: Path, level: str, kernels: list[str], digest: str | None = None) -> None:
    """Build a table with these kernels."""
    digest = digest or headers_hash(KERNELS, ["launch.hpp", "flow/iolet.hpp"])
    rows = ", ".join(f"SEICHE_ROW({kernel})" for kernel in kernels) or "Row{}"
    source = '#include "flow/iolet.hpp"\n' + TABLE.format(rows=rows, size=len(kernels), digest=digest)
    command = [*find_compiler(), *flags_of(level), f"-I{KERNELS}", f"-I{NATIVE}", "-x", "c++", "-"]
    target = folder / "native" / f"seiche_{level}.so"
    subprocess.run([*command, "-o", str(target)], input=source, text=True, check=True)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of an empty installation for which this process looks up kernels."""
    (tmp_path / "native").mkdir()
    (tmp_path / "kernels").symlink_to(KERNELS)
    monkeypatch.setattr(cpu, "_NATIVE", tmp_path / "native")
    monkeypatch.setattr(cpu, "_built_row", functools.cache(cpu._built_row.__wrapped__))
    return tmp_path


@pytest.mark.usefixtures("processor")
def test_a_kernel_is_taken_from_the_best_table_that_has_it(folder: Path):
    low = "NashPressure<ListAAEven<D3Q19,float,float>,UniformForce<float>>"
    build(folder, "x86-64-v2", ["Tick", low])
    build(folder, "x86-64-v3", ["Tick"])
    rows = [cpu._built_row(kernel) for kernel in ("Tick", low, "Absent")]
    assert rows[2] is None and [row.contents.type.decode() for row in rows[:2]] == ["Tick", low]
    tables = [cpu._library(folder / "native" / f"seiche_x86-64-v{level}.so") for level in (3, 2)]
    found = [ctypes.addressof(table.seiche_find(b"Tick").contents) for table in tables]
    assert ctypes.addressof(rows[0].contents) == found[0] != found[1]


@pytest.mark.usefixtures("processor")
def test_a_table_of_other_headers_is_refused(folder: Path):
    build(folder, "x86-64-v3", ["Tick"], digest="0" * 64)
    with pytest.raises(BackendUnavailable, match="built from other kernel headers"):
        cpu._built_row("Tick")


@pytest.mark.usefixtures("processor")
def test_a_processor_without_kernels_is_reported_how_to_get_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(BackendUnavailable, match=r"this processor \(x86-64-v3\) in .*, only for none: install Seiche"):
        cpu._selected_levels(tmp_path)
    (tmp_path / "seiche_x86-64-v4.so").touch()
    with pytest.raises(BackendUnavailable, match=r"only for x86-64-v4: .* -C cmake.define.SEICHE_LEVELS=all$"):
        cpu._selected_levels(tmp_path)
    monkeypatch.setenv("SEICHE_CPU_LEVEL", "x86-64-v2")
    with pytest.raises(BackendUnavailable, match=r"SEICHE_CPU_LEVEL=x86-64-v2 in .*SEICHE_LEVELS=x86-64-v2$"):
        cpu._selected_levels(tmp_path)
