# SPDX-License-Identifier: BSD-3-Clause
"""`seiche bench benchpress`: generation of a machine file from job outputs of the BenchPress suite."""

from __future__ import annotations

from pathlib import Path

from seiche.bench.machine import check_new_output, show
from seiche.errors import CaseError, FormatError
from seiche.io.formats.benchpress import Injection, Minima, read_copies, read_injection, read_ping_pongs
from seiche.machine.laws import terms
from seiche.machine.laws.file import (
    SCHEMA,
    UNITS,
    VERSION,
    FittedPiece,
    Injected,
    Machine,
    Measured,
    PathName,
    write_machine,
)
from seiche.machine.laws.fit import fit, warnings_of
from seiche.machine.laws.models import Locality
from seiche.observe.origin import commit

_MESSAGES: dict[str, PathName] = {"cpu": "host", "gpu": "device_mpi"}
#: Minimum number of message sizes of a protocol that is used for the injection rate.
_MIN_POINTS = 3


def main(
    ping_pong: Path,
    *,
    memcpy: Path | None = None,
    node_pong: Path | None = None,
    gpus: int = 6,
    sockets: int = 2,
    name: str = "benchpress",
    output: Path = Path("machine.json"),
) -> Machine:
    """Fit the laws of a machine to its job outputs, print them and write the machine file; return the machine.

    Args:
        ping_pong: times of messages between pairs of ranks.
        memcpy: times of copies between host and GPUs.
        node_pong: times of messages from several senders on a node.
        gpus: number of ranks, and of GPUs, per node.
        sockets: number of sockets per node.
        name: name of the machine.
        output: the machine file; it must not exist.

    Raises:
        CaseError: the file exists, or its folder is missing or not writable.
        FormatError: a file is not the output of its benchmark.
        OSError: a file cannot be read or written.
    """
    check_new_output(output)
    if gpus < 1 or not 1 <= sockets <= gpus:
        raise CaseError(f"--gpus {gpus} --sockets {sockets}: a node has at least one GPU on each socket")
    messages = read_ping_pongs(ping_pong, gpus, sockets)
    paths = [_measured(_MESSAGES[kind], pair_locality, data) for (kind, pair_locality), data in messages.items()]
    for (kind, locality), data in (read_copies(memcpy, gpus, sockets) if memcpy is not None else {}).items():
        if kind != "d2d":  # copies between two GPUs include one wait for a copy in each direction
            paths.append(_measured(kind, "on-socket" if locality == "on-socket" else "on-node", data))
    by_path = {(entry.path, entry.locality): entry for entry in paths}
    injection = []
    for kind, rows in (read_injection(node_pong, shared=True) if node_pong is not None else {}).items():
        one_sender = by_path.get((_MESSAGES[kind], "off-node"))
        if one_sender is None:
            raise FormatError(ping_pong, "whole file", f"no {kind} messages between nodes, which {node_pong} requires")
        injection.append(_injected(node_pong, one_sender, rows))
    files = ", ".join(path.name for path in (ping_pong, memcpy, node_pong) if path is not None)
    machine = Machine(
        schema_=SCHEMA,
        version=VERSION,
        units=UNITS,
        name=name,
        source=f"BenchPress: {files}",
        commit=commit(),
        hardware={"sockets": sockets},
        paths=paths,
        injection=injection,
    )
    write_machine(output, machine)
    show(machine)
    print(f"seiche: wrote {output}")
    return machine


def _measured(path: str, locality: str, data: Minima) -> Measured:
    sizes, seconds = data.sizes.tolist(), data.seconds
    curve = fit(sizes, seconds)
    return Measured(
        path=path,  # type: ignore[arg-type]
        locality=locality,  # type: ignore[arg-type]
        pieces=[FittedPiece(**vars(piece)) for piece in curve.pieces],
        sizes=sizes,
        seconds=seconds.tolist(),
        warnings=warnings_of(curve, sizes, seconds),
    )


def _injected(source: Path | None, one_sender: Measured, rows: Injection) -> Injected:
    locality: Locality = "off-node"
    min_senders = min(terms.SATURATING_SENDERS, int(rows.senders.max()))
    # If the last protocol has only one or two sizes, its latency is not reliable.
    protocol = next((p for p in reversed(one_sender.pieces) if p.points >= _MIN_POINTS), one_sender.pieces[0])
    try:
        rate, points = terms.injection_rate(
            rows.senders,
            rows.size,
            rows.seconds,
            one_sender.curve,
            total=rows.total,
            min_senders=min_senders,
            min_size=protocol.begin,
        )
    except ValueError as error:
        raise FormatError(source, "whole file", f"no injection rate: {error}") from None
    return Injected(path=one_sender.path, locality=locality, rate=rate, senders=int(rows.senders.max()), points=points)
