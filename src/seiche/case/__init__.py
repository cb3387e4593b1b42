# SPDX-License-Identifier: BSD-3-Clause
"""Case files in TOML, with units, and their conversion to solvers in lattice units; no other package uses SI units."""
