# SPDX-License-Identifier: BSD-3-Clause
"""The common interface of solvers: steps of named stages, and a state for restarts."""

from seiche.solver.base import Health, SolverBase
from seiche.solver.estimate import Estimate
from seiche.solver.state import RowSet, State

__all__ = ["Estimate", "Health", "RowSet", "SolverBase", "State"]
