# SPDX-License-Identifier: BSD-3-Clause
"""Sensors between points and velocities at points on several ranks against one rank."""

from __future__ import annotations

import numpy as np
import pytest

from seiche.domain.world import World
from seiche.ultrasound import Decomposition, Line, Sensor
from seiche.ultrasound.simulate import Layers, problem_of, request_of
from seiche.ultrasound.solver import UltrasoundSolver
from ultrasound_packets import compare, packet


@pytest.mark.ranks(1, 2, 3)
@pytest.mark.parametrize("basis", ["local", "global"])
def test_sensors_between_points_and_velocities_at_points(basis: str) -> None:
    """Elements cross the cuts between ranks, and some ranks have no sensor."""
    world = World.from_mpi()
    grid, medium, source, _ = packet((96, 64), 60)
    records = ("p", "p_max", "p_rms", "p_min", "u_non_staggered", "g", "I_avg", "p_max_all")
    line = Line((-2.3e-3, -1e-3), (-1.1e-3, 0.4e-3))
    kinds: dict[str, Sensor] = {
        "elements": Sensor(elements=[line, Line((-1e-3, 0.0), (2e-3, 0.0))], record=records, first=2),
        "positions": Sensor(positions=[[-2.33e-3, -0.4e-3]], record=records),
        "mask": Sensor(mask=np.eye(96, 64, dtype=bool), record=records),
    }
    options = {"basis": basis, **({"overlap": 16, "split": (world.size, 1)} if basis == "local" else {})}
    for sensor in kinds.values():
        errors = compare((grid, medium, source, sensor), world, **(options if world.size > 1 else {}))
        assert max(errors.values()) < (1e-12 if basis == "global" or world.size == 1 else 2e-3)


@pytest.mark.ranks(2)
def test_weighted_sensors_continue_from_a_state() -> None:
    world = World.from_mpi()
    grid, medium, source, _ = packet((96, 64), 60)
    sensor = Sensor(elements=Line((-2e-3, -1e-3), (1e-3, 1e-3)), record=("p", "p_max", "u_non_staggered"))
    layers = Layers.of(grid, 10, 2.0, True)
    problem = problem_of(grid, medium, source, layers, smooth_p0=False)

    def solver() -> UltrasoundSolver:
        return UltrasoundSolver(
            problem,
            world=world,
            decomposition=Decomposition("local", 8),
            record=request_of(grid, sensor, layers),
            threads=1,
        )

    whole, first, second = solver(), solver(), solver()
    whole.advance(60)
    first.advance(31)
    second.set_state(first.state())
    second.advance(29)
    assert second.recorder.traces("p", np.array([0]), 1000)[0].shape == (60, 1)
    for name in ("p", "ux_non_staggered"):
        np.testing.assert_array_equal(second.recorder.series(name), whole.recorder.series(name))
        np.testing.assert_array_equal(second.recorder.traces(name, np.array([0]), 60)[0], whole.recorder.series(name))
    np.testing.assert_array_equal(second.recorder.aggregate("p_max"), whole.recorder.aggregate("p_max"))
