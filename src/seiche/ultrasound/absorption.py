# SPDX-License-Identifier: BSD-3-Clause
"""What every scheme does for absorption: fractional Laplacians (eq. 12) or relaxation processes (eq. 26)."""

from __future__ import annotations

import numpy as np

from seiche.kernels.registry import Real
from seiche.kernels.registry import kspace as registry
from seiche.ultrasound import operators
from seiche.ultrasound.medium_arrays import MediumArrays
from seiche.ultrasound.state import Bound, DeviceState


def bind_power_law(state: DeviceState, medium_arrays: MediumArrays, real: Real) -> list[Bound]:
    """Return what follows `PowerLawInputs`, empty for other media; a term that is switched off is not transformed."""
    problem = state.problem
    absorption = problem.absorption
    if absorption is None or absorption.stokes:
        return []
    first, last = 0 if absorption.losses else 1, 2 if absorption.dispersion else 1
    active = state.work[first:last]
    varying, medium = medium_arrays.members("c0", "tau")
    laplacians = state.bind_spectral(
        registry.fractional_laplacians(real),
        work=state.work,
        squares=state.upload(operators.square_table(problem)),
        exponent=(absorption.alpha_power - 2) / 2,
        scale=1 / operators.transform_points(problem),
    )
    pressure = state.bind(
        registry.power_law_pressure(varying, real),
        p=state.p,
        absorbed=state.work[0],
        dispersed=state.work[1],
        medium=medium,
        rows=state.rows,
        absorption=float(absorption.losses),
        tangent=float(np.tan(np.pi * absorption.alpha_power / 2)) if absorption.dispersion else 0.0,
    )
    if not len(active):
        return [pressure]
    return [*state.forward(None, active, last - first), laplacians, state.transforms.inverse(active), pressure]


def finish_of(state: DeviceState) -> registry.Finish:
    """Return what is made of a new density."""
    absorption = state.problem.absorption
    if state.problem.relaxation is not None:
        return "relaxation"
    if absorption is None:
        return "lossless"
    return "stokes" if absorption.stokes else "power-law"


def relaxation_members(state: DeviceState) -> dict[str, object]:
    """Return the members of relaxation processes; their memory is made once for a state."""
    problem, backend = state.problem, state.backend
    relaxation = problem.relaxation
    assert relaxation is not None
    processes = relaxation.strengths.shape[1]
    table = np.stack([relaxation.strengths, problem.time_step / (2 * relaxation.times)], axis=-1)
    return {
        "memory": state.once("relaxation", lambda: backend.zeros((processes, problem.points), state.real)),
        "labels": state.once("tissues", lambda: backend.upload(relaxation.labels.reshape(-1))),
        "table": state.once("processes", lambda: state.upload(table)),
        "points": problem.points,
    }


def bind_start(state: DeviceState, medium_arrays: MediumArrays, real: Real) -> list[Bound]:
    """Return what relaxation processes do when a density is set at once; empty for other media."""
    if state.problem.relaxation is None:
        return []
    varying, medium = medium_arrays.members()
    spec = registry.state_of_density(state.problem.dimensions, varying, False, "start-relaxation", real)
    members = relaxation_members(state)
    return [
        state.bind(
            spec, rho=state.rho, rate=None, total=None, medium=medium, finish=members, rows=state.rows, rate_row=0
        )
    ]


def finish_members(state: DeviceState, finish: registry.Finish) -> dict[str, object]:
    """Return the members of that."""
    if finish == "relaxation":
        return {"p": state.p, **relaxation_members(state)}
    if finish == "keep-rate":
        return {"rate_out": state.work[0]}
    if finish == "power-law":
        return {"p": state.p, "rate_out": state.work[0], "rho_out": state.work[1]}
    return {"p": state.p}


def coefficients_of(state: DeviceState, finish: registry.Finish) -> list[str]:
    """Return the coefficients of the medium that it uses, with the density's own."""
    used = ["rho0"]
    if finish in ("lossless", "stokes", "relaxation"):
        used.append("c0")
    if finish == "stokes":
        used.append("tau")
    if state.problem.BonA is not None and finish not in ("keep-rate", "keep-sum"):
        used.append("BonA")
    return used
