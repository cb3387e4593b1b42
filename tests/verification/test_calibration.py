# SPDX-License-Identifier: BSD-3-Clause
"""Windkessel outlets for a flow split and pressures at the inlet: circuit, vessel, and refused targets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from case_files import toml_of, tube_tables
from seiche.case.flow.calibration import Targets, calibrate
from seiche.case.load import read_source
from seiche.cli import main
from seiche.errors import CaseError
from seiche.flow.windkessel_targets import circuit_of


def test_a_circuit_has_the_impedance_of_three_elements() -> None:
    """For a sinusoidal flow the pulse is that of |Z|; the mean is R Q."""
    period, resistance, share, time = 0.8, 1.5e8, 0.08, np.arange(400) / 400 * 0.8
    flow = 1e-4 * (1.0 + 0.7 * np.cos(2 * np.pi * time / period))
    circuit = circuit_of(flow, period, resistance, 4000.0, share=share, distal=500.0)
    pressure = circuit.pressure(flow, period)
    omega, distal = 2 * np.pi / period, (1 - share) * resistance
    impedance = share * resistance + distal / (1 + 1j * omega * distal * circuit.compliance)
    assert np.ptp(pressure) == pytest.approx(4000.0, rel=1e-6)
    assert 2 * 0.7e-4 * abs(impedance) == pytest.approx(4000.0, rel=1e-3)
    assert pressure.mean() == pytest.approx(500.0 + resistance * 1e-4, rel=1e-9)
    with pytest.raises(CaseError, match="the values for an infinite and no compliance at this flow"):
        circuit_of(flow, period, resistance, 1e5, share=share)


def pulsatile() -> dict[str, Any]:
    """Return a rigid tube with a pulsatile inflow; sound crosses it in a fiftieth of the period."""
    tables = tube_tables()
    tables["time"], tables["lattice"] = {"cycles": 2}, {"tau": 0.6}
    tables["iolet"][0] = {
        "name": "inlet", "kind": "velocity", "velocity": "2 mm/s", "profile": "womersley", "period": "0.8 s",
        "waveform": {"preset": "internal-carotid", "harmonics": 3},
    }  # fmt: skip
    return tables


@pytest.mark.slow
def test_a_rigid_tube_reaches_its_pressures(tmp_path: Path) -> None:
    """After refinement by runs, mean and pulse pressure are right within 2 %."""
    case = tmp_path / "case.toml"
    case.write_text(toml_of(pulsatile()))
    targets = Targets(1.0, 1.25, 0.8, {"outlet": 1.0})
    lines = calibrate(case, targets, output=tmp_path / "new.toml", runs=5, cycles=4)
    values = {line.partition(" pressure")[0]: float(line.split()[2]) * 133.322387 for line in lines if "mmHg" in line}
    print(lines)
    assert values["mean"] == pytest.approx(1.0, rel=0.02)
    assert values["pulse"] == pytest.approx(0.45, rel=0.02)
    source = read_source(tmp_path / "new.toml")
    assert source.tables["iolet"][1]["kind"] == "windkessel"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["case.toml", "new.toml"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mean": 0.8}, "the mean of 0.8 Pa is not between the diastolic pressure"),
        ({"split": {"outlet": 0.9}}, "are not positive numbers with the sum 1"),
        ({"split": {"exit": 1.0}}, "expected a share for each outlet: outlet"),
        ({"systolic": 90.0}, "is not between .* the values for an infinite and no compliance"),
        ({"share": 1.0}, "--share: 1 is out of range"),
        ({"distal": 0.7}, "--distal: 0.7 Pa is not below the mean"),
        (
            {"mean": 12400.0, "systolic": 14000.0, "diastolic": 11000.0},
            r"change the lattice density by \d+% at the time step of .* use a step of at most",
        ),
    ],
)
def test_targets_that_cannot_be_reached_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    case = tmp_path / "case.toml"
    case.write_text(toml_of(pulsatile()))
    keys = {"mean": 0.6, "systolic": 0.7, "diastolic": 0.52, "split": {"outlet": 1.0}, **options}
    with pytest.raises(CaseError, match=message):
        calibrate(case, Targets(**keys), output=tmp_path / "new.toml", runs=0)
    assert not (tmp_path / "new.toml").exists()


def test_the_command_writes_a_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = tmp_path / "case.toml"
    case.write_text(toml_of(pulsatile()))
    command = ["calibrate", str(case), "--split", "outlet=1", "--mean", "0.6 Pa", "--systolic", "0.7 Pa"]
    command += ["--diastolic", "0.52 Pa", "--runs", "0"]
    assert main(command) == 0
    assert "not refined by a run" in capsys.readouterr().out
    assert main(["check", str(tmp_path / "case-calibrated.toml")]) == 0
    assert main(command) == 2 and "exists already; add --force" in capsys.readouterr().err
    assert main([*command, "--mean", "6 s"]) == 2 and "--mean: " in capsys.readouterr().err
    assert main([*command, "--split", "outlet"]) == 2
    assert "expected outlet1=0.6,outlet2=0.4" in capsys.readouterr().err
