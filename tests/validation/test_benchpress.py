# SPDX-License-Identifier: BSD-3-Clause
"""The published measurements of Summit (arXiv:2010.10378) in files of the BenchPress suite, and what they give."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from benchpress_files import summit_times, write_summit_files
from seiche.cli import main
from seiche.errors import FormatError
from seiche.io.formats.benchpress import read_collectives, read_copies, read_injection, read_ping_pongs
from seiche.machine.laws.curve import Curve
from seiche.machine.laws.file import read_machine
from seiche.machine.laws.fit import errors, fit, least_squares, warnings_of
from seiche.machine.laws.terms import injection_rate, sender_gap

PAPER_CUTS = [256, 16384]

FITS = {
    ("cpu", "on-socket"): [(3.53e-7, 2.76e-10), (4.79e-7, 6.97e-11), (2.52e-6, 3.30e-11)],
    ("cpu", "on-node"): [(9.08e-7, 1.46e-9), (1.17e-6, 2.24e-10), (5.90e-6, 1.45e-10)],
    ("cpu", "off-node"): [(1.38e-6, 4.25e-10), (1.86e-6, 3.95e-10), (6.57e-6, 8.50e-11)],
    ("gpu", "on-socket"): [(1.68e-5, 1.87e-11)],
    ("gpu", "on-node"): [(1.82e-5, 2.04e-11)],
    ("gpu", "off-node"): [(4.96e-6, 1.69e-10)],
}
COPIES = {
    ("h2d", "on-socket"): (1.10e-5, 2.38e-11),
    ("d2h", "on-socket"): (1.09e-5, 2.36e-11),
    ("h2d", "off-socket"): (1.27e-5, 2.72e-11),
    ("d2h", "off-socket"): (1.25e-5, 2.72e-11),
}


@pytest.fixture(scope="module")
def summit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("summit")
    write_summit_files(folder)
    return folder


def three_digits(value: float) -> float:
    return float(f"{value:.3g}")


def test_times_of_a_class_are_the_smallest_over_its_rows(summit: Path) -> None:
    read = {"ping_pong": read_ping_pongs(summit / "ping_pong.out"), "memcpy": read_copies(summit / "memcpy.out")}
    expected = {key: times for key, times in summit_times().items() if key[0] in read}
    result = {(name, *key): data.seconds.tolist() for name, classes in read.items() for key, data in classes.items()}
    assert result == expected


def test_senders_share_the_words_of_node_pong_and_have_all_of_maxrate(summit: Path) -> None:
    data = read_injection(summit / "node_pong.out", shared=True)["cpu"]
    small = data.total == 16 * 4
    assert data.senders[small].tolist() == list(range(1, 17))  # a sender needs a word
    assert data.size[small].tolist() == [4 * (16 // senders) for senders in range(1, 17)]
    assert data.seconds[small].tolist() == summit_times()["node_pong", "cpu", "16"]
    data = read_injection(summit / "maxrate.out", shared=False)["gpu"]
    small = data.size == 4
    assert data.senders[small].tolist() == [1, 2, 3, 4, 5, 6]
    assert data.total[small].tolist() == [4, 8, 12, 16, 20, 24]
    assert data.seconds[small].tolist() == summit_times()["maxrate", "gpu", "1"]


@pytest.mark.parametrize("key", list(FITS), ids=" ".join)
def test_plain_fits_with_the_cuts_of_the_paper(summit: Path, key: tuple[str, str]) -> None:
    data = read_ping_pongs(summit / "ping_pong.out")[key]
    curve = fit(data.sizes, data.seconds, cuts=PAPER_CUTS if key[0] == "cpu" else [], relative=False)
    assert [(three_digits(p.alpha), three_digits(p.beta)) for p in curve.pieces] == FITS[key]


@pytest.mark.parametrize("key", list(COPIES), ids=" ".join)
def test_plain_fits_of_copies(summit: Path, key: tuple[str, str]) -> None:
    data = read_copies(summit / "memcpy.out")[key]
    alpha, beta = least_squares(data.sizes, data.seconds)
    assert (three_digits(alpha), three_digits(beta)) == COPIES[key]


@pytest.mark.parametrize(
    ("key", "median", "largest", "begins"),
    [
        (("cpu", "on-socket"), 0.8, 4.8, [4, 256, 4096, 16384]),
        (("cpu", "on-node"), 1.5, 6.9, [4, 512, 4096, 16384]),
        (("cpu", "off-node"), 1.5, 4.9, [4, 256, 2048, 32768]),
        (("gpu", "on-socket"), 0.2, 0.6, [4, 65536]),
        (("gpu", "on-node"), 0.2, 0.6, [4, 131072]),
        (("gpu", "off-node"), 0.7, 3.3, [4, 16384, 524288]),
    ],
)
def test_protocols_found_in_the_measurements(
    summit: Path, key: tuple[str, str], median: float, largest: float, begins: list[int]
) -> None:
    """The last one has a piece of one point: 256 and 512 KiB took 30.7 and 104.8 us, a step between protocols."""
    data = read_ping_pongs(summit / "ping_pong.out")[key]
    curve = fit(data.sizes, data.seconds)
    result = 100 * errors(curve, data.sizes, data.seconds)
    assert [piece.begin for piece in curve.pieces] == begins
    assert np.median(result) <= median + 0.05
    assert result.max() <= largest + 0.05
    for piece in curve.pieces:
        for value, interval in ((piece.alpha, piece.alpha_interval), (piece.beta, piece.beta_interval)):
            assert interval is None or interval[0] <= value <= interval[1]


def test_the_poor_fit_of_gpu_messages_off_node_is_flagged(summit: Path) -> None:
    data = read_ping_pongs(summit / "ping_pong.out")["gpu", "off-node"]
    plain = fit(data.sizes, data.seconds, cuts=[], relative=False)
    (line,) = warnings_of(plain, data.sizes, data.seconds)
    assert "alpha = 4.96e-06 s is below the smallest time measured, 6" in line
    assert errors(plain, data.sizes, data.seconds).max() == pytest.approx(0.619, abs=5e-4)


def rendezvous(summit: Path, kind: str) -> Curve:
    data = read_ping_pongs(summit / "ping_pong.out")[kind, "off-node"]
    return fit(data.sizes, data.seconds, cuts=PAPER_CUTS if kind == "cpu" else [], relative=False)


@pytest.mark.parametrize(
    ("name", "kind", "rate", "points"),
    [
        ("node_pong.out", "cpu", 33.3, 44),
        ("node_pong.out", "gpu", 19.6, 6),
        ("maxrate.out", "cpu", 24.2, 216),
        ("maxrate.out", "gpu", 14.4, 12),
    ],
)
def test_injection_limits_of_a_node(summit: Path, name: str, kind: str, rate: float, points: int) -> None:
    data = read_injection(summit / name, shared=name.startswith("node_pong"))[kind]
    result, used = injection_rate(
        data.senders, data.size, data.seconds, rendezvous(summit, kind), total=data.total, min_size=16384
    )
    assert (round(result / 1e9, 1), used) == (rate, points)


@pytest.mark.parametrize(("kind", "path"), [("cpu", "host"), ("gpu", "device_mpi")])
def test_the_latency_of_further_senders_on_summit_is_that_of_the_measurements(
    summit: Path, kind: str, path: Literal["host", "device_mpi"]
) -> None:
    """Of all messages below the last protocol, with the published parameters of single messages and rates of nodes."""
    data, machine = read_injection(summit / "maxrate.out", shared=False)[kind], read_machine("summit")
    small = data.size < 16384
    curve, rate = machine.curve(path, "off-node"), machine.node_rate(path)
    result = sender_gap(data.senders[small], data.size[small], data.seconds[small], curve, rate)
    (stored,) = (entry.gap for entry in machine.injection if entry.path == path)
    assert result == pytest.approx(stored, rel=0.01)


def test_node_rates_by_senders(summit: Path) -> None:
    data = read_injection(summit / "maxrate.out", shared=False)["cpu"]
    largest = data.size == 4 * 131072
    rates = dict(zip(data.senders[largest], data.total[largest] / data.seconds[largest] / 1e9, strict=True))
    expected = {1: 10.3, 2: 14.5, 3: 21.3, 4: 16.7, 6: 15.6, 10: 21.3, 20: 23.7, 40: 24.3}
    assert {senders: round(rates[senders], 1) for senders in expected} == expected


ROW = "CPU 0 and CPU 1:\t" + "\t".join(["1e-6"] * 18) + "\t\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no times in this file"),
        ("Profiling Standard CPU Ping-Pongs:\nCPU 0 and CPU 1:\t1e-6\t\n", "line 2: 1 times; a row has 2 to 40"),
        (ROW + ROW.replace("\t1e-6", "", 1), "line 2: 17 times, but earlier rows have 18"),
        (ROW.replace("CPU 1:", "CPU 1:\twarning:"), "line 1: a column is not a number"),
        (ROW.replace("CPU 1", "disk"), "line 1: 'CPU 0 and disk:' is not a pair of ranks"),
        (ROW.replace("1e-6", "fast", 1), "line 1: a column is not a number"),
        (ROW.replace("1e-6", "-1e-6", 1), "line 1: a time is not positive"),
    ],
)
def test_broken_measurements_are_rejected(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "ping_pong.out"
    path.write_text(text)
    with pytest.raises(FormatError, match=message):
        read_ping_pongs(path)


def test_raw_files_have_warnings_and_rows_of_more_sizes(tmp_path: Path) -> None:
    path, times = tmp_path / "ping_pong.out", [1e-6 * 1.1**k for k in range(24)]
    row = "\t".join(map(repr, times))
    warning = "[h12n03:01234] mca_base_component_find: unable to open mca_btl: ignored\nWARNING:\tno such device\n"
    path.write_text(f"{warning}Profiling GPU Ping-Pongs\nGPU on rank 0 and GPU on rank 1:\t{row}\t\n{warning}")
    data = read_ping_pongs(path)["gpu", "on-socket"]
    assert data.seconds.tolist() == times
    assert data.sizes.tolist() == [4 * 2**k for k in range(24)]


def test_the_command_makes_a_machine_file_of_job_outputs(summit: Path, tmp_path: Path) -> None:
    words = ["bench", "benchpress", str(summit / "ping_pong.out"), "--memcpy", str(summit / "memcpy.out")]
    words += ["--node-pong", str(summit / "node_pong.out"), "--name", "summit", "--json", str(tmp_path / "m.json")]
    assert main(words) == 0
    machine = read_machine(tmp_path / "m.json")
    classes = {(entry.path, entry.locality) for entry in machine.paths}
    assert classes == {
        *((path, where) for path in ("host", "device_mpi") for where in ("on-socket", "on-node", "off-node")),
        *((path, where) for path in ("h2d", "d2h") for where in ("on-socket", "on-node")),
    }
    # With latencies of the fitted protocols, not of the paper's: 33.3 and 19.6 GB/s above.
    rates = {limit.path: limit.rate / 1e9 for limit in machine.injection}
    assert rates == {"host": pytest.approx(30.4, abs=0.05), "device_mpi": pytest.approx(23.3, abs=0.05)}
    known = read_machine("summit").curve("host", "off-node")
    sizes = [4**k for k in range(1, 10)]
    np.testing.assert_allclose(machine.curve("host", "off-node").seconds(sizes), known.seconds(sizes), rtol=0.35)
    assert main(words) == 2  # it exists


def test_files_of_another_kind_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "x.out"
    path.write_text(ROW)
    with pytest.raises(FormatError, match="'CPU 0 and CPU 1:' is not the name of a memory copy benchmark"):
        read_copies(path)
    with pytest.raises(FormatError, match="'CPU 0 and CPU 1:' is not a size"):
        read_injection(path, shared=True)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(FormatError, match="byte 0: not plain text"):
        read_copies(path)
    path.write_text(ROW + "app 0: log of the batch system\nanything\t?\n")
    assert read_ping_pongs(path)["cpu", "on-socket"].seconds.tolist() == [1e-6] * 18


COLLECTIVES = """Cuda-Aware Alltoallv:
1e-05\t2e-05\t

3-Step Alltoallv:
Nmsgs 12, Bytes 48
3e-05\t4e-05\t

3-Step Alltoallv, Extra Message:
5e-05\t6e-05\t

3-Step Alltoallv, Duplicate DevPtr:
-1\t7e-05\t


"""


def test_collectives_are_read_by_section_and_strategy(tmp_path: Path) -> None:
    path = tmp_path / "all_to_all_v_2.1.out"
    path.write_text("WARNING: a device is busy\n" + COLLECTIVES + COLLECTIVES.replace("1e-05", "8e-05"))
    first, second = read_collectives(path)
    assert {name: times.tolist()[1] for name, times in first.items()} == {
        "device": 2e-5,
        "three-step": 4e-5,
        "extra-message": 6e-5,
        "duplicate-pointer": 7e-5,
    }
    assert (first["device"][0], second["device"][0]) == (1e-5, 8e-5)
    assert np.isnan(first["duplicate-pointer"][0])


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("5e-05", "-5e-05", "line 9: a time is not positive"),
        ("5e-05\t", "", "whole file: expected one row of equal length for each of four strategies"),
        ("Cuda-Aware", "Device", "whole file: expected one row of equal length for each of four strategies"),
    ],
)
def test_collectives_that_are_broken_are_named(tmp_path: Path, old: str, new: str, expected: str) -> None:
    path = tmp_path / "all_to_all_2.1.out"
    path.write_text(COLLECTIVES.replace(old, new))
    with pytest.raises(FormatError, match=re.escape(expected)):
        read_collectives(path)
