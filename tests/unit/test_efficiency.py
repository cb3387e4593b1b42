# SPDX-License-Identifier: BSD-3-Clause
"""Efficiencies: a published assessment from its basic rows, synthetic traces with known answers, and their bounds.

The published case is HemeLB_GPU on JUWELS (POP assessment by B. Wylie, JSC, POP2_AR_065, July 2020): 66,401,494 sites,
2000 steps on 1 to 32 nodes of four GPUs, five processes on the first node and four on each more.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seiche.observe.efficiency import Efficiency, efficiency, host_efficiency, hybrid_efficiency, scaling
from seiche.observe.replay import ideal_seconds
from seiche.observe.sample import Sample, Span, union_length
from seiche.observe.stage import Messages

#: The published efficiencies: load balance, communication, parallel efficiency, computation scaling, global efficiency,
#: seconds and elements. The column of 32 nodes of "hybrid" belongs to the run without writing: its global efficiency
#: needs that time.
PUBLISHED = """
GPU with writing
0.95 0.78 0.73 0.73 0.65 0.50
0.67 0.68 0.68 0.75 0.73 0.58
0.64 0.53 0.50 0.54 0.47 0.29
1.00 1.00 0.99 0.96 0.92 0.87
0.64 0.53 0.49 0.52 0.43 0.25
147.87 88.38 48.13 22.66 13.68 11.67
4 8 16 32 64 128
GPU without
0.95 0.78 0.73 0.73 0.65 0.49
0.72 0.73 0.73 0.80 0.92 1.03
0.68 0.57 0.53 0.59 0.59 0.51
1.00 0.99 0.98 0.95 0.91 0.87
0.68 0.57 0.52 0.56 0.54 0.44
137.73 82.33 44.98 21.00 10.87 6.66
4 8 16 32 64 128
CPU with writing
0.78 0.68 0.52 0.45 0.38 0.64
0.25 0.26 0.26 0.21 0.17 0.06
0.19 0.18 0.13 0.10 0.07 0.04
1.00 1.00 1.32 2.01 2.47 2.63
0.19 0.18 0.17 0.19 0.16 0.09
147.87 88.38 48.13 22.66 13.68 11.67
5 9 17 33 65 129
hybrid
0.77 0.69 0.65 0.75 0.66 0.52
0.46 0.47 0.46 0.41 0.40 0.54
0.35 0.33 0.30 0.31 0.27 0.28
1.00 1.00 1.06 1.12 1.11 1.07
0.35 0.32 0.32 0.35 0.29 0.30
147.87 88.38 48.13 22.66 13.68 6.66
5 9 17 33 65 129
"""
_LINES = PUBLISHED.strip().split("\n")
TABLES = {_LINES[k]: [np.array(line.split(), float) for line in _LINES[k + 1 : k + 8]] for k in range(0, 32, 8)}
TOLERANCE = 0.015


def trees(name: str) -> list[Efficiency]:
    """Return the trees of a table, from load balance, communication, time and elements alone."""
    balance, communication, _, _, _, times, elements = TABLES[name]
    rows = zip(elements, times, balance, communication, strict=True)
    return [Efficiency(int(n), time, lb, comm) for n, time, lb, comm in rows]


@pytest.mark.parametrize("name", TABLES)
def test_published_parallel_efficiencies_are_products_of_their_factors(name: str) -> None:
    np.testing.assert_allclose([tree.parallel for tree in trees(name)], TABLES[name][2], atol=TOLERANCE)


@pytest.mark.parametrize("name", TABLES)
def test_published_global_efficiencies_follow_from_the_computation_scaling(name: str) -> None:
    _, _, parallel, printed, total, times, elements = TABLES[name]
    # At 32 nodes the printed .04 of the CPU rows has one digit: .11 against .09.
    columns = slice(0, 5 if name.startswith("CPU") else 6)
    rows = zip(elements, times, parallel, printed, strict=True)
    result = [Efficiency(int(n), time, pe, 1.0, computation_scaling=c).overall for n, time, pe, c in rows]
    np.testing.assert_allclose(result[columns], total[columns], atol=TOLERANCE)


@pytest.mark.parametrize("name", TABLES)
def test_published_global_efficiencies_follow_from_times_and_counts(name: str) -> None:
    """GE = PE_ref T_ref n_ref / (T n), which does not need what the elements did."""
    _, _, parallel, _, total, times, elements = TABLES[name]
    first = Efficiency(int(elements[0]), times[0], parallel[0], 1.0)
    # The hybrid column of 32 nodes mixes two runs: with its time of the run without writing it is met as well.
    result = [
        Efficiency(int(n), time, pe, 1.0).against(first).overall
        for n, time, pe in zip(elements, times, parallel, strict=True)
    ]
    np.testing.assert_allclose(result, total, atol=TOLERANCE)


@pytest.mark.parametrize(("name", "tolerance"), [("GPU with writing", 0.03), ("GPU without", 0.03), ("hybrid", 0.04)])
def test_published_computation_scaling_follows_from_useful_times(name: str, tolerance: float) -> None:
    _, _, parallel, printed, total, times, elements = TABLES[name]
    for k in range(6 if name != "hybrid" else 5):
        # Useful seconds of the first run: its global efficiency is its parallel one.
        first = Efficiency(int(elements[0]), times[0], total[0], 1.0)
        result = Efficiency(int(elements[k]), times[k], parallel[k], 1.0).against(first).computation_scaling
        assert result == pytest.approx(printed[k], abs=tolerance), k


def test_computation_scaling_of_processes_is_as_good_as_its_one_digit() -> None:
    _, _, parallel, printed, _, times, elements = TABLES["CPU with writing"]
    first = Efficiency(int(elements[0]), times[0], parallel[0], 1.0)
    for k in range(5):
        result = Efficiency(int(elements[k]), times[k], parallel[k], 1.0).against(first).computation_scaling
        assert result == pytest.approx(printed[k], rel=0.12)


def test_published_scaling_of_writing_follows_from_summed_times() -> None:
    """Seconds of 4, 8, 16 and 128 processes that wrote; 1.00, 1.02, .94 and .02 are printed."""
    result = [scaling(3.55, seconds) for seconds in (3.55, 3.50, 3.76, 174.0)]
    np.testing.assert_allclose(result, (1.00, 1.02, 0.94, 0.02), atol=TOLERANCE)


def test_kernels_of_two_streams_count_once_where_they_overlap() -> None:
    """Summed kernel times gave the printed 1.03; the union of their intervals cannot."""
    kernels = [(0.0, 4.0), (3.0, 6.0), (5.5, 6.66)]
    assert sum(end - begin for begin, end in kernels) > 6.66
    assert efficiency([union_length(kernels)], 6.66).communication <= 1.0
    with pytest.raises(ValueError, match="not between"):
        efficiency([6.86], 6.66)


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0, 3)), max_size=30))
def test_union_of_intervals_is_what_counting_small_pieces_finds(parts: list[tuple[float, float]]) -> None:
    grid = np.arange(0.0, 14.0, 1e-3)
    inside = np.zeros(len(grid), bool)
    for begin, length in parts:
        inside |= (grid >= begin) & (grid < begin + length)
    length = union_length((begin, begin + length) for begin, length in parts)
    assert length == pytest.approx(inside.sum() * 1e-3, abs=2e-3 * (len(parts) + 1))


def step(*spans: tuple[str, float], messages: dict[str, Messages] | None = None, number: int = 0) -> Sample:
    """Return a step of spans (name, seconds) one behind the other; those with messages are not useful."""
    known, ends = messages or {}, np.cumsum([0.0, *(seconds for _, seconds in spans)])
    made = [
        Span(name, float(begin), float(end), name not in known, known.get(name))
        for (name, _), (begin, end) in zip(spans, pairwise(ends), strict=True)
    ]
    return Sample(number, 0.0, tuple(made))


def pair(peer: int) -> dict[str, Messages]:
    return {"send": Messages("halo", sent=((peer, 8),)), "receive": Messages("halo", received=((peer, 8),))}


def test_a_network_without_cost_keeps_only_waiting_for_work() -> None:
    """Rank 0 computes 3 then sends; rank 1 computes 1, waits for it (2 of work, 0.5 of network), computes 1."""
    first = step(("work", 3.0), ("send", 0.25), ("work", 1.0), messages=pair(1))
    second = step(("work", 1.0), ("receive", 2.75), ("work", 1.0), messages=pair(0))
    taken, ideal = ideal_seconds([[first], [second]])
    assert (taken, ideal) == (4.75, 4.0)
    tree = efficiency([4.0, 2.0], 4.75, ideal=ideal)
    assert tree.load_balance == pytest.approx(0.75)
    assert tree.serialisation == pytest.approx(1.0)
    assert tree.transfer == pytest.approx(4.0 / 4.75)
    assert tree.parallel == pytest.approx(6.0 / (2 * 4.75))


def test_work_one_rank_after_the_other_is_serialisation() -> None:
    """Rank 1 starts when rank 0 is done: half of the time is lost on any network."""
    first = step(("work", 2.0), ("send", 0.0), messages=pair(1))
    second = step(("receive", 2.5), ("work", 2.0), messages=pair(0))
    taken, ideal = ideal_seconds([[first], [second]])
    assert (taken, ideal) == (4.5, 4.0)
    tree = efficiency([2.0, 2.0], 4.5, ideal=ideal)
    assert (tree.load_balance, tree.serialisation) == (1.0, 0.5)
    assert tree.transfer == pytest.approx(4.0 / 4.5)


def test_all_ranks_meet_in_every_step() -> None:
    collective = {"sum": Messages("sum", is_collective=True)}
    ranks = [
        [step(("work", work), ("sum", 1.0), messages=collective, number=k) for k, work in enumerate(works)]
        for works in ((1.0, 3.0), (2.0, 1.0), (1.0, 1.0))
    ]
    assert ideal_seconds(ranks)[1] == 2.0 + 3.0
    ranks[2].pop()  # a step that one rank did not sample counts for none
    assert ideal_seconds(ranks)[1] == 2.0


def test_a_message_that_was_never_sent_is_reported() -> None:
    ranks = [[step(("work", 1.0))], [step(("receive", 1.0), messages=pair(0))]]
    with pytest.raises(ValueError, match="rank 1 waits for a message from rank 0"):
        ideal_seconds(ranks)
    lone = {"sum": Messages("sum", is_collective=True)}
    with pytest.raises(ValueError, match="rank 0 waits for the other ranks"):
        ideal_seconds([[step(("sum", 1.0), messages=lone)], [step(("work", 1.0))]])


def test_no_rank_and_no_message_are_no_problem() -> None:
    assert ideal_seconds([]) == (0.0, 0.0)
    assert ideal_seconds([[], []]) == (0.0, 0.0)
    empty = {"send": Messages("halo", sent=((1, 0),)), "receive": Messages("halo", received=((1, 0),))}
    assert ideal_seconds([[step(("receive", 2.0), ("work", 1.0), messages=empty)], [step(("work", 1.0))]])[1] == 1.0


seconds = st.floats(1e-6, 1.0)


@given(st.lists(st.tuples(seconds, seconds, seconds), min_size=1, max_size=6), st.floats(0, 2))
def test_no_efficiency_passes_one(rows: list[tuple[float, float, float]], more: float) -> None:
    """In a ring where every rank works, sends, works on and receives."""
    count = len(rows)
    ranks = []
    for rank, (work, waiting, rest) in enumerate(rows):
        remaining, right = (rank - 1) % count, (rank + 1) % count
        messages = {
            "send": Messages("halo", sent=((right, 8),)),
            "receive": Messages("halo", received=((remaining, 8),)),
        }
        ranks.append([step(("work", work), ("send", 0.0), ("rest", rest), ("receive", waiting), messages=messages)])
    taken, ideal = ideal_seconds(ranks)
    useful = [sample.useful for (sample,) in ranks]
    active = [sample.active for (sample,) in ranks]
    tree = efficiency(useful, taken + more, ideal=max(ideal, *useful), active=active)
    values = tree.as_dict()
    for name in ("load_balance", "communication", "serialisation", "transfer", "device", "orchestration", "parallel"):
        assert 0 <= values[name] <= 1
    assert tree.communication == pytest.approx(values["serialisation"] * values["transfer"])
    assert tree.communication == pytest.approx(values["device"] * values["orchestration"])
    assert tree.useful == pytest.approx(sum(useful))


def test_impossible_times_are_rejected() -> None:
    for useful, elapsed in (([], 1.0), ([-1.0, 1.0], 1.0), ([0.0], 1.0), ([1.0], 0.0)):
        with pytest.raises(ValueError, match="positive times"):
            efficiency(useful, elapsed)
    with pytest.raises(ValueError, match="ideal"):
        efficiency([2.0], 4.0, ideal=1.0)
    with pytest.raises(ValueError, match="scaling requires positive times"):
        Efficiency(1, 1.0, 1.0, 0.0).against(Efficiency(1, 1.0, 1.0, 1.0))
    with pytest.raises(ValueError, match="exceed the elapsed"):
        host_efficiency([2.0], [0.0], 1.0)


def test_hosts_lose_to_messages_in_and_between_nodes_and_to_their_devices() -> None:
    """T = 10; messages 2, 4 on one node and 4, 6 on another: inside 8, 6, 6, 4."""
    result = host_efficiency([2.0, 4.0, 4.0, 6.0], [0.0, 0.0, 0.0, 4.0], 10.0, ["a", "a", "b", "b"])
    assert result.communication == pytest.approx(0.8)  # (T - min m) / T
    assert result.load_balance == pytest.approx(6.0 / 8.0)  # (T - mean m) / (T - min m)
    assert result.inside_nodes == pytest.approx(7.0 / 8.0)
    assert result.between_nodes == pytest.approx(6.0 / 7.0)
    assert result.offload == pytest.approx(20.0 / 24.0)
    assert result.parallel == pytest.approx(20.0 / 40.0)
    single = host_efficiency([0.0], [0.0], 1.0)
    assert set(single.as_dict().values()) == {1.0}


def test_published_hybrid_efficiencies_follow_from_those_of_processes_and_gpus() -> None:
    """One process of each run has no GPU. The last column belongs to the run without writing."""
    cpu, gpu, hybrid = TABLES["CPU with writing"], TABLES["GPU with writing"], TABLES["hybrid"]
    for k in range(5):
        processes, gpus, elapsed = int(cpu[6][k]), int(gpu[6][k]), cpu[5][k]
        result = hybrid_efficiency([cpu[2][k] * elapsed] * processes, [gpu[2][k] * elapsed] * gpus, elapsed)
        assert result.parallel == pytest.approx(hybrid[2][k], abs=TOLERANCE)
        assert (result.cpu, result.gpu) == pytest.approx((cpu[2][k], gpu[2][k]))
        # The busiest process is at most as busy as the busiest one and the busiest GPU on average.
        assert hybrid[1][k] <= (cpu[1][k] + gpu[1][k]) / 2 + TOLERANCE


def test_a_process_and_its_gpu_count_half_each() -> None:
    """T = 10; processes 2, 6, 4, devices 8, 2 and none: 5, 4, 2."""
    result = hybrid_efficiency([2.0, 6.0, 4.0], [8.0, 2.0], 10.0)
    assert result.communication == pytest.approx(0.5)
    assert result.load_balance == pytest.approx(11.0 / 15.0)
    assert result.parallel == pytest.approx(11.0 / 30.0)
    assert (result.cpu, result.gpu) == pytest.approx((0.4, 0.5))
    assert result.parallel == pytest.approx((3 * result.cpu + 2 * result.gpu) / 6)
    assert hybrid_efficiency([2.0], [], 10.0).as_dict()["gpu"] == 0.0
    with pytest.raises(ValueError, match="at most one device per process: 2 devices, 1 processes"):
        hybrid_efficiency([1.0], [1.0, 1.0], 10.0)
