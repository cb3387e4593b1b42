# SPDX-License-Identifier: BSD-3-Clause
"""Against k-wave-python where it is installed: its objects through the adapter, and Seiche as its executable."""

from __future__ import annotations

import importlib.util
import sys
import urllib.request
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seiche.ultrasound.kwave import kspaceFirstOrder as ours  # noqa: N813 (the same name there)

pytestmark = pytest.mark.skipif(importlib.util.find_spec("kwave") is None, reason="k-wave-python is not installed")
STEPS, DT = 60, 2e-8
PML: dict[str, Any] = {"pml_size": 4, "quiet": True}


@pytest.fixture(scope="module", autouse=True)
def package():
    """Import the package without the download of executables that it tries; some of its warnings are no concern."""

    def offline(url: str, *_: Any, **__: Any) -> None:
        raise TimeoutError(url)

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr(urllib.request, "urlretrieve", offline)
        import kwave  # noqa: F401

        yield


def problem(
    shape: tuple[int, ...], medium: str, source: str, mode: str = "additive", *, one_signal: bool = False
) -> tuple[Any, Any, Any, Any]:
    """Return the package's objects: two layers, a cube of pressure or signals at some points."""
    from kwave.kgrid import kWaveGrid
    from kwave.kmedium import kWaveMedium
    from kwave.ksensor import kSensor
    from kwave.ksource import kSource

    grid = kWaveGrid(list(shape), [1e-4] * len(shape))
    grid.setTime(STEPS, DT)
    speed, density = np.full(shape, 1500.0), np.full(shape, 1000.0)
    middle = slice(shape[0] // 3, 2 * shape[0] // 3)  # the same medium at both ends: its two writers differ there
    speed[middle], density[middle] = 1800.0, 1200.0
    media: dict[str, dict[str, Any]] = {
        "lossless": {},
        "stokes": {"alpha_coeff": 0.5, "alpha_power": 2.0},
        "power law": {"alpha_coeff": np.full(shape, 0.5), "alpha_power": 1.5},
        "nonlinear": {"alpha_coeff": np.full(shape, 0.5), "alpha_power": 1.4, "BonA": 6.0},
    }
    inputs = kSource()
    if source == "p0":
        pressure = np.zeros(shape)
        pressure[tuple(slice(n // 2 - 2, n // 2 + 3) for n in shape)] = 1e6
        inputs.p0 = pressure
    else:
        mask = np.zeros(shape)
        mask[tuple(slice(n // 3, n // 3 + 2) for n in shape)] = 1
        parts = np.random.default_rng(1).uniform(0.5, 1, (int(mask.sum()), 1))
        signal = np.sin(2 * np.pi * 3e6 * np.arange(30) * DT) * (1.0 if one_signal else parts)
        signal = np.atleast_2d(signal)
        if source == "p":
            inputs.p_mask, inputs.p, inputs.p_mode = mask, 1e5 * signal, mode
        else:
            inputs.u_mask, inputs.ux, inputs.u_mode = mask, signal, mode
    sensor = kSensor(mask=np.zeros(shape))
    sensor.mask[tuple(slice(1, None, 5) for _ in shape)] = 1
    sensor.record = ["p", "p_max", "p_final"]
    return grid, kWaveMedium(sound_speed=speed, density=density, **media[medium]), inputs, sensor


def reference_result(*objects: Any, **options: Any) -> dict[str, np.ndarray]:
    from kwave.kspaceFirstOrder import kspaceFirstOrder

    return kspaceFirstOrder(*objects, backend="python", **PML, **options)


def difference(found: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


@pytest.mark.parametrize("shape", [(33, 40), (20, 18, 15)], ids=["2D", "3D"])
@pytest.mark.parametrize("medium", ["lossless", "stokes", "power law", "nonlinear"])
@pytest.mark.parametrize("inside", [True, False], ids=["layer inside", "layer outside"])
def test_initial_pressure_agrees_to_a_millionth_in_single_precision(shape, medium, inside, device):
    objects = problem(shape, medium, "p0")
    expected = reference_result(*objects, pml_inside=inside)
    single = ours(*objects, pml_inside=inside, dtype="float32", device=device, **PML)
    double = ours(*objects, pml_inside=inside, device=device, **PML)
    peak = np.abs(expected["p"]).max()
    for name in ("p", "p_max", "p_final"):
        assert np.abs(double[name] - expected[name]).max() < 1e-11 * peak
        assert np.abs(single[name] - expected[name]).max() < 1e-6 * peak


@pytest.mark.parametrize("shape", [(33, 40), (20, 18, 15)], ids=["2D", "3D"])
@pytest.mark.parametrize("source", ["p", "u"])
@pytest.mark.parametrize("mode", ["dirichlet", "additive", "additive-no-correction"])
def test_sources_agree_in_every_mode(shape, source, mode, device):
    objects = problem(shape, "power law", source, mode)
    objects[3].mask = np.ones(shape)  # so that the peak is that of the field
    expected = reference_result(*objects, pml_inside=True)
    assert difference(ours(*objects, pml_inside=True, device=device, **PML)["p"], expected["p"]) < 1e-11
    single = ours(*objects, pml_inside=True, dtype="float32", device=device, **PML)
    assert difference(single["p"], expected["p"]) < 1e-5


@pytest.fixture
def executable(tmp_path: Path) -> Path:
    """Return a command like the one that is installed with the package Seiche."""
    path = tmp_path / "kspaceFirstOrder-OMP"
    code = f"import sys; sys.path[:0] = {sys.path!r}; from seiche.dropin.command import omp; omp()"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{code}" "$@"\n')
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("medium", ["lossless", "stokes", "nonlinear"])
@pytest.mark.parametrize("mode", ["dirichlet", "additive", "additive-no-correction"])
def test_legacy_route_drives_the_command_by_binary_path(medium, mode, executable, tmp_path):
    from kwave.kspaceFirstOrder3D import kspaceFirstOrder3D
    from kwave.options.simulation_execution_options import SimulationExecutionOptions
    from kwave.options.simulation_options import SimulationOptions

    # One signal: this route counts the points of several ones with the first axis fastest.
    objects = problem((24, 20, 18), medium, "p", mode, one_signal=True)
    expected = reference_result(*objects, pml_inside=True)["p"]
    grid, liquid, source, sensor = objects
    everywhere = type(sensor)(mask=np.ones(24 * 20 * 18).reshape(24, 20, 18))
    peak = np.abs(reference_result(grid, liquid, source, everywhere, pml_inside=True)["p"]).max()
    layer: dict[str, Any] = {"pml_size": 4, "pml_inside": True, "smooth_p0": False}
    execution = SimulationExecutionOptions(is_gpu_simulation=False, delete_data=False, show_sim_log=False)
    execution.binary_path = executable
    result = kspaceFirstOrder3D(
        kgrid=grid,
        medium=liquid,
        source=source,
        sensor=sensor,
        simulation_options=SimulationOptions(save_to_disk=True, data_path=str(tmp_path), **layer),
        execution_options=execution,
    )
    series = np.asarray(result["p"]).T
    mask = np.asarray(sensor.mask)
    order = np.argsort(
        np.ravel_multi_index(np.nonzero(mask), mask.shape, order="F")
    )  # files count the first axis first
    assert np.abs(series - expected[order]).max() < 1e-5 * peak


def test_unified_route_drives_the_command_by_binary_path(executable):
    from kwave.kspaceFirstOrder import kspaceFirstOrder

    objects = problem((24, 20, 18), "power law", "p0")
    expected = reference_result(*objects, pml_inside=True)["p"]
    objects[3].record = None
    result = np.asarray(
        kspaceFirstOrder(*objects, backend="cpp", binary_path=str(executable), pml_inside=True, **PML)["p"]
    )
    result = result if result.shape == expected.shape else result.T
    mask = np.asarray(objects[3].mask)
    order = np.argsort(np.ravel_multi_index(np.nonzero(mask), mask.shape, order="F"))
    assert min(difference(result, expected), difference(result, expected[order])) < 1e-6


def test_legacy_route_continues_from_checkpoints_and_passes_every_option(executable, tmp_path):
    """By folder and name in place of a path; intensities add records, and every call is one leg."""
    from kwave.kspaceFirstOrder3D import kspaceFirstOrder3D
    from kwave.options.simulation_execution_options import SimulationExecutionOptions
    from kwave.options.simulation_options import SimulationOptions

    def leg(name: str, **options: Any) -> dict[str, np.ndarray]:
        grid, medium, source, sensor = problem((24, 20, 18), "nonlinear", "p", one_signal=True)
        sensor.record = ["p", "p_max", "p_rms", "p_min_all", "p_final", "u", "u_max", "u_final", "I_avg"]
        sensor.record_start_index = 4
        result = kspaceFirstOrder3D(
            kgrid=grid,
            medium=medium,
            source=source,
            sensor=sensor,
            simulation_options=SimulationOptions(
                save_to_disk=True,
                data_path=str(tmp_path),
                input_filename=f"{name}_in.h5",
                output_filename=f"{name}_out.h5",
                pml_size=4,
                pml_inside=True,
                smooth_p0=False,
            ),
            execution_options=SimulationExecutionOptions(
                is_gpu_simulation=False,
                binary_dir=executable.parent,
                delete_data=False,
                show_sim_log=False,
                num_threads=1,
                device_num=0,
                **options,
            ),
        )
        return {key: np.asarray(value) for key, value in result.items()}

    full = leg("whole")
    assert {"p", "ux", "uy_max", "uz_final", "ux_non_staggered", "p_min_all"} <= set(full)
    options = {"checkpoint_file": tmp_path / "state.h5", "checkpoint_timesteps": 25, "verbose_level": 2}
    reached = []
    while not reached or reached[-1] < STEPS:
        result = leg("legs", **options)
        reached.append(int(result["t_index"]))
    assert reached == [25, 50, STEPS]
    assert set(result) == set(full)
    for key, values in full.items():
        np.testing.assert_array_equal(result[key], values, err_msg=key)


def test_unified_route_passes_threads_and_device_and_shows_why_it_fails(executable, tmp_path):
    import subprocess

    from kwave.kspaceFirstOrder import kspaceFirstOrder

    options: dict[str, Any] = {"backend": "cpp", "binary_path": str(executable), "pml_inside": True, "pml_size": 4}
    objects = problem((24, 20, 18), "lossless", "p0")
    objects[3].record = None
    plain = kspaceFirstOrder(*objects, quiet=True, **options)["p"]
    result = kspaceFirstOrder(*objects, debug=True, num_threads=1, device_num=0, data_path=str(tmp_path), **options)[
        "p"
    ]
    np.testing.assert_array_equal(result, plain)
    assert (tmp_path / "kwave_output.h5").exists()
    objects = problem((24, 20, 18), "power law", "p0")
    objects[1].alpha_power = 1.0
    with pytest.raises((subprocess.CalledProcessError, ValueError)) as caught:
        kspaceFirstOrder(*objects, quiet=True, **options)
    if isinstance(caught.value, subprocess.CalledProcessError):
        assert "alpha_power: 1 is too close to 1" in caught.value.stderr
