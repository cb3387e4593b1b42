# SPDX-License-Identifier: BSD-3-Clause
"""Shape recovery of a stretched red cell in plasma, with a recovery time determined by the surface viscosity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from seiche.backend import open_backend
from seiche.cells import Cells, equilibrium, red_cell
from seiche.cells.loop import limit_points
from seiche.cells.red import VISCOSITY
from seiche.couple import Blood
from seiche.domain import shapes
from seiche.flow.model import FlowModel, Newtonian, Precision
from seiche.io.files import replacing
from seiche.report.style import COLORS, SINGLE_COLUMN, new_figure, paper_style, save
from seiche.validate.cells.red_cells import CYTOSOL, PLASMA, CellLattice
from seiche.validate.cells.tweezers import END
from seiche.validate.check import Check, Floats, Setting

_HOCHMUTH = "Hochmuth, Worthy, Evans 1979, Biophys. J. 26, 101: 100 to 130 ms"
#: Range of the length-to-width ratio for the fit; with strain hardening, the recovery is faster at larger ratios.
TAIL = (1.3, 1.1)


@dataclass(frozen=True)
class Recovery:
    """A red cell stretched by `force` (pN) and released in a periodic box of plasma; um, s.

    `step` and `spacing` are those of the lattice; `surface` is the surface viscosity (N s/m).
    """

    surface: float = VISCOSITY
    spacing: float = 0.5
    step: float = 4e-6
    vertices: int = 642
    size: tuple[float, float, float] = (20.0, 14.0, 12.0)
    force: float = 30.0

    def stretched(self) -> Floats:
        """Return the vertices (n, 3) in equilibrium with the force along x, in um."""
        cells = Cells(open_backend("cpu", 1), [red_cell(self.vertices)], [np.zeros((1, 3))])
        along = np.argsort(cells.vertices()[0, :, 0])
        count_at_end = round(END * len(along))
        loads = np.zeros((len(along), 3))
        loads[along[:count_at_end], 0], loads[along[-count_at_end:], 0] = (
            -self.force / count_at_end,
            self.force / count_at_end,
        )
        return equilibrium(cells, loads, tolerance=3e-4).vertices

    def ratios(self, setting: Setting, duration: float, samples: int = 100) -> tuple[Floats, Floats]:
        """Return times (s) and length-to-width ratios during the recovery."""
        lattice = CellLattice(self.spacing, self.step, PLASMA)
        sites = shapes.box(tuple(round(size / self.spacing) for size in self.size))  # type: ignore[arg-type]
        solver = setting.solver(
            sites, FlowModel(Newtonian(lattice.viscosity)), precision=Precision("float32", "float32")
        )
        kind = lattice.red_cell(self.vertices, self.surface)
        center = sites.coords.mean(axis=0)
        cells = Cells(solver.backend, [kind], [[center]], precision="float32")
        cells.set_vertices((self.stretched() / self.spacing + center)[None])
        blood = Blood(solver, cells, viscosity_contrast=CYTOSOL / PLASMA)
        every, ratios = round(duration / (samples * self.step)), []
        for _ in range(samples):
            blood.advance(every)
            extent = np.ptp(limit_points(kind.mesh.faces, blood.cells.vertices()[0]), axis=0)
            ratios.append(extent[0] / extent[1])
        solver.close()
        return np.asarray(every * self.step * np.arange(1, samples + 1), np.float64), np.array(ratios, np.float64)


def recovery_time(times: Floats, ratios: Floats) -> float:
    """Return the time of Evans' form, (L/W - 1)/(L/W + 1) = q exp(-t/time), fitted to `TAIL` (theory/cells, eq. 20)."""
    tail = (ratios < TAIL[0]) & (ratios > TAIL[1])
    if tail.sum() < 5:
        return float("nan")
    logarithm = np.log((ratios - 1) / (ratios + 1))[tail]
    return float(-1 / np.polynomial.Polynomial.fit(times[tail], logarithm, 1).convert().coef[1])


def recovery(setting: Setting) -> list[Check]:
    """Compare the recovery time with the measured one; without surface viscosity it is far too short."""
    coarse = {"spacing": 0.8, "step": 6e-6, "vertices": 162, "size": (16.0, 11.2, 9.6)} if setting.quick else {}
    curves = {
        name: Recovery(surface, **coarse).ratios(setting, duration)  # type: ignore[arg-type]
        for name, surface, duration in (("viscous", VISCOSITY, 0.16), ("elastic", 0.0, 0.03))
    }
    times_of_recovery = {name: recovery_time(*curve) for name, curve in curves.items()}
    plot = partial(_figure, curves=curves)
    name = "stretched red cell, released in plasma: time of recovery, minus 115 ms"
    return [
        Check(name, abs(times_of_recovery["viscous"] - 0.115), 0.015, unit="s", reference=_HOCHMUTH, plot=plot),
        Check(
            "the same without surface viscosity: time of recovery",
            times_of_recovery["elastic"],
            sense="recorded",
            unit="s",
        ),
    ]


@paper_style()
def _figure(path: Path, *, curves: Mapping[str, tuple[Floats, Floats]]) -> None:
    """Plot (L/W - 1)/(L/W + 1) as a function of time."""
    figure = new_figure(SINGLE_COLUMN, 0.78 * SINGLE_COLUMN)
    axes = figure.add_subplot()
    for number, (name, (times, ratios)) in enumerate(curves.items()):
        axes.semilogy(1e3 * times, (ratios - 1) / (ratios + 1), color=COLORS[number], label=name)
    axes.set_xlabel("time (ms)")
    axes.set_ylabel("(L/W − 1)/(L/W + 1)")
    axes.legend()
    with replacing(path) as temporary:
        save(figure, temporary, str(path))
