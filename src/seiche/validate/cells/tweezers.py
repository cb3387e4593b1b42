# SPDX-License-Identifier: BSD-3-Clause
"""A red cell stretched by optical tweezers: axial and transverse equilibrium diameters as functions of the force."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from seiche.backend import open_backend
from seiche.cells import Cells, equilibrium, red_cell
from seiche.cells.loop import limit_points
from seiche.io.files import replacing
from seiche.report.style import COLORS, SINGLE_COLUMN, new_figure, paper_style, save
from seiche.validate.check import Check, Floats, Setting

_MILLS = "Mills et al. 2004, Mech. Chem. Biosyst. 1, 169"
#: Force (pN), and axial and transverse diameters with their error bars (um).
MEASURED = np.array(
    [
        (0.0, 7.57, 0.65, 7.57, 0.65),
        (20.1, 9.54, 0.93, 6.27, 0.74),
        (38.3, 11.15, 1.15, 5.44, 0.60),
        (67.8, 12.87, 1.08, 4.72, 0.72),
        (108.9, 14.42, 1.46, 4.58, 0.74),
        (151.0, 15.59, 1.29, 4.37, 0.60),
        (193.1, 16.28, 1.79, 4.37, 0.62),
    ]
)
#: Fraction of the vertices at each end to which the force is applied.
END = 0.05


def diameters(setting: Setting) -> Floats:
    """Return the axial and transverse diameters (7, 2) at the forces in MEASURED."""
    kind = red_cell(162 if setting.quick else 642)
    cells = Cells(open_backend(setting.device), [kind], [np.zeros((1, 3))])
    order_along_x = np.argsort(cells.vertices()[0, :, 0])
    count_at_end = round(END * len(order_along_x))
    results = []
    for force in MEASURED[:, 0]:
        loads = np.zeros((len(order_along_x), 3))
        loads[order_along_x[:count_at_end], 0], loads[order_along_x[-count_at_end:], 0] = (
            -force / count_at_end,
            force / count_at_end,
        )
        stretched = equilibrium(cells, loads, tolerance=3e-4).vertices
        results.append(np.ptp(limit_points(kind.mesh.faces, stretched), axis=0)[:2])
    return np.array(results)


def stretching(setting: Setting) -> list[Check]:
    """Check that both diameters are within the error bars at all forces, with one set of parameters."""
    results = diameters(setting)
    axial = np.abs(results[:, 0] - MEASURED[:, 1]) / MEASURED[:, 2]
    width_errors = np.abs(results[:, 1] - MEASURED[:, 3]) / MEASURED[:, 4]
    plot = partial(_figure, results=results)
    common: dict[str, Any] = {"unit": "error bars", "reference": _MILLS}
    return [
        Check("stretched red cell: axial diameter, worst of 7 forces", float(axial.max()), 1.0, plot=plot, **common),
        Check("stretched red cell: transverse diameter, worst of 7 forces", float(width_errors.max()), 1.0, **common),
    ]


@paper_style()
def _figure(path: Path, *, results: Floats) -> None:
    """Plot both diameters against the force, with the measured values and their error bars."""
    figure = new_figure(SINGLE_COLUMN, 0.78 * SINGLE_COLUMN)
    axes = figure.add_subplot()
    for column, label in enumerate(("axial", "transverse")):
        bars = MEASURED[:, 1 + 2 * column : 3 + 2 * column]
        color = COLORS[column]
        axes.errorbar(MEASURED[:, 0], bars[:, 0], bars[:, 1], fmt="o", color=color, markersize=4, label=label)
        axes.plot(MEASURED[:, 0], results[:, column], color=color)
    axes.set_xlabel("force (pN)")
    axes.set_ylabel("diameter (µm)")
    axes.legend()
    with replacing(path) as temporary:
        save(figure, temporary, str(path))
