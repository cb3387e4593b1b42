# SPDX-License-Identifier: BSD-3-Clause
"""What every solver is to whoever runs it: steps made of named stages, and a state to restart from."""

from seiche.solver.base import Health, SolverBase
from seiche.solver.state import RowSet, State

__all__ = ["Health", "RowSet", "SolverBase", "State"]
