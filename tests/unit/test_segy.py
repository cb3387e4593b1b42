# SPDX-License-Identifier: BSD-3-Clause
"""SEG-Y files as models of the ground: numbers, places, and what is rejected."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from segy_files import write_segy
from seiche.case.loading import prepare
from seiche.case.waves.media import read_segy_grid
from seiche.case.waves.schema import SegyTable
from seiche.errors import CaseError, FormatError
from seiche.io.formats.segy import ibm_numbers, read_segy
from seiche.waves.basis import Basis
from seiche.waves.boxes import nodes_of


def test_numbers_of_ibm_are_those_of_the_textbook() -> None:
    words = np.array([0xC276A000, 0x42640000, 0x00000000, 0x41100000], np.uint32)
    assert ibm_numbers(words).tolist() == [-118.625, 100.0, 0.0, 1.0]


@pytest.mark.parametrize("kind", [1, 5])
def test_a_model_in_segy_is_a_grid_with_heights(kind: int, tmp_path: Path) -> None:
    """Traces in any order; the first sample is the top one."""
    x, depth = np.array([30.0, 10.0, 20.5]), np.arange(4)
    places = np.stack([x, 0 * x], 1)
    for name, factor in (("rho", 100.0), ("cp", 200.0), ("cs", 90.0)):
        write_segy(tmp_path / f"{name}.sgy", places, factor * (x[:, None] + depth), kind)
    table = SegyTable(density="rho.sgy", cp="cp.sgy", cs="cs.sgy", top="5 m", step="2 m")
    grid = read_segy_grid(table, 2, tmp_path)
    assert grid.axes[0].tolist() == [10.0, 20.5, 30.0] and grid.axes[1].tolist() == [-1.0, 1.0, 3.0, 5.0]
    at = grid.at(np.array([[10.0, 5.0], [30.0, -1.0], [20.5, 2.0]]))
    assert at[0] == pytest.approx([1000.0, 3300.0, 2200.0])
    assert at[2] == pytest.approx([900.0, 2970.0, 1980.0])
    fluid = read_segy_grid(table.model_copy(update={"cs": None}), 2, tmp_path)
    assert not fluid.values[2].any()


def test_a_model_of_three_axes_needs_a_whole_grid(tmp_path: Path) -> None:
    places = np.array([[x, y] for y in (0.0, 5.0) for x in (0.0, 4.0, 8.0)])
    values = places[:, :1] + 10 * places[:, 1:] + np.arange(1, 4)
    write_segy(tmp_path / "v.sgy", places, values)
    table = SegyTable(density="v.sgy", cp="v.sgy", top="0 m", step="1 m")
    grid = read_segy_grid(table, 3, tmp_path)
    assert grid.values.shape == (3, 3, 2, 3)
    assert grid.at(np.array([[4.0, 5.0, -2.0]]))[0] == pytest.approx([57.0])
    write_segy(tmp_path / "v.sgy", places[:-1], values[:-1])
    with pytest.raises(FormatError, match="the 5 traces do not form a grid of 2 axes"):
        read_segy_grid(table, 3, tmp_path)


def test_files_that_are_not_whole_are_rejected(tmp_path: Path) -> None:
    places, values = np.array([[0.0, 0.0], [1.0, 0.0]]), np.ones((2, 3))
    path = write_segy(tmp_path / "v.sgy", places, values)
    data = path.read_bytes()
    for content, message in (
        (data[:100], "has 100 bytes, fewer than the 3600 of the headers of SEG-Y"),
        (data[:-4], "500 bytes of traces are not a multiple of 3 samples"),
        (
            data[:3224] + b"\0\x03" + data[3226:],
            r"byte 3225: format of samples 3: only 1 \(IBM\) and 5 \(IEEE\) are read",
        ),
        (data[:3714] + b"\0\x09" + data[3716:], "trace 1: does not have the 3 samples of the file header"),
    ):
        path.write_bytes(content)
        with pytest.raises(FormatError, match=message):
            read_segy(path)
    with pytest.raises(CaseError, match=r"none\.sgy: no such file"):
        read_segy(tmp_path / "none.sgy")
    write_segy(path, places, values * np.nan)
    table = SegyTable(density="v.sgy", cp="v.sgy", top="0 m", step="1 m")
    with pytest.raises(FormatError, match="trace 1: is not finite"):
        read_segy_grid(table, 2, tmp_path)
    write_segy(path, places, values)
    write_segy(tmp_path / "w.sgy", places + 1, values)
    with pytest.raises(FormatError, match=r"differ in positions or samples from those of v\.sgy"):
        read_segy_grid(table.model_copy(update={"cp": "w.sgy"}), 2, tmp_path)


def test_a_case_reads_its_media_from_segy(tmp_path: Path) -> None:
    x, depth = np.array([0.0, 20.0, 40.0]), np.arange(4)
    for name, low, slope in (("rho", 2000.0, 10.0), ("cp", 2000.0, 200.0), ("cs", 800.0, 100.0)):
        write_segy(tmp_path / f"{name}.sgy", np.stack([x, 0 * x], 1), low + slope * depth + 0 * x[:, None], 1)
    (tmp_path / "case.toml").write_text(
        """solver = "waves"
[mesh]
lower = ["0 m", "0 m"]
upper = ["40 m", "30 m"]
trees = [4, 3]
size = "10 m"
[[material]]
name = "ground"
segy = { density = "rho.sgy", cp = "cp.sgy", cs = "cs.sgy", top = "30 m", step = "10 m" }
[time]
steps = 1
"""
    )
    setup = prepare(tmp_path / "case.toml")
    basis = Basis(round(setup.material.cs.shape[1] ** 0.5))
    heights = nodes_of(setup.mesh, basis, np.arange(setup.mesh.count))[..., 1]
    assert setup.material.cs == pytest.approx(800 + 100 * (30 - heights) / 10, rel=1e-6)
    assert setup.material.density == pytest.approx(2000 + 30 - heights, rel=1e-6)
    text = (tmp_path / "case.toml").read_text()
    (tmp_path / "case.toml").write_text(text.replace("segy =", 'density = "1 kg/m^3"\nsegy ='))
    with pytest.raises(CaseError, match="exactly one of density, file, segy"):
        prepare(tmp_path / "case.toml")
