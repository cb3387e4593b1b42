# SPDX-License-Identifier: BSD-3-Clause
"""Cases of flow: schema, geometry, lattice units, outputs."""
