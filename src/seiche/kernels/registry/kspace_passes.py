# SPDX-License-Identifier: BSD-3-Clause
"""Kernels that transform spectra and rows themselves, of `kspace/spectral_lines.hpp` and `kspace/row_lines.hpp`."""

from __future__ import annotations

from collections.abc import Iterator

from .kspace import CPP, ROWS, DensityKind, Finish, cpp_bool, density_type, finish_type, medium_type
from .kspace_lines import LineShape, fixed_transform
from .spec import CPP_TYPE, KernelSpec, Members, Real

_LINES: Members = (("inner", "int64"), ("batches", "int64"))
_RANGE: Members = (("first", "int32"), ("count", "int32"), ("all", "int32"))


#: Threads of a multiprocessor that passes with many registers leave room for.
_RESIDENT = 512


def _pass(name: str, header: str, members: Members, shape: LineShape, *, crowded: bool = False) -> KernelSpec:
    """Return a kernel whose items are batches of complex lines; a `crowded` one would take all registers."""
    blocks = shape.blocks or (_RESIDENT // shape.threads if crowded and shape.real == "float32" else 0)
    # Some versions of the assembler spill a few words of addresses outside the butterflies.
    cpp, path = f"{CPP}{name}", f"kspace/{header}.hpp"
    return KernelSpec(
        cpp, path, members, threads=shape.threads, blocks=blocks, team=True, max_registers=255, may_spill=True
    )


def side_transform(shape: LineShape, *, inverse: bool) -> KernelSpec:
    """Spectra along one axis, in place."""
    members: Members = (("spectra", "ptr"), ("roots", "ptr"), ("lines", _LINES), ("range", _RANGE))
    return _pass(f"SideTransform<{shape.cpp},{cpp_bool(inverse)}>", "spectral_lines", members, shape)


def gradient_pass(shape: LineShape, dimensions: int) -> KernelSpec:
    """From the spectrum of a field to those of its derivatives."""
    pointers = tuple((name, "ptr") for name in ("work", "derivative", "roots", "kappa"))
    members: Members = (*pointers, ("rows", ROWS), ("lines", _LINES))
    return _pass(f"GradientPass<{shape.cpp},{dimensions}>", "spectral_lines", members, shape, crowded=True)


def divergence_pass(shape: LineShape, dimensions: int) -> KernelSpec:
    """Derivatives of the components, each along its own axis."""
    factor = f"{CPP}DivergenceFactor<{CPP_TYPE[shape.real]},{dimensions}>"
    return _product(shape, factor, (("derivative", "ptr"), ("kappa", "ptr")))


def laplacian_pass(shape: LineShape, dimensions: int) -> KernelSpec:
    """The operators of power-law absorption."""
    factor = f"{CPP}LaplacianFactor<{CPP_TYPE[shape.real]},{dimensions}>"
    members: Members = (("squares", "ptr"), ("exponent", shape.real), ("scale", shape.real), ("first", "int32"))
    return _product(shape, factor, members)


def _product(shape: LineShape, factor: str, factor_members: Members) -> KernelSpec:
    pointers = (("work", "ptr"), ("roots", "ptr"))
    members: Members = (*pointers, ("factor", factor_members), ("rows", ROWS), ("lines", _LINES))
    return _pass(f"ProductPass<{shape.cpp},{factor}>", "spectral_lines", members, shape, crowded=True)


def row_forward(shape: LineShape, *, tapered: bool = False) -> KernelSpec:
    """Rows of fields into spectra, `tapered` over the overlaps of a part."""
    pointers = tuple((name, "ptr") for name in ("fields", "spectra", "roots"))
    weight: Members = (("bell", "ptr"), ("rows", ROWS)) if tapered else (("unused", "uint8"),)
    members: Members = (*pointers, ("count", "int64"), ("apart", "int64"), ("weight", weight), ("range", _RANGE))
    kind = f"{CPP}Tapered<{CPP_TYPE[shape.real]}>" if tapered else f"{CPP}Even"
    return _pass(f"RowForward<{shape.cpp},{kind}>", "row_lines", members, shape)


def row_velocity(shape: LineShape, dimensions: int, density: DensityKind, *, onward: bool) -> KernelSpec:
    """Momentum equation from spectra, and `onward` to those of the velocity."""
    kind, density_members = density_type(density, shape.real)
    pointers = tuple((name, "ptr") for name in ("u", "work", "roots", "pml"))
    members: Members = (*pointers, ("density", density_members), ("rows", ROWS), ("dt", shape.real))
    name = f"RowVelocity<{shape.cpp},{dimensions},{kind},{cpp_bool(onward)}>"
    return _pass(name, "row_lines", members, shape)


def row_density(shape: LineShape, dimensions: int, varying: bool, nonlinear: bool, finish: Finish) -> KernelSpec:
    """Conservation of mass from spectra, and what follows from the density."""
    medium, medium_members = medium_type(varying, shape.real)
    then, finish_members = finish_type(finish, nonlinear, shape.real)
    pointers = tuple((name, "ptr") for name in ("rho", "work", "roots", "pml"))
    rest: Members = (("medium", medium_members), ("finish", finish_members), ("rows", ROWS), ("dt", shape.real))
    header = "row_relaxing" if finish == "relaxation" else "row_lines"
    name = f"RowDensity<{shape.cpp},{dimensions},{cpp_bool(nonlinear)},{medium},{then}>"
    return _pass(name, header, (*pointers, *rest), shape, crowded=True)


def row_density_onward(
    shape: LineShape, dimensions: int, varying: bool, nonlinear: bool, *, losses: bool, dispersion: bool
) -> KernelSpec:
    """Conservation of mass in a power-law medium, and the spectra of what its fractional Laplacians act on."""
    medium, medium_members = medium_type(varying, shape.real)
    flags = ",".join(map(cpp_bool, (nonlinear, losses, dispersion)))
    then = f"{CPP}PowerLawSpectra<{CPP_TYPE[shape.real]},{flags}>"
    finish: Members = (("p", "ptr"), ("rates", "ptr"), ("densities", "ptr"))
    pointers = tuple((name, "ptr") for name in ("rho", "work", "roots", "pml"))
    rest: Members = (("medium", medium_members), ("finish", finish), ("rows", ROWS), ("dt", shape.real))
    name = f"RowDensity<{shape.cpp},{dimensions},{cpp_bool(nonlinear)},{medium},{then}>"
    return _pass(name, "row_lines", (*pointers, *rest), shape, crowded=True)


def row_power_law(shape: LineShape, varying: bool, *, losses: bool, dispersion: bool) -> KernelSpec:
    """Pressure of a power-law medium from spectra."""
    medium, medium_members = medium_type(varying, shape.real)
    pointers = tuple((name, "ptr") for name in ("p", "work", "roots"))
    members: Members = (*pointers, ("medium", medium_members), ("rows", ROWS), ("tangent", shape.real))
    name = f"RowPowerLaw<{shape.cpp},{medium},{cpp_bool(losses)},{cpp_bool(dispersion)}>"
    return _pass(name, "row_lines", members, shape)


def other_kernels() -> Iterator[KernelSpec]:
    """Yield representatives: lengths of three factors, the media that need most."""
    reals: tuple[Real, ...] = ("float32", "float64")
    for real in reals:
        across, along = fixed_transform(384, False, real), fixed_transform(384, True, real)
        assert across is not None and along is not None
        yield from (side_transform(across, inverse=inverse) for inverse in (False, True))
        yield gradient_pass(across, 3)
        yield divergence_pass(across, 3)
        yield laplacian_pass(across, 3)
        yield from (row_forward(along, tapered=tapered) for tapered in (False, True))
        yield from (row_velocity(along, 3, "mean", onward=onward) for onward in (False, True))
        yield row_density(along, 3, False, False, "lossless")
        yield row_density(along, 3, True, True, "stokes")
        yield row_density_onward(along, 3, True, True, losses=True, dispersion=True)
        yield row_density(along, 3, True, True, "relaxation")
        yield row_power_law(along, True, losses=True, dispersion=True)
