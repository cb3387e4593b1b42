# SPDX-License-Identifier: BSD-3-Clause
"""Conventions of HemePure's cases, and elements of the XML that apply only to the other program."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from case_files import read_case_and_notes
from hemelb_files import COSINE, OUTPUT, WOMERSLEY, write_case, xml
from seiche.case.loading import prepare


@pytest.mark.parametrize("kind", ["pressure", "yangpressure", "windkessel"])
@pytest.mark.parametrize("name", ["WK", "WK2", "GKmodel", "WK3"])
def test_all_names_of_hemepure_for_a_windkessel_outlet_are_known(tmp_path: Path, kind: str, name: str) -> None:
    resistance = 'value="1e9" units="kg/m^4*s"/>'
    circuit = f"<Rc {resistance}<Rp {resistance}<Cp" if name == "WK3" else f"<R {resistance}<C"
    circuit += ' value="1e-12" units="m^4*s^2/kg"/>'
    text = xml(outlet=f'<condition type="{kind}" subtype="{name}">{circuit}</condition>')
    case, notes = read_case_and_notes(write_case(tmp_path, text))
    outlet = case.iolet[1]
    assert outlet.kind == "windkessel"
    assert (outlet.resistance, outlet.compliance) == (pytest.approx(1e9), pytest.approx(1e-12))
    assert outlet.proximal_resistance == pytest.approx(1e9 if name == "WK3" else 0.0)
    rule = "outlets/outlet/condition: imposed by the rule of `scheme`, not by Yang's rule"
    assert notes == ((rule,) if kind == "yangpressure" else ())


def test_the_pressure_rule_of_yang_is_replaced_with_a_note(tmp_path: Path) -> None:
    inlet = COSINE.format(mean="0.02", amplitude="0.0")
    for old, new in (('type="pressure"', 'type="yangpressure"'), ('subtype="cosine"', 'subtype="yangpressure"')):
        case, notes = read_case_and_notes(write_case(tmp_path, xml(inlet=inlet.replace(old, new))))
        assert case.iolet[0].kind == "pressure"
        assert notes[-1] == "inlets/inlet/condition: imposed by the rule of `scheme`, not by Yang's rule"


def test_habits_of_the_cases_of_hemepure_are_understood(tmp_path: Path) -> None:
    """Its own cases end comments twice, count steps from 1, give surface points a normal, and extract populations."""
    rest = OUTPUT.replace(
        "<checkpoint",
        """
    <propertyoutput file="state.xtr" period="25"><geometry type="whole"/><field type="distributions"/></propertyoutput>
    <propertyoutput file="spot.dat" period="10"><geometry type="surfacepoint">
      <normal value="(0,1,0)" units="dimensionless"/><point value="(0.0,1e-3,2e-3)" units="m"/>
    </geometry><field type="velocity"/></propertyoutput>
    --> <checkpoint""",
    )
    text = xml(version="3", rest=rest).replace("</pressure>", '</pressure><initial_time units="lattice" value="1"/>')
    case, notes = read_case_and_notes(write_case(tmp_path, text))
    assert notes[0] == f'line {text[: text.index("-->")].count(chr(10)) + 1}: text "-->" between elements is ignored'
    assert notes[1:] == (
        "properties/checkpoint: written in Seiche's own format, as checkpoint.seiche",
        "properties/propertyoutput[4]: written in Seiche's own format, as checkpoint.seiche",
    )
    assert case.output.checkpoint.every == 25
    assert [table.file for table in case.output.extraction] == ["whole.xtr", "plane.xtr", "line.xtr", "spot.xtr"]
    assert case.output.extraction[3].point == (0.0, 1e-3, 2e-3)


def test_what_only_concerns_the_other_program_is_left_out_with_a_note(tmp_path: Path) -> None:
    rest = """<monitoring><incompressibility/><steady_flow_convergence tolerance="1e-9"/></monitoring>
    <visualisation><centre value="(0,0,0)" units="m"/></visualisation>"""
    rest += OUTPUT.replace('period="20"', 'period="20" start="5" stop="9"')
    more = '<relaxation_parameter value="0.25" units="lattice"/><boundary_velocity_ratio value="1" units="lattice"/>'
    notes = read_case_and_notes(write_case(tmp_path, xml(rest=rest, simulation=more)))[1]
    assert set(notes) >= {
        "monitoring/incompressibility: ignored; Mach number, mass and NaN are always checked",
        "monitoring/steady_flow_convergence: ignored; the run computes all steps",
        "visualisation: ignored; it affects only pictures",
        "simulation/relaxation_parameter: ignored, the two relaxation times have the magic parameter 3/16 "
        "(lattice.magic)",
        "simulation/boundary_velocity_ratio: ignored, walls are rigid",
        "properties/propertyoutput: start is ignored; records cover the whole run",
        "properties/propertyoutput: stop is ignored; records cover the whole run",
    }


def test_a_case_that_ends_at_convergence_stops_at_a_steady_flow(tmp_path: Path) -> None:
    rest = """<monitoring><steady_flow_convergence tolerance="1e-4" terminate="true">
      <criterion type="velocity" value="0.01" units="m/s"/></steady_flow_convergence></monitoring>"""
    case, notes = read_case_and_notes(write_case(tmp_path, xml(rest=rest)))
    assert (case.time.steady, case.time.steady_interval, case.time.steps) == (1e-4, 1000, 40)
    assert notes == (
        "monitoring/steady_flow_convergence: the run stops when the relative change of the velocity in 1000 steps "
        "falls below 0.0001 (time.steady, time.steady_interval); HemeLB uses the change in one step",
    )
    case, notes = read_case_and_notes(write_case(tmp_path, xml(rest=rest.replace('"true"', '"false"'))))
    assert case.time.steady is None
    assert notes == ("monitoring/steady_flow_convergence: ignored; the run computes all steps",)


def test_elements_without_a_counterpart_are_left_out_with_a_note(tmp_path: Path) -> None:
    extension = '<flowextension><length value="1e-3" units="m"/></flowextension>'
    layer = '<sponge_layer><viscosity_ratio value="1000" units="dimensionless"/></sponge_layer>'
    text = xml(version="3", simulation=layer).replace("<inlet>", f"<inlet>{extension}{layer}")
    text = text.replace('path="./tube.gmy"/>', 'path="./tube.gmy"/><mapping path="pairs.txt" value="1"/>')
    without, _ = read_case_and_notes(write_case(tmp_path, xml(version="3")))
    case, notes = read_case_and_notes(write_case(tmp_path, text))
    assert case == without
    viscosity = (
        "the viscosity is the same everywhere; the rules of pressure openings need no layer of higher viscosity, whose "
        "additional pressure drop is missing"
    )
    assert notes == (
        f"simulation/sponge_layer: ignored, {viscosity}",
        "geometry/mapping: ignored; it is the index of this vessel among coupled vessels, but a run has one vessel",
        "inlets/inlet/flowextension: ignored, red cells enter through it in HemeLB; the flow does not use it",
        f"inlets/inlet/sponge_layer: ignored, {viscosity}",
    )


def test_a_first_step_advances_oscillations_and_shortens_the_run(tmp_path: Path) -> None:
    """Step 6 is after five steps of 2 ms: half of a period of 20 ms."""
    outlet = COSINE.format(mean="0.02", amplitude="0.01")
    text = xml(inlet=WOMERSLEY, outlet=outlet)
    before, _ = read_case_and_notes(write_case(tmp_path, text))
    time = '<time value="6" units="lattice"/>'
    case, notes = read_case_and_notes(write_case(tmp_path, text.replace("</pressure>", f"</pressure>{time}")))
    assert (before.time.steps, case.time.steps) == (40, 35)
    assert case.iolet[1].phase == pytest.approx(before.iolet[1].phase + math.pi)
    phases = [item.iolet[0].harmonics[0].phase for item in (before, case)]
    assert phases[1] == pytest.approx(phases[0] + math.pi)
    assert notes[-2] == (
        "initialconditions/time: 35 steps are run, counted from 0; oscillations start at the phase of step 6"
    )


def test_of_equal_times_in_a_velocity_table_the_last_row_is_used(tmp_path: Path) -> None:
    """HemePure keeps the last of several values of one time."""
    (tmp_path / "v.txt").write_text("0 1e-3\n0.5 9\n0.5 7\n0.5 4e-3\n1 1e-3\n")
    inlet = """<condition type="velocity" subtype="file"><path value="v.txt"/>
      <radius value="1e-3" units="m"/></condition>"""
    setup = prepare(write_case(tmp_path, xml(inlet=inlet)))
    series = setup.iolet_inputs["inlet0"].series
    np.testing.assert_allclose(series.times, [0, 0.5, 1])
    np.testing.assert_allclose(series.values, [0.5e-3, 2e-3, 0.5e-3])
    assert (
        'iolet["inlet0"].table: 2 rows have the time of the next row; the last row of equal times is used '
        '(equal_times = "last")'
    ) in setup.notes
