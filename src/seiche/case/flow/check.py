# SPDX-License-Identifier: BSD-3-Clause
"""Output lines of `seiche check` about a flow and its cost; no field is allocated."""

from __future__ import annotations

import math
from collections.abc import Iterator

from seiche.backend import Backend, open_backend
from seiche.case.check import check_lines
from seiche.case.flow.estimates import flow_estimates
from seiche.case.flow.limits import run_notes
from seiche.case.flow.memory import Prediction, predict
from seiche.case.flow.setup import FlowSetup
from seiche.domain.world import World
from seiche.errors import BackendUnavailable
from seiche.flow.choice import recommendation
from seiche.flow.layout import MAX_SLOTS
from seiche.flow.model import VelocityIolet
from seiche.flow.region import MAX_SITES

#: Margin for ranks with more sites than the mean, and for populations from other ranks.
_IMBALANCE = 1.05


def describe(setup: FlowSetup, ranks: int = 1, *, measure: bool = True) -> list[str]:
    """Return the lines for `ranks` ranks; with `measure`, the bandwidth is measured to predict the run time."""
    return check_lines([*flow_rows(setup), *cost_rows(setup, ranks, measure)], flow_estimates(setup), run_notes(setup))


def flow_rows(setup: FlowSetup) -> Iterator[tuple[str, str]]:
    """Yield names and values of the lines about geometry and flow."""
    yield from _geometry_rows(setup)
    yield from _scale_rows(setup)


def _geometry_rows(setup: FlowSetup) -> Iterator[tuple[str, str]]:
    sites = setup.vessel.sites
    yield "case", setup.source + (f": {setup.case.title}" if setup.case.title else "")
    yield "fluid sites", f"{len(sites):,} in a box of {' x '.join(str(n) for n in sites.shape)}"
    yield "spacing", f"{sites.spacing:.4g} m"
    for plane, iolet in zip(sites.iolets, setup.model.iolets, strict=True):
        radius = f", radius {plane.radius:.4g} m" if plane.radius is not None else ""
        rule = "" if isinstance(iolet, VelocityIolet) else f", pressure by {iolet.scheme}"
        center = ", ".join(f"{c:.4g}" for c in plane.center)
        yield f"iolet {plane.name}", f"{plane.role} at ({center}) m{radius}{rule}"


def _scale_rows(setup: FlowSetup) -> Iterator[tuple[str, str]]:
    invariants, units = setup.invariants, setup.units
    yield "time step", f"{units.step:.4g} s, {setup.steps:,} steps, {setup.steps * units.step:.4g} s in total"
    walls = setup.case.walls
    if walls.kind != "bounce-back" or walls.moving:
        motions = [f"{name} moves at up to {speed:.4g} m/s" for name, speed in setup.wall_speeds.items()]
        yield "walls", ", ".join([walls.kind, *motions])
    if invariants.velocity_scale is None:
        yield "peak velocity", "not known before the run; set lattice.velocity_scale"
    else:
        lattice = units.to_lattice("velocity", invariants.velocity_scale)
        yield "peak velocity", f"{invariants.velocity_scale:.4g} m/s, {lattice:.4f} sites/step"
        yield "Reynolds number", f"{invariants.reynolds:.4g} (peak velocity, length {invariants.length_scale:.4g} m)"
    if invariants.womersley is not None:
        yield "Womersley number", f"{invariants.womersley:.4g} (period {setup.period:.4g} s)"
    yield "density range", f"{invariants.density[0]:.5f} to {invariants.density[1]:.5f}"


def cost_rows(
    setup: FlowSetup, ranks: int, measure: bool, *, remark: str = "", cells: float = 0.0
) -> Iterator[tuple[str, str]]:
    """Yield the memory and time of the flow; `remark` is appended to the memory, `cells` are the bytes of all cells."""
    from seiche.observe.bandwidth import copy_bandwidth

    backend = _backend(setup) if measure else None
    bandwidth = copy_bandwidth(backend, World.serial()) if backend is not None else None
    yield "device", f"{setup.case.run.device}, compute {setup.precision.compute}, storage {setup.precision.storage}"
    if bandwidth is not None:
        yield "copy bandwidth", f"{bandwidth / 1e9:.1f} GB/s (measured now)"
    if (sites_of_rank := len(setup.vessel.sites) / ranks) > MAX_SITES:
        yield "ranks", f"at least {math.ceil(sites_of_rank * ranks * _IMBALANCE / MAX_SITES)}: at most 2^31 sites each"
    for row in predict(setup, bandwidth):
        cost = f"{row.memory / ranks / 1e6:.3g} MB per rank on {ranks} rank{'s' if ranks > 1 else ''}{remark}"
        cost += f", {row.traffic:.0f} B per site and step"
        if row.seconds is not None:
            cost += f", at least {_duration(row.seconds)}"
        yield f"layout {row.layout}", cost + limits(row, ranks, backend, cells)
    if setup.case.lattice.layout == "auto":
        sites, storage, model = setup.vessel.sites, setup.precision.storage, setup.model
        device, immersed = setup.case.run.device, setup.immersed
        yield "layout auto", recommendation(sites, storage, device, model, immersed=immersed)


def limits(row: Prediction, ranks: int, backend: Backend | None, cells: float = 0.0) -> str:
    """Return what a layout needs if `ranks` ranks cannot number its populations or `backend` cannot store them.

    `cells` is the memory of all immersed cells in bytes, which is stored in addition.
    """
    text = ""
    if row.populations >= ranks * MAX_SLOTS:
        text = f"; needs {math.ceil(row.populations * _IMBALANCE / MAX_SLOTS)} ranks: at most 2^32 populations each"
    if backend is not None:
        free = backend.free_memory()
        needed, given = math.ceil((row.memory + cells) * _IMBALANCE / free), ranks if backend.is_gpu else 1
        if needed > given:
            place = "GPUs" if backend.is_gpu else "hosts"
            content = " for flow and cells" if cells else ""
            text += f"; needs {needed} {place}{content} with the {free / 1e9:.3g} GB that are free here"
    return text


def _backend(setup: FlowSetup) -> Backend | None:
    """Return the device of the case; None if this host lacks it."""
    run = setup.case.run
    try:
        return open_backend(run.device, World.serial().threads(run.threads), 0)
    except BackendUnavailable:
        return None


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"
