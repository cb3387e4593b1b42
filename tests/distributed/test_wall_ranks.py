# SPDX-License-Identifier: BSD-3-Clause
"""Interpolated and moving walls, pressures in planes: the same bits on all ranks and layouts, and across a restart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from flow_cases import BLOOD, iolet_model, tilted_tube
from flow_runs import assert_same

from seiche.domain import shapes
from seiche.domain.sites import SiteSet
from seiche.domain.world import World
from seiche.flow import (
    Body,
    FlowModel,
    MovingWall,
    Precision,
    PressureIolet,
    Regularised,
    Solver,
    Walls,
    WindkesselIolet,
)
from seiche.flow.choice import LAYOUT_NAMES
from seiche.flow.model import WallKind


def lower_half(places: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    return places[:, 2] < 0.0


def moving_tube() -> tuple[SiteSet, FlowModel]:
    walls = Walls("bouzidi", (MovingWall("low", (0.01, 0.002, 0.0), (0.001, 0.0, 0.0), patch=lower_half),))
    return tilted_tube(), replace(iolet_model(BLOOD), walls=walls)


def planes_tube() -> tuple[SiteSet, FlowModel]:
    """Return pressures that hold in their planes, one of them of a circuit, and interpolated walls."""
    ends = (PressureIolet(1.002, 0.001, 50.0, scheme="plane"), WindkesselIolet(0.01, 1e3, 0.01, scheme="plane"))
    model = FlowModel(BLOOD, iolets=ends, body_force=(1e-6, 0.0, 2e-6), walls=Walls("bouzidi"))
    return tilted_tube(), model


CASES = {"moving": moving_tube, "planes": planes_tube}
#: Each layout with a collision that it can hold; what populations give with that of moments is the reference.
LAYOUTS = (*LAYOUT_NAMES, "moments")


def fitting(model: FlowModel, layout: str) -> FlowModel:
    return replace(model, collision=Regularised()) if layout == "moments" else model


@pytest.mark.parametrize("name", CASES)
@pytest.mark.ranks(1, 2, 3, 4)
def test_ranks_equal_one_rank_in_every_layout(name: str):
    world = World.from_mpi()
    sites, model = CASES[name]()
    for steps in (20, 53):  # the second begins windows in which walls give mass back
        for layout in LAYOUTS:
            if layout in ("list-ab", "moments"):
                reference = Solver(sites, fitting(model, layout), layout="list-aa", threads=1)
                reference.advance(steps)
            solver = Solver(sites, fitting(model, layout), layout=layout, world=world, threads=1)
            solver.advance(7)
            solver.monitor()  # observation between steps does not change the state
            solver.advance(steps - 7)
            assert_same(solver, reference)
            solver.close()


def two_pipes(places: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    narrow = np.hypot(places[..., 1] - 4.3, places[..., 2] - 4.6) - 2.3
    wide = np.hypot(places[..., 1] - 11.2, places[..., 2] - 5.4) - 3.7
    return np.minimum(narrow, wide)


@pytest.mark.ranks(2, 3)
def test_ranks_find_the_same_components_and_their_mass():
    world = World.from_mpi()
    sites = shapes.sites_from_distance(
        two_pipes, [0, 0, 0], [8, 16, 11], 1.0, periodic=(True, False, False), region=two_pipes
    )
    model = FlowModel(BLOOD, body_force=(2e-5, 1e-5, 0.0), walls=Walls("bouzidi"))
    reference = Solver(sites, model, threads=1)
    solver = Solver(sites, model, world=world, partition="curve", threads=1)
    for item in (reference, solver):
        item.advance(70)
    created = solver.mass_created()
    assert created.shape == (2,)
    np.testing.assert_array_equal(created, reference.mass_created())
    assert_same(solver, reference)
    solver.close()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.ranks(1, 2, 3)
def test_forces_are_bitwise_equal_on_ranks(layout: str):
    sites, model = moving_tube()
    model = replace(
        fitting(model, layout), walls=replace(model.walls, bodies=(Body("low", patch=lower_half), Body("all")))
    )
    results = []
    for world in (World.serial(), World.from_mpi()):
        solver = Solver(sites, model, layout=layout, world=world, threads=1)
        for steps in (1, 32):
            solver.advance(steps)
            results.append(solver.measures.wall_forces())
        solver.close()
    for one, other in zip(results[:2], results[2:], strict=True):
        for body, values in one.items():
            np.testing.assert_array_equal(other[body], values)


@pytest.mark.parametrize("kind", ["bounce-back", "bouzidi"])
@pytest.mark.parametrize("storage", ["float32", "float16"])
@pytest.mark.ranks(1, 2)
def test_total_mass_of_closed_vessels_is_corrected_with_bitwise_equal_results(kind: WallKind, storage: str):
    """In every layout, on every number of ranks and across a restart; the first comparison acts after step 1024."""
    sites = shapes.sites_from_distance(
        two_pipes, [0, 0, 0], [8, 16, 16], 1.0, periodic=(True, False, False), region=two_pipes
    )
    model = FlowModel(BLOOD, body_force=(2e-5, 1e-5, 0.0), walls=Walls(kind))
    precision, steps = Precision("float32", storage), 1100  # type: ignore[arg-type]
    for layout in ("tiles-4", "moments") if storage == "float32" else ("list-ab",):
        fitted = fitting(model, layout)
        reference = Solver(sites, fitted, layout="list-aa", precision=precision, threads=1)
        reference.advance(steps)
        world = World.from_mpi()
        solver = Solver(sites, fitted, layout=layout, precision=precision, world=world, partition="curve", threads=1)
        solver.advance(1030)
        solver.monitor()
        resumed = Solver(sites, fitted, layout=layout, precision=precision, world=world, threads=1)
        if world.size == 1:
            resumed.set_state(solver.state())
            resumed.advance(steps - 1030)
            assert_same(resumed, reference)
        solver.advance(steps - 1030)
        assert_same(solver, reference)
        solver.close()
        resumed.close()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_state_put_into_a_new_solver_continues_as_if_uninterrupted(device: str, layout: str, name: str):
    sites, model = CASES[name]()
    model = fitting(model, layout)
    full = Solver(sites, model, layout="list-aa", threads=1)
    full.advance(70)
    for steps in (10, 32, 43):
        stopped = Solver(sites, model, layout=layout, device=device, threads=1)
        stopped.advance(steps)
        stopped.fields(["velocity"])
        resumed = Solver(sites, model, layout=layout, device=device, threads=1)
        resumed.fields(["velocity"])
        resumed.set_state(stopped.state())
        resumed.advance(70 - steps)
        assert_same(resumed, full)


@pytest.mark.gpu
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_gpu_equals_cpu(device: str, layout: str, name: str):
    sites, model = CASES[name]()
    model = fitting(model, layout)
    for steps in (21, 100):  # the second is replayed as a graph for the most part
        reference = Solver(sites, model, layout="list-aa", threads=1)
        solver = Solver(sites, model, layout=layout, device=device)
        reference.advance(steps)
        solver.advance(steps)
        assert_same(solver, reference)


@pytest.mark.ranks(2)
def test_a_wrong_motion_is_rejected_on_every_rank():
    from seiche.errors import CaseError

    sites, model = moving_tube()
    fast = MovingWall("low", (0.2, 0.0, 0.0), patch=lower_half)
    with pytest.raises(CaseError, match=r"moving wall 'low': 0.2 sites/step is Mach 0.346, out of range"):
        Solver(sites, replace(model, walls=Walls(moving=(fast,))), world=World.from_mpi(), threads=1)
