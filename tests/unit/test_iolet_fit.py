# SPDX-License-Identifier: BSD-3-Clause
"""The place of an iolet in a case must be that of the links of the geometry file that meet it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from case_files import toml_of
from hemelb_files import COSINE, PARABOLIC, WOMERSLEY, write_case, xml
from seiche.case.loading import load, prepare
from seiche.cli import main
from seiche.errors import CaseError

NORMAL = '<normal value="(0.0,0.0,1.0)" units="dimensionless"/>'
NEGATIVE = PARABOLIC.replace("4e-3", "-4e-3")


def center_line(text: str) -> str:
    return f'<position value="{text}" units="m"/>'


def changed(old: str, new: str, text: str | None = None) -> str:
    text = xml() if text is None else text
    assert old in text
    return text.replace(old, new, 1)


def normal_line(x: float, y: float, z: float) -> str:
    return f'<normal value="({x},{y},{z})" units="dimensionless"/>'


#: The tube has a radius of 1 mm; its inlet is at z = 0, its outlet at z = 4 mm.
MISFITS = [
    (
        xml(place=center_line("(0,0,-4e-3)")),
        r"center: \(0, 0, -0.004\) m is 16 spacings from the links that cross the iolet;",
    ),
    (
        xml(place=center_line("(8e-4,0,0)")),
        r"center: \(0.0008, 0, 0\) m is 3.2 spacings from the links .* expected a point near their",
    ),
    (
        xml(inlet=WOMERSLEY, place=center_line("(1,0,0)")),
        r"center: \(1, 0, 0\) m is 4e\+03 spacings from the links",
    ),
    (
        changed("1.0e-3", "1.0"),
        r"radius: 1 m does not fit the links that cross the iolet, which extend 0.001\d* m from their center; a "
        "velocity profile requires the radius of the opening",
    ),
    (changed("1.0e-3", "1.0e-6"), "radius: 1e-06 m does not fit the links"),
    (
        changed(NORMAL, normal_line(1, 0, 0.2)),
        r"normal: \(0.9806, 0, 0.1961\) is nearly perpendicular to the normal \(0, 0, 1\) of the links that cross the "
        "iolet; expected the normal of the iolet plane, pointing into the fluid",
    ),
    (
        changed(NORMAL, normal_line(0, 0, -1), xml(inlet=NEGATIVE)),
        r"normal: \(0, 0, -1\) points out of the fluid, so the direction of the velocity is ambiguous; "
        "use the normal that points into the fluid, and a negative velocity for outflow",
    ),
]


@pytest.mark.parametrize(("text", "message"), MISFITS)
def test_a_velocity_iolet_off_its_links_is_rejected(tmp_path: Path, text: str, message: str) -> None:
    path = write_case(tmp_path, text)
    with pytest.raises(CaseError) as raised:
        prepare(path)
    assert re.match(re.escape(f'{path}: iolet["inlet0"].') + message, str(raised.value)), str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_velocity_outlet_with_its_normal_out_of_the_fluid_is_rejected(tmp_path: Path) -> None:
    text = xml(inlet=COSINE.format(mean="0", amplitude="0"), outlet=PARABOLIC).replace("(0.0,0.0,-1.0)", "(0,0,1)")
    with pytest.raises(
        CaseError, match=r'iolet\["outlet0"\]\.normal: \(0, 0, 1\) points out of the fluid, so the direction'
    ):
        prepare(write_case(tmp_path, text.replace("(0.0,0.0,4e-3)", "(0,0,4e-3)")))


@pytest.mark.parametrize("command", ["check", "run"])
def test_check_and_run_say_the_same_line(tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_case(tmp_path, MISFITS[3][0])
    assert main([command, str(path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f'seiche: error: {path}: iolet["inlet0"].radius: 1 m does not fit')
    assert error.count("\n") == 1


def test_a_normal_out_of_the_fluid_is_reversed_with_a_note_and_the_flow_is_the_same(tmp_path: Path) -> None:
    flows = []
    for text in (xml(), xml().replace(NORMAL, normal_line(0, 0, -2)).replace("(0.0,0.0,-1.0)", "(0,0,1)")):
        with load(write_case(tmp_path, text), replace=True) as simulation:
            simulation.run()
            flows.append(simulation.flow_rates())
            notes = simulation.setup.vessel.notes
    assert notes == (
        'iolet["inlet0"].normal: (0, 0, -1) points out of the fluid; the normal is reversed, and a positive velocity '
        "is an inflow",
        'iolet["outlet0"].normal: (0, 0, 1) points out of the fluid; the normal is reversed',
    )
    assert flows[0]["inlet0"] > 0
    assert flows[0] == flows[1]


def test_a_position_or_radius_that_no_condition_uses_is_not_asked_to_fit(tmp_path: Path) -> None:
    """Public cases of HemeLB have pressures imposed far away from their sites."""
    text = xml(inlet=COSINE.format(mean="0", amplitude="0"), place=center_line("(0,0,-4e-3)"))
    assert prepare(write_case(tmp_path, text)).vessel.notes == ()
    keys: dict[str, Any] = {"velocity": "1 mm/s", "profile": "computed", "radius": "1 m"}
    assert prepare(in_toml(tmp_path, keys)).vessel.notes == ()


def in_toml(folder: Path, keys: dict[str, Any]) -> Path:
    write_case(folder, xml())
    tables = {
        "solver": "flow",
        "geometry": {"gmy": "tube.gmy", "spacing": "0.25 mm", "origin": ["-0.875 mm", "-0.875 mm", "0.125 mm"]},
        "fluid": {"density": "1000 kg/m^3", "viscosity": "4 mPa s"},
        "lattice": {"step": "2 ms"},
        "time": {"steps": 4},
        "iolet": [
            {"name": "inlet0", "kind": "velocity"} | keys,
            {"name": "outlet0", "kind": "pressure", "pressure": "0 Pa"},
        ],
    }
    (folder / "case.toml").write_text(toml_of(tables))
    return folder / "case.toml"


def test_a_case_file_is_asked_the_same(tmp_path: Path) -> None:
    wide = in_toml(tmp_path, {"flow_rate": "1 ul/s", "radius": "1 m"})
    with pytest.raises(CaseError, match=r'case\.toml: iolet\["inlet0"\]\.radius: 1 m does not fit the links'):
        prepare(wide)
    outwards = in_toml(tmp_path, {"flow_rate": "-3 mm^3/s", "normal": [0.0, 0.0, -1.0]})
    with pytest.raises(
        CaseError, match=r'iolet\["inlet0"\]\.normal: \(0, 0, -1\) points out of the fluid, so the direction'
    ):
        prepare(outwards)
    setup = prepare(in_toml(tmp_path, {"velocity": "1 mm/s"}))
    assert setup.vessel.notes == ()
