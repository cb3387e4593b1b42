# SPDX-License-Identifier: BSD-3-Clause
"""Disk cache of compiled kernels, and their NVRTC compilation, which needs neither a GPU nor a CUDA toolkit."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from seiche.backend.arrays import argument_dtype
from seiche.backend.folder import cache_folder, cached_file
from seiche.errors import BackendUnavailable, KernelCompileError
from seiche.kernels.registry import KernelSpec
from seiche.native.make_table import headers_hash

KERNELS = Path(__file__).resolve().parent.parent / "kernels"
_OPTIONS = ("--std=c++20", "--fmad=false", "--extra-device-vectorization", "--device-as-default-execution-space")


@dataclass(frozen=True)
class CompiledKernel:
    """A cubin, the symbol of its kernel, minimum bytes per item, scratch bytes of a team, the compiler's log."""

    cubin: bytes
    symbol: str
    bytes_per_item: int
    scratch_bytes: int
    log: str


def headers_of(spec: KernelSpec) -> tuple[str, ...]:
    """Return the headers that a kernel's translation unit includes."""
    return ("launch.hpp", *spec.parts, spec.header)


def source_of(spec: KernelSpec) -> str:
    """Return the translation unit: includes, and a check of the size of the argument struct."""
    size = argument_dtype(spec.members).itemsize
    return (
        "".join(f'#include "{header}"\n' for header in headers_of(spec)) + "using namespace seiche;\n"
        f'static_assert(sizeof({spec.type}) == {size}, "argument struct");\n'
    )


def _gpu_source_of(spec: KernelSpec) -> str:
    """Return the translation unit with a variable whose name encodes the bytes and the scratch of an item."""
    return source_of(spec) + "template <int bytes, int scratch> __device__ int sizes;\n"


def compile_kernel(spec: KernelSpec, architecture: str, *, verbose: bool = False) -> CompiledKernel:
    """Compile one kernel for an architecture such as "sm_90".

    Raises:
        BackendUnavailable: NVRTC is not installed.
        KernelCompileError: the compilation failed; the message contains the compiler's log.
    """
    try:
        from cuda.bindings import nvrtc
    except ImportError as error:
        raise BackendUnavailable("NVRTC is not installed: pip install 'seiche[cuda13]' (or [cuda12])") from error

    def check(result: tuple[object, ...]) -> tuple[object, ...]:
        if int(result[0]) != 0:  # type: ignore[call-overload]
            raise KernelCompileError(f"NVRTC: {result[0]} for {spec.type}")
        return result[1:]

    name = f"seiche::for_each<{spec.type},{spec.launch}>".encode()
    (program,) = check(nvrtc.nvrtcCreateProgram(_gpu_source_of(spec).encode(), b"seiche.cu", 0, [], []))
    sizes = f"&sizes<{spec.type}::bytes,seiche::scratch_bytes<{spec.type}>>".encode()
    for expression in (name, sizes):
        check(nvrtc.nvrtcAddNameExpression(program, expression))
    options = [*_OPTIONS, f"--gpu-architecture={architecture}", f"--include-path={KERNELS}"]
    if verbose:
        options.append("--ptxas-options=-v")
    encoded = [option.encode() for option in options]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
    (size,) = check(nvrtc.nvrtcGetProgramLogSize(program))
    log = b" " * int(size)  # type: ignore[call-overload]
    check(nvrtc.nvrtcGetProgramLog(program, log))
    text = log.decode(errors="replace").strip(" \0\n")
    if int(status) != 0:
        raise KernelCompileError(f"{spec.type} for {architecture}:\n{text}")
    (lowered,) = check(nvrtc.nvrtcGetLoweredName(program, name))
    (mangled,) = check(nvrtc.nvrtcGetLoweredName(program, sizes))
    match = re.search(rb"sizesILi(\d+)ELi(\d+)E", mangled)  # type: ignore[call-overload]
    if match is None:
        raise KernelCompileError(f"{spec.type}: the mangled name {mangled!r} does not contain the bytes of an item")
    (cubin_size,) = check(nvrtc.nvrtcGetCUBINSize(program))
    cubin = b" " * int(cubin_size)  # type: ignore[call-overload]
    check(nvrtc.nvrtcGetCUBIN(program, cubin))
    symbol = lowered.decode()  # type: ignore[attr-defined]
    check(nvrtc.nvrtcDestroyProgram(program))
    return CompiledKernel(cubin, symbol, int(match[1]), int(match[2]), text)


def nvrtc_version() -> str:
    """Return the version of the run-time compiler, a part of the cache key."""
    from cuda.bindings import nvrtc

    _, major, minor = nvrtc.nvrtcVersion()
    return f"{major}.{minor}"


def cached_kernel(spec: KernelSpec, architecture: str) -> tuple[Path, str, int, int]:
    """Return the path of the cubin, the symbol, bytes per item and scratch of a kernel, compiling it if necessary."""
    headers = headers_hash(KERNELS, headers_of(spec))
    key = "\n".join((headers, _gpu_source_of(spec), spec.launch, architecture, nvrtc_version(), *_OPTIONS))
    stem = cache_folder() / hashlib.sha256(key.encode()).hexdigest()[:32]
    compiled = cache(lambda: compile_kernel(spec, architecture))

    cubin = cached_file(stem.with_suffix(".cubin"), lambda path: path.write_bytes(compiled().cubin))
    symbol = cached_file(
        stem.with_suffix(".symbol"),
        lambda path: path.write_text(f"{compiled().symbol} {compiled().bytes_per_item} {compiled().scratch_bytes}"),
    )
    name, item_bytes, scratch = symbol.read_text().split()
    return cubin, name, int(item_bytes), int(scratch)
