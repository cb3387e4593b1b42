# SPDX-License-Identifier: BSD-3-Clause
"""The narrowest passage between the openings of a vessel, and the straight part behind each opening."""

from __future__ import annotations

import pytest

from page_blocks import ROOT
from seiche.case.flow.estimates import flow_estimates
from seiche.case.kinds import kind_of
from seiche.case.load import read_source
from seiche.case.loading import prepare
from seiche.cli import main
from seiche.domain import shapes
from seiche.domain.passages import REACH, Passages
from seiche.domain.solids import SolidBox
from seiche.solver import Estimate

BIFURCATION = ROOT / "examples/bifurcation/case.toml"
WIDTH, STRAIGHT = "narrowest width between openings", "radii to the next bend or branch"


def width_of(sites: object) -> float:
    """Return the narrowest width in spacings of sites with a spacing of one."""
    passage = Passages(sites).narrowest()  # type: ignore[arg-type]
    assert passage is not None
    return passage.width


@pytest.mark.parametrize("axis", [(1.0, 0.0, 0.0), (1.0, 0.6, 0.3)])
@pytest.mark.parametrize("radius", [4.3, 7.0])
def test_the_width_of_a_tube_is_its_diameter(radius: float, axis: tuple[float, float, float]) -> None:
    assert width_of(shapes.tube(radius, 30.0, 1.0, axis)) == pytest.approx(2 * radius, abs=0.5)


def test_a_periodic_tube_is_measured_from_end_to_end() -> None:
    assert width_of(shapes.tube(5.0, 30.0, 1.0, (1.0, 0.0, 0.0), periodic=True)) == pytest.approx(10.0, abs=0.5)


def test_the_narrowest_passage_is_that_next_to_an_obstacle() -> None:
    """A plate across a duct of 16 by 16 sites leaves a gap of 6."""
    full = shapes.duct(16.0, 16.0, 40.0, 1.0, periodic=False)
    low, high = full.origin, [start + side for start, side in zip(full.origin, full.shape, strict=True)]
    plate = SolidBox((18.0, low[1] - 1.0, low[2] - 1.0), (21.0, high[1] - 6.5, high[2] + 1.0))
    sites = shapes.duct(16.0, 16.0, 40.0, 1.0, periodic=False, obstacles=(plate,))
    assert width_of(full) == pytest.approx(16.0, abs=0.5)
    passage = Passages(sites).narrowest()
    assert passage is not None
    assert passage.width == pytest.approx(6.0, abs=0.6)
    assert 16.0 < passage.position[0] < 23.0


def test_the_width_of_a_large_vessel_is_found_from_a_part_of_its_sites() -> None:
    passages = Passages(shapes.tube(15.0, 120.0, 1.0, (1.0, 0.2, 0.0)))
    assert passages.step > 1
    assert len(passages.coords) <= 30_000
    passage = passages.narrowest()
    assert passage is not None
    assert passage.width == pytest.approx(30.0, rel=0.05)


def test_ends_that_are_not_connected_have_no_width() -> None:
    wall = SolidBox((10.0, -20.0, -20.0), (14.0, 40.0, 40.0))
    assert Passages(shapes.duct(8.0, 8.0, 24.0, 1.0, periodic=False, obstacles=(wall,))).narrowest() is None
    assert Passages(shapes.box((6, 6, 6), 1.0)).narrowest() is None


def test_a_straight_tube_ends_at_its_other_opening_without_a_bend() -> None:
    passages = Passages(shapes.tube(5.0, 80.0, 1.0, (1.0, 0.3, 0.0)))
    assert [passages.straight(number) for number in (0, 1)] == [REACH, REACH]
    short = Passages(shapes.tube(5.0, 20.0, 1.0, (1.0, 0.3, 0.0)))
    assert [short.straight(number) for number in (0, 1)] == [None, None]


def estimates_of(*overrides: str) -> dict[str, Estimate]:
    """Return the estimates of the bifurcation by name."""
    return {estimate.name: estimate for estimate in flow_estimates(prepare(BIFURCATION, overrides))}


def test_the_branch_of_a_bifurcation_is_as_far_as_its_daughters_are_long() -> None:
    """Daughters of radius 1.25 and 1.12 mm; the narrower one is 21.3 sites wide at a spacing of 105 um."""
    coarse = ["geometry.spacing=0.2 mm"]
    long, short = (estimates_of(*coarse, *more) for more in ([], ["geometry.shape.daughter_length=6 mm"]))
    assert long[WIDTH].value == pytest.approx(2 * 1.12e-3 / 0.2e-3, rel=0.06)
    assert not long[STRAIGHT].violated
    assert short[STRAIGHT].value < long[STRAIGHT].value - 1.0
    assert short[STRAIGHT].violated
    assert short[STRAIGHT].where.startswith('iolet["outlet')
    assert "extend the vessel straight at the opening" in (short[STRAIGHT].warning or "")


def test_the_check_measures_a_surface_whose_sites_it_does_not_create(capsys: pytest.CaptureFixture[str]) -> None:
    source = read_source(BIFURCATION)
    created = {estimate.name: estimate for estimate in kind_of(source).estimates(kind_of(source).prepare(source))}
    assert main(["check", str(BIFURCATION)]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if WIDTH in line]
    assert float(line.split(WIDTH)[1].split()[0]) == pytest.approx(created[WIDTH].value, rel=0.05)
    assert main(["check", str(BIFURCATION), "--set", "geometry.spacing=0.3 mm"]) == 0
    (advice,) = [line for line in capsys.readouterr().out.splitlines() if WIDTH in line and "advice: " in line]
    assert "is below 8.6: narrow parts of the vessel are not resolved; use a spacing below 0.000" in advice
