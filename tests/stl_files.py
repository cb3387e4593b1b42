# SPDX-License-Identifier: BSD-3-Clause
"""STL files for tests, in the text format of another program."""

from __future__ import annotations

import math

Point = tuple[float, float, float]


def openscad_tube(sides: int = 60) -> str:
    """Return the STL of a closed prism as OpenSCAD writes it: -10 < x < 10, its corners 5 from the axis y = -5, z = 0.

    Coordinates have six digits; the caps are fans. Names of solid and facets are those of OpenSCAD.
    """
    angles = [2.0 * math.pi * side / sides for side in range(sides)]
    rings = [[(x, 5.0 * math.cos(angle) - 5.0, 5.0 * math.sin(angle)) for angle in angles] for x in (-10.0, 10.0)]
    low, high = rings
    facets = []
    for corner, next_corner in zip(range(sides), [*range(1, sides), 0], strict=True):
        middle = math.pi * (2 * corner + 1) / sides
        normal = (0.0, math.cos(middle), math.sin(middle))
        facets += [
            (normal, (low[corner], low[next_corner], high[next_corner])),
            (normal, (low[corner], high[next_corner], high[corner])),
        ]
    for corner in range(1, sides - 1):
        facets.append(((-1.0, 0.0, 0.0), (low[0], low[corner + 1], low[corner])))
        facets.append(((1.0, 0.0, 0.0), (high[0], high[corner], high[corner + 1])))
    return "solid OpenSCAD_Model\n" + "".join(_facet(*facet) for facet in facets) + "endsolid OpenSCAD_Model\n"


def _facet(normal: Point, corners: tuple[Point, ...]) -> str:
    lines = [f"  facet normal {_words(normal)}", "    outer loop"]
    lines += [f"      vertex {_words(corner)}" for corner in corners]
    return "\n".join([*lines, "    endloop", "  endfacet", ""])


def _words(point: Point) -> str:
    return " ".join(f"{value:.6g}" for value in point)
