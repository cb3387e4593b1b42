# SPDX-License-Identifier: BSD-3-Clause
"""Job outputs of the BenchPress suite for tests: the times of `validation/data/summit.tsv` in the raw files' format.

Text of tab-separated columns, a tab at the end of each line. `ping_pong` and `memcpy` have a row of 18 times for each
pair of ranks or devices. The table has the smallest time of each class of pairs. In the files written here, one row of
the class contains this time, and the other rows contain longer times. `node_pong` and `maxrate` have a row for each
size, with a time for each number of senders. A node has 6 ranks and 6 GPUs, half of them on each of two sockets.
"""

from __future__ import annotations

import itertools
from pathlib import Path

TABLE = Path(__file__).parent / "validation" / "data" / "summit.tsv"
LOG = "app 0: log of the batch system\n\n"

Times = list[float]
#: Seconds by (benchmark, kind, class or size in words).
Table = dict[tuple[str, str, str], Times]


def summit_times() -> Table:
    """Return the times measured on Summit."""
    rows = (line.split("\t") for line in TABLE.read_text().splitlines() if not line.startswith("#"))
    return {(name, kind, of): [float(time) for time in times] for name, kind, of, *times in rows}


def write_summit_files(folder: Path) -> None:
    """Write `ping_pong.out`, `memcpy.out`, `node_pong.out` and `maxrate.out` into `folder`."""
    times = summit_times()
    files = {"ping_pong": _ping_pongs(times), "memcpy": _copies(times)}
    files |= {name: _injection(times, name) for name in ("node_pong", "maxrate")}
    for name, lines in files.items():
        (folder / f"{name}.out").write_text("\n".join([*lines, LOG]))


def _injection(times: Table, name: str) -> list[str]:
    lines = []
    for kind, header in (("cpu", "Timing Max-Rate CPU Ping-Pongs"), ("gpu", "Timing GPU Max-Rate Ping Pongs")):
        rows = [(words, row) for (its, of, words), row in times.items() if (its, of) == (name, kind)]
        lines += [header, *(_line(f"Size {words}", row) for words, row in rows), ""]
    return lines


def _ping_pongs(times: Table) -> list[str]:
    sections = {
        "cpu": ("Profiling Standard CPU Ping-Pongs:", "CPU {} and CPU {}:"),
        "gpu": ("Profiling GPU Ping-Pongs", "GPU on rank {} and GPU on rank {}:"),
    }
    lines = []
    for kind, (header, label) in sections.items():
        labels = {}
        for a, b in itertools.product(range(6), range(12)):
            if a < b:
                labels[label.format(a, b)] = "off-node" if b > 5 else "on-socket" if _near(a, b) else "on-node"
        lines += [header, *_section(times, "ping_pong", kind, labels), ""]
    return lines


def _copies(times: Table) -> list[str]:
    def of(first: int, second: int) -> str:
        return "on-socket" if _near(first, second) else "off-socket"

    devices = range(6)
    host = {f"CPU {cpu}, GPU {gpu}:": of(cpu, gpu) for cpu, gpu in itertools.product(devices, devices)}
    pairs = itertools.product(devices, itertools.combinations(devices, 2))
    peers = {f"CPU {cpu}, GPU {a} <-> GPU {b}:": of(a, b) for cpu, (a, b) in pairs}
    lines = []
    sections = ("h2d", "Host To Device", host), ("d2h", "Device To Host", host), ("d2d", "Device To Device", peers)
    for kind, header, labels in sections:
        lines += [f"Memcpy {header}:", *_section(times, "memcpy", kind, labels), ""]
    return lines


def _near(first: int, second: int) -> bool:
    return first // 3 == second // 3


def _section(times: Table, name: str, kind: str, labels: dict[str, str]) -> list[str]:
    """Return a line for each label; `labels` gives its class. One row of a class has the smallest time of each size."""
    lines = []
    for label, of in labels.items():
        rows = [other for other, its in labels.items() if its == of]
        row = rows.index(label)
        smallest = times[name, kind, of]
        lines.append(_line(label, [t if i % len(rows) == row else t * (1.1 + row) for i, t in enumerate(smallest)]))
    return lines


def _line(label: str, row: Times) -> str:
    return "\t".join([label, *(f"{time:.6e}" for time in row), ""])
