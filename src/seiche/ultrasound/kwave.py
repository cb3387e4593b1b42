# SPDX-License-Identifier: BSD-3-Clause
"""Interface for objects of k-wave-python: kWaveGrid, kWaveMedium, kSource and kSensor in, its dictionary out.

from seiche.ultrasound.kwave import kspaceFirstOrder     instead of     from kwave.kspaceFirstOrder import ...

Only attributes of the objects are read; the package need not be installed.
"""

from __future__ import annotations

import inspect
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.ultrasound.grid import Grid
from seiche.ultrasound.medium import Medium
from seiche.ultrasound.numbers import largest_prime_factor
from seiche.ultrasound.radial import OuterEnd, continued_points
from seiche.ultrasound.sensor import Sensor
from seiche.ultrasound.simulate import simulate
from seiche.ultrasound.source import Source

_SUFFIXES = ("", "_max", "_min", "_rms", "_max_all", "_min_all", "_final")
#: Sizes of a layer for "auto".
_AUTO_SIZES = range(10, 41)
#: Attributes that the solver of k-wave-python also ignores.
_IGNORED = {"medium": ("alpha_filter", "alpha_sign"), "sensor": ("directivity", "frequency_response")}


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
        source: a kSource.
        sensor: a kSensor; by default the whole grid is recorded.
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
    return _results(grid_of(kgrid), medium, source, sensor, options)


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
        sensor: a kSensor; by default the whole grid is recorded.
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
    parameters = inspect.signature(kspaceFirstOrder).parameters
    defaults = {key: value.default for key, value in parameters.items() if value.kind == value.KEYWORD_ONLY}
    unknown = [key for key in options if key not in defaults]
    if unknown:
        raise CaseError(f"{unknown[0]}: is not an option of kspaceFirstOrder")
    grid = replace(grid_of(kgrid), symmetry="axisymmetric", outer_end=ends[name])
    return _results(grid, medium, source, sensor, defaults | options)


def _results(grid: Grid, medium: Any, source: Any, sensor: Any, options: dict[str, Any]) -> dict[str, npt.NDArray[Any]]:
    """Return the records on a grid, for the keyword arguments of `kspaceFirstOrder`."""
    _check_options(options, medium, sensor)
    dimensions, inside = len(grid.shape), options["pml_inside"]
    size, device, number = options["pml_size"], options["device"], options["device_num"]
    automatic = isinstance(size, str) and size.lower() == "auto"
    sizes = _auto_sizes(grid) if automatic else _one_per_axis("pml_size", size, dimensions)
    alphas = _one_per_axis("pml_alpha", options["pml_alpha"], dimensions)
    requested = _requested(sensor, grid)
    results = simulate(
        grid,
        medium_of(medium, grid),
        source_of(source, grid),
        sensor_of(sensor, grid, requested),
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
    return {name: _named(results, name, interior) for name in requested}


def _check_options(options: dict[str, Any], medium: Any, sensor: Any) -> None:
    """Raise CaseError for options that Seiche does not have; issue warnings for ignored attributes."""
    if not (options["use_sg"] and options["use_kspace"]):
        raise CaseError("use_sg, use_kspace: must be True; other schemes are not available")
    if options["backend"] not in ("python", "cpp"):
        raise CaseError(f"backend: {options['backend']!r} is not 'python' or 'cpp'")
    if options["save_only"]:
        raise CaseError("save_only: must be False; use k-wave-python to write files for kspaceFirstOrder-OMP")
    if options["device"] not in ("cpu", "gpu", "cuda"):
        raise CaseError(f"device: {options['device']!r} is not 'cpu', 'gpu' or 'cuda'")
    for owner, names in _IGNORED.items():
        for name in names:
            if getattr({"medium": medium, "sensor": sensor}[owner], name, None) is not None:
                warnings.warn(f"{owner}.{name} is ignored, as in k-wave-python", stacklevel=4)


def grid_of(kgrid: Any) -> Grid:
    """Return the grid of a kWaveGrid; raise CaseError if its time is not set."""
    if "auto" in (str(kgrid.Nt), str(kgrid.dt)):
        raise CaseError("kgrid.Nt, kgrid.dt: are not set; call kgrid.makeTime or kgrid.setTime")
    shape = tuple(int(n) for n in np.atleast_1d(kgrid.N))
    spacing = tuple(float(d) for d in np.atleast_1d(kgrid.spacing))
    return Grid(shape, spacing, float(kgrid.dt), int(kgrid.Nt))


def medium_of(medium: Any, grid: Grid) -> Medium:
    """Return the medium of a kWaveMedium; coefficients that are zero everywhere are omitted."""
    alpha = _field("medium.alpha_coeff", getattr(medium, "alpha_coeff", None), grid.shape)
    if alpha is not None and not np.any(alpha):
        alpha = None
    mode = getattr(medium, "alpha_mode", None)
    power = getattr(medium, "alpha_power", None)
    if grid.symmetry is not None and alpha is not None:
        if mode is not None:
            raise CaseError(
                f"medium.alpha_mode: {mode!r}; axisymmetric simulations of k-Wave have Stokes absorption only"
            )
        if power is not None and np.any(np.asarray(power) != 2):
            warnings.warn("medium.alpha_power: axisymmetric simulations of k-Wave use the exponent 2", stacklevel=4)
        power, mode = 2.0, "stokes"
    bona = _field("medium.BonA", getattr(medium, "BonA", None), grid.shape)
    density = _field("medium.density", getattr(medium, "density", None), grid.shape)
    reference = getattr(medium, "sound_speed_ref", None)
    speed = _field("medium.sound_speed", medium.sound_speed, grid.shape)
    if speed is None:
        raise CaseError("medium.sound_speed: is missing")
    return Medium(
        speed,
        1000.0 if density is None else density,
        BonA=bona if bona is not None and np.any(bona) else None,
        alpha_coeff=alpha,
        alpha_power=None if alpha is None or power is None else _field("medium.alpha_power", power, grid.shape),
        alpha_mode=None if alpha is None or mode is None else getattr(mode, "value", mode),
        sound_speed_ref=None if reference is None else float(np.max(np.asarray(reference))),
    )


def source_of(source: Any, grid: Grid) -> Source:
    """Return the source of a kSource."""
    dt = grid.dt
    assert dt is not None
    arguments: dict[str, Any] = {}
    pressure = getattr(source, "p0", None)
    if pressure is not None and np.any(pressure):
        arguments["p0"] = _field("source.p0", pressure, grid.shape, as_array=True)
    for kind, signals in (("p", ("p",)), ("u", ("ux", "uy", "uz"))):
        mask = getattr(source, f"{kind}_mask", None)
        signals_set = {name: getattr(source, name, None) for name in signals}
        signals_set = {name: value for name, value in signals_set.items() if value is not None and np.any(value)}
        if mask is None and signals_set:
            raise CaseError(
                f"source.{kind}_mask: is missing; required for {' and '.join(f'source.{key}' for key in signals_set)}"
            )
        if mask is None or not signals_set:
            continue
        mode = getattr(source, f"{kind}_mode", None) or "additive"
        frequency = getattr(source, f"{kind}_frequency_ref", None)
        factor = 1.0
        if frequency is not None and mode == "additive":
            factor, mode = float(np.cos(np.pi * frequency * dt)), "additive-no-correction"
        arguments[f"{kind}_mask"] = np.asarray(_field(f"source.{kind}_mask", mask, grid.shape, as_array=True)) != 0
        arguments[f"{kind}_mode"] = mode
        for name, value in signals_set.items():
            samples = np.asarray(value, np.float64)
            arguments[name] = factor * samples.reshape(-1, samples.shape[-1])
    return Source(**arguments)


def sensor_of(sensor: Any, grid: Grid, results: list[str]) -> Sensor:
    """Return the sensor of a kSensor with the records for these `results`."""
    mask = getattr(sensor, "mask", None)
    positions: dict[str, Any]
    if mask is None or np.size(mask) == 1:
        positions = {"mask": np.full(grid.shape, True if mask is None else bool(np.ravel(mask)[0]))}
    elif np.ndim(mask) == 2 and np.shape(mask)[0] == len(grid.shape):
        positions = {"positions": np.asarray(mask, np.float64).T}
    else:
        positions = {"mask": np.asarray(_field("sensor.mask", mask, grid.shape, as_array=True)) != 0}
    first = getattr(sensor, "record_start_index", 1)
    record = tuple(dict.fromkeys(_record_for(name) for name in results))
    return Sensor(**positions, record=record, first=int(1 if first is None else first) - 1)


def _requested(sensor: Any, grid: Grid) -> list[str]:
    """Return the names of single results of a sensor: "u" means one per axis. Raise CaseError for an unknown name."""
    record = getattr(sensor, "record", None) or ("p", "p_final")
    valid = {f"p{suffix}" for suffix in _SUFFIXES}
    for axis in grid.axes:
        valid |= {f"u{axis}{suffix}" for suffix in (*_SUFFIXES, "_staggered")} | {f"I{axis}", f"I{axis}_avg"}
    names: list[str] = []
    for name in (record,) if isinstance(record, str) else record:
        kind, _, suffix = str(name).partition("_")
        expanded = (
            [f"{kind}{axis}{'_' if suffix else ''}{suffix}" for axis in grid.axes] if kind in ("u", "I") else [name]
        )
        for component in expanded:
            if component not in valid:
                raise CaseError(f"sensor.record: {name!r} is not one of {', '.join(sorted(valid))}")
            names.append(component)
    return list(dict.fromkeys(names))


def _record_for(name: str) -> str:
    """Return the record from which a result is computed."""
    kind, _, suffix = name.partition("_")
    if kind[0] == "I":
        return f"I_{suffix}" if suffix else "I"
    if kind == "p":
        return name
    if suffix == "staggered":
        return "u"
    return "u_non_staggered" if suffix in ("", "max", "min", "rms") else f"u_{suffix}"


def _named(results: dict[str, npt.NDArray[Any]], name: str, inside: tuple[slice, ...]) -> npt.NDArray[Any]:
    kind, _, suffix = name.partition("_")
    if kind[0] == "u" and suffix in ("", "staggered", "max", "min", "rms"):
        if suffix == "staggered":
            return results[kind]
        series = results[f"{kind}_non_staggered"]
        if not suffix:
            return series
        if suffix == "rms":
            return np.asarray(np.sqrt(np.mean(np.square(series), axis=-1)))
        return np.asarray(series.max(axis=-1) if suffix == "max" else series.min(axis=-1))
    return results[name][inside] if suffix == "final" else results[name]


def _field(name: str, value: Any, shape: tuple[int, ...], *, as_array: bool = False) -> Any:
    """Return a number, or an array of the grid's shape from one of as many values; None stays None."""
    if value is None:
        return None
    array = np.asarray(value)
    if array.size == 1 and not as_array:
        return array.ravel()[0]
    if array.size == 1:
        return np.full(shape, array.ravel()[0])
    if array.size != np.prod(shape):
        raise CaseError(f"{name}: has {array.size} values, but the grid has {'x'.join(map(str, shape))} points")
    return array.reshape(shape)


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
