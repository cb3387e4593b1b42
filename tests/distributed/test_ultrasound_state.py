# SPDX-License-Identifier: BSD-3-Clause
"""The state of the ultrasound solver: a run that continues from it has the same bits as one without a stop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from seiche.backend.cpu import CpuBackend
from seiche.case.ultrasound.setup import error_of_ranks
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.solver import RowSet, State
from seiche.ultrasound import Decomposition, Grid, Medium, Sensor, Source, simulate
from seiche.ultrasound.photoacoustic import time_reversal
from seiche.ultrasound.plan import parts_for
from seiche.ultrasound.problem import Absorption, MaskSource, Problem
from seiche.ultrasound.records import Request
from seiche.ultrasound.relaxation import Relaxation
from seiche.ultrasound.solver import UltrasoundSolver
from seiche.ultrasound.tones import Harmonics
from ultrasound_cases import layered_pulse

STEPS, STOP = 16, 7
SHAPE = (16, 12, 15)
Arrays = dict[str, np.ndarray]


def relaxation_of(shape: tuple[int, ...]) -> Relaxation:
    """Return two tissues of three processes, in stripes along the last axis."""
    return Relaxation(
        np.broadcast_to(np.arange(shape[-1]) % 2, shape).astype(np.uint8),
        np.array([[0.02, 0.01, 0.03], [0.05, 0.0, 0.1]]),
        np.array([[1e-6, 1e-7, 1e-8], [5e-7, 5e-8, 5e-9]]),
        np.array([1500.0, 1600.0]),
    )


MEDIA: dict[str, dict[str, Any]] = {
    "lossless": {},
    "power law": {"BonA": 6.0, "absorption": Absorption(0.7, 1.5)},
    "stokes": {"BonA": 6.0, "absorption": Absorption(0.5, 2.0, stokes=True)},
    "relaxation": {"BonA": 6.0, "relaxation": relaxation_of(SHAPE)},
}


def problem_of(shape: tuple[int, ...] = SHAPE, **given: Any) -> Problem:
    """Return a pressure pulse in two layers with sources that act until after the stop."""
    points, signal = np.arange(40, 400, 37), np.sin(0.3 * np.arange(STEPS))[:, None]
    values: dict[str, Any] = {
        "steps": STEPS,
        "sources": (
            MaskSource("p", points, 1e-3 * signal, "additive", STOP + 3),
            MaskSource("x", points + 3, signal, "additive-no-correction", STEPS),
            MaskSource("y", points + 5, signal, "dirichlet", STOP - 2),
        ),
    }
    return layered_pulse(shape, **(values | given))


def request_of(problem: Problem, *, velocity: bool, between: bool = False) -> Request:
    """Return records of every kind, from the third step on; `between`: of sensors between points."""
    kinds = ("", "_max", "_min", "_rms", "_max_all", "_min_all")
    quantities = tuple(f"{name}{kind}" for name in ("pu" if velocity else "p") for kind in kinds)
    points = np.arange(3, problem.points, 41)
    sensors: dict[str, Any] = {"points": points}
    if between:
        sensors = {"nodes": np.stack([points, points + 1], 1), "weights": np.full((len(points), 2), 0.5)}
        quantities += ("u_non_staggered",)
    return Request(quantities=quantities, first=3, harmonics=(Harmonics(2e6, 2, 14),), **sensors)


def results(solver: UltrasoundSolver) -> Arrays:
    """Return all fields and records at the end, on every rank."""
    recorder = solver.recorder
    axes = solver.problem.axes
    result = {name: solver.field(name) for name in ("p", *(f"{one}{axis}" for one in ("u", "rho") for axis in axes))}
    result |= {f"series {name}": recorder.series(name) for name in recorder.series_names()}
    result |= {f"aggregate {name}": recorder.aggregate(name) for name in recorder.aggregates}
    result["amplitude"], result["phase"] = recorder.amplitude_and_phase(0)
    return result


def rows_of(world: World, state: State, keys: Mapping[str, np.ndarray]) -> State:
    """Return the rows `keys` of a state that the ranks of `world` have together."""
    rows = {}
    for name, own in state.rows.items():
        everyone = world.allgather((own.keys, {array: own.arrays[array][:] for array in own.arrays}))
        arrays = {}
        for array in own.arrays:
            full = np.full((own.total, *own.arrays[array].shape[1:]), np.nan, own.arrays[array].dtype)
            for numbers, part in everyone:
                full[numbers] = part[array]
            arrays[array] = full[keys[name]]
        rows[name] = RowSet(keys[name], own.total, arrays)
    return State(state.step, rows, state.replicated, state.attributes)


def assert_same(found: Arrays, wanted: Arrays) -> None:
    assert set(found) == set(wanted)
    for name, values in wanted.items():
        assert np.isfinite(values).all() and np.abs(values).max() > 0
        np.testing.assert_array_equal(found[name], values, err_msg=name)


SCHEMES = [("exact", "library"), ("exact", "lines"), ("separable", "auto"), ("local4", "auto")]


@pytest.mark.parametrize(("scheme", "transforms"), SCHEMES)
@pytest.mark.parametrize("medium", MEDIA)
def test_a_run_that_continues_has_results_bitwise_equal_to_one_without_a_stop(scheme, transforms, medium):
    problem = problem_of(**MEDIA[medium])
    for between in (False, True) if scheme == "exact" else (False,):
        request = request_of(problem, velocity=scheme == "exact", between=between)
        options: dict[str, Any] = {"scheme": scheme, "transforms": transforms, "record": request, "threads": 1}
        full, first, second = (UltrasoundSolver(problem, **options) for _ in range(3))
        full.advance(STEPS)
        first.advance(STOP)
        state = first.state()
        assert state.step == STOP and state.attributes == {"recorded": STOP - 3}
        second.set_state(state)
        second.advance(STEPS - STOP)
        assert second.step == STEPS
        assert_same(results(second), results(full))
        full.set_state(state)  # a solver that was used, too
        full.advance(STEPS - STOP)
        assert_same(results(full), results(second))


def test_each_kind_of_step_is_captured_once_it_was_done_without_a_graph(monkeypatch):
    """On a device with graphs; what the CPU captures is done again."""
    problem = problem_of()
    request = request_of(problem, velocity=True)
    options: dict[str, Any] = {"transforms": "library", "record": request, "threads": 1}
    plain, replayed = UltrasoundSolver(problem, **options), UltrasoundSolver(problem, **options)
    plain.advance(STEPS)
    captured, capture = [], CpuBackend.capture

    def counted(backend: CpuBackend, work: Callable[[], None]) -> Any:
        captured.append(replayed.step)
        return capture(backend, work)

    monkeypatch.setattr(CpuBackend, "has_graphs", True)
    monkeypatch.setattr(CpuBackend, "capture", counted)
    replayed.advance(STEPS)
    assert captured == [4, 6, 11, 15]  # a source or a record begins or ends before 2, 3, 5, 10 and 14
    assert replayed.timers.replayed == 1 + 4 + 3 + 1
    assert replayed.weights == plain.weights == (1, 1, 2, 5, 4, 2)
    assert_same(results(replayed), results(plain))


def test_a_state_of_other_records_is_rejected():
    problem = problem_of()
    request = request_of(problem, velocity=False)
    solver = UltrasoundSolver(problem, record=request, threads=1)
    solver.advance(5)
    state = solver.state()
    rows = state.rows["points"]
    fewer = RowSet(rows.keys, rows.total, {name: rows.arrays[name] for name in rows.arrays if name != "rhoy"})
    with pytest.raises(CaseError, match="state: the array 'rhoy' of the points is missing"):
        solver.set_state(State(5, {**state.rows, "points": fewer}))
    with pytest.raises(CaseError, match="state: the array 'p_series' of the sensors has shape"):
        solver.set_state(State(6, state.rows))
    with pytest.raises(CaseError, match="state: 2 of 6 steps are recorded; expected 3"):
        solver.set_state(State(6, state.rows, attributes=state.attributes))


def test_fields_are_blocks_of_points():
    solver = UltrasoundSolver(problem_of(), threads=1)
    solver.advance(3)
    result = solver.fields(["pressure", "velocity", "rhoz"])
    np.testing.assert_array_equal(result["pressure"], solver.field("p"))
    np.testing.assert_array_equal(result["velocity"][..., 1], solver.field("uy"))
    np.testing.assert_array_equal(result["rhoz"], solver.field("rhoz"))
    assert solver.items == solver.total_items == int(np.prod(SHAPE))
    assert solver.check().values["largest_pressure"] == result["pressure"].max()
    with pytest.raises(KeyError):
        solver.fields(["temperature"])


def continues_with_the_same_bits(problem: Problem, world: World, options: dict[str, Any]) -> None:
    full, first, second = (UltrasoundSolver(problem, world=world, **options) for _ in range(3))
    full.advance(STEPS)
    first.advance(STOP)
    second.set_state(first.state())
    second.advance(STEPS - STOP)
    assert_same(results(second), results(full))
    for solver in (full, first, second):
        solver.close()


@pytest.mark.ranks(2, 3)
@pytest.mark.parametrize("scheme", ["exact", "separable", "local4"])
@pytest.mark.parametrize("medium", ["power law", "relaxation"])
def test_slabs_continue_on_the_same_ranks_with_bitwise_equal_results(scheme: str, medium: str) -> None:
    world, problem = World.from_mpi(), problem_of(**MEDIA[medium])
    request = request_of(problem, velocity=scheme == "exact")
    options: dict[str, Any] = {
        "scheme": scheme,
        "record": request,
        "threads": 1,
        "decomposition": Decomposition("global"),
    }
    continues_with_the_same_bits(problem, world, options)


@pytest.mark.ranks(3)
@pytest.mark.parametrize("scheme", ["exact", "separable", "local4"])
@pytest.mark.parametrize("medium", ["power law", "relaxation"])
@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 3)])
def test_slabs_continue_on_another_number_of_ranks(scheme: str, medium: str, before: int, after: int) -> None:
    """The state has the same bits on other ranks; steps have with the exact scheme, the others add in another order."""
    world, problem = World.from_mpi(), problem_of(**MEDIA[medium])
    request = request_of(problem, velocity=scheme == "exact")
    options: dict[str, Any] = {"scheme": scheme, "record": request, "threads": 1, "precision": "float64"}
    stopped = None
    if (subset := world.first(before)) is not None:
        solver = UltrasoundSolver(
            problem, world=subset, **options, decomposition=Decomposition("global" if before > 1 else None)
        )
        solver.advance(STOP)
        state = solver.state()
        everything = {name: np.arange(rows.total) for name, rows in state.rows.items()}
        stopped = (rows_of(subset, state, everything), results(solver))
        solver.close()
    state, at_the_stop = world.bcast(stopped)
    if (subset := world.first(after)) is not None:
        solver = UltrasoundSolver(
            problem, world=subset, **options, decomposition=Decomposition("global" if after > 1 else None)
        )
        solver.set_state(rows_of(World.serial(), state, solver.keys))
        assert_same(results(solver), at_the_stop)
        solver.advance(STEPS - STOP)
        ended = results(solver)
        solver.close()
        single = UltrasoundSolver(problem, **options)
        single.advance(STEPS)
        for name, expected in results(single).items():
            assert np.abs(ended[name] - expected).max() <= (scheme != "exact") * 1e-12 * np.abs(expected).max(), name


@pytest.mark.ranks(2, 3)
@pytest.mark.parametrize("transforms", ["library", "lines"])
@pytest.mark.parametrize("medium", ["power law", "relaxation"])
def test_parts_that_overlap_continue_with_bitwise_equal_results(transforms: str, medium: str) -> None:
    world, shape = World.from_mpi(), (16 * World.from_mpi().size, 12, 15)
    arguments = {"relaxation": relaxation_of(shape)} if medium == "relaxation" else {}
    problem = problem_of(shape, **{**MEDIA[medium], **arguments})
    decomposition = Decomposition("local", 4, (world.size, 1, 1))
    request = request_of(problem, velocity=True)
    options: dict[str, Any] = {
        "record": request,
        "threads": 1,
        "transforms": transforms,
        "decomposition": decomposition,
    }
    continues_with_the_same_bits(problem, world, options)


@pytest.mark.ranks(2)
@pytest.mark.parametrize("compensate", [None, 3e6])
def test_time_reversal_on_ranks_makes_the_image_of_one(compensate: float | None) -> None:
    """Without absorption, and with its compensation where the sound speeds of the ranks differ."""
    world, shape = World.from_mpi(), (40, 36)
    grid = Grid(shape, 1e-4).with_time(1500.0)
    x, y = np.meshgrid(*(grid.positions(axis) for axis in grid.axes), indexing="ij")
    p0, mask = np.exp(-(x**2 + y**2) / (2 * 3e-4**2)), np.zeros(shape, bool)
    mask[4, 4:-4] = mask[-5, 4:-4] = True
    options: dict[str, Any] = {"pml_size": 4, "threads": 1, "precision": "float64"}
    medium = Medium(1500.0)
    if compensate is not None:
        medium = Medium(np.where(x < 0, 1450.0, 1500.0), alpha_coeff=2.0, alpha_power=1.5)
    series = simulate(grid, medium, Source(p0=p0), Sensor(mask), **options)["p"]
    options |= {"iterations": 2, "compensate": compensate}
    expected = time_reversal(grid, medium, mask, series, **options)
    shared: dict[str, Any] = {"world": world, "decomposition": Decomposition("global")}
    result = time_reversal(grid, medium, mask, series, **shared, **options)
    assert expected.max() > 0.3
    assert np.abs(result - expected).max() < 1e-12 * expected.max()


@pytest.mark.ranks(2)
@pytest.mark.parametrize("ending", ["cut off", "faded out"])
def test_an_image_of_the_local_basis_has_errors_of_what_is_predicted_of_the_series_sent_back(
    ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A series that is cut off while waves arrive begins with a jump on the way back, which no overlap resolves."""
    world, shape, overlap = World.from_mpi(), (56, 48), 8
    grid, problems = Grid(shape, 5e-4, 1e-7, 120), list[Problem]()
    x, y = np.meshgrid(*(grid.positions(axis) for axis in grid.axes), indexing="ij")
    mask = np.abs(np.hypot(x, y) - 6e-3) < 3e-4
    options: dict[str, Any] = {"pml_size": 6, "threads": 1, "precision": "float64"}
    times = grid.dt * np.arange(grid.steps)
    tone = np.sin(2 * np.pi * 4e5 * times) * np.minimum(times / 5e-6, 1.0)
    source = Source(p_mask=np.hypot(x + 4e-3, y) < 1e-3, p=tone)
    series = simulate(grid, Medium(1500.0), source, Sensor(mask), **options)["p"]
    if ending == "faded out":
        series = series * np.clip((times[-1] - times) / 5e-6, 0.0, 1.0)

    def noted(problem: Problem, **given: Any) -> UltrasoundSolver:
        problems.append(problem)
        return UltrasoundSolver(problem, **given)

    expected = time_reversal(grid, Medium(1500.0), mask, series, **options)
    monkeypatch.setattr(import_module("seiche.ultrasound.simulate"), "UltrasoundSolver", noted)
    shared: dict[str, Any] = {"world": world, "decomposition": Decomposition("local", overlap)}
    result = time_reversal(grid, Medium(1500.0), mask, series, **shared, **options)
    error = np.linalg.norm(result - expected) / np.linalg.norm(expected)
    parts = parts_for(problems[-1].shape, world.size, "local", split=None, overlap=overlap, lines=None)
    predicted = error_of_ranks(problems[-1], parts, 4e5)
    assert 1e-9 < error < predicted
    assert (predicted < 1e-2) == (ending == "faded out")
