# SPDX-License-Identifier: BSD-3-Clause
"""Trees of a case file beyond its absorbing sides: what returns from them, and which results show the box alone."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import numpy.typing as npt
import pytest

from seiche.case.loading import load, prepare
from seiche.errors import CaseError
from waves_cases import BLOCK, FORCE, SOIL

WATER = """
solver = "waves"
[mesh]
lower = ["0 m", "0 m"]
upper = ["{width} m", "60 m"]
trees = [{trees}, 6]
nodes = 5
size = "10 m"
[[material]]
name = "water"
density = "1000 kg/m^3"
cp = "1500 m/s"
[boundary]
lower = ["rigid", "rigid"]
upper = ["absorbing", "free"]
{layer}
[[source]]
position = ["2 m", "31 m"]
volume = "1 m^3"
time = {{ kind = "ricker", frequency = "30 Hz" }}
[[receiver]]
name = "A"
position = ["35 m", "11 m"]
[time]
duration = "200 ms"
step = "0.2 ms"
[output.peak]
picture = "peak.png"
[[output.snapshots]]
file = "waves.h5"
every = "100 ms"
points = 20
"""


def case_of(folder: Path, width: int = 40, layer: str = "") -> Path:
    """Write a channel with a free surface, open at one end."""
    folder.mkdir(exist_ok=True)
    (folder / "case.toml").write_text(WATER.format(width=width, trees=width // 10, layer=layer))
    return folder / "case.toml"


def seismogram(path: Path) -> npt.NDArray[np.float64]:
    """Run a case and return the samples of its receiver."""
    with load(path, output=path.parent / "out") as simulation:
        simulation.run(visible=False)
    with h5py.File(path.parent / "out/receivers.h5") as file:
        return np.asarray(file["samples"][0], np.float64)


def test_less_returns_from_a_margin_than_from_a_thin_layer(tmp_path: Path) -> None:
    """The channel of 360 m returns nothing within 200 ms; half a wavelength is 25 m."""
    full = seismogram(case_of(tmp_path / "whole", width=360))
    error = {
        name: float(np.linalg.norm(seismogram(case_of(tmp_path / name, layer=layer)) - full) / np.linalg.norm(full))
        for name, layer in (("thin", 'sponge = "5 m"'), ("margin", "margin = { trees = 7, growth = 1.2 }"))
    }
    assert error["thin"] > 0.1
    assert error["margin"] < 0.25 * error["thin"]


def test_a_margin_lies_beyond_absorbing_sides_and_grows(tmp_path: Path) -> None:
    setup = prepare(case_of(tmp_path, layer="margin = { trees = 3, growth = 1.5 }"))
    widths = [*(10.0,) * 4, 15.0, 22.5, 33.75]
    assert setup.mesh.trees.widths[0].tolist() == widths
    assert setup.mesh.trees.widths[1].tolist() == [10.0] * 6
    assert setup.mesh.extent[0].tolist() == [0.0, 0.0]
    assert setup.mesh.total == 7 * 6  # elements of the margin are as wide as its trees
    assert setup.sponge == pytest.approx(sum(widths[4:]))
    assert setup.box[1].tolist() == [40.0, 60.0]
    thin = prepare(case_of(tmp_path, layer='margin = { trees = 3 }\nsponge = "30 m"'))
    assert thin.sponge == 30.0
    both = BLOCK + 'size = "5 m"\ntrees = [4, 4, 2]\n' + SOIL + FORCE + "[time]\nsteps = 2\n"
    (tmp_path / "block.toml").write_text(both.replace("[boundary]", "[boundary]\nmargin = { trees = 1 }"))
    block = prepare(tmp_path / "block.toml")
    assert block.mesh.extent[0].tolist() == [-6.0, -6.0, -6.0]
    assert block.mesh.extent[1].tolist() == [26.0, 26.0, 10.0]


def test_elements_follow_wavelengths_in_the_box_and_trees_in_the_margin(tmp_path: Path) -> None:
    text = BLOCK + 'trees = [2, 2, 1]\nfrequency = "150 Hz"\n' + SOIL + FORCE + "[time]\nsteps = 2\n"
    (tmp_path / "case.toml").write_text(text.replace("[boundary]", "[boundary]\nmargin = { trees = 2, growth = 2.0 }"))
    setup = prepare(tmp_path / "case.toml")
    center = setup.mesh.lower + setup.mesh.sizes / 2
    inner = ((center > 0) & (center < [20, 20, 10])).all(1)
    (side,) = set(setup.mesh.sizes[inner].reshape(-1).tolist())
    assert side < 10.0
    assert setup.mesh.sizes.max() == 4 * side
    assert setup.resolution is not None
    assert setup.resolution[0] == pytest.approx(3 * 800.0 / setup.resolution[2] / side)


def test_maps_snapshots_and_grids_show_the_box_alone(tmp_path: Path) -> None:
    path = case_of(tmp_path, layer="margin = { trees = 2 }")
    with load(
        path, overrides=["time.duration=20 ms", "output.snapshots.0.every=10 ms"], output=tmp_path / "out"
    ) as run:
        run.run(visible=False)
        grid = run.result(["pressure"], shape=(5, 7))
    with h5py.File(tmp_path / "out/peak.h5") as file:
        x = np.asarray(file["position"])[:, 0]
    assert (x.min(), x.max()) == (0.0, 40.0)
    with h5py.File(tmp_path / "out/waves.h5") as file:
        assert list(file.attrs["upper"]) == [40.0, 60.0]
    assert grid.coordinates["x"].values[[0, -1]].tolist() == [0.0, 40.0]


def test_a_margin_needs_an_absorbing_side(tmp_path: Path) -> None:
    path = case_of(tmp_path, layer="margin = { trees = 2 }")
    with pytest.raises(CaseError, match=r"boundary.margin: needs an absorbing side that is not periodic"):
        prepare(path, ['boundary.upper=["rigid", "free"]'])
    with pytest.raises(CaseError, match=r"boundary.margin.growth"):
        prepare(path, ["boundary.margin.growth=3.0"])


def test_what_is_outside_the_box_is_rejected_and_the_box_is_outside_the_layer(tmp_path: Path) -> None:
    path = case_of(tmp_path, layer="margin = { trees = 2 }")
    with pytest.raises(CaseError, match="outside the mesh"):
        prepare(path, ['receiver.0.position=["45 m", "11 m"]'])
    assert not any("damps" in note for note in prepare(path, ['receiver.0.position=["40 m", "11 m"]']).notes)
    layer = ['boundary.sponge="40 m"']
    assert any("damps" in note for note in prepare(path, layer).notes)
