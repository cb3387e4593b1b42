# SPDX-License-Identifier: BSD-3-Clause
"""Case files: TOML with units in, a solver in lattice units out. The only place where SI units exist."""
