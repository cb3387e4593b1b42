# SPDX-License-Identifier: BSD-3-Clause
"""Cells of two types in a flow, for tests on several ranks."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from flow_cases import site_arrays

from seiche.cells import Cells, CellType, Contact, MembraneModel, Repulsion, Skalak, biconcave, icosphere
from seiche.couple import Blood
from seiche.domain import shapes
from seiche.domain.sites import SiteSet
from seiche.domain.surface import Surface
from seiche.domain.world import World
from seiche.flow import FlowModel, Newtonian, Solver
from seiche.solver import RowSet, State

SOFT = MembraneModel(Skalak(2e-3, 1.0), bending=1e-3, volume=0.01, area=0.01)
RED = CellType("red", biconcave(162, radius=5.0), SOFT)
BALL = icosphere(162)
PLATELET = CellType("platelet", Surface(BALL.vertices * 2.5, BALL.faces), SOFT)

BOX = shapes.box((40, 24, 24))
#: Across that box's periodic sides, and near each other.
PLACES = [[[1.0, 12.0, 12.0], [14.0, 3.0, 6.0], [22.0, 14.0, 22.5], [33.0, 20.0, 9.0]], [[25.5, 4.0, 12.0]]]
#: Repels cells from each other in a box of that size.
beside = partial(Contact, between=Repulsion(1e-3, 1.5), lengths=(80.0, 24.0, 24.0))
DRIVEN = FlowModel(Newtonian(0.1), initial_velocity=(0.05, 0.02, -0.01), body_force=(1e-4, 0.0, 2e-5))


def blood(
    sites: SiteSet,
    places: list[list[list[float]]],
    model: FlowModel = DRIVEN,
    *,
    world: World | None = None,
    layout: str = "auto",
    partition: str = "metis",
    device: str = "cpu",
    transport: str = "auto",
    contact: Any = None,
    types: tuple[CellType, ...] = (RED, PLATELET),
    **options: Any,
) -> Blood:
    """Return cells of two types in a flow; `contact` makes their contact."""
    where = {"device": device, "layout": layout, "partition": partition, "transport": transport}
    solver = Solver(sites, model, world=world, threads=1, **where)  # type: ignore[arg-type]
    cells = Cells(solver.backend, types, places)  # type: ignore[arg-type]
    return Blood(solver, cells, contact=contact(cells) if contact is not None else None, **options)


def gathered_cells(flow: Blood, kind: int) -> dict[str, npt.NDArray[Any]]:
    """Return the state of all cells of a type, of all ranks."""
    memory = flow.memory_metric(kind)
    state = {"place": flow.vertices(kind), "velocity": flow.velocities(kind)}
    return state if memory is None else {**state, "relaxed": memory}


def without_velocity(state: State) -> State:
    """Return a state of cells that lacks their velocities."""
    rows = {name: RowSet(item.keys, item.total, {"place": item.arrays["place"]}) for name, item in state.rows.items()}
    return State(state.step, rows)


def assert_same(shared: Blood, alone: Blood) -> None:
    """Compare cells, and the fluid of this rank, with a run that one process did alone."""
    for kind in range(len(alone.cells.blocks)):
        expected = gathered_cells(alone, kind)
        for name, values in gathered_cells(shared, kind).items():
            np.testing.assert_array_equal(values, expected[name], err_msg=name)
    np.testing.assert_array_equal(shared.areas_and_volumes(), alone.areas_and_volumes())
    own_result = shared.solver.owned
    own = shared.solver.state()
    for name, values in site_arrays(alone.solver).items():  # of a layout that has no state but these
        np.testing.assert_array_equal(own[name], values[own_result], err_msg=name)


def compare(steps: int, *arguments: Any, **options: Any) -> tuple[Blood, Blood]:
    """Run on all ranks and alone, and compare."""
    shared = blood(*arguments, world=World.from_mpi(), **options)
    for name in ("layout", "partition", "transport"):
        options.pop(name, None)
    single = blood(*arguments, **options)
    assert_same(shared, single)
    for item in (shared, single):
        item.advance(steps)
    assert_same(shared, single)
    return shared, single


def fetched(backend: Any) -> list[int]:
    """Return a list that grows by the bytes of everything that comes from the device from now on."""
    sizes: list[int] = []
    download, copy = backend.download, backend.copy_to_host

    def downloaded(array: Any) -> npt.NDArray[Any]:
        sizes.append(int(array.nbytes))
        return np.asarray(download(array))

    def copied(array: Any, host: npt.NDArray[Any]) -> None:
        sizes.append(int(host.nbytes))
        copy(array, host)

    backend.download, backend.copy_to_host = downloaded, copied
    return sizes
