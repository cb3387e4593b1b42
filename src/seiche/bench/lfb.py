# SPDX-License-Identifier: BSD-3-Clause
"""`seiche bench lfb`: error of the local Fourier basis as a function of its overlap width.

With mpiexec, a wave packet that crosses all cuts of a layered medium is computed on one rank and on all ranks. The
prediction is that of `seiche check`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from seiche.bench import results
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.report.style import COLORS, SINGLE_COLUMN, new_figure, paper_style, save
from seiche.ultrasound.crossing import crossing_error, cuts_along_diagonal
from seiche.ultrasound.local_basis import OVERLAPS, derivative_error
from seiche.ultrasound.plan import Decomposition
from seiche.ultrasound.problem import Pml, Problem
from seiche.ultrasound.solver import UltrasoundSolver

#: Overlap widths in points, and numbers of points per wavelength.
WIDTHS = (4, 6, 8, 12, 16, 20, 24, 32)
RESOLUTIONS = (3.0, 4.0, 6.0, 8.0)
#: Number of points of a rank along each divided axis; sound speeds of the layers, m/s; Courant number.
_CORE_POINTS, _SPEEDS, _CFL = 72, (1500.0, 1800.0), 0.3


@dataclass(frozen=True)
class LocalBasisRow:
    """Errors for an overlap width and a resolution.

    `derivative` is the maximum error of a derivative at a cut, divided by the wave number. `predicted` is the relative
    error of the field (L2) that `seiche check` predicts for `cuts` cuts. `measured` is the same error in a run on these
    ranks, None on one rank.
    """

    overlap: int
    points_per_wavelength: float
    cuts: int
    derivative: float
    predicted: float
    measured: float | None

    @property
    def measured_text(self) -> str:
        """Measured error as text for the table, empty if there is none."""
        return "" if self.measured is None else f"{self.measured:.1e}"


def problem_of(shape: tuple[int, ...], points_per_wavelength: float) -> Problem:
    """Return the problem of a wave packet that crosses the grid diagonally and enters another medium."""
    x = np.meshgrid(*(np.arange(n, dtype=np.float64) for n in shape), indexing="ij")
    distance = sum(x) / np.sqrt(len(shape))
    squared = sum((a - 0.3 * n) ** 2 for a, n in zip(x, shape, strict=True))
    envelope = np.exp(-squared / (2 * (1.2 * points_per_wavelength) ** 2))
    spacing, in_second_layer = 1e-4, x[0] > 0.6 * shape[0]
    return Problem(
        axes=("x", "y", "z")[: len(shape)],
        shape=shape,
        spacing=(spacing,) * len(shape),
        dt=_CFL * spacing / _SPEEDS[1],
        steps=int(0.35 * max(shape) / _CFL * _SPEEDS[1] / _SPEEDS[0]),
        reference_speed=_SPEEDS[1],
        sound_speed=np.where(in_second_layer, _SPEEDS[1], _SPEEDS[0]),
        density=np.where(in_second_layer, 1200.0, 1000.0),
        pml=(Pml(10, 2.0),) * len(shape),
        initial_pressure=envelope * np.cos(2 * np.pi * distance / points_per_wavelength),
    )


def measure(
    world: World, widths: Sequence[int], resolutions: Sequence[float], device: str, dimensions: int = 2
) -> list[LocalBasisRow]:
    """Return the errors for all overlap widths and resolutions (collective).

    Raises:
        CaseError: an overlap is out of range.
    """
    for width in widths:
        if not OVERLAPS[0] <= width <= OVERLAPS[1]:
            raise CaseError(f"--overlap: {width} points is not between {OVERLAPS[0]} and {OVERLAPS[1]}")
    split = _split(world.size, dimensions)
    shape = tuple(_CORE_POINTS * count for count in split)
    rows = []
    for resolution in resolutions:
        problem = problem_of(shape, resolution)
        reference = None
        for width in widths:
            measured, cuts = None, 1
            if world.size > 1:
                if reference is None:
                    serial_solver = UltrasoundSolver(problem, device=device, precision="float64")
                    serial_solver.advance(problem.steps)
                    reference = serial_solver.field("p")
                decomposition = Decomposition("local", width, split)
                solver = UltrasoundSolver(
                    problem, world=world, decomposition=decomposition, device=device, precision="float64"
                )
                solver.advance(problem.steps)
                cuts = cuts_along_diagonal(solver.parts)
                measured = float(np.linalg.norm(solver.field("p") - reference) / np.linalg.norm(reference))
                solver.close()
            predicted = cuts * crossing_error(resolution, width, cfl=_CFL)
            derivative = derivative_error(_CORE_POINTS, width, resolution)
            rows.append(LocalBasisRow(width, resolution, cuts, derivative, predicted, measured))
    return rows


def _split(ranks: int, dimensions: int) -> tuple[int, ...]:
    """Divide `ranks` into factors, one for each axis, that are as equal as possible."""
    pieces, remaining = [], ranks
    for axes in range(dimensions, 0, -1):
        divisors = (n for n in range(1, remaining + 1) if remaining % n == 0 and n**axes >= remaining)
        pieces.append(min(divisors, default=remaining))
        remaining //= pieces[-1]
    return tuple(pieces)


def main(
    *,
    device: str = "cpu",
    widths: Sequence[int] = (),
    resolutions: Sequence[float] = (),
    output: Path | None = None,
    figure: Path | None = None,
    world: World | None = None,
) -> list[LocalBasisRow]:
    """Measure, print a table on rank 0, store JSON at `output` and draw `figure`; return the rows (collective).

    Raises:
        CaseError: an overlap is out of range.
    """
    world = world or World.from_mpi()
    rows = measure(world, widths or WIDTHS, resolutions or RESOLUTIONS, device)
    if world.rank == 0:
        results.show(f"Error of the local Fourier basis on {world.size} ranks", _COLUMNS, rows, width=100)
        if world.size == 1:
            print("Predictions only; for measurements run mpiexec -n 2 seiche bench lfb.")
        results.store(output, results.document("lfb", device, rows, ranks=world.size))
        if figure is not None:
            draw(figure, rows)
    return rows


#: Headings of the table and formats of their values.
_COLUMNS = {
    "points/wavelength": "{0.points_per_wavelength:g}",
    "overlap": "{0.overlap}",
    "cuts": "{0.cuts}",
    "derivative": "{0.derivative:.1e}",
    "predicted": "{0.predicted:.1e}",
    "measured": "{0.measured_text}",
}


def draw(path: Path, rows: Sequence[LocalBasisRow]) -> None:
    """Draw the errors against the overlap width: measured errors as lines with markers, predicted errors dashed."""
    with paper_style():
        figure = new_figure(SINGLE_COLUMN, 2.6)
        axes = figure.subplots()
        for color, resolution in zip(COLORS * 2, sorted({row.points_per_wavelength for row in rows}), strict=False):
            selected = [row for row in rows if row.points_per_wavelength == resolution]
            widths = [row.overlap for row in selected]
            label = f"{resolution:g} points per wavelength"
            measured = [row.measured for row in selected if row.measured is not None]
            dashes = axes.semilogy(widths, [row.predicted for row in selected], "--", color=color, linewidth=0.8)
            if len(measured) == len(widths):
                axes.semilogy(widths, measured, "o-", color=color, markersize=3, label=label)
            else:
                dashes[0].set_label(label)
        axes.set_xlabel("width of the overlap (points)")
        axes.set_ylabel("relative difference (L2)")
        axes.legend()
        save(figure, path, path.name)
