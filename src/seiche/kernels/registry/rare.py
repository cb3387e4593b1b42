# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of a wheel that are compiled for its lowest instruction set only, to halve the time of its build."""

from __future__ import annotations

from .spec import KernelSpec

#: Functors with few items per step: openings, sources, receivers, outputs and checks.
FEW_ITEMS = frozenset(
    (
        *("Observe", "WallShearStress", "NashPressure", "AntiBounceBackPressure", "LaddVelocity", "PlanePressure"),
        *("OutgoingDepth", "IncomingDepth", "Tick", "SumInflow", "Windkessel", "Reduce", "PackPush"),
        *("WriteTraces", "AddSources", "Record", "AdvanceClock", "PeakMotion", "Damp", "DampMemory"),
        *("AddIncident", "AddContrast", "IncidentMotion"),
        *("kspace::Advance", "kspace::Clear", "kspace::AddField", "kspace::Inject", "kspace::InitialDensity"),
        *("kspace::Sample", "kspace::Harmonic"),
    )
)
#: Layouts that are selected for flow without cells on a CPU.
_SELECTED_LAYOUTS = ("ListAAEven<", "ListAAOdd<")


def is_rare(spec: KernelSpec) -> bool:
    """Return whether the instruction set of a kernel hardly affects the time of runs with default settings."""
    functor, _, arguments = spec.type.partition("<")
    if functor == "StreamCollide" and "CellForce<" not in arguments:
        return not arguments.startswith(_SELECTED_LAYOUTS)
    return functor in FEW_ITEMS
