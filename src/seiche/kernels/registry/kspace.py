# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of the k-space ultrasound solver, of `kernels/kspace/`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from .spec import CPP_TYPE, KernelSpec, Members, Real

#: What the CPU table has, in words.
BUILT = "nothing of ultrasound"

Finish = Literal["lossless", "stokes", "power-law", "keep-rate", "keep-sum", "relaxation", "start-relaxation"]
DensityKind = Literal["uniform", "mean", "staggered"]
Rule = Literal["Greatest", "Least", "SumOfSquares"]
SensorKind = Literal["everywhere", "points", "between"]

ROWS: Members = (
    *((name, "int32") for name in ("planes", "middle", "length", "half")),
    ("points", "int64"),
    ("spectrum", "int64"),
)
CPP = "kspace::"
#: Relaxation processes of a tissue.
PROCESSES = 3


def row_kernel(name: str, header: str, members: Members) -> KernelSpec:
    """Return a kernel whose items are rows."""
    return KernelSpec(f"{CPP}{name}", f"kspace/{header}.hpp", members, threads=128, team=True)


def cpp_bool(value: bool) -> str:
    """Return a truth value as C++ has it."""
    return "true" if value else "false"


def medium_type(varying: bool, real: Real) -> tuple[str, Members]:
    """Return C++ type and members of the medium."""
    names = ("rho0", "c0", "BonA", "tau")
    kind = "Varying" if varying else "Uniform"
    return f"{CPP}{kind}Medium<{CPP_TYPE[real]}>", tuple((name, "ptr" if varying else real) for name in names)


def finish_type(finish: Finish, nonlinear: bool, real: Real) -> tuple[str, Members]:
    """Return C++ type and members of what is made of the new density."""
    cpp = CPP_TYPE[real]
    if finish == "keep-rate":
        return f"{CPP}KeepRate<{cpp}>", (("rate_out", "ptr"),)
    if finish == "keep-sum":
        return f"{CPP}KeepSum<{cpp}>", (("sum_out", "ptr"),)
    if finish in ("relaxation", "start-relaxation"):
        starts = finish == "start-relaxation"
        arrays = ("memory", "labels", "table") if starts else ("p", "memory", "labels", "table")
        kind = f"StartRelaxing<{cpp},{PROCESSES}>" if starts else f"Relaxing<{cpp},{cpp_bool(nonlinear)},{PROCESSES}>"
        return f"{CPP}{kind}", (*((name, "ptr") for name in arrays), ("points", "int64"))
    if finish == "power-law":
        names = ("p", "rate_out", "rho_out")
        return f"{CPP}PowerLawInputs<{cpp},{cpp_bool(nonlinear)}>", tuple((name, "ptr") for name in names)
    return f"{CPP}{finish.capitalize()}<{cpp},{cpp_bool(nonlinear)}>", (("p", "ptr"),)


def sensor_type(sensor: SensorKind, real: Real) -> tuple[str, Members]:
    """Return C++ type and members of what a sensor sees of a field."""
    cpp = CPP_TYPE[real]
    if sensor == "everywhere":
        return f"{CPP}Everywhere<{cpp}>", (("field", "ptr"),)
    if sensor == "points":
        return f"{CPP}AtPoints<{cpp}>", (("field", "ptr"), ("points", "ptr"))
    return f"{CPP}Between<{cpp}>", (("field", "ptr"), ("points", "ptr"), ("weights", "ptr"), ("count", "int64"))


_SIGNAL: Members = (
    ("samples", "ptr"),
    ("weight", "ptr"),
    ("delay", "ptr"),
    ("clock", "ptr"),
    ("stride", "int64"),
    ("column", "int64"),
)


def spectral_gradient(dimensions: int, real: Real) -> KernelSpec:
    """Spectra of the derivatives of one field."""
    members: Members = (("work", "ptr"), ("derivative", "ptr"), ("kappa", "ptr"), ("rows", ROWS))
    return row_kernel(f"SpectralGradient<{CPP_TYPE[real]},{dimensions}>", "gradient", members)


def spectral_divergence(dimensions: int, real: Real) -> KernelSpec:
    """Derivatives of components, each along its own axis."""
    members: Members = (("work", "ptr"), ("derivative", "ptr"), ("kappa", "ptr"), ("rows", ROWS))
    return row_kernel(f"SpectralDivergence<{CPP_TYPE[real]},{dimensions}>", "divergence", members)


def spectral_shift(axis: int, real: Real) -> KernelSpec:
    """Shift of one field along an axis."""
    members: Members = (("spectrum", "ptr"), ("shift", "ptr"), ("rows", ROWS))
    return row_kernel(f"SpectralShift<{CPP_TYPE[real]},{axis}>", "divergence", members)


def spectral_filter(real: Real) -> KernelSpec:
    """Product of a spectrum with real factors."""
    members: Members = (("spectrum", "ptr"), ("factor", "ptr"), ("rows", ROWS))
    return row_kernel(f"SpectralFilter<{CPP_TYPE[real]}>", "divergence", members)


def fractional_laplacians(real: Real) -> KernelSpec:
    """The two operators of power-law absorption."""
    members: Members = (("work", "ptr"), ("squares", "ptr"), ("rows", ROWS), ("exponent", real), ("scale", real))
    return row_kernel(f"FractionalLaplacians<{CPP_TYPE[real]}>", "fractional", members)


def bioheat(dimensions: int, corrects: bool) -> KernelSpec:
    """Heat in tissue: the prediction of a step, or its correction and the thermal dose."""
    names = ("temperature", "predicted", "dose", "conductivity", "heat", "cooling", "capacity")
    members: Members = (
        *((name, "ptr") for name in names),
        ("rows", ROWS),
        ("squares", ("float64", 3)),
        ("blood", "float64"),
        ("dt", "float64"),
    )
    return row_kernel(f"Bioheat<{dimensions},{cpp_bool(corrects)}>", "bioheat", members)


def density_type(density: DensityKind, real: Real) -> tuple[str, Members]:
    """Return C++ type and members of the density half a cell further."""
    return f"{CPP}{density.capitalize()}Density<{CPP_TYPE[real]}>", (("rho0", real if density == "uniform" else "ptr"),)


def velocity(dimensions: int, density: DensityKind, real: Real) -> KernelSpec:
    """Momentum equation."""
    kind, density_members = density_type(density, real)
    members: Members = (
        ("u", "ptr"),
        ("gradient", "ptr"),
        ("pml", "ptr"),
        ("density", density_members),
        ("rows", ROWS),
        ("dt", real),
    )
    return row_kernel(f"Velocity<{dimensions},{kind}>", "velocity", members)


def _header_of(finish: Finish) -> str:
    """Return the header that has what is made of a density."""
    return "relaxation" if finish in ("relaxation", "start-relaxation") else "density"


def density(dimensions: int, varying: bool, nonlinear: bool, finish: Finish, real: Real) -> KernelSpec:
    """Conservation of mass, and what follows from the density."""
    medium, medium_members = medium_type(varying, real)
    then, finish_members = finish_type(finish, nonlinear, real)
    members: Members = (
        ("rho", "ptr"),
        ("derivative", "ptr"),
        ("pml", "ptr"),
        ("medium", medium_members),
        ("finish", finish_members),
        ("rows", ROWS),
        ("dt", real),
    )
    header = _header_of(finish)
    spec = row_kernel(f"Density<{dimensions},{cpp_bool(nonlinear)},{medium},{then}>", header, members)
    # In double precision the assembler for sm_80 keeps five words of one of them in memory.
    return replace(spec, may_spill=real == "float64")


def state_of_density(dimensions: int, varying: bool, nonlinear: bool, finish: Finish, real: Real) -> KernelSpec:
    """What follows from the density, once sources have changed it."""
    medium, medium_members = medium_type(varying, real)
    then, finish_members = finish_type(finish, nonlinear, real)
    members: Members = (
        ("rho", "ptr"),
        ("rate", "ptr"),
        ("total", "ptr"),
        ("medium", medium_members),
        ("finish", finish_members),
        ("rows", ROWS),
        ("rate_row", "int64"),
    )
    return row_kernel(f"StateOfDensity<{dimensions},{medium},{then}>", _header_of(finish), members)


def power_law_pressure(varying: bool, real: Real) -> KernelSpec:
    """Pressure of a power-law medium."""
    medium, medium_members = medium_type(varying, real)
    members: Members = (
        ("p", "ptr"),
        ("absorbed", "ptr"),
        ("dispersed", "ptr"),
        ("medium", medium_members),
        ("rows", ROWS),
        ("absorption", real),
        ("tangent", real),
    )
    return row_kernel(f"PowerLawPressure<{medium}>", "density", members)


def initial_density(dimensions: int, varying: bool, real: Real) -> KernelSpec:
    """Density of an initial pressure."""
    medium, medium_members = medium_type(varying, real)
    members: Members = (("p", "ptr"), ("rho", "ptr"), ("medium", medium_members), ("rows", ROWS))
    return row_kernel(f"InitialDensity<{dimensions},{medium}>", "density", members)


def inject(replace: bool, real: Real) -> KernelSpec:
    """Signals into fields at points."""
    members: Members = (
        ("field", "ptr"),
        ("points", "ptr"),
        ("signal", _SIGNAL),
        ("distance", "int64"),
        ("fields", "int32"),
    )
    return KernelSpec(f"{CPP}Inject<{CPP_TYPE[real]},{cpp_bool(replace)}>", "kspace/source.hpp", members)


def clear(real: Real) -> KernelSpec:
    """Zero in padded rows."""
    return row_kernel(f"Clear<{CPP_TYPE[real]}>", "source", (("padded", "ptr"), ("rows", ROWS)))


def add_field(real: Real) -> KernelSpec:
    """A whole-grid source into fields."""
    members: Members = (
        ("field", "ptr"),
        ("source", "ptr"),
        ("signal", _SIGNAL),
        ("rows", ROWS),
        ("fields", "int32"),
        ("padded", "int32"),
    )
    return row_kernel(f"AddField<{CPP_TYPE[real]}>", "source", members)


def advance() -> KernelSpec:
    """The clock."""
    return KernelSpec(f"{CPP}Advance", "kspace/source.hpp", (("clock", "ptr"),), threads=32)


def sample(sensor: SensorKind, real: Real) -> KernelSpec:
    """A row of a time series."""
    kind, members = sensor_type(sensor, real)
    rest: Members = (("series", "ptr"), ("clock", "ptr"), ("first", "int64"), ("ring", "int64"), ("sensors", "int64"))
    return KernelSpec(f"{CPP}Sample<{CPP_TYPE[real]},{kind}>", "kspace/record.hpp", (("sensor", members), *rest))


def accumulate(sensor: SensorKind, rule: Rule, real: Real) -> KernelSpec:
    """Extremes and sums in time."""
    kind, members = sensor_type(sensor, real)
    name = f"{CPP}Accumulate<{CPP_TYPE[real]},{kind},{CPP}{rule}>"
    return KernelSpec(name, "kspace/record.hpp", (("sensor", members), ("result", "ptr")))


def harmonic(sensor: SensorKind, real: Real) -> KernelSpec:
    """Sums for amplitude and phase at one frequency."""
    kind, members = sensor_type(sensor, real)
    rest: Members = (("cosine", "ptr"), ("sine", "ptr"), ("factors", "ptr"), ("clock", "ptr"), ("first", "int64"))
    return KernelSpec(f"{CPP}Harmonic<{CPP_TYPE[real]},{kind}>", "kspace/record.hpp", (("sensor", members), *rest))


def _every(reals: tuple[Real, ...], dimensions: tuple[int, ...]) -> Iterator[KernelSpec]:
    """Yield every kernel of these precisions and numbers of dimensions."""
    finishes: tuple[Finish, ...] = ("lossless", "stokes", "power-law")
    densities: tuple[DensityKind, ...] = ("uniform", "mean", "staggered")
    sensors: tuple[SensorKind, ...] = ("everywhere", "points", "between")
    rules: tuple[Rule, ...] = ("Greatest", "Least", "SumOfSquares")
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
                    yield density(d, varying, nonlinear, "keep-rate", real)
                    for finish in finishes:
                        yield density(d, varying, nonlinear, finish, real)
                        yield state_of_density(d, varying, nonlinear, finish, real)


def built_kernels() -> Iterator[KernelSpec]:
    """Yield the specialisations of the CPU table: none."""
    yield from ()


def other_kernels() -> Iterator[KernelSpec]:
    """Yield representatives of what is compiled on first use: of each family the ones that need most registers."""
    yield advance()
    yield from (bioheat(3, corrects) for corrects in (False, True))
    yield from _every(("float32", "float64"), (3,))
    yield density(3, True, True, "relaxation", "float64")
    yield state_of_density(3, True, True, "relaxation", "float64")
    yield state_of_density(3, False, False, "start-relaxation", "float64")
