# SPDX-License-Identifier: BSD-3-Clause
"""Another MPI library than the one that is installed with Seiche, as the host of a container has one.

SEICHE_TEST_OPENMPI and SEICHE_TEST_MPICH name folders with `bin/mpiexec` and `lib/libmpi.so*`, such as a Python
environment with only the package `openmpi`. Without the first, the Open MPI of the system is used, if there is one.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NamedTuple

import launch
import pytest


class HostMpi(NamedTuple):
    """A launcher, and the variables by which mpi4py uses the library of this launcher."""

    mpiexec: str
    variables: dict[str, str]

    def environment(self) -> dict[str, str]:
        """Return the environment of a job: that of tests with the variables of this library."""
        return launch.environment() | self.variables


#: Names of the library, and the module of mpi4py for its ABI.
_LIBRARIES = {"openmpi": ("libmpi.so.40", "openmpi"), "mpich": ("libmpi.so.12", "mpich")}
#: Open MPI refuses root and more ranks than cores by default.
_OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}


def host_mpi(name: str) -> HostMpi:
    """Return the library `openmpi` or `mpich`; skip the test without it."""
    variable, (file, abi) = f"SEICHE_TEST_{name.upper()}", _LIBRARIES[name]
    prefix = os.environ.get(variable)
    if prefix is not None:
        found, library = f"{prefix}/bin/mpiexec", Path(prefix, "lib", file)
        variables = {"OPAL_PREFIX": prefix, "PRTE_PREFIX": prefix, "PMIX_PREFIX": prefix} if abi == "openmpi" else {}
        variables["LD_LIBRARY_PATH"] = str(library.parent)
    elif abi == "openmpi" and (system := shutil.which("mpiexec.openmpi")) is not None:
        found, library, variables = system, Path(file), {}
    else:
        pytest.skip(f"{variable} does not name a folder with another MPI library")
    variables |= {"MPI4PY_MPIABI": abi, "MPI4PY_LIBMPI": str(library), **(_OPEN_MPI if abi == "openmpi" else {})}
    return HostMpi(found, variables)
