# SPDX-License-Identifier: BSD-3-Clause
"""Elastic media on several ranks against one: packets across cuts, layers, sources, restarts, messages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from seiche.case.loading import load
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.ultrasound import Decomposition, Grid, Medium, Sensor, Source, simulate
from seiche.ultrasound.elastic_layers import LayerPoints
from seiche.ultrasound.problem import Window
from seiche.ultrasound.simulate import Layers, problem_of
from seiche.ultrasound.solver import UltrasoundSolver
from ultrasound_cases import shared_case
from ultrasound_packets import OPTIONS, compare, differences

RECORD = ("p", "s", "u_rms", "s_final", "u_final", "p_max_all")


def packet(shape: tuple[int, ...], steps: int, **losses: float) -> tuple[Grid, Medium, Source, Sensor]:
    """Return a packet of eight points per wavelength that crosses the cuts between two solids, one of them lossless."""
    dx = 1e-4
    grid = Grid(shape, dx, 0.2 * dx / 2800.0, steps)
    x = np.meshgrid(*[grid.positions(axis) for axis in grid.axes], indexing="ij")
    beyond, wave = x[0] > 0.25 * shape[0] * dx, 8 * dx
    squares = sum((a + 0.05 * n * dx) ** 2 for a, n in zip(x, shape, strict=True))
    carrier = np.cos(2 * np.pi * sum(x) / np.sqrt(len(shape)) / wave)
    mask = np.zeros(shape, bool)
    mask[tuple(slice(2, None, 7) for _ in shape)] = True
    medium = Medium(
        np.where(beyond, 2800.0, 2400.0),
        np.where(beyond, 1850.0, 1700.0),
        shear_speed=np.where(beyond, 1500.0, 1300.0),
        **{name: np.where(beyond, value, 0.0) for name, value in losses.items()},
    )
    return grid, medium, Source(p0=np.exp(-squares / (2 * wave**2)) * carrier), Sensor(mask, record=RECORD, first=3)


@pytest.mark.ranks(1, 2, 3)
def test_error_falls_with_the_overlap_as_in_fluids() -> None:
    world, before = World.from_mpi(), 1.0
    objects = packet((128, 48), 60, alpha_coeff=4.0, shear_alpha_coeff=6.0)
    if world.size == 1:
        assert set(compare(objects, world, basis="local").values()) == {0.0}
        return
    for overlap, bound in {4: 0.1, 8: 1e-3, 16: 2e-5}.items():
        error = max(compare(objects, world, overlap=overlap).values())
        assert error < min(bound, before)
        before = error


@pytest.mark.ranks(2, 4)
def test_a_volume_and_cuts_along_two_axes() -> None:
    world = World.from_mpi()
    if world.size == 2:
        assert max(compare(packet((48, 30, 28), 20, shear_alpha_coeff=0.0), world, overlap=8).values()) < 1e-3
    else:
        assert max(compare(packet((96, 80), 60), world, overlap=16, split=(2, 2)).values()) < 2e-5


@pytest.mark.ranks(3)
@pytest.mark.parametrize("size", [20, 50])
def test_layers_of_one_part_and_across_parts_damp_as_on_one_rank(size: int) -> None:
    """Pieces of 42 points: 50 points of a layer belong to two of them."""
    grid, medium, _, sensor = packet((126, 48), 160)
    x = np.meshgrid(*[grid.positions(axis) for axis in grid.axes], indexing="ij")
    edge = (x[0] + 45e-4) ** 2 + x[1] ** 2
    objects = grid, medium, Source(p0=np.exp(-edge / (2 * (6e-4) ** 2))), sensor
    options = {**OPTIONS, "pml_size": (size, 12), "pml_alpha": 1.0}
    expected = simulate(*objects, **options)
    result = simulate(*objects, world=World.from_mpi(), decomposition=Decomposition(overlap=16), **options)
    assert max(differences(result, expected).values()) < 2e-5
    pieces = [LayerPoints.of(Window(126, start, 42, 16), size) for start in (0, 42, 84)]
    assert [(piece.before, piece.after) for piece in pieces] == {
        20: [(20, 0), (0, 0), (0, 20)],
        50: [(42, 0), (8, 8), (0, 42)],
    }[size]


@pytest.mark.ranks(2)
@pytest.mark.parametrize("quantity", ["p", "s", "u"])
def test_sources_act_on_the_ranks_that_have_their_points(quantity: str) -> None:
    grid, medium, _, sensor = packet((128, 64), 80, alpha_coeff=4.0)
    x = np.meshgrid(*[grid.positions(axis) for axis in grid.axes], indexing="ij")
    smooth = np.exp(-(x[0] ** 2 + x[1] ** 2) / (2 * (8e-4) ** 2))
    mask = smooth > 1e-7
    t = np.arange(80) * grid.dt
    tone = 1e5 * np.sin(2 * np.pi * 1.6e6 * t) * np.exp(-(((t - 3e-7) / 1e-7) ** 2)) * smooth[mask][:, None]
    source = {
        "p": lambda: Source(p_mask=mask, p=tone),
        "s": lambda: Source(s_mask=mask, sxy=tone),
        "u": lambda: Source(u_mask=mask, ux=1e-6 * tone),
    }[quantity]()
    assert max(compare((grid, medium, source, sensor), World.from_mpi(), overlap=16).values()) < 1e-4


CASE = """solver = "ultrasound"
[grid]
shape = [96, 64]
spacing = "0.25 mm"
cfl = 0.2
steps = 100
[layer]
points = 8
[medium]
material = "water"
[[medium.region]]
kind = "box"
lower = ["1 mm", "-20 mm"]
upper = ["9 mm", "20 mm"]
sound_speed = "2800 m/s"
density = "1850 kg/m^3"
alpha_coeff = 4.0
shear_speed = "1500 m/s"
shear_alpha_coeff = 6.0
[[source]]
kind = "line"
start = ["-1 mm", "-3 mm"]
end = ["0 mm", "3 mm"]
frequency = "400 kHz"
amplitude = "60 kPa"
[record]
maps = ["p_max_all", "s_max_all", "p_final", "s_final"]
[run]
threads = 1
overlap = 16
"""


@pytest.mark.ranks(2, 3)
def test_a_case_restarts_with_the_same_bits_and_its_checkpoint_continues_on_one_rank(tmp_path: Path) -> None:
    world = World.from_mpi()
    path = shared_case(tmp_path, CASE, world)
    folder = path.parent
    with load(path, world=world) as simulation:
        through = simulation.run(visible=False).arrays
    with load(path, output=folder / "parts", world=world) as simulation:
        simulation.run(steps=40, visible=False)
        checkpoint = simulation.checkpoint()
    with load(path, output=folder / "parts", restart=checkpoint, world=world) as simulation:
        restarted = simulation.run(visible=False).arrays
    for name, values in through.items():
        np.testing.assert_array_equal(restarted[name], values, err_msg=name)
    world.barrier()
    alone = folder / f"alone-{world.rank}"
    expected = load(path, output=alone, world=World.serial()).run(visible=False).arrays
    with load(path, output=folder / f"on-{world.rank}", restart=checkpoint, world=World.serial()) as simulation:
        continued = simulation.run(visible=False).arrays
    for found in (through, continued):
        for name, values in expected.items():
            assert 0 < np.abs(found[name] - values).max() < 2e-3 * expected["p_max_all"].max(), name


@pytest.mark.ranks(2)
def test_what_does_not_go_with_several_ranks_gives_a_one_line_error() -> None:
    world = World.from_mpi()
    grid, medium, source, _ = packet((128, 64), 5)
    problem = problem_of(grid, medium, source, Layers.of(grid, 10, 2.0, True))
    for decomposition, words in (
        (Decomposition("global"), 'basis: an elastic medium has no global basis; use "local"'),
        (Decomposition(split=(1, 2), overlap=20), "split: 2 pieces of axis y have 32 points; an overlap of 20"),
        (Decomposition(split=(3, 1)), "split: (3, 1) makes 3 parts for 2 ranks"),
    ):
        with pytest.raises(CaseError) as caught:
            UltrasoundSolver(problem, world=world, decomposition=decomposition)
        assert str(caught.value).startswith(words)
    assert UltrasoundSolver(problem, world=world, decomposition=Decomposition("auto")).plan.basis == "local"


@pytest.mark.ranks(3)
def test_a_part_that_is_too_long_is_refused_on_all_ranks() -> None:
    """Parts of 2034 or 2033 points, which overlaps extend to at most the 2048 of the kernels, or beyond them."""
    world, grid = World.from_mpi(), Grid((6100, 16), 1e-4, 1e-8, 1)
    medium, source = Medium(2400.0, 1700.0, shear_speed=1300.0), Source(p0=np.ones(grid.shape))
    problem = problem_of(grid, medium, source, Layers.of(grid, (20, 4), 2.0, inside=True))
    solver = UltrasoundSolver(problem, world=world, decomposition=Decomposition("local", 4))
    assert max(world.allgather(solver.parts[world.rank].shape[0])) <= 2048
    with pytest.raises(CaseError, match=r"grid\.shape: 2\d{3} points along x exceed the maximum of 2048"):
        UltrasoundSolver(problem, world=world, decomposition=Decomposition("local", 16))
