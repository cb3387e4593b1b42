# SPDX-License-Identifier: BSD-3-Clause
"""Every way to get a case wrong is rejected with one line that names file, key, value and what was expected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from case_files import (
    SOURCE,
    box_tables,
    changed,
    check_case,
    message_of,
    setup_of,
    tube_tables,
    vessel_of,
)
from seiche.case.flow.geometry import build
from seiche.case.flow.limits import check_limits
from seiche.errors import CaseError

WOMERSLEY = {"name": "inlet", "kind": "velocity", "velocity": "2 mm/s", "profile": "womersley"}
CAROTID, SAMPLES = {"preset": "internal-carotid"}, {"samples": [1, 2, 3], "harmonics": 4}
ONE_OF = "give exactly one of gmy, stl"
OUTLET_AT = {"name": "outlet", "kind": "pressure", "pressure": "0 Pa"}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("geometry.spacin", "1 mm", 'geometry.spacin: unknown key; did you mean "spacing"?'),
        ("iolet.0.velocty", "1 m/s", 'iolet["inlet"].velocty: unknown key; did you mean "velocity"?'),
        (
            "qqq",
            1,
            "qqq: unknown key; choose from solver, title, geometry, fluid, lattice, time, iolet, walls, body_force,"
            " run, output",
        ),
        ("geometry.spacing", 3, 'geometry.spacing: 3 has no unit; expected a length such as "0.1 mm"'),
        ("geometry.spacing", "1 s", 'geometry.spacing: "1 s" is a time; expected a length such as "0.1 mm"'),
        ("geometry.spacing", "-1 mm", 'geometry.spacing: "-1 mm" is out of range; expected > 0'),
        ("geometry.spacing", None, "geometry.spacing: is missing; expected distance between adjacent lattice sites"),
        ("geometry.shape", None, "geometry: give exactly one of gmy, stl, image, solid, shape; none is given"),
        ("geometry.gmy", "a.gmy", f"geometry: {ONE_OF}, image, solid, shape; gmy and shape are given"),
        ("geometry.unit", "1 mm", "geometry: the key unit is only allowed with stl"),
        ("geometry.origin", ["0 m"] * 3, "geometry: the key origin is not allowed with shape, whose position is fixed"),
        (
            "geometry.shape.kind",
            "tub",
            'geometry.shape.kind: "tub" is not known; expected "tube", "duct", "channel", '
            '"box", "bifurcation", "tree"; did you mean "tube"?',
        ),
        ("geometry.shape.kind", None, "geometry.shape: kind is missing; expected a table with the key kind"),
        (
            "geometry.shape.axis",
            [1, 2],
            "geometry.shape.axis: [1, 2] is not a vector; expected a list of three such as [0.0, ...]",
        ),
        (
            "solver",
            "flo",
            'solver: "flo" is not known; expected "flow", "blood", "ultrasound" or "waves"; did you mean "flow"?',
        ),
        ("fluid.viscosity", None, "fluid: give exactly one of viscosity, rheology; none is given"),
        (
            "fluid.viscosity",
            "4e-6 m^2/s",
            'fluid.viscosity: "4e-6 m^2/s" has the wrong dimension; expected a dynamic viscosity such as "4 mPa s"',
        ),
        ("lattice.step", "1 ms", "lattice: give exactly one of step, tau, mach; step and tau are given"),
        (
            "lattice.collision",
            "mr",
            'lattice.collision: "mr" is not known; expected "trt", "bgk", "mrt" or "regularised"; did you mean "mrt"?',
        ),
        (
            "lattice.velocity_set",
            "D3Q21",
            'lattice.velocity_set: "D3Q21" is not known; expected "D3Q15", "D3Q19" or "D3Q27"; did you mean "D3Q27"?',
        ),
        (
            "lattice",
            {"tau": 0.8, "collision": "bgk", "magic": 0.2},
            'lattice: magic is only allowed with collision = "trt" or "mrt"',
        ),
        (
            "lattice",
            {"tau": 0.8, "collision": "regularised", "magic": 0.2},
            'lattice: magic is only allowed with collision = "trt" or "mrt"',
        ),
        ("lattice.layout", "moments", 'lattice: layout = "moments" is only allowed with collision = "regularised"'),
        ("lattice.bulk_rate", 1.1, 'lattice: bulk_rate is only allowed with collision = "mrt"'),
        ("lattice.even_rate", 1.1, 'lattice: even_rate is only allowed with collision = "mrt"'),
        (
            "lattice",
            {"tau": 0.8, "collision": "mrt", "bulk_rate": 2.0},
            "lattice.bulk_rate: 2.0 is out of range; expected < 2",
        ),
        ("lattice.tau", "x", 'lattice.tau: "x" is not a number'),
        ("time", {}, "time: give exactly one of duration, steps, cycles; none is given"),
        ("time", {"duration": "-1 s"}, 'time.duration: "-1 s" is out of range; expected > 0'),
        ("time", {"steps": 0}, "time.steps: 0 is out of range; expected > 0"),
        ("time", {"steps": 2.5}, "time.steps: 2.5 is not a whole number"),
        ("run.device", "gpu", 'run.device: "gpu" is not known; expected "cpu", "cuda" or "cuda:1"'),
        ("run.threads", 0, "run.threads: 0 is out of range; expected >= 1"),
        (
            "run.precision",
            {"compute": "float32", "storage": "float64"},
            'run.precision: storage = "float64" is wider than compute = "float32"; use at most "float32"',
        ),
        (
            "iolet.0.flow_rate",
            "1 mL/s",
            'iolet["inlet"]: give exactly one of velocity, flow_rate, table; velocity and flow_rate are given',
        ),
        (
            "iolet.0.ramp",
            "-1 s",
            'iolet["inlet"].ramp: "-1 s" is negative; expected a time such as "0.5 ms", or a number of steps',
        ),
        (
            "iolet.0.normal",
            [0, 0, 0],
            'iolet["inlet"]: normal: its length is zero; expected a direction that points into the fluid',
        ),
        ("iolet.1.amplitude", "1 Pa", 'iolet["outlet"]: period is missing; amplitude needs it'),
        ("iolet.1.name", "inlet", 'iolet: two iolets have the name "inlet"'),
        ("iolet.0", WOMERSLEY, 'iolet["inlet"]: give exactly one of harmonics, waveform; none is given'),
        (
            "iolet.0",
            WOMERSLEY | {"waveform": CAROTID},
            'iolet["inlet"]: profile = "womersley" needs a period, such as "72 bpm"',
        ),
        (
            "iolet.0",
            WOMERSLEY | {"period": "1 s", "waveform": SAMPLES},
            'iolet["inlet"].waveform: 3 samples give at most 1 harmonics, not 4',
        ),
        (
            "iolet.0",
            WOMERSLEY | {"period": "1 s", "harmonics": [{"amplitude": "1 mL/s"}]},
            'iolet["inlet"]: harmonics: each amplitude must be a velocity, like the mean',
        ),
        ("iolet.0.waveform", CAROTID, 'iolet["inlet"]: waveform is only allowed with profile = "womersley"'),
        (
            "output.fields",
            [{"file": "a", "every": 1}, {"file": "a", "every": 2}],
            'output: two outputs have the same file name "a"',
        ),
        (
            "output.fields",
            [{"file": "a", "every": 1, "fields": ["presure"]}],
            'output.fields[0].fields[0]: "presure" is not known; expected "pressure", "density", "velocity", '
            '"shear_rate", "stress", "wall_shear_stress", "traction" or "viscosity"; did you mean "pressure"?',
        ),
        ("output.folder", "a\u0000b", 'output.folder: "a?b" is not a usable file name'),
    ],
)
def test_a_wrong_key_or_value_is_named(path: str, value: Any, message: str) -> None:
    assert message_of(changed(tube_tables(), path, value)).removesuffix(" (and 1 more)") == message


@pytest.mark.parametrize(
    ("rheology", "message"),
    [
        (
            {"kind": "carreau-yasuda", "preset": "humn"},
            'fluid.rheology.preset: "humn" is not known; expected "human" or "mouse"; did you mean "human"?',
        ),
        (
            {"kind": "carreau-yasuda", "eta_0": "1 Pa s"},
            "fluid.rheology: eta_inf is missing; give eta_0, eta_inf, lambda, a and n, or a preset (human, mouse)",
        ),
        (
            {"kind": "carreau-yasuda", "preset": "human", "a": 2.0},
            'fluid.rheology: preset = "human" already sets a; give a preset or all five constants',
        ),
        (
            {"kind": "carreau-yasuda", "eta_0": "1 Pa s", "eta_inf": "2 Pa s", "lambda": "1 s", "a": 2.0, "n": 0.5},
            "fluid.rheology: eta_inf is larger than eta_0; a shear-thinning fluid has eta_inf <= eta_0",
        ),
        (
            {"kind": "casson", "yield_stress": "0.04 Pa", "eta_inf": "3 mPa s"},
            "fluid.rheology: eta_0 is missing; give yield_stress, eta_inf and eta_0, or a preset (human)",
        ),
        (
            {"kind": "casson", "preset": "human", "eta_0": "1 Pa s"},
            'fluid.rheology: preset = "human" already sets eta_0; give a preset or all three constants',
        ),
        (
            {"kind": "casson", "yield_stress": "0.04 Pa", "eta_inf": "2 Pa s", "eta_0": "1 Pa s"},
            "fluid.rheology: eta_inf is larger than eta_0; a shear-thinning fluid has eta_inf <= eta_0",
        ),
        (
            {"kind": "power-law", "n": 0.5},
            "fluid.rheology: consistency is missing; give consistency, n, shear_rate_min and shear_rate_max, or a "
            "preset (human)",
        ),
        (
            {"kind": "power-law", "preset": "human", "n": 0.5},
            'fluid.rheology: preset = "human" already sets n; give a preset or all four constants',
        ),
        (
            {
                "kind": "power-law",
                "consistency": "4 mPa s",
                "n": 0.5,
                "shear_rate_min": "2 1/s",
                "shear_rate_max": "1 1/s",
            },
            "fluid.rheology: shear_rate_min is larger than shear_rate_max",
        ),
    ],
)
def test_a_wrong_rheology_is_named(rheology: dict[str, Any], message: str) -> None:
    tables = changed(changed(tube_tables(), "fluid.viscosity", None), "fluid.rheology", rheology)
    assert message_of(tables) == message


def test_tau_outside_the_stable_window_is_rejected() -> None:
    stable = "out of range"
    assert message_of(changed(tube_tables(), "lattice.tau", 0.5)) == (
        "lattice.tau: 0.5 is out of range; the viscosity (tau - 1/2)/3 is positive only for tau > 0.5"
    )
    assert message_of(changed(tube_tables(), "lattice.tau", 1e308)).startswith("lattice.tau: 1e+308 is out of range")
    assert message_of(changed(tube_tables(), "lattice.tau", 0.5005)) == (
        f"lattice: tau = 0.5005 is {stable} (> 0.501); use a larger time step or a smaller spacing "
        "(tau = 1/2 + 3 nu dt/dx^2)"
    )
    assert message_of(changed(tube_tables(), "lattice", {"tau": 2.5, "collision": "bgk"})) == (
        f'lattice: tau = 2.5 is {stable} (<= 2 for bgk); use a smaller time step or collision = "trt" '
        "(tau = 1/2 + 3 nu dt/dx^2)"
    )
    assert message_of(changed(tube_tables(), "lattice", {"tau": 5.5, "collision": "regularised"})) == (
        f'lattice: tau = 5.5 is {stable} (<= 5 for regularised); use a smaller time step or collision = "trt" '
        "(tau = 1/2 + 3 nu dt/dx^2)"
    )
    thinning = {"density": "1000 kg/m^3", "rheology": {"kind": "carreau-yasuda", "preset": "human"}}
    assert message_of(changed(changed(tube_tables(), "fluid", thinning), "lattice.tau", 1.5)) == (
        f"lattice: tau of the fluid at rest = 46.21 is {stable} (<= 20 for trt); use a smaller time step "
        "(tau = 1/2 + 3 nu dt/dx^2)"
    )


def test_mach_above_its_limit_is_rejected() -> None:
    assert message_of(changed(tube_tables(), "iolet.0.velocity", "20 mm/s")) == (
        "lattice: Mach number 0.433 of the peak velocity 0.04 m/s is out of range (<= 0.3); "
        "use a time step below 0.00108 s"
    )


def test_mach_without_a_velocity_is_rejected() -> None:
    assert message_of(changed(box_tables(), "lattice", {"mach": 0.1})) == (
        "lattice.velocity_scale: is missing; a time step from mach needs the largest expected velocity, "
        "which does not follow from the iolets or forces of the case"
    )


def test_pressures_far_from_the_reference_are_rejected() -> None:
    assert message_of(changed(tube_tables(), "iolet.1.pressure", "80 mmHg")) == (
        "iolet: pressures give lattice densities 1 to 1.25e+03, out of range (0.5 to 2); "
        "set fluid.reference_pressure near the pressures, or use a smaller time step"
    )


def test_more_ranks_than_sites_are_rejected() -> None:
    assert message_of(box_tables(), ranks=65) == (
        "run: there are more ranks (65) than fluid sites (64); use at most one rank per site"
    )
    check_limits(setup_of(box_tables()), 64)


def test_a_ramp_longer_than_the_run_is_rejected() -> None:
    assert message_of(changed(tube_tables(), "iolet.0.ramp", 101)) == (
        'iolet["inlet"].ramp: 101 steps are longer than the run of 100 steps; extend the run, or set '
        "iolet.inlet.ramp = 50"
    )
    check_limits(setup_of(changed(tube_tables(), "iolet.0.ramp", 100)))


def test_a_layout_that_cannot_hold_the_case_is_rejected() -> None:
    tables = changed(changed(box_tables(), "lattice.collision", "regularised"), "lattice.layout", "moments")
    assert message_of(tables) == (
        "lattice.layout: layout moments: the periodic extent of 4 sites along x is not a multiple of 8; choose another"
        " layout or size"
    )


def test_an_output_more_often_than_every_step_is_rejected() -> None:
    tables = changed(tube_tables(), "output.fields", [{"file": "a.vtkhdf", "every": "1 us"}])
    assert message_of(tables) == 'output.fields["a.vtkhdf"].every: is shorter than half a time step of 0.00156 s'


def test_cycles_without_a_period_and_runs_below_one_step_are_rejected() -> None:
    assert message_of(changed(tube_tables(), "time", {"cycles": 2.0})) == (
        "time.cycles: needs iolets with one common period; give duration or steps"
    )
    assert message_of(changed(tube_tables(), "time", {"duration": "1 us"})) == (
        "time: 1e-06 s is 0.00064 steps of 0.00156 s; expected between one step and 2^53"
    )


def test_iolets_must_be_those_of_the_geometry() -> None:
    assert message_of(changed(tube_tables(), "iolet.1.name", "outlt")) == (
        'iolet["outlt"].name: the geometry has no opening "outlt"; its openings are inlet, outlet; '
        'did you mean "outlet"?'
    )
    assert message_of(changed(tube_tables(), "iolet.1", None)) == (
        'iolet: is missing for the opening "outlet"; add [[iolet]] with name = "outlet"'
    )
    assert message_of(changed(box_tables(), "iolet", [OUTLET_AT])) == (
        'iolet["outlet"].name: the geometry has no opening "outlet"; it has no openings'
    )


def test_a_pulsation_beyond_all_reason_is_rejected() -> None:
    inlet = WOMERSLEY | {"period": "1 us", "waveform": CAROTID}
    assert message_of(changed(tube_tables(), "iolet.0", inlet)) == (
        "iolet: Womersley number 1.25e+03 of the period 1e-06 s is out of range (0.01 to 1000); "
        'check the period, or use profile = "parabolic"'
    )


def test_a_spacing_wider_than_the_shape_is_rejected() -> None:
    assert message_of(changed(tube_tables(), "geometry.spacing", "1 m")) == (
        "geometry.spacing: 1 m is wider than the shape, 0.002 m"
    )


def test_geometries_that_cannot_be_made_are_rejected() -> None:
    assert message_of(changed(tube_tables(), "geometry.spacing", "1 nm")) == (
        "geometry.spacing: gives about 1.6e+19 lattice nodes, more than 4e+09; choose a larger spacing"
    )
    channel = {"kind": "channel", "height": "1.1 mm", "length": "1 mm", "width": "1 mm"}
    assert message_of(changed(tube_tables(), "geometry.shape", channel)) == (
        "geometry.shape: height = 0.0011 m must be a whole number of spacings of 0.00025 m"
    )
    assert message_of(changed(changed(tube_tables(), "geometry.shape", None), "geometry.gmy", "absent.gmy")) == (
        "geometry: absent.gmy: No such file or directory"
    )


def test_the_tables_of_the_tests_are_valid() -> None:
    for tables in (tube_tables(), box_tables()):
        check_limits(setup_of(tables))
        assert len(vessel_of(tables).sites) > 0
    build(check_case(tube_tables(), SOURCE), Path(), SOURCE)


def test_a_number_without_decimal_form_is_rejected() -> None:
    tables = changed(tube_tables(), "lattice.tau", 0.8)
    tables["lattice"]["tau"] = 16**5000
    assert message_of(tables) == "lattice.tau: a value too long to print is not a number"


def test_wrong_numbers_of_entries_and_characters_are_counted() -> None:
    source = {"kind": "initial-ball", "center": ["0 mm"], "radius": "1 mm", "pressure": "1 Pa"}
    tables = {
        "solver": "ultrasound",
        "medium": {"material": "water"},
        "source": [source],
        "record": {"maps": ["p_final"]},
    }
    box = {"lower": ["0 m", "0 m"], "upper": ["1 m", "1 m"], "size": "1 m"}
    rock = {"name": "rock", "density": "1 kg/m^3", "cp": "1 m/s"}
    station = {"name": "much too long", "position": ["1 m", "1 m"]}
    waves = {"solver": "waves", "mesh": box, "material": [rock], "time": {"steps": 1}, "receiver": [station]}
    for case, message in (
        ({**tables, "grid": {"shape": [16] * 4, "spacing": "1 mm"}}, "grid.shape: has 4 entries; expected at most 3"),
        ({**tables, "grid": {"shape": [], "spacing": "1 mm"}}, "grid.shape: has 0 entries; expected at least 1"),
        (waves, 'receiver["much too long"].name: has 13 characters; expected at most 8'),
    ):
        with pytest.raises(CaseError) as caught:
            check_case(case, "c.toml")
        assert str(caught.value) == f"c.toml: {message}"
