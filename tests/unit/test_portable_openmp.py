# SPDX-License-Identifier: BSD-3-Clause
"""The OpenMP library of wheels: needs no newer glibc than their platform, runs here, and hides no new function."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

elffile = pytest.importorskip("elftools.elf.elffile", reason="pyelftools is not installed")
from tools import portable_openmp  # noqa: E402 (needs pyelftools)

SOURCE = """
extern "C" __attribute__((visibility("default"))) int threads_of(int wanted) {
  int count = 0;
#pragma omp parallel num_threads(wanted)
  {
#pragma omp atomic
    ++count;
#pragma omp barrier
  }
  return count;
}
"""
#: Run in a process of its own, so that no other OpenMP library is loaded.
USE = """
import ctypes, sys
print([ctypes.CDLL(sys.argv[1]).threads_of(threads) for threads in (1, 2, 5)])
print({line.split()[-1] for line in open("/proc/self/maps") if "libgomp" in line})
"""


def required(library: Path) -> set[str]:
    with library.open("rb") as file:
        needs = elffile.ELFFile(file).get_section_by_name(".gnu.version_r").iter_versions()
        return {aux.name for _, versions in needs for aux in versions}


def wheel_with(library: Path, folder: Path) -> Path:
    """Write a wheel that contains only this library."""
    wheel = folder / "threads-1.0-py3-none-linux_x86_64.whl"
    about = "threads-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(library, f"threads/{library.name}")
        archive.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: threads\nVersion: 1.0\n")
        tag = "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-linux_x86_64\n"
        archive.writestr(f"{about}/WHEEL", tag)
        archive.writestr(f"{about}/RECORD", "".join(f"{name},,\n" for name in archive.namelist()))
    return wheel


@pytest.mark.skipif(sys.platform != "linux", reason="symbol versions of glibc")
def test_a_wheel_with_it_gets_the_platform_and_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "threads.cpp").write_text(SOURCE)
    library = tmp_path / "threads.so"
    flags = ("-O2", "-fPIC", "-fopenmp", "-shared", "-static-libstdc++")
    subprocess.run(["g++", *flags, str(tmp_path / "threads.cpp"), "-o", str(library)], check=True)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    portable_openmp.main(str(tmp_path / "openmp"))
    assert not [
        version for version in required(tmp_path / "openmp" / "libgomp.so.1") if portable_openmp.too_new(version)
    ]

    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / "openmp"))
    plat = ("--plat", "manylinux_2_28_x86_64", "--only-plat", "--wheel-dir", str(tmp_path / "dist"))
    auditwheel = [sys.executable, "-m", "auditwheel", "repair", *plat, str(wheel_with(library, tmp_path))]
    subprocess.run(auditwheel, check=True, capture_output=True)
    monkeypatch.delenv("LD_LIBRARY_PATH")
    (repaired,) = (tmp_path / "dist").iterdir()
    assert repaired.name == "threads-1.0-py3-none-manylinux_2_28_x86_64.whl"
    with zipfile.ZipFile(repaired) as archive:
        archive.extractall(tmp_path / "installed")
    command = [sys.executable, "-c", USE, str(tmp_path / "installed" / "threads" / "threads.so")]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    assert printed[0] == "[1, 2, 5]"
    assert str(tmp_path / "installed" / "threads.libs") in printed[1] and printed[1].count("libgomp") == 1


def test_a_new_function_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    moved = {version: names.replace("pthread_create ", "") for version, names in portable_openmp.MOVED.items()}
    monkeypatch.setattr(portable_openmp, "MOVED", moved)
    library = portable_openmp.compiler_library()
    if not any(portable_openmp.too_new(version) for version in required(library)):
        pytest.skip("the OpenMP library of this system needs no newer glibc")
    with pytest.raises(SystemExit, match=r"pthread_create needs GLIBC_2\.34\. Build the wheel with an older glibc\."):
        portable_openmp.without_newer_versions(library)


def test_versions_are_compared_by_number():
    newer = [f"GLIBC_2.{minor}" for minor in (4, 9, 17, 28, 29, 34)]
    assert [portable_openmp.too_new(version) for version in newer] == [False, False, False, False, True, True]
    assert not portable_openmp.too_new("GOMP_4.0") and not portable_openmp.too_new("GLIBC_2.2.5")
