# SPDX-License-Identifier: BSD-3-Clause
"""A row of the comparison with other programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class PeerRow:
    """The figures of one program on one work; `reason` says why there are none."""

    work: str
    program: str
    unit: str
    version: str = ""
    reason: str = ""
    median: float | None = None
    least: float | None = None
    greatest: float | None = None
    figures: list[float] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)
