# SPDX-License-Identifier: BSD-3-Clause
"""The checked table of the target of a sonication."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeVar

from pydantic import Field

from seiche.case.quantities import Position, PositiveVelocity
from seiche.case.tables import Table
from seiche.case.ultrasound.sources import FocusedGeometry

T = TypeVar("T", bound=Table)


class TargetTable(Table):
    """The target of a sonication behind bone: sources with `axis` face it, and the run evaluates the field around it.

    The brain is the part without bone that is connected with the target.
    """

    position: Position = Field(description="position of the target")
    bone_speed: PositiveVelocity = Field(
        default=1700.0, description="lowest sound speed of bone, which separates it from other tissue"
    )
    steering: Literal["none", "ray", "time-reversal"] = Field(
        default="none",
        description="sources are delayed, in addition to their delay, so that their waves arrive at the target "
        "together: ray: waves along straight rays through the medium; time-reversal: continuous waves, by one more run "
        "with a source at the target",
    )


def placed(name: str, tables: Sequence[T], target: TargetTable | None) -> tuple[T, ...]:
    """Return the tables with those that have the key `axis` placed in front of the target.

    Raises ValueError, which begins with `name`, if there is no target or an axis does not suit it.
    """
    result = []
    for number, table in enumerate(tables):
        if isinstance(table, FocusedGeometry) and table.axis is not None:
            if target is None:
                raise ValueError(f"{name}[{number}].axis: needs target.position, which is missing")
            if len(table.axis) != len(target.position):
                raise ValueError(
                    f"{name}[{number}].axis: has {len(table.axis)} numbers, target.position {len(target.position)}"
                )
            table = table.placed(target.position)
        result.append(table)
    return tuple(result)
