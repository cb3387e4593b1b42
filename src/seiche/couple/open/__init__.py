# SPDX-License-Identifier: BSD-3-Clause
"""Open vessels, in lattice units: cells leave at openings and enter from reservoirs, periodic tubes at the inlets."""
