# SPDX-License-Identifier: BSD-3-Clause
"""Measurement of a machine in limited time: data movement between memories, ranks, GPUs and files."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import seiche
from seiche.backend import Backend, open_backend
from seiche.domain.world import World
from seiche.errors import BackendUnavailable, TransportError
from seiche.halo.transports import TransportName
from seiche.machine.laws import terms
from seiche.machine.laws.file import (
    SCHEMA,
    UNITS,
    VERSION,
    Files,
    FittedPiece,
    Injected,
    Launch,
    Machine,
    Measured,
    PathName,
    Probe,
    memory_of_path,
)
from seiche.machine.laws.fit import fit, warnings_of, without_disturbance
from seiche.machine.laws.flat import flat_pieces
from seiche.machine.laws.locality import RankPlacement, bound, hardware, pairs, rank_placements
from seiche.machine.laws.models import LOCALITIES, Locality
from seiche.machine.measure import copies, exchanges, messages, peers, probes
from seiche.machine.measure.files import file_writes
from seiche.machine.measure.injection import injection_of
from seiche.observe.bandwidth import copy_bandwidth_interval
from seiche.observe.origin import commit
from seiche.observe.repeat import AGREEMENT, TimingSeries, sleep_until_barrier

_T = TypeVar("_T")
#: Maximum number of timed pairs of ranks in a class; the smallest times count.
_PAIRS = 3
#: Fraction of the time for file writes.
_FILE_SHARE = 1 / 24
#: Reasons for a missing path.
_SINGLE_RANK = "only one rank: start with mpiexec on two or more"
_NO_GPU = "no GPU"
_GPU_PATHS = "device_mpi", "nccl", "nccl_graph", "peer_copy", "peer_store", "peer_exchange", "h2d", "d2h", "d2d"
#: Attributes of a survey that become fields of the machine.
_RESULT_FIELDS = ("paths", "injection", "memory", "memory_intervals", "sharing", "launch", "probes", "absent")


class _Survey:
    """Results of a measurement in progress."""

    def __init__(self, world: World, backend: Backend, seconds: float, report: Callable[[str], None]) -> None:
        self.world, self.backend, self.report = world, backend, report
        self.end, self.seconds = time.perf_counter() + seconds, seconds
        self.share = 0.0
        self.placements: list[RankPlacement] = rank_placements(backend, world)
        self.gpus = all(placement.gpu for placement in self.placements)
        self.cpu: Backend | None = None
        self.paths: list[Measured] = []
        self.injection: list[Injected] = []
        self.memory: dict[str, float] = {}
        self.memory_intervals: dict[str, tuple[float, float]] = {}
        self.sharing: dict[str, float] = {}
        self.launch: dict[str, Launch] = {}
        self.probes: dict[str, Probe] = {}
        self.absent: dict[str, str] = {}

    def add(
        self, path: PathName, locality: Locality, curves: Sequence[TimingSeries], **terms: float | None
    ) -> Measured:
        """Fit and store the smallest times of curves, with the `gap` and `duplex` of a message path."""
        count = min(len(curve.sizes) for curve in curves)
        sizes = curves[0].sizes[:count]
        best = [min((curve.timings[k] for curve in curves), key=lambda timing: timing.minimum) for k in range(count)]
        seconds, disturbed = without_disturbance(sizes, [timing.minimum for timing in best])
        spread = [timing.spread for timing in best]
        fitted = fit(sizes, seconds)
        rate = self.memory.get(memory_of_path(path))
        flat = flat_pieces(fitted, rate)
        repeated = [
            timing.reproduced and timing.minimum <= (1 + AGREEMENT) * smooth and fitted.piece(size) not in flat
            for timing, smooth, size in zip(best, seconds, sizes, strict=True)
        ]
        measured = Measured(
            path=path,
            locality=locality,
            pieces=[FittedPiece(**vars(piece)) for piece in fitted.pieces],
            sizes=sizes,
            seconds=seconds.tolist(),
            spread=spread,
            reproduced=repeated,
            omitted=max(curve.omitted for curve in curves),
            repetitions=[timing.repetitions for timing in best],
            warnings=disturbed
            + _omission(sizes, max(curve.omitted for curve in curves))
            + warnings_of(fitted, sizes, seconds, memory_rate=rate, spread=spread, gap=terms.get("gap")),
            **terms,
        )
        self.paths.append(measured)
        return measured

    def run_on_rank(self, rank: int, action: Callable[[], _T]) -> _T:
        """Return the result of `action` on one rank, on all ranks; the other ranks sleep until it is available."""
        result = action() if self.world.rank == rank else None
        sleep_until_barrier(self.world)
        gathered: list[Any] = self.world.allgather(result)
        return gathered[rank]  # type: ignore[no-any-return]

    def time_messages(self, path: PathName, buffers: messages.Buffers, *, gpus: bool) -> None:
        """Time MPI messages of every locality class present."""
        for locality in LOCALITIES:
            selected = pairs(self.placements, locality, gpus=gpus)
            if not selected:
                self.absent[f"{path} {locality}"] = _missing_reason(locality)
                continue
            self.report(f"{path} messages, {locality}")
            timer = messages.MessageTimer(self.world, self.placements, locality, buffers)
            curves = timer.one_way(selected[:_PAIRS], self.share)
            rows = timer.bursts(selected[0], self.share / 2)
            one_message = fit(curves[0].sizes, curves[0].seconds)
            counts, sizes, timings = zip(*rows, strict=True)
            gap = terms.gap(counts, sizes, [timing.minimum for timing in timings], one_message)
            both_directions = timer.both_ways(selected[0], self.share / 2)
            duplex = terms.duplex(both_directions.sizes, both_directions.seconds, one_message)
            measured = self.add(path, locality, curves, gap=min(gap, 0.1), duplex=duplex)
            if len(selected) < 2:
                self.absent[f"injection of {path} {locality}"] = "there is only one pair of ranks; several are needed"
                continue
            self.report(f"{path} messages from several senders, {locality}")
            rows = timer.injection(selected, self.share / 2)
            self._inject(measured, rows)

    def _inject(self, measured: Measured, rows: Sequence[tuple[int, int, Any]]) -> None:
        try:
            self.injection.append(injection_of(measured, rows))
        except ValueError as error:
            self.absent[f"injection of {measured.path} {measured.locality}"] = str(error)

    def host(self, backend: Backend | None) -> None:
        """Measure memory and launches of the CPU, if its kernels are available."""
        try:
            cpu = open_backend("cpu", self.world.threads()) if backend is None else backend
        except BackendUnavailable as error:
            self.absent["memory of the host"] = str(error)
        if not all(self.world.allgather("memory of the host" not in self.absent)):
            return
        self.cpu = cpu
        self.memory["host"], self.memory_intervals["host"] = copy_bandwidth_interval(cpu, self.world)
        self.launch["host"] = self.run_on_rank(0, lambda: copies.launches(cpu))

    def time_host_exchanges(self) -> None:
        """Time whole exchanges between processes of every locality class, if CPU kernels are available."""
        for locality in LOCALITIES:
            selected, key = pairs(self.placements, locality), f"host_exchange {locality}"
            if not selected or self.cpu is None:
                self.absent[key] = _missing_reason(locality) if not selected else "no CPU kernels on some rank"
                continue
            self.report(f"exchanges between host memories, {locality}")
            names: tuple[tuple[PathName, TransportName], ...] = (("host_exchange", "host"), ("shared_exchange", "peer"))
            for path, transport in names[: 1 if locality == "off-node" else 2]:
                result = exchanges.exchange_curve(
                    self.world,
                    self.cpu,
                    self.placements,
                    selected[0],
                    locality,
                    transport=transport,
                    seconds=self.share,
                )
                if isinstance(result, str):
                    self.absent[f"{path} {locality}"] = result
                else:
                    self.add(path, locality, [result])

    def time_copies(self) -> None:
        """Time copies between each NUMA node and the device, and within the device."""
        backend = self.backend
        for direction in ("h2d", "d2h"):
            for locality, cpus in self._cpu_sides().items():
                self.report(f"{direction} copies, {locality}")

                def action(direction: Any = direction, cpus: set[int] | None = cpus) -> TimingSeries:
                    with bound(cpus):
                        return copies.staged_copies(backend, direction, self.share)

                measured = self.add(direction, locality, [self.run_on_rank(0, action)])
                sharers = [
                    rank for rank, placement in enumerate(self.placements) if placement.gpu == self.placements[0].gpu
                ]
                if locality == "on-socket" and len(sharers) > 1:
                    rows = copies.shared_copies(backend, self.world, sharers, direction, self.share)
                    counts, sizes, timings = zip(*rows, strict=True)
                    times = [timing.minimum for timing in timings]
                    self.sharing[direction] = terms.engine_sharing(counts, sizes, times, measured.curve)
        if not self.sharing:
            self.absent["sharing"] = "each GPU has one process; start several per GPU to measure it"
        self.report("copies within the device")
        self.add("d2d", "on-socket", [self.run_on_rank(0, lambda: copies.device_copies(backend, self.share))])

    def _cpu_sides(self) -> dict[Locality, set[int] | None]:
        """Return the near and far CPUs of the first GPU; a single class if the system has no such data."""
        placement = self.placements[0]
        if placement.gpu_node is None or len(placement.cpus) < 2:
            is_far = placement.gpu_node is not None and placement.gpu_node not in placement.cpus
            return {"on-node" if is_far else "on-socket": None}
        sides: dict[Locality, set[int] | None] = {}
        for node, cpus in placement.cpus.items():
            sides.setdefault("on-socket" if node == placement.gpu_node else "on-node", set(cpus))
        return sides

    def time_peers(self) -> None:
        """Time copies, stores and NCCL between GPUs."""
        for locality in LOCALITIES:
            selected = pairs(self.placements, locality, gpus=True)
            for path in ("peer_copy", "peer_store", "peer_exchange", "nccl", "nccl_graph"):
                key = f"{path} {locality}"
                if not selected:
                    self.absent[key] = _missing_reason(locality).replace("ranks", "ranks with a GPU each")
                elif path.startswith("peer") and locality == "off-node":
                    self.absent[key] = "peer memory requires GPUs of one host"
                else:
                    self.report(f"{path}, {locality}")
                    self._time_peer(path, locality, selected)

    def _time_peer(self, path: PathName, locality: Locality, selected: Sequence[tuple[int, int]]) -> None:
        result: Sequence[TimingSeries] | TimingSeries | str
        gap: float | None = None
        if path == "peer_exchange":
            result = exchanges.exchange_curve(
                self.world, self.backend, self.placements, selected[0], locality, transport="peer", seconds=self.share
            )
            if isinstance(result, TimingSeries) and self.world.size > 2:
                try:
                    gap = exchanges.neighbour_gap(self.world, self.backend, result, "peer", self.share)
                except TransportError as error:  # ranks on several hosts; raised on all ranks
                    self.absent[f"gap of {path} {locality}"] = str(error)
        elif path.startswith("peer"):
            result = peers.peer_curve(self.world, self.backend, selected[0], path, self.share)
        elif len({(placement.host, placement.gpu) for placement in self.placements}) < self.world.size:
            result = "ranks share a GPU"
        else:
            graph = path == "nccl_graph"
            result = peers.nccl_curves(self.world, self.backend, selected[:1], self.share, graph=graph)
        if isinstance(result, str):
            self.absent[f"{path} {locality}"] = result
        else:
            self.add(path, locality, [result] if isinstance(result, TimingSeries) else result, gap=gap)

    def _planned(self) -> float:
        """Return the number of curves that will be timed on this machine; each takes the same time."""
        count = 0.0
        for locality in LOCALITIES if self.world.size > 1 else ():
            selected, of_gpus = pairs(self.placements, locality), pairs(self.placements, locality, gpus=True)
            messages_of_pairs = 2.0 + 0.5 * (len(selected) > 1)
            exchanges_of_pairs = (1 if locality == "off-node" else 2) * (self.cpu is not None)
            count += (messages_of_pairs + exchanges_of_pairs) * bool(selected)
            if self.gpus and of_gpus:
                count += (2 if locality == "off-node" else 6) + 2.5 * bool(self.probes["device_mpi"].works)
        return count + (2 * len(self._cpu_sides()) + 3 if self.gpus else 0)

    def time_all(self) -> None:
        """Measure everything except files."""
        self.report("copy bandwidth")
        self.host(None if self.backend.is_gpu else self.backend)
        if self.gpus:
            self.memory["device"], self.memory_intervals["device"] = copy_bandwidth_interval(self.backend, self.world)
        self.probes["single_copy"] = probes.single_copy(self.world, self.placements)
        self.probes["device_mpi"] = probes.device_mpi(self.world, self.gpus)
        self.probes["peer_access"] = peers.peer_access(self.world, self.placements)
        time_left = (1 - _FILE_SHARE) * self.seconds - max(0.0, time.perf_counter() - self.end + self.seconds)
        self.share = self.world.bcast(max(0.0, time_left) / max(1.0, self._planned()))
        has_peers = self.world.size > 1
        if has_peers:
            self.time_messages("host", messages.host_buffers, gpus=False)
            self.time_host_exchanges()
        else:
            self.absent["host"] = _SINGLE_RANK
        if self.gpus:
            self.launch["device"] = self.run_on_rank(0, lambda: copies.launches(self.backend))
            self.time_copies()
        if self.gpus and has_peers:
            self.time_peers()
            if self.probes["device_mpi"].works:
                self.time_messages("device_mpi", messages.device_buffers(self.backend), gpus=True)

    def explain_absent(self) -> None:
        """Store the reason for each GPU path without a measurement."""
        measured = {entry.path for entry in self.paths}
        for path in _GPU_PATHS:
            if path not in measured and not any(key.startswith(path) for key in self.absent):
                reason = self.probes["device_mpi"].reason if path == "device_mpi" else _SINGLE_RANK
                self.absent[path] = reason if self.gpus else _NO_GPU

    def time_files(self, folder: Path | None) -> Files | None:
        """Time writing files in a folder, if there is one."""
        if folder is None:
            self.absent["files"] = "no folder was specified"
            return None
        self.report("file writes")
        try:
            return file_writes(self.world, folder, seconds=_FILE_SHARE * self.seconds)
        except OSError as error:  # on all ranks: a full disk, or a folder without write permission
            self.absent["files"] = f"{folder} is not writable: {error.strerror or error}"
            return None


def _omission(sizes: Sequence[int], count: int) -> list[str]:
    if not count:
        return []
    return [f"the time was too short for the {count} sizes above {sizes[-1]} B, which are extrapolated"]


def trust_of(paths: Sequence[Measured]) -> float | None:
    """Return the fraction of planned times that another round of the measurement reproduced, None without times."""
    planned = sum(len(path.reproduced) + path.omitted for path in paths)
    return sum(sum(path.reproduced) for path in paths) / planned if planned else None


def _missing_reason(locality: Locality) -> str:
    return {
        "on-socket": "no two ranks on one NUMA node",
        "on-node": "no two ranks on two NUMA nodes of one host",
        "off-node": "no ranks on two hosts",
    }[locality]


def measure(
    world: World,
    device: str | Backend = "cpu",
    *,
    seconds: float = 60.0,
    folder: Path | None = None,
    name: str | None = None,
    report: Callable[[str], None] = lambda text: None,
) -> Machine:
    """Measure the machine of these ranks (collective); every rank returns the result.

    Args:
        world: the ranks.
        device: "cpu", "cuda", "cuda:K" or an open device.
        seconds: approximate duration; small values omit large sizes.
        folder: folder for timing file writes; none by default.
        name: name of the machine; the first host by default.
        report: called with the name of each measurement before it starts.

    Raises:
        BackendUnavailable: the device does not exist.
    """
    begin = time.perf_counter()
    backend = device if isinstance(device, Backend) else open_backend(device, world.threads(), world.local_rank)
    survey = _Survey(world, backend, seconds, report)
    survey.time_all()
    survey.explain_absent()
    files = survey.time_files(folder)
    properties = hardware(survey.placements, world.library())
    machine = Machine(
        schema_=SCHEMA,
        version=VERSION,
        units=UNITS,
        name=name or str(properties["host"]),
        source="measured by seiche bench machine",
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        seiche=seiche.__version__,
        commit=commit(),
        hardware=properties,
        files=files,
        seconds=time.perf_counter() - begin,
        trust=trust_of(survey.paths),
        **{name: getattr(survey, name) for name in _RESULT_FIELDS},
    )
    shared: Machine = world.bcast(machine)
    return shared
