# SPDX-License-Identifier: BSD-3-Clause
"""Axisymmetric files and objects of k-Wave: against NumPy, against the same problem in Python, and in run segments."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from axisymmetric_oracle import AxisymmetricOracle
from kwave_files import write_input
from seiche.dropin.program import main
from seiche.errors import CaseError
from seiche.ultrasound import Grid, Medium, Sensor, Source, simulate
from seiche.ultrasound.kwave import kspaceFirstOrderAS
from seiche.ultrasound.problem import Absorption, MaskSource, Pml, Problem

STEPS, AXIAL, RADIAL = 40, 30, 21
SHAPE = (1, RADIAL, AXIAL)
FLAGS = ("--p_raw", "--u_raw", "--u_non_staggered_raw", "--p_max", "--u_rms", "--p_max_all", "--u_max_all", "--p_final")


def medium() -> dict[str, np.ndarray]:
    """Return sound speed and density in the order of the file, (1, Ny, Nx)."""
    c0, rho0 = np.full(SHAPE, 1500.0), np.full(SHAPE, 1000.0)
    c0[..., AXIAL // 2 :], rho0[:, RADIAL // 3 :] = 1800.0, 1200.0
    return {"c0": c0, "rho0": rho0}


def pulse() -> np.ndarray:
    x, r = np.arange(AXIAL) - AXIAL // 2, np.arange(RADIAL)
    return 1e6 * np.exp(-(x[None, None] ** 2 + (r[None, :, None] - 2) ** 2) / 8)


def run(folder: Path, *flags: str, device: str = "cpu") -> dict[str, Any]:
    arguments = ["-i", str(folder / "in.h5"), "-o", str(folder / "out.h5"), *flags]
    assert main(arguments, "kspaceFirstOrder-OMP", device) == 0
    with h5py.File(folder / "out.h5") as file:
        return {name: dataset[()] for name, dataset in file.items()}


def problem_of(**given: Any) -> Problem:
    values: dict[str, Any] = {
        "axes": ("x", "y"),
        "shape": (AXIAL, RADIAL),
        "spacing": (float(np.float32(1e-4)),) * 2,
        "dt": float(np.float32(2e-8)),
        "steps": STEPS,
        "reference_speed": 1800.0,
        "sound_speed": medium()["c0"][0].T,
        "density": medium()["rho0"][0].T,
        "pml": (Pml(4, 2.0), Pml(4, 2.0)),
        "outer_end": "pressure-release",
    }
    return Problem(**(values | given))


@pytest.mark.parametrize("loss", [False, True], ids=["lossless", "Stokes, nonlinear"])
@pytest.mark.parametrize("source", ["p0", "p", "uy"])
def test_an_axisymmetric_file_agrees_with_numpy(source, loss, tmp_path, device):
    data: dict[str, Any] = {"axisymmetric_flag": 1, "c_ref": 1800.0, **medium()}
    given: dict[str, Any] = {}
    if source == "p0":
        data |= {"p0_source_flag": 1, "p0_source_input": pulse()}
        given["initial_pressure"] = pulse()[0].T
    else:
        points = np.array([5, AXIAL + 5, 7 * AXIAL + 11])  # in the order of the file: y, then x
        signal = 1e-3 * np.sin(0.3 * np.arange(30))[:, None] * np.array([[1.0, 0.5, 0.8]])
        kind = source[0]
        data |= {f"{source}_source_flag": 30, f"{kind}_source_mode": 2, f"{kind}_source_many": 1}
        data |= {f"{kind}_source_index": points.reshape(-1, 1, 1) + 1, f"{source}_source_input": signal[None]}
        own = points % AXIAL * RADIAL + points // AXIAL
        given["sources"] = (MaskSource(source[-1], own, signal, "additive", 30),)
    if loss:
        data |= {"nonlinear_flag": 1, "BonA": 6.0, "absorbing_flag": 2, "alpha_coeff": 0.7, "alpha_power": 2.0}
        given |= {"BonA": 6.0, "absorption": Absorption(0.7, 2.0, stokes=True)}
    write_input(tmp_path / "in.h5", SHAPE, **data)
    found = run(tmp_path, "--p_raw", "--p_final", "--u_final", device=device)
    oracle, rows, peak = AxisymmetricOracle(problem_of(**given)), [], 0.0
    sensors = np.array([RADIAL * AXIAL // 2, 6, AXIAL + 2])  # `write_input` counts from one
    for t in range(STEPS):
        oracle.step(t)
        rows.append(oracle.p.T.ravel()[sensors])
        peak = max(peak, np.abs(oracle.p).max())
    assert np.abs(found["p"][0] - np.array(rows)).max() < 1e-5 * peak
    assert np.abs(found["p_final"][0].T - oracle.p).max() < 1e-5 * peak
    assert np.abs(found["uy_final"][0].T - oracle.u[1]).max() < 3e-5 * np.abs(oracle.u[1]).max()


def test_run_segments_give_the_bits_of_one_run(tmp_path):
    data: dict[str, Any] = {"axisymmetric_flag": 1, "c_ref": 1800.0, "p0_source_flag": 1, "p0_source_input": pulse()}
    write_input(tmp_path / "in.h5", SHAPE, **data, **medium())
    whole = run(tmp_path, *FLAGS)
    (tmp_path / "out.h5").unlink()
    for _ in range(3):
        found = run(tmp_path, *FLAGS, "--checkpoint_file", str(tmp_path / "state.h5"), "--checkpoint_timesteps", "15")
    assert found["p_max_all"].shape == SHAPE
    assert int(found["axisymmetric_flag"].item()) == 1
    for name, values in whole.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)


def test_cuboids_are_in_the_order_of_the_file(tmp_path):
    data: dict[str, Any] = {"axisymmetric_flag": 1, "p0_source_flag": 1, "p0_source_input": pulse()}
    corners = {
        "sensor_mask_type": 1,
        "sensor_mask_index": None,
        "sensor_mask_corners": np.array([[[3, 2, 1, 6, 4, 1]]]),
    }
    write_input(tmp_path / "in.h5", SHAPE, **data, **corners)
    arguments = ["-i", str(tmp_path / "in.h5"), "-o", str(tmp_path / "out.h5"), "--p_raw", "--p_final"]
    assert main(arguments, "kspaceFirstOrder-OMP", "cpu") == 0
    with h5py.File(tmp_path / "out.h5") as file:
        np.testing.assert_array_equal(file["p"]["1"][-1], file["p_final"][:, 1:4, 2:6])


def objects(power: float | None = None) -> tuple[SimpleNamespace, ...]:
    shape, spacing = (40, 24), 1e-4
    kgrid = SimpleNamespace(N=shape, spacing=(spacing,) * 2, dt=1e-8, Nt=60)
    mask = np.zeros(shape)
    mask[12, :9] = 1
    signal = np.sin(2 * np.pi * 2e6 * np.arange(40) * 1e-8)
    speed = np.full(shape, 1500.0)
    speed[20:] = 1600.0
    made = SimpleNamespace(sound_speed=speed, density=1000.0, alpha_coeff=0.5, alpha_power=power)
    sensor = SimpleNamespace(mask=np.array([[0.0, 5e-4], [0.0, 3.3e-4]]), record=["p", "u", "p_final"])
    return kgrid, made, SimpleNamespace(p_mask=mask, p=signal), sensor


@pytest.mark.parametrize(("symmetry", "outer_end"), [("WSWA", "pressure-release"), ("WSWS-FFT", "rigid")])
def test_objects_of_k_wave_python_give_the_results_of_the_same_arguments(symmetry, outer_end):
    kgrid, made, source, sensor = objects()
    found = kspaceFirstOrderAS(kgrid, made, source, sensor, radial_symmetry=symmetry, pml_size=8)
    grid = Grid(kgrid.N, kgrid.spacing, kgrid.dt, kgrid.Nt, symmetry="axisymmetric", outer_end=outer_end)
    expected = simulate(
        grid,
        Medium(made.sound_speed, 1000.0, alpha_coeff=0.5, alpha_mode="stokes"),
        Source(p_mask=source.p_mask, p=source.p),
        Sensor(positions=sensor.mask.T, record=("p", "u_non_staggered", "p_final")),
        pml_size=8,
        pml_inside=False,
        precision="float64",
    )
    np.testing.assert_array_equal(found["p"], expected["p"])
    np.testing.assert_array_equal(found["uy"], expected["uy_non_staggered"])
    np.testing.assert_array_equal(found["p_final"], expected["p_final"])
    assert np.abs(found["p"]).max() > 0.1


def test_final_fields_of_objects_exclude_the_layer_at_the_outer_end_only():
    found = kspaceFirstOrderAS(*objects(2.0), pml_size=(6, 5), pml_inside=True)
    assert found["p_final"].shape == (40 - 12, 24 - 5)


def test_automatic_layers_of_objects_have_fast_transforms():
    found = kspaceFirstOrderAS(*objects(2.0), pml_size="auto", pml_inside=False)
    assert found["p_final"].shape == (40, 24)


def test_other_exponents_are_replaced_with_a_warning_and_other_modes_refused():
    kgrid, made, source, sensor = objects(1.5)
    with pytest.warns(UserWarning, match="axisymmetric simulations of k-Wave use the exponent 2"):
        kspaceFirstOrderAS(kgrid, made, source, sensor, pml_size=8)
    made.alpha_mode = "no_dispersion"
    with pytest.raises(CaseError, match=r"medium\.alpha_mode: .no_dispersion.; axisymmetric simulations"):
        kspaceFirstOrderAS(kgrid, made, source, sensor, pml_size=8)
    with pytest.raises(CaseError, match="radial_symmetry: 'HSHS' is not WSWA, WSWS"):
        kspaceFirstOrderAS(kgrid, made, source, sensor, radial_symmetry="HSHS")
    with pytest.raises(CaseError, match="pml: is not an option of kspaceFirstOrder"):
        kspaceFirstOrderAS(kgrid, made, source, sensor, pml=3)
