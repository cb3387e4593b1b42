# SPDX-License-Identifier: BSD-3-Clause
"""Messages for open vessels with cells: one clear line for each impossible opening or reservoir."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from case_files import blood_tables, case_error, changed, open_blood_tables, toml_of, tube_tables
from seiche.case.blood.check import describe
from seiche.case.blood.setup import open_vessel
from seiche.case.loading import prepare
from seiche.domain.links import check_sites
from seiche.errors import CaseError


def test_an_open_vessel_needs_a_reservoir(tmp_path: Path) -> None:
    tables = {**tube_tables(), **{key: blood_tables()[key] for key in ("solver", "cells", "packing")}}
    assert case_error(tmp_path, tables) == ('reservoir: is missing; cells leave through iolet["inlet"] and none enter')


def test_an_exchange_interval_in_which_cells_could_leave_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "case.toml"
    path.write_text(toml_of(changed(open_blood_tables(5, 20, 100), "reservoir.every", 1000)))
    with pytest.raises(CaseError) as error:
        prepare(path)
    assert str(error.value) == (
        f"{path}: reservoir.every: cells move 35.6 sites between two exchanges at the openings and could cross "
        "them undetected; use at most 224 steps"
    )


def test_a_pulse_shorter_than_the_exchange_interval_is_rejected(tmp_path: Path) -> None:
    tables = changed(open_blood_tables(5, 20, 100), "iolet.0.profile", "womersley")
    tables["iolet"][0] |= {"period": "21 us", "harmonics": [{"amplitude": "1 mm/s"}, {"amplitude": "5 mm/s"}]}
    assert case_error(tmp_path, changed(tables, "reservoir.every", 30)) == (
        "reservoir.every: the period of the flow is 59 steps, too short for this interval; use at most 14 steps"
    )
    (tmp_path / "case.toml").write_text(toml_of(tables))
    assert open_vessel(prepare(tmp_path / "case.toml")).interval == 8
    tables["iolet"][0]["period"] = "11 us"
    assert case_error(tmp_path, tables) == (
        "reservoir: the period of the flow is 30.9 steps, but cells are exchanged every 8 steps; at least 32 steps per "
        "period are needed: use a smaller time step"
    )


def test_an_outlet_with_inflow_needs_a_role(tmp_path: Path) -> None:
    tables = open_blood_tables(5, 20, 100)
    tables["iolet"][0]["name"], tables["iolet"][1]["name"] = "outlet", "inlet"
    assert case_error(tmp_path, tables) == (
        'iolet["outlet"].role: is missing; blood may enter through it, but the geometry calls it an outlet, where no '
        'cells enter; set role = "inlet" or "outlet"'
    )
    pulse = {"velocity": "-10 mm/s", "profile": "womersley", "period": "0.1 ms"}
    pulse["harmonics"] = [{"amplitude": "20 mm/s", "phase": "90 deg"}]
    assert case_error(tmp_path, changed(tables, "iolet.0", tables["iolet"][0] | pulse)).startswith(
        'iolet["outlet"].role'
    )
    tables["iolet"][0]["velocity"] = "-10 mm/s"  # blood leaves
    (tmp_path / "case.toml").write_text(toml_of(tables))
    assert [plane.role for plane in prepare(tmp_path / "case.toml").vessel.sites.iolets] == ["inlet", "outlet"]
    tables["iolet"][0]["velocity"] = "50 mm/s"
    for roles, inlets in ((("inlet", "outlet"), ["outlet"]), (("outlet", None), ["inlet"]), ((None, "outlet"), [])):
        for iolet, role in zip(tables["iolet"], roles, strict=True):
            iolet.pop("role", None)
            iolet |= {"role": role} if role else {}
        if not inlets:
            expected = 'reservoir: the vessel has no inlet; set role = "inlet" for the iolet through which cells enter'
            assert case_error(tmp_path, tables) == expected
            continue
        (tmp_path / "case.toml").write_text(toml_of(tables))
        setup = prepare(tmp_path / "case.toml")
        assert [plane.name for plane in setup.vessel.sites.iolets if plane.role == "inlet"] == inlets
        check_sites(setup.vessel.sites)


def test_a_hematocrit_of_a_vessel_with_openings_is_named_as_the_case_has_it(tmp_path: Path) -> None:
    tables = changed(open_blood_tables(5, 20, 100), "packing.hematocrit", 0.004)
    expected = "packing.hematocrit = 0.004: gives less than one cell; the volume of"
    assert case_error(tmp_path, tables).startswith(expected)


def test_a_reservoir_without_whole_cells_for_its_hematocrit_is_rejected(tmp_path: Path) -> None:
    tables = {**tube_tables(), **{key: blood_tables()[key] for key in ("solver", "cells", "packing", "fluid")}}
    tables["geometry"] = {"spacing": "0.5 um", "shape": {"kind": "tube", "radius": "6 um", "length": "24 um"}}
    tables["lattice"] = {"tau": 1.0}
    tables["reservoir"] = {"hematocrit": 0.01}
    path = tmp_path / "case.toml"
    path.write_text(toml_of(tables))
    with pytest.raises(CaseError) as caught:
        describe(prepare(path), measure=False)
    assert str(caught.value) == (
        f'{path}: reservoir of iolet["inlet"]: hematocrit = 0.01: 1 cells in 49 um give 0.0177, which '
        "deviates by more than 2%; use a larger reservoir.length"
    )
    path.write_text(toml_of(changed(tables, "reservoir", {"hematocrit": 0.12})))
    (line,) = [line for line in describe(prepare(path), measure=False) if line.startswith("reservoir inlet")]
    assert float(line.split()[-1]) == pytest.approx(0.12, rel=0.02)


def open_tables(reservoir: dict[str, Any]) -> dict[str, Any]:
    tables = {**tube_tables(), **{key: blood_tables()[key] for key in ("solver", "cells", "packing", "fluid")}}
    tables["geometry"] = {"spacing": "0.5 um", "shape": {"kind": "tube", "radius": "6 um", "length": "24 um"}}
    return tables | {"lattice": {"tau": 1.0}, "packing": {"hematocrit": 0.1, "seed": 1}, "reservoir": reservoir}


def test_a_reservoir_that_cannot_be_packed_is_rejected(tmp_path: Path) -> None:
    expected = "expected a number above 0 and at most 0.6"
    assert case_error(tmp_path, open_tables({"hematocrit": 0.7})) == f"reservoir.hematocrit = 0.7: {expected}"
    dense = changed(open_tables({}), "packing.hematocrit", 0.65)
    assert case_error(tmp_path, dense) == f"reservoir.hematocrit = 0.65 (that of [packing]): {expected}"
    # What jams is known only when it is tried.
    path = tmp_path / "case.toml"
    path.write_text(toml_of(changed(open_tables({"hematocrit": 0.3}), "packing.gap", "1.4 um")))
    with pytest.raises(CaseError) as caught:
        describe(prepare(path), measure=False)
    assert str(caught.value).startswith(f'{path}: reservoir.hematocrit: 0.3 is not possible before iolet["inlet"]: ')


def test_a_reservoir_shorter_than_a_cell_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "case.toml"
    path.write_text(
        toml_of(changed(open_blood_tables(4, 20, 100), "reservoir", {"length": "1 um", "hematocrit": 0.193}))
    )
    with pytest.raises(CaseError) as caught:
        describe(prepare(path), measure=False)
    assert str(caught.value) == (
        f'{path}: cells["ball"].shape: a cell of 2.8 x 2.8 x 2.8 um is larger than the tube of 1 um before '
        'iolet["inlet"]; use smaller cells or a larger reservoir.length'
    )


def test_a_reservoir_without_end_is_rejected(tmp_path: Path) -> None:
    assert case_error(tmp_path, open_tables({"length": "1 m"})) == (
        'reservoir.length: 1 m at iolet["inlet"] needs 9e+08 sites; the limit is 5,000,000, the larger of '
        "5,000,000 and 10 times the sites of the vessel; use at most 0.00558 m"
    )


@pytest.mark.parametrize("key", ["reach", "wall_reach"])
def test_contact_that_reaches_round_a_reservoir_is_rejected(key: str, tmp_path: Path) -> None:
    path = tmp_path / "case.toml"
    path.write_text(toml_of(open_tables({}) | {"contact": {key: "20 um"}}))
    setup = prepare(path)
    with pytest.raises(CaseError) as caught:
        describe(setup, measure=False)
    text = str(caught.value)
    assert text.startswith(f"{path}: contact.{key}: 2e-05 m is more than a third of the length (")
    assert text.endswith(
        'of the reservoir upstream of iolet["inlet"]; use a shorter reach, or a larger reservoir.length'
    )
    assert text.count(str(path)) == 1
