# SPDX-License-Identifier: BSD-3-Clause
"""Fits of the postal law: known parameters are recovered, protocols are found, and impossible fits are reported."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

from seiche.machine.laws import terms
from seiche.machine.laws.curve import Curve, Piece, postal
from seiche.machine.laws.file import FittedPiece, Measured
from seiche.machine.laws.fit import (
    errors,
    fit,
    least_squares,
    relative_least_squares,
    segment,
    warnings_of,
    without_disturbance,
)
from seiche.machine.laws.flat import flat_pieces
from seiche.machine.laws.models import MessageModel, max_rate
from seiche.machine.measure.survey import _Survey, trust_of
from seiche.observe.repeat import Timing, TimingSeries

SIZES = 2.0 ** np.arange(2, 22)
#: Two protocols: the second starts later and is faster.
TWO = Curve((Piece(4, 8192, 1e-6, 4e-10), Piece(16384, 1 << 21, 6e-6, 5e-11)))


def test_exact_lines_are_recovered_by_both_fits() -> None:
    seconds = 2e-6 + 3e-10 * SIZES
    for method in (least_squares, relative_least_squares):
        assert method(SIZES, seconds) == pytest.approx((2e-6, 3e-10), rel=1e-9)


@given(st.lists(st.floats(0.3, 3.0), min_size=4, max_size=12), st.integers(0, 8))
def test_relative_fit_is_the_constrained_optimum(factors: list[float], first: int) -> None:
    sizes = 2.0 ** (first + np.arange(len(factors)))
    seconds = 1e-6 * np.array(factors)
    scale = float(sizes[-1])
    matrix = np.stack([1e-6 / seconds, 1e-6 * sizes / scale / seconds], axis=1)
    (alpha, beta), _ = nnls(matrix, np.ones(len(sizes)))
    result = relative_least_squares(sizes, seconds)
    assert result == pytest.approx((1e-6 * alpha, 1e-6 * beta / scale), rel=1e-6, abs=1e-16)


def test_protocols_are_found_where_they_change() -> None:
    random = np.random.default_rng(3)
    for noise in (0.0, 0.005):
        seconds = TWO.seconds(SIZES) * (1 + noise * random.standard_normal(len(SIZES)))
        assert [int(SIZES[k]) for k in segment(SIZES, seconds)] == [4, 16384]
    assert segment(SIZES, 1e-6 + 1e-10 * SIZES) == [0]


def test_a_protocol_that_begins_at_the_largest_size_has_a_piece_of_one_point() -> None:
    seconds = 1e-6 + 1e-10 * SIZES
    seconds[-1] *= 1.5
    curve = fit(SIZES, seconds)
    assert [piece.points for piece in curve.pieces] == [len(SIZES) - 1, 1]
    assert errors(curve, SIZES, seconds).max() < 1e-9
    assert curve.pieces[-1].alpha == 0.0
    assert curve.seconds(2 * SIZES[-1]) == pytest.approx(2 * seconds[-1])


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    random = np.random.default_rng(11)
    sizes, inside = SIZES[4:], 0
    for seed in range(200):
        seconds = (2e-6 + 1e-10 * sizes) * (1 + 0.01 * random.standard_normal(len(sizes)))
        (piece,) = fit(sizes, seconds, cuts=[], seed=seed).pieces
        assert piece.beta_interval is not None
        inside += piece.beta_interval[0] <= 1e-10 <= piece.beta_interval[1]
    assert 0.88 <= inside / 200 <= 0.99


def test_fits_reject_what_has_no_line() -> None:
    with pytest.raises(ValueError, match="at least 2 sizes"):
        fit([4], [1e-6])
    with pytest.raises(ValueError, match="ascending sizes"):
        fit([4, 4, 8], [1e-6, 1e-6, 1e-6])
    with pytest.raises(ValueError, match="times > 0"):
        fit([4, 8], [1e-6, 0.0])
    with pytest.raises(ValueError, match="produce a piece without sizes"):
        fit([4, 8, 16], [1e-6, 1e-6, 1e-6], cuts=[1024])
    with pytest.raises(ValueError, match="expected ascending sizes"):
        Curve((Piece(8, 8, 0, 0), Piece(4, 4, 0, 0)))


def test_impossible_parameters_are_named() -> None:
    s = SIZES[:6]
    small = Curve((Piece(4, 128, 1e-6, 0.0, points=6), *TWO.pieces[1:]))
    assert any("beta = 0" in line for line in warnings_of(small, s, np.full(6, 1e-6)))

    def lines(alpha: float, beta: float, t: np.ndarray, **more: object) -> str:
        return "\n".join(warnings_of(Curve((Piece(4, 128, alpha, beta, points=6),)), s, t, **more))  # type: ignore[arg-type]

    straight = 1e-6 + 1e-9 * s
    assert lines(1e-6, 1e-9, straight) == ""
    assert "is negative, so larger messages would be faster" in lines(1e-6, -1e-9, straight)
    assert "alpha = -1e-06 s is negative" in lines(-1e-6, 1e-9, straight)
    assert "is above the smallest time measured" in lines(2e-6, 1e-9, straight)
    assert "is below the smallest time measured" in lines(0.5e-6, 1e-9, straight)
    assert "1/beta = 500 GB/s is above the memory rate, 100 GB/s" in lines(1e-6, 2e-12, straight, memory_rate=1e11)
    assert "repetitions at 8 B vary by 50%" in lines(1e-6, 1e-9, straight, spread=[0, 0.5, 0, 0, 0, 0])
    assert lines(1e-6, 1e-9, straight, gap=1e-6) == ""
    assert "gap = 5e-06 s is above the smallest time measured, 1e-06 s" in lines(1e-6, 1e-9, straight, gap=5e-6)


def test_sizes_belong_to_the_piece_that_begins_below_them() -> None:
    assert TWO.seconds(0) == 1e-6
    assert TWO.seconds(10000) == 1e-6 + 4e-10 * 10000
    assert TWO.piece(16384).alpha == 6e-6
    assert TWO.seconds([4, 1 << 22]) == pytest.approx([1e-6 + 1.6e-9, 6e-6 + 5e-11 * (1 << 22)])


def test_injection_rate_gap_and_sharing_come_back_from_synthetic_times() -> None:
    random = np.random.default_rng(5)
    noise = lambda n: 1 + 0.01 * random.standard_normal(n)  # noqa: E731
    p, s = (grid.ravel() for grid in np.meshgrid(np.arange(1, 33), 2.0 ** np.arange(14, 21)))
    times = np.array([max_rate(TWO, b, int(n), 30e9) for n, b in zip(p, s, strict=True)]) * noise(len(p))
    rate, used = terms.injection_rate(p, s, times, TWO)
    assert rate == pytest.approx(30e9, rel=0.03)
    assert used == 28 * 7
    n, s = (grid.ravel() for grid in np.meshgrid([2, 4, 8, 16, 32], 2.0 ** np.arange(3, 12)))
    exact = 1e-6 + (n - 1) * 4e-7 + n * 4e-10 * s
    assert terms.gap(n, s, exact * noise(len(n)), TWO) == pytest.approx(4e-7, rel=0.03)
    p, s = (grid.ravel() for grid in np.meshgrid(np.arange(1, 33), 2.0 ** np.arange(3, 13)))
    exact = TWO.seconds(s) + (p - 1) * 2e-8 + s * np.maximum(0.0, p / 30e9 - 4e-10)
    assert terms.sender_gap(p, s, exact * (1 + 1e-4 * random.standard_normal(len(p))), TWO, 30e9) == pytest.approx(
        2e-8, rel=0.03
    )
    copy = postal(1e-5, 2e-11)
    k, s = (grid.ravel() for grid in np.meshgrid([2, 3, 4, 6], 2.0 ** np.arange(10, 20)))
    exact = 1e-5 * (1 + 0.3 * (k - 1)) + 2e-11 * s
    assert terms.engine_sharing(k, s, exact * noise(len(k)), copy) == pytest.approx(0.3, rel=0.03)
    assert terms.duplex([1 << 20, 1 << 21], 1.7 * TWO.seconds([1 << 20, 1 << 21]), TWO) == pytest.approx(1.7)
    assert terms.duplex([1 << 20], 0.5 * TWO.seconds([1 << 20]), TWO) == 1.0
    assert terms.queue([1, 2, 4, 8], 3e-9 * np.array([1, 4, 16, 64])) == pytest.approx(3e-9)
    assert terms.contention([1e6, 2e6], [1e-4, 2e-4]) == pytest.approx(1e-10)


def test_terms_reject_measurements_that_say_nothing() -> None:
    with pytest.raises(ValueError, match="no measurement has 5 senders"):
        terms.injection_rate([1, 2], [4, 4], [1e-6, 1e-6], TWO)
    with pytest.raises(ValueError, match="below the latency"):
        terms.injection_rate([5, 6], [4, 4], [1e-7, 1e-7], TWO)
    with pytest.raises(ValueError, match="at least two messages"):
        terms.gap([1], [4], [1e-6], TWO)
    with pytest.raises(ValueError, match="at least two of them"):
        terms.sender_gap([1], [4], [1e-6], TWO)
    with pytest.raises(ValueError, match="messages of 8 B were not measured with one sender"):
        terms.sender_gap([1, 2], [4, 8], [1e-6, 1e-6], TWO)
    with pytest.raises(ValueError, match="at least two simultaneous copies"):
        terms.engine_sharing([1], [4], [1e-6], TWO)


def test_messages_of_a_class_without_a_curve_are_rejected() -> None:
    only = MessageModel({"on-socket": TWO})
    assert only.seconds({"on-socket": 2, "off-node": 0}, 8) == pytest.approx(2 * TWO.seconds(8))
    with pytest.raises(KeyError):
        only.seconds({"off-node": 1}, 8)


def test_times_of_a_busy_machine_are_replaced_by_those_of_larger_messages() -> None:
    sizes = [1, 8, 64, 512, 4096]
    seconds, lines = without_disturbance(sizes, [1e-6, 5e-4, 2e-3, 1.5e-6, 3e-6])
    np.testing.assert_array_equal(seconds, [1e-6, 1.5e-6, 1.5e-6, 1.5e-6, 3e-6])
    assert lines == [
        "times at 2 sizes were up to 1.33e+03 times those of larger ones (at 64 B), which replace them: the machine "
        "was busy; measure it when it is idle"
    ]


def test_no_message_takes_longer_than_a_larger_one_and_small_differences_are_not_reported() -> None:
    seconds, lines = without_disturbance([1, 8, 64, 512], [1e-6, 2e-6, 1.2e-6, 3e-6])
    np.testing.assert_array_equal(seconds, [1e-6, 1.2e-6, 1.2e-6, 3e-6])
    assert lines == []


def test_an_injection_rate_is_not_fitted_to_one_measurement() -> None:
    """The last protocol begins at the largest size: the three largest sizes are used, or none."""
    first = FittedPiece(begin=0, end=1 << 20, alpha=2e-6, beta=1e-10)
    pieces = [first, FittedPiece(begin=1 << 20, end=1 << 21, alpha=5e-6, beta=5e-11)]
    measured = Measured(path="host", locality="off-node", pieces=pieces)
    seconds = {size: 8 * size / 1e10 + measured.curve.piece(size).alpha for size in (1 << 16, 1 << 18, 1 << 20)}
    for sizes, expected in ((tuple(seconds), 3), ((1 << 20,), 0)):
        rows = [(8, size, SimpleNamespace(minimum=seconds[size])) for size in sizes]
        survey = SimpleNamespace(injection=[], absent={})
        _Survey._inject(survey, measured, rows)  # type: ignore[arg-type]
        assert [limit.points for limit in survey.injection] == [expected] * bool(expected)
        if expected:
            assert survey.injection[0].rate == pytest.approx(1e10) and survey.injection[0].gap is None
            alone = measured.curve.seconds(8)
            # The bytes of several senders take longer at the rate of the node than those of one.
            small = [
                (p, 8, SimpleNamespace(minimum=alone + (p - 1) * 2e-8 + 8 * (p / 1e10 - 1e-10))) for p in (1, 2, 8)
            ]
            _Survey._inject(survey, measured, [*rows, *small])  # type: ignore[arg-type]
            assert survey.injection[1].rate == survey.injection[0].rate
            assert survey.injection[1].gap == pytest.approx(2e-8)
        else:
            reason = "only 1 of its measurements can be fitted; 3 are needed"
            assert survey.absent == {"injection of host off-node": reason}


def _added(sizes: list[int], seconds: list[float], omitted: int = 0) -> Measured:
    """Return a curve as a survey stores it; every round of the measurement found the same minima."""
    timings = [Timing(minimum, 0.0, 10, (minimum, minimum)) for minimum in seconds]
    survey = SimpleNamespace(paths=[], memory={"host": 1e10})
    return _Survey.add(survey, "host", "on-socket", [TimingSeries(sizes, timings, omitted)])  # type: ignore[arg-type]


def test_a_flat_curve_warns_and_is_not_trusted() -> None:
    """Two sizes on a busy machine, or times that larger messages replaced, say nothing about larger messages."""
    two = _added([1, 2], [1.2e-6, 1.2e-6], omitted=21)
    assert two.pieces[-1].beta == 0 and two.reproduced == [False, False] and trust_of([two]) == 0
    assert two.warnings[:2] == [
        "the time was too short for the 21 sizes above 2 B, which are extrapolated",
        "piece 1..2 B is flat: 1.2e-06 s for every size, so larger messages take longer than predicted; measure it "
        "for longer, or when the machine is idle",
    ]
    busy = _added([2**k for k in range(23)], [1.2e-6 * 3**k for k in range(22, 0, -1)] + [1.2e-6])
    assert [piece.beta for piece in busy.pieces] == [0.0] and trust_of([busy]) == 0
    assert any("is flat: 1.2e-06 s for every size" in line for line in busy.warnings)
    sizes = [2**k for k in range(23)]
    idle = _added(sizes, [1.2e-6 + 5e-10 * size for size in sizes])
    assert idle.warnings == [] and trust_of([idle]) == 1


def test_flat_small_messages_are_plausible() -> None:
    """64 B at the rate of memory take less than a tenth of the latency; 1 MB do not."""
    rising = Piece(1 << 21, 1 << 23, 2e-6, 2e-10)
    assert flat_pieces(Curve((Piece(1, 64, 1e-6, 0.0), rising)), 1e10) == []
    flat = Piece(1, 1 << 20, 1e-6, 1e-14)
    assert flat_pieces(Curve((flat, rising)), 1e10) == [flat]
    assert flat_pieces(Curve((flat, rising))) == []  # without a rate of memory no finite rate is implausible
    assert flat_pieces(Curve((rising, Piece(1 << 24, 1 << 24, 0.0, 1e-10)))) == []
