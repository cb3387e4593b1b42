# SPDX-License-Identifier: BSD-3-Clause
"""The regularised collision in moment storage and in populations: against the oracle, each other, and restarts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from flow_cases import BLOOD, FIELDS, WATER, iolet_model, site_arrays, tilted_tube
from oracle import LATTICES, Oracle, compare_with_oracle, random_state

from seiche.domain import shapes
from seiche.errors import CaseError
from seiche.flow import (
    CarreauYasuda,
    Casson,
    FlowModel,
    Newtonian,
    PowerLaw,
    Precision,
    PressureIolet,
    Regularised,
    Solver,
    Walls,
)
from seiche.flow.choice import choose_layout, recommendation, step_bytes, step_time
from seiche.flow.moment_links import NO_SLOT
from seiche.flow.moment_state import basis, coefficients
from seiche.flow.state import site_state
from seiche.flow.velocity_set import D3Q19, VELOCITY_SETS, VelocitySet

Floats = npt.NDArray[np.float64]

PUSH = (1e-3, -2e-3, 5e-4)
MODELS = {
    "water": FlowModel(Newtonian(0.03), Regularised()),
    "water with force": FlowModel(Newtonian(0.4), Regularised(), body_force=PUSH),
    "blood with force": FlowModel(CarreauYasuda(0.3, 0.02, 30.0, 0.64, 0.2128), Regularised(), body_force=PUSH),
    "casson": FlowModel(Casson(4e-5, 0.02, 0.3), Regularised()),
    "power law": FlowModel(PowerLaw(0.01, 0.7, 1e-4, 1.0), Regularised()),
}
#: Each combination of kernels is compiled when it is first used, so that only what differs is gone through.
IN_BOX = [*(("moments", name) for name in MODELS), ("list-aa", "blood with force"), ("tiles-4", "water with force")]
IN_TUBE = [
    (WATER, "nash", "D3Q19"),
    (BLOOD, "anti-bounce-back", "D3Q19"),
    (WATER, "anti-bounce-back", "D3Q15"),
    (WATER, "nash", "D3Q27"),
]
#: Error of one step of populations of order 0.01.
ROUNDING = 5e-15
BOX = shapes.box((16, 8, 8))
TUBE = shapes.tube(4.3, 12.0, 1.0, axis=(1.0, 0.2, 0.1))


@pytest.mark.parametrize(("layout", "name"), IN_BOX)
def test_steps_in_a_periodic_box_are_those_of_the_equations(device: str, layout: str, name: str):
    compare_with_oracle(
        Solver(BOX, MODELS[name], device=device, layout=layout, threads=1), Oracle(BOX, MODELS[name]), 2, ROUNDING
    )


@pytest.mark.parametrize(("rheology", "scheme", "velocity_set"), IN_TUBE)
def test_steps_with_walls_and_iolets_are_those_of_the_equations(
    device: str, rheology: Newtonian | CarreauYasuda, scheme: str, velocity_set: str
):
    model = replace(iolet_model(rheology, Regularised()), velocity_set=velocity_set)  # type: ignore[arg-type]
    outlet = PressureIolet(0.997, scheme=scheme)  # type: ignore[arg-type]
    model = replace(model, iolets=(model.iolets[0], outlet))
    oracle = Oracle(TUBE, model)
    solver = Solver(TUBE, model, device=device, layout="moments", threads=1)
    populations = compare_with_oracle(solver, oracle, 3, ROUNDING)
    np.testing.assert_allclose(solver.measures.iolet_flow(), oracle.inflow, rtol=0, atol=1e-14)
    arrived, fields = oracle.arriving(populations), solver.fields(["density", "velocity", "shear_rate"])
    rho, u = oracle.moments(arrived)
    np.testing.assert_allclose(fields["density"], rho, rtol=0, atol=2e-14)
    np.testing.assert_allclose(fields["velocity"], u, rtol=0, atol=2e-14)
    np.testing.assert_allclose(fields["shear_rate"], oracle.shear_rate(arrived), rtol=0, atol=2e-14)


@pytest.mark.parametrize(
    ("rheology", "precision", "velocity_set"),
    [
        (WATER, Precision("float32", "float32"), "D3Q19"),
        (BLOOD, Precision(), "D3Q19"),
        (WATER, Precision(), "D3Q15"),
        (WATER, Precision(), "D3Q27"),
    ],
)
def test_moments_and_populations_give_bitwise_equal_results(
    device: str, rheology: Newtonian | CarreauYasuda, precision: Precision, velocity_set: str
):
    sites = tilted_tube()
    model = replace(iolet_model(rheology, Regularised()), velocity_set=velocity_set)  # type: ignore[arg-type]
    field = np.random.default_rng(5).uniform(-2e-6, 2e-6, (len(sites), 3))
    results = []
    for layout in ("list-ab", "moments"):
        solver = Solver(sites, model, device=device, layout=layout, precision=precision, threads=1)
        solver.advance(20)
        solver.set_force(field)
        solver.advance(19)
        results.append({**site_arrays(solver), **solver.fields(FIELDS), "mach": np.array(solver.monitor().mach)})
    for name, values in results[0].items():
        np.testing.assert_array_equal(results[1][name], values, err_msg=name)


def test_the_initial_state_is_the_one_that_was_requested(device: str):
    model = replace(
        iolet_model(WATER, Regularised()),
        initial_density=1.01,
        initial_velocity=(0.02, -0.01, 0.005),
        body_force=(0.0, 0.0, 0.0),
    )
    solver = Solver(TUBE, model, device=device, layout="moments", threads=1)
    expected = D3Q19.equilibrium(np.full(1, 0.01), np.array([model.initial_velocity]))
    np.testing.assert_allclose(solver.state()["populations"], np.repeat(expected, len(TUBE), 0), rtol=0, atol=1e-17)


@pytest.mark.parametrize(
    ("compute", "storage"), [("float64", "float64"), ("float64", "float32"), ("float32", "float16")]
)
def test_one_step_is_as_exact_as_arithmetic_and_storage(device: str, compute: str, storage: str):
    model = iolet_model(BLOOD, Regularised())
    precision = Precision(compute, storage)  # type: ignore[arg-type]
    solver = Solver(TUBE, model, device=device, layout="moments", precision=precision, threads=1)
    oracle = Oracle(TUBE, model)
    solver.set_state(site_state(solver, {"populations": random_state(TUBE), "relaxation": oracle.relaxation}))
    lattice = LATTICES["D3Q19"]
    populations = lattice.from_solver(solver.state()["populations"])
    solver.advance()
    state = solver.state()
    expected = lattice.to_solver(oracle.step(populations, 0))
    # Each coefficient is rounded once: 53, 24 or 11 bits, for halves 2^-25/2^15 at least.
    ulp = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11}[storage]
    rounding = ulp * np.abs(state["moments"]) + (2.0**-40 if storage == "float16" else 0.0)
    if storage == "float16":  # density and momentum are floats
        rounding[:, :4] = 2.0**-24 * np.abs(state["moments"][:, :4])
    bound = rounding @ np.abs(basis(D3Q19)).T + {"float64": 1e-14, "float32": 1e-6}[compute]
    for site in {site for site, _, _ in oracle.iolet_links}:  # what comes back is made of all of them, and rounded too
        bound[site] += bound[site].sum() + ulp * np.abs(expected[site])
    error = np.abs(state["populations"] - expected)
    assert np.all(error <= bound)
    if storage != compute:
        assert error.max() > 1e-10  # the storage is really that narrow


@pytest.mark.parametrize("storage", ["float64", "float16"])
def test_a_state_put_into_a_new_solver_continues_as_if_uninterrupted(device: str, storage: str):
    sites, model = tilted_tube(), iolet_model(BLOOD, Regularised())
    precision = Precision("float64", storage)  # type: ignore[arg-type]

    def make() -> Solver:
        return Solver(sites, model, device=device, layout="moments", precision=precision, threads=1)

    full = make()
    full.advance(40)
    for steps in (20, 21):
        stopped, resumed = make(), make()
        stopped.advance(steps)
        resumed.set_state(stopped.state())
        resumed.advance(40 - steps)
        for name, values in site_arrays(full).items():
            np.testing.assert_array_equal(resumed.state()[name], values, err_msg=name)


def test_halves_lose_little_of_a_slow_flow(device: str):
    """What a step adds to the momentum is smaller than the last place of a half: it must not be lost."""
    sites, profiles = shapes.tube(6.3, 8.0, 1.0, periodic=True), []
    model = FlowModel(Newtonian(0.1), Regularised(), body_force=(2e-4, 0.0, 0.0))
    for precision in (Precision("float64", "float64"), Precision("float32", "float16")):
        solver = Solver(sites, model, device=device, layout="moments", precision=precision, threads=1)
        solver.advance(1500)
        profiles.append(np.asarray(solver.fields(["velocity"])["velocity"][:, 0], np.float64))
    assert np.linalg.norm(profiles[1] - profiles[0]) < 2e-4 * np.linalg.norm(profiles[0])


def test_a_restart_moves_between_moments_and_populations():
    sites, model = tilted_tube(), iolet_model(BLOOD, Regularised())
    full = Solver(sites, model, layout="list-aa", threads=1)
    full.advance(40)
    for before, after, rounding in (
        ("moments", "list-aa", 0.0),
        ("moments", "tiles-8", 0.0),
        ("list-ab", "moments", 1e-16),
    ):
        stopped = Solver(sites, model, layout=before, threads=1)
        stopped.advance(21)
        resumed = Solver(sites, model, layout=after, threads=1)
        resumed.set_state(stopped.state())
        resumed.advance(19)
        difference = np.abs(resumed.state()["populations"] - full.state()["populations"])
        assert difference.max() <= rounding


@pytest.mark.parametrize("velocity_set", VELOCITY_SETS.values(), ids=VELOCITY_SETS)
def test_the_regularised_part_keeps_mass_momentum_and_stress(velocity_set: VelocitySet):
    random, c = np.random.default_rng(3), velocity_set.vectors
    populations = random.normal(size=(5, velocity_set.Q))
    part = coefficients(populations, velocity_set, np.zeros(5, np.uint32)) @ basis(velocity_set).T
    for order in (np.ones((velocity_set.Q, 1)), c, np.einsum("qa,qb->qab", c, c).reshape(-1, 9)):
        np.testing.assert_allclose(part @ order, populations @ order, rtol=0, atol=1e-13)
    second = coefficients(part, velocity_set, np.zeros(5, np.uint32)) @ basis(velocity_set).T
    np.testing.assert_allclose(second, part, rtol=0, atol=1e-13)


def test_links_of_which_nothing_is_known_leave_the_other_populations_alone():
    inside = np.flatnonzero(D3Q19.vectors[:, 0] < 1)
    mask = np.uint32(sum(1 << q for q in range(19) if q not in inside))
    full = np.random.default_rng(4).normal(size=(3, 10)) @ basis(D3Q19).T
    cut = np.where(np.isin(np.arange(19), inside), full, 7.0)
    result = coefficients(cut, D3Q19, np.full(3, mask)) @ basis(D3Q19).T
    np.testing.assert_allclose(result[:, inside], full[:, inside], rtol=0, atol=1e-13)


def test_moments_are_chosen_for_their_collision_only():
    box = shapes.box((16, 16, 16))
    assert step_bytes(box, "moments", "float32") == pytest.approx(80 + 112 / 512)
    assert step_bytes(box, "moments", "float16") == pytest.approx(56 + 112 / 512)
    assert choose_layout(box, "auto", "float32", "cuda", D3Q19, model=MODELS["water"]) == "moments"
    assert choose_layout(box, "auto", "float32", "cpu", D3Q19, model=MODELS["water"]) == "list-aa"
    assert choose_layout(box, "auto", "float32", "cuda", D3Q19, model=FlowModel(WATER)) == "tiles-8"
    assert choose_layout(shapes.box((12, 12, 12)), "auto", "float32", "cuda", D3Q19, model=MODELS["water"]) == "tiles-4"
    with pytest.raises(
        CaseError, match="layout 'tile' is not one of auto, list-ab, list-aa, tiles-4, tiles-8, moments"
    ):
        choose_layout(box, "tile", "float32", "cuda", D3Q19, model=MODELS["water"])
    curved = replace(MODELS["water"], walls=Walls("bouzidi"))
    assert choose_layout(box, "auto", "float32", "cuda", D3Q19, model=curved) == "moments"
    with pytest.raises(CaseError, match=r'layout "moments" stores ten numbers per site, .* collision = "regularised"'):
        Solver(box, FlowModel(WATER), layout="moments")
    with pytest.raises(
        CaseError, match="layout moments: the periodic extent of 12 sites along x is not a multiple of 8"
    ):
        Solver(shapes.box((12, 8, 8)), FlowModel(WATER, Regularised()), layout="moments")


def test_a_recommended_layout_comes_with_its_reason():
    box = shapes.box((16, 16, 16))
    assert recommendation(box, "float32", "cpu") == (
        "list-aa: on a CPU the fastest layout, with a single copy of the populations"
    )
    assert recommendation(box, "float32", "cuda") == (
        "tiles-8: shortest predicted time per site and step, in bytes copied in that time (tiles-8 155, tiles-4 164,"
        ' list-aa 211); layout moments with collision = "regularised" takes 94'
    )
    assert recommendation(box, "float32", "cuda:1", MODELS["water"]) == (
        "moments: shortest predicted time per site and step, in bytes copied in that time"
        " (moments 94, tiles-8 155, tiles-4 164, list-aa 211)"
    )


def test_the_layout_on_a_gpu_is_the_one_that_was_measured_to_be_the_fastest():
    """On an H100 moments are faster than tiles but in a narrow tube stored in halves, where most tiles have walls."""
    water, box, tube = MODELS["water"], shapes.box((32, 32, 32)), shapes.tube(20.3, 64.0, 1.0)
    for sites, storage, fastest in (
        (box, "float32", "moments"),
        (tube, "float32", "moments"),
        (box, "float16", "moments"),
        (tube, "float16", "tiles-8"),
    ):
        assert choose_layout(sites, "auto", storage, "cuda", D3Q19, model=water) == fastest
        assert choose_layout(sites, "auto", storage, "cuda", D3Q19, model=FlowModel(WATER)) == "tiles-8"


@pytest.mark.parametrize(
    ("layout", "storage", "measured"),
    [
        ("moments", "float16", 95.4),
        ("tiles-8", "float16", 91.9),
        ("moments", "float32", 116.8),
        ("tiles-8", "float32", 166.6),
    ],
)
def test_the_predicted_time_is_that_of_a_measured_tube(layout: str, storage: str, measured: float):
    """A tube of 4.17 million sites on an H100: copy bandwidth over the rate; here a slice of it."""
    radius = (4_160_000 / (10 * np.pi)) ** (1 / 3)
    slice_ = shapes.tube(radius, 16.0, 1.0, periodic=True)
    assert step_time(slice_, layout, storage) == pytest.approx(measured, rel=0.03)  # type: ignore[arg-type]


def test_only_sites_near_boundaries_have_slots_of_populations():
    iolets = (PressureIolet(1.001, scheme="plane"), PressureIolet())
    solver = Solver(TUBE, FlowModel(WATER, Regularised(), iolets), layout="moments", threads=1)
    slots = np.stack([solver.populations.outgoing_slots(0, q) for q in range(19)])
    beside = slots[0] != NO_SLOT
    assert 0 < np.count_nonzero(beside) < len(TUBE) / 2
    assert len(np.unique(slots[:, beside])) == 19 * np.count_nonzero(beside)
    assert slots[:, beside].max() < solver.populations.boundary(0).size


def test_nothing_is_rebuilt_where_half_way_walls_and_iolets_suffice():
    solver = Solver(TUBE, iolet_model(WATER, Regularised()), layout="moments", threads=1)
    assert not any(stage.name.startswith("rebuild") for stage in solver.stages)


def test_a_state_with_moments_of_another_shape_is_rejected():
    solver = Solver(BOX, MODELS["water"], layout="moments", threads=1)
    state = site_arrays(solver)
    with pytest.raises(CaseError, match=r"array 'moments' of the sites has shape \(1024, 9\); expected \(1024, 10\)"):
        solver.set_state(site_state(solver, {**state, "moments": state["moments"][:, :9]}))
