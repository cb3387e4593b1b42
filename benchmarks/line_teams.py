# SPDX-License-Identifier: BSD-3-Clause
"""Time teams that transform lines of spectra along the first axis on a GPU, for `kernels/registry/line_teams.py`.

    python benchmarks/line_teams.py 288 512 576 --json benchmarks/results/line-teams-h100.json

For each length and team it times transforms alone, and the passes that multiply spectra between two transforms
(gradient, divergence and Laplacians of one step of full physics).
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import open_backend
from seiche.backend.cache import cached_kernel
from seiche.bench.results import provenance
from seiche.bench.ultrasound import problem_of
from seiche.errors import KernelCompileError
from seiche.kernels.registry import KernelSpec
from seiche.kernels.registry import kspace_passes as passes
from seiche.kernels.registry.kspace_lines import team_shape
from seiche.kernels.registry.line_teams import LineTeam
from seiche.ultrasound.problem import Field, Problem
from seiche.ultrasound.solver import UltrasoundSolver

#: Factors of lines.
FACTORS = (4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 16, 18, 20, 21, 24, 27, 28, 30, 32)
#: Maximum of numbers per thread; number of points along each of the other axes; number of runs.
MAX_NUMBERS_PER_THREAD, OTHER_POINTS, RUNS = 32, 256, 10
_ARCHITECTURE = "sm_90"


def factors_of(length: int) -> Iterator[tuple[int, ...]]:
    """Yield two or three factors, ordered with the large ones outside."""
    for count in (2, 3):
        factorisations = {tuple(sorted(item)) for item in product(FACTORS, repeat=count) if math.prod(item) == length}
        smallest = sorted(factorisations, key=lambda item: (item[-1], sum(item)))[:3]
        for item in smallest:
            yield (item[-1], *item[:-1]) if count == 3 else item[::-1]


def teams_of(length: int) -> Iterator[LineTeam]:
    """Yield teams with few idle threads."""
    for radices in factors_of(length):
        for lanes in (8, 16):

            def idle(threads: int, radices: tuple[int, ...] = radices, lanes: int = lanes) -> float:
                rounds = sum(-(-length // radix * lanes // threads) * threads * radix for radix in radices)
                return rounds / (length * lanes * len(radices))

            sizes = [
                n for n in range(96, 641, 32) if length * lanes <= MAX_NUMBERS_PER_THREAD * n <= 8 * length * lanes
            ]
            for threads in sorted(sizes, key=lambda n: (idle(n), n))[:3]:
                if idle(threads) < 1.35:
                    blocks = sorted({max(1, resident // threads) for resident in (512, 768)})
                    yield from (LineTeam(radices, lanes, threads, block) for block in blocks)


def kernels_of(team: LineTeam) -> list[KernelSpec]:
    """Return the passes and the transforms alone."""
    shape = team_shape(team)
    kinds = [passes.gradient_pass(shape, 3), passes.divergence_pass(shape, 3), passes.laplacian_pass(shape, 3, 2)]
    return kinds + [passes.side_transform(shape, inverse=inverse) for inverse in (False, True)]


def build(team: LineTeam) -> bool:
    """Compile the kernels of a team; return whether that was possible."""
    try:
        for spec in kernels_of(team):
            cached_kernel(spec, _ARCHITECTURE)
    except KernelCompileError:
        return False
    return True


def long_problem(length: int) -> Problem:
    """Return full physics on `length` planes."""
    problem = problem_of(OTHER_POINTS, "full")

    def planes(field: Field) -> Field:
        values: npt.NDArray[Any] = np.asarray(field)
        return np.resize(values, (length, *values.shape[1:])) if values.ndim else field

    absorption = problem.absorption
    assert absorption is not None
    return replace(
        problem,
        shape=(length, *problem.shape[1:]),
        sound_speed=planes(problem.sound_speed),
        density=planes(problem.density),
        BonA=planes(problem.BonA) if problem.BonA is not None else None,
        absorption=replace(absorption, alpha_coeff=planes(absorption.alpha_coeff)),
    )


def milliseconds(run: Callable[[], None], solver: UltrasoundSolver) -> float:
    """Return the time of one run."""
    clock = solver.backend.clock()
    run()
    begin = clock.record()
    for _ in range(RUNS):
        run()
    end = clock.record()
    solver.backend.synchronize()
    seconds: float = clock.elapsed(begin, end)
    return seconds * 1e3 / RUNS


def measure(length: int, teams: list[LineTeam]) -> list[dict[str, Any]]:
    """Return a row for each team."""
    solver = UltrasoundSolver(long_problem(length), device="cuda", precision="float32")
    scheme: Any = solver._scheme  # its passes are bound again for each team
    axis, state, rows = scheme._across[0], solver._state, []
    for team in teams:
        shape = team_shape(team)
        axis.shape, axis.batches = shape, -(-axis.lines["count"] // shape.lanes)
        axis.lines["batches"] = axis.batches
        sides = [
            state.bind(
                passes.side_transform(shape, inverse=inverse),
                items=axis.batches,
                spectra=state.line_work,
                roots=axis.roots,
                lines=axis.lines,
                range={"first": 0, "count": axis.batches, "all": axis.batches},
            )
            for inverse in (False, True)
        ]
        timed = {
            "gradient": milliseconds(scheme._gradient_pass(), solver),
            "divergence": milliseconds(scheme._divergence_pass(), solver),
            "laplacians": milliseconds(scheme._laplacian_pass(state.work[:2], 0), solver),
            "transforms": sum(milliseconds(side, solver) for side in sides),
        }
        rows.append({"length": length, **asdict(team), **timed, "numbers": length * axis.lines["inner"]})
    return rows


def main() -> None:
    """Compile, time, print the fastest and store all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lengths", type=int, nargs="+")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    teams_by_length = {length: list(teams_of(length)) for length in options.lengths}
    all_teams = [team for teams in teams_by_length.values() for team in teams]
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        built = dict(zip(all_teams, pool.map(build, all_teams, chunksize=2), strict=True))
    print(f"{len(all_teams)} teams, {sum(built.values())} compiled", flush=True)
    rows: list[dict[str, Any]] = []
    for length, teams in teams_by_length.items():
        rows += measure(length, [team for team in teams if built[team]])
        gc.collect()
        rows_of_length = [row for row in rows if row["length"] == length]
        for kind in ("passes", "transforms"):
            best = min(rows_of_length, key=lambda row: _seconds(row, kind))
            team = {name: best[name] for name in ("radices", "lanes", "threads", "blocks")}
            print(
                f"{length} {kind}: {_seconds(best, kind) * 1e9 / best['numbers']:.1f} ps per number, {team}", flush=True
            )
        if options.json:
            stored = {**provenance("line-teams", open_backend("cuda").describe()), "rows": rows}
            options.json.write_text(json.dumps(stored, indent=0) + "\n")


def _seconds(row: dict[str, Any], kind: str) -> float:
    names = ("gradient", "divergence", "laplacians") if kind == "passes" else ("transforms",)
    return float(sum(row[name] for name in names))


if __name__ == "__main__":
    main()
