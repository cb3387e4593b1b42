# SPDX-License-Identifier: BSD-3-Clause
"""Fields and seismograms of a wave run with dimensions, coordinates and units."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.case.labels import GridRequest, Labelled, LabelledParts, in_order, texts
from seiche.case.waves.layer import absorbing_sides
from seiche.case.waves.setup import AXES, WaveSetup
from seiche.errors import CaseError
from seiche.waves.regular import RegularGrid
from seiche.waves.solver import WaveSolver

Fields = Mapping[str, npt.NDArray[Any]]

_NODES = ("element", "node")
#: Maximum number of grid points; a scalar field then needs 8 GB.
_MAX_GRID_POINTS = 10**9


def labelled_waves(setup: WaveSetup, solver: WaveSolver, fields: Fields, grid: GridRequest | None) -> LabelledParts:
    """Return `fields` at the nodes or on a regular grid, and the seismograms, on every rank (collective).

    At nodes, the dimensions are (element, node) or (element, component, node), and the positions x, y, z are
    coordinates of (element, node). On a grid, the dimensions are (x, y[, z][, component]). With leapfrog,
    `velocity_time` is the time of the velocities, half a step before that of the other fields, and
    `receiver_velocity_time` is that of each velocity sample. `source_x` and so on are the positions of the sources;
    `inner_lower` and `inner_upper` bound the part without absorbing layers.
    """
    axes = AXES[: setup.mesh.dim]
    arrays, coordinates = _at_nodes(solver, fields, axes) if grid is None else _on_grid(setup, solver, fields, grid)
    if any(values.ndim == 3 for values in fields.values()):
        coordinates["component"] = texts(axes, "component")
    coordinates |= _places(setup, axes)
    offset = solver.velocity_time_offset
    if offset > 0:
        coordinates["velocity_time"] = Labelled(np.array(solver.time - offset), (), "s")
    if (receivers := solver.receivers) is not None:
        samples = solver.samples()
        times = solver.dt * receivers.every * (receivers.first + 1 + np.arange(len(samples)))
        for k, name in enumerate(solver.unknowns):
            arrays[f"receiver_{name}"] = Labelled(samples[:, :, k], ("record_time", "receiver"), unit_of(name))
        coordinates["record_time"] = Labelled(times, ("record_time",), "s")
        coordinates["receiver"] = texts(setup.names, "receiver")
        for axis, positions in zip(axes, np.array(setup.receivers).T, strict=True):
            coordinates[f"receiver_{axis}"] = Labelled(positions, ("receiver",), "m")
        if offset > 0:
            coordinates["receiver_velocity_time"] = Labelled(times - offset, ("record_time",), "s")
    return arrays, coordinates


def _places(setup: WaveSetup, axes: str) -> dict[str, Labelled]:
    """Return the positions of the sources, and the ends of the part without absorbing layers if there are any."""
    coordinates = {}
    if setup.sources:
        positions = np.array([source.position for source in setup.sources], np.float64)
        coordinates = {f"source_{axis}": Labelled(positions[:, k], ("source",), "m") for k, axis in enumerate(axes)}
    boundary = setup.case.boundary
    if boundary.margin is not None or boundary.sponge:
        lower, upper = setup.box
        if boundary.margin is None:
            width = (boundary.sponge or 0.0) * absorbing_sides(setup.case)
            lower, upper = lower + width[:, 0], upper - width[:, 1]
        coordinates["inner_lower"], coordinates["inner_upper"] = (
            Labelled(end, ("axis",), "m") for end in (lower, upper)
        )
        coordinates["axis"] = texts(axes, "axis")
    return coordinates


def unit_of(name: str) -> str:
    """Return the SI unit of an unknown or a field: names of velocities begin with "v", all others are stresses."""
    return "m/s" if name.startswith("v") else "Pa"


def _at_nodes(solver: WaveSolver, fields: Fields, axes: str) -> LabelledParts:
    world, indices = solver.world, solver.mesh.number
    positions = in_order(world, indices, solver.positions)
    coordinates = {axis: Labelled(positions[..., k], _NODES, "m") for k, axis in enumerate(axes)}
    arrays = {}
    for name, values in fields.items():
        dims = _NODES if values.ndim == 2 else ("element", "component", "node")
        arrays[name] = Labelled(in_order(world, indices, values), dims, unit_of(name))
    return arrays, coordinates


def _on_grid(setup: WaveSetup, solver: WaveSolver, fields: Fields, request: GridRequest) -> LabelledParts:
    axes = tuple(AXES[: setup.mesh.dim])
    ticks = _ticks(setup, request)
    grid = RegularGrid(setup.mesh, setup.case.mesh.nodes, ticks)
    arrays = {}
    for name, values in fields.items():
        gathered = grid.gather(values if values.ndim == 3 else values[:, None], solver.world)
        if values.ndim == 3:
            arrays[name] = Labelled(np.moveaxis(gathered, 0, -1), (*axes, "component"), unit_of(name))
        else:
            arrays[name] = Labelled(gathered[0], axes, unit_of(name))
    return arrays, {axis: Labelled(values, (axis,), "m") for axis, values in zip(axes, ticks, strict=True)}


def _ticks(setup: WaveSetup, request: GridRequest) -> list[npt.NDArray[np.float64]]:
    """Return the positions along each axis: from side to side for a `shape`, from the low side for a `spacing`."""
    lower, upper = setup.box
    if request.spacing is None:
        counts = list(request.shape or ())
        if len(counts) != setup.mesh.dim:
            raise CaseError(f"result: shape = {request.shape}: the case has {setup.mesh.dim} axes")
        steps = (upper - lower) / (np.array(counts) - 1)
    else:
        # A side of a whole number of spacings includes its end, also after rounding.
        sides = np.minimum((upper - lower) / request.spacing * (1 + 1e-12), _MAX_GRID_POINTS)
        counts = [int(side) + 1 for side in sides]
        steps = np.full(len(counts), request.spacing)
    if math.prod(counts) > _MAX_GRID_POINTS:
        raise CaseError(f"result: a grid of {' x '.join(map(str, counts))} points is too large; choose a wider spacing")
    return [low + step * np.arange(count) for low, step, count in zip(lower, steps, counts, strict=True)]
