# SPDX-License-Identifier: BSD-3-Clause
"""Checks of red cells in tubes: viscosity, hematocrits, the cell-free layer, shear thinning, long runs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from seiche.cells.red import VISCOSITY
from seiche.io.files import replacing
from seiche.report.style import COLORS, SINGLE_COLUMN, new_figure, paper_style, save
from seiche.validate.cells.red_cells import PLASMA, CellLattice
from seiche.validate.cells.tubes import TubeMeasurements, TubeSuspension, hematocrit_ratio, relative_viscosity
from seiche.validate.check import Check, Family, Setting

_PRIES = "Pries et al. 1992, doi:10.1152/ajpheart.1992.263.6.H1770"
_FAHRAEUS = "Pries et al. 1990, Circ. Res. 67, 826"
#: Lattice of the tubes that are compared with measurements; the others have a spacing of half a micrometre. Both time
#: steps are less than half the stability limit (docs/theory/coupling.md, section 6).
_FINE = CellLattice(0.25, 1e-6, PLASMA, 1 / 3)
#: Lattice of the quick checks: one micrometre, for trends only.
_QUICK = CellLattice(1.0, 4e-6, PLASMA, 0.3)
_NARROW = TubeSuspension(10.0, 0.32, transits=0.4, length=16.0, lattice=_QUICK, vertices=162, samples=8, rate=100.0)
_TUBES = (
    TubeSuspension(10.0, 0.32, transits=16.0),
    TubeSuspension(20.0, 0.33, transits=14.0),
    TubeSuspension(40.0, 0.28, transits=9.0),
)
_MIDDLE = _TUBES[1]
#: Surface viscosity (N s/m) from measurements in fast shear; that of recovery is the default (theory/cells, section 8).
_IN_FAST_SHEAR = 0.1e-6


def _family(tube: TubeSuspension) -> Family:
    """Return the family for a tube: viscosity and tube hematocrit at the discharge hematocrit, and cell-free layer.

    The quick form is one narrow tube on a coarse lattice, in which the cells must be faster than the plasma and leave a
    cell-free layer at the wall.
    """
    name = _name(tube)

    def family(setting: Setting) -> list[Check]:
        if setting.quick:
            return _quick_tube(setting) if name == _name(_NARROW) else []
        run = replace(tube, lattice=_FINE).run(setting)
        first, *other_checks = _against_pries(run)
        return [replace(first, plot=partial(_figure, run=run)), *other_checks]

    family.__name__ = name
    return family


def _name(tube: TubeSuspension) -> str:
    name = f"tube of {tube.diameter:g} um"
    return name if tube.surface_viscosity == VISCOSITY else f"{name}, {1e6 * tube.surface_viscosity:g} uN s/m"


#: A family for each tube and surface viscosity.
TUBES: tuple[Family, ...] = tuple(
    _family(replace(tube, surface_viscosity=viscosity)) for viscosity in (VISCOSITY, _IN_FAST_SHEAR) for tube in _TUBES
)


def _quick_tube(setting: Setting) -> list[Check]:
    measured = _NARROW.run(setting)
    ratio = measured.tube_hematocrit / measured.discharge_hematocrit
    return [
        Check("tube of 10 um: tube hematocrit over discharge hematocrit", ratio, 0.98, reference=_FAHRAEUS),
        Check("tube of 10 um: cell-free layer", measured.layer, 0.5, "above", "um"),
        Check("tube of 10 um: viscosity over that of plasma", measured.viscosity, 1.0, "above", reference=_PRIES),
        Check("tube of 10 um: change of volume of a cell", measured.drift[1], 0.005),
    ]


def _against_pries(run: TubeMeasurements) -> list[Check]:
    diameter, hematocrit = run.suspension.diameter, run.effective_hematocrit
    name = _name(run.suspension)
    viscosity = abs(run.viscosity / relative_viscosity(diameter, hematocrit) - 1)
    plain = run.viscosity / relative_viscosity(diameter, run.discharge_hematocrit) - 1
    ratio = run.tube_hematocrit / run.discharge_hematocrit
    checks = [
        Check(f"{name}: viscosity at the discharge hematocrit", viscosity, 0.15, reference=_PRIES),
        Check(f"{name}: viscosity at the hematocrit of the vertices, relative error", plain, sense="recorded"),
        Check(f"{name}: discharge hematocrit of cells with their hydrodynamic volume", hematocrit, sense="recorded"),
        Check(
            f"{name}: tube over discharge hematocrit",
            abs(ratio / hematocrit_ratio(diameter, hematocrit) - 1),
            0.10,
            reference=_FAHRAEUS,
        ),
        Check(f"{name}: change of volume of a cell", run.drift[1], 0.005),
    ]
    if diameter < 20:
        return [*checks, Check(f"{name}: cell-free layer", run.layer, sense="recorded", unit="um")]
    return [
        *checks,
        Check(f"{name}: cell-free layer, at least", run.layer, 1.5, "above", "um"),
        Check(f"{name}: cell-free layer, at most", run.layer, 4.0, unit="um"),
    ]


def shear_thinning(setting: Setting) -> list[Check]:
    """Check that the viscosity of the suspension is lower at a sixteen times higher shear rate.

    The quick form is a narrow tube for 12 ms at both rates. Since membranes recover in 0.1 s, the effect is too small
    at a ratio of four.
    """
    if setting.quick:
        slow, fast = (replace(_NARROW, rate=rate, transits=0.012 * rate) for rate in (25.0, 400.0))
    else:
        slow, fast = replace(_MIDDLE, rate=20.0, transits=5.0), replace(_MIDDLE, rate=320.0, transits=16.0)
    values = [suspension.run(setting).viscosity for suspension in (slow, fast)]
    name = f"tube of {slow.diameter:g} um: viscosity at {slow.rate:g} 1/s over that at {fast.rate:g} 1/s"
    return [Check(name, values[0] / values[1], 1.02, "above")]


def endurance(setting: Setting) -> list[Check]:
    """Check a hematocrit of 0.45 in a 20 um tube for 200 000 steps: no cell is lost or inverted, volumes are constant.

    A lost or inverted cell ends a run with an error.
    """
    dense = replace(_MIDDLE, hematocrit=0.45, gap=0.2, transits=32.01)
    if setting.quick:
        dense = replace(dense, lattice=_QUICK, vertices=162, length=20.0, transits=0.1, samples=2)
    measured = dense.run(setting)
    name = f"{dense.steps} steps at hematocrit {measured.tube_hematocrit:.2f}"
    return [
        Check(f"{name}: change of volume of a cell", measured.drift[1], 0.005),
        Check(f"{name}: change of area of a cell", measured.drift[0], sense="recorded"),
    ]


@paper_style()
def _figure(path: Path, *, run: TubeMeasurements) -> None:
    """Plot the published viscosity against the diameter, and the computed one with its discharge hematocrit."""
    figure = new_figure(SINGLE_COLUMN, 0.78 * SINGLE_COLUMN)
    axes = figure.add_subplot()
    diameters = np.geomspace(6, 80, 80)
    for number, hematocrit in enumerate((0.3, 0.5)):
        curve = [relative_viscosity(float(diameter), hematocrit) for diameter in diameters]
        axes.semilogx(diameters, curve, color=COLORS[number], label=f"Pries et al. 1992, hematocrit {hematocrit:g}")
    point = run.suspension.diameter, run.viscosity
    axes.plot(*point, "o", color="0.2", markersize=4)
    axes.annotate(f"{run.effective_hematocrit:.2f}", point, xytext=(4, 4), textcoords="offset points")
    axes.set_xlabel("diameter (µm)")
    axes.set_ylabel("viscosity over that of plasma")
    axes.set_xticks([10, 20, 40, 80], ["10", "20", "40", "80"])
    axes.legend()
    with replacing(path) as temporary:
        save(figure, temporary, str(path))
