# SPDX-License-Identifier: BSD-3-Clause
"""Checklist of a first run on a new cluster, as `seiche check` prints it on several ranks."""

from __future__ import annotations

import fcntl
import os
import platform
import secrets
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import seiche
from seiche.backend import open_backend
from seiche.backend.device import parse_device
from seiche.backend.folder import cache_folder, check_private
from seiche.backend.host_threads import allowed_cpus
from seiche.case.kinds import kind_of
from seiche.case.load import check_tables
from seiche.case.rank_places import cpu_list, mpi_line
from seiche.case.source import CaseFile
from seiche.domain.launchers import launcher_mismatch
from seiche.domain.rank_locations import host_name, host_of
from seiche.domain.world import World
from seiche.errors import BackendUnavailable
from seiche.machine.laws.locality import rank_placements

#: Shared memory that a host should have, bytes: messages between ranks, and 25 B per site.
SHARED_MEMORY = 256 * 1024**2
_SHARED_MEMORY_FOLDER = Path("/dev/shm")


class Point(NamedTuple):
    """A point of the checklist: its name, what was found, and whether this must be changed."""

    name: str
    text: str
    is_problem: bool = False

    def line(self) -> str:
        """Return the point as one line."""
        return f"  {'FIX' if self.is_problem else 'ok '}  {self.name:<10} {self.text}"


def checklist(world: World, case: Path, folder: Path, device: str, *, threads: int) -> list[Point]:
    """Return all points, the same on every rank (collective).

    Args:
        world: the ranks.
        case: the case file.
        folder: the output folder, which need not exist.
        device: the device of the case.
        threads: CPU threads of each rank.
    """
    points = [_ranks(world), _software(world), _cores(world, threads), _inputs(world, case)]
    points += [_gpus(world, device)] if parse_device(device).is_gpu else []
    return [*points, _shared_memory(world), _output(world, folder), _cache(world)]


def first_run_lines(world: World, source: CaseFile) -> list[str]:
    """Return the checklist for a case as text, the same on every rank (collective)."""
    case: Any = check_tables(source.tables, str(source.path), kind_of(source).schema)
    folder, threads = source.folder / case.output.folder, world.threads(case.run.threads)
    return checklist_lines(checklist(world, source.path, folder, case.run.device, threads=threads))


def checklist_lines(points: Sequence[Point]) -> list[str]:
    """Return the checklist as text."""
    problems = sum(point.is_problem for point in points)
    summary = f"{problems} of {len(points)} points to fix" if problems else "all points are in order"
    return [f"first run on this machine: {summary}", *(point.line() for point in points)]


def _ranks(world: World) -> Point:
    module = sys.modules.get("mpi4py.MPI")
    problem = launcher_mismatch(world.size, module.Get_library_version() if module is not None else "")
    if problem is not None:
        return Point("ranks", problem, is_problem=True)
    hosts = len(set(world.allgather(host_of(world))))
    count = f"{world.size} rank{'s' * (world.size > 1)} on {hosts} host{'s' * (hosts > 1)}"
    return Point("ranks", f"{count}; {mpi_line(world)}")


def _software(world: World) -> Point:
    own = f"seiche {seiche.__version__}, Python {platform.python_version()}"
    return _same(world, "software", own, "install the same version on all hosts")


def _inputs(world: World, case: Path) -> Point:
    try:
        own = f"{case.name} with digest {sha256(case.read_bytes()).hexdigest()[:12]}"
    except OSError as error:
        own = f"{case}: {error.strerror}"
    return _same(world, "case file", own, "all ranks must read the same files")


def _same(world: World, name: str, own: str, remedy: str) -> Point:
    """Return a point that is in order if all ranks have the same text."""
    texts = world.allgather(own)
    other = next((rank for rank, text in enumerate(texts) if text != texts[0]), None)
    if other is None:
        return Point(name, texts[0])
    return Point(name, f"rank 0: {texts[0]}; rank {other}: {texts[other]}: {remedy}", is_problem=True)


def _cores(world: World, threads: int) -> Point:
    """Return whether the threads of the ranks of each host have a core each."""
    rows = world.allgather((host_of(world), frozenset(allowed_cpus()), threads))
    hosts: dict[str, tuple[frozenset[int], int]] = {}
    for host, cpus, count in rows:
        known, total = hosts.get(host, (frozenset(), 0))
        hosts[host] = known | cpus, total + count
    for host, (cpus, total) in hosts.items():
        if total > len(cpus):
            text = f"host {host_name(host)}: {total} threads of its ranks share {len(cpus)} CPUs ({cpu_list(cpus)}); "
            text += "bind ranks to separate cores, or start fewer ranks or threads (OMP_NUM_THREADS, run.threads)"
            return Point("cores", text, is_problem=True)
    parts = [f"{host_name(host)}: {total} threads, {len(cpus)} CPUs" for host, (cpus, total) in hosts.items()]
    return Point("cores", "; ".join(parts[:4]) + (f" and {len(parts) - 4} more hosts" if len(parts) > 4 else ""))


def _gpus(world: World, device: str) -> Point:
    """Return whether each rank has a GPU of its own."""
    try:
        backend, problem = open_backend(device, local_rank=world.local_rank), None
    except BackendUnavailable as error:
        backend, problem = None, str(error)
    problems = world.allgather(problem)
    for rank, text in enumerate(problems):
        if text is not None:
            return Point("GPUs", f"rank {rank}: {text}", is_problem=True)
    assert backend is not None
    places = [(placement.host, placement.gpu, placement.gpu_name) for placement in rank_placements(backend, world)]
    shared = next((place for place in places if places.count(place) > 1), None)
    if shared is not None:
        text = f"host {host_name(shared[0])}: {places.count(shared)} ranks share GPU {shared[1]}; one rank per GPU"
        return Point("GPUs", f"{text} is fastest", is_problem=True)
    return Point("GPUs", f"one per rank, {', '.join(sorted({name for _, _, name in places}))}")


def _shared_memory(world: World) -> Point:
    try:
        free = shutil.disk_usage(_SHARED_MEMORY_FOLDER).free
    except OSError:
        free = 0
    all_free = world.allgather(free)
    least = min(range(world.size), key=lambda rank: all_free[rank])
    text = f"at least {all_free[least] / 1024**2:,.0f} MiB free in {_SHARED_MEMORY_FOLDER}"
    if all_free[least] >= SHARED_MEMORY:
        return Point("memory", text)
    remedy = "start the container with --shm-size, or bind /dev/shm of the host"
    return Point("memory", f"{text} (rank {least}): {remedy}", is_problem=True)


def _output(world: World, folder: Path) -> Point:
    """Return whether all ranks write to, and lock, one file in the output folder or its nearest existing parent."""
    path, problem = None, None
    if world.rank == 0:
        parent = next(place for place in (folder, *folder.absolute().parents) if place.is_dir())
        path = parent / f".seiche-first-run-{secrets.token_hex(8)}"
        try:
            path.write_bytes(bytes(world.size))
        except OSError as error:
            problem = f"cannot write to {parent}: {error.strerror}"
    path, problem = world.bcast((path, problem))
    if problem is not None:
        return Point("output", problem, is_problem=True)
    try:
        problems = world.allgather(_error_of(lambda: _write_own_byte(path, world.rank)))
        world.barrier()
        if world.rank == 0 and not any(problems) and path.read_bytes() != bytes([1]) * world.size:
            problems[0] = "reads other data than the ranks wrote"
        problems = world.bcast(problems)
    finally:
        if world.rank == 0:
            with suppress(OSError):
                path.unlink()
    for rank, text in enumerate(problems):
        if text is not None:
            remedy = "the output folder must be on a file system that all hosts share and that supports locks"
            return Point("output", f"rank {rank}, {path.parent}: {text}; {remedy}", is_problem=True)
    return Point("output", f"all ranks write to {path.parent} and lock files there")


def _write_own_byte(path: Path, rank: int) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX, 1, rank)
        os.pwrite(descriptor, b"\x01", rank)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _cache(world: World) -> Point:
    """Return whether every rank has a private folder for compiled kernels; it need not be shared."""
    folder = cache_folder()

    def check() -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        check_private(folder)

    for rank, text in enumerate(world.allgather(_error_of(check))):
        if text is not None:
            return Point("cache", f"rank {rank}: {text}; set SEICHE_CACHE to a folder of your own", is_problem=True)
    compiler = "" if shutil.which(os.environ.get("CXX", "g++")) else "; no C++ compiler for settings without a kernel"
    return Point("cache", f"compiled kernels in {folder}{compiler}")


def _error_of(action: Callable[[], object]) -> str | None:
    """Return the error of an action as text, None if it succeeds."""
    try:
        action()
    except OSError as error:
        return error.strerror or str(error)
    except BackendUnavailable as error:
        return str(error)
    return None
