# SPDX-License-Identifier: BSD-3-Clause
"""Many sources in one medium, several at once: the same bits as one after another, for every kind of problem."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from seiche.backend import open_backend
from seiche.errors import CaseError
from seiche.solver.together import advance_together
from seiche.ultrasound import Emitter, Grid, Line, Medium, Sensor, Solver, Source, simulate, simulate_lines
from seiche.ultrasound.problem import MaskSource, Pml, Problem

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

SHAPE = (40, 36)
RNG = np.random.default_rng(5)
VARYING = 1500 * (1 + 0.02 * RNG.standard_normal(SHAPE))
MEDIA: dict[str, dict[str, Any]] = {
    "uniform": {"sound_speed": 1500.0},
    "power law": {"sound_speed": VARYING, "density": VARYING, "alpha_coeff": 0.7, "alpha_power": 1.5, "BonA": 6.0},
    "relaxation": {
        "sound_speed": np.where(VARYING > 1500, 1480.0, 1540.0),
        **{"alpha_coeff": 0.7, "alpha_power": 1.1, "alpha_mode": "relaxation", "relaxation_band": (2e5, 2e6)},
    },
    "elastic": {"sound_speed": VARYING + 1000, "shear_speed": np.where(VARYING > 1500, 900.0, 0.0)},
}


def lines_of(shape: tuple[int, ...], count: int) -> list[Source]:
    """Return sources of several kinds and durations."""
    elements = np.zeros(shape, bool)
    elements[(6, slice(8, -8), *((shape[2] // 2,) if len(shape) == 3 else ()))] = True
    time = np.arange(24)
    tone = 1e5 * np.sin(0.4 * time) * np.hanning(24)
    delays = np.arange(np.count_nonzero(elements))
    sources = [Source(p_mask=elements, p=tone, p_delays=(k * delays) // 4) for k in range(count)]
    sources[1] = Source(
        p0=1e5 * np.exp(-0.1 * (np.arange(shape[0]) - 15.0) ** 2).reshape(-1, *[1] * (len(shape) - 1)) * np.ones(shape)
    )
    sources[2] = Source(u_mask=elements, ux=1e-2 * tone[:12], p_mask=elements, p=tone, p_mode="dirichlet")
    return sources


def same(found: list[dict[str, np.ndarray]], wanted: list[dict[str, np.ndarray]]) -> bool:
    return all(
        a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in b)
        for a, b in zip(found, wanted, strict=True)
    )


@pytest.mark.parametrize("at_once", [1, 3])
@pytest.mark.parametrize("kind", MEDIA)
def test_lines_at_once_have_the_bits_of_single_simulations(kind, at_once, device):
    grid, medium = Grid(SHAPE, 1e-4, dt=1e-8, steps=90), Medium(**MEDIA[kind])
    sensor = Sensor(mask=VARYING > 1560, record=("p", "u_non_staggered", "p_max_all", "p_final"), frequencies=(1e6,))
    sources = lines_of(SHAPE, 5)
    options: dict[str, Any] = {"pml_size": 6, "device": device}
    found = simulate_lines(grid, medium, sources, sensor, at_once=at_once, threads=3, **options)
    assert same(found, [simulate(grid, medium, source, sensor, **options) for source in sources])
    assert len({result["p"].tobytes() for result in found}) == 5


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((40, 36), {"scheme": "separable"}),
        ((40, 36), {"precision": "float64", "pml_inside": False}),
        ((24, 26, 22), {"scheme": "exact"}),
        ((24, 26, 22), {"scheme": "local4"}),
    ],
)
def test_lines_have_these_bits_in_every_scheme_and_number_of_dimensions(shape, options, device):
    speed = 1500 * (1 + 0.02 * RNG.standard_normal(shape))
    grid, medium, sensor = Grid(shape, 1e-4, dt=1e-8, steps=40), Medium(speed), Sensor(mask=speed > 1560)
    sources = lines_of(shape, 4)
    options = {"pml_size": 5, "device": device, **options}
    if options.get("scheme", "exact") != "exact":
        sources[2] = sources[3]
    found = simulate_lines(grid, medium, sources, sensor, **options)
    assert same(found, [simulate(grid, medium, source, sensor, **options) for source in sources])


def test_lines_about_an_axis_of_symmetry_have_these_bits(device):
    grid = Grid((40, 20), 1e-4, dt=1e-8, steps=60, symmetry="axisymmetric")
    sources = [Source(emitters=(Emitter(Line((x, 0.0), (x, 1e-3)), 1e5 * np.hanning(20)),)) for x in (-1e-3, 0.0, 1e-3)]
    sensor = Sensor(mask=np.ones(grid.shape, bool))
    options: dict[str, Any] = {"pml_size": 6, "device": device}
    found = simulate_lines(grid, Medium(1500.0), sources, sensor, **options)
    assert same(found, [simulate(grid, Medium(1500.0), source, sensor, **options) for source in sources])


def test_the_arrays_of_the_medium_exist_once(device):
    fields: dict[str, Any] = {"sound_speed": VARYING, "density": VARYING, "BonA": VARYING}
    signal = MaskSource("p", np.array([300]), np.ones((4, 1)), "additive", 4)
    problem = Problem(
        ("x", "y"), SHAPE, (1e-4, 1e-4), 1e-8, 9, 1600.0, pml=(Pml(6, 2.0),) * 2, sources=(signal,), **fields
    )
    first = Solver(problem, device=device)
    second = Solver(problem, device=device, shared=first)
    assert second._state.tables is first._state.tables
    assert {"kappa", "c0", "rho0", "BonA"} <= set(first._state.tables)
    assert second.backend is first.backend
    second.advance(9)
    assert not first.field("p").any()
    first.advance(9)
    np.testing.assert_array_equal(first.field("p"), second.field("p"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sources": []}, "sources: there are none; expected one for each line"),
        ({"at_once": 0}, "at_once: 0 is not a whole number >= 1"),
        ({"at_once": 1.5}, "at_once: 1.5"),
        ({"sources": [Source()]}, "source: has neither p0"),
        ({"sources": [lines_of(SHAPE, 3)[0], Source()]}, "source: has neither p0"),
        ({"sources": ["p"]}, "source: a str is not a seiche.ultrasound.Source"),
        ({"sensor": Sensor(mask=np.zeros(SHAPE, bool))}, "sensor"),
    ],
)
def test_invalid_input_gives_a_one_line_error(change, words):
    grid = Grid(SHAPE, 1e-4, dt=1e-8, steps=10)
    arguments = {"sources": lines_of(SHAPE, 3), "sensor": Sensor(mask=VARYING > 1560), **change}
    with pytest.raises(CaseError) as caught:
        simulate_lines(grid, Medium(1500.0), arguments.pop("sources"), arguments.pop("sensor"), pml_size=5, **arguments)
    assert str(caught.value).startswith(words)


def test_solvers_of_two_devices_do_not_advance_together():
    signal = MaskSource("p", np.array([300]), np.ones((4, 1)), "additive", 4)
    problem = Problem(
        ("x", "y"), SHAPE, (1e-4, 1e-4), 1e-8, 9, 1600.0, 1500.0, 1000.0, (Pml(6, 2.0),) * 2, sources=(signal,)
    )
    solvers = [Solver(problem), Solver(problem)]
    assert open_backend("cpu") is not solvers[0].backend
    with pytest.raises(CaseError, match="solvers: advance together only with one device"):
        advance_together(solvers, 9)
    pair = [solvers[0], Solver(problem, shared=solvers[0])]
    advance_together(pair, 9)
    solvers[1].advance(9)
    for solver in pair:
        np.testing.assert_array_equal(solver.field("p"), solvers[1].field("p"))
