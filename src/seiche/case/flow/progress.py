# SPDX-License-Identifier: BSD-3-Clause
"""Physical quantities of a flow as text: for the progress line, and for the end of a run."""

from __future__ import annotations

from collections.abc import Mapping

from seiche.case.flow.monitor import Record
from seiche.report.display_units import display_unit


def flow_physics(record: Record, *, is_open: bool) -> dict[str, str]:
    """Return the Mach number and the relative drift of mass; for a vessel with openings the balance of flow rates."""
    values = {"Mach": f"{record.mach:.2g}"} if record.mach is not None else {}
    if not is_open and len(record.masses) > 1:
        values["mass drift"] = f"{record.masses[-1] / record.masses[0] - 1.0:+.1e}"
    if is_open and record.flows and (balance := _balance(record.flows[-1].tolist())) is not None:
        values["inflow - outflow"] = f"{100 * balance:+.2g} %"
    return values


def _balance(rates: list[float]) -> float | None:
    """Return the net inflow relative to the total inflow; None without inflow."""
    inflow = sum(rate for rate in rates if rate > 0)
    return sum(rates) / inflow if inflow > 0 else None


def flow_lines(
    invariants: Mapping[str, float], rates: Mapping[str, float], *, is_open: bool, steady: bool = True
) -> list[str]:
    """Return the dimensionless numbers, the change of mass and the flow rates (m^3/s) through the openings.

    If the flow is not `steady`, the balance of the flow rates says so.
    """
    names = {"reynolds": "Reynolds number", "womersley": "Womersley number", "mach_seen": "largest Mach number"}
    numbers = [f"{text} {invariants[name]:.3g}" for name, text in names.items() if name in invariants]
    if not is_open and "mass_change_relative" in invariants:
        numbers.append(f"change of mass {invariants['mass_change_relative']:+.1e}")
    lines = [", ".join(numbers)] if numbers else []
    if rates:
        factor, unit = display_unit(max(abs(rate) for rate in rates.values()), "m^3/s")
        text = ", ".join(f"{name} {rate * factor:+.4g}" for name, rate in rates.items())
        balance = _balance(list(rates.values()))
        net = "" if balance is None else f"; inflow - outflow {100 * balance:+.2g} %"
        net += "" if steady else " (not steady yet)"
        lines.append(f"flow rates into the vessel ({unit}): {text}{net}")
    return lines
