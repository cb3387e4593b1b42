# SPDX-License-Identifier: BSD-3-Clause
"""Open vessels: cells leave at the openings and enter from reservoirs, periodic tubes at the inlets (lattice units)."""
