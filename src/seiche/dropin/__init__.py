# SPDX-License-Identifier: BSD-3-Clause
"""Stand-ins for the executables kspaceFirstOrder-OMP and kspaceFirstOrder-CUDA of k-Wave."""
