# SPDX-License-Identifier: BSD-3-Clause
"""The launcher that started this process, by the variables it sets, and whether it belongs to the MPI library in use.

A launcher of another MPI starts processes that are each the only rank of a world of its own, and would overwrite each
other's files.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

#: Variables by which a process knows that a launcher started it: Hydra and PALS, Open MPI, MVAPICH, PMIx, Flux, jsrun,
#: Slurm.
LAUNCHER_VARIABLES = (
    *("PMI_RANK", "PMI_FD", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PMIX_RANK", "FLUX_TASK_RANK"),
    *("JSM_NAMESPACE_RANK", "SLURM_PROCID"),
)
#: Variables with the number of processes. `SLURM_NTASKS` is not one of these: salloc and sbatch set it for serial
#: processes, too.
SIZE_VARIABLES = (
    *("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "FLUX_JOB_SIZE", "JSM_NAMESPACE_SIZE"),
    "SLURM_STEP_NUM_TASKS",
)
#: Set by Hydra only, which distinguishes its PMI variables from those of srun.
_HYDRA = "MPI_LOCALNRANKS"
#: MPICH terminates a process in which this variable is set, unless it was built with PMIx.
_PMIX = "PMIX_NAMESPACE"
#: Set by PALS, and by a plugin of Slurm, beside PMI variables; neither sets another variable with the number of ranks.
_PALS = "PALS_RANKID"


class Launcher(NamedTuple):
    """A launcher, the variable with the number of its processes (or a rank), and its value."""

    name: str
    variable: str
    value: int

    @property
    def processes(self) -> int:
        """Return the number of processes, or the smallest possible one if the launcher gives only a rank."""
        return self.value + 1 if self.variable == "PMIX_RANK" else self.value

    def describe(self) -> str:
        """Return name and variable as text."""
        return f"{self.name} ({self.variable}={self.value})"


def launcher_of(library_version: str = "", environment: Mapping[str, str] = os.environ) -> Launcher | None:
    """Return the launcher that decides the number of ranks of this process, None without one.

    A process may have the variables of several, of which one started the other: mpiexec overrides the batch system, and
    the launcher of the MPI library with the version string `library_version` overrides others. Flux and jsrun set
    variables of PMI or PMIx, too.
    """

    def launcher(name: str, variable: str) -> Launcher:
        return Launcher(name, variable, _number(environment, variable))

    hydra = launcher("mpiexec of MPICH or Intel MPI", "PMI_SIZE")
    open_mpi = launcher("mpiexec of Open MPI", "OMPI_COMM_WORLD_SIZE")
    mvapich = launcher("mpirun of MVAPICH", "MV2_COMM_WORLD_SIZE")
    mpiexecs = [mvapich, hydra] if _HYDRA in environment else [mvapich]
    mpiexecs = [open_mpi, *mpiexecs] if "Open MPI" in library_version else [*mpiexecs, open_mpi]
    is_pals = _PALS in environment and "SLURM_STEP_NUM_TASKS" not in environment
    others = [
        launcher("flux run", "FLUX_JOB_SIZE"),
        launcher("jsrun", "JSM_NAMESPACE_SIZE"),
        hydra._replace(name="mpiexec of PALS" if is_pals else "a launcher with PMI"),
        launcher("srun", "SLURM_STEP_NUM_TASKS"),
        launcher("a launcher with PMIx", "PMIX_RANK"),
    ]
    return next((found for found in (*mpiexecs, *others) if found.value >= 0), None)


def _number(environment: Mapping[str, str], name: str) -> int:
    """Return the value of a variable, -1 if it is not a number."""
    text = environment.get(name, "")
    return int(text) if text.isdigit() else -1


def mpi_can_start(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether the MPI library of mpi4py can be initialised here; it is then initialised, otherwise only loaded.

    MPICH without PMIx terminates a process that a launcher with PMIx started, without an error that could be caught.
    """
    if _PMIX not in environment or "mpi4py.MPI" in sys.modules:
        return True
    import mpi4py

    previous = mpi4py.rc.initialize, mpi4py.rc.finalize
    # By default mpi4py finalizes at exit only what it initialised; launchers end the job if a rank does not finalize.
    mpi4py.rc(initialize=False, finalize=True if previous[1] is None else previous[1])
    try:
        from mpi4py import MPI
    finally:
        mpi4py.rc(initialize=previous[0], finalize=previous[1])
    if lacks_pmix(MPI.Get_library_version()):
        return False
    if not MPI.Is_initialized():
        MPI.Init_thread()
    return True


def lacks_pmix(library_version: str) -> bool:
    """Return whether the version string of a library is of an MPICH that was built without PMIx."""
    line = next((line for line in library_version.splitlines() if line.startswith("MPICH configure:")), None)
    return line is not None and "pmix" not in line


def launcher_mismatch(size: int, library_version: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return why a world of `size` ranks is not what the launcher started, in one line; None if it is.

    Args:
        size: number of ranks of the world.
        library_version: version string of the MPI library, "" if none is loaded.
        environment: variables of the process.
    """
    launcher = launcher_of(library_version, environment)
    if launcher is None or size > 1 or launcher.processes <= size:
        return None
    loaded = " ".join(library_version.split("\n")[0].replace("\x00", "").split())[:60] or "none is loaded"
    advice = ""
    if _PMIX in environment and launcher.variable == "PMI_SIZE" and lacks_pmix(library_version):
        advice = f" and unset {_PMIX}, which was set by the outer launcher"
    elif "Open MPI" in launcher.name and "Open MPI" not in library_version and _has_open_mpi_variant():
        advice = ", or set MPI4PY_MPIABI=openmpi for an mpi4py that uses Open MPI"
    return (
        f"{launcher.variable}={launcher.value}, but this process is the only rank of its MPI ({loaded}): it was started"
        f" by {launcher.name}; start the run with the mpiexec or srun that belongs to the MPI of mpi4py{advice}; for a"
        f" single process: mpiexec -n 1, or unset {launcher.variable}"
    )


def _has_open_mpi_variant() -> bool:
    """Return whether mpi4py includes a module for Open MPI."""
    spec = find_spec("mpi4py")
    folders = spec.submodule_search_locations if spec is not None else None
    return any(any(Path(folder).glob("MPI.openmpi.*")) for folder in folders or ())
