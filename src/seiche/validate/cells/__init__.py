# SPDX-License-Identifier: BSD-3-Clause
"""Checks of membranes and of cells in flow."""

from __future__ import annotations

from seiche.validate.cells import (
    capsule_order,
    capsule_table,
    capsules,
    membranes,
    recovery,
    shear_flow,
    suspensions,
    tweezers,
)
from seiche.validate.check import Family

#: Every family of checks, in the order in which they run.
FAMILIES: tuple[Family, ...] = (
    membranes.derivatives,
    membranes.sphere,
    membranes.rest,
    tweezers.stretching,
    recovery.recovery,
    capsules.small_deformation,
    capsule_order.order_in_time,
    *capsule_table.FAMILIES,
    shear_flow.one_red_cell,
    *suspensions.TUBES,
    suspensions.shear_thinning,
    suspensions.endurance,
)
