# SPDX-License-Identifier: BSD-3-Clause
"""The longest time step of a membrane in a fluid: what is predicted is where cells begin to shake."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from seiche.backend import open_backend
from seiche.cells import Cells, CellType, MembraneModel, NeoHookean, Skalak, biconcave
from seiche.couple import Blood, shear_response
from seiche.couple.immersed import Scheme
from seiche.couple.limits import delta_function, step_limit
from seiche.domain import shapes
from seiche.errors import CaseError
from seiche.flow import FlowModel, Newtonian, Solver

MESH = biconcave(162, radius=4.5)
VISCOSITY = 1 / 6


def growth(model: MembraneModel, scheme: Scheme, viscosity: float = VISCOSITY, contrast: float = 1.0) -> float:
    """Return by how much a small disturbance of a cell at rest grows in 200 steps."""
    solver = Solver(shapes.box((20, 20, 16)), FlowModel(Newtonian(viscosity)), threads=1)
    cells = Cells(solver.backend, [CellType("red", MESH, model)], [[[10.0, 10.0, 8.0]]])
    flow = Blood(solver, cells, scheme=scheme, viscosity_contrast=contrast)
    still = cells.vertices()
    cells.set_vertices(still + 1e-6 * np.random.default_rng(0).normal(size=still.shape))
    flow.boundary.refresh()
    speeds = []
    for steps in (40, 200):
        solver.start(steps)
        solver.finish()
        speeds.append(float(np.abs(solver.backend.download(flow.boundary.velocity)).max()))
    return speeds[1] / speeds[0] if np.isfinite(speeds).all() else np.inf


AREA = MembraneModel(Skalak(1.0, 50.0), bending=0.05, spontaneous_curvature="rest")
VOLUME = MembraneModel(Skalak(1e-3, 1.0), volume=5.0, spontaneous_curvature="rest")


@pytest.mark.parametrize(
    ("model", "modulus", "scheme"),
    [
        (AREA, "area ratio", "euler"),
        (AREA, "area ratio", "adams-bashforth"),
        (MembraneModel(NeoHookean(1.0), spontaneous_curvature="rest"), "shear modulus", "euler"),
        (MembraneModel(Skalak(1e-3, 1.0), area=5.0, spontaneous_curvature="rest"), "area", "euler"),
        (VOLUME, "volume", "euler"),
        (VOLUME, "volume", "adams-bashforth"),
    ],
)
def test_cells_begin_to_shake_where_the_limit_says(model: MembraneModel, modulus: str, scheme: Scheme) -> None:
    kind, backend = CellType("red", MESH, model), open_backend("cpu", 1)
    limit = step_limit(backend, kind, "peskin", VISCOSITY, scheme=scheme)
    assert limit.modulus == modulus
    scaled = at_the_limit(model, scheme)
    assert growth(scale(scaled, 0.45), scheme) < 1.0
    assert not growth(scale(scaled, 5.0), scheme) < 10.0


@pytest.mark.parametrize("scheme", ["euler", "adams-bashforth"])
def test_the_limit_takes_the_fluid_inside_into_account(scheme: Scheme) -> None:
    """Inside, the relaxation time is 15.5, and short waves decay slowly: what is stable in one fluid is not in two."""
    only_outside, both = at_the_limit(AREA, scheme, 1.0), at_the_limit(AREA, scheme, 1.0, contrast=5.0)
    assert both.law.shear < 0.5 * only_outside.law.shear
    assert growth(scale(both, 0.45), scheme, 1.0, contrast=5.0) < 1.0
    assert not growth(scale(both, 5.0), scheme, 1.0, contrast=5.0) < 10.0
    assert growth(scale(only_outside, 0.45), scheme, 1.0) < 1.0
    assert not growth(only_outside, scheme, 1.0, contrast=5.0) < 10.0


def at_the_limit(
    model: MembraneModel, scheme: Scheme, viscosity: float = VISCOSITY, contrast: float = 1.0
) -> MembraneModel:
    """Return the membrane scaled to the limit at this viscosity; a longer step would change the viscosity, too."""
    backend = open_backend("cpu", 1)
    for _ in range(12):
        kind = CellType("red", MESH, model)
        limit = step_limit(backend, kind, "peskin", viscosity, scheme=scheme, viscosity_contrast=contrast)
        if abs(limit.ratio - 1) < 0.03:
            break
        model = scale(model, limit.ratio**1.5)
    return model


def scale(model: MembraneModel, factor: float) -> MembraneModel:
    law = replace(model.law, shear=model.law.shear * factor)
    return replace(
        model, law=law, bending=model.bending * factor, area=model.area * factor, volume=model.volume * factor
    )


def test_the_limit_scales_with_the_step() -> None:
    """The same cell with another time step (moduli with its square, viscosity with it) has the same longest step."""
    backend, model = open_backend("cpu", 1), MembraneModel(Skalak(0.1, 10.0), bending=0.01, area=0.1, volume=0.1)
    one = step_limit(backend, CellType("red", MESH, model), "roma", 0.1)
    two = step_limit(backend, CellType("red", MESH, scale(model, 0.25)), "roma", 0.05)
    assert 0.5 * two.ratio == pytest.approx(one.ratio, rel=0.03)
    free = MembraneModel(Skalak(0.0))
    assert step_limit(backend, CellType("red", MESH, free), "roma", 0.1).ratio == np.inf


def test_trial_steps_share_the_powers_of_their_responses() -> None:
    """The powers take longer than the rest of a trial, and 16 trials are made for the red cells and platelets."""
    shear_response._powers.cache_clear()
    kind = CellType("red", MESH, MembraneModel(Skalak(0.1, 10.0)))
    step_limit(open_backend("cpu", 1), kind, "peskin", VISCOSITY)
    result = shear_response._powers.cache_info()
    assert result.misses == 1
    assert result.hits > 3


@pytest.mark.parametrize(("name", "squares"), [("roma", 0.5), ("peskin", 0.375), ("cosine", 0.375)])
def test_delta_functions_have_their_sums(name: str, squares: float) -> None:
    for position in np.linspace(0, 1, 9):
        weights = delta_function(name, np.arange(-3, 4) - position)  # type: ignore[arg-type]
        assert weights.sum() == pytest.approx(1.0, abs=1e-14)
        assert (weights**2).sum() == pytest.approx(squares, abs=1e-14)
    assert delta_function("hat", np.array([-0.25, 0.5, 1.5])).tolist() == [0.75, 0.5, 0.0]
    with pytest.raises(CaseError, match="delta function 'sinc' is not one of hat, roma, peskin, cosine"):
        delta_function("sinc", np.zeros(1))  # type: ignore[arg-type]
