# SPDX-License-Identifier: BSD-3-Clause
"""Replacements for the executables kspaceFirstOrder-OMP and kspaceFirstOrder-CUDA of k-Wave."""
