# SPDX-License-Identifier: BSD-3-Clause
"""Waves: how much of a stage one kernel does changes its speed and, but for round-off, nothing else."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from seiche.bench import waves as bench_waves
from seiche.errors import CaseError
from seiche.kernels.registry.dg import Discretisation, Variant, words_per_node, words_per_stage
from seiche.waves import Brick, Forest, Material, Mesh, PointSource, Ricker, Solver


@pytest.mark.parametrize(
    ("medium", "flux", "by_node"), [("acoustic", "upwind", False), ("elastic", "central", True)], ids=lambda x: str(x)
)
def test_variants_differ_by_round_off_at_most(medium: str, flux: str, by_node: bool, device: str) -> None:
    """Hanging faces, sides, random media and a source; the fused ones have one order of sums, the separate another."""
    random = np.random.default_rng(2)
    forest = Forest.uniform(Brick((2, 1), (False, True)), 1)
    mesh = Mesh.of_forest(forest.refined(np.arange(len(forest)) == 0).balanced())
    shape = (mesh.count, 16) if by_node else (mesh.count,)
    cs = np.zeros(shape) if medium == "acoustic" else 1 + 0.2 * random.random(shape)
    material = Material(1 + random.random(shape), 2 + random.random(shape), cs)
    push = {"volume": 1.0} if medium == "acoustic" else {"force": (1.0, 2.0)}
    source = PointSource((0.9, 0.3), Ricker(2.0, 0.3), **push)
    start = random.standard_normal((mesh.count, 3 if medium == "acoustic" else 5, 16))
    states = {}
    for variant in get_args(Variant):
        solver = Solver(mesh, material, nodes=4, flux=flux, variant=variant, sources=[source], device=device)
        solver.start_from(start)
        solver.advance(25)
        states[variant] = solver.values()
    np.testing.assert_array_equal(states["fused-flux"], states["fused"])
    difference = np.abs(states["separate"] - states["fused"]).max() / np.abs(states["fused"]).max()
    assert 0 < difference < 1e-14


def test_the_words_of_a_stage_are_those_of_the_model() -> None:
    """Eight nodes a direction, material by element: theory/waves, section 8."""
    acoustic, elastic = Discretisation("acoustic", 3, 8), Discretisation("elastic", 3, 8)
    assert [words_per_stage(acoustic, variant) for variant in get_args(Variant)] == [17.5, 29.5, 38.0]
    assert [words_per_stage(elastic, variant) for variant in get_args(Variant)] == [40.5, 67.5, 88.0]
    assert words_per_node(acoustic) == pytest.approx(15.9) and words_per_node(elastic) == pytest.approx(36.9)


def test_the_benchmark_compares_the_variants(capsys: pytest.CaptureFixture[str]) -> None:
    options = {"configurations": [("acoustic", "upwind")], "precisions": ["float64"], "threads": 1}
    rows = bench_waves.main(variant="all", size=2, nodes=2, seconds=0.0, **options)  # type: ignore[arg-type]
    assert [row.variant for row in rows] == list(get_args(Variant))
    for row in rows:
        assert row.error < (1e-14 if row.variant == "separate" else 1e-300)
        assert row.time_over_fused > 0 and (row.time_over_fused == 1) == (row.variant == "fused")
    assert "x fused" in capsys.readouterr().out


def test_an_unknown_variant_is_rejected() -> None:
    mesh = Mesh.of_forest(Forest.uniform(Brick((1, 1), (True, True)), 0))
    with pytest.raises(CaseError, match=r"variant = 'split': must be one of fused, fused-flux, separate"):
        Solver(mesh, Material.uniform(1, 1.0, 1.0), variant="split")  # type: ignore[arg-type]
    with pytest.raises(CaseError, match=r"variant = 'split': must be one of"):
        bench_waves.main(variant="split")
