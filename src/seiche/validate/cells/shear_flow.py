# SPDX-License-Identifier: BSD-3-Clause
"""Checks of a single red cell in shear flow: tank-treading, and tumbling in weak shear."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from seiche.cells.red import VISCOSITY
from seiche.io.files import replacing
from seiche.report.style import COLORS, SINGLE_COLUMN, new_figure, paper_style, save
from seiche.validate.cells.one_cell import CellInShear, CellMotion
from seiche.validate.cells.red_cells import DEXTRAN, PLASMA
from seiche.validate.check import Check, Setting

_TRAN = "Tran-Son-Tay, Sutera, Rao 1984, Biophys. J. 46, 65"
_KELLER = "Keller, Skalak 1982, J. Fluid Mech. 120, 27"
#: Surface viscosity (N s/m) inferred from tank-treading experiments (docs/theory/cells.md, section 8).
TREADING_VISCOSITY = 0.1e-6


def _tank_treading(setting: Setting, rate: float = 57.1, surface: float = VISCOSITY) -> CellMotion:
    if setting.quick:
        size = (21.0, 11.2, 14.0)
        coarse = CellInShear(rate, DEXTRAN, spacing=0.7, strain=5e-3, size=size, surface_viscosity=surface)
        return coarse.motion(setting, 22.0)
    return CellInShear(rate, DEXTRAN, strain=2e-3, surface_viscosity=surface).motion(setting, 40.0)


def _tumbling(setting: Setting) -> CellMotion:
    if setting.quick:
        coarse = CellInShear(100.0, PLASMA, spacing=1.0, vertices=162, strain=8e-4, size=(18.0, 14.0, 16.0))
        return coarse.motion(setting, 14.0)
    return CellInShear(30.0, PLASMA, strain=2e-4).motion(setting, 22.0)


def one_red_cell(setting: Setting) -> list[Check]:
    """Check that a cell with the viscosities of cytosol and recovery treads in the viscous fluid and tumbles in plasma.

    The tank-treading rate is recorded for comparison with the measured value of 0.22, because no surface viscosity
    gives both this rate and the recovery time. The rate with the viscosity inferred from tank-treading experiments is
    also recorded.
    """
    treading, tumbling = _tank_treading(setting), _tumbling(setting)
    motions = {"57 1/s in 35 mPa s": treading, f"{100 if setting.quick else 30} 1/s in plasma": tumbling}
    half = len(treading.vertices) // 2
    swing = float(np.degrees(np.ptp(treading.inclination()[half:])))
    angle = float(np.degrees(treading.inclination()[half:].mean()) % 180)
    checks = [
        _rate(treading, 57, VISCOSITY, plot=partial(_figure, motions=motions)),
        Check("red cell at 57 1/s in 35 mPa s: half turns of its shape", treading.half_turns(), 1.0, reference=_TRAN),
        Check(
            "red cell at 57 1/s in 35 mPa s: oscillation of its axis", swing, 40.0, unit="degrees", reference=_KELLER
        ),
        Check("red cell at 57 1/s in 35 mPa s: inclination", angle, sense="recorded", unit="degrees", reference=_TRAN),
        Check("red cell in plasma, weak shear: half turns", tumbling.half_turns(), 1.0, "above", reference=_KELLER),
        Check("red cell in shear: change of volume", max(treading.drift[1], tumbling.drift[1]), 0.015),
    ]
    if not setting.quick:
        for rate, surface in ((57.1, TREADING_VISCOSITY), (57.1, 0.0), (171.4, VISCOSITY), (171.4, TREADING_VISCOSITY)):
            motion = _tank_treading(setting, rate, surface)
            checks.append(_rate(motion, int(rate), surface))
            if surface == TREADING_VISCOSITY:
                name = f"red cell at {rate:.0f} 1/s in 35 mPa s, 0.1 uN s/m: the same, minus 0.22"
                checks.append(Check(name, abs(motion.treading_rate() - 0.22), 0.03, reference=_TRAN))
    return checks


def _rate(motion: CellMotion, rate: int, surface: float, plot: Callable[[Path], None] | None = None) -> Check:
    """Return the tank-treading rate as a recorded value."""
    name = f"red cell at {rate} 1/s in 35 mPa s, {1e6 * surface:g} uN s/m: tank-treading frequency over the shear rate"
    return Check(name, motion.treading_rate(), sense="recorded", reference=f"{_TRAN}: 0.22", plot=plot)


@paper_style()
def _figure(path: Path, *, motions: Mapping[str, CellMotion]) -> None:
    """Plot the inclination of the shape against the strain: constant for tank-treading, decreasing for tumbling."""
    figure = new_figure(SINGLE_COLUMN, 0.78 * SINGLE_COLUMN)
    axes = figure.add_subplot()
    for number, (name, motion) in enumerate(motions.items()):
        degrees = np.degrees(motion.inclination())
        axes.plot(motion.strains, degrees - 180 * round(degrees[0] / 180), color=COLORS[number], label=name)
    axes.set_xlabel("shear rate times time")
    axes.set_ylabel("inclination (degrees)")
    axes.legend()
    with replacing(path) as temporary:
        save(figure, temporary, str(path))
