# SPDX-License-Identifier: BSD-3-Clause
"""Walls of a case file: patches, units, the output of `seiche check`, and a run between plates."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import seiche
from case_files import changed, setup_of, toml_of, tube_tables
from seiche.case.flow.check import describe
from seiche.case.flow.schema_shapes import WallInBox, WallInCylinder, WallInSphere, WallOnPlane
from seiche.case.flow.walls import patch_of
from seiche.domain.world import World


def plates() -> dict[str, Any]:
    """Return plates 2 mm apart in z, 8 sites, the upper of which slides."""
    lid = {
        "name": "lid",
        "velocity": ["3 mm/s", "-1 mm/s", "0 m/s"],
        "where": {"kind": "plane", "point": ["0 m", "0 m", "2 mm"], "normal": [0, 0, 2]},
    }
    return {
        "solver": "flow",
        "geometry": {
            "spacing": "0.25 mm",
            "shape": {"kind": "channel", "height": "2 mm", "length": "1 mm", "width": "1 mm"},
        },
        "fluid": {"viscosity": "4 mPa s", "density": "1000 kg/m^3"},
        "lattice": {"mach": 0.05},
        "time": {"duration": "6 s"},
        "walls": {"kind": "bouzidi", "moving": [lid]},
    }


@pytest.mark.parametrize(
    ("where", "held"),
    [
        (WallOnPlane(kind="plane", point=["0 m", "0 m", "2 m"], normal=[0, 0, 3]), [True, False, False]),
        (WallInSphere(kind="sphere", center=["0 m", "0 m", "2 m"], radius="1.2 m"), [True, True, False]),
        (
            WallInCylinder(kind="cylinder", start=["0 m", "0 m", "0 m"], end=["0 m", "0 m", "1.5 m"], radius="1 m"),
            [False, True, False],
        ),
        (WallInBox(kind="box", low=["-1 m", "-1 m", "0.5 m"], high=["9 m", "9 m", "9 m"]), [True, True, True]),
    ],
)
def test_patches_hold_what_their_words_say(where: Any, held: list[bool]):
    spacing = 0.5
    places = np.array([[0.0, 0.5, 2.0], [0.0, 0.5, 1.4], [5.0, 0.5, 1.4]]) / spacing
    patch = pickle.loads(pickle.dumps(patch_of(where, spacing)))
    assert patch(places).tolist() == held


def test_plates_of_a_case_file_have_a_straight_profile(tmp_path: Path):
    path = tmp_path / "case.toml"
    path.write_text(toml_of(plates()))
    with seiche.load(path, world=World.serial()) as simulation:
        assert simulation.setup.invariants.velocity_scale == pytest.approx(np.hypot(3e-3, 1e-3))
        simulation.run()
        u = simulation.fields("velocity")["velocity"]
        z = (simulation.setup.vessel.sites.coords[:, 2] + 0.5) * 0.25e-3
        np.testing.assert_allclose(u, np.outer(z / 2e-3, [3e-3, -1e-3, 0.0]), atol=1e-12)


def test_rotation_becomes_velocity_at_the_wall():
    drum = {"name": "drum", "rotation": "60 rpm", "axis": [2, 0, 0], "center": ["0 m", "0 m", "0 m"]}
    setup = setup_of({**tube_tables(), "walls": {"moving": [drum]}})
    assert setup.wall_speeds["drum"] == pytest.approx(2 * np.pi * 1e-3, rel=2e-2)  # 1 mm from the axis
    (wall,) = setup.model.walls.moving
    np.testing.assert_allclose(wall.rotation, [2 * np.pi * setup.units.step, 0.0, 0.0])


def test_check_tells_of_walls_and_of_their_mass():
    setup = setup_of(plates())
    lines = describe(setup, measure=False)
    (walls,) = [line for line in lines if line.startswith("walls ")]
    assert walls.split(maxsplit=1)[1] == "bouzidi, lid moves at up to 0.003162 m/s"
    plain = setup_of(changed(plates(), "walls", {"kind": "bounce-back"}) | {"lattice": {"tau": 0.8}})
    assert not any(line.startswith("walls ") for line in describe(plain, measure=False))
