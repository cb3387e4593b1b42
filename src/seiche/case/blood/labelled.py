# SPDX-License-Identifier: BSD-3-Clause
"""Cells as arrays with dimensions, coordinates and units: positions, shapes, volumes, deformation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seiche.case.blood.run import BloodRun, CellStatistics
from seiche.case.blood.series import surfaces_of
from seiche.case.labels import Labelled, LabelledParts, texts
from seiche.cells.energy import rest_state
from seiche.cells.model import CellType
from seiche.couple.suspension import Population
from seiche.domain.sharing import on_root

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.integer]

#: Number of triangles processed at a time.
_CHUNK = 1 << 18


def labelled_cells(run: BloodRun) -> LabelledParts:
    """Return the cells of all ranks in SI units, on every rank (collective).

    - For each `cell`, by its number in the run: `cell_position` (center of the volume), `cell_velocity` (mean of its
      vertices), `cell_area` and `cell_volume` of the membrane, `cell_semi_axes` and `cell_deformation` (`ellipsoids`).
    - The surfaces: `vertex_position`, `vertex_velocity`, and the vertices of each `triangle`.
    - `hematocrit` at each `cell_time`, and the records of openings.

    Areas and volumes are those of the smooth surface (theory/cells, section 4). The hematocrit is that of the summary,
    computed from the volumes of the meshes. Cells of a periodic vessel are moved into its box; the coordinate `period`
    has its length along each periodic axis, and 0 along the others.
    """
    populations = run.populations()
    return on_root(run.solver.world, lambda: _on_root(run, populations))


def ellipsoids(vertices: Floats, faces: Integers) -> tuple[Floats, Floats]:
    """Return the centers (n, 3) and semi-axes (n, 3), largest first, of ellipsoids equivalent to bodies.

    The volume moments of orders 1 and 2, divided by the volume, are those of the body. With the largest and smallest
    semi-axes L and B, (L - B)/(L + B) is Taylor's deformation (Ramanujan, Pozrikidis 1998,
    doi:10.1017/S0022112098008714).

    Args:
        vertices: closed surfaces, (n, v, 3).
        faces: triangles of each of them, (f, 3), counter-clockwise from outside.
    """
    middle = vertices.mean(axis=1)
    centers, axes = np.empty_like(middle), np.empty_like(middle)
    step = max(1, _CHUNK // len(faces))
    for first in range(0, len(vertices), step):
        part = slice(first, first + step)
        corners = (vertices[part] - middle[part, None])[:, faces]
        sums = corners.sum(axis=2)
        volumes = np.einsum("nfi,nfi->nf", corners[:, :, 0], np.cross(corners[:, :, 1], corners[:, :, 2])) / 6
        total = volumes.sum(axis=1)
        center = np.einsum("nf,nfi->ni", volumes, sums) / (4 * total[:, None])
        # Integral of x x^T over a tetrahedron with a corner at the origin: V/20 (sum of p p^T + s s^T), s the sum of p.
        second = np.einsum("nf,nfki,nfkj->nij", volumes, corners, corners)
        second += np.einsum("nf,nfi,nfj->nij", volumes, sums, sums)
        spread = second / (20 * total[:, None, None]) - center[:, :, None] * center[:, None, :]
        centers[part] = middle[part] + center
        axes[part] = np.sqrt(5 * np.maximum(np.linalg.eigvalsh(spread)[:, ::-1], 0.0))
    return centers, axes


def _on_root(run: BloodRun, populations: list[Population]) -> LabelledParts:
    spacing, units = run.setup.units.spacing, run.setup.units
    surfaces = surfaces_of(run, populations, 0.0)
    ids, kinds, velocities = [], [], []
    centers, axes, areas, volumes = [], [], [], []
    first = 0
    for cell, population in zip(run.cells.types, populations, strict=True):
        count, size = population.vertices.shape[:2]
        positions = np.asarray(surfaces.vertices[first : first + count * size], np.float64).reshape(count, size, 3)
        first += count * size
        center, semi_axes = ellipsoids(positions, cell.mesh.faces)
        area, volume = _measures(cell, population.vertices)
        centers.append(center)
        axes.append(semi_axes)
        areas.append(area * spacing**2)
        volumes.append(volume * spacing**3)
        ids.append(population.ids)
        kinds += [cell.name] * count
        velocities.append(population.velocity.mean(axis=1))
    semi = np.concatenate(axes)
    deformation = (semi[:, 0] - semi[:, 2]) / (semi[:, 0] + semi[:, 2])
    velocity = units.to_si("velocity", np.concatenate(velocities))
    vector, vertex = ("cell", "component"), ("vertex", "component")
    arrays = {
        "cell_position": Labelled(np.concatenate(centers), vector, "m"),
        "cell_velocity": Labelled(velocity, vector, "m/s"),
        "cell_area": Labelled(np.concatenate(areas), ("cell",), "m^2"),
        "cell_volume": Labelled(np.concatenate(volumes), ("cell",), "m^3"),
        "cell_semi_axes": Labelled(semi, ("cell", "semi_axis"), "m"),
        "cell_deformation": Labelled(deformation, ("cell",), "1"),
        "vertex_position": Labelled(np.asarray(surfaces.vertices), vertex, "m"),
        "vertex_velocity": Labelled(surfaces.on_vertices["velocity"], vertex, "m/s"),
        "triangle_vertices": Labelled(np.asarray(surfaces.faces), ("triangle", "corner"), "1"),
    }
    coordinates = {
        "component": texts("xyz", "component"),
        "cell": Labelled(np.concatenate(ids), ("cell",), "1"),
        "cell_type": texts(kinds, "cell"),
        "triangle_cell": Labelled(surfaces.on_faces["cell"], ("triangle",), "1"),
    }
    if surfaces.periodic_box is not None:
        sides = surfaces.periodic_box[1] - surfaces.periodic_box[0]
        coordinates["period"] = Labelled(np.where(np.isfinite(sides), sides, 0.0), ("component",), "m")
    _add_records(run.statistics, arrays, coordinates)
    return arrays, coordinates


def _measures(cell: CellType, vertices: Floats) -> tuple[Floats, Floats]:
    """Return the areas (n,) and volumes (n,) of surfaces with control points `vertices` (n, v, 3)."""
    step = max(1, _CHUNK // (8 * len(cell.mesh.faces)))
    parts = [
        rest_state(cell).surface_measures(vertices[first : first + step]) for first in range(0, len(vertices), step)
    ]
    areas, volumes = ([part[k] for part in parts] for k in range(2))
    return np.concatenate([np.zeros(0), *areas]), np.concatenate([np.zeros(0), *volumes])


def _add_records(statistics: CellStatistics, arrays: dict[str, Labelled], coordinates: dict[str, Labelled]) -> None:
    """Add the hematocrits and the records of an open vessel."""
    if not statistics.times:
        return
    coordinates["cell_time"] = Labelled(np.array(statistics.times), ("cell_time",), "s")
    arrays["hematocrit"] = Labelled(np.array(statistics.hematocrits), ("cell_time",), "1")
    for name, values in statistics.open_series.items():
        series = np.array([np.nan if value is None else value for value in values], np.float64)
        arrays[name] = Labelled(series, ("cell_time",), "m^3" if name.endswith("_m3") else "1")
