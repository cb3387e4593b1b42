# SPDX-License-Identifier: BSD-3-Clause
"""Exchanges in which neighbours of a host and those of other hosts take different paths, on imitated nodes."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nodes
import numpy as np
import pytest
from cell_cases import BOX as CELL_BOX
from cell_cases import PLACES, blood
from cell_cases import assert_same as assert_same_cells
from flow_cases import blood_in_a_tilted_tube
from flow_runs import assert_same as assert_same_flow
from launch import run_ranks
from test_halo_ranks import Model, exchanges_equal_the_dense_reference, two_exchanges_overlap
from wave_cases import solver_of, start

from seiche.backend import open_backend
from seiche.domain.rank_locations import RankLocation, hosts_of
from seiche.domain.world import World
from seiche.flow import Solver
from seiche.halo import HaloExchange
from seiche.halo.transports import nccl as nccl_module
from seiche.halo.transports import open_transport, peer
from seiche.halo.transports.combined import CombinedTransport
from seiche.halo.transports.shared_memory import SharedMemoryRuntime
from seiche.machine.in_use import VARIABLE, predicted_transport_times
from seiche.machine.laws.file import FittedPiece, Measured, PathName, read_machine, write_machine
from seiche.machine.laws.models import Locality

COMBINED = ("peer+host", "peer+device_mpi", "peer+two_step", "peer+three_step")
TRANSPORTS = ("two_step", "three_step", *COMBINED)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(
    "layout", ["2+1", *(pytest.param(other, marks=pytest.mark.nightly) for other in ("", "1+1+1", "1+3", "2+1+2"))]
)
def test_messages_equal_the_dense_reference(transport: str, layout: str) -> None:
    ranks = sum(nodes.sizes_of(layout)) if layout else 3
    run_ranks(ranks, exchanges_equal_the_dense_reference, transport, "cpu", layout=layout)
    run_ranks(ranks, two_exchanges_overlap, "cpu", transport, layout=layout)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_ranks_on_cpus_store_into_the_memory_of_each_other(ranks: int) -> None:
    run_ranks(ranks, exchanges_equal_the_dense_reference, "peer", "cpu", layout="")
    run_ranks(ranks, two_exchanges_overlap, "cpu", "peer", layout="")


@pytest.mark.ranks(nodes=("2+1", "2+2"))
def test_each_pair_takes_the_path_of_its_hosts(ranks: int, node_layout: str) -> None:
    world, backend = World.from_mpi(), open_backend("cpu", 1)
    others = tuple(rank for rank in range(ranks) if rank != world.rank)
    sizes = tuple(8 * (1 + world.rank + other) for other in others)
    hosts = hosts_of(world)
    transport = open_transport("peer+host", backend, world, peers=others, sent=sizes, received=sizes)
    assert isinstance(transport, CombinedTransport)
    assert transport.name == "peer+host" and not transport.capturable
    near = tuple(other for other in others if hosts[other] == hosts[world.rank])
    assert transport._parts[True].peers == near
    assert transport._parts[False].peers == tuple(other for other in others if other not in near)
    transport.close()


@pytest.mark.ranks(3, nodes=("3+1",), one_host=True)
def test_a_pair_that_cannot_map_memory_takes_the_other_path(
    ranks: int, node_layout: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rank 1 cannot open the memory of rank 0; both then use the other path, and all other pairs are as before."""
    world, backend = World.from_mpi(), open_backend("cpu", 1)
    opened, processes = SharedMemoryRuntime.ipcOpenMemHandle, world.allgather(str(os.getpid()).encode())

    def deny(runtime: SharedMemoryRuntime, handle: bytes, flags: int) -> int:
        if world.rank == 1 and handle.split()[0] == processes[0]:
            raise PermissionError("not permitted")
        return opened(runtime, handle, flags)

    monkeypatch.setattr(SharedMemoryRuntime, "ipcOpenMemHandle", deny)
    model = Model(world.size, 11)
    exchange = HaloExchange(backend, world, model.plan(world), "float64", "peer+host")
    array = model.start_array(backend, "float64")
    exchange.start(array)
    exchange.finish(array)
    model.check_gathered(world.rank, array, "float64")
    near = {0: {0, 2}, 1: {1, 2}, 2: {0, 1, 2}, 3: {3}}[world.rank]
    (direction,) = exchange._directions.values()
    assert isinstance(direction.transport, CombinedTransport)
    assert direction.transport._near == near & set(exchange.plan.peers)
    exchange.close()


class FakeNccl:
    """The calls of NCCL that a transport makes, by MPI between host memories; a group is complete when it ends."""

    NCCL_UINT8 = 0
    NcclError = RuntimeError

    def __init__(self, world: World) -> None:
        self.comm, self.requests = world.comm.Dup(), list[Any]()

    def groupStart(self) -> None:  # noqa: N802
        assert not self.requests

    def groupEnd(self) -> None:  # noqa: N802
        for request in self.requests:
            request.Wait()
        self.requests = []

    def send(self, address: int, size: int, kind: int, rank: int, stream: int) -> None:
        self.requests.append(self.comm.Isend(peer.bytes_at(address, size), rank))

    def recv(self, address: int, size: int, kind: int, rank: int, stream: int) -> None:
        self.requests.append(self.comm.Irecv(peer.bytes_at(address, size), rank))

    def destroy(self) -> None:
        assert not self.requests


@pytest.mark.ranks(nodes=("2+1", "2+2"))
@pytest.mark.parametrize("between", ["nccl", "device_mpi", "host", "two_step"])
def test_gpus_of_several_hosts_take_the_path_of_their_pair(
    between: str, ranks: int, node_layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path of GPUs, with host memory in the place of device memory, and MPI in the place of NCCL."""
    world, backend = World.from_mpi(), open_backend("cpu", 1)
    places = [RankLocation(host, f"0000:{rank}") for rank, host in enumerate(hosts_of(world))]
    for module in ("peer", "nccl", "combined"):
        monkeypatch.setattr(f"seiche.halo.transports.{module}.rank_locations", lambda backend, world: places)
    monkeypatch.setattr("seiche.halo.transports.rank_locations", lambda backend, world: places)
    runtime = SharedMemoryRuntime()
    monkeypatch.setattr(peer, "cuda_runtime", lambda: runtime)
    library = FakeNccl(world)
    monkeypatch.setattr(nccl_module, "nccl_library", lambda: library)
    monkeypatch.setattr(nccl_module, "join", lambda world, library: library)
    idle = lambda *event: None  # noqa: E731
    queue = SimpleNamespace(stream=SimpleNamespace(ptr=0), wait=idle, record=idle, synchronize=idle)
    monkeypatch.setattr(type(backend), "stream", lambda self, **options: queue)
    model = Model(world.size, 5)
    exchange = HaloExchange(backend, world, model.plan(world), "float32", f"peer+{between}")  # type: ignore[arg-type]
    array = model.start_array(backend, "float32")
    for _ in range(9):
        exchange.start(array)
        exchange.finish(array)
    model.check_gathered(world.rank, array, "float32")
    exchange.check()
    assert exchange.transport_name == f"peer+{between}"
    assert exchange.capturable == (between == "nccl")
    assert next(iter(exchange._directions.values())).transport.buffer_count == 4
    exchange.close()
    # Without a machine file the order of trial finds the same pair of paths.
    automatic = HaloExchange(backend, world, model.plan(world), "float32")
    automatic.prepare(array)
    assert automatic.transport_name == "peer+nccl"
    automatic.close()
    library.comm.Free()


@pytest.mark.ranks(nodes=("2+1",))
@pytest.mark.parametrize("transport", ["peer+host", "peer+three_step", "two_step"])
def test_flow_waves_and_cells_have_the_bits_of_one_rank(transport: str, ranks: int, node_layout: str) -> None:
    world = World.from_mpi()
    sites, model = blood_in_a_tilted_tube()
    for layout in ("list-aa", "tiles-8"):
        reference = Solver(sites, model, threads=1)
        solver = Solver(sites, model, layout=layout, world=world, threads=1, transport=transport)
        reference.advance(21)
        solver.advance(21)
        assert_same_flow(solver, reference)
        assert solver.transport == transport
        solver.close()
    expected, waves = solver_of("acoustic", World.serial()), solver_of("acoustic", world, transport=transport)
    for each in (expected, waves):
        start(each)
        each.advance(3)
    np.testing.assert_array_equal(waves.values(), expected.values()[waves.mesh.number])
    assert waves.ghosts is not None and waves.ghosts.exchanges[0].transport_name == transport
    waves.close()
    alone, shared = blood(CELL_BOX, PLACES), blood(CELL_BOX, PLACES, world=world, transport=transport)
    for each in (alone, shared):
        each.advance(5)
    assert_same_cells(shared, alone)
    shared.solver.close()


@pytest.mark.ranks(nodes=("2+2",))
def test_the_machine_file_chooses_joined_messages(
    ranks: int, node_layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow network: each message saved is worth the additional ones within a host. Measured times are predicted."""
    world, backend = World.from_mpi(), open_backend("cpu", 1)
    laws: list[tuple[PathName, Locality, float]] = [("host", "on-socket", 1e-6), ("host", "on-node", 1e-6)]
    laws += [("shared_exchange", "on-socket", 5e-7), ("shared_exchange", "on-node", 5e-7), ("host", "off-node", 1e-3)]
    paths = [
        Measured(path=path, locality=place, gap=alpha, pieces=[FittedPiece(begin=0, end=8, alpha=alpha, beta=1e-10)])
        for path, place, alpha in laws
    ]
    machine = read_machine("summit").model_copy(update={"paths": paths, "hardware": {}, "injection": []})
    file = Path(world.bcast(str(tmp_path / "slow.json")))
    if world.rank == 0:
        write_machine(file, machine)
    world.barrier()
    monkeypatch.setenv(VARIABLE, str(file))
    monkeypatch.setattr("seiche.machine.in_use.adapted", lambda machine, *_, **__: machine)
    expected: dict[str, float] = {}

    def predict(*arguments: Any, **options: Any) -> dict[str, float]:
        expected.update(predicted_transport_times(*arguments, **options))
        return dict(expected)

    monkeypatch.setattr(HaloExchange, "_trial", lambda self, direction, seconds=0.0: expected[direction.transport.name])
    model = Model(world.size, 3)
    exchange = HaloExchange(backend, world, model.plan(world), "float64", predict=predict)
    array = model.start_array(backend, "float64")
    exchange.start(array)
    exchange.finish(array)
    model.check_gathered(world.rank, array, "float64")
    assert {"host", "two_step", "three_step", "peer+host", "peer+two_step", "peer+three_step"} == set(expected)
    assert exchange.transport_name == min(expected, key=lambda name: (expected[name], name))
    assert exchange.transport_name in ("peer+two_step", "peer+three_step")
    exchange.close()
