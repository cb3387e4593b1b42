# SPDX-License-Identifier: BSD-3-Clause
"""Find out what works here without ever crashing: each probe says yes, no or cannot be tried, and how it knows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from seiche.domain.world import World
from seiche.halo.transports.device_mpi import takes_device_addresses
from seiche.halo.transports.single_copy import NONCE, Process, recognise, this_process
from seiche.machine.laws.file import Probe
from seiche.machine.laws.locality import RankPlace

#: Variables by which an MPI process finds its job: a probe's process must not take part in this one.
_JOB = ("PMI_", "PMI2_", "PMIX_", "OMPI_", "HYDRA_", "MPI_LOCAL", "MPIR_", "PRTE_", "HYDI_")
_PATIENCE = 60.0
SLOW = "large host messages are copied twice and can be 20 times slower"

#: Keeps the bytes that it is given in its memory and waits to be ended.
_KEEPER = (
    "import numpy, sys; a = numpy.frombuffer(bytes.fromhex(sys.argv[1]), numpy.uint8);"
    " print(a.ctypes.data, flush=True); sys.stdin.read()"
)


def single_copy(world: World, places: list[RankPlace]) -> Probe:
    """Return whether a process of this host may copy from another one's memory (collective)."""
    partner = next((rank for rank in range(1, world.size) if places[rank].host == places[0].host), None)
    if partner is None:
        return world.bcast(_single_copy_from_child() if world.rank == 0 else None)  # type: ignore[no-any-return]
    processes = world.allgather(this_process())
    return world.bcast(_attached(processes[partner]) if world.rank == 0 else None)  # type: ignore[no-any-return]


def _attached(process: Process) -> Probe:
    try:
        recognise(process)
    except OSError as error:
        return Probe(works=False, reason=f"{error.strerror or error}: {SLOW}")
    return Probe(works=True, reason="a rank read another one's memory (process_vm_readv)")


def _single_copy_from_child() -> Probe:
    nonce = os.urandom(NONCE)
    command = [sys.executable, "-c", _KEEPER, nonce.hex()]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        line = child.stdout.readline()
        if not line.strip().isdigit():
            return Probe(works=None, reason="the probe's process did not start")
        found = _attached(Process(child.pid, int(line), nonce))
    finally:
        child.communicate(timeout=_PATIENCE)
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    if found.works and scope.exists() and scope.read_text().strip() not in ("", "0"):
        return Probe(
            works=None, reason="a child's memory can be read; whether a rank's can, take two ranks to find out"
        )
    return found.model_copy(update={"reason": found.reason.replace("a rank read another one's", "read a child's")})


def device_mpi(world: World, gpus: bool) -> Probe:
    """Return whether this MPI takes addresses of GPU memory (collective); tried in a process that may crash."""
    found = None
    if world.rank == 0:
        if world.comm is None:
            found = Probe(works=None, reason="no MPI: start Seiche by mpiexec")
        elif not gpus:
            found = Probe(works=None, reason="no GPU to try it with")
        elif not takes_device_addresses():
            found = Probe(works=False, reason="this MPI says itself that it does not (MPIX_Query_cuda_support)")
        else:
            found = _sent_in_a_child()
    return world.bcast(found)  # type: ignore[no-any-return]


def _sent_in_a_child() -> Probe:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_JOB)}
    command = [sys.executable, "-m", "seiche.halo.transports.device_mpi_probe"]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, timeout=_PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        return Probe(works=False, reason=f"it says that it does, but a message did not arrive in {_PATIENCE:g} s")
    if done.returncode == 0:
        return Probe(works=True, reason="a message between two arrays of GPU memory arrived")
    how = f"signal {-done.returncode}" if done.returncode < 0 else f"status {done.returncode}"
    return Probe(works=False, reason=f"it says that it does, but the process that tried it ended with {how}")
