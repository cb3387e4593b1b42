# SPDX-License-Identifier: BSD-3-Clause
"""`seiche check` for waves: what a case is and what it will cost, without allocating a field."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from seiche.backend import open_backend
from seiche.case.waves.setup import WaveSetup
from seiche.domain.world import World
from seiche.errors import BackendUnavailable
from seiche.kernels.registry.dg import Discretisation, words_a_leap, words_a_node, words_of_bodies
from seiche.observe.bandwidth import copy_bandwidth
from seiche.waves.fluxes import FLUXES


def describe(setup: WaveSetup, ranks: int = 1, *, measure: bool = True) -> list[str]:
    """Return the lines of the check for `ranks` ranks; `measure` the bandwidth of its device to predict the time."""
    rows = [*_mesh(setup), *_media(setup), *_cost(setup, ranks, measure)]
    width = max(len(name) for name, _ in rows)
    lines = [f"{name:<{width}}  {value}" for name, value in rows]
    return lines + [f"advice: {note}" for note in setup.notes]


def _mesh(setup: WaveSetup) -> Iterator[tuple[str, str]]:
    mesh, n = setup.mesh, setup.case.mesh.nodes
    yield "case", setup.source + (f": {setup.case.title}" if setup.case.title else "")
    lower, upper = mesh.extent
    yield "box", " x ".join(f"{side:g}" for side in upper - lower) + " m"
    sizes = mesh.sizes[: mesh.count].max(1)
    count = mesh.total
    yield "elements", f"{count:,} of {n**mesh.dim} nodes: {count * n**mesh.dim:,} nodes"
    yield "element sides", f"{sizes.min():.4g} to {sizes.max():.4g} m"
    hanging = int((mesh.neighbours[:, :, 1] >= 0).sum())
    if hanging:
        yield "hanging faces", f"{hanging:,}"
    yield "sides", ", ".join(_side(setup, face) for face in range(mesh.faces))


def _side(setup: WaveSetup, face: int) -> str:
    name = "xyz"[face // 2] + ("+" if face % 2 else "-")
    return f"{name} " + ("periodic" if setup.mesh.brick.periodic[face // 2] else setup.sides[face])


def _media(setup: WaveSetup) -> Iterator[tuple[str, str]]:
    material = setup.material
    for name, values, unit in (
        ("density", material.density, "kg/m^3"),
        ("cp", material.cp, "m/s"),
        ("cs", material.cs, "m/s"),
    ):
        yield name, f"{values.min():g} to {values.max():g} {unit}" if np.ptp(values) else f"{values.min():g} {unit}"
    if setup.case.attenuation is not None:
        low, high = setup.case.attenuation.band
        bodies = setup.case.attenuation.mechanisms
        yield (
            "attenuation",
            f"{low:g} to {high:g} Hz, {bodies} mechanisms; the speeds above are those at infinite frequency",
        )
    if setup.resolution is not None:
        yield "nodes a wavelength", f"{setup.resolution[0]:.1f} ({setup.resolution[1]:.1f} advised)"
    yield "time step", f"{setup.dt:.4g} s (largest {setup.limit:.4g} s), {setup.steps:,} steps"
    yield "duration", f"{setup.steps * setup.dt:.4g} s"
    yield "sources, receivers", f"{len(setup.sources)}, {len(setup.names)}"


def _cost(setup: WaveSetup, ranks: int, measure: bool) -> Iterator[tuple[str, str]]:
    case, mesh = setup.case, setup.mesh
    medium = "elastic" if setup.material.has_solid else "acoustic"
    flux = FLUXES[case.mesh.flux].kernel
    of = Discretisation(medium, mesh.dim, case.mesh.nodes, flux, case.run.precision)  # type: ignore[arg-type]
    size = np.dtype(case.run.precision).itemsize
    nodes = mesh.total * case.mesh.nodes**mesh.dim
    traces = 2 * mesh.faces * of.slot / case.mesh.nodes**mesh.dim
    leapfrog = case.time.integrator == "leapfrog"
    memory = nodes * (2 * of.fields + traces) * size / (2 if leapfrog else 1)
    words = words_a_leap(of) if leapfrog else 5 * words_a_node(of)
    if case.attenuation is not None:
        bodies = case.attenuation.mechanisms
        memory += nodes * (of.fields + 2 * bodies * (of.fields - of.dim)) * size
        words = 5 * (words_a_node(of, "fused-flux") + words_of_bodies(of, bodies))
    yield "device", f"{case.run.device}, {case.run.precision}"
    yield "state", f"{memory / ranks / 1e6:.3g} MB a rank on {ranks} rank{'s' if ranks > 1 else ''}"
    if not measure:
        return
    world = World.serial()
    try:
        bandwidth = copy_bandwidth(open_backend(case.run.device, world.threads(case.run.threads), 0), world)
    except BackendUnavailable:
        return
    moved = words * size * nodes * setup.steps
    yield "at least", f"{moved / bandwidth / ranks:.3g} s at the copy bandwidth of {bandwidth / 1e9:.1f} GB/s"
