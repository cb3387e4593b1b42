# SPDX-License-Identifier: BSD-3-Clause
"""Open vessels: cells that leave at the openings and enter from periodic tubes before the inlets, in lattice units."""
