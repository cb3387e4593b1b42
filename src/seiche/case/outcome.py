# SPDX-License-Identifier: BSD-3-Clause
"""The end of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy.typing as npt


@dataclass(frozen=True)
class Outcome:
    """End of a run: its last `step`, its wall time `seconds`, and the reason if it was `stopped` before its last step.

    At the end of the case, `lines` are physical results and violated bounds as text, `files` are the written files,
    `summary` is that of the summary file (data movement on rank 0 only), `arrays` are records. Earlier, all are empty.
    """

    step: int
    seconds: float
    stopped: str | None
    lines: Sequence[str] = ()
    files: Sequence[Path] = field(default=(), repr=False)
    summary: Mapping[str, Any] = field(default_factory=dict, repr=False)
    arrays: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict, repr=False)


class Described:
    """Text of a simulation for `repr`, also while it is set up."""

    def __repr__(self) -> str:
        """Return kind, title, number of items, step, time and output folder (not collective)."""
        values = self.__dict__
        setup, solver = values["setup"], values.get("solver")
        state = "not set up yet"
        if solver is not None:
            state = f"{solver.total_items:,} {solver.item}, step {solver.step:,} of {setup.steps:,}, "
            state += f"{solver.step * setup.dt:.4g} of {setup.steps * setup.dt:.4g} s"
        return f'<{setup.case.solver} simulation "{setup.title}": {state}; output in {values["folder"]}>'
