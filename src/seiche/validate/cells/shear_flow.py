# SPDX-License-Identifier: BSD-3-Clause
"""Checks of one red cell in shear flow: tank-treading, and tumbling in weak shear."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np

from seiche.io.files import replacing
from seiche.report.style import COLORS, SINGLE_COLUMN, new_figure, paper_style, save
from seiche.validate.cells.one_cell import CellInShear, CellMotion
from seiche.validate.cells.red_cells import DEXTRAN, PLASMA
from seiche.validate.check import Check, Setting

_TRAN = "Tran-Son-Tay, Sutera, Rao 1984, Biophys. J. 46, 65"
_KELLER = "Keller, Skalak 1982, J. Fluid Mech. 120, 27"
#: Effective viscosity contrast of cytosol and membrane in tank-treading (docs/theory/coupling.md, section 9).
EFFECTIVE_CONTRAST = 0.5


def _tank_treading(setting: Setting, rate: float = 57.1, contrast: float = EFFECTIVE_CONTRAST) -> CellMotion:
    inner = contrast * DEXTRAN
    if setting.quick:
        coarse = CellInShear(rate, DEXTRAN, inner, 0.7, strain=5e-3, size=(21.0, 11.2, 14.0))
        return coarse.motion(setting, 22.0)
    return CellInShear(rate, DEXTRAN, inner, strain=2e-3).motion(setting, 40.0)


def _tumbling(setting: Setting) -> CellMotion:
    if setting.quick:
        coarse = CellInShear(100.0, PLASMA, spacing=1.0, vertices=162, strain=8e-4, size=(18.0, 14.0, 16.0))
        return coarse.motion(setting, 14.0)
    return CellInShear(30.0, PLASMA, strain=2e-4).motion(setting, 22.0)


def one_red_cell(setting: Setting) -> list[Check]:
    """The tank-treading rate in the viscous fluid is the measured one; in plasma the cell tumbles."""
    treading, tumbling = _tank_treading(setting), _tumbling(setting)
    motions = {"57 1/s in 35 mPa s": treading, f"{100 if setting.quick else 30} 1/s in plasma": tumbling}
    half = len(treading.vertices) // 2
    swing = float(np.degrees(np.ptp(treading.inclination()[half:])))
    angle = float(np.degrees(treading.inclination()[half:].mean()) % 180)
    checks = [
        Check(
            "red cell at 57 1/s in 35 mPa s: tank-treading frequency over the shear rate, minus 0.22",
            abs(treading.treading_rate() - 0.22),
            0.03,
            reference=_TRAN,
            plot=partial(_figure, motions=motions),
        ),
        Check(
            "red cell at 57 1/s in 35 mPa s: oscillation of its axis", swing, 40.0, unit="degrees", reference=_KELLER
        ),
        Check("red cell at 57 1/s in 35 mPa s: inclination", angle, sense="recorded", unit="degrees", reference=_TRAN),
        Check("red cell in plasma, weak shear: half turns", tumbling.turns(), 1.0, "above", reference=_KELLER),
        Check("red cell in shear: change of volume", max(treading.drift[1], tumbling.drift[1]), 0.015),
    ]
    if not setting.quick:
        plain = _tank_treading(setting, contrast=6.0 / 35.0).treading_rate()
        name = "red cell at 57 1/s in 35 mPa s, with the viscosity of the cytosol only: tank-treading frequency"
        checks.append(Check(name, plain, sense="recorded", reference=_TRAN))
        fast = abs(_tank_treading(setting, rate=171.4).treading_rate() - 0.22)
        name = "red cell at 171 1/s in 35 mPa s: tank-treading frequency over the shear rate, minus 0.22"
        checks.append(Check(name, fast, 0.03, reference=_TRAN))
    return checks


@paper_style()
def _figure(path: Path, *, motions: Mapping[str, CellMotion]) -> None:
    """Draw the inclination of the shape over the strain: constant in tank-treading, decreasing in tumbling."""
    figure = new_figure(SINGLE_COLUMN, 0.78 * SINGLE_COLUMN)
    axes = figure.add_subplot()
    for number, (name, motion) in enumerate(motions.items()):
        degrees = np.degrees(motion.inclination())
        axes.plot(motion.strains, degrees - 180 * round(degrees[0] / 180), color=COLORS[number], label=name)
    axes.set_xlabel("shear rate times time")
    axes.set_ylabel("inclination (degrees)")
    axes.legend()
    with replacing(path) as part:
        save(figure, part, str(path))
