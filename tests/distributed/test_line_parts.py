# SPDX-License-Identifier: BSD-3-Clause
"""Parts of a local Fourier basis whose lines the kernels transform: as a library does it, on one to four ranks."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest

from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.kernels.registry import Real
from seiche.ultrasound.extents import line_precision, widen_overlaps
from seiche.ultrasound.local_basis import min_overlap, parts_of
from seiche.ultrasound.plan import Decomposition
from seiche.ultrasound.problem import Absorption, MaskSource, Mode, Pml, Problem
from seiche.ultrasound.records import Request
from seiche.ultrasound.solver import UltrasoundSolver
from ultrasound_cases import layered_pulse

#: Greatest difference from a library's transforms over the greatest number.
ROUND_OFF = {"float64": 1e-13, "float32": 5e-6}
STEPS = 14
LOSSY: dict[str, Any] = {"BonA": 6.0, "absorption": Absorption(0.7, 1.5)}
#: Water, layers, and further properties of layers.
MEDIA: list[dict[str, Any]] = [
    *({"layered": False}, {}, LOSSY),
    {"BonA": 6.0, "absorption": Absorption(0.5, 2.0, stokes=True)},
    {"absorption": Absorption(0.7, 1.5, losses=False)},
]


def problem_of(shape: tuple[int, ...], *, layered: bool = True, **given: Any) -> Problem:
    """Return a pressure pulse in two layers (or in water), at a third of every axis."""
    water = {} if layered else {"sound_speed": 1500.0, "density": 1000.0}
    return layered_pulse(shape, **({"steps": STEPS} | water | given))


def names(problem: Problem) -> list[str]:
    return ["p", *(f"{one}{axis}" for one in ("u", "rho") for axis in problem.axes)]


def fields(problem: Problem, world: World, transforms: str, **options: Any) -> tuple[dict[str, np.ndarray], Any]:
    """Return all fields and what was recorded at the end."""
    points = np.arange(3, problem.points, 41)
    record = Request(points=points, quantities=("p", "p_max", "p_rms", "p_max_all"))
    decomposition = Decomposition("local", options.pop("overlap"), options.pop("split"))
    arguments: dict[str, Any] = {"transforms": transforms, "threads": 1, "record": record, **options}
    solver = UltrasoundSolver(problem, world=world, decomposition=decomposition, **arguments)
    solver.advance(problem.steps)
    assert (solver.transforms == "lines") == (transforms == "lines")
    result = {name: solver.field(name) for name in names(problem)} | {"series": solver.recorder.series("p")}
    result |= {name: solver.recorder.aggregate(name) for name in solver.recorder.aggregates}
    parts = solver.parts
    solver.close()
    return result, parts


def same_as_a_library(problem: Problem, world: World, precision: Real, **options: Any) -> None:
    arguments = {"precision": precision, "overlap": 4, **options}
    result, parts = fields(problem, world, "lines", **arguments)
    expected, _ = fields(problem, world, "library", **(arguments | {"overlap": min_overlap(parts) or 4}))
    for name, values in expected.items():
        assert np.abs(result[name] - values).max() <= ROUND_OFF[precision] * np.abs(values).max(), name


@pytest.mark.ranks(1, 2, 3, 4)
def test_slabs_of_lines_step_as_with_a_library() -> None:
    """Extents 16 12 15 on several ranks, and 32 27: only the first axis is cut, and rows go on to their spectra."""
    world = World.from_mpi()
    for medium in MEDIA:
        volume = problem_of((8 * world.size if world.size > 1 else 16, 12, 15), **medium)
        same_as_a_library(volume, world, "float64", split=(world.size, 1, 1))
        plane = problem_of((24 * world.size if world.size > 1 else 32, 27), **medium)
        same_as_a_library(plane, world, "float32", split=(world.size, 1))


@pytest.mark.ranks(2, 4)
def test_parts_cut_along_other_axes_step_as_with_a_library() -> None:
    world = World.from_mpi()
    splits = {2: ((1, 2, 1), (1, 1, 2)), 4: ((2, 2, 1), (2, 1, 2))}
    for split in splits[world.size]:
        shape = tuple(8 * count if count > 1 else 16 for count in split)
        for medium in ({}, LOSSY):
            same_as_a_library(problem_of(shape, **medium), world, "float64", split=split)


@pytest.mark.ranks(2, 3)
def test_single_precision_and_a_part_with_one_point_more_at_its_end() -> None:
    """Nine own points and twice four are 17: the part has 18, and as many points of its neighbours as it needs."""
    world = World.from_mpi()
    problem = problem_of((9 * world.size, 21, 24), BonA=6.0)
    result, parts = fields(problem, world, "lines", overlap=4, split=(world.size, 1, 1))
    assert [part.shape for part in parts] == [(18, 21, 24)] * world.size
    expected, _ = fields(problem, world, "lines", overlap=4, split=(world.size, 1, 1), precision="float64")
    assert np.abs(result["p"] - expected["p"]).max() < 1e-5 * np.abs(expected["p"]).max()
    single = UltrasoundSolver(problem, threads=1)
    single.advance(problem.steps)
    # A short overlap and a pulse with short waves: the error is that of the overlap, not of round-off.
    assert np.abs(result["p"] - single.field("p")).max() < 0.1 * np.abs(single.field("p")).max()


@pytest.mark.ranks(2, 3)
def test_sources_act_between_velocity_and_divergence_as_with_a_library() -> None:
    """Points on both sides of a cut, in some steps only; losses are then transformed in a pass of their own."""
    world = World.from_mpi()
    shape = (8 * world.size, 12, 15)
    points = np.arange(5 * 12 * 15 + 60, 9 * 12 * 15 + 60, 7)
    tone = 1e3 * np.sin(0.5 * np.arange(STEPS))[:, None]
    modes: tuple[Mode, ...] = get_args(Mode)
    for mode in modes:
        sources = (
            MaskSource("p", points, 1e-3 * tone, mode, STEPS - 3),
            MaskSource("x", points, 1e-3 * tone, mode, STEPS - 6),
            MaskSource("y", points + 1, 1e-3 * tone, mode, STEPS - 8),
        )
        problem = problem_of(shape, initial_pressure=None, sources=sources, **LOSSY)
        same_as_a_library(problem, world, "float64", split=(world.size, 1, 1))


@pytest.mark.ranks(2, 3)
def test_rows_that_no_neighbour_needs_continue_to_their_spectra() -> None:
    """Batches of 64 rows: three of the middle planes are complete, their neighbours are sent or come later."""
    world = World.from_mpi()
    shape = (28 * world.size, 12, 64)
    points = np.arange(14 * 12 * 64, 15 * 12 * 64, 5)
    signal = np.sin(0.5 * np.arange(STEPS))[:, None]
    source = MaskSource("p", points, signal, "additive", STEPS // 2)
    for term in ({}, {"losses": False}, {"dispersion": False}):
        problem = problem_of(shape, BonA=6.0, absorption=Absorption(0.7, 1.5, **term), sources=(source,))
        same_as_a_library(problem, world, "float64", split=(world.size, 1, 1))


@pytest.mark.ranks(2)
def test_the_difference_from_one_rank_is_the_one_of_the_overlap() -> None:
    """Six points a wavelength along the first axis, an overlap of 8: 7e-4 is predicted."""
    world = World.from_mpi()
    problem = problem_of((64, 27))
    x = np.arange(64.0)[:, None] - 20 + np.zeros(27)
    packet = np.exp(-((x / 7.2) ** 2) / 2) * np.cos(2 * np.pi * x / 6)
    problem = problem_of((64, 27), initial_pressure=packet, steps=60, pml=(Pml(8, 2.0), Pml(0, 0.0)))
    result, _ = fields(problem, world, "lines", overlap=8, precision="float64", split=(2, 1))
    single = UltrasoundSolver(problem, precision="float64", threads=1)
    single.advance(problem.steps)
    error = np.linalg.norm(result["p"] - single.field("p")) / np.linalg.norm(single.field("p"))
    assert 1e-6 < error < 1e-3


@pytest.mark.ranks(2)
def test_lines_that_parts_cannot_have_are_reported_on_all_ranks() -> None:
    world = World.from_mpi()
    problem = problem_of((32, 22))
    words = 'transforms: no extent close to parts of 24x22 points has only factors up to 7; use "library"'
    with pytest.raises(CaseError, match=words):
        UltrasoundSolver(
            problem, world=world, decomposition=Decomposition("local", 4, (2, 1)), transforms="lines", threads=1
        )
    with pytest.raises(
        CaseError, match='transforms: "lines" does not support the global basis on several ranks; use "library"'
    ):
        arguments: Any = {"world": world, "decomposition": Decomposition("global"), "transforms": "lines", "threads": 1}
        UltrasoundSolver(problem_of((32, 27)), **arguments)


@pytest.mark.parametrize(
    ("core", "asked", "extent", "overlap"),
    [(512, 8, 540, 14), (512, 16, 576, 32), (256, 8, 280, 12), (256, 16, 288, 16), (128, 8, 144, 8), (64, 8, 80, 8)],
)
def test_overlaps_are_widened_to_the_cheapest_extent_near(core: int, asked: int, extent: int, overlap: int) -> None:
    shape = (2 * core, 256, 256)
    for part in widen_overlaps(parts_of(shape, (2, 1, 1), asked), "float32") or []:
        assert part.shape == (extent, 256, 256)
        assert part.windows[0].overlap == overlap
        assert part.windows[0].extra_points == 0
        assert part.core[0] == slice(overlap, overlap + core)


def test_parts_cover_the_grid_when_they_are_widened_unevenly():
    """Pieces of 129 and 128 points; the last axis keeps even lengths."""
    seen = np.zeros((257, 257), int)
    parts = widen_overlaps(parts_of((257, 257), (2, 2), 8), "float64")
    assert parts is not None
    for part in parts:
        seen[part.grid_slices] += 1
        assert part.windows[1].extent % 2 == 0
        assert all(one.extent == one.core + 2 * one.overlap + one.extra_points for one in part.windows)
    assert (seen == 1).all()
    assert widen_overlaps(parts_of((256, 254), (2, 1), 8), "float32") is None  # 254 is twice a prime, and not cut
    assert widen_overlaps(parts_of((256,), (2,), 8), "float32") is None


def test_lines_are_taken_where_a_device_or_an_option_says_so():
    assert line_precision({"device": "cuda:1"}) == "float32"
    assert line_precision({"device": "cuda", "precision": "float64"}) == "float64"
    assert line_precision({"device": "cuda", "transforms": "library"}) is None
    assert line_precision({"transforms": "lines"}) == "float32"
    assert line_precision({}) is None
    assert line_precision({"device": "cuda", "scheme": "local4"}) is None
