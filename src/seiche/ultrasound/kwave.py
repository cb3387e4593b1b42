# SPDX-License-Identifier: BSD-3-Clause
"""Interface for objects of k-wave-python: kWaveGrid, kWaveMedium, kSource and kSensor in, its dictionary out.

from seiche.ultrasound.kwave import kspaceFirstOrder     instead of     from kwave.kspaceFirstOrder import ...

Only attributes of the objects are read; the package need not be installed.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.ultrasound.grid import Grid
from seiche.ultrasound.kwave_arrays import element_signals, is_transducer
from seiche.ultrasound.kwave_objects import grid_of, medium_of, source_of
from seiche.ultrasound.kwave_sensors import named, requested, sensor_of
from seiche.ultrasound.numbers import largest_prime_factor
from seiche.ultrasound.radial import OuterEnd, continued_points
from seiche.ultrasound.scan_lines import simulate_lines

#: Sizes of a layer for "auto".
_AUTO_SIZES = range(10, 41)


def kspaceFirstOrder(  # noqa: N802 (name and arguments of k-wave-python)
    kgrid: Any,
    medium: Any,
    source: Any,
    sensor: Any = None,
    *,
    pml_size: Any = 20,
    pml_alpha: Any = 2.0,
    pml_inside: bool = False,
    use_sg: bool = True,
    use_kspace: bool = True,
    smooth_p0: bool = True,
    backend: str = "python",
    device: str = "cpu",
    dtype: Any = None,
    save_only: bool = False,
    data_path: Any = None,
    quiet: bool = True,
    debug: bool = False,
    num_threads: int | None = None,
    device_num: int | None = None,
    binary_path: Any = None,
    scheme: str = "exact",
) -> dict[str, npt.NDArray[Any]]:
    """Return the records of a simulation with objects of k-wave-python, by its names; no object is changed.

    Series are (n_sensor, n_times) in C order. "ux" is the velocity at the grid's points, "ux_staggered" on the
    staggered grid. Final fields exclude the absorbing layers. `medium.sound_speed_ref` and the reference frequencies of
    sources have the meaning of k-Wave's manual.

    Args:
        kgrid: a kWaveGrid with its time set.
        medium: a kWaveMedium.
        source: a kSource, whose p_mask may be a kWaveArray with one signal or one for each element; or a
            NotATransducer.
        sensor: a kSensor, whose mask may be a kWaveArray; or a NotATransducer, whose elements record p. By default
            every point is recorded, layers outside the grid included.
        pml_size: points of the absorbing layer, one number, one per axis, or "auto".
        pml_alpha: its strength, one number or one per axis.
        pml_inside: whether the layer is a part of the grid; else the grid is enlarged.
        use_sg: must be True.
        use_kspace: must be True.
        smooth_p0: smooth the initial pressure (two and three dimensions).
        backend: "python" or "cpp", without effect.
        device: "cpu", "gpu" or "cuda".
        dtype: double precision by default.
        save_only: must be False; there are no files.
        quiet: without effect; nothing is printed.
        debug: without effect.
        data_path: without effect.
        binary_path: without effect.
        num_threads: CPU threads.
        device_num: number of the GPU.
        scheme: "exact" as in k-Wave, "separable" or "local4".

    Raises:
        CaseError: an impossible value; names the attribute.
    """
    options = {k: v for k, v in locals().items() if k not in ("kgrid", "medium", "source", "sensor")}
    return _results(grid_of(kgrid), medium, [source], sensor, options)[0]


def kspaceFirstOrderAS(  # noqa: N802 (name of k-Wave)
    kgrid: Any, medium: Any, source: Any, sensor: Any = None, *, radial_symmetry: str = "WSWA", **options: Any
) -> dict[str, npt.NDArray[Any]]:
    """Return the records of an axisymmetric simulation with objects of k-wave-python; no object is changed.

    x is the axis of symmetry and y the distance from it, whose first point lies on the axis. Absorption has the
    exponent 2, as in k-Wave; a warning is issued if the medium has another one.

    Args:
        kgrid: a kWaveGrid of two axes with its time set.
        medium: a kWaveMedium.
        source: a kSource.
        sensor: a kSensor; by default every point is recorded.
        radial_symmetry: "WSWA" (the pressure is zero beyond the last point) or "WSWS" (the radial velocity is zero at
            the last point); the suffix "-FFT" has no effect.
        options: of `kspaceFirstOrder`; the scheme must be "exact".

    Raises:
        CaseError: an impossible value; names the attribute.
    """
    ends: dict[str, OuterEnd] = {"WSWA": "pressure-release", "WSWS": "rigid"}
    name = str(radial_symmetry).removesuffix("-FFT")
    if name not in ends:
        raise CaseError(f"radial_symmetry: {radial_symmetry!r} is not WSWA, WSWS, WSWA-FFT or WSWS-FFT")
    grid = replace(grid_of(kgrid), symmetry="axisymmetric", outer_end=ends[name])
    return _results(grid, medium, [source], sensor, _with_defaults(options))[0]


def scan_lines(
    kgrid: Any, medium: Any, sources: Iterable[Any], sensor: Any = None, *, at_once: int | None = None, **options: Any
) -> list[dict[str, npt.NDArray[Any]]]:
    """Return the records of one simulation for each source in one medium, as `kspaceFirstOrder` returns them.

    The medium is set up once, and several simulations run at the same time (`seiche.ultrasound.simulate_lines`).

    Args:
        kgrid: a kWaveGrid with its time set.
        medium: a kWaveMedium.
        sources: a source of `kspaceFirstOrder` for each line; a generator may yield one NotATransducer again and again
            after changing its steering angle, focus or active elements. As a sensor, the same transducer must have the
            same active elements for all lines.
        sensor: as of `kspaceFirstOrder`.
        at_once: number of simulations at the same time, by default as of `simulate_lines`.
        options: of `kspaceFirstOrder`.

    Raises:
        CaseError: an impossible value; names the attribute.
    """
    return _results(grid_of(kgrid), medium, sources, sensor, _with_defaults(options), at_once=at_once)


def _with_defaults(options: dict[str, Any]) -> dict[str, Any]:
    """Return options with those of `kspaceFirstOrder` as defaults; raise CaseError for an unknown one."""
    parameters = inspect.signature(kspaceFirstOrder).parameters
    defaults = {key: value.default for key, value in parameters.items() if value.kind == value.KEYWORD_ONLY}
    unknown = [key for key in options if key not in defaults]
    if unknown:
        raise CaseError(f"{unknown[0]}: is not an option of kspaceFirstOrder")
    return defaults | options


def _results(
    grid: Grid, medium: Any, sources: Iterable[Any], sensor: Any, options: dict[str, Any], *, at_once: int | None = None
) -> list[dict[str, npt.NDArray[Any]]]:
    """Return the records on a grid for each source, for the keyword arguments of `kspaceFirstOrder`."""
    _check_options(options, medium)
    dimensions, inside = len(grid.shape), options["pml_inside"]
    size, device, number = options["pml_size"], options["device"], options["device_num"]
    automatic = isinstance(size, str) and size.lower() == "auto"
    sizes = _auto_sizes(grid) if automatic else _one_per_axis("pml_size", size, dimensions)
    alphas = _one_per_axis("pml_alpha", options["pml_alpha"], dimensions)
    names = requested(sensor, grid)
    media = medium_of(medium, grid)
    records = simulate_lines(
        grid,
        media,
        [source_of(source, grid, media.sound_speed) for source in sources],
        sensor_of(sensor, grid, names),
        at_once=at_once,
        pml_size=tuple(int(n) for n in sizes),
        pml_alpha=tuple(float(a) for a in alphas),
        pml_inside=inside,
        smooth_p0=options["smooth_p0"] and dimensions > 1,
        scheme=options["scheme"],
        device="cpu" if device == "cpu" else ("cuda" if number is None else f"cuda:{number}"),
        precision=_precision(options["dtype"]),
        threads=options["num_threads"],
    )
    layers = [int(n) if a and inside else 0 for n, a in zip(sizes, alphas, strict=True)]
    interior = tuple(
        slice(0 if grid.is_radial(axis) else n, m - n) for axis, n, m in zip(grid.axes, layers, grid.shape, strict=True)
    )
    for results in records if is_transducer(sensor) and "p" in names else ():
        results["p"] = element_signals(sensor, results["p"])
    return [{name: named(results, name, interior) for name in names} for results in records]


def _check_options(options: dict[str, Any], medium: Any) -> None:
    """Raise CaseError for options and attributes that Seiche does not have."""
    if not (options["use_sg"] and options["use_kspace"]):
        raise CaseError("use_sg, use_kspace: must be True; other schemes are not available")
    if options["backend"] not in ("python", "cpp"):
        raise CaseError(f"backend: {options['backend']!r} is not 'python' or 'cpp'")
    if options["save_only"]:
        raise CaseError("save_only: must be False; use k-wave-python to write files for kspaceFirstOrder-OMP")
    if options["device"] not in ("cpu", "gpu", "cuda"):
        raise CaseError(f"device: {options['device']!r} is not 'cpu', 'gpu' or 'cuda'")
    signs = getattr(medium, "alpha_sign", None)
    if signs is not None and not np.all(np.ravel(signs) == 1):
        raise CaseError(
            "medium.alpha_sign: a medium that amplifies is unstable without a filter; use time_reversal(...,"
            " compensate=f) or kwave_images.TimeReversal, whose filter is defined by a frequency"
        )
    if getattr(medium, "alpha_filter", None) is not None:
        raise CaseError(
            "medium.alpha_filter: the filter belongs to absorption with another sign; use time_reversal(...,"
            " compensate=f), whose filter is defined by a frequency"
        )


def _one_per_axis(name: str, value: Any, dimensions: int) -> tuple[float, ...]:
    """Return one number per axis; the last one applies to all further axes."""
    if isinstance(value, str):
        raise CaseError(f"{name}: {value!r} is not a number, a tuple of numbers or 'auto' (pml_size)")
    values = tuple(float(number) for number in np.atleast_1d(np.asarray(value, np.float64)))
    if not 1 <= len(values) <= dimensions:
        raise CaseError(f"{name}: {len(values)} numbers for {dimensions} axes")
    return values + (values[-1],) * (dimensions - len(values))


def _auto_sizes(grid: Grid) -> tuple[float, ...]:
    """Return layers that minimise the largest prime factor of every transform."""

    def prime_of(axis: str, points: int, size: int) -> int:
        radial = grid.is_radial(axis)
        return largest_prime_factor(continued_points(points + size, grid.outer_end) if radial else points + 2 * size)

    axes = zip(grid.axes, grid.shape, strict=True)
    return tuple(float(min((prime_of(axis, points, n), n) for n in _AUTO_SIZES)[1]) for axis, points in axes)


def _precision(dtype: Any) -> str:
    if dtype is None or dtype in ("off", "double", float):
        return "float64"
    try:
        name = "float32" if dtype == "single" else np.dtype(dtype).name
    except TypeError:
        name = ""
    if name not in ("float32", "float64"):
        raise CaseError(f"dtype: {dtype!r} is not float32 or float64")
    return name
