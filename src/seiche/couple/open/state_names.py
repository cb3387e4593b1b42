# SPDX-License-Identifier: BSD-3-Clause
"""Names of the values of open vessels in checkpoints, including those of earlier versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Names in earlier versions, by the present names.
FORMER = {
    "control_interval": "hold",
    "distance_due": "owed",
    "exchanges": "looks",
    "fluxes": "passed",
    "guided": "twins",
    "overdue": "late",
}


def present_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a checkpoint by their present names."""
    present = {former_name: name for name, former_name in FORMER.items()}
    return {present.get(name, name): value for name, value in values.items()}
