# SPDX-License-Identifier: BSD-3-Clause
"""CPU kernels that are not in the table: compiled on first use, cached, equal to its kernels, rejected in one line."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from seiche.backend import host_compiler, open_backend
from seiche.backend.cache import cached_kernel
from seiche.backend.cpu import CpuKernel, _compiled_row, _table
from seiche.errors import BackendUnavailable, KernelCompileError
from seiche.kernels.registry import KernelSpec
from seiche.kernels.registry import flow as registry

ROOT = Path(__file__).resolve().parents[2]
SWEEP = registry.stream_collide("list-aa-even", "float64", "float64", "carreau-yasuda", "uniform")
OTHER = registry.stream_collide("list-aa-even", "float64", "float64", "constant", "none", velocity_set="D3Q15")

needs_compiler = pytest.mark.skipif(host_compiler.find_compiler() is None, reason="no C++ compiler")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEICHE_CACHE", str(tmp_path / "kernels"))
    _compiled_row.cache_clear()
    return tmp_path / "kernels"


def test_options_are_those_of_the_build():
    text = (ROOT / "CMakeLists.txt").read_text()
    private = re.findall(r"target_compile_options\(\$\{target\} PRIVATE ([^)]*)\)", text)
    options = " ".join(private).replace("${level}", "x86-64-v4").replace("${optimisation}", "-O3").split()
    assert set(options) <= set(host_compiler.flags_of("x86-64-v4"))
    for words in ("CXX_STANDARD 20", "OpenMP::OpenMP_CXX", "-static-libstdc++", "CXX_VISIBILITY_PRESET hidden"):
        assert words in text
    # What CMake adds to those: the standard, a release build, a shared library and OpenMP.
    assert set(host_compiler.flags_of("x86-64-v4")) - set(options) == {
        *("-std=gnu++20", "-DNDEBUG", "-fPIC", "-shared", "-fopenmp", "-fvisibility=hidden", "-static-libstdc++")
    }
    assert not [flag for flag in host_compiler.flags_of("portable") if flag.startswith("-m")]


@needs_compiler
def test_compiled_kernel_gives_results_bitwise_equal_to_the_table(cache: Path):
    backend = open_backend("cpu", 1)
    kernel, count = CpuKernel(SWEEP, 1), 1000
    results = []
    for row in (kernel._row, _compiled_row(SWEEP, _table()[1])):
        kernel._row = row
        assert (row.contents.size, row.contents.bytes) == (kernel.dtype.itemsize, kernel.bytes_per_item)
        f = backend.upload(np.random.default_rng(1).uniform(-1e-2, 1e-2, (19, count)))
        omega = backend.upload(np.full(count, 1.3))
        law = {"viscosity_infinity": 0.02, "viscosity_range": 0.3, "relaxation_time": 30.0, "a": 0.64, "exponent": -1.2}
        arguments = backend.pack(
            kernel,
            layout={"f": f, "adjacency": None, "stride": count},
            relaxation={"omega": omega, "law": law, "magic": 0.1875},
            force={"g": (1e-3, 0.0, -2e-3)},
        )
        kernel.bind(arguments, 0, count)()
        results.append((f, omega))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])
    assert len(np.unique(results[0][1])) == count


@needs_compiler
def test_kernel_is_compiled_once_and_kept(cache: Path):
    first = host_compiler.compiled_row(OTHER, "portable")
    stamp = first.stat().st_mtime_ns
    assert host_compiler.compiled_row(OTHER, "portable") == first
    assert first.stat().st_mtime_ns == stamp
    assert set(cache.iterdir()) == {first, first.with_name(first.name + ".sha256")}
    assert host_compiler.compiled_row(registry.tick(), "portable") != first


@needs_compiler
def test_several_processes_may_compile_the_same_kernel_at_once(cache: Path):
    with ThreadPoolExecutor(4) as pool:
        made = set(pool.map(host_compiler.compiled_row, [OTHER] * 4, ["portable"] * 4))
    assert set(cache.glob("*.so")) == made


def cut(library: Path) -> None:
    library.write_bytes(library.read_bytes()[:100])


def flip(library: Path) -> None:
    content = bytearray(library.read_bytes())
    content[len(content) // 2] ^= 0xFF
    library.write_bytes(bytes(content))


def install_library(library: Path) -> None:
    library.write_bytes(b"a library of somebody else")
    library.with_name(library.name + ".sha256").unlink()


@needs_compiler
@pytest.mark.parametrize("damage", [cut, flip, install_library, Path.unlink])
def test_damaged_kernel_is_compiled_again(cache: Path, damage: Callable[[Path], None]):
    first = host_compiler.compiled_row(OTHER, "portable")
    before = first.read_bytes()
    damage(first)
    assert host_compiler.compiled_row(OTHER, "portable").read_bytes() == before


@needs_compiler
@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_folder_that_others_can_write_is_rejected(cache: Path, mode: int):
    cache.mkdir()
    cache.chmod(mode)
    with pytest.raises(BackendUnavailable, match=r"is writable by other users \(chmod go-w\)"):
        host_compiler.compiled_row(OTHER, "portable")
    assert list(cache.iterdir()) == []


@needs_compiler
def test_folder_of_another_user_is_rejected(cache: Path, monkeypatch: pytest.MonkeyPatch):
    host_compiler.compiled_row(OTHER, "portable")
    owner = cache.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(BackendUnavailable, match=f"is owned by user {owner}, so compiled kernels in it"):
        host_compiler.compiled_row(OTHER, "portable")


@needs_compiler
def test_new_folder_is_for_the_user_alone(cache: Path):
    host_compiler.compiled_row(OTHER, "portable")
    assert cache.stat().st_mode & 0o777 == 0o700


def test_without_a_compiler_the_message_names_the_kernel_and_the_ways_out(cache: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(host_compiler, "find_compiler", lambda: None)
    with pytest.raises(BackendUnavailable) as caught:
        open_backend("cpu", 1).load(OTHER)
    assert str(caught.value) == (
        "StreamCollide<ListAAEven<D3Q15,double,double>,Trt,ConstantRates<double>,NoForce<double>> is not "
        "precompiled and no C++ compiler was found: install g++ (precompiled: D3Q19 with trt or bgk, a Newtonian or "
        "Carreau-Yasuda fluid and no force or a uniform one)"
    )


def test_compiler_is_the_one_that_cxx_names(monkeypatch: pytest.MonkeyPatch):
    find = host_compiler.find_compiler.__wrapped__
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert find() is None
    monkeypatch.setenv("CXX", f"{os.path.realpath('/bin/sh')} -e")
    assert find() == (os.path.realpath("/bin/sh"), "-e")
    monkeypatch.setenv("CXX", "")
    monkeypatch.setenv("PATH", "")
    assert find() is None


@needs_compiler
@pytest.mark.parametrize(
    ("change", "words"),
    [({"members": OTHER.members[:1]}, "argument struct"), ({"type": "NoSuchKernel<int>"}, "NoSuchKernel")],
)
def test_refused_kernel_carries_the_compilers_log(cache: Path, change: dict[str, object], words: str):
    wrong: KernelSpec = replace(OTHER, **change)  # type: ignore[arg-type]
    with pytest.raises(KernelCompileError, match=words):
        host_compiler.compiled_row(wrong, "portable")
    assert list(cache.iterdir()) == []


@needs_compiler
def test_cache_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SEICHE_CACHE", str(tmp_path / "file" / "kernels"))
    with pytest.raises(KernelCompileError) as caught:
        host_compiler.compiled_row(OTHER, "portable")
    assert str(caught.value) == (
        f"{tmp_path / 'file' / 'kernels'}: cannot store compiled kernels (Not a directory); set SEICHE_CACHE to a "
        "writable folder"
    )


@pytest.mark.parametrize("spec", [SWEEP, OTHER, registry.tick()], ids=["built", "other", "tick"])
def test_gpu_kernels_have_the_bytes_of_the_cpus_and_are_kept(cache: Path, spec: KernelSpec):
    pytest.importorskip("cuda.bindings.nvrtc")
    cubin, symbol, moved, scratch = cached_kernel(spec, "sm_90")
    assert symbol.encode() in cubin.read_bytes()
    assert moved == CpuKernel(spec, 1).bytes_per_item
    assert scratch == 0
    stamp = cubin.stat().st_mtime_ns
    assert cached_kernel(spec, "sm_90") == (cubin, symbol, moved, scratch)
    assert cubin.stat().st_mtime_ns == stamp
    assert not list(cache.glob("*.part"))
