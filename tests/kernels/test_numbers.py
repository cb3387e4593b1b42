# SPDX-License-Identifier: BSD-3-Clause
"""The arithmetic under the kernels: 16-bit storage, log2, exp2 and pow, and the sizes of argument structs.

Halves are compared through real kernels; the elementary functions through a small library that the test compiles from
the same headers, where there is a compiler.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import seiche.kernels
from seiche.backend import Backend, open_backend
from seiche.backend.arrays import argument_dtype
from seiche.flow.velocity_set import VELOCITY_SETS
from seiche.kernels.registry import KernelSpec
from seiche.kernels.registry import flow as registry

HEADERS = Path(seiche.kernels.__file__).parent

SOURCE = """
#include "flow/relaxation.hpp"
using namespace seiche;
#define EACH(name, T, body) extern "C" void name(const T* x, const T* y, T* z, long n) { \\
  for (long i = 0; i < n; ++i) { const T a = x[i], b = y[i]; (void)b; z[i] = body; } }
EACH(log2_float64, double, log2_positive(a))
EACH(exp2_float64, double, exp2_clamped(a))
EACH(pow_float64, double, pow_positive(a, b))
EACH(log2_float32, float, log2_positive(a))
EACH(exp2_float32, float, exp2_clamped(a))
EACH(pow_float32, float, pow_positive(a, b))
extern "C" void to_half(const float* x, u16* h, long n) { for (long i = 0; i < n; ++i) h[i] = float_to_half(x[i]); }
template <class Set> void write_directions(int* c, double* w) {
  for (int q = 0; q < Set::Q; ++q) {
    c[3 * q] = Set::cx(q); c[3 * q + 1] = Set::cy(q); c[3 * q + 2] = Set::cz(q); w[q] = Set::weight(q);
  }
}
extern "C" void directions_D3Q15(int* c, double* w) { write_directions<D3Q15>(c, w); }
extern "C" void directions_D3Q19(int* c, double* w) { write_directions<D3Q19>(c, w); }
extern "C" void directions_D3Q27(int* c, double* w) { write_directions<D3Q27>(c, w); }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp("numbers")
    (folder / "numbers.cpp").write_text(SOURCE)
    target = folder / "numbers.so"
    flags = ["-std=c++20", "-O2", "-ffp-contract=off", "-shared", "-fPIC", f"-I{HEADERS}"]
    subprocess.run([compiler, *flags, str(folder / "numbers.cpp"), "-o", str(target)], check=True, timeout=120)
    return ctypes.CDLL(str(target))


Values = npt.NDArray[np.floating]


def caller(library: ctypes.CDLL, name: str) -> Callable[[Values, Values], Values]:
    def call(x: Values, y: Values) -> Values:
        z = np.empty_like(x)
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (x, np.ascontiguousarray(y, x.dtype), z)]
        getattr(library, f"{name}_{x.dtype}")(*pointers, ctypes.c_long(len(x)))
        return z

    return call


def wide(values: Values) -> npt.NDArray[np.longdouble]:
    return values.astype(np.longdouble)


@pytest.mark.parametrize("real", ["float64", "float32"])
def test_log2_and_exp2_are_as_exact_as_the_header_says(library: ctypes.CDLL, real: str):
    bound = 4e-16 if real == "float64" else 3e-7
    random = np.random.default_rng(3)
    x = np.concatenate([10 ** random.uniform(-30, 30, 200_000), random.uniform(0.5, 2.0, 200_000)]).astype(real)
    exact = np.log2(wide(x))
    assert np.all(np.abs(caller(library, "log2")(x, x) - exact) <= bound * np.abs(exact))
    y = random.uniform(-100, 100, 400_000).astype(real)
    exact = np.exp2(wide(y))
    assert np.max(np.abs(caller(library, "exp2")(y, y) / exact - 1)) < bound


@pytest.mark.parametrize("real", ["float64", "float32"])
def test_pow_is_as_exact_as_its_exponent_allows(library: ctypes.CDLL, real: str):
    """The rounding of y log2 x to the last place is an error of ln 2 |y log2 x| places of x^y."""
    unit = np.finfo(real).eps
    random = np.random.default_rng(4)
    x, y = (10 ** random.uniform(-12, 12, 400_000)).astype(real), random.uniform(-2.5, 2.5, 400_000).astype(real)
    exact = wide(x) ** wide(y)
    error = np.abs(caller(library, "pow")(x, y) / exact - 1)
    power = np.abs(wide(y) * np.log2(wide(x)))
    assert np.all(error < unit * (1 + power))


@pytest.mark.parametrize("real", ["float64", "float32"])
def test_elementary_functions_at_their_ends(library: ctypes.CDLL, real: str):
    ends = np.finfo(real)
    pow_, exp2 = caller(library, "pow"), caller(library, "exp2")
    one = np.ones(4, real)
    np.testing.assert_array_equal(pow_(one, np.array([-3, 0, 0.64, 100], real)), one)
    assert pow_(np.zeros(1, real), np.array([0.64], real))[0] < (1e-190 if real == "float64" else 1e-23)
    assert exp2(np.array([-1e30], real), one[:1])[0] == ends.tiny
    assert np.isfinite(exp2(np.array([1e30], real), one[:1])[0])
    np.testing.assert_array_equal(exp2(np.array([-2, 0, 1, 10], real), one), np.array([0.25, 1, 2, 1024], real))


@pytest.mark.parametrize("name", VELOCITY_SETS)
def test_directions_and_weights_of_the_header_are_those_of_python(library: ctypes.CDLL, name: str):
    velocity_set = VELOCITY_SETS[name]
    vectors, weights = np.zeros((velocity_set.Q, 3), np.int32), np.zeros(velocity_set.Q)
    write = getattr(library, f"directions_{name}")
    write(ctypes.c_void_p(vectors.ctypes.data), ctypes.c_void_p(weights.ctypes.data))
    np.testing.assert_array_equal(vectors, velocity_set.vectors)
    np.testing.assert_array_equal(weights, velocity_set.weights)


def test_rounding_to_half_is_that_of_numpy(library: ctypes.CDLL):
    random = np.random.default_rng(6)
    every = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)
    finite = every[np.isfinite(every)]
    between = 0.5 * (finite[:-1] + finite[1:])
    ties = np.concatenate([between, np.nextafter(between, np.float32(np.inf)), np.nextafter(between, np.float32(0))])
    bits = random.integers(0, 1 << 32, 1_000_000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    x = np.ascontiguousarray(np.concatenate([every, ties, bits]))
    half = np.empty(len(x), np.uint16)
    library.to_half(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(half.ctypes.data), ctypes.c_long(len(x)))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(half.view(np.float16), x.astype(np.float16))
        signs = ~np.isnan(x)
        np.testing.assert_array_equal(half[signs], x[signs].astype(np.float16).view(np.uint16))


def run_in_place(backend: Backend, spec: KernelSpec, f: Values, **members: object) -> Values:
    """Run `spec` on populations f (19, n), each site on its own slots."""
    kernel, count = backend.load(spec), f.shape[1]
    array = backend.upload(np.ascontiguousarray(f))
    layout = {"f": array, "adjacency": None, "stride": count}
    kernel.bind(backend.pack(kernel, layout=layout, **members), 0, count)()
    return backend.download(array)


@pytest.mark.parametrize("real", ["float64", "float32"])
def test_every_half_is_read_as_its_value(device: str, real: str):
    backend = open_backend(device)
    every = np.arange(65536, dtype=np.uint16).view(np.float16)
    f = np.zeros((19, 65536), np.float16)
    f[0] = every
    sites, out = backend.upload(np.arange(65536)), backend.zeros(11 * 65536, real)
    run_in_place(
        backend,
        registry.observe("list-aa-even", real, "float16", "constant"),
        f,
        relaxation={"even": 1.0, "odd": 1.0},
        force={"g": (0.0, 0.0, 0.0)},
        sites=sites,
        out=out,
        stride=65536,
    )
    finite = np.isfinite(every)
    read = backend.download(out)[:65536]
    np.testing.assert_array_equal(read[finite], every[finite].astype(real) / 32768)
    assert not np.isfinite(read[~finite]).any()


@pytest.mark.parametrize("real", ["float64", "float32"])
def test_halves_store_what_wide_storage_stores_rounded_to_nearest_even(device: str, real: str):
    """The same collision from the same state, stored in full and half precision: only the last rounding may differ."""
    backend = open_backend(device)
    random = np.random.default_rng(8)
    scale = 10.0 ** random.uniform(-9, -0.5, 40_000)
    f = (random.standard_normal((19, 40_000)) * scale * 32768 * 0.2).astype(np.float16)
    rates = {"relaxation": {"even": 1.3, "odd": 0.9}, "force": {}}
    full = run_in_place(
        backend,
        registry.stream_collide("list-aa-even", real, real, "constant", "none"),
        f.astype(real) / 32768,
        **rates,
    )
    halves = run_in_place(
        backend, registry.stream_collide("list-aa-even", real, "float16", "constant", "none"), f, **rates
    )
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(halves, (full.astype(np.float32) * np.float32(32768)).astype(np.float16))
    assert len(np.unique(halves.view(np.uint16))) > 20_000


def test_argument_structs_have_the_size_that_cpp_gives_them():
    backend = open_backend("cpu", 1)
    for spec in registry.built_kernels():
        kernel = backend.load(spec)  # raises when sizes differ
        assert kernel.dtype == argument_dtype(spec.members)
        assert kernel.dtype.itemsize % kernel.dtype.alignment == 0
