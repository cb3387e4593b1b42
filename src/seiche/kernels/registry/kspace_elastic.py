# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of elastic media, `kernels/kspace/elastic.hpp`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from .kspace import CPP, cpp_bool
from .kspace_lines import LINES, LineShape, any_lines, fixed_lines
from .spec import CPP_TYPE, REALS, KernelSpec, Members, Real, pointers

_HEADER = "kspace/elastic.hpp"


def _number(varying: bool, real: Real) -> tuple[str, Members]:
    """Return C++ type and members of a coefficient of the medium."""
    kind = "Varying" if varying else "Uniform"
    members: Members = (("numbers", "ptr"),) if varying else (("number", real),)
    return f"{CPP}{kind}Number<{CPP_TYPE[real]}>", members


def _pass(rate: str, rate_members: Members, shape: LineShape, tapered: bool) -> KernelSpec:
    """Return a kernel with one item per batch of lines."""
    ranges: Members = tuple((name, "int32") for name in ("begin", "before", "after", "end"))
    layer: Members = (*pointers("memory decay increase damping"), *ranges)
    policies: Members = (("layer", layer), ("rate", rate_members), ("lines", LINES))
    members: Members = (*pointers("field bell derivative"), *policies, ("dt", shape.real))
    cpp = f"{CPP}ElasticPass<{CPP}{rate},{shape.cpp},{cpp_bool(tapered)}>"
    spec = KernelSpec(cpp, _HEADER, members, threads=shape.threads)
    # As for other kernels with lines: some versions of the assembler spill a few words of addresses.
    return replace(spec, max_registers=255 if shape.threads <= 256 else 128, team=True, may_spill=True)


def accelerate(varying: bool, stores_rate: bool, shape: LineShape, *, tapered: bool = False) -> KernelSpec:
    """Change of a velocity by the derivative of a stress; `tapered` on a part of a grid."""
    kind, number = _number(varying, shape.real)
    members: Members = (*pointers("velocity rate"), ("volume", number), ("first", "int32"))
    return _pass(f"Accelerate<{kind},{cpp_bool(stores_rate)}>", members, shape, tapered)


def compress(varying: bool, dimensions: int, shape: LineShape, *, tapered: bool = False) -> KernelSpec:
    """Change of all normal stresses by the derivative of a velocity along its own axis."""
    kind, number = _number(varying, shape.real)
    moduli: Members = (("lambda", number), ("mu", number))
    members: Members = (("stress", "ptr"), *moduli, ("points", "int64"), ("component", "int32"))
    return _pass(f"Compress<{kind},{dimensions}>", members, shape, tapered)


def shear(varying: bool, shape: LineShape, *, tapered: bool = False) -> KernelSpec:
    """Change of a shear stress by the derivative of a velocity along another axis."""
    kind, number = _number(varying, shape.real)
    return _pass(f"Shear<{kind}>", (("stress", "ptr"), ("mu", number)), shape, tapered)


def mean_pressure(dimensions: int, real: Real) -> KernelSpec:
    """The pressure of normal stresses."""
    members: Members = (*pointers("stress p"), ("points", "int64"))
    return KernelSpec(f"{CPP}MeanPressure<{CPP_TYPE[real]},{dimensions}>", _HEADER, members)


def initial_stress(dimensions: int, real: Real) -> KernelSpec:
    """Normal stresses of an initial pressure."""
    members: Members = (*pointers("p stress"), ("points", "int64"))
    return KernelSpec(f"{CPP}InitialStress<{CPP_TYPE[real]},{dimensions}>", _HEADER, members)


def other_kernels() -> Iterator[KernelSpec]:
    """Yield the largest kernels: any length, and lengths with many factors."""
    for real in REALS:
        shapes = [any_lines(256 if real == "float32" else 1024, last, real) for last in (False, True)]
        shapes += [fixed_lines(512, last, real) for last in (False, True)]
        for shape in shapes:
            assert shape is not None
            for varying in (False, True):
                yield accelerate(varying, True, shape)
                yield compress(varying, 3, shape)
                yield shear(varying, shape)
            yield accelerate(True, False, shape)
            yield compress(True, 2, shape)
            yield accelerate(True, True, shape, tapered=True)
            yield compress(True, 3, shape, tapered=True)
            yield shear(True, shape, tapered=True)
        for dimensions in (1, 2, 3):
            yield mean_pressure(dimensions, real)
            yield initial_stress(dimensions, real)
