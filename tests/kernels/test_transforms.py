# SPDX-License-Identifier: BSD-3-Clause
"""Real transforms in place against NumPy, for each library that is installed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest

from seiche.backend import open_backend, pocketfft
from seiche.backend import transforms as transforms_module
from seiche.backend.transforms import FftwTransforms, ScipyTransforms, cpu_transforms
from seiche.backend.wide_transforms import WideTransforms, wide_kernels
from seiche.case.loading import load
from seiche.errors import BackendUnavailable, KernelCompileError
from seiche.ultrasound import Grid, Medium, Sensor, Source, simulate
from ultrasound_cases import BASIC, case

SHAPES = [(1, 1, 30), (1, 12, 15), (6, 7, 8), (5, 4, 9), (4, 1, 6)]


def check(transforms, backend, shape: tuple[int, int, int], real: str) -> None:
    fields = np.random.default_rng(1).standard_normal((2, *shape)).astype(real)
    tolerance = {"float32": 3e-6, "float64": 1e-14}[real]
    expected = np.fft.rfftn(fields.astype(float), axes=(1, 2, 3))
    source = backend.zeros(fields.shape, real)
    spectrum = backend.zeros((2, *transforms.spectrum_shape), transforms.complex)
    forward, inverse = transforms.forward(source, spectrum), transforms.inverse(spectrum)
    second = transforms.forward(None, spectrum)
    backend.assign(source, fields)
    for transform in (forward, second):
        transform()
        assert np.abs(backend.download(spectrum) - expected).max() < tolerance * np.abs(expected).max()
        inverse()
        padded = backend.download(spectrum).view(real)[..., : shape[2]]
        assert np.abs(padded / np.prod(shape) - fields).max() < tolerance
        # The reals as they are, scaled back, are what the transform in place starts from.
        backend.assign(spectrum, backend.download(spectrum) * np.array(1 / np.prod(shape), real))


@pytest.mark.parametrize("real", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("library", ["scipy", "fftw"])
def test_cpu_libraries_transform_as_numpy_does(library, shape, real, tmp_path, monkeypatch):
    monkeypatch.setenv("SEICHE_CACHE", str(tmp_path))
    if library == "fftw":
        pytest.importorskip("pyfftw")
    kind = FftwTransforms if library == "fftw" else ScipyTransforms
    check(kind(shape, real, 2), open_backend("cpu", 2), shape, real)


@pytest.mark.parametrize("real", ["float32", "float64"])
@pytest.mark.parametrize("shape", [*SHAPES, (33, 64, 45)], ids=str)
def test_the_extension_module_of_scipy_gives_the_bits_of_its_public_functions(shape, real):
    assert isinstance(pocketfft.pocketfft(), pocketfft.ExtensionPocketfft)
    results = []
    for library in (pocketfft.pocketfft(), pocketfft.PublicPocketfft()):
        transforms = ScipyTransforms(shape, real, 2)
        transforms._pocketfft = library
        fields = np.random.default_rng(1).standard_normal((2, *shape)).astype(real)
        spectrum = np.zeros((2, *transforms.spectrum_shape), transforms.complex)
        transforms.forward(fields, spectrum)()
        results.append([spectrum.copy()])
        transforms.inverse(spectrum)()
        results[-1].append(spectrum)
        columns = results[-1][0].reshape(-1, transforms.half).copy()
        transforms.columns(columns, inverse=True)()
        results[-1].append(columns)
    for mine, public in zip(*results, strict=True):
        np.testing.assert_array_equal(mine.view(real), public.view(real))


def test_transforms_do_not_import_the_package_of_scipy(tmp_path):
    code = "import sys; from seiche.backend.transforms import ScipyTransforms; ScipyTransforms((4, 4, 4), 'float32', 1)"
    subprocess.run([sys.executable, "-c", f"{code}; assert 'scipy.fft' not in sys.modules"], check=True)


def test_another_scipy_is_used_by_its_public_functions(tmp_path, monkeypatch):
    """Without the extension module, or if it takes other arguments."""
    assert pocketfft._working(tmp_path / "absent.so") is None
    other = tmp_path / "other.py"
    other.write_text("def r2c(values):\n    return values\n")
    assert pocketfft._working(other) is None
    monkeypatch.setattr(pocketfft, "_extension", lambda: None)
    assert isinstance(pocketfft.pocketfft.__wrapped__(), pocketfft.PublicPocketfft)


LINES = [(1, 12, 15), (6, 7, 8), (5, 1, 49), (11, 26, 34), (9, 7, 66), (5, 6, 37), (1, 97, 61), (1, 271, 34)]


@pytest.mark.parametrize("real", ["float32", "float64"])
@pytest.mark.parametrize("shape", LINES, ids=str)
def test_lines_in_vectors_are_transformed_as_numpy_does(shape, real):
    """Batches that are full, or of several blocks, odd lengths, rows shorter than a vector, small and large primes."""
    backend, kernels = open_backend("cpu", 2), wide_kernels(shape, real)
    assert kernels is not None
    check(WideTransforms(backend, ScipyTransforms(shape, real, 2), kernels), backend, shape, real)


@pytest.mark.parametrize("real", ["float32", "float64"])
def test_rows_of_a_field_do_not_feel_those_of_another_in_vectors(real):
    """Rows of two fields, twelve of each: a batch would hold all; the second field is far smaller."""
    shape, backend = (1, 12, 15), open_backend("cpu", 2)
    transforms = WideTransforms(backend, ScipyTransforms(shape, real, 2), wide_kernels(shape, real) or {})
    fields = np.random.default_rng(3).standard_normal((2, *shape)) * np.array([1.0, 1e-9]).reshape(2, 1, 1, 1)
    spectrum = backend.zeros((2, *transforms.spectrum_shape), transforms.complex)
    transforms.forward(backend.upload(fields.astype(real)), spectrum)()
    exact = np.fft.rfftn(fields.astype(real).astype(float)[1], axes=(1, 2))
    assert np.abs(spectrum[1] - exact).max() < {"float32": 3e-6, "float64": 1e-14}[real] * np.abs(exact).max()
    transforms.inverse(spectrum)()
    result = spectrum.view(real)[1, ..., :15] / 180
    assert np.abs(result - fields[1]).max() < {"float32": 3e-15, "float64": 1e-23}[real]


def test_large_grids_have_lines_in_vectors_unless_a_library_is_named(monkeypatch):
    backend = open_backend("cpu", 2)
    monkeypatch.delenv("SEICHE_FFT", raising=False)
    assert isinstance(backend.transforms((64, 64, 64), "float32"), WideTransforms)
    assert not isinstance(backend.transforms((32, 32, 32), "float32"), WideTransforms)  # too few points
    assert isinstance(backend.transforms((1, 271, 173), "float32"), WideTransforms)  # slow in libraries
    assert not isinstance(backend.transforms((1, 257, 64), "float32"), WideTransforms)  # too few points
    assert not isinstance(backend.transforms((64, 307, 64), "float32"), WideTransforms)  # too large a prime
    assert not isinstance(backend.transforms((1, 1, 1 << 18), "float32"), WideTransforms)
    monkeypatch.setenv("SEICHE_FFT", "scipy")
    assert isinstance(backend.transforms((64, 64, 64), "float32"), ScipyTransforms)


def test_without_a_compiler_a_library_transforms_with_one_note(monkeypatch):
    def missing(*_: object) -> None:
        raise BackendUnavailable("no compiler:\nlog")

    monkeypatch.delenv("SEICHE_FFT", raising=False)
    monkeypatch.setattr(WideTransforms, "__init__", missing)
    backend = open_backend("cpu", 2)
    library = backend.transforms((64, 64, 64), "float32")
    assert not isinstance(library, WideTransforms)
    backend.transforms((64, 64, 64), "float32")
    backend.transforms((32, 32, 32), "float32")  # too few points for kernels
    assert backend.notes == (
        f"{library.name} transforms 64 x 64 x 64 points, slower than kernels, which did not compile: no compiler: log",
    )
    assert open_backend("cpu", 2).notes == ()


def test_a_run_states_why_a_library_transforms(monkeypatch, tmp_path):
    def failing(*_: object) -> None:
        raise KernelCompileError("no memory")

    monkeypatch.delenv("SEICHE_FFT", raising=False)
    monkeypatch.setattr(WideTransforms, "__init__", failing)
    grid, pressure = Grid((271, 173), 1e-3, 1e-7, 2), np.zeros((271, 173))
    pressure[100, 80] = 1.0
    with pytest.warns(UserWarning, match=r"transforms 271 x 173 points, slower than kernels, .* compile: no memory"):
        simulate(grid, Medium(1500.0, 1000.0), Source(p0=pressure), Sensor(mask=pressure > 0, record=("p",)))
    with load(case(tmp_path, BASIC.replace("[48, 40]", "[271, 173]"))) as simulation:
        notes = simulation.solver.backend.notes
        assert [note for note in simulation.notes() if "did not compile" in note] == list(notes)
        assert len(notes) == 1


@pytest.mark.parametrize("real", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_backend_transforms_as_numpy_does(shape, real, device):
    backend = open_backend(device)
    check(backend.transforms(shape, real), backend, shape, real)


@pytest.mark.parametrize("real", ["float32", "float64"])
def test_columns_are_transformed_as_numpy_does(real, device):
    check_columns(open_backend(device).transforms((1, 4, 6), real), open_backend(device))


@pytest.mark.parametrize("library", ["scipy", "fftw"])
def test_cpu_libraries_transform_columns(library, tmp_path, monkeypatch):
    monkeypatch.setenv("SEICHE_CACHE", str(tmp_path))
    if library == "fftw":
        pytest.importorskip("pyfftw")
    kind = FftwTransforms if library == "fftw" else ScipyTransforms
    check_columns(kind((1, 4, 6), "float64", 2), open_backend("cpu", 2))


def check_columns(transforms, backend) -> None:
    values = np.random.default_rng(2).standard_normal((9, 5, 2)) @ np.array([1.0, 1j])
    array = backend.zeros(values.shape, transforms.complex)
    forward, back = (transforms.columns(array, inverse=way) for way in (False, True))
    backend.assign(array, values.astype(transforms.complex))
    tolerance = 1e-5 if transforms.real == np.float32 else 1e-13
    forward()
    assert np.abs(backend.download(array) - np.fft.fft(values, axis=0)).max() < tolerance
    back()
    assert np.abs(backend.download(array) / 9 - values).max() < tolerance


#: Counts the threads of a process after a kernel ran with two of them, and after a transform did.
THREADS = """
import os
import numpy as np
from seiche.backend import open_backend, pocketfft
from seiche.backend.transforms import FftwTransforms

backend = open_backend("cpu", 2)
backend.copy_times(lambda: None)
transforms = FftwTransforms((64, 64, 64), "float32", 2)
before = len(os.listdir("/proc/self/task"))
spectrum = backend.zeros((1, *transforms.spectrum_shape), "complex64")
transforms.forward(None, spectrum)()
print(len(os.listdir("/proc/self/task")) - before)
"""


def test_transforms_of_fftw_take_the_threads_of_the_kernels(tmp_path):
    pytest.importorskip("pyfftw")  # optional: seiche[fftw]
    environment = {**os.environ, "SEICHE_CACHE": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run(
        [sys.executable, "-c", THREADS], env=environment, capture_output=True, text=True, check=True
    )
    assert result.stdout == "0\n"


def test_plans_can_be_sought_patiently(tmp_path, monkeypatch):
    pytest.importorskip("pyfftw")  # optional: seiche[fftw]
    monkeypatch.setenv("SEICHE_CACHE", str(tmp_path))
    monkeypatch.setenv("SEICHE_FFT", "fftw-patient")
    transforms = cpu_transforms((6, 7, 8), "float32", 2)
    assert (transforms.name, transforms.effort) == ("FFTW", "FFTW_PATIENT")
    check(transforms, open_backend("cpu", 2), (6, 7, 8), "float32")


@pytest.mark.parametrize(
    ("shape", "setting", "name"),
    [
        ((1, 64, 60), "", "FFTW"),
        ((11, 26, 88), "", "FFTW"),
        ((61, 64, 64), "", "SciPy pocketfft"),
        ((1, 271, 173), "", "SciPy pocketfft"),
        ((1, 19 * 23, 64), "", "SciPy pocketfft"),
        ((61, 64, 64), "fftw", "FFTW"),
        ((64, 64, 64), "scipy", "SciPy pocketfft"),
    ],
)
def test_fftw_is_not_chosen_for_extents_at_which_it_is_slower(shape, setting, name, monkeypatch):
    class Fftw(ScipyTransforms):
        def __init__(self, shape, real, threads, effort):
            super().__init__(shape, real, threads)
            self.name = "FFTW"

    monkeypatch.setattr(transforms_module, "FftwTransforms", Fftw)
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name if name == "pyfftw" else find(name))
    monkeypatch.setenv("SEICHE_FFT", setting)
    assert cpu_transforms(shape, "float32", 1).name == name


def test_library_can_be_chosen(monkeypatch):
    monkeypatch.setenv("SEICHE_FFT", "scipy")
    assert cpu_transforms((4, 4, 4), "float32", 1).name == "SciPy pocketfft"


def test_fftw_keeps_what_it_learnt_and_does_without_a_folder(tmp_path, monkeypatch):
    pytest.importorskip("pyfftw")
    monkeypatch.setenv("SEICHE_CACHE", str(tmp_path / "kept"))
    backend, shape = open_backend("cpu", 1), (4, 6, 8)
    check(FftwTransforms(shape, "float32", 1), backend, shape, "float32")
    (wisdom,) = (tmp_path / "kept").iterdir()
    wisdom.write_bytes(b"no wisdom")
    check(FftwTransforms(shape, "float32", 1), backend, shape, "float32")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SEICHE_CACHE", str(tmp_path / "file" / "none"))
    check(FftwTransforms(shape, "float32", 1), backend, shape, "float32")
