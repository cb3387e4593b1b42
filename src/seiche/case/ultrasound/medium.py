# SPDX-License-Identifier: BSD-3-Clause
"""Medium of an ultrasound case, from numbers, materials, regions, files or a CT image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from seiche.case.ultrasound.ct import ct_values
from seiche.case.ultrasound.regions import Filled, average_regions, region_points
from seiche.case.ultrasound.schema import MediumTable, Properties
from seiche.errors import CaseError
from seiche.io.arrays import read_npz
from seiche.ultrasound import Grid, Medium
from seiche.ultrasound.materials import MATERIALS
from seiche.ultrasound.medium import BAND

_NAMES = ("sound_speed", "density", "BonA", "alpha_coeff", "shear_speed", "shear_alpha_coeff")


def medium_of(table: MediumTable, grid: Grid, folder: Path) -> Medium:
    """Return the medium of a case; files are relative to `folder`.

    Raises:
        CaseError: a property is missing, or a region or a file does not match the grid.
        FormatError: a file is invalid.
    """
    power = table.exponent
    values: dict[str, Any] = dict(properties_of(table, power, elastic=table.is_elastic))
    if table.file is not None:
        arrays = read_npz(folder / table.file, _NAMES, grid.shape)
        if {"shear_speed", "shear_alpha_coeff"} & set(arrays) and not table.is_elastic:
            raise CaseError(f"medium.shear_speed: is missing; {table.file} has properties of shear waves")
        values |= arrays
    if power is None and np.any(values.get("alpha_coeff", 0.0)):
        raise CaseError(f"medium.alpha_power: is missing; alpha_coeff of {table.file} needs it")
    for name in ("sound_speed", "density"):
        if name not in values:
            raise CaseError(f"medium.{name}: is missing; set it, or choose a material or a file")
    regions = placed_regions(table, grid, folder)
    if averages(table):
        values = average_regions(regions, values, grid)
    else:
        _fill_regions(regions, values, grid)
    if table.ct is not None:
        values |= ct_values(table.ct, grid, folder, values=values, power=power)
    return medium_with(values, table)


def placed_regions(table: MediumTable, grid: Grid, folder: Path) -> list[Filled]:
    """Return the regions of a medium; CaseError if one does not suit the axes of the grid."""
    dim = len(grid.shape)
    return [
        Filled.of(
            region,
            dim,
            folder,
            name=f"medium.region[{number}]",
            properties=properties_of(region, table.exponent, elastic=table.is_elastic),
        )
        for number, region in enumerate(table.region)
    ]


def medium_with(values: Mapping[str, Any], table: MediumTable) -> Medium:
    """Return a medium with properties by name; those of absorption are omitted if there is no absorption."""
    power = table.exponent
    absorbs = power is not None and np.any(values.get("alpha_coeff", 0.0))
    shear: dict[str, Any] = {}
    if table.is_elastic:
        shear["shear_speed"] = values.get("shear_speed", 0.0)
        shear["shear_alpha_coeff"] = None if power is None else values.get("shear_alpha_coeff")
    return Medium(
        values["sound_speed"],
        values["density"],
        BonA=values.get("BonA"),
        alpha_coeff=values["alpha_coeff"] if absorbs else None,
        alpha_power=power if absorbs else None,
        alpha_mode=table.alpha_mode if absorbs else None,
        sound_speed_ref=table.reference_speed,
        relaxation_band=BAND if table.relaxation_band is None else (table.relaxation_band[0], table.relaxation_band[1]),
        staggered_density=values.get("staggered_density"),
        **shear,
    )


def averages(table: MediumTable) -> bool:
    """Return whether the regions of a medium are averaged over the cells around the points."""
    by_point = table.file is not None or table.ct is not None or table.alpha_mode == "relaxation" or table.is_elastic
    return bool(table.region) and table.average and not by_point


def _fill_regions(regions: Sequence[Filled], values: dict[str, Any], grid: Grid) -> None:
    """Set the values at each point to those of the last region that contains it; CaseError for an empty region."""
    for number, region in enumerate(regions):
        inside = region_points(region.solid, grid)
        if not inside.any():
            raise CaseError(f"medium.region[{number}]: the {region.kind} contains no point of the grid")
        for name, value in region.properties.items():
            values[name] = np.where(inside, value, values.get(name, 0.0))


def properties_of(table: Properties, alpha_power: float | None, *, elastic: bool = False) -> dict[str, float]:
    """Return the properties that a table sets, by the names of `Medium`; fluids of an `elastic` case have no shear."""
    values: dict[str, float] = {}
    if table.material is not None:
        material = MATERIALS[table.material]
        values = {"sound_speed": material.sound_speed, "density": material.density}
        if alpha_power is not None:
            values["alpha_coeff"] = material.alpha_coeff(alpha_power)
        if elastic and table.is_fluid:
            values |= {"shear_speed": 0.0, "shear_alpha_coeff": 0.0}
    return values | {name: value for name in _NAMES if (value := getattr(table, name)) is not None}
