# SPDX-License-Identifier: BSD-3-Clause
"""Walls and openings by relaxation time and storage: drift of mass, order of the velocity, flow rates.

    python benchmarks/flow_conservation.py --json benchmarks/results/flow-conservation-cpu.json

Rows of the kinds

- `drift`: relative change of the mass of a closed vessel in `steps` steps (`value`): a periodic pipe along the lattice,
  a tilted one, a cylinder that rotates inside another one (all interpolated; `error` is that of its velocity), and the
  first pipe with half-way walls;
- `order`: order of convergence of the velocity in a periodic pipe over three radii; `error` is the error at the
  largest;
- `flow`: relative error of the flow rate of the first pipe at the radius in `radius`;
- `openings`: the same of a tube between two pressures (`plane`), from rest, with interpolated walls, along (1, 0, 0) or
  (2, 1, 0); with an `inlet` of prescribed velocity the error of the pressure gradient. `mach` is that of the exact peak
  and `grid` its grid Reynolds number, `entrance` the entrance length 0.05 Re 2R over the length of the tube. Cases name
  another velocity set or collision than D3Q19 and two relaxation times, and `walls` the error of the periodic tube of
  the same sites, driven by a force.

Storages are those of populations, "moments" in FP32, and "moments, float16". Each row names its commit. The value of a
failed run is null. The file is written after each row; rows that it already contains are not repeated.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from seiche.backend import open_backend
from seiche.bench.results import provenance
from seiche.domain import shapes
from seiche.domain.sites import SiteSet
from seiche.errors import UnstableError
from seiche.flow import (
    Bgk,
    FlowModel,
    MovingWall,
    Mrt,
    Newtonian,
    Precision,
    PressureIolet,
    Regularised,
    Solver,
    Trt,
    VelocityIolet,
    Walls,
)
from seiche.flow.velocity_set import CS2
from seiche.report.figures import observed_order
from seiche.validate.check import Floats, positions, relative_error
from seiche.validate.flow.steady import shifted_pipe
from seiche.validate.flow.walls import ring, tilted_pipe

TAUS = (0.51, 0.536, 0.6, 1.0, 2.0)
STORAGES = ("float64", "float32", "float16", "moments", "moments, float16")
#: Velocity sets and collisions of openings besides D3Q19 with two relaxation times; BGK needs a larger tau.
OTHERS: tuple[tuple[str, Any, tuple[float, ...]], ...] = (
    ("D3Q15", Trt(), TAUS),
    ("D3Q27", Trt(), TAUS),
    ("D3Q15", Mrt(), TAUS),
    ("D3Q19", Mrt(), TAUS),
    ("D3Q27", Mrt(), TAUS),
    ("D3Q19", Bgk(), TAUS[2:]),
)
SPEED = 0.03
Row = dict[str, Any]


def solver_of(sites: SiteSet, model: FlowModel, storage: str, device: str) -> Solver:
    """Return a solver; "moments" are stored as float32."""
    moments = storage.startswith("moments")
    if moments:
        model = replace(model, collision=Regularised())
    compute = "float64" if storage == "float64" else "float32"
    store = "float32" if storage == "moments" else storage.removeprefix("moments, ")
    precision = Precision(compute, store)  # type: ignore[arg-type]
    return Solver(sites, model, layout="moments" if moments else "auto", precision=precision, device=device, threads=1)


def inside(radius: float, positions: Floats) -> np.ndarray[Any, Any]:
    """Return flags of the positions (p, 3) that are closer than `radius` to the z axis."""
    return np.asarray(np.hypot(positions[:, 0], positions[:, 1]) < radius)


def pipe(tau: float, radius: float, tilted: bool, depth: int) -> tuple[SiteSet, FlowModel, np.ndarray[Any, Any]]:
    """Return a pipe driven to the peak velocity SPEED, and the exact velocity (n, 3) of its sites."""
    viscosity = (tau - 0.5) / 3
    gradient = 4 * viscosity * SPEED / radius**2
    axis = np.array([2.0, 1.0, 0.0]) / 5**0.5 if tilted else np.array([1.0, 0.0, 0.0])
    if tilted:
        sites, r = tilted_pipe(radius, 0.3, 0.1, depth)
    else:
        sites = shifted_pipe(radius, 0.3, 0.1, float(depth))
        r = np.hypot(positions(sites)[:, 1] - 0.3, positions(sites)[:, 2] - 0.1)
    x, y, z = gradient * axis
    model = FlowModel(Newtonian(viscosity), body_force=(x, y, z), walls=Walls("bouzidi"))
    return sites, model, np.outer(SPEED * (1 - (r / radius) ** 2), axis)


def drift(case: str, tau: float, storage: str, steps: int, device: str) -> Row:
    """Return the drift of mass of a closed vessel."""
    depth = 8 if storage.startswith("moments") else 1
    inner, speed = 4.3, 0.05
    if case == "turning cylinder":
        rotor = MovingWall(
            "inner", rotation=(0.0, 0.0, speed / inner), center=(0.3, 0.1, 0.0), patch=partial(inside, 1.5 * inner)
        )
        sites = ring(inner, 2 * inner, depth)
        model = FlowModel(Newtonian((tau - 0.5) / 3), walls=Walls("bouzidi", (rotor,)))
    else:
        sites, model, _ = pipe(tau, 3.3 if case == "tilted pipe" else 5.3, case == "tilted pipe", depth)
        if case == "half-way pipe":
            model = FlowModel(model.rheology, body_force=model.body_force)
    solver = solver_of(sites, model, storage, device)
    solver.advance(steps)
    state = solver.monitor()
    row = {"steps": steps, "value": state.mass / len(sites) - 1, "mach": state.mach}  # from rest at density 1
    if case == "turning cylinder":
        x, y = positions(sites)[:, 0] - 0.3, positions(sites)[:, 1] - 0.1
        square = x**2 + y**2
        angular = speed * inner / (3 * inner**2) * (4 * inner**2 / square - 1)
        exact = np.stack([-angular * y, angular * x, np.zeros(len(sites))], axis=1)
        row["error"] = relative_error(solver.fields(["velocity"])["velocity"], exact)
    return row


def steady(sites: SiteSet, model: FlowModel, radius: float, storage: str, device: str) -> Solver:
    """Return a pipe after the slowest mode has decayed to 1e-6."""
    solver = solver_of(sites, model, storage, device)
    viscosity = model.rheology.viscosity  # type: ignore[union-attr]
    solver.advance(int(np.log(1e6) * radius**2 / (5.783 * viscosity)) + 20)
    return solver


def order(case: str, tau: float, storage: str, device: str) -> Row:
    """Return the order of the velocity of a pipe and the error at the largest radius."""
    radii, errors = (4.3, 6.2, 8.7), []
    for radius in radii:
        sites, model, exact = pipe(tau, radius, case == "tilted pipe", 8 if storage.startswith("moments") else 1)
        velocity = steady(sites, model, radius, storage, device).fields(["velocity"])["velocity"]
        errors.append(relative_error(velocity, exact))
    return {"value": observed_order(radii, errors), "error": errors[-1]}


def flow(tau: float, storage: str, radius: float, device: str) -> Row:
    """Return the relative error of the flow rate of a periodic pipe along the lattice."""
    depth = 8 if storage.startswith("moments") else 1
    sites, model, _ = pipe(tau, radius, False, depth)
    velocity = steady(sites, model, radius, storage, device).fields(["velocity"])["velocity"]
    return {"radius": radius, "value": float(velocity[:, 0].sum()) / depth / (0.5 * SPEED * np.pi * radius**2) - 1}


def openings(
    tau: float,
    radius: float,
    length: float,
    mach: float,
    case: str,
    device: str,
    storage: str = "float64",
    **model: Any,
) -> Row:
    """Return the relative error of the flow rate between pressures, or of the gradient behind an inlet, from rest.

    `model` are further options of `FlowModel`.
    """
    viscosity, peak = (tau - 0.5) / 3, mach * CS2**0.5
    axis = np.array([1.0, 0.5 * ("tilted" in case), 0.0])
    excess = 4 * viscosity * peak / radius**2 * length / CS2
    outlet = PressureIolet(1 - excess / 2)
    inlet = VelocityIolet(peak / 2, ramp=200) if "inlet" in case else PressureIolet(1 + excess / 2)
    flow_model = FlowModel(Newtonian(viscosity), iolets=(inlet, outlet), walls=Walls("bouzidi"), **model)
    sites = shapes.tube(radius, length, 1.0, axis=tuple(axis.tolist()))
    solver = solver_of(sites, flow_model, storage, device)
    solver.advance(int(9 * radius**2 / (5.783 * viscosity)) + 30 * round(length))
    measured = -float(solver.measures.iolet_flow()[1])
    entrance = 0.05 * (0.5 * peak * 2 * radius / viscosity) * 2 * radius / length
    if "inlet" in case:
        x = positions(sites) @ axis / np.linalg.norm(axis)
        x -= 0.5 * (x.min() + x.max())
        part = (x > 0) & (x < 0.4 * length)
        slope = np.polyfit(x[part], solver.fields(["density"])["density"][part], 1)[0]
        value = -slope * CS2 * np.pi * radius**4 / (8 * viscosity * measured) - 1
    else:
        value = measured / (0.5 * peak * np.pi * radius**2) - 1
    grid = peak / viscosity
    row = {"walls": error_of_walls(radius, tau, peak, storage, device, **model)} if case == "aligned" else {}
    return row | {
        "radius": radius,
        "length": length,
        "mach": mach,
        "entrance": entrance,
        "grid": grid,
        "value": float(value),
    }


def error_of_walls(radius: float, tau: float, peak: float, storage: str, device: str, **model: Any) -> float:
    """Return the relative error of the flow rate in a periodic tube along the lattice."""
    viscosity, depth = (tau - 0.5) / 3, 8 if storage.startswith("moments") else 1
    force = (4 * viscosity * peak / radius**2, 0.0, 0.0)
    driven = FlowModel(Newtonian(viscosity), body_force=force, walls=Walls("bouzidi"), **model)
    solver = steady(shapes.tube(radius, float(depth), 1.0, periodic=True), driven, radius, storage, device)
    flow = float(solver.fields(["velocity"])["velocity"][:, 0].sum()) / depth
    return flow / (0.5 * peak * np.pi * radius**2) - 1


def largest_mach(tau: float, radius: float, length: float, *, within_grid: bool = True) -> float:
    """Return Mach 0.1, or the largest at which the entrance length is nine tenths of that of the tube.

    With `within_grid` the grid Reynolds number is at most 6.95.
    """
    mach = min(0.1, 0.9 * length / (0.05 * 2 * radius**2) * (tau - 0.5) / 3 / CS2**0.5)
    return min(mach, 6.95 * (tau - 0.5) * CS2**0.5) if within_grid else mach


def tasks(steps: int, device: str) -> list[tuple[Row, Callable[[], Row]]]:
    """Return the keys of all rows and the functions that measure them, the short ones first."""
    jobs: list[tuple[Row, Callable[[], Row]]] = []
    for case in ("aligned pipe", "half-way pipe", "turning cylinder", "tilted pipe"):
        for storage in STORAGES:
            for tau in TAUS:
                key = {"kind": "drift", "case": case, "storage": storage, "tau": tau}
                jobs.append((key, partial(drift, case, tau, storage, steps, device)))
    for tau in TAUS:
        for storage in STORAGES:
            key = {"kind": "flow", "case": "aligned pipe", "storage": storage, "tau": tau}
            jobs.append((key, partial(flow, tau, storage, 6.2, device)))
    for radius, length in ((5.0, 40.0), (10.0, 60.0)):
        for case in ("aligned", "tilted", "aligned, inlet"):
            for storage in STORAGES:
                for tau in TAUS:
                    key = {"kind": "openings", "case": f"R = {radius:g}, {case}", "storage": storage, "tau": tau}
                    mach = largest_mach(tau, radius, length)
                    jobs.append((key, partial(openings, tau, radius, length, mach, case, device, storage)))
        for velocity_set, collision, taus in OTHERS:
            for case in ("aligned", "tilted"):
                for tau in taus:
                    name = f"R = {radius:g}, {case}, {velocity_set}, {type(collision).__name__.upper()}"
                    key = {"kind": "openings", "case": name, "storage": "float64", "tau": tau}
                    options = {"velocity_set": velocity_set, "collision": collision}
                    mach = largest_mach(tau, radius, length)
                    jobs.append((key, partial(openings, tau, radius, length, mach, case, device, **options)))
    beyond, mach = "R = 5, aligned, beyond the grid Reynolds number", largest_mach(0.51, 5.0, 40.0, within_grid=False)
    key = {"kind": "openings", "case": beyond, "storage": "float64", "tau": 0.51}
    jobs.append((key, partial(openings, 0.51, 5.0, 40.0, mach, "aligned", device)))
    for case in ("aligned pipe", "tilted pipe"):
        for storage in ("float64", "moments"):
            for tau in TAUS:
                key = {"kind": "order", "case": case, "storage": storage, "tau": tau}
                jobs.append((key, partial(order, case, tau, storage, device)))
    return jobs


def main() -> None:
    """Measure the rows that the file lacks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=100_000, help="of the drifts")
    parser.add_argument("--only", default="", help="text in the kind and case of the rows, such as 'openings R = 5'")
    options = parser.parse_args()
    stored = json.loads(options.json.read_text()) if options.json.exists() else {"rows": []}
    rows: list[Row] = [{**row, "commit": row.get("commit", stored.get("commit"))} for row in stored["rows"]]
    for key, measure in tasks(options.steps, options.device):
        is_stored = any(all(row.get(name) == value for name, value in key.items()) for row in rows)
        if is_stored or options.only not in f"{key['kind']} {key['case']}":
            continue
        try:
            measured = measure()
        except UnstableError as error:
            measured = {"value": None, "failed": str(error)}
        document = provenance("flow conservation", open_backend(options.device, 1, 0).describe())
        rows.append({**key, **measured, "commit": document["commit"]})
        print(rows[-1], flush=True)
        document = {**document, "rows": rows}
        options.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
