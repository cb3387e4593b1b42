# SPDX-License-Identifier: BSD-3-Clause
"""Costs of sites from measured times, and the weights that they give."""

from __future__ import annotations

import numpy as np
import pytest

from seiche.domain import shapes
from seiche.domain.partition import partition
from seiche.flow import FlowModel, Newtonian, PressureIolet, Solver
from seiche.flow.balance import SiteCosts, _equations, fit_costs, kinds


def test_the_fit_finds_the_costs_that_made_the_times() -> None:
    random = np.random.default_rng(3)
    fluid = random.integers(10_000, 50_000, 9).astype(float)
    rows = np.stack([fluid, fluid * random.uniform(0.02, 0.4, 9), np.zeros(9), np.zeros(9)], axis=1)
    rows = np.concatenate([rows, [[0, 0, 300, 0], [0, 0, 7, 0]]])
    true = np.array([2e-9, 1.5e-9, 4e-8])
    rows[:, 3] = rows[:, :3] @ true
    costs = fit_costs(rows)
    np.testing.assert_allclose((costs.fluid, costs.wall, costs.iolet), true, rtol=1e-9)
    noisy = rows.copy()
    noisy[:, 3] *= random.uniform(0.98, 1.02, len(rows))
    costs = fit_costs(noisy)
    np.testing.assert_allclose((costs.fluid, costs.wall, costs.iolet), true, rtol=0.2)


def test_a_cost_is_never_negative_and_nothing_measured_counts_sites() -> None:
    costs = fit_costs(np.array([[1000.0, 0.0, 0.0, 1e-3], [1000.0, 500.0, 0.0, 0.8e-3]]))
    assert costs.wall == 0.0 and costs.fluid > 0.0
    assert fit_costs(np.zeros((0, 4))) == SiteCosts(1.0, 0.0, 0.0)


def test_weights_even_out_the_costs_that_counting_sites_leaves_uneven() -> None:
    tube = shapes.tube(8.0, 60.0, 1.0, axis=(1.0, 0.0, 0.0))
    wall, iolet = kinds(tube)
    assert 0 < iolet.sum() < wall.sum() < len(tube)
    costs = SiteCosts(1.0, 2.0, 30.0)
    weights = costs.weights(tube)
    np.testing.assert_array_equal(weights, 1.0 + 2.0 * wall + 30.0 * iolet)

    def unevenness(owner: np.ndarray) -> float:
        loads = np.bincount(owner, weights)
        return float(loads.max() / loads.mean())

    assert unevenness(partition(tube, 4)) > 1.3
    assert unevenness(partition(tube, 4, weights=weights)) < 1.1
    assert SiteCosts(0.0, 1.0, 1.0).weights(tube) == pytest.approx(np.ones(len(tube)))


def test_the_cost_of_openings_includes_all_their_stages() -> None:
    tube = shapes.tube(6.0, 20.0, 1.0, axis=(1.0, 0.0, 0.0))
    model = FlowModel(Newtonian(0.1), iolets=(PressureIolet(1.001), PressureIolet()))
    solver = Solver(tube, model, threads=1)
    solver.advance(1)
    times = {stage.name: 1.0 for stage in solver.stages}
    sweep, openings = _equations(solver, times)
    assert sweep[0] == len(tube)
    own = set(times) - {"stream-collide interior"}
    assert {"iolet stress interior", "pressure iolets", "advance clock"} <= own
    assert openings == (0.0, 0.0, float(kinds(tube)[1].sum()), float(len(own)))
