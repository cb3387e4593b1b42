# SPDX-License-Identifier: BSD-3-Clause
"""Forces on bodies of a flow case in SI units, force coefficients, and the Strouhal number of the lift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.case.flow.schema_forces import ForceOutput
from seiche.case.flow.setup import FlowSetup
from seiche.case.flow.units import LatticeUnits

Floats = npt.NDArray[np.float64]
#: Range of the lift, relative to the largest force, below which the flow counts as steady; start-up and rounding cause
#: smaller changes.
STEADY = 1e-3


def in_si(units: LatticeUnits, forces: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return force (N) and torque (N m) of each body, (6,), from lattice units."""
    scale = np.repeat([units.scale("force"), units.scale("energy")], 3)
    return {name: values * scale for name, values in forces.items()}


def summary_of(setup: FlowSetup, times: Sequence[float], history: Mapping[str, Sequence[Floats]]) -> dict[str, Any]:
    """Return the entries of each body for the summary, from its records (n, 6) at `times` (n,) in s.

    Extrema, means and the Strouhal number are computed from the second half of the records.
    """
    entries: dict[str, Any] = {}
    for table in setup.case.output.force:
        records = np.array(history.get(table.name, ())).reshape(-1, 6)
        if not len(records):
            continue
        entries[table.name] = {"force_N": records[-1, :3], "torque_N_m": records[-1, 3:]}
        entries[table.name] |= _coefficients(table, setup, np.array(times), records[:, :3])
        entries[table.name]["history"] = {"force_N": records[:, :3], "torque_N_m": records[:, 3:]}
    return entries


def _coefficients(table: ForceOutput, setup: FlowSetup, times: Floats, force: Floats) -> dict[str, Any]:
    if table.velocity is None or table.area is None:
        return {}
    pressure = 0.5 * setup.units.density * table.velocity**2 * table.area
    entries: dict[str, Any] = {}
    late = slice(len(force) // 2, None)
    max_coefficient = float(np.linalg.norm(force[late], axis=1).max()) / pressure
    for name, direction in (("drag", table.drag), ("lift", table.lift)):
        values = force @ np.array(direction) / np.linalg.norm(direction) / pressure
        entries |= {
            f"{name}_coefficient": float(values[-1]),
            f"{name}_coefficient_mean": float(values[late].mean()),
            f"{name}_coefficient_range": [float(values[late].min()), float(values[late].max())],
        }
        if name == "lift" and table.length is not None:
            rate = frequency(times[late], values[late], STEADY * max_coefficient)
            entries["strouhal"] = None if rate is None else rate * table.length / table.velocity
    return entries


def frequency(times: Floats, values: Floats, min_amplitude: float = 0.0) -> float | None:
    """Return the frequency of an oscillation from its upward crossings of the mean.

    The result is None if there are fewer than three crossings or no sustained oscillation: the range of the values is
    below `min_amplitude`, or it is more than halved in their second half, as in a flow that becomes steady.
    """
    half = len(values) // 2
    early, late = (float(np.ptp(part)) if len(part) else 0.0 for part in (values[:half], values[half:]))
    if not late > min_amplitude or late < 0.5 * early:
        return None
    excess = values - 0.5 * (values.min() + values.max())
    before = np.flatnonzero((excess[:-1] < 0.0) & (excess[1:] >= 0.0))
    if len(before) < 3:
        return None
    share = -excess[before] / (excess[before + 1] - excess[before])
    crossings = times[before] + share * (times[before + 1] - times[before])
    return float((len(crossings) - 1) / (crossings[-1] - crossings[0]))


def lines_of(entries: Mapping[str, Any]) -> list[str]:
    """Return one line for each body: its last force, and its coefficients."""
    lines = []
    for name, entry in entries.items():
        x, y, z = entry["force_N"]
        line = f"force on {name}: ({x:.4g}, {y:.4g}, {z:.4g}) N"
        if "drag_coefficient" in entry:
            line += (
                f", drag coefficient {entry['drag_coefficient']:.5g}, lift coefficient {entry['lift_coefficient']:.4g}"
            )
        if entry.get("strouhal") is not None:
            line += f", Strouhal number {entry['strouhal']:.4g}"
        lines.append(line)
    return lines
