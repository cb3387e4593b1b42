# SPDX-License-Identifier: BSD-3-Clause
"""The energy of waves and ultrasound against the energy that their sources can supply."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from seiche.case.energy_growth import EnergyGrowth
from seiche.case.loading import load
from seiche.domain.world import World
from seiche.ultrasound.energy import energy, increments
from seiche.ultrasound.problem import MaskSource, Pml, Problem
from seiche.ultrasound.solver import UltrasoundSolver
from seiche.waves import Material, Mesh, PointSource
from seiche.waves.forest import Brick, Forest
from seiche.waves.solver import WaveSolver
from seiche.waves.supply import delta_norms
from ultrasound_cases import BASIC
from waves_cases import BLOCK, FORCE, SOIL

NAME = "growth of energy beyond the supply of sources"
FREE = FORCE.replace('upper = ["absorbing", "absorbing", "free"]', 'lower = ["free", "free", "free"]')
WAVES = BLOCK + 'size = "2.5 m"\n' + SOIL + FREE + '[run]\nsource_model = "delta"\n[time]\nduration = "16 ms"\n'
BURST = (
    BASIC.replace("steps = 60", "steps = 200")
    .replace("points = 6", "points = 0")
    .replace('"60 kPa"', '"60 kPa"\ncycles = 3')
)


def growth_of(path: Path, text: str, gain: float = 1.0) -> tuple[float, str | None, str]:
    """Run a case whose state is multiplied by `gain` after three quarters of the steps."""
    path.mkdir()
    (path / "case.toml").write_text(text)
    with load(path / "case.toml", output=path / "out") as simulation:
        solver = simulation.solver

        def change(sim: object) -> None:
            simulation.case_run.growth.compare()
            if gain != 1.0:
                for field in solver.device_fields(
                    ("velocity", "pressure") if solver.item == "points" else ("velocity",)
                ).values():
                    field *= gain

        simulation.every(change, steps=3 * simulation.setup.steps // 4)
        outcome = simulation.run(visible=False)
        (result,) = [entry for entry in outcome.summary["estimates"] if entry["name"] == NAME]
        return result["value"], result["warning"], simulation.case_run.physics()["energy beyond the sources"]


@pytest.mark.parametrize("text", [WAVES, BURST], ids=["waves", "ultrasound"])
def test_the_energy_stays_below_the_supply_and_a_growing_state_is_reported(tmp_path: Path, text: str) -> None:
    value, warning, drift = growth_of(tmp_path / "a", text)
    assert -1 < value < 0.1
    assert warning is None
    assert drift[0] in "+-" and drift.endswith(" %")
    value, warning, _ = growth_of(tmp_path / "b", text, gain=5.0)
    assert value > 0.2
    assert warning is not None
    assert "time step" in warning


def test_limits_follow_the_smallest_energy_and_the_supply() -> None:
    energies = iter([1.0, 1.44, 2.0])
    solver = SimpleNamespace(step=0, world=World.serial())
    supply = lambda first, last: 0.1 * (last - first)  # noqa: E731
    growth = EnergyGrowth(solver, lambda: next(energies), supply, 4.0)  # type: ignore[arg-type]
    for step, latest in ((1, 1.0 / 2.1**2 - 1), (2, (1.44 - 1.21) / 4.0), (3, (2.0 - 1.44) / 4.0)):
        solver.step = step
        growth.compare()
        growth.compare()
        assert growth.latest == pytest.approx(latest)
    assert growth.largest == pytest.approx(0.14)
    unknown = EnergyGrowth(solver, lambda: 1.0, lambda first, last: math.inf)  # type: ignore[arg-type]
    solver.step = 9
    unknown.compare()
    assert unknown.largest is None


@pytest.mark.parametrize(
    ("speeds", "source"),
    [
        ((1.5, 0.0), {"volume": 2.0}),
        ((1.5, 0.0), {"force": (1.0, -2.0)}),
        ((3.0, 1.7), {"force": (1.0, -2.0)}),
        ((3.0, 1.7), {"moment": ((1.0, 0.3), (0.3, -2.0))}),
    ],
)
def test_the_norm_of_a_delta_is_the_energy_of_a_short_step(speeds, source) -> None:
    mesh = Mesh.of_forest(Forest.uniform(Brick((2, 3), (False, False)), 0))
    material = Material.uniform(6, 2.5, *speeds)
    for position in ((0.3, 0.4), (1.0, 1.0)):  # inside an element, and at a corner of four
        point = PointSource(position, np.ones_like, **source)
        solver = WaveSolver(mesh, material, nodes=4, dt=1e-7, sources=[point])
        solver.advance(1)
        (norm,) = delta_norms(solver.operator, [point], solver.world)
        assert math.sqrt(solver.energy()) == pytest.approx(norm * solver.dt, rel=1e-5)


@pytest.mark.parametrize("quantity", ["p", "x"])
@pytest.mark.parametrize("kind", ["common", "delayed", "separate", "both"])
def test_increments_of_ultrasound_are_energies_of_single_steps(quantity: str, kind: str) -> None:
    generator = np.random.default_rng(3)
    points, delays = np.array([40, 57, 131]), np.array([2, 0, 1])
    columns = 3 if kind in ("separate", "both") else 1
    samples = generator.standard_normal((7, columns))
    late = kind in ("delayed", "both")
    source = MaskSource(
        quantity, points, samples, "additive-no-correction", 5, np.array([1.0, 2.0, -1.0]), delays if late else None
    )
    density = 1000 * generator.uniform(1, 2, (16, 12))
    problem = Problem(
        axes=("x", "y"),
        shape=(16, 12),
        spacing=(1e-3, 1e-3),
        dt=1e-10,
        steps=5,
        reference_speed=1500.0,
        sound_speed=1500.0,
        density=density,
        pml=(Pml(0, 0.0),) * 2,
        staggered_density=(density, density),
        sources=(source,),
    )
    solver = UltrasoundSolver(problem, precision="float64")
    expected = []
    for _ in range(5):
        for field in solver.device_fields(("p", "ux", "uy", "rhox", "rhoy")).values():
            field[...] = 0
        solver.advance(1)
        expected.append(energy(solver))
    np.testing.assert_allclose(increments(source, problem), expected, rtol=1e-4)
