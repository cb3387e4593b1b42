# SPDX-License-Identifier: BSD-3-Clause
"""Ultrasound on several ranks by a local Fourier basis against one rank: the same bits on one, small errors on more."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from life_cases import assert_same_arrays
from seiche.bench.lfb import measure
from seiche.case.loading import load
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.solver import RowSet, State
from seiche.ultrasound import Decomposition, Grid, Medium, Sensor, Source, simulate
from seiche.ultrasound.local_basis import bell, best_split, derivative_error, parts_of
from seiche.ultrasound.problem import Window
from seiche.ultrasound.simulate import Layers, problem_of
from seiche.ultrasound.slabs import slabs_of
from seiche.ultrasound.solver import UltrasoundSolver
from ultrasound_cases import shared_case
from ultrasound_packets import OPTIONS, C, compare, differences, packet


@pytest.mark.ranks(1, 2, 4)
def test_error_falls_with_the_overlap() -> None:
    world = World.from_mpi()
    objects = packet((128, 96), 120)
    bounds = {4: 0.1, 8: 1e-3, 16: 2e-5}
    if world.size == 1:
        assert set(compare(objects, world).values()) == {0.0}
        return
    before = 1.0
    for overlap, bound in bounds.items():
        error = max(compare(objects, world, overlap=overlap).values())
        assert error < min(bound, before)
        before = error


@pytest.mark.ranks(2)
@pytest.mark.parametrize("loss", ["stokes", "power law", "relaxation"])
def test_absorption_and_nonlinearity_travel(loss: str) -> None:
    medium: dict[str, Any] = {"alpha_coeff": 0.5, "alpha_power": 2.0 if loss == "stokes" else 1.5, "BonA": 6.0}
    if loss == "relaxation":
        medium["alpha_mode"] = "relaxation"
    assert max(compare(packet((96, 72), 60, **medium), World.from_mpi(), overlap=16).values()) < 5e-5


@pytest.mark.ranks(3)
def test_parts_of_a_row_and_of_a_volume() -> None:
    world = World.from_mpi()
    assert max(compare(packet((120,), 150), world, overlap=16).values()) < 1e-4
    assert max(compare(packet((48, 40, 36), 40), world, overlap=8).values()) < 2e-3


@pytest.mark.ranks(4)
def test_overlaps_that_make_a_part_as_wide_as_the_grid_and_a_split_that_is_given() -> None:
    world = World.from_mpi()
    objects = packet((128, 96), 60)
    assert max(compare(objects, world, overlap=24, split=(2, 2)).values()) < 1e-5
    assert max(compare(objects, world, overlap=12, split=(4, 1)).values()) < 1e-4


@pytest.mark.ranks(2)
@pytest.mark.parametrize("mode", ["dirichlet", "additive"])
def test_sources_act_on_the_ranks_that_have_their_points(mode: str) -> None:
    grid, medium, _, sensor = packet((128, 96), 100)
    x = np.meshgrid(*[grid.positions(axis) for axis in grid.axes], indexing="ij")
    smooth = np.exp(-(x[0] ** 2 + x[1] ** 2) / (2 * (6e-4) ** 2))
    mask = smooth > 1e-6
    tone = 1e5 * np.sin(2 * np.pi * 2.5e6 * np.arange(100) * grid.dt)
    source = Source(p_mask=mask, p=tone, p_weights=smooth[mask], p_mode=mode)  # type: ignore[arg-type]
    bound = 1e-4 if mode != "dirichlet" else 1e-2  # a dirichlet source has a sharp edge
    assert max(compare((grid, medium, source, sensor), World.from_mpi(), overlap=16).values()) < bound


@pytest.mark.ranks(2)
def test_what_does_not_go_with_several_ranks_gives_a_one_line_error() -> None:
    world = World.from_mpi()
    grid, medium, source, sensor = packet((128, 96), 20)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"split": (3, 1)}, "split: (3, 1) makes 3 parts for 2 ranks"),
        ({"overlap": 3}, "overlap: 3 points is not between 4 and 32"),
        ({"split": (1, 2), "overlap": 30}, "split: 2 pieces of axis y have 48 points; an overlap of 30 requires"),
        ({"split": (2,)}, "split: (2,) is not one number of pieces for each of 2 axes"),
        (
            {"split": (2, 1), "basis": "global"},
            "split: (2, 1) applies only to the local basis; the global basis uses slabs",
        ),
        ({"basis": "spectral"}, "basis: 'spectral' is not auto, local or global"),
    ]
    for change, words in cases:
        arguments = {"sensor": sensor, "overlap": 8, **change}
        with pytest.raises(CaseError) as caught:
            simulate(
                grid,
                medium,
                source,
                arguments.pop("sensor"),
                world=world,
                decomposition=Decomposition(**arguments),
                **OPTIONS,
            )
        assert str(caught.value).startswith(words)
    problem = problem_of(grid, medium, source, Layers.of(grid, 10, 2.0, True))
    with pytest.raises(CaseError, match='basis: the local4 scheme has no local basis; use "global"'):
        UltrasoundSolver(problem, world=world, scheme="local4", decomposition=Decomposition("local"))
    row = problem_of(*packet((96,), 5)[:3], Layers.of(packet((96,), 5)[0], 10, 2.0, True))
    with pytest.raises(
        CaseError,
        match="scheme: on a grid with one axis the separable scheme requires a single rank; use the exact scheme",
    ):
        UltrasoundSolver(row, world=world, scheme="separable")


CASE = """solver = "ultrasound"
[grid]
shape = [96, 72]
spacing = "0.5 mm"
steps = 80
[layer]
points = 8
[medium]
material = "water"
[[source]]
kind = "arc"
position = ["-15 mm", "0 mm"]
focus = ["2 mm", "0 mm"]
radius = "17 mm"
diameter = "14 mm"
frequency = "400 kHz"
amplitude = "60 kPa"
[record]
frequencies = ["400 kHz"]
periods = 1
maps = ["p_max_all"]
"""


@pytest.mark.ranks(2)
def test_a_case_runs_on_ranks_and_one_of_them_writes(tmp_path: Path) -> None:
    world = World.from_mpi()
    path = shared_case(tmp_path, CASE, world)
    folder = path.parent
    result = load(path, overrides=["run.overlap=16"], world=world).run(visible=False)
    expected = load(path, output=folder / f"alone-{world.rank}", world=World.serial()).run(visible=False)
    assert max(differences(result.arrays, expected.arrays).values()) < 2e-3  # the arc ends at the cut
    world.barrier()
    assert (folder / "out" / "result.h5").exists()
    assert result.summary["details"]["basis"] == "basis local"  # without a machine file
    full = load(path, overrides=["run.basis=global"], output=folder / "whole", world=world).run(visible=False)
    assert max(differences(full.arrays, expected.arrays).values()) < 1e-6


SNAPSHOTS = """
[[output.snapshots]]
file = "film.h5"
every = 10
[[output.snapshots]]
file = "coarse.h5"
every = 10
points = 16
"""


@pytest.mark.ranks(2, 3)
@pytest.mark.parametrize("basis", ["global", "local"])
def test_snapshots_of_ranks_are_the_pressure_of_all_of_them_also_after_a_restart(
    tmp_path: Path, basis: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seiche.case.simulation.copy_bandwidth", lambda *_: 1e10)
    world = World.from_mpi()
    path = shared_case(tmp_path, CASE.replace("p_max_all", "p_final") + SNAPSHOTS, world)
    folder, changes = path.parent, [f"run.basis={basis}"]
    with load(path, overrides=changes, world=world) as simulation:
        final = simulation.run(visible=False).arrays["p_final"]
    with load(path, overrides=changes, output=folder / "parts", world=world) as simulation:
        simulation.run(steps=simulation.setup.steps // 2, visible=False)
        checkpoint = simulation.checkpoint()
    options = {"overrides": changes, "output": folder / "parts", "restart": checkpoint, "world": world}
    with load(path, **options) as simulation:
        simulation.run(visible=False)
        assert simulation.setup.steps == 80
    world.barrier()
    for name, step in (("film.h5", 1), ("coarse.h5", 6)):
        with h5py.File(folder / "out" / name) as whole, h5py.File(folder / "parts" / name) as parts:
            assert len(whole["time"]) == 8
            np.testing.assert_array_equal(parts["time"][:], whole["time"][:])
            np.testing.assert_array_equal(parts["pressure"][:], whole["pressure"][:])
            np.testing.assert_array_equal(whole["pressure"][-1].T, final[::step, ::step])


@pytest.mark.ranks(2)
def test_an_image_is_reconstructed_on_ranks(tmp_path: Path) -> None:
    world = World.from_mpi()
    ring = '[record]\nring = { center = ["0 mm", "0 mm"], radius = "10 mm" }\n'
    path = shared_case(tmp_path, CASE.partition("[record]")[0] + ring + "[image]\n", world)
    folder = path.parent
    result = load(path, overrides=["run.basis=global"], world=world).run(visible=False).arrays["image"]
    expected = (
        load(path, output=folder / f"alone-{world.rank}", world=World.serial()).run(visible=False).arrays["image"]
    )
    assert expected.max() > 0
    assert np.abs(result - expected).max() < 1e-6 * expected.max()


@pytest.mark.ranks(1, 2, 3, 4)
def test_transforms_of_the_whole_grid_give_what_one_rank_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Odd and even sizes, slabs of different heights, all physics; the same bits in three dimensions and in FP32."""
    monkeypatch.setenv("SEICHE_FFT", "scipy")  # plans of FFTW depend on the number of lines
    world, losses = World.from_mpi(), {"alpha_coeff": 0.5, "alpha_power": 1.5, "BonA": 6.0}
    for objects in (packet((45, 38), 12), packet((24, 21, 23), 6), packet((26, 24, 22), 6, **losses)):
        expected = simulate(*objects, **OPTIONS)
        result = simulate(*objects, world=world, decomposition=Decomposition("global"), **OPTIONS)
        if len(objects[0].shape) == 3:
            assert_same_arrays(result, expected, "FP64")
        assert max(differences(result, expected).values()) < 1e-14
        single = {**OPTIONS, "precision": "float32"}
        near = simulate(*objects, world=world, decomposition=Decomposition("global"), **single)
        assert_same_arrays(near, simulate(*objects, **single), "FP32")


@pytest.mark.ranks(1, 2, 3, 4)
@pytest.mark.parametrize("scheme", ["separable", "local4"])
def test_schemes_along_one_axis_give_in_two_layouts_what_one_rank_gives(scheme: str) -> None:
    """Odd and even sizes, columns of different widths, everything else that a step sends: sums and rates."""
    world, losses = World.from_mpi(), {"alpha_coeff": 0.5, "alpha_power": 2.0, "BonA": 6.0}
    for objects in (packet((45, 38), 10), packet((24, 21, 23), 5), packet((26, 24, 22), 5, **losses)):
        inputs, sensor = objects[:3], Sensor(objects[3].mask, record=("p", "p_rms", "p_final"), frequencies=(1e6,))
        for options, bound in ((OPTIONS, 1e-12), ({**OPTIONS, "precision": "float32"}, 1e-6)):
            expected = simulate(*inputs, sensor, scheme=scheme, **options)
            result = simulate(*inputs, sensor, world=world, scheme=scheme, **options)
            assert max(differences(result, expected).values()) < bound


@pytest.mark.ranks(2)
@pytest.mark.parametrize("scheme", ["separable", "local4"])
@pytest.mark.parametrize("loss", ["power law", "relaxation"])
def test_losses_of_a_whole_slab_go_with_two_layouts(scheme: str, loss: str) -> None:
    medium: dict[str, Any] = {"alpha_coeff": 0.5, "alpha_power": 1.5, "BonA": 6.0}
    if loss == "relaxation":
        medium["alpha_mode"] = "relaxation"
    *objects, sensor = packet((24, 21, 23), 6, **medium)
    sensor = Sensor(sensor.mask, record=("p", "p_final"))
    expected = simulate(*objects, sensor, scheme=scheme, **OPTIONS)
    result = simulate(*objects, sensor, world=World.from_mpi(), scheme=scheme, **OPTIONS)
    assert max(differences(result, expected).values()) < 1e-12


@pytest.mark.ranks(3)
@pytest.mark.parametrize("scheme", ["separable", "local4"])
def test_sources_of_every_kind_act_in_two_layouts(scheme: str) -> None:
    """Points in one slab only; sources of velocity along the first axis, which lies in the columns, and of others."""
    world = World.from_mpi()
    grid, medium, _, sensor = packet((48, 40), 24)
    sensor = Sensor(sensor.mask, record=("p", "p_final"))
    mask = np.zeros(grid.shape, bool)
    mask[8:15, 20] = True
    tone = np.sin(2 * np.pi * 2.5e6 * np.arange(16) * grid.dt)
    item = tone * np.linspace(0.5, 1.0, int(mask.sum()))[:, None]
    for mode in ("dirichlet", "additive", "additive-no-correction"):
        for acts in ({"p_mask": mask, "p": 1e5 * item}, {"u_mask": mask, "ux": item}, {"u_mask": mask, "uy": tone}):
            source = Source(**acts, p_mode=mode, u_mode=mode)  # type: ignore[arg-type]
            expected = simulate(grid, medium, source, sensor, scheme=scheme, **OPTIONS)
            result = simulate(grid, medium, source, sensor, world=world, scheme=scheme, **OPTIONS)
            assert max(differences(result, expected).values()) < 1e-12


@pytest.mark.ranks(2)
def test_fields_of_two_layouts_are_read_and_set_as_those_of_one_rank() -> None:
    """Velocity and density along the first axis lie in the columns."""
    world = World.from_mpi()
    grid, medium, source, _ = packet((36, 30), 20, alpha_coeff=0.5, alpha_power=2.0, BonA=6.0)
    problem = problem_of(grid, medium, source, Layers.of(grid, 8, 2.0, True))
    options: dict[str, Any] = {"precision": "float64", "threads": 1, "scheme": "local4"}
    single, shared = UltrasoundSolver(problem, **options), UltrasoundSolver(problem, world=world, **options)
    single.advance(10)
    shared.advance(10)
    fields = {name: single.field(name) for name in ("p", "ux", "uy", "rhox", "rhoy")}
    for name, expected in fields.items():
        assert np.abs(shared.field(name) - expected).max() < 1e-12 * np.abs(expected).max()
    resumed = UltrasoundSolver(problem, world=world, **options)
    own = resumed.keys["points"]
    rows = RowSet(own, problem.points, {name: values.reshape(-1)[own] for name, values in fields.items()})
    resumed.set_state(State(10, {"points": rows}))
    for one in (single, resumed):
        one.advance(8)
    assert np.abs(resumed.field("p") - single.field("p")).max() < 1e-12 * np.abs(single.field("p")).max()
    for solver in (shared, resumed):
        solver.close()


@pytest.mark.ranks(2)
def test_what_two_layouts_send_is_what_is_reported() -> None:
    """Theory, section 13: three fields a step for the separable scheme, four with the local sound speed."""
    world = World.from_mpi()
    grid, medium, source, _ = packet((32, 24, 20), 20)
    problem = problem_of(grid, medium, source, Layers.of(grid, 6, 2.0, True))
    for scheme, fields in (("separable", 3), ("local4", 4)):
        solver = UltrasoundSolver(problem, world=world, scheme=scheme, threads=1)
        solver.advance(2)
        message = [one.messages for one in solver.stages if one.messages is not None]
        sent = sum(size for one in message for _, size in one.sent)
        assert sent == fields * 4 * problem.points // world.size * (world.size - 1) // world.size
        solver.close()


@pytest.mark.ranks(3)
def test_sources_act_on_slabs_as_on_one_rank() -> None:
    """Points in one slab only, one of them alone in the next."""
    world = World.from_mpi()
    grid, medium, _, sensor = packet((48, 40), 30)
    mask = np.zeros(grid.shape, bool)
    mask[8:17, 20] = True
    tone = np.sin(2 * np.pi * 2.5e6 * np.arange(20) * grid.dt)
    for mode in ("dirichlet", "additive", "additive-no-correction"):
        for samples in (tone, tone * np.linspace(0.5, 1.0, int(mask.sum()))[:, None]):
            source = Source(p_mask=mask, p=1e5 * samples, p_mode=mode, u_mask=mask, ux=1e-2 * samples, u_mode=mode)  # type: ignore[arg-type]
            assert max(compare((grid, medium, source, sensor), world, basis="global").values()) < 1e-12


@pytest.mark.ranks(2, 4)
def test_errors_that_are_predicted_are_those_of_runs() -> None:
    for row in measure(World.from_mpi(), (8, 12), (6.0,), "cpu"):
        assert row.measured is not None
        assert row.predicted / 20 < row.measured < 2 * row.predicted


def test_impossible_slabs_are_reported() -> None:
    assert [part.shape for part in slabs_of((7, 5, 4), 3)] == [(3, 5, 4), (2, 5, 4), (2, 5, 4)]
    with pytest.raises(CaseError, match="basis: a grid with one axis cannot be cut into slabs; use the local basis"):
        slabs_of((64,), 2)
    with pytest.raises(CaseError, match="basis: 64x4 points cannot be cut into slabs for 4 ranks"):
        slabs_of((64, 4), 4)


def test_parts_cover_the_grid_once_and_the_split_is_the_one_of_least_work():
    seen = np.zeros((50, 41), int)
    for part in parts_of((50, 41), (3, 2), 6):
        seen[part.grid_slices] += 1
        assert part.shape == tuple(
            n.stop - n.start + 2 * m.overlap for n, m in zip(part.grid_slices, part.windows, strict=True)
        )
    assert (seen == 1).all()
    assert best_split((256, 256, 256), 8, 8) == (4, 2, 1)  # 80 144 256 points; cut once each, 144 144 144
    assert best_split((1024, 64, 64), 8, 8) == (8, 1, 1)
    with pytest.raises(CaseError, match="split: 20x20 points cannot be cut for 7 ranks with overlap 8"):
        best_split((20, 20), 7, 8)


def test_bell_is_one_on_own_points_and_falls_to_zero():
    result = bell(Window(100, 10, 30, 8))
    assert (result[8:38] == 1).all()
    np.testing.assert_allclose(result[:8] + result[:8][::-1], 1.0, atol=1e-12)
    assert result[0] < 1e-3
    np.testing.assert_array_equal(result, result[::-1])


@pytest.mark.parametrize(("overlap", "error"), [(4, 3.0e-2), (8, 6.1e-3), (12, 1.4e-3), (24, 3.1e-5)])
def test_derivative_errs_as_is_known_at_four_points_per_wavelength(overlap, error):
    assert derivative_error(128, overlap, 4.0) < 1.6 * error


def test_one_rank_warns_and_rejects_like_simulate():
    grid, medium, source, sensor = packet((64, 48), 5)
    unstable = Grid(grid.shape, grid.spacing, 1e-6, 5)
    reference = Medium(medium.sound_speed, sound_speed_ref=C)
    with warnings.catch_warnings(), pytest.raises(CaseError, match="is unstable in this medium"):
        warnings.simplefilter("ignore")
        simulate(unstable, reference, source, sensor, decomposition=Decomposition("local"))


@pytest.mark.ranks(2)
def test_ranks_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """With as many threads as there are cores on each rank a step would take ten times as long."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    world = World.from_mpi()
    grid, medium, source, _ = packet((48, 32), 4)
    problem = problem_of(grid, medium, source, Layers.of(grid, 6, 2.0, True))
    for requested, expected in ((None, world.threads()), (1, 1)):
        solver = UltrasoundSolver(problem, world=world, decomposition=Decomposition("local", 4), threads=requested)
        assert solver.backend.threads == expected
        solver.close()
