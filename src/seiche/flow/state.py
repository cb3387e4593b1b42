# SPDX-License-Identifier: BSD-3-Clause
"""Names of the components of a flow state (docs/decisions/0003)."""

from __future__ import annotations

from collections.abc import Mapping

from seiche.solver.base import SolverBase
from seiche.solver.state import Attribute, Rows, RowSet, State

#: The row set of the sites.
SITES = "sites"
#: The row set of the sites with links through openings, whose populations moments do not represent.
OPENINGS = "sites at openings"
#: Prefix of the attributes of Windkessel outlets.
IOLETS = "iolets."
#: Sums of the mass created at walls (`wall_mass.py`).
WALL_MASS = "wall_mass"


def site_state(
    solver: SolverBase, arrays: Mapping[str, Rows], step: int = 0, attributes: Mapping[str, Attribute] | None = None
) -> State:
    """Return the state after `step` steps from `arrays` with one row for each site of `solver.owned`."""
    return State(step, {SITES: RowSet(solver.keys[SITES], solver.total_items, arrays)}, attributes=attributes or {})
