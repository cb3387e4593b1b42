# SPDX-License-Identifier: BSD-3-Clause
"""Numbers wrong by orders of magnitude are rejected in one line; extremes of the literature are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from case_files import blood_tables, box_tables, changed, tube_tables
from seiche.case.kinds import kind_named
from seiche.case.load import check_tables
from seiche.cli import main
from seiche.errors import CaseError
from ultrasound_cases import BASIC
from waves_cases import BLOCK, FORCE, SOIL

WAVES = BLOCK + 'size = "5 m"\n' + SOIL + FORCE + '[time]\nduration = "20 ms"\n'


def checked(kind: str, key: str, value: Any) -> None:
    """Check the tables of a small case of flow or blood with another value."""
    tables = {"flow": tube_tables, "box": box_tables, "blood": blood_tables}[kind]()
    kind = "flow" if kind == "box" else kind
    check_tables(changed(tables, key, value), "case.toml", kind_named(kind).schema)


REJECTED = [
    ("flow", "geometry.spacing", "1 fm", "geometry.spacing: 1e-15 m is not between 1e-10 and 10000 m, from molecules"),
    ("flow", "geometry.spacing", "100 km", "geometry.spacing: 100000 m is not between 1e-10 and 10000 m"),
    (
        "flow",
        "fluid.viscosity",
        "4 nPa s",
        "fluid.viscosity: 4e-09 Pa s is not between 1e-07 and 1e+06 Pa s, from gases",
    ),
    ("flow", "fluid.density", "1060 g/mm^3", "fluid.density: 1.06e+09 kg/m^3 is not between 0.001 and 100000 kg/m^3"),
    ("flow", "time", {"duration": "1e14 s"}, "time.duration: 1e+14 s is not between 1e-15 and 1e+12 s; check its unit"),
    ("flow", "iolet.0.velocity", "300 km/s", 'iolet["inlet"].velocity: 300000 m/s is above 100000 m/s; check its unit'),
    ("flow", "iolet.1.pressure", "1e15 Pa", 'iolet["outlet"].pressure: 1e+15 Pa is above 1e+13 Pa'),
    ("flow", "fluid.initial_velocity", ["0 m/s", "1e6 m/s", "0 m/s"], "fluid.initial_velocity[1]: 1e+06 m/s is above"),
    ("box", "body_force", {"force": ["1e16 N/m^3", "0 N/m^3", "0 N/m^3"]}, "body_force.force[0]: 1e+16 N/m^3 is above"),
    (
        "blood",
        "cells.0.shear_modulus",
        "2.8 kN/m",
        'cells["red"].shear_modulus: 2800 N/m is not between 1e-09 and 10 N',
    ),
    (
        "blood",
        "cells.0.bending",
        "2 J",
        'cells["red"].bending: 2 J is not between 1e-23 and 1e-11 J, which include all',
    ),
    (
        "blood",
        "cells.0.surface_viscosity",
        "300 N s/m",
        'cells["red"].surface_viscosity: 300 N s/m is above 1 N s/m; check',
    ),
    ("blood", "cells.0.local_area", "100 kN/m", 'cells["red"].local_area: 100000 N/m is above 10000 N/m; check'),
    ("blood", "cells.0.inner_viscosity", "10 nPa s", 'cells["red"].inner_viscosity: 1e-08 Pa s is not between'),
    ("blood", "contact", {"strength": "1 N"}, "contact.strength: 1 N is not between 1e-18 and 0.001 N; check its unit"),
    ("blood", "packing.hematocrit", 45, "packing.hematocrit"),
]


@pytest.mark.parametrize(("kind", "key", "value", "message"), REJECTED, ids=[f"{row[0]}-{row[1]}" for row in REJECTED])
def test_flow_and_blood_reject_absurd_numbers(kind: str, key: str, value: Any, message: str) -> None:
    with pytest.raises(CaseError) as error:
        checked(kind, key, value)
    assert str(error.value).startswith(f"case.toml: {message}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        ("flow", "geometry.spacing", "2 nm"),  # channels of a few nanometres
        ("flow", "geometry.spacing", "100 m"),  # the atmosphere
        ("flow", "fluid.viscosity", "3 uPa s"),  # cold helium: 3.3 uPa s at 20 K
        ("flow", "fluid.viscosity", "10 kPa s"),  # lava, glass at its working point
        ("flow", "fluid.density", "0.08 kg/m^3"),  # hydrogen
        ("flow", "fluid.density", "13534 kg/m^3"),  # mercury
        ("flow", "time", {"duration": "1 ns"}),
        ("flow", "time", {"duration": "1000 year"}),
        ("flow", "iolet.1.pressure", "10 GPa"),
        ("flow", "iolet.0.velocity", "340 m/s"),
        ("flow", "fluid.initial_velocity", ["1e-17 m/s", "0 m/s", "0 m/s"]),
        ("box", "body_force", {"force": ["1e10 N/m^3", "1e-20 N/m^3", "0 N/m^3"]}),  # 1 bar in 10 um
        ("blood", "cells.0.shear_modulus", "100 uN/m"),  # red cells with malaria parasites
        ("blood", "cells.0.shear_modulus", "1 N/m"),  # polymer capsules
        ("blood", "cells.0.bending", "4e-21 J"),  # kT
        ("blood", "cells.0.bending", "0 J"),
        ("blood", "cells.0.local_area", "0.45 N/m"),  # area modulus of a red cell
        ("blood", "cells.0.inner_viscosity", "20 mPa s"),
        ("blood", "packing.hematocrit", 0.7),
    ],
)
def test_extremes_of_the_literature_are_accepted(kind: str, key: str, value: Any) -> None:
    checked(kind, key, value)


@pytest.mark.parametrize(
    ("text", "old", "new", "message"),
    [
        (
            WAVES,
            '"1500 m/s"',
            '"1500 km/s"',
            'material["soil"].cp: 1.5e+06 m/s is not between 10 and 100000 m/s, which',
        ),
        (WAVES, '"800 m/s"', '"0.8 mm/s"', 'material["soil"].cs: 0.0008 m/s is not between 0.01 and 100000 m/s'),
        (WAVES, '"1700 kg/m^3"', '"1700 g/mm^3"', 'material["soil"].density: 1.7e+09 kg/m^3 is not between 0.001'),
        (WAVES, '"1 N", "1 N"', '"1 N", "1e25 N"', "source[0].force[2]: 1e+25 N is above 1e+22 N; check its unit"),
        (WAVES, '"1 ms"', '"1000 s"', "source: 0.00048 Hz, the highest frequency, has 1e+06 nodes per shortest"),
        (WAVES, '"20 ms"', '"20 ps"', "time.duration: 2e-11 s is 3.3e-08 steps of"),
        (WAVES, '"20 ms"', '"200 year"', "time.duration: 6.31152e+09 s is 1e+13 steps of"),
        (WAVES, 'duration = "20 ms"', 'steps = 2\nstep = "1 fs"', "time.step: 1e-15 s is below 1e-06 of the largest"),
        (WAVES, '"20 m", "20 m", "10 m"]', '"20 m", "20 m", "1e12 m"]', "mesh.upper[2]: 1e+12 m is above 1e+10 m"),
        (BASIC, "cfl = 0.3", 'time_step = "1e-17 s"', "grid.time_step: 1e-17 s is not between 1e-15 and 1e+12 s"),
    ],
)
def test_waves_and_ultrasound_reject_absurd_numbers(
    text: str, old: str, new: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert old in text
    path = tmp_path / "case.toml"
    path.write_text(text.replace(old, new))
    assert main(["check", str(path)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"1500 m/s"', '"330 m/s"\n#'),  # air
        ('"1700 kg/m^3"', '"1.2 kg/m^3"'),
        ('"800 m/s"', '"1 m/s"'),  # soft tissue
        ('"1 N", "1 N"', '"1e-12 N", "1e-25 N"'),
    ],
)
def test_waves_accept_extremes_of_media(old: str, new: str, tmp_path: Path) -> None:
    text = WAVES.replace(old, new) if "330" not in new else WAVES.replace(old, new).replace('cs = "800 m/s"', "")
    path = tmp_path / "case.toml"
    path.write_text(text)
    assert main(["check", str(path)]) == 0
