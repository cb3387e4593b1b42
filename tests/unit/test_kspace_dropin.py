# SPDX-License-Identifier: BSD-3-Clause
"""The stand-ins for kspaceFirstOrder-OMP and -CUDA: files in, files out, against NumPy; legs; the command line."""

from __future__ import annotations

import itertools
import sys
import warnings
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from kspace_oracle import Oracle
from kwave_files import staggered, write_input
from seiche.dropin.program import main
from seiche.ultrasound.problem import Absorption, MaskSource, Pml, Problem

MODES = ("dirichlet", "additive-no-correction", "additive")
STEPS = 40
SHAPES = [(1, 33, 40), (18, 21, 24)]


def ball(shape: tuple[int, ...]) -> np.ndarray:
    x = np.meshgrid(*[np.arange(n) - n // 2 for n in shape], indexing="ij")
    return 1e6 * np.exp(-sum(one * one for one in x) / (2 * 2.5**2))


def layers(shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    c0, rho0 = np.full(shape, 1500.0), np.full(shape, 1000.0)
    c0[..., shape[2] // 2 :], rho0[:, shape[1] // 3 :] = 1800.0, 1200.0
    return {"c0": c0, "rho0": rho0}


def run(folder: Path, *flags: str, device: str = "cpu", expect: int = 0) -> dict[str, Any]:
    """Run the stand-in on in.h5 and return what out.h5 holds."""
    out = folder / "out.h5"
    assert main(["-i", str(folder / "in.h5"), "-o", str(out), *flags], "kspaceFirstOrder-OMP", device) == expect
    return datasets_of(out) if expect == 0 else {}


def datasets_of(path: Path) -> dict[str, Any]:
    with h5py.File(path) as file:
        return {
            name: {key: one[key][()] for key in one} if isinstance(one, h5py.Group) else one[()]
            for name, one in file.items()
        }


def oracle_of(shape: tuple[int, int, int], medium: dict[str, Any], **more: Any) -> Oracle:
    """Return NumPy's solver of the problem that `write_input` writes, made by hand."""
    axes = ("z", "y", "x") if shape[0] > 1 else ("y", "x")
    grid = shape[-len(axes) :]
    field = {name: np.reshape(value, grid) if np.ndim(value) else value for name, value in medium.items()}
    rho0 = field.get("rho0", 1000.0)
    problem = Problem(
        axes=axes,
        shape=grid,
        spacing=(float(np.float32(1e-4)),) * len(axes),
        dt=float(np.float32(2e-8)),
        steps=STEPS,
        reference_speed=1800.0 if "c0" in field else 1500.0,
        sound_speed=field.get("c0", 1500.0),
        density=rho0,
        pml=(Pml(4, 2.0),) * len(axes),
        staggered_density=tuple(staggered(rho0, i) for i in range(len(axes))) if np.ndim(rho0) else None,
        **more,
    )
    return Oracle(problem)


def compare_at(oracle: Oracle, found: np.ndarray, points: np.ndarray, tolerance: float) -> None:
    """Compare a series (1, times, sensors) of the pressure with the oracle's, over its peak in the grid."""
    rows, peak = [], 0.0
    for t in range(STEPS):
        oracle.step(t)
        rows.append(oracle.p.ravel()[points])
        peak = max(peak, np.abs(oracle.p).max())
    assert found.shape == (1, STEPS, points.size)
    assert np.abs(found[0] - np.array(rows)).max() < tolerance * peak


@pytest.mark.parametrize("shape", SHAPES, ids=["2D", "3D"])
@pytest.mark.parametrize("loss", ["none", "stokes", "power law"])
@pytest.mark.parametrize("rough", [False, True], ids=["uniform", "layered, nonlinear"])
def test_initial_pressure_agrees_with_numpy(shape, loss, rough, tmp_path, device):
    medium: dict[str, Any] = layers(shape) if rough else {}
    data: dict[str, Any] = {"p0_source_flag": 1, "p0_source_input": ball(shape), **medium}
    more: dict[str, Any] = {"initial_pressure": ball(shape).reshape(shape[-2:] if shape[0] == 1 else shape)}
    if rough:
        data |= {"c_ref": 1800.0, "nonlinear_flag": 1, "BonA": 6.0}
        more["BonA"] = 6.0
    if loss != "none":
        y = 2.0 if loss == "stokes" else 1.5
        data |= {"absorbing_flag": 2 if loss == "stokes" else 1, "alpha_coeff": 0.7, "alpha_power": y}
        more["absorption"] = Absorption(0.7, y, loss == "stokes")
    points = np.array([int(np.prod(shape)) // 2, 6, shape[2] + 2])
    write_input(tmp_path / "in.h5", shape, **data)
    result = run(tmp_path, "--p_raw", device=device)
    compare_at(oracle_of(shape, medium, **more), result["p"], points, 1e-6)


@pytest.mark.parametrize("shape", SHAPES, ids=["2D", "3D"])
@pytest.mark.parametrize(
    ("quantity", "many", "mode"),
    [*itertools.product(["p", "ux", "uy"], [0, 1], [0, 1, 2]), ("transducer", 0, 0)],
)
def test_sources_agree_with_numpy(shape, quantity, many, mode, tmp_path, device):
    middle = int(np.prod(shape)) // 2
    points = np.array([middle, middle + 1, middle + 5, middle - shape[2]])
    count = 4 if many else 1
    signal = 1e-3 * np.sin(0.3 * np.arange(30))[:, None] * np.random.default_rng(2).uniform(0.5, 1, (1, count))
    medium = layers(shape)
    data: dict[str, Any] = {"c_ref": 1800.0, **medium}
    more: dict[str, Any] = {}
    if quantity == "transducer":
        delays = np.array([0, 3, 2, 4])
        data |= {"transducer_source_flag": 26, "u_source_index": points.reshape(1, 1, -1) + 1}
        data |= {"transducer_source_input": signal.reshape(1, 1, -1), "delay_mask": delays.reshape(-1, 1, 1) + 1}
        more["sources"] = (MaskSource("x", points, signal, MODES[1], 26, delays=delays),)
    else:
        kind = quantity[0]
        data |= {f"{quantity}_source_flag": 30, f"{kind}_source_mode": mode, f"{kind}_source_many": many}
        data |= {f"{kind}_source_index": points.reshape(-1, 1, 1) + 1, f"{quantity}_source_input": signal[None]}
        more["sources"] = (MaskSource(quantity[-1], points, signal, MODES[mode], 30),)
    write_input(tmp_path / "in.h5", shape, **data)
    result = run(tmp_path, device=device)
    sensor = np.array([middle, 6, shape[2] + 2])
    compare_at(oracle_of(shape, medium, **more), result["p"], sensor, 1e-5)


ALL_FLAGS = [f"--{q}_{kind}" for q in "pu" for kind in ("raw", "rms", "max", "min", "max_all", "min_all", "final")]


def test_every_record_has_the_name_and_shape_of_the_format(tmp_path):
    shape = (6, 7, 8)
    pml = {f"pml_{axis}_size": 1 for axis in "xyz"}
    write_input(tmp_path / "in.h5", shape, p0_source_flag=1, p0_source_input=ball(shape), **pml)
    result = run(tmp_path, *ALL_FLAGS, "--u_non_staggered_raw", "-s", "11", "--copy_sensor_mask", "-c", "3")
    for name in ("p", "ux", "uy", "uz"):
        assert result[name].shape == (1, 30, 3)
        assert all(result[f"{name}_{kind}"].shape == (1, 1, 3) for kind in ("rms", "max", "min"))
        assert all(result[f"{name}_{kind}"].shape == shape for kind in ("max_all", "min_all", "final"))
        np.testing.assert_array_equal(result[f"{name}_max"], result[name].max(1, keepdims=True))
        np.testing.assert_allclose(
            result[f"{name}_rms"], np.sqrt((result[name].astype(float) ** 2).mean(1, keepdims=True)), rtol=1e-5
        )
    assert result["uz_non_staggered"].shape == (1, 30, 3)
    at = np.array([6 * 7 * 8 // 2, 6, 10])
    np.testing.assert_array_equal(result["p_final"].ravel()[at], result["p"][0, -1])
    np.testing.assert_array_equal(result["sensor_mask_index"].ravel(), at + 1)
    assert [int(result[name].item()) for name in ("Nx", "Ny", "Nz", "Nt", "t_index")] == [8, 7, 6, 40, 40]
    for name in ("pml_x_size", "axisymmetric_flag", "c_ref", "dt", "dx", "p0_source_flag", "sensor_mask_type"):
        assert result[name].shape == (1, 1, 1)
    with h5py.File(tmp_path / "out.h5") as file:
        texts = {name: value.decode() for name, value in file.attrs.items()}
        assert file["p"].attrs["data_type"] == b"float" and file["Nx"].attrs["data_type"] == b"long"
        assert file["p"].chunks == (1, 1, 3) and file["p"].compression_opts == 3
    assert (texts["file_type"], texts["major_version"], texts["minor_version"]) == ("output", "1", "2")
    assert texts["file_description"] == "a test"
    assert texts["total_execution_time"].endswith("s") and texts["total_memory_in_use"].endswith(" MB")


def test_cuboids_are_groups_with_the_points_of_an_index_mask(tmp_path):
    shape = (8, 9, 10)
    data: dict[str, Any] = {"p0_source_flag": 1, "p0_source_input": ball(shape)}
    pml = {f"pml_{axis}_size": 2 for axis in "xyz"}
    everywhere = np.arange(1, 721).reshape(1, 1, -1)
    write_input(tmp_path / "in.h5", shape, sensor_mask_index=everywhere, **data, **pml)
    full = run(tmp_path, "--p_raw", "--u_max")
    corners = np.array([[[2, 3, 1, 6, 7, 4], [10, 9, 8, 10, 9, 8]]])
    mask = {"sensor_mask_type": 1, "sensor_mask_index": None, "sensor_mask_corners": corners}
    write_input(tmp_path / "in.h5", shape, **mask, **data, **pml)
    result = run(tmp_path, "--p_raw", "--u_max")
    series = full["p"].reshape(STEPS, *shape)
    np.testing.assert_array_equal(result["p"]["1"], series[:, 0:4, 2:7, 1:6])
    np.testing.assert_array_equal(result["p"]["2"], series[:, 7:8, 8:9, 9:10])
    np.testing.assert_array_equal(result["ux_max"]["1"], full["ux_max"].reshape(shape)[0:4, 2:7, 1:6])


def test_run_segments_between_checkpoints_give_results_bitwise_equal_to_one_run(tmp_path):
    shape = (1, 20, 24)
    signal = np.sin(0.3 * np.arange(25)).reshape(1, -1, 1)
    data: dict[str, Any] = {"p_source_flag": 25, "p_source_mode": 2, "p_source_many": 0, "p_source_input": signal}
    data |= {"p_source_index": np.array([[[200]]]), "absorbing_flag": 1, "alpha_coeff": 0.5, "alpha_power": 1.5}
    write_input(tmp_path / "in.h5", shape, **data)
    flags = (*ALL_FLAGS, "-s", "6")
    full = run(tmp_path, *flags)
    (tmp_path / "out.h5").unlink()
    state = tmp_path / "state.h5"
    for leg in range(3):
        assert state.exists() == (leg > 0)
        # The same numbers once more, in another file of that name.
        write_input(tmp_path / "in.h5", shape, **data)
        result = run(tmp_path, *flags, "--checkpoint_file", str(state), "--checkpoint_timesteps", "15")
        assert int(result["t_index"].item()) == min(STEPS, 15 * (leg + 1))
    assert not state.exists()
    for name, values in full.items():
        np.testing.assert_array_equal(result[name], values, err_msg=name)


def test_a_run_segment_ends_after_its_seconds(tmp_path):
    write_input(tmp_path / "in.h5", (1, 20, 24), Nt=10_000_000, p0_source_flag=1, p0_source_input=ball((1, 20, 24)))
    state = tmp_path / "state.h5"
    result = run(tmp_path, "--p_final", "--checkpoint_file", str(state), "--checkpoint_interval", "1")
    assert state.exists()
    assert 0 < int(result["t_index"].item()) < 10_000_000
    with h5py.File(state) as file:
        assert set(file) == {"Nx", "Ny", "Nz", "t_index", "p", "ux_sgx", "uy_sgy", "rhox", "rhoy"}
        assert file["p"].shape == (1, 20, 24) and file.attrs["file_type"] == b"checkpoint"


def test_benchmark_runs_fewer_steps_and_progress_is_printed(tmp_path, capsys):
    write_input(tmp_path / "in.h5", (1, 20, 24), p0_source_flag=1, p0_source_input=ball((1, 20, 24)))
    result = run(tmp_path, "--benchmark", "10", "-r", "50", "-t", "1")
    assert result["p"].shape == (1, 10, 3)
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["50.0", "100.0"]


def test_help_and_version_leave_with_status_0(capsys):
    assert main(["--help"], "kspaceFirstOrder-OMP", "cpu") == 0
    assert "--checkpoint_interval" in capsys.readouterr().out
    assert main(["--vers"], "kspaceFirstOrder-CUDA", "cuda") == 0
    assert "file format 1.2" in capsys.readouterr().out


def test_k_wave_python_agrees(monkeypatch):
    """Its own NumPy solver, where it is installed, on a layered, absorbing, nonlinear problem."""

    def refuse(url, *rest):
        raise TimeoutError(url)  # its import requests executables from the network; it handles this error

    monkeypatch.setattr("urllib.request.urlretrieve", refuse)
    pytest.importorskip("kwave")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from kwave.kgrid import kWaveGrid
        from kwave.kmedium import kWaveMedium
        from kwave.ksensor import kSensor
        from kwave.ksource import kSource
        from kwave.kspaceFirstOrder import kspaceFirstOrder

        from seiche import ultrasound

        shape, steps, step = (30, 25, 24), 60, 1.5e-8
        speed, density = np.full(shape, 1500.0), np.full(shape, 1000.0)
        speed[16:], density[16:] = 1800.0, 1200.0
        p0 = ball(shape)
        mask = np.zeros(shape, bool)
        mask[20, 5:20, 8] = True
        pml = {"pml_size": 5, "pml_inside": True, "smooth_p0": False}
        grid = kWaveGrid(list(shape), [1e-4] * 3)
        grid.setTime(steps, step)
        medium = kWaveMedium(sound_speed=speed, density=density, alpha_coeff=0.7, alpha_power=1.5, BonA=6.0)
        for mode in ("p0", "additive", "additive-no-correction", "dirichlet"):
            source, wave = kSource(), 1e6 * np.sin(2 * np.pi * 1e6 * np.arange(steps) * step)
            arguments: dict[str, Any] = {"p0": p0}
            source_mask = np.zeros(shape, bool)
            source_mask[7, 8:16, 8:16] = True
            if mode == "p0":
                source.p0 = p0
            else:
                source.p_mask, source.p, source.p_mode = source_mask.astype(float), wave[None], mode
                arguments = {"p_mask": source_mask, "p": wave, "p_mode": mode}
            reference = kspaceFirstOrder(grid, medium, source, kSensor(mask=mask.astype(float)), quiet=True, **pml)["p"]
            ours = ultrasound.simulate(
                ultrasound.Grid(shape, 1e-4, step, steps),
                ultrasound.Medium(speed, density, BonA=6.0, alpha_coeff=0.7, alpha_power=1.5),
                ultrasound.Source(**arguments),
                ultrasound.Sensor(mask),
                **pml,
            )["p"]
            assert np.abs(ours - reference).max() < (1e-6 if mode == "p0" else 1e-5) * np.abs(reference).max(), mode
