# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of the k-space ultrasound solver, `kernels/kspace/`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Literal

from .spec import CPP_TYPE, KernelSpec, Members, Real, pointers, typed_members

#: Description of the kernels in the CPU table.
BUILT = "those of wheels: all of the exact scheme"

Finish = Literal["lossless", "stokes", "power-law", "store-rate", "store-sum", "relaxation", "start-relaxation"]
DensityKind = Literal["uniform", "mean", "staggered"]
Rule = Literal["Maximum", "Minimum", "SumOfSquares"]
SensorKind = Literal["everywhere", "points", "between"]

ROWS: Members = (*typed_members("int32", "planes middle length half"), *typed_members("int64", "points spectrum"))
CPP = "kspace::"
#: Number of relaxation processes of a tissue.
PROCESSES = 3


def row_kernel(name: str, header: str, members: Members) -> KernelSpec:
    """Return a kernel with one item per row."""
    return KernelSpec(f"{CPP}{name}", f"kspace/{header}.hpp", members, threads=128, team=True)


def cpp_bool(value: bool) -> str:
    """Return a truth value in C++."""
    return str(value).lower()


def medium_type(varying: bool, real: Real) -> tuple[str, Members]:
    """Return C++ type and members of the medium."""
    kind = "Varying" if varying else "Uniform"
    return f"{CPP}{kind}Medium<{CPP_TYPE[real]}>", typed_members("ptr" if varying else real, "rho0 c0 BonA tau")


def finish_type(finish: Finish, nonlinear: bool, real: Real) -> tuple[str, Members]:
    """Return C++ type and members of the computation that follows the new density."""
    cpp = CPP_TYPE[real]
    if finish in ("store-rate", "store-sum"):
        return f"{CPP}StoreTerm<{cpp},{cpp_bool(finish == 'store-rate')}>", pointers("term")
    if finish in ("relaxation", "start-relaxation"):
        starts = finish == "start-relaxation"
        kind = f"StartRelaxing<{cpp},{PROCESSES}>" if starts else f"Relaxing<{cpp},{cpp_bool(nonlinear)},{PROCESSES}>"
        arrays = pointers("memory labels table" if starts else "p memory labels table")
        return f"{CPP}{kind}", (*arrays, ("points", "int64"))
    if finish == "power-law":
        return f"{CPP}PowerLawInputs<{cpp},{cpp_bool(nonlinear)}>", pointers("p rate_out rho_out")
    return f"{CPP}{finish.capitalize()}<{cpp},{cpp_bool(nonlinear)}>", pointers("p")


def sensor_type(sensor: SensorKind, real: Real) -> tuple[str, Members]:
    """Return C++ type and members of a sensor that samples a field."""
    cpp = CPP_TYPE[real]
    if sensor == "everywhere":
        return f"{CPP}Everywhere<{cpp}>", pointers("field")
    if sensor == "points":
        return f"{CPP}AtPoints<{cpp}>", pointers("field points")
    return f"{CPP}WeightedPoints<{cpp}>", (*pointers("field points weights"), ("count", "int64"))


_SIGNAL: Members = (*pointers("samples weight delay clock"), *typed_members("int64", "stride column"))
_DERIVATIVES: Members = (*pointers("work derivative kappa"), ("rows", ROWS))


def spectral_gradient(dimensions: int, real: Real) -> KernelSpec:
    """Spectra of the derivatives of a field."""
    return row_kernel(f"SpectralGradient<{CPP_TYPE[real]},{dimensions}>", "derivatives", _DERIVATIVES)


def spectral_divergence(dimensions: int, real: Real) -> KernelSpec:
    """Derivatives of components, each along its own axis."""
    return row_kernel(f"SpectralDivergence<{CPP_TYPE[real]},{dimensions}>", "derivatives", _DERIVATIVES)


def spectral_shift(axis: int, real: Real) -> KernelSpec:
    """Shift of a field along an axis."""
    members: Members = (*pointers("spectrum shift"), ("rows", ROWS))
    return row_kernel(f"SpectralShift<{CPP_TYPE[real]},{axis}>", "shift", members)


def spectral_filter(real: Real) -> KernelSpec:
    """Product of a spectrum and real factors."""
    members: Members = (*pointers("spectrum factor"), ("rows", ROWS))
    return row_kernel(f"SpectralFilter<{CPP_TYPE[real]}>", "shift", members)


def fractional_laplacians(real: Real) -> KernelSpec:
    """The two operators of power-law absorption."""
    members: Members = (
        *pointers("work squares"),
        ("rows", ROWS),
        *typed_members(real, "exponent scale passband slope"),
    )
    return row_kernel(f"FractionalLaplacians<{CPP_TYPE[real]}>", "fractional", members)


def bioheat(dimensions: int, corrects: bool, axisymmetric: bool = False) -> KernelSpec:
    """Heat in tissue: the predictor of a step, or its corrector and the thermal dose."""
    arrays = pointers("temperature predicted dose conductivity heat cooling capacity faces")
    members: Members = (*arrays, ("rows", ROWS), ("squares", ("float64", 3)), *typed_members("float64", "blood dt"))
    symmetry = ",true" if axisymmetric else ""
    spec = row_kernel(f"Bioheat<{dimensions},{cpp_bool(corrects)}{symmetry}>", "bioheat", members)
    return replace(spec, may_spill=axisymmetric)  # 16 bytes on sm_90, whose compiler uses no more than 64 registers


def density_type(density: DensityKind, real: Real) -> tuple[str, Members]:
    """Return C++ type and members of the density on the staggered grid."""
    return f"{CPP}{density.capitalize()}Density<{CPP_TYPE[real]}>", (("rho0", real if density == "uniform" else "ptr"),)


def velocity(dimensions: int, density: DensityKind, real: Real) -> KernelSpec:
    """Momentum equation."""
    kind, density_members = density_type(density, real)
    members: Members = (*pointers("u gradient pml"), ("density", density_members), ("rows", ROWS), ("dt", real))
    return row_kernel(f"Velocity<{dimensions},{kind}>", "velocity", members)


def _header_of(finish: Finish) -> str:
    """Return the header of the computation that follows a density."""
    return "relaxation" if finish in ("relaxation", "start-relaxation") else "density"


def density(dimensions: int, varying: bool, nonlinear: bool, finish: Finish, real: Real) -> KernelSpec:
    """Conservation of mass, followed by the computation `finish`."""
    medium, medium_members = medium_type(varying, real)
    finish_name, finish_members = finish_type(finish, nonlinear, real)
    policies: Members = (("medium", medium_members), ("finish", finish_members))
    members: Members = (*pointers("rho derivative pml"), *policies, ("rows", ROWS), ("dt", real))
    name = f"Density<{dimensions},{cpp_bool(nonlinear)},{medium},{finish_name}>"
    # In double precision the assembler for sm_80 spills five words of one of them.
    return replace(row_kernel(name, _header_of(finish), members), may_spill=real == "float64")


def state_of_density(dimensions: int, varying: bool, nonlinear: bool, finish: Finish, real: Real) -> KernelSpec:
    """The computation `finish`, after sources have changed the density."""
    medium, medium_members = medium_type(varying, real)
    finish_name, finish_members = finish_type(finish, nonlinear, real)
    policies: Members = (("medium", medium_members), ("finish", finish_members))
    members: Members = (*pointers("rho rate total"), *policies, ("rows", ROWS), ("rate_row", "int64"))
    return row_kernel(f"StateOfDensity<{dimensions},{medium},{finish_name}>", _header_of(finish), members)


def power_law_pressure(varying: bool, real: Real) -> KernelSpec:
    """Pressure of a power-law medium."""
    medium, medium_members = medium_type(varying, real)
    arrays, factors = pointers("p absorbed dispersed"), typed_members(real, "absorption tangent")
    members: Members = (*arrays, ("medium", medium_members), ("rows", ROWS), *factors)
    return row_kernel(f"PowerLawPressure<{medium}>", "density", members)


def initial_density(dimensions: int, varying: bool, real: Real) -> KernelSpec:
    """Density for an initial pressure."""
    medium, medium_members = medium_type(varying, real)
    members: Members = (*pointers("p rho"), ("medium", medium_members), ("rows", ROWS))
    return row_kernel(f"InitialDensity<{dimensions},{medium}>", "density", members)


def inject(replace: bool, real: Real) -> KernelSpec:
    """Signals of point sources, added to fields or imposed (`replace`)."""
    members: Members = (*pointers("field points"), ("signal", _SIGNAL), ("distance", "int64"), ("fields", "int32"))
    return KernelSpec(f"{CPP}Inject<{CPP_TYPE[real]},{cpp_bool(replace)}>", "kspace/source.hpp", members)


def clear(real: Real) -> KernelSpec:
    """Zeros in padded rows."""
    return row_kernel(f"Clear<{CPP_TYPE[real]}>", "source", (("padded", "ptr"), ("rows", ROWS)))


def add_field(real: Real) -> KernelSpec:
    """A whole-grid source, added to fields."""
    signal: Members = (("signal", _SIGNAL), ("rows", ROWS))
    members: Members = (*pointers("field source"), *signal, *typed_members("int32", "fields padded"))
    return row_kernel(f"AddField<{CPP_TYPE[real]}>", "source", members)


def advance() -> KernelSpec:
    """Advance the clock."""
    return KernelSpec(f"{CPP}Advance", "kspace/source.hpp", pointers("clock"), threads=32)


def sample(sensor: SensorKind, real: Real) -> KernelSpec:
    """A row of a time series."""
    kind, members = sensor_type(sensor, real)
    members = (("sensor", members), *pointers("series clock"), *typed_members("int64", "first ring sensors"))
    return KernelSpec(f"{CPP}Sample<{CPP_TYPE[real]},{kind}>", "kspace/record.hpp", members)


def accumulate(sensor: SensorKind, rule: Rule, real: Real) -> KernelSpec:
    """Extremes and sums over time."""
    kind, members = sensor_type(sensor, real)
    name = f"{CPP}Accumulate<{CPP_TYPE[real]},{kind},{CPP}{rule}>"
    return KernelSpec(name, "kspace/record.hpp", (("sensor", members), ("result", "ptr")))


def harmonic(sensor: SensorKind, real: Real) -> KernelSpec:
    """Sums for amplitude and phase at one frequency."""
    kind, members = sensor_type(sensor, real)
    members = (("sensor", members), *pointers("cosine sine factors clock"), ("first", "int64"))
    return KernelSpec(f"{CPP}Harmonic<{CPP_TYPE[real]},{kind}>", "kspace/record.hpp", members)


def _every(reals: tuple[Real, ...], dimensions: tuple[int, ...]) -> Iterator[KernelSpec]:
    """Yield every kernel for these precisions and numbers of dimensions."""
    finishes: tuple[Finish, ...] = ("lossless", "stokes", "power-law")
    densities: tuple[DensityKind, ...] = ("uniform", "mean", "staggered")
    sensors: tuple[SensorKind, ...] = ("everywhere", "points", "between")
    rules: tuple[Rule, ...] = ("Maximum", "Minimum", "SumOfSquares")
    for real in reals:
        yield spectral_filter(real)
        yield fractional_laplacians(real)
        yield clear(real)
        yield add_field(real)
        yield from (inject(replace, real) for replace in (False, True))
        yield from (power_law_pressure(varying, real) for varying in (False, True))
        yield from (spectral_shift(axis, real) for axis in (0, 1, 2))
        for sensor in sensors:
            yield sample(sensor, real)
            yield harmonic(sensor, real)
            yield from (accumulate(sensor, rule, real) for rule in rules)
        for d in dimensions:
            yield spectral_gradient(d, real)
            yield spectral_divergence(d, real)
            yield from (velocity(d, kind, real) for kind in densities)
            for varying in (False, True):
                yield initial_density(d, varying, real)
                for nonlinear in (False, True):
                    yield density(d, varying, nonlinear, "store-rate", real)
                    for finish in finishes:
                        yield density(d, varying, nonlinear, finish, real)
                        yield state_of_density(d, varying, nonlinear, finish, real)


def default_kernels() -> Iterator[KernelSpec]:
    """Yield the kernels of the exact scheme with the transforms of a library, for all media, sources and records."""
    yield advance()
    for d in (1, 2, 3):
        yield from (bioheat(d, corrects) for corrects in (False, True))
    yield from (bioheat(2, corrects, True) for corrects in (False, True))
    reals: tuple[Real, ...] = ("float32", "float64")
    yield from _every(reals, (1, 2, 3))
    finishes: tuple[Finish, ...] = ("relaxation", "start-relaxation")
    for real, d, varying, nonlinear, finish in product(reals, (1, 2, 3), (False, True), (False, True), finishes):
        yield state_of_density(d, varying, nonlinear, finish, real)
        if finish == "relaxation":
            yield density(d, varying, nonlinear, finish, real)


def other_kernels() -> Iterator[KernelSpec]:
    """Yield representatives of kernels compiled on first use: of each family those that need the most registers."""
    yield advance()
    yield from (bioheat(3, corrects) for corrects in (False, True))
    yield from (bioheat(2, corrects, True) for corrects in (False, True))
    yield from _every(("float32", "float64"), (3,))
    yield density(3, True, True, "relaxation", "float64")
    yield state_of_density(3, True, True, "relaxation", "float64")
    yield state_of_density(3, False, False, "start-relaxation", "float64")
