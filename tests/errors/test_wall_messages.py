# SPDX-License-Identifier: BSD-3-Clause
"""Walls that cannot be: the message each gets, from the solver and from a case file."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from case_files import SOURCE, box_tables, setup_of, tube_tables
from seiche.case.flow.limits import check_limits
from seiche.domain import shapes
from seiche.errors import CaseError
from seiche.flow import FlowModel, MovingWall, Newtonian, Solver, Walls

PLATES = shapes.channel(4.0, 1.0, 1.0, 1.0)


def above(places: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    return places[:, 2] > 2.0


def no_points(places: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    return places[:, 2] > 99.0


@pytest.mark.parametrize(
    ("moving", "message"),
    [
        ((MovingWall("lid", patch=no_points),), "moving wall 'lid': its patch contains no wall link"),
        (
            (MovingWall("lid", (0.2, 0.0, 0.0), patch=above),),
            r"moving wall 'lid': 0.2 sites/step is Mach 0.346, out of range \(<= 0.3\)",
        ),
        (
            (MovingWall("lid", (np.nan, 0.0, 0.0), patch=above),),
            r"moving wall 'lid': inf sites/step is Mach inf, out of range \(<= 0.3\)",
        ),
        (
            (MovingWall("lid", (0.1, 0.0, 0.0), patch=above), MovingWall("all")),
            r"moving walls 'lid' and 'all' overlap at \(.*, 4\) spacings",
        ),
    ],
)
def test_impossible_motion_gives_a_one_line_error(moving: tuple[MovingWall, ...], message: str):
    with pytest.raises(CaseError, match=message):
        Solver(PLATES, FlowModel(Newtonian(0.1), walls=Walls(moving=moving)), threads=1)


def case_message(walls: dict[str, Any], **other: Any) -> str:
    """Return the one line with which the tube of 1 mm radius and 4 mm length is rejected with these walls."""
    tables = {**tube_tables(), "walls": walls, **other}
    with pytest.raises(CaseError) as caught:
        check_limits(setup_of(tables))
    text = str(caught.value)
    assert "\n" not in text
    return text.removeprefix(f"{SOURCE}: ")


SLIDING = {"name": "lid", "velocity": ["1 mm/s", "0 m/s", "0 m/s"]}
TURNING = {"name": "drum", "rotation": "60 rpm", "axis": [1, 0, 0], "center": ["0 m", "0 m", "0 m"]}
FAR = {"kind": "sphere", "center": ["1 m", "0 m", "0 m"], "radius": "1 mm"}


def without(table: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in table.items() if name not in names}


@pytest.mark.parametrize(
    ("walls", "message"),
    [
        ({"kind": "slip"}, 'walls.kind: "slip" is not known; expected "bounce-back" or "bouzidi"'),
        (
            {"moving": [{"name": "lid"}]},
            'walls.moving["lid"]: give velocity, rotation or both; neither is given',
        ),
        (
            {"moving": [{**SLIDING, "velocity": "1 mm/s"}]},
            'walls.moving["lid"].velocity: "1 mm/s" is not a vector; expected a list of three such as ["0.3 m/s", ...]',
        ),
        ({"moving": [without(TURNING, "axis")]}, 'walls.moving["drum"]: axis is missing; rotation needs it'),
        ({"moving": [without(TURNING, "center")]}, 'walls.moving["drum"]: center is missing; rotation needs it'),
        ({"moving": [{**SLIDING, "axis": [1, 0, 0]}]}, 'walls.moving["lid"]: axis is only allowed with rotation'),
        (
            {"moving": [{**TURNING, "axis": [0, 0, 0]}]},
            'walls.moving["drum"]: axis: its length is zero; expected the direction of the axis',
        ),
        (
            {"moving": [{**TURNING, "rotation": "3 m/s"}]},
            'walls.moving["drum"].rotation: "3 m/s" is a velocity; expected an angular velocity such as "60 rpm"',
        ),
        ({"moving": [SLIDING, SLIDING]}, 'walls: moving: two walls have the name "lid"'),
        (
            {"moving": [{**SLIDING, "where": {"kind": "plane", "point": ["0 m"] * 3, "normal": [0, 0, 0]}}]},
            'walls.moving["lid"].where: normal: its length is zero; expected a direction normal to the plane',
        ),
        (
            {
                "moving": [
                    {
                        **SLIDING,
                        "where": {"kind": "cylinder", "start": ["0 m"] * 3, "end": ["0 m"] * 3, "radius": "1 m"},
                    }
                ]
            },
            'walls.moving["lid"].where: end: is equal to start; expected the other end of the axis',
        ),
        (
            {"moving": [{**SLIDING, "where": {"kind": "box", "low": ["0 m"] * 3, "high": ["0 m"] * 3}}]},
            'walls.moving["lid"].where: high: is not above low along every axis',
        ),
        (
            {"moving": [{**SLIDING, "where": FAR}]},
            'walls.moving["lid"].where: contains no part of the wall; the wall lies between'
            " (7.843e-06, -0.001, -0.001) and (0.003992, 0.001, 0.001) m",
        ),
        (
            {"moving": [SLIDING, {**SLIDING, "name": "other"}]},
            "walls.moving: moving walls 'lid' and 'other' overlap at (0.5, -3.708, -1.5) spacings",
        ),
        (
            {"moving": [{**SLIDING, "velocity": ["1 m/s", "0 m/s", "0 m/s"]}]},
            'walls.moving["lid"]: its speed of 1 m/s is Mach 10.8, out of range (<= 0.3);'
            " use a time step below 4.33e-05 s",
        ),
    ],
)
def test_impossible_walls_of_a_case_give_one_line_errors(walls: dict[str, Any], message: str):
    assert case_message(walls) == message


def test_a_vessel_without_a_wall_has_none_to_move():
    with pytest.raises(CaseError) as caught:
        setup_of({**box_tables(), "walls": {"moving": [SLIDING]}})
    assert str(caught.value) == f'{SOURCE}: walls.moving["lid"]: the geometry has no wall'
