# SPDX-License-Identifier: BSD-3-Clause
"""A mesh of waves that is sampled instead of made, and checks of cases of 10^9 nodes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_check_size import rows_of_check

from page_blocks import ROOT
from seiche.backend.cpu import CpuBackend
from seiche.case.load import read_source
from seiche.case.waves import elements
from seiche.case.waves import setup as waves
from seiche.case.waves.estimates import wave_estimates
from seiche.cli import main
from seiche.waves import Brick, Mesh, SizeField
from seiche.waves.sampled_mesh import SampledMesh
from seiche.waves.sizes import Generator
from waves_cases import BLOCK, FORCE, SOIL

BASIN = ROOT / "examples/basin/case.toml"
LAYERS = (
    BLOCK
    + 'size = "2.5 m"\nperiodic = [true, true, false]\n'
    + SOIL
    + """
[[material]]
name = "mud"
density = "1500 kg/m^3"
cp = "900 m/s"
cs = "200 m/s"
where = { kind = "layer", bottom = "6 m", top = "9 m" }
"""
    + FORCE
    + "[time]\nsteps = 2\n"
)


def cases(tmp_path: Path) -> dict[str, Path]:
    """Return case files with graded and with equal elements, in three and in two dimensions."""
    layers = tmp_path / "layers.toml"
    layers.write_text(LAYERS)
    return {"basin": BASIN, "layers": layers}


@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        ("basin", []),
        ("basin", ["mesh.frequency=4 Hz", 'mesh.flux="central"', 'mesh.material="element"']),
        ("basin", ["mesh.frequency=1 Hz", "mesh.nodes=8", 'mesh.material="node"']),
        ("layers", []),
    ],
)
def test_a_sampled_mesh_has_the_numbers_of_the_mesh(
    name: str, overrides: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = read_source(cases(tmp_path)[name], overrides)
    made = waves.prepare(source)
    monkeypatch.setattr(elements, "MAX_GENERATED_NODES", 0)
    sample = waves.prepare(source, sampled=True)
    assert isinstance(sample.mesh, SampledMesh)
    assert not isinstance(made.mesh, SampledMesh)
    assert sample.mesh.total == pytest.approx(made.mesh.total, rel=0.03)
    assert sample.mesh.shares.sum() == pytest.approx(made.mesh.total, rel=0.1)
    assert sample.limit == pytest.approx(made.limit, rel=1e-9)
    assert sample.steps == made.steps
    for sizes in ("min", "max"):
        assert getattr(sample.mesh.sizes, sizes)() == getattr(made.mesh.sizes, sizes)()
    for field in ("density", "cp", "cs"):
        extremes = [(values.min(), values.max()) for values in (getattr(s.material, field) for s in (sample, made))]
        assert extremes[0] == pytest.approx(extremes[1], rel=0.03)
    assert sample.resolution == pytest.approx(made.resolution, rel=0.01)
    assert sample.deltas == made.deltas
    np.testing.assert_array_equal(sample.element_sizes, made.element_sizes)
    cut = made.cut / made.mesh.total
    deviation = (cut / (sample.mesh.shares > 0).sum()) ** 0.5  # of the share of cut elements in a random sample
    assert sample.cut / sample.mesh.total == pytest.approx(cut, abs=2 * deviation)
    assert [e.name for e in wave_estimates(sample)] == [e.name for e in wave_estimates(made)]


def test_leaves_in_boxes_are_those_of_the_whole_forest() -> None:
    sizes = SizeField([[-np.inf] * 3, [0.5, 0.2, 0.0]], [[np.inf] * 3, [0.9, 0.7, 1.0]], [0.3, 0.06])
    brick = Brick((2, 1, 1), (True, False, False))
    generator = Generator(brick, sizes)
    every = generator.leaves()
    lower = np.array([[0, 0, 0], brick.extent // 2])
    upper = lower + brick.extent // 7
    first, last = every.corner[:, None], every.corner[:, None] + every.side[:, None, None]
    expected = ((first < upper) & (last > lower)).all(2).any(1)
    result = generator.leaves_in(lower, upper)
    np.testing.assert_array_equal(result.corner, every.corner[expected])
    np.testing.assert_array_equal(result.level, every.level[expected])
    coarse = generator.leaves_in(lower, upper, limit=8)  # the levels with more boxes are omitted
    levels = np.unique(coarse.level)
    assert 0 < len(coarse.level) < len(result.level) and levels.max() < result.level.max()
    np.testing.assert_array_equal(coarse.corner, result.corner[np.isin(result.level, levels)])


def test_the_sample_around_a_source_beside_a_slow_layer_is_small() -> None:
    """The box around the source has two million leaves of the layer, of side 2^-11."""
    sizes = SizeField([[-np.inf] * 2, [0.0, 0.5]], [[np.inf] * 2, [4.0, 1.0]], [0.3, 2.0**-11 * 1.001])
    brick, places = Brick((4, 1), (False, False)), np.zeros((0, 2))
    source = np.array([[2.0, 0.45]])
    sample = SampledMesh.sample(brick, sizes, 40, positions=places, sources=source, tree_size=1.0, origin=[0.0, 0.0])
    assert sample.count < 60_000
    assert sample.total > 2_000_000


def test_a_sampled_mesh_has_neighbours() -> None:
    sizes = SizeField([[-np.inf] * 2, [0.5, 0.2]], [[np.inf] * 2, [0.9, 0.7]], [0.2, 0.02])
    brick = Brick((2, 1), (True, False))
    places = np.zeros((0, 2))
    sample = SampledMesh.sample(brick, sizes, 40, positions=places, sources=places, tree_size=1.0, origin=[0.0, 0.0])
    mesh = Mesh.generate(brick, sizes)
    chosen = np.nonzero(sample.shares)[0]
    own = np.searchsorted(mesh.keys, sample.keys)
    np.testing.assert_array_equal(mesh.kinds[own[chosen]], sample.kinds[chosen])
    retained = sample.neighbours[chosen]
    expected = mesh.neighbours[own[chosen]]
    np.testing.assert_array_equal(retained >= 0, expected >= 0)
    np.testing.assert_array_equal(own[retained[retained >= 0]], expected[expected >= 0])


def test_infinite_boxes_of_sizes_end_at_periodic_sides() -> None:
    """Otherwise an image of the fine half would cover the coarse one."""
    sizes = SizeField([[-np.inf, -np.inf], [1.0, -np.inf]], [[1.0, np.inf], [np.inf, np.inf]], [0.1, 0.6])
    coarse, fine = (sorted(set(Mesh.generate(Brick((4, 1), (x, True)), sizes).sizes[:, 0])) for x in (False, True))
    assert coarse[-1] == fine[-1] == 0.5


def billion(path: Path) -> Path:
    """Write the basin, without its margin, with elements for 36 Hz, of 1.3 * 10^9 nodes."""
    text = BASIN.read_text().replace('"2 Hz"', '"36 Hz"').replace("margin = { trees = 3, growth = 1.2 }", "")
    path.write_text(text)
    return path


def test_a_billion_nodes_are_sized_without_their_mesh(tmp_path: Path) -> None:
    rows = rows_of_check(billion(tmp_path / "case.toml"))
    assert int(rows["peak-memory"].split()[1]) < 1 << 30
    assert 1e9 < int(rows["elements"].split()[-2].replace(",", "")) < 1.5e9
    assert float(rows["state"].split()[1]) > 9e4


def test_the_check_of_a_billion_nodes_allocates_no_field(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    largest, zeros = [0], CpuBackend.zeros

    def counting(self: CpuBackend, *arguments: object) -> object:
        array = zeros(self, *arguments)  # type: ignore[arg-type]
        largest[0] = max(largest[0], array.nbytes)
        return array

    monkeypatch.setattr(CpuBackend, "zeros", counting)
    monkeypatch.setattr("seiche.case.waves.check.copy_bandwidth", lambda *_: 1e10)
    assert main(["check", str(billion(tmp_path / "case.toml"))]) == 0
    assert largest[0] < 1 << 20
