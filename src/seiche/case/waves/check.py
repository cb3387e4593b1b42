# SPDX-License-Identifier: BSD-3-Clause
"""Output lines of `seiche check` about waves and their cost; no field is allocated."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from seiche.backend import open_backend
from seiche.case.check import check_lines
from seiche.case.waves.elements import table_bytes
from seiche.case.waves.estimates import wave_estimates
from seiche.case.waves.setup import WaveSetup
from seiche.domain.world import World
from seiche.errors import BackendUnavailable
from seiche.kernels.registry.dg import Discretisation, words_of_memory_variables, words_per_leap, words_per_node
from seiche.observe.bandwidth import copy_bandwidth
from seiche.waves.fluxes import FLUXES
from seiche.waves.sampled_mesh import SampledMesh


def describe(setup: WaveSetup, ranks: int = 1, *, measure: bool = True) -> list[str]:
    """Return the lines for `ranks` ranks; with `measure`, the bandwidth is measured to predict the run time.

    Raises:
        CaseError: an interval between outputs is shorter than half a step.
    """
    setup.check_intervals()
    rows = [*_mesh_rows(setup), *_medium_rows(setup), *_cost_rows(setup, ranks, measure)]
    return check_lines(rows, wave_estimates(setup), setup.notes)


def _mesh_rows(setup: WaveSetup) -> Iterator[tuple[str, str]]:
    mesh, n = setup.mesh, setup.case.mesh.nodes
    yield "case", setup.source + (f": {setup.case.title}" if setup.case.title else "")
    lower, upper = setup.box
    yield "box", " x ".join(f"{side:g}" for side in upper - lower) + " m"
    if (margin := setup.case.boundary.margin) is not None:
        low, high = mesh.extent
        extent = " x ".join(f"{side:g}" for side in high - low)
        yield "with the margin", f"{extent} m, {margin.trees} trees beyond each absorbing side"
    sizes = mesh.sizes[: mesh.count].max(1)
    yield "elements", f"{mesh.total:,} of {n**mesh.dim} nodes: {mesh.total * n**mesh.dim:,} nodes"
    yield "element sides", f"{sizes.min():.4g} to {sizes.max():.4g} m"
    hanging = (mesh.neighbours[:, :, 1] >= 0).sum(1)
    if isinstance(mesh, SampledMesh):
        yield "mesh tables", f"{table_bytes(mesh.total) / 1e6:.3g} MB on all ranks while the mesh is generated"
        hanging = mesh.shares @ hanging
    if number := round(float(hanging.sum())):
        yield "hanging faces", f"{number:,}"
    yield "sides", ", ".join(_side(setup, face) for face in range(mesh.faces))


def _side(setup: WaveSetup, face: int) -> str:
    name = "xyz"[face // 2] + ("+" if face % 2 else "-")
    return f"{name} " + ("periodic" if setup.mesh.brick.periodic[face // 2] else setup.sides[face])


def _medium_rows(setup: WaveSetup) -> Iterator[tuple[str, str]]:
    material = setup.material
    for name, unit in (("density", "kg/m^3"), ("cp", "m/s"), ("cs", "m/s")):
        values = getattr(material, name)
        yield name, f"{values.min():g} to {values.max():g} {unit}" if np.ptp(values) else f"{values.min():g} {unit}"
    if (table := setup.case.attenuation) is not None:
        band = f"{table.band[0]:g} to {table.band[1]:g} Hz"
        yield "attenuation", f"{band}, {table.mechanisms} mechanisms; the speeds above are those at infinite frequency"
    yield "time step", f"{setup.dt:.4g} s (largest {setup.limit:.4g} s), {setup.steps:,} steps"
    yield "duration", f"{setup.steps * setup.dt:.4g} s"
    yield "sources, receivers", f"{len(setup.sources)}, {len(setup.names)}"
    if setup.sources:
        exact, deltas = len(setup.sources) - len(setup.deltas), len(setup.deltas)
        kinds = [f"{exact} with exact waves in a box of elements"] if exact else []
        kinds += [f"{deltas} as {'deltas' if deltas > 1 else 'a delta'} in the nearest elements"] if deltas else []
        yield "point sources", ", ".join(kinds)


def _cost_rows(setup: WaveSetup, ranks: int, measure: bool) -> Iterator[tuple[str, str]]:
    case, mesh = setup.case, setup.mesh
    medium = "elastic" if setup.material.has_solid else "acoustic"
    flux = FLUXES[case.mesh.flux].kernel
    of = Discretisation(medium, mesh.dim, case.mesh.nodes, flux, case.run.precision)  # type: ignore[arg-type]
    size = np.dtype(case.run.precision).itemsize
    nodes = mesh.total * case.mesh.nodes**mesh.dim
    traces = 2 * mesh.faces * of.slot / case.mesh.nodes**mesh.dim
    leapfrog = case.time.integrator == "leapfrog"
    memory = nodes * (2 * of.fields + traces) * size / (2 if leapfrog else 1)
    words = words_per_leap(of) if leapfrog else 5 * words_per_node(of)
    if case.attenuation is not None:
        mechanisms = case.attenuation.mechanisms
        memory += nodes * (of.fields + 2 * mechanisms * (of.fields - of.dim)) * size
        words = 5 * (words_per_node(of, "fused-flux") + words_of_memory_variables(of, mechanisms))
    yield "device", f"{case.run.device}, {case.run.precision}"
    yield "state", f"{memory / ranks / 1e6:.3g} MB per rank on {ranks} rank{'s' if ranks > 1 else ''}"
    if not measure:
        return
    world = World.serial()
    try:
        bandwidth = copy_bandwidth(open_backend(case.run.device, world.threads(case.run.threads), 0), world)
    except BackendUnavailable:
        return
    traffic = words * size * nodes * setup.steps
    yield "at least", f"{traffic / bandwidth / ranks:.3g} s at the copy bandwidth of {bandwidth / 1e9:.1f} GB/s"
