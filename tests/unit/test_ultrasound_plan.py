# SPDX-License-Identifier: BSD-3-Clause
"""How a grid is shared among ranks is chosen by what a step would cost on the machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from seiche.bench.ultrasound import problem_of
from seiche.errors import CaseError
from seiche.machine.laws.file import read_machine
from seiche.machine.laws.locality import RankPlacement
from seiche.ultrasound.local_basis import parts_of, possible_splits
from seiche.ultrasound.plan import check_basis, choose, shared_points

H200 = Path(__file__).resolve().parents[2] / "benchmarks" / "machines" / "h200x2.json"


def placements(count: int) -> list[RankPlacement]:
    return [RankPlacement("host", frozenset({rank}), f"0000:{rank:02x}:00.0", "GPU", 0) for rank in range(count)]


def test_points_of_overlaps_are_shared_out_completely() -> None:
    parts = parts_of((40, 30, 20), (2, 2, 1), 6)
    for part in parts:
        total = sum(shared_points(part, other) for other in parts)
        assert total == np.prod(part.shape) - np.prod([one.core for one in part.windows])


def test_without_a_machine_file_the_local_basis_is_taken_where_it_fits() -> None:
    problem = problem_of(48, "lossless")
    assert choose(problem, possible_splits(problem.shape, 2, 8), None, placements(2), 4).basis == "local"
    assert choose(problem, {}, None, placements(2), 4).basis == "global"


def test_the_basis_follows_the_speed_of_links_and_the_work_of_overlaps() -> None:
    machine, problem = read_machine(H200), problem_of(64, "lossless")
    wide = choose(problem, possible_splits(problem.shape, 2, 16), machine, placements(2), 4)
    narrow = choose(problem, possible_splits(problem.shape, 2, 4), machine, placements(2), 4)
    assert set(wide.predicted) == set(narrow.predicted) == {"local", "global"}
    assert wide.predicted["global"] == narrow.predicted["global"]
    assert narrow.predicted["local"] < wide.predicted["local"]
    for plan in (wide, narrow):
        assert plan.predicted[plan.basis] == min(plan.predicted.values())
        assert plan.describe().startswith(f"basis {plan.basis}")
        assert ": local " in plan.describe()
        assert "ms per step predicted" in plan.describe()
    # Twice the bytes of a number: both take longer.
    double = choose(problem, possible_splits(problem.shape, 2, 4), machine, placements(2), 8)
    assert all(double.predicted[name] > narrow.predicted[name] for name in double.predicted)


def test_the_split_is_the_one_whose_step_is_predicted_to_be_the_shortest() -> None:
    """A long grid: cut across, four parts have the smallest overlaps; an even cut along two axes has more of them."""
    machine, problem = read_machine(H200), problem_of(48, "lossless", (4, 1, 1))
    splits = possible_splits(problem.shape, 4, 8)
    assert set(splits) == {(4, 1, 1), (2, 2, 1), (2, 1, 2), (1, 2, 2)}
    single = {one: choose(problem, {one: splits[one]}, machine, placements(4), 4) for one in splits}
    best = choose(problem, splits, machine, placements(4), 4)
    assert best.predicted["local"] == min(plan.predicted["local"] for plan in single.values())
    assert best.predicted["local"] == single[4, 1, 1].predicted["local"]
    # Twice as fast as transforms of the whole grid, over these links.
    assert (best.basis, best.split) == ("local", (4, 1, 1))
    assert 2 * best.predicted["local"] < best.predicted["global"]


def test_an_unknown_basis_is_reported() -> None:
    with pytest.raises(CaseError, match="basis: 'x' is not auto, local or global"):
        check_basis("x")
