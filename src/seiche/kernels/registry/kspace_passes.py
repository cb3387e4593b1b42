# SPDX-License-Identifier: BSD-3-Clause
"""Kernels that include transforms of lines, `kspace/spectral_lines.hpp` and `kspace/row_lines.hpp`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from .kspace import CPP, ROWS, DensityKind, Finish, cpp_bool, density_type, finish_type, medium_type
from .kspace_lines import LineShape, fixed_transform
from .spec import CPP_TYPE, KernelSpec, Members, Real, pointers, typed_members

_LINES = typed_members("int64", "inner count batches")
_RANGE = typed_members("int32", "first count all")

#: Resident threads per multiprocessor for passes that need many registers, and for velocities that are transformed.
_RESIDENT, _RESIDENT_VELOCITY = 512, 1024


def _pass(name: str, header: str, members: Members, shape: LineShape, *, resident: int = 0) -> KernelSpec:
    """Return a kernel with one item per batch of complex lines; `resident` threads limit the registers."""
    blocks = shape.blocks or (resident // shape.threads if shape.real == "float32" else 0)
    # Some versions of the assembler spill a few words of addresses outside the butterflies.
    spec = KernelSpec(f"{CPP}{name}", f"kspace/{header}.hpp", members, threads=shape.threads, blocks=blocks)
    return replace(spec, max_registers=255, team=True, may_spill=True)


def side_transform(shape: LineShape, *, inverse: bool) -> KernelSpec:
    """Transform of spectra along one axis, in place."""
    members: Members = (*pointers("spectra roots"), ("lines", _LINES), ("range", _RANGE))
    return _pass(f"SideTransform<{shape.cpp},{cpp_bool(inverse)}>", "spectral_lines", members, shape)


def gradient_pass(shape: LineShape, dimensions: int) -> KernelSpec:
    """Spectra of the derivatives of a field, from its spectrum."""
    members: Members = (*pointers("work derivative roots kappa"), ("rows", ROWS), ("lines", _LINES))
    return _pass(f"GradientPass<{shape.cpp},{dimensions}>", "spectral_lines", members, shape, resident=_RESIDENT)


def divergence_pass(shape: LineShape, dimensions: int) -> KernelSpec:
    """Derivatives of the components, each along its own axis."""
    arrays = pointers("work derivative roots kappa")
    members: Members = (*arrays, ("rows", ROWS), ("lines", _LINES))
    return _pass(f"DivergencePass<{shape.cpp},{dimensions}>", "spectral_lines", members, shape, resident=_RESIDENT)


def laplacian_pass(shape: LineShape, dimensions: int, count: int) -> KernelSpec:
    """The operators of power-law absorption on `count` spectra."""
    numbers = (*typed_members(shape.real, "exponent scale passband slope"), ("first", "int32"))
    members: Members = (*pointers("work roots squares"), *numbers, ("rows", ROWS), ("lines", _LINES))
    return _pass(
        f"LaplacianPass<{shape.cpp},{dimensions},{count}>", "spectral_lines", members, shape, resident=_RESIDENT
    )


def row_forward(shape: LineShape, *, tapered: bool = False) -> KernelSpec:
    """Spectra of rows of fields, optionally `tapered` over the overlaps of subdomains."""
    weight: Members = (("bell", "ptr"), ("rows", ROWS)) if tapered else (("unused", "uint8"),)
    sizes = typed_members("int64", "count apart pitch")
    members: Members = (*pointers("fields spectra roots"), *sizes, ("weight", weight), ("range", _RANGE))
    kind = f"{CPP}Tapered<{CPP_TYPE[shape.real]}>" if tapered else f"{CPP}Even"
    return _pass(f"RowForward<{shape.cpp},{kind}>", "row_lines", members, shape)


def row_velocity(shape: LineShape, dimensions: int, density: DensityKind, *, onward: bool) -> KernelSpec:
    """Momentum equation from spectra; `onward` also transforms the velocity."""
    kind, density_members = density_type(density, shape.real)
    density_row: Members = (("density", density_members), ("rows", ROWS), ("dt", shape.real))
    members: Members = (*pointers("u work roots pml"), *density_row)
    name = f"RowVelocity<{shape.cpp},{dimensions},{kind},{cpp_bool(onward)}>"
    # Teams of fewer threads have larger butterflies, which would be spilled.
    resident = _RESIDENT_VELOCITY if onward and shape.threads >= 256 else 0
    return _pass(name, "row_lines", members, shape, resident=resident)


def row_density(shape: LineShape, dimensions: int, varying: bool, nonlinear: bool, finish: Finish) -> KernelSpec:
    """Conservation of mass from spectra, followed by the computation `finish`."""
    finish_name, finish_members = finish_type(finish, nonlinear, shape.real)
    header = "row_relaxing" if finish == "relaxation" else "row_lines"
    return _row_density(
        shape, dimensions, varying, nonlinear, finish_name=finish_name, finish=finish_members, header=header
    )


def _row_density(
    shape: LineShape, dimensions: int, varying: bool, nonlinear: bool, *, finish_name: str, finish: Members, header: str
) -> KernelSpec:
    medium, medium_members = medium_type(varying, shape.real)
    policies: Members = (("medium", medium_members), ("finish", finish), ("rows", ROWS), ("dt", shape.real))
    name = f"RowDensity<{shape.cpp},{dimensions},{cpp_bool(nonlinear)},{medium},{finish_name}>"
    return _pass(name, header, (*pointers("rho work roots pml"), *policies), shape, resident=_RESIDENT)


def row_density_onward(
    shape: LineShape, dimensions: int, varying: bool, nonlinear: bool, *, losses: bool, dispersion: bool
) -> KernelSpec:
    """Conservation of mass in a power-law medium, and the spectra for its fractional Laplacians."""
    flags = ",".join(map(cpp_bool, (nonlinear, losses, dispersion)))
    finish_name = f"{CPP}PowerLawSpectra<{CPP_TYPE[shape.real]},{flags}>"
    finish, header = pointers("p rates densities"), "row_lines"
    return _row_density(shape, dimensions, varying, nonlinear, finish_name=finish_name, finish=finish, header=header)


def row_power_law(shape: LineShape, varying: bool, *, losses: bool, dispersion: bool) -> KernelSpec:
    """Pressure of a power-law medium from spectra."""
    medium, medium_members = medium_type(varying, shape.real)
    arrays = pointers("p work roots")
    members: Members = (*arrays, ("medium", medium_members), ("rows", ROWS), ("tangent", shape.real))
    name = f"RowPowerLaw<{shape.cpp},{medium},{cpp_bool(losses)},{cpp_bool(dispersion)}>"
    return _pass(name, "row_lines", members, shape)


def other_kernels() -> Iterator[KernelSpec]:
    """Yield representatives: lengths of three factors, and the media that need the most registers."""
    reals: tuple[Real, ...] = ("float32", "float64")
    for real in reals:
        strided_transform, contiguous_transform = fixed_transform(384, False, real), fixed_transform(384, True, real)
        assert strided_transform is not None and contiguous_transform is not None
        yield from (side_transform(strided_transform, inverse=inverse) for inverse in (False, True))
        yield gradient_pass(strided_transform, 3)
        yield divergence_pass(strided_transform, 3)
        yield from (laplacian_pass(strided_transform, 3, count) for count in (1, 2))
        yield from (row_forward(contiguous_transform, tapered=tapered) for tapered in (False, True))
        yield from (row_velocity(contiguous_transform, 3, "mean", onward=onward) for onward in (False, True))
        yield row_density(contiguous_transform, 3, False, False, "lossless")
        yield row_density(contiguous_transform, 3, True, True, "stokes")
        yield row_density_onward(contiguous_transform, 3, True, True, losses=True, dispersion=True)
        yield row_density(contiguous_transform, 3, True, True, "relaxation")
        yield row_power_law(contiguous_transform, True, losses=True, dispersion=True)
