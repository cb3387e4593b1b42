# SPDX-License-Identifier: BSD-3-Clause
"""Capsules in shear at finite deformation, compared with a boundary-integral solution in unbounded Stokes flow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from seiche.io.files import replacing
from seiche.report.style import COLORS, SINGLE_COLUMN, new_figure, paper_style, save
from seiche.validate.cells.capsules import Capsule
from seiche.validate.check import Check, Family, Setting

_SOURCE = "boundary-integral solution (docs/theory/coupling.md, section 9)"


@dataclass(frozen=True)
class PublishedCapsule:
    """Deformation of a capsule with C = `area_ratio` at the capillary number mu g a / G, steady at `strain`."""

    law: str
    area_ratio: float
    capillary: float
    deformation: float
    strain: float = 5.0

    @property
    def name(self) -> str:
        """Return the law and its area ratio."""
        return self.law if self.law == "neo-Hookean" else f"{self.law} C = {self.area_ratio:g}"


TABLE = (
    PublishedCapsule("neo-Hookean", 1.0, 0.15, 0.269, 4.0),
    PublishedCapsule("neo-Hookean", 1.0, 0.30, 0.3976),
    PublishedCapsule("neo-Hookean", 1.0, 0.60, 0.520, 8.0),
    PublishedCapsule("Skalak", 1.0, 0.15, 0.234, 4.0),
    PublishedCapsule("Skalak", 1.0, 0.30, 0.3343, 4.0),
    PublishedCapsule("Skalak", 1.0, 0.60, 0.4300),
    PublishedCapsule("Skalak", 1.0, 1.20, 0.5202),
    PublishedCapsule("Skalak", 10.0, 0.30, 0.235, 3.0),
)
#: The row of the quick form.
_QUICK = TABLE[1]
#: Radii in sites, and the number of vertices, for which edges are shorter than two sites at every radius.
RADII, VERTICES = (8.0, 12.0, 20.0), 2562
#: Number of samples of the steady deformation, at strain intervals of a quarter.
SAMPLES = 5


def computed(setting: Setting, row: PublishedCapsule, radius: float, vertices: int) -> float:
    """Return the deformation on a lattice."""
    capsule = Capsule(
        row.law, row.capillary, radius, vertices, area_ratio=row.area_ratio, viscosity=1.0, scheme="adams-bashforth"
    )
    return capsule.deformed(setting, row.strain, SAMPLES)


def extrapolated(radii: tuple[float, ...], found: list[float]) -> float:
    """Return the limit for fine lattices: the polynomial in 1/radius through all points, evaluated at 0."""
    return float(np.polynomial.Polynomial.fit(1 / np.array(radii), found, len(radii) - 1)(0.0))


def _family(row: PublishedCapsule) -> Family:
    """Return the family that checks the deformation in a row of the table.

    The quick form is one row on one coarse lattice, on which errors of opposite signs cancel.
    """

    def family(setting: Setting) -> list[Check]:
        if not setting.quick:
            return _row(setting, row, RADII, VERTICES)
        return _row(setting, replace(row, strain=4.0), (4.0,), 642) if row is _QUICK else []

    family.__name__ = f"{row.name} at capillary number {row.capillary:g}".lower()
    return family


def _row(setting: Setting, row: PublishedCapsule, radii: tuple[float, ...], vertices: int) -> list[Check]:
    """Return the check of a row, with the result extrapolated from several lattices, and the result on each."""
    values = [computed(setting, row, radius, vertices) for radius in radii]
    limit = extrapolated(radii, values)
    name = f"capsule in shear, {row.name}, capillary number {row.capillary:g}: D"
    plot = partial(_figure, result=(row, values[-1], limit))
    checks = [Check(name, abs(limit / row.deformation - 1), 0.03, reference=_SOURCE, plot=plot)]
    for radius, value in zip(radii, values, strict=True):
        lattice = f"{name} at a radius of {radius:g} sites"
        checks.append(Check(lattice, value / row.deformation - 1, sense="recorded", reference=_SOURCE))
    return checks


#: A family for each row: each takes minutes on a GPU.
FAMILIES: tuple[Family, ...] = tuple(_family(row) for row in TABLE)


@paper_style()
def _figure(path: Path, *, result: tuple[PublishedCapsule, float, float]) -> None:
    """Plot the table (lines), and the result on the finest lattice (open symbol) and extrapolated (filled)."""
    figure = new_figure(SINGLE_COLUMN, 0.78 * SINGLE_COLUMN)
    axes = figure.add_subplot()
    for number, name in enumerate(dict.fromkeys(row.name for row in TABLE)):
        rows = [row for row in TABLE if row.name == name]
        color = COLORS[number]
        x, y = [row.capillary for row in rows], [row.deformation for row in rows]
        axes.plot(x, y, "-" if len(x) > 1 else "_", color=color, label=name, zorder=1, markersize=12)
        row, finest, limit = result
        if row.name == name:
            axes.plot(row.capillary, finest, "o", color=color, markerfacecolor="white", markersize=4, zorder=2)
            axes.plot(row.capillary, limit, "o", color=color, markersize=4, zorder=3)
    axes.set_xlabel("capillary number")
    axes.set_ylabel("deformation D")
    axes.legend()
    with replacing(path) as temporary:
        save(figure, temporary, str(path))
