# SPDX-License-Identifier: BSD-3-Clause
"""Pressure from density, with absorption by fractional Laplacians (eq. 12) or relaxation processes (eq. 26)."""

from __future__ import annotations

from typing import Any

import numpy as np

from seiche.backend import Array
from seiche.kernels.registry import kspace as registry
from seiche.observe.stage import Stage
from seiche.ultrasound import operators
from seiche.ultrasound.medium_arrays import MediumArrays
from seiche.ultrasound.state import Bound, DeviceState, stage


def final_operation_of(state: DeviceState) -> registry.Finish:
    """Return the final operation of the density kernels: the equation of state of the medium."""
    absorption = state.problem.absorption
    if state.problem.relaxation is not None:
        return "relaxation"
    if absorption is None:
        return "lossless"
    return "stokes" if absorption.stokes else "power-law"


def final_operation_members(state: DeviceState, final_operation: registry.Finish) -> dict[str, object]:
    """Return the kernel members of a final operation."""
    if final_operation == "relaxation":
        return {"p": state.p, **_relaxation_members(state)}
    if final_operation == "store-rate":
        return {"term": state.work[0]}
    if final_operation == "power-law":
        return {"p": state.p, "rate_out": state.work[0], "rho_out": state.work[1]}
    return {"p": state.p}


def coefficients_of(state: DeviceState, final_operation: registry.Finish) -> list[str]:
    """Return the coefficients of the medium that a final operation uses, and the ambient density."""
    names = ["rho0"]
    if final_operation in ("lossless", "stokes", "relaxation"):
        names.append("c0")
    if final_operation == "stokes":
        names.append("tau")
    if state.problem.BonA is not None and final_operation not in ("store-rate", "store-sum"):
        names.append("BonA")
    return names


def bind_equation_of_state(
    state: DeviceState,
    medium_arrays: MediumArrays,
    final_operation: registry.Finish,
    rows: dict[str, Any],
    *,
    rate: Array | None = None,
    total: Array | None = None,
    rate_row: int | None = None,
) -> Bound:
    """Return the kernel from the densities and their `rate` to pressure or sum `total`.

    `rows` is the layout of rows. Those of the rate are `rate_row` numbers apart, by default as in a padded spectrum.
    """
    problem = state.problem
    varying, medium = medium_arrays.members(*coefficients_of(state, final_operation))
    spec = registry.state_of_density(
        problem.dimensions, varying, problem.BonA is not None, final_operation, state.precision
    )
    members = {"term": total} if final_operation == "store-sum" else final_operation_members(state, final_operation)
    fields = {"rho": state.rho, "rate": rate, "total": total, "medium": medium, "rows": rows}
    return state.bind(spec, **fields, finish=members, rate_row=2 * rows["half"] if rate_row is None else rate_row)


def initial_density(state: DeviceState, medium_arrays: MediumArrays) -> Stage:
    """Return the stage that sets the densities, and the variables of relaxation processes, from an initial pressure."""
    varying, medium = medium_arrays.members("c0")
    spec = registry.initial_density(state.problem.dimensions, varying, state.precision)
    work = [state.bind(spec, p=state.p, rho=state.rho, medium=medium, rows=state.rows)]
    if state.problem.relaxation is not None:
        varying, medium = medium_arrays.members()
        start: registry.Finish = "start-relaxation"
        spec = registry.state_of_density(state.problem.dimensions, varying, False, start, state.precision)
        fields = {"rho": state.rho, "rate": None, "total": None, "medium": medium, "rows": state.rows}
        work.append(state.bind(spec, **fields, finish=_relaxation_members(state), rate_row=0))
    return stage("initial density", *work)


def _relaxation_members(state: DeviceState) -> dict[str, object]:
    """Return the kernel members of relaxation processes; their memory is allocated once for a state."""
    problem, backend = state.problem, state.backend
    relaxation = problem.relaxation
    assert relaxation is not None
    processes = relaxation.strengths.shape[1]
    table = np.stack([relaxation.strengths, problem.dt / (2 * relaxation.times)], axis=-1)
    return {
        "memory": state.relaxation_memory(processes),
        "labels": state.table("tissues", lambda: backend.upload(relaxation.labels.reshape(-1))),
        "table": state.table("processes", lambda: state.upload(table)),
        "points": problem.points,
    }


def bind_power_law(state: DeviceState, medium_arrays: MediumArrays) -> list[Bound]:
    """Return the work after `PowerLawInputs`, empty for other media. A term that is switched off is not transformed."""
    problem = state.problem
    absorption = problem.absorption
    if absorption is None or absorption.stokes:
        return []
    first, last = 0 if absorption.losses else 1, 2 if absorption.dispersion else 1
    active = state.work[first:last]
    varying, medium = medium_arrays.members("c0", "tau")
    laplacians = state.bind_spectral(
        registry.fractional_laplacians(state.precision),
        work=state.work,
        squares=state.upload(operators.square_table(problem)),
        **operators.laplacian_numbers(absorption),
        scale=1 / operators.transform_points(problem),
    )
    pressure = state.bind(
        registry.power_law_pressure(varying, state.precision),
        **{"p": state.p, "absorbed": state.work[0], "dispersed": state.work[1], "medium": medium, "rows": state.rows},
        absorption=float(absorption.losses),
        tangent=absorption.tangent,
    )
    if not len(active):
        return [pressure]
    return [*state.forward(None, active, last - first), laplacians, state.transforms.inverse(active), pressure]
