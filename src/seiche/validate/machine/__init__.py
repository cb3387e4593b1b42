# SPDX-License-Identifier: BSD-3-Clause
"""Checks of the data-movement models and of the measurements of runs."""

from __future__ import annotations

from seiche.validate.check import Family
from seiche.validate.machine import models, observation

#: Every family of checks, in the order in which they run.
FAMILIES: tuple[Family, ...] = (
    models.protocols,
    models.recovered_terms,
    models.printed_tables,
    models.this_machine,
    observation.plans,
    observation.efficiencies,
    observation.overhead,
)
