# SPDX-License-Identifier: BSD-3-Clause
"""The parts of a flow's state by name (docs/decisions/0003)."""

from __future__ import annotations

from collections.abc import Mapping

from seiche.solver.base import SolverBase
from seiche.solver.state import Attribute, Rows, RowSet, State

#: The row set of the sites.
SITES = "sites"
#: Before the numbers of Windkessel outlets among the attributes.
IOLETS = "iolets."
#: The sums of the mass that walls created (`wall_mass.py`).
WALL_MASS = "wall_mass"


def site_state(
    solver: SolverBase, arrays: Mapping[str, Rows], step: int = 0, attributes: Mapping[str, Attribute] | None = None
) -> State:
    """Return a state of `arrays` with a row for each of the sites `solver.owned`, after `step` steps."""
    return State(step, {SITES: RowSet(solver.keys[SITES], solver.total_items, arrays)}, attributes=attributes or {})
