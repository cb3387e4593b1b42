# SPDX-License-Identifier: BSD-3-Clause
"""Ranks of two containers with the same name: no rank writes into the memory of the wrong process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import launch
import numpy as np
import pytest
from flow_cases import WATER, iolet_model, tilted_tube

from seiche.backend import open_backend
from seiche.domain import rank_locations
from seiche.domain.world import World
from seiche.errors import TransportError
from seiche.flow import Solver
from seiche.halo import HaloExchange, HaloPlan
from seiche.halo.transports import memory, single_copy
from seiche.halo.transports.shared_memory import SharedMemoryRuntime
from seiche.machine.collectives import Exchange


def exchanged(world: World, strategy: str, processes: int = 1) -> tuple[str, list[float]]:
    """Return the way that an exchange of 10 * rank + k took, and what arrived."""
    arrays = world.size // processes
    holds, own = world.rank % processes == 0, world.rank // processes
    send = 10.0 * own + np.arange(arrays) if holds else None
    receive = np.zeros(arrays) if holds else None
    with Exchange(world, send, receive, strategy=strategy, processes=processes) as exchange:  # type: ignore[arg-type]
        exchange()
        way = exchange.decision.transport
    return way, [] if receive is None else receive.tolist()


@pytest.mark.ranks(2)
def test_a_rank_of_another_host_of_the_same_name_gets_messages(ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World.from_mpi()
    if world.rank:
        monkeypatch.setattr(rank_locations, "boot_id", lambda: "another kernel")
    backend, other = open_backend("cpu", 1), 1 - world.rank
    plan = HaloPlan((other,), (np.array([0], np.uint32),), (np.array([1], np.uint32),))
    exchange = HaloExchange(backend, world, plan, "float64")
    array = backend.upload(np.array([5.0 + world.rank, -1.0]))
    exchange.start(array)
    exchange.finish(array)
    assert exchange.transport_name == "host"
    assert array.tolist() == [5.0 + world.rank, 5.0 + other]
    exchange.close()
    with pytest.raises(TransportError, match="ranks 0 and 1 are on different hosts or containers called "):
        exchanged(world, "peer")
    assert exchanged(world, "auto") == ("mpi", [world.rank, 10.0 + world.rank])


@pytest.mark.ranks(2)
def test_a_process_of_the_same_number_is_not_taken_for_the_rank(
    ranks: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Both ranks give the number of the reader, as ranks of two containers may: the reader finds itself there."""
    world = World.from_mpi()
    numbers = world.allgather(os.getpid())
    named = single_copy.this_process()._replace(pid=numbers[1 - world.rank])
    monkeypatch.setattr(memory, "this_process", lambda: named)
    rejected = r"(belongs to another process|Bad address|not permitted)"
    with pytest.raises(TransportError, match=rf"strategy 'peer': rank 0 cannot map the array of rank 1: .*{rejected}"):
        exchanged(world, "peer")
    with caplog.at_level("INFO", "seiche.machine"):
        way, values = exchanged(world, "auto", processes=2)
    assert (way, values) == ("extra-message", [0.0] if world.rank == 0 else [])
    output = [record.message for record in caplog.records if "duplicate-pointer is not available: " in record.message]
    assert len(output) == (1 if world.rank == 0 else 0)


@pytest.mark.ranks(2)
def test_the_report_says_why_memory_of_a_peer_is_not_used(ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks that seem to have a GPU each, whose memory cannot be mapped: messages take another path."""
    world = World.from_mpi()
    places = [rank_locations.RankLocation("node", f"0000:{rank}") for rank in range(2)]
    monkeypatch.setattr("seiche.halo.transports.rank_locations", lambda backend, world: places)

    def deny(*_: object) -> int:
        raise PermissionError("not permitted")

    monkeypatch.setattr(SharedMemoryRuntime, "ipcOpenMemHandle", deny)
    solver = Solver(tilted_tube(), iolet_model(WATER), world=world, threads=1)
    solver.advance(1)
    assert solver.transport == "host"
    reason = "transport peer is not used: transport 'peer': rank 0 cannot map the memory of rank 1: not permitted"
    assert solver.decisions[0].startswith(reason)
    assert [line.partition(" is not used")[0] for line in solver.decisions] == ["transport peer", "transport nccl"]
    solver.close()


SCRIPT = """
import os
import sys
from pathlib import Path

import numpy as np
from seiche.domain.rank_locations import hosts_of
from seiche.domain.world import World
from seiche.errors import TransportError
from seiche.machine.collectives import Exchange

world = World.from_mpi()
assert len(set(hosts_of(world))) == 2
assert set(world.allgather(os.getpid())) == {os.getpid()}
send, receive = 10.0 * world.rank + np.arange(2), np.zeros(2)
try:
    Exchange(world, send, receive, strategy="peer")
except TransportError as error:
    assert "on different hosts or containers called" in str(error), error
with Exchange(world, send, receive, strategy="auto") as exchange:
    exchange()
assert receive.tolist() == [world.rank, 10.0 + world.rank], receive
Path(sys.argv[1], f"rank {world.rank}").touch()
"""


def test_ranks_in_process_spaces_of_their_own_exchange(tmp_path: Path) -> None:
    apart = [shutil.which("unshare") or "", "--uts", "--pid", "--fork", "--kill-child"]
    if not apart[0] or subprocess.run([*apart, "true"], capture_output=True, check=False).returncode:
        pytest.skip("namespaces cannot be made here (unshare)")
    (tmp_path / "ranks.py").write_text(SCRIPT)
    command = [launch.mpiexec(), "-n", "2", *apart, sys.executable, str(tmp_path / "ranks.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=launch.environment())
    assert done.returncode == 0, done.stdout + done.stderr
    assert {path.name for path in tmp_path.glob("rank *")} == {"rank 0", "rank 1"}
