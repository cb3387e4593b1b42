# SPDX-License-Identifier: BSD-3-Clause
"""Ultrasound by the k-space pseudospectral method, in one, two and three dimensions; SI units, C order.

grid = Grid((128, 128), 1e-4).with_time(1500.0)
result = simulate(grid, Medium(1500.0), Source(p0=disc), Sensor(mask=line))
"""

from seiche.ultrasound.emitter import Emitter
from seiche.ultrasound.grid import Grid
from seiche.ultrasound.medium import Medium
from seiche.ultrasound.plan import Decomposition
from seiche.ultrasound.scan_lines import simulate_lines
from seiche.ultrasound.sensor import Sensor
from seiche.ultrasound.shapes import Annulus, Arc, Bowl, Disc, Line, PointSet, Rectangle
from seiche.ultrasound.simulate import simulate
from seiche.ultrasound.solver import UltrasoundSolver as Solver
from seiche.ultrasound.source import Source

__all__ = [
    "Annulus",
    "Arc",
    "Bowl",
    "Decomposition",
    "Disc",
    "Emitter",
    "Grid",
    "Line",
    "Medium",
    "PointSet",
    "Rectangle",
    "Sensor",
    "Solver",
    "Source",
    "simulate",
    "simulate_lines",
]
