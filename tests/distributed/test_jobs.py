# SPDX-License-Identifier: BSD-3-Clause
"""The jobs that run these tests: they stay, tell what fails and where, and end with what went wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from launch import run_ranks


def print_environment() -> None:
    print(f"process {os.getpid()} of {os.environ['SEICHE_TEST_RANKS']}, {os.environ.get('SEICHE_WORD', 'no word')}")


def test_ranks_stay_while_their_environment_does(monkeypatch: pytest.MonkeyPatch) -> None:
    first = run_ranks(2, print_environment)
    assert first.count("of 2, no word") == 2
    assert run_ranks(2, print_environment) == first
    monkeypatch.setenv("SEICHE_WORD", "given")
    second = run_ranks(2, print_environment)
    assert second.count("of 2, given") == 2


@pytest.mark.ranks(2)
def test_a_rank_has_a_folder_of_its_own(ranks: int, tmp_path: Path) -> None:
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()


def fail(rank: str, how: str) -> None:
    from seiche.domain.world import World

    world = World.from_mpi()
    print("before", flush=True)
    if world.rank == int(rank):
        if how == "raise":
            raise ZeroDivisionError("no such number")
        os._exit(3)
    world.barrier()
    world.barrier()


@pytest.mark.parametrize(
    ("how", "said"), [("raise", "ZeroDivisionError: no such number"), ("leave", "rank 1 of 3: gone")]
)
def test_what_one_rank_fails_with_is_reported_while_others_wait_for_it(how: str, said: str) -> None:
    with pytest.raises(pytest.fail.Exception) as failure:
        run_ranks(3, fail, 1, how)
    assert said in str(failure.value)
    assert str(failure.value).count("before") == 3
    assert run_ranks(3, print_environment).count("of 3") == 3


def wait_forever() -> None:
    from seiche.domain.world import World

    world = World.from_mpi()
    print(f"rank {world.rank} is here", flush=True)
    if world.rank == 0:
        world.barrier()


def test_ranks_that_do_not_end_are_ended() -> None:
    run_ranks(2, print_environment)
    with pytest.raises(pytest.fail.Exception) as failure:
        run_ranks(2, wait_forever, timeout=2.0)
    assert "rank 0 of 2: did not end in time" in str(failure.value)
    assert str(failure.value).count("is here") == 2
    assert "rank 1 of 2: " not in str(failure.value)
