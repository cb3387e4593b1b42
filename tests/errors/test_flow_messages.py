# SPDX-License-Identifier: BSD-3-Clause
"""Errors of a solver, each in one line, and the message of an unstable run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from seiche.domain import shapes
from seiche.domain.sites import LINK_VECTORS, IoletPlane, SiteSet
from seiche.domain.world import World
from seiche.errors import BackendUnavailable, CaseError, UnstableError
from seiche.flow import (
    CarreauYasuda,
    Casson,
    FlowModel,
    Mrt,
    Newtonian,
    PowerLaw,
    Precision,
    PressureIolet,
    Solver,
    Trt,
    VelocityIolet,
)
from seiche.flow.state import site_state

BOX = shapes.box((4, 5, 6))
TUBE = shapes.tube(2.3, 4.0, 1.0)
WATER = Newtonian(0.1)
PRESSURES = (PressureIolet(), PressureIolet())


def two_iolets_at_one_site() -> tuple[SiteSet, list[int]]:
    """Return a tube, a link of whose first inlet site goes to the outlet, and the place of that site."""
    numbers = TUBE.link_iolet.copy()
    row = int(np.flatnonzero((numbers == 0).any(axis=1))[0])
    along_x = int(np.flatnonzero((LINK_VECTORS == (-1, 0, 0)).all(axis=1))[0])
    numbers[row, along_x] = 1
    return replace(TUBE, link_iolet=numbers), TUBE.coords[TUBE.boundary[row]].tolist()


def without_radius() -> SiteSet:
    inlet, outlet = TUBE.iolets
    return replace(TUBE, iolets=(IoletPlane(inlet.name, inlet.role, inlet.center, inlet.normal), outlet))


@pytest.mark.parametrize(
    ("sites", "model", "options", "message"),
    [
        (SiteSet((2, 2, 2), np.zeros((0, 3), np.int32), 1.0), FlowModel(WATER), {}, "the geometry has no fluid site"),
        (
            shapes.box((1, 1, 2)),
            FlowModel(WATER),
            {"world": World(0, 3, 0, 3)},
            "there are more ranks (3) than fluid sites (2)",
        ),
        (
            BOX,
            FlowModel(WATER),
            {"precision": Precision("float32", "float64")},
            "precision float32/float64 (compute/storage) is not one of float64/float64, float64/float32, "
            "float64/float16, float32/float32, float32/float16",
        ),
        (
            BOX,
            FlowModel(Newtonian(0.0)),
            {},
            "viscosity 0.0 (lattice units) is not positive, so tau would be <= 1/2",
        ),
        (
            BOX,
            FlowModel(Newtonian(float("nan"))),
            {},
            "viscosity nan (lattice units) is not positive, so tau would be <= 1/2",
        ),
        (
            BOX,
            FlowModel(CarreauYasuda(0.3, -0.1, 1.0, 0.64, 0.2)),
            {},
            "viscosity -0.1 (lattice units) is not positive, so tau would be <= 1/2",
        ),
        (BOX, FlowModel(WATER, Trt(0.0)), {}, "TRT magic parameter 0.0 is not positive"),
        (BOX, FlowModel(WATER, Mrt(magic=-1.0)), {}, "MRT magic parameter -1.0 is not positive"),
        (BOX, FlowModel(WATER, Mrt(bulk=2.0)), {}, "MRT bulk rate 2.0 is not between 0 and 2"),
        (BOX, FlowModel(WATER, Mrt(even=0.0)), {}, "MRT even rate 0.0 is not between 0 and 2"),
        (
            BOX,
            FlowModel(WATER, velocity_set="D3Q21"),  # type: ignore[arg-type]
            {},
            "velocity set 'D3Q21' is not one of D3Q15, D3Q19, D3Q27",
        ),
        (
            BOX,
            FlowModel(Casson(-1.0, 0.1, 0.2)),
            {},
            "Casson fluid: yield stress -1.0 (lattice units) is negative or not a number",
        ),
        (
            BOX,
            FlowModel(PowerLaw(0.1, 0.5, 0.2, 0.1)),
            {},
            "power law: shear rates 0.2 to 0.1 (1/step) must be positive and ascending",
        ),
        (
            BOX,
            FlowModel(Casson(1e-5, 0.1, float("inf"))),
            {},
            "viscosity inf (lattice units) is not positive, so tau would be <= 1/2",
        ),
        (
            BOX,
            FlowModel(WATER),
            {"layout": "list"},
            "layout 'list' is not one of auto, list-ab, list-aa, tiles-4, tiles-8",
        ),
        (
            BOX,
            FlowModel(WATER),
            {"layout": "tiles-4"},
            "layout tiles-4: the periodic extent of 5 sites along y is not a multiple of 4;"
            " choose another layout or size",
        ),
        (TUBE, FlowModel(WATER), {}, "0 iolet conditions for 2 iolets of the geometry; expected one for each"),
        (
            without_radius(),
            FlowModel(WATER, iolets=(VelocityIolet(0.01), PressureIolet())),
            {},
            "iolet 'inlet': a velocity profile requires a radius",
        ),
    ],
)
def test_impossible_model_gives_a_one_line_error(
    sites: SiteSet, model: FlowModel, options: dict[str, Any], message: str
):
    with pytest.raises(CaseError) as caught:
        Solver(sites, model, **options)
    assert str(caught.value) == message


def test_site_between_two_iolets_is_named():
    sites, position = two_iolets_at_one_site()
    with pytest.raises(CaseError) as caught:
        Solver(sites, FlowModel(WATER, iolets=PRESSURES), threads=1)
    assert str(caught.value) == f"the site at {position} touches two iolets, 'inlet' and 'outlet'; move them apart"


def test_unknown_device_is_named():
    with pytest.raises(BackendUnavailable, match=r"^device 'gpu' is unknown: use 'cpu', 'cuda' or 'cuda:K'$"):
        Solver(BOX, FlowModel(WATER), device="gpu")


@pytest.mark.parametrize("threads", [0, -1])
def test_fewer_than_one_thread_are_rejected(threads):
    with pytest.raises(CaseError, match=rf"^threads: {threads} is out of range; expected >= 1$"):
        Solver(BOX, FlowModel(WATER), threads=threads)


@pytest.mark.parametrize(
    ("rheology", "state", "message"),
    [
        (WATER, {}, "state: the array 'populations' of the sites is missing; expected (120, 19)"),
        (
            WATER,
            {"populations": np.zeros((119, 19))},
            "state: the array 'populations' of the sites has shape (119, 19); expected (120, 19)",
        ),
        (
            CarreauYasuda(0.3, 0.1, 1.0, 0.64, 0.2),
            {"populations": np.zeros((120, 19))},
            "state: the array 'relaxation' of the sites is missing; expected (120,)",
        ),
    ],
)
def test_state_of_the_wrong_shape_is_rejected(rheology: Any, state: dict[str, Any], message: str):
    solver = Solver(BOX, FlowModel(rheology), threads=1)
    with pytest.raises(CaseError) as caught:
        solver.set_state(site_state(solver, state, 3))
    assert str(caught.value) == message
    assert solver.step == 0


@pytest.mark.parametrize(("before", "after"), [("D3Q15", 19), ("D3Q27", 15)])
def test_state_of_another_velocity_set_is_rejected(before: str, after: int):
    model = FlowModel(WATER, velocity_set=f"D3Q{after}")  # type: ignore[arg-type]
    populations = np.zeros((120, int(before.removeprefix("D3Q"))))
    solver = Solver(BOX, model, threads=1)
    with pytest.raises(CaseError) as caught:
        solver.set_state(site_state(solver, {"populations": populations}, 3))
    assert str(caught.value) == (
        f"state: the array 'populations' of the sites has shape {populations.shape}; expected (120, {after})"
    )


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (np.zeros((3, 120)), "force field: expected an array of shape (120, 3), found (3, 120)"),
        (np.full((120, 3), np.nan), "force field: a value is not finite"),
    ],
)
def test_force_field_of_the_wrong_shape_is_rejected(field: np.ndarray, message: str):
    with pytest.raises(CaseError) as caught:
        Solver(BOX, FlowModel(WATER), threads=1).set_force(field)
    assert str(caught.value) == message


def test_unknown_field_names_those_there_are():
    with pytest.raises(KeyError, match=r"unknown fields .*vorticity.*density"):
        Solver(BOX, FlowModel(WATER), threads=1).fields(["vorticity"])


@pytest.mark.parametrize("layout", ["list-ab", "list-aa", "tiles-4", "tiles-8"])
def test_a_run_that_blows_up_is_stopped_with_place_rank_and_step(layout: str):
    model = FlowModel(Newtonian(1e-4), iolets=(PressureIolet(1.5), PressureIolet()), body_force=(50.0, 30.0, 0.0))
    solver = Solver(TUBE, model, layout=layout, threads=1)
    with np.errstate(all="ignore"), pytest.raises(UnstableError) as caught:
        solver.advance(300)
    text = str(caught.value)
    assert text.startswith("populations are not finite at site [")
    assert text.endswith("], rank 0, step 300")
    position = [int(word) for word in text[text.index("[") + 1 : text.index("]")].split(",")]
    assert TUBE.find(np.array(position)) >= 0
