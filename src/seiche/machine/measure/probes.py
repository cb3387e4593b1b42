# SPDX-License-Identifier: BSD-3-Clause
"""Feature probes that cannot crash the caller: each returns yes, no or untestable, with the evidence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from seiche.domain.rank_locations import pid_namespace
from seiche.domain.world import World
from seiche.halo.transports.device_mpi import accepts_device_addresses
from seiche.halo.transports.single_copy import NONCE, Process, this_process, verify_process
from seiche.machine.laws.file import Probe
from seiche.machine.laws.locality import RankPlacement

#: Environment variables by which an MPI process joins its job; removed for the process of a probe.
_MPI_VARIABLES = ("PMI_", "PMI2_", "PMIX_", "OMPI_", "HYDRA_", "MPI_LOCAL", "MPIR_", "PRTE_", "HYDI_")
_TIMEOUT = 60.0
SLOW_NOTE = "large host messages are copied twice and can be 20 times slower"

#: Script that stores bytes in its memory, prints their address and waits for the end of its input.
_CHILD_SCRIPT = (
    "import numpy, sys; a = numpy.frombuffer(bytes.fromhex(sys.argv[1]), numpy.uint8);"
    " print(a.ctypes.data, flush=True); sys.stdin.read()"
)


def single_copy(world: World, placements: list[RankPlacement]) -> Probe:
    """Return whether processes of this host can read each other's memory (collective)."""
    partner = next((rank for rank in range(1, world.size) if placements[rank].host == placements[0].host), None)
    if partner is None:
        return world.bcast(_single_copy_from_child() if world.rank == 0 else None)  # type: ignore[no-any-return]
    processes = world.allgather(this_process())
    return world.bcast(_attach_probe(processes[partner]) if world.rank == 0 else None)  # type: ignore[no-any-return]


def _attach_probe(process: Process) -> Probe:
    try:
        verify_process(process)
    except OSError as error:
        return Probe(works=False, reason=f"{error.strerror or error}: {SLOW_NOTE}")
    return Probe(works=True, reason="a rank read the memory of another one (process_vm_readv)")


def _single_copy_from_child() -> Probe:
    nonce = os.urandom(NONCE)
    command = [sys.executable, "-c", _CHILD_SCRIPT, nonce.hex()]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        line = child.stdout.readline()
        if not line.strip().isdigit():
            return Probe(works=None, reason="the child process of the probe did not start")
        probe = _attach_probe(Process(child.pid, pid_namespace(), int(line), nonce))
    finally:
        child.communicate(timeout=_TIMEOUT)
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    if probe.works and scope.exists() and scope.read_text().strip() not in ("", "0"):
        return Probe(works=None, reason="the memory of a child process is readable; run on two ranks to test ranks")
    reason = probe.reason.replace("a rank read the memory of another one", "read the memory of a child process")
    return probe.model_copy(update={"reason": reason})


def device_mpi(world: World, gpus: bool) -> Probe:
    """Return whether this MPI accepts GPU memory (collective); tested in a child process, which may crash."""
    probe = None
    if world.rank == 0:
        if world.comm is None:
            probe = Probe(works=None, reason="no MPI: start Seiche with mpiexec")
        elif not gpus:
            probe = Probe(works=None, reason="no GPU")
        elif not accepts_device_addresses():
            probe = Probe(works=False, reason="this MPI reports no support (MPIX_Query_cuda_support)")
        else:
            probe = _child_message_probe()
    return world.bcast(probe)  # type: ignore[no-any-return]


def _child_message_probe() -> Probe:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_MPI_VARIABLES)}
    command = [sys.executable, "-m", "seiche.halo.transports.device_mpi_probe"]
    try:
        process = subprocess.run(command, env=environment, capture_output=True, timeout=_TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        return Probe(works=False, reason=f"this MPI reports support, but a message did not arrive in {_TIMEOUT:g} s")
    if process.returncode == 0:
        return Probe(works=True, reason="a message between two arrays of GPU memory arrived")
    ending = f"signal {-process.returncode}" if process.returncode < 0 else f"status {process.returncode}"
    return Probe(works=False, reason=f"this MPI reports support, but the test process ended with {ending}")
