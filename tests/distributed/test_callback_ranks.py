# SPDX-License-Identifier: BSD-3-Clause
"""Callbacks on ranks: fields on the device, and steered runs that are the same on every number of ranks."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import seiche
from prediction_cases import case_file
from seiche.case.simulation import Simulation
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.solver import State

#: Of each kind: a number that may be set, values of it, and how far ranks may be from one, of the largest number.
KINDS: dict[str, tuple[str, tuple[Any, Any], float]] = {
    "flow": ("iolets.inlet.velocity", (0.003, 0.001), 0.0),
    "blood": ("body_force", ((1e5, 0.0, 2e4), (0.0, 3e4, 0.0)), 0.0),
    "ultrasound": ("sources.0.amplitude", (1.7, -0.4), 1e-12),
    "waves": ("sources.0.amplitude", (1.7, -0.4), 0.0),
}
STEPS = 11


def loaded(kind: str, folder: Path, world: World, restart: Path | None = None) -> Simulation:
    """Return a case of a kind that a callback steers every three steps, with an output folder of its own."""
    options = [f"{'grid' if kind == 'ultrasound' else 'time'}.steps={STEPS}"]
    options += ["run.basis=global", "run.precision=float64"] if kind == "ultrasound" else []
    case = folder / f"{kind}.toml"
    if World.from_mpi().rank == 0 and not case.exists():
        case_file(folder, kind)
    World.from_mpi().barrier()
    name = f"{world.size}-{World.from_mpi().rank if world.size == 1 else 0}{'-on' if restart else ''}"
    sim = seiche.load(case, overrides=options, output=folder / name, restart=restart, world=world)
    number, values, _ = KINDS[kind]

    @sim.every(steps=3)
    def steer(sim: Simulation) -> None:
        sim.steering[number] = values[sim.step // 3 % 2]

    return sim


def shared_folder(world: World) -> Path:
    """Return a new folder, the same on every rank."""
    return Path(world.bcast(tempfile.mkdtemp() if world.rank == 0 else None))


def rows_of(state: State, name: str) -> dict[str, np.ndarray]:
    """Return the arrays of this rank's rows `name`."""
    return {key: np.asarray(rows[:]) for key, rows in state.rows[name].arrays.items()}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No measurement of the memory's speed after each of these small runs."""
    monkeypatch.setattr("seiche.case.simulation.copy_bandwidth", lambda *_: 1e10)


@pytest.mark.ranks(2)
@pytest.mark.parametrize("kind", KINDS)
def test_a_steered_run_is_the_same_on_two_ranks_and_after_a_restart(kind: str, ranks: int) -> None:
    """One rank, two ranks, and two that go on from where two stopped, each with the callback."""
    world = World.from_mpi()
    assert world.size == ranks
    folder, tolerance = shared_folder(world), KINDS[kind][2]
    with loaded(kind, folder, World.serial()) as sim:
        sim.run()
        states = [sim.case_run.state()]
    with loaded(kind, folder, world) as sim:
        sim.run(steps=5)
        checkpoint = sim.checkpoint(folder / "five.seiche")
        sim.run()
        states.append(sim.case_run.state())
    world.barrier()
    with loaded(kind, folder, world, checkpoint) as sim:
        assert (sim.step, sim.steering[KINDS[kind][0]]) == (5, KINDS[kind][1][1])
        sim.run()
        states.append(sim.case_run.state())
    (item,) = [name for name in states[0].rows if name in ("sites", "elements", "points")]
    single, together, continued = (rows_of(state, item) for state in states)
    own = states[1].rows[item].keys
    assert np.array_equal(states[0].rows[item].keys, np.arange(states[0].rows[item].total))
    for name, values in together.items():
        np.testing.assert_array_equal(continued[name], values, err_msg=name)
        scale = tolerance * np.abs(single[name]).max()
        np.testing.assert_allclose(values, single[name][own], rtol=0, atol=scale, err_msg=name)


@pytest.mark.ranks(2)
@pytest.mark.parametrize("kind", KINDS)
def test_ranks_have_fields_of_their_items_on_the_device(kind: str, ranks: int) -> None:
    world = World.from_mpi()
    with loaded(kind, shared_folder(world), world) as sim:
        sim.run(steps=4)
        names = ["pressure", "velocity", *(["shear_rate", "stress"] if kind in ("flow", "blood") else [])]
        host, device = sim.fields(names), sim.device_fields(names)
        for name in names:
            np.testing.assert_array_equal(np.from_dlpack(device[name]), host[name], err_msg=name)


@pytest.mark.ranks(2)
def test_ranks_that_set_different_values_are_rejected(ranks: int) -> None:
    world = World.from_mpi()
    with loaded("flow", shared_folder(world), world) as sim:
        with pytest.raises(CaseError, match="ranks set different values"):
            sim.steering["iolets.inlet.velocity"] = 0.001 * (1 + world.rank)
        assert sim.steering["iolets.inlet.velocity"] == 0.002


@pytest.mark.ranks(2)
@pytest.mark.parametrize("kind", KINDS)
def test_different_arguments_and_failing_callbacks_end_all_ranks(kind: str, ranks: int) -> None:
    world = World.from_mpi()
    assert world.size == ranks
    with loaded(kind, shared_folder(world), world) as sim:
        with pytest.raises(CaseError, match="run: steps: ranks give different values"):
            sim.run(steps=2 + world.rank)
        with pytest.raises(CaseError, match="is not a whole number"):
            sim.run(steps=2 if world.rank else -1)
        sim.run(steps=1)

        @sim.every(steps=2)
        def fail(sim: Simulation) -> None:
            if world.rank == 1:
                raise ZeroDivisionError("no cells")

        expected = ZeroDivisionError if world.rank == 1 else CaseError
        message = "^no cells" if world.rank == 1 else "callback.*rank 1.*no cells"
        with pytest.raises(expected, match=message):
            sim.run()
