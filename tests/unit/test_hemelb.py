# SPDX-License-Identifier: BSD-3-Clause
"""HemeLB's XML becomes the case that TOML would have given, with its conventions taken care of."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import jv

from case_files import read_case, read_case_and_notes, toml_of
from hemelb_files import COSINE, OUTPUT, PUBLIC, WOMERSLEY, write_case, write_public_case, xml
from seiche.case.flow.hemelb import read_hemelb
from seiche.case.loading import load, prepare
from seiche.cli import main
from seiche.domain.sites import LinkKind
from seiche.flow.profiles import womersley
from seiche.io.formats.extraction import read_extraction, read_offsets
from seiche.io.formats.gmy import read_gmy, read_gmy_header

MMHG = 133.322387415

#: The case LARGE_CYLINDER of `hemelb_files` as a user would write it.
LARGE_CYLINDER: dict[str, Any] = {
    "solver": "flow",
    "geometry": {
        "gmy": "large_cylinder.gmy",
        "spacing": "1.4 um",
        "origin": ["-10.5 um", "-10.5 um", "-24.5 um"],
    },
    "fluid": {"density": "1000 kg/m^3", "viscosity": "4 mPa s", "initial_pressure": "0 mmHg"},
    "lattice": {"step": "0.44 us"},
    "time": {"steps": 50000},
    "iolet": [
        {
            "name": "inlet0",
            "kind": "pressure",
            "pressure": "1e-5 mmHg",
            "center": ["0 um", "0 um", "-24 um"],
            "normal": [0.0, 0.0, 1.0],
        },
        {
            "name": "outlet0",
            "kind": "pressure",
            "pressure": "0 mmHg",
            "center": ["0 um", "0 um", "24 um"],
            "normal": [0.0, 0.0, -1.0],
        },
    ],
}


def test_public_case_runs_unmodified_and_equals_the_same_case_in_toml(tmp_path: Path) -> None:
    case = write_public_case(tmp_path, "large_cylinder")
    (tmp_path / "case.toml").write_text(toml_of(LARGE_CYLINDER))
    overrides = ["time.steps=400"]
    flows = []
    for path in (case, tmp_path / "case.toml"):
        with load(path, overrides=overrides, output=tmp_path / path.suffix) as simulation:
            simulation.run()
            flows.append(simulation.flow_rates())
            sites = simulation.setup.vessel.sites
            assert len(sites) == 5576
            counts = np.bincount(sites.link_kind.ravel(), minlength=4)[1:]
            assert counts.tolist() == [14248, 1352, 1352]
    assert flows[0]["inlet0"] > 0
    # The same numbers written with other prefixes: units round in the last digit.
    assert flows[0]["inlet0"] == pytest.approx(flows[1]["inlet0"], rel=1e-12)
    assert flows[0]["outlet0"] == pytest.approx(flows[1]["outlet0"], rel=1e-12)


@pytest.mark.parametrize(("changes", "tau"), [([], 3.194), (["lattice.step=10 ns"], 0.5612)])
def test_pressures_of_an_import_are_imposed_in_the_plane_of_the_opening(
    changes: list[str], tau: float, tmp_path: Path
) -> None:
    """HemeLB's own rule (Nash), which is not stable at the lower tau, is used if the case names it."""
    path = write_public_case(tmp_path, "large_cylinder")
    setup = prepare(path, overrides=changes)
    assert setup.invariants.tau[0] == pytest.approx(tau, rel=1e-3)
    assert [(iolet.name, iolet.scheme) for iolet in setup.case.iolet] == [("inlet0", None), ("outlet0", None)]
    assert [iolet.scheme for iolet in setup.model.iolets] == ["plane", "plane"]
    assert setup.rule_notes == ()
    named = prepare(path, overrides=[*changes, "iolet.outlet0.scheme=nash"])
    assert [iolet.scheme for iolet in named.model.iolets] == ["plane", "nash"]


def test_public_case_of_few_sites_runs_at_a_time_step_that_its_pressures_allow(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = str(write_public_case(tmp_path, "four_cube")), str(tmp_path / "out")
    assert main(["run", path, "--output", out]) == 2
    assert "lattice: Mach number 2.42" in capsys.readouterr().err
    changes = ["--set", "lattice.step=10 ms", "--set", "fluid.reference_pressure=80 mmHg"]
    assert main(["run", path, "--output", out, *changes]) == 0
    error = capsys.readouterr().err
    assert "seiche: note: visualisation: ignored; it affects only pictures\n" in error
    full = read_extraction(tmp_path / "out" / "wholegeometryvelocityandstress.xtr")
    assert full.steps.tolist() == [2, 4, 6, 8, 10]
    assert list(full.values) == ["Whole velocity field", "vonmisesstress"]
    assert full.coords.tolist() == np.argwhere(np.pad(np.ones((4, 4, 4)), 1)).tolist()
    surface = read_extraction(tmp_path / "out" / "surfaceshearstress.xtr")
    assert (surface.header.sites, surface.steps.tolist()) == (48, [5, 10])
    # The line of this case lies 2.5 m outside its cube of 6 cm: HemeLB, too, writes no site of it.
    assert read_extraction(tmp_path / "out" / "centrelinepressure.xtr").header.sites == 0
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["details"]["notes"][0].startswith("visualisation: ignored")


@pytest.mark.parametrize("name", PUBLIC)
def test_convert_of_a_public_case_gives_its_sites(tmp_path: Path, name: str) -> None:
    source, geometry = write_public_case(tmp_path, name), tmp_path / f"{name}.gmy"
    out = tmp_path / "converted"
    out.mkdir()
    for ending in ("gmy", "gmy+", "vtkhdf"):
        assert main(["convert", str(source), str(out / f"{name}.{ending}")]) == 0
    assert read_gmy_header(out / f"{name}.gmy+").plus
    reference = read_gmy(geometry)
    for ours in (read_gmy(out / f"{name}.gmy"), read_gmy(out / f"{name}.gmy+")):
        for array in ("coords", "link_kind", "link_iolet", "link_fraction", "wall_normal"):
            np.testing.assert_array_equal(getattr(ours, array), getattr(reference, array))
    assert (out / f"{name}.gmy").read_bytes() == geometry.read_bytes()


def test_defaults_are_those_of_hemelb(tmp_path: Path) -> None:
    case = read_case(write_case(tmp_path, xml()))
    assert (case.fluid.density, case.fluid.viscosity, case.fluid.reference_pressure) == (1000.0, 0.004, 0.0)
    assert (case.lattice.step, case.time.steps, case.geometry.spacing) == (2e-3, 40, 2.5e-4)
    assert case.geometry.origin == (-0.875e-3, -0.875e-3, 0.125e-3)
    inputs = (
        '<fluid_density value="1060" units="kg/m3"/><fluid_viscosity value="3.5e-3" units="Pa.s"/>'
        '<reference_pressure value="80" units="mmHg"/>'
    )
    case = read_case(write_case(tmp_path, xml(simulation=inputs)))
    assert (case.fluid.density, case.fluid.viscosity) == (1060.0, pytest.approx(3.5e-3))
    assert case.fluid.reference_pressure == pytest.approx(80 * MMHG)


def test_positions_in_lattice_units_count_from_the_first_site(tmp_path: Path) -> None:
    place = '<position value="(3.5,3.5,-0.5)" units="lattice"/>'
    setup = prepare(write_case(tmp_path, xml(version="3", place=place)))
    assert setup.vessel.sites.iolets[0].center == pytest.approx((0.0, 0.0, 0.0), abs=1e-15)
    in_metres = prepare(write_case(tmp_path, xml(version="3")))
    assert setup.vessel.sites.iolets[0].normal == in_metres.vessel.sites.iolets[0].normal


def test_parabola_is_given_by_its_maximum(tmp_path: Path) -> None:
    (inlet, outlet) = read_case(write_case(tmp_path, xml())).iolet
    assert inlet.kind == "velocity"
    assert (inlet.velocity, inlet.radius) == (pytest.approx(2e-3), pytest.approx(1e-3))
    assert outlet.kind == "pressure"
    assert (outlet.amplitude, outlet.period) == (0.0, None), "a constant pressure has no period"


def test_cosine_keeps_its_phase_and_warm_up_starts_from_the_lowest_pressure(tmp_path: Path) -> None:
    warm = '<extra_warmup_steps value="15" units="lattice"/>'
    text = xml(
        inlet=COSINE.format(mean="2e-4", amplitude="5e-4"),
        outlet=COSINE.format(mean="1e-4", amplitude="0.0"),
        simulation=warm,
    )
    setup = prepare(write_case(tmp_path, text))
    assert setup.steps == 55
    inlet, outlet = setup.case.iolet
    assert inlet.kind == outlet.kind == "pressure"
    assert (inlet.phase, inlet.period, inlet.ramp) == (0.5, 0.02, 15)
    assert inlet.ramp_from == outlet.ramp_from == pytest.approx(-3e-4 * MMHG)
    condition = setup.model.iolets[1]
    assert condition.ramp_from == setup.units.density_of_pressure(-3e-4 * MMHG)
    assert condition.ramp == 15.0
    # With a velocity iolet the reference pressure counts too.
    text = xml(outlet=COSINE.format(mean="0.01", amplitude="0.0"), simulation=warm)
    inlet, outlet = read_case(write_case(tmp_path, text)).iolet
    assert inlet.ramp == 15
    assert outlet.kind == "pressure"
    assert outlet.ramp_from == 0.0


def test_womersley_inflow_is_that_of_the_formula_of_hemelb(tmp_path: Path) -> None:
    path = write_case(tmp_path, xml(inlet=WOMERSLEY))
    case, notes = read_case_and_notes(path)
    assert [note for note in notes if "90 degrees" in note] == list(notes)
    inlet = case.iolet[0]
    assert inlet.kind == "velocity"
    assert inlet.harmonics is not None
    (_, amplitude), phase = inlet.harmonics[0].amplitude, inlet.harmonics[0].phase
    alpha = 1e-3 * math.sqrt(2 * math.pi / 0.02 / 4e-6)
    omega, big = 2 * math.pi / 0.02, 1j**1.5 * alpha
    r = np.linspace(0.0, 0.99, 23)
    for t in (0.0, 0.003, 0.011):
        ours = amplitude * np.real(womersley(r, alpha) * np.exp(1j * (omega * t + phase)))
        reference = -np.real(0.1 * MMHG / (1000 * omega) * (1 - jv(0, big * r) / jv(0, big)) * np.exp(1j * omega * t))
        np.testing.assert_allclose(ours, reference, rtol=1e-9, atol=1e-9 * amplitude)
    other = WOMERSLEY.replace("8.862269254527579", "5")
    notes = read_case_and_notes(write_case(tmp_path, xml(inlet=other)))[1]
    assert notes[-1] == (
        "inlets/inlet/condition: womersley_number 5 differs from radius*sqrt(omega/nu) = 8.862; the "
        "shape of the profile uses the latter, its mean velocity the value in the file"
    )


def test_property_outputs_become_extraction_files_of_a_run(tmp_path: Path) -> None:
    path = write_case(tmp_path, xml(version="3", rest=OUTPUT))
    case, notes = read_case_and_notes(path)
    assert notes == ("properties/checkpoint: written in Seiche's own format, as checkpoint.seiche",)
    assert case.output.checkpoint.every == 30
    full, plane, line = case.output.extraction
    assert (full.file, full.every, full.fields, full.names) == (
        "whole.xtr",
        20,
        ("pressure", "velocity"),
        ("pressure", "u"),
    )
    assert (plane.sites, plane.point, plane.normal, plane.radius) == ("plane", (0, 0, 2e-3), (0, 0, 1), None)
    assert (line.sites, line.point, line.end) == ("line", (0, 0, 0), (0, 0, 4e-3))
    assert main(["run", str(path)]) == 0
    out = tmp_path / "out"
    names = {"whole.xtr", "whole.off", "plane.xtr", "plane.off", "line.xtr", "line.off"}
    assert names <= {item.name for item in out.iterdir()}
    read = read_extraction(out / "whole.xtr")
    assert read.steps.tolist() == [20, 40]
    assert read_offsets(out / "whole.off").tolist()[-1] == (out / "whole.xtr").stat().st_size - read.header.record_bytes
    # The axis lies between four columns of sites, each within sqrt(1/2) of it.
    assert read_extraction(out / "line.xtr").header.sites == 4 * 16
    assert (read_extraction(out / "plane.xtr").coords[:, 2] == 7).sum() > 0


def test_keys_of_an_import_can_be_changed(tmp_path: Path) -> None:
    path = write_case(tmp_path, xml())
    case = read_case(path, ["iolet.inlet0.ramp=7", "run.device=cuda"])
    assert (case.iolet[0].ramp, case.run.device) == (7, "cuda")


def test_hemepure_sites_with_normals_into_the_fluid_run_the_same(tmp_path: Path) -> None:
    from dataclasses import replace

    from seiche.io.formats.gmy import write_gmy

    path = write_case(tmp_path, xml())
    sites = read_gmy(tmp_path / "tube.gmy")
    write_gmy(tmp_path / "pure.gmy+", replace(sites, wall_normal=-sites.wall_normal), weights="sites")
    (tmp_path / "pure.xml").write_text(xml(version="3").replace("tube.gmy", "pure.gmy+"))
    stresses = []
    for name in (path, tmp_path / "pure.xml"):
        with load(name, replace=True) as simulation:
            simulation.run()
            stresses.append(simulation.fields("wall_shear_stress")["wall_shear_stress"])
    assert np.abs(stresses[0]).max() > 0
    np.testing.assert_array_equal(*stresses)
    wall = (sites.link_kind == LinkKind.WALL).any(axis=1)
    assert np.all(stresses[0][sites.boundary[wall]].any(axis=1))


#: Conditions that are translated but not imposed yet, with the tables that they become.
IN_TIME = [
    (
        '<condition type="pressure" subtype="file"><path value="p.txt"/></condition>',
        {"kind": "pressure", "table": "p.txt", "repeat": False},
    ),
    (
        '<condition type="velocity" subtype="file"><path value="v.txt"/><radius value="1e-3" units="m"/></condition>',
        {"kind": "velocity", "table": "v.txt", "repeat": True, "weights": "v.txt.weights.txt", "radius": "0.001 m"}
        | {"equal_times": "last"},
    ),
    (
        '<condition type="pressure" subtype="WK"><R value="1e9" units="kg/m^4*s"/><C value="1e-12" units="m^4*s^2/kg"/>'
        '<radius value="1e-3" units="m"/><area value="3e-6" units="m^2"/></condition>',
        {"kind": "windkessel", "resistance": "1000000000.0 Pa s/m^3", "compliance": "1e-12 m^3/Pa"},
    ),
    (
        '<condition subtype="GKmodel" type="windkessel"><R units="kg/m^4*s" value="1e9"/>'
        '<C units="m^4*s^2/kg" value="1e-12"/></condition>',
        {"kind": "windkessel", "resistance": "1000000000.0 Pa s/m^3", "compliance": "1e-12 m^3/Pa"},
    ),
    (
        '<condition type="pressure" subtype="WK3"><Rc value="1e8" units="kg/m^4*s"/><Rp value="1e9" units="kg/m^4*s"/>'
        '<Cp value="1e-12" units="m^4*s^2/kg"/></condition>',
        {
            "kind": "windkessel",
            "resistance": "1000000000.0 Pa s/m^3",
            "proximal_resistance": "100000000.0 Pa s/m^3",
            "compliance": "1e-12 m^3/Pa",
        },
    ),
]


@pytest.mark.parametrize(("condition", "expected"), IN_TIME)
def test_tables_and_windkessel_outlets_are_translated(tmp_path: Path, condition: str, expected: dict[str, Any]) -> None:
    (tmp_path / "v.txt.weights.txt").touch()
    tables, notes = read_hemelb(write_case(tmp_path, xml(inlet=condition)))
    table = tables["iolet"][0]
    assert {key: table[key] for key in table if key not in ("name", "center", "normal")} == expected
    if expected.get("table") == "p.txt":
        assert notes[-1] == (
            'inlets/inlet/condition: HemeLB scales the times of "p.txt" to the whole run; Seiche takes them in '
            "seconds, and the last value applies after the last time"
        )
    if expected.get("table") == "v.txt":
        (tmp_path / "v.txt.weights.txt").unlink()
        tables, notes = read_hemelb(tmp_path / "config.xml")
        assert "weights" not in tables["iolet"][0]
        assert (tables["iolet"][0]["profile"], tables["iolet"][0]["table_scale"]) == ("parabolic", 0.5)
        assert notes == (
            'inlets/inlet/condition: "v.txt.weights.txt" is missing, so "v.txt" is taken as the maximum of a parabola',
        )
    if expected["kind"] == "windkessel":
        # The units are known to pint: 1 Pa s/m^3 is 1 kg/(m^4 s), 1 m^3/Pa is 1 m^4 s^2/kg.
        import pint

        registry = pint.UnitRegistry()
        assert registry.Quantity(expected["resistance"]).to("kg/m^4/s").magnitude == pytest.approx(1e9)
        assert registry.Quantity(expected["compliance"]).to("m^4*s^2/kg").magnitude == pytest.approx(1e-12)


def test_a_case_with_tables_weights_and_a_windkessel_outlet_runs(tmp_path: Path) -> None:
    velocity, windkessel = IN_TIME[1][0], IN_TIME[2][0].replace("1e9", "1e7").replace("1e-12", "1e-9")
    path = write_case(tmp_path, xml(inlet=velocity, outlet=windkessel))
    sites = read_gmy(tmp_path / "tube.gmy")
    inlet = sites.coords[sites.boundary[(sites.link_kind == LinkKind.INLET).any(axis=1)]]
    (tmp_path / "v.txt").write_text("0 1e-3\n1 1e-3\n")
    (tmp_path / "v.txt.weights.txt").write_text("".join(f"{x} {y} {z} 1.0\n" for x, y, z in inlet.tolist()))
    with load(path, overrides=["time.steps=400"]) as simulation:
        simulation.run()
        flows = simulation.flow_rates()
    # Plug flow of 1 mm/s through the area of the inlet's sites; links along the rim that meet the wall carry nothing.
    assert flows["inlet0"] == pytest.approx(1e-3 * len(inlet) * 2.5e-4**2, rel=0.06)
    assert flows["outlet0"] == pytest.approx(-flows["inlet0"], rel=0.05)
    (tmp_path / "p.txt").write_text("0 0\n1 1e-4\n")
    path = write_case(tmp_path, xml(inlet=IN_TIME[0][0]))
    with load(path, replace=True) as simulation:
        simulation.run()
        assert simulation.flow_rates()["inlet0"] > 0


def test_a_velocity_table_without_weights_is_the_parabola_of_its_maximum(tmp_path: Path) -> None:
    """PARABOLIC has a maximum of 4 mm/s."""
    (tmp_path / "v.txt").write_text("0 4e-3\n1 4e-3\n")
    flows, peaks = [], []
    for text in (xml(), xml(inlet=IN_TIME[1][0])):
        with load(write_case(tmp_path, text), replace=True) as simulation:
            peaks.append(simulation.setup.invariants.velocity_scale)
            simulation.run()
            flows.append(simulation.flow_rates()["inlet0"])
    assert peaks[1] == pytest.approx(peaks[0], rel=1e-12)
    assert flows[1] == pytest.approx(flows[0], rel=1e-5)
    assert flows[0] > 0
