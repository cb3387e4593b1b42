# SPDX-License-Identifier: BSD-3-Clause
"""Fields of the solver in SI units, by their names in a case file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seiche.case.flow.units import Kind, LatticeUnits

if TYPE_CHECKING:
    from seiche.flow import Solver
    from seiche.flow.snapshot import Snapshots

#: For each field of a case file: solver field, kind of unit, components, SI unit.
FIELDS: dict[str, tuple[str, Kind | None, int, str]] = {
    "pressure": ("density", None, 1, "Pa"),
    "density": ("density", None, 1, "kg/m^3"),
    "velocity": ("velocity", "velocity", 3, "m/s"),
    "shear_rate": ("shear_rate", "rate", 1, "1/s"),
    "stress": ("stress", "stress", 6, "Pa"),
    "wall_shear_stress": ("wall_shear_stress", "stress", 3, "Pa"),
    "traction": ("traction", "stress", 3, "Pa"),
    "viscosity": ("viscosity", "viscosity", 1, "Pa s"),
}


def components(names: Sequence[str]) -> dict[str, int]:
    """Return the number of components of each field."""
    return {name: FIELDS[name][2] for name in names}


def unit_names(names: Sequence[str]) -> dict[str, str]:
    """Return the SI unit of each field."""
    return {name: FIELDS[name][3] for name in names}


def lattice_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the solver fields from which the fields `names` of a case file are computed."""
    return tuple(dict.fromkeys(FIELDS[name][0] for name in names))


def si_fields(solver: Solver, units: LatticeUnits, names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    """Return the fields `names` in SI units; rows are the sites `solver.owned`, viscosity is dynamic."""
    return to_si(solver.fields(lattice_names(names)), units, names)


def warm_up(solver: Solver, snapshots: Snapshots, count: int) -> None:
    """Take a trial snapshot, to allocate memory for `count` snapshots and to compile the kernels (collective)."""
    snapshots.reserve(count)
    solver.measures.snapshot(snapshots).fields()


def to_si(
    lattice: Mapping[str, npt.NDArray[Any]], units: LatticeUnits, names: Sequence[str]
) -> dict[str, npt.NDArray[Any]]:
    """Return the fields `names` in SI units from those of the solver."""
    result = {}
    for name in names:
        source, kind, _, _ = FIELDS[name]
        values = lattice[source].astype(np.float64, copy=False)  # on the host or a device
        if name == "pressure":
            result[name] = units.pressure_of_density(values)
        elif name == "density":
            result[name] = values * units.density
        elif kind is not None:
            result[name] = units.to_si(kind, values) * (units.density if name == "viscosity" else 1.0)
    return result
