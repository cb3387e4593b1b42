# SPDX-License-Identifier: BSD-3-Clause
"""Shape recovery of a stretched red cell in plasma; its time is determined by the surface viscosity."""

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

_REFERENCE = "Hochmuth, Worthy, Evans 1979, Biophys. J. 26, 101: 100 to 130 ms"
#: Maximum and minimum length-to-width ratio in the fit; at larger ratios, strain hardening accelerates the recovery.
FIT_RANGE = (1.3, 1.1)


@dataclass(frozen=True)
class Recovery:
    """A red cell of `vertices` vertices, stretched by `force` (pN) and released in a periodic box of plasma.

    `step` (s) and `spacing` (um) are those of the lattice, `size` (um) is that of the box, and `surface_viscosity` is
    in N s/m.
    """

    surface_viscosity: float = VISCOSITY
    spacing: float = 0.5
    step: float = 4e-6
    vertices: int = 642
    size: tuple[float, float, float] = (20.0, 14.0, 12.0)
    force: float = 30.0

    def stretched_vertices(self) -> Floats:
        """Return the vertices (n, 3) in um, in equilibrium with forces of `force` along x on the two ends."""
        cells = Cells(open_backend("cpu", 1), [red_cell(self.vertices)], [np.zeros((1, 3))])
        order_along_x = np.argsort(cells.vertices()[0, :, 0])
        end_count = round(END * len(order_along_x))
        loads = np.zeros((len(order_along_x), 3))
        loads[order_along_x[:end_count], 0] = -self.force / end_count
        loads[order_along_x[-end_count:], 0] = self.force / end_count
        return equilibrium(cells, loads, tolerance=3e-4).vertices

    def ratios(self, setting: Setting, duration: float, samples: int = 100) -> tuple[Floats, Floats]:
        """Return times (s) and length-to-width ratios, at `samples` times during the recovery of `duration` (s)."""
        lattice = CellLattice(self.spacing, self.step, PLASMA)
        sites = shapes.box(tuple(round(size / self.spacing) for size in self.size))  # type: ignore[arg-type]
        solver = setting.solver(
            sites, FlowModel(Newtonian(lattice.viscosity)), precision=Precision("float32", "float32")
        )
        kind = lattice.red_cell(self.vertices, self.surface_viscosity)
        center = sites.coords.mean(axis=0)
        cells = Cells(solver.backend, [kind], [[center]], precision="float32")
        cells.set_vertices((self.stretched_vertices() / self.spacing + center)[None])
        blood = Blood(solver, cells, viscosity_contrast=CYTOSOL / PLASMA)
        interval, ratios = round(duration / (samples * self.step)), []
        for _ in range(samples):
            blood.advance(interval)
            extent = np.ptp(limit_points(kind.mesh.faces, blood.cells.vertices()[0]), axis=0)
            ratios.append(extent[0] / extent[1])
        solver.close()
        return np.asarray(interval * self.step * np.arange(1, samples + 1), np.float64), np.array(ratios, np.float64)


def recovery_time(times: Floats, ratios: Floats) -> float:
    """Return the time constant c of (L/W - 1)/(L/W + 1) = q exp(-t/c) in `FIT_RANGE` (theory/cells, eq. 20)."""
    in_range = (ratios < FIT_RANGE[0]) & (ratios > FIT_RANGE[1])
    if in_range.sum() < 5:
        return float("nan")
    logarithm = np.log((ratios - 1) / (ratios + 1))[in_range]
    return float(-1 / np.polynomial.Polynomial.fit(times[in_range], logarithm, 1).convert().coef[1])


def recovery(setting: Setting) -> list[Check]:
    """Compare the recovery time with measurements; without surface viscosity it is far too short."""
    coarse = {"spacing": 0.8, "step": 6e-6, "vertices": 162, "size": (16.0, 11.2, 9.6)} if setting.quick else {}
    curves = {
        name: Recovery(surface_viscosity, **coarse).ratios(setting, duration)  # type: ignore[arg-type]
        for name, surface_viscosity, duration in (("viscous", VISCOSITY, 0.16), ("elastic", 0.0, 0.03))
    }
    recovery_times = {name: recovery_time(*curve) for name, curve in curves.items()}
    plot = partial(_figure, curves=curves)
    name = "stretched red cell, released in plasma: time of recovery, minus 115 ms"
    return [
        Check(name, abs(recovery_times["viscous"] - 0.115), 0.015, unit="s", reference=_REFERENCE, plot=plot),
        Check(
            "the same without surface viscosity: time of recovery",
            recovery_times["elastic"],
            sense="recorded",
            unit="s",
        ),
    ]


@paper_style()
def _figure(path: Path, *, curves: Mapping[str, tuple[Floats, Floats]]) -> None:
    """Plot (L/W - 1)/(L/W + 1) as a function of time."""
    figure = new_figure(SINGLE_COLUMN, 0.78 * SINGLE_COLUMN)
    axes = figure.add_subplot()
    for index, (name, (times, ratios)) in enumerate(curves.items()):
        axes.semilogy(1e3 * times, (ratios - 1) / (ratios + 1), color=COLORS[index], label=name)
    axes.set_xlabel("time (ms)")
    axes.set_ylabel("(L/W − 1)/(L/W + 1)")
    axes.legend()
    with replacing(path) as temporary:
        save(figure, temporary, str(path))
