# SPDX-License-Identifier: BSD-3-Clause
"""CPU kernels outside the table: compiled by the host's C++ compiler on first use and stored in the kernel cache."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
from functools import cache
from pathlib import Path

from seiche.backend.cache import KERNELS, headers_of, source_of
from seiche.backend.folder import cache_folder, cached_file
from seiche.errors import BackendUnavailable, KernelCompileError
from seiche.kernels.registry import KernelSpec, describe_built
from seiche.native.make_table import headers_hash

_NATIVE = KERNELS.parent / "native"
#: The options of CMakeLists.txt (a test compares them), for identical results of both builds.
FLAGS = (
    *("-std=gnu++20", "-O3", "-DNDEBUG", "-fPIC", "-shared", "-fopenmp", "-fvisibility=hidden", "-static-libstdc++"),
    *("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"),
)
LEVEL_FLAGS = {"x86-64-v4": ("-mprefer-vector-width=512",), "portable": ()}
#: Name of the only row of such a library.
ROW = "seiche_row"


def flags_of(level: str) -> tuple[str, ...]:
    """Return the compiler options for an instruction set."""
    march = () if level == "portable" else (f"-march={level}",)
    return (*FLAGS, *march, *LEVEL_FLAGS.get(level, ()))


@cache
def find_compiler() -> tuple[str, ...] | None:
    """Return the command of the C++ compiler: CXX, otherwise g++, c++ or clang++; None if none is installed."""
    override = shlex.split(os.environ.get("CXX", ""))
    for command in [override] if override else [["g++"], ["c++"], ["clang++"]]:
        path = shutil.which(command[0])
        if path is not None:
            return (path, *command[1:])
    return None


@cache
def _version(compiler: tuple[str, ...]) -> str:
    return subprocess.run([*compiler, "--version"], capture_output=True, text=True, check=False).stdout


def compiled_row(spec: KernelSpec, level: str) -> Path:
    """Return a library with `spec` as its only row, compiled unless it is cached.

    Several ranks may compile it concurrently: each writes its own file and renames it.

    Raises:
        BackendUnavailable: no compiler is installed, or other users can write to the cache folder.
        KernelCompileError: compilation failed, or the cache folder is not writable.
    """
    compiler = find_compiler()
    if compiler is None:
        raise BackendUnavailable(
            f"{spec.type} is not precompiled and no C++ compiler was found: install g++"
            f" (precompiled: {describe_built(spec)})"
        )
    source = source_of(spec) + (
        f'#include "row.hpp"\nextern "C" __attribute__((visibility("default"))) const Row {ROW};\n'
        f"const Row {ROW} = SEICHE_ROW({spec.type});\n"
    )
    options = flags_of(level)
    command = (platform.machine(), *options, *compiler, _version(compiler))
    key = "\n".join((headers_hash(KERNELS, headers_of(spec)), (_NATIVE / "row.hpp").read_text(), source, *command))
    library = cache_folder() / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.so"
    try:
        return cached_file(library, lambda path: _compile(spec, (*compiler, *options), source, path))
    except OSError as error:
        raise KernelCompileError(
            f"{library.parent}: cannot store compiled kernels ({error.strerror or error}); set SEICHE_CACHE to a "
            "writable folder"
        ) from error


def _compile(spec: KernelSpec, command: tuple[str, ...], source: str, target: Path) -> None:
    arguments = (*command, f"-I{KERNELS}", f"-I{_NATIVE}", "-x", "c++", "-", "-o", str(target))
    process = subprocess.run(arguments, input=source, capture_output=True, text=True, check=False)
    if process.returncode != 0:
        raise KernelCompileError(f"{spec.type} by {command[0]}:\n{process.stderr.strip()}")
