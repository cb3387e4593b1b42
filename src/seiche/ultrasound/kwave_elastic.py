# SPDX-License-Identifier: BSD-3-Clause
"""Elastic simulations with objects of k-wave-python, by the names of its functions.

from seiche.ultrasound.kwave_elastic import pstd_elastic_2d     instead of     from kwave.pstdElastic2D import ...

Only attributes of the objects are read; the package need not be installed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.ultrasound.grid import Grid
from seiche.ultrasound.kwave_arrays import is_array, is_transducer
from seiche.ultrasound.kwave_objects import field_of, grid_of
from seiche.ultrasound.medium import Medium
from seiche.ultrasound.problem import stress_names
from seiche.ultrasound.sensor import Sensor
from seiche.ultrasound.simulate import simulate
from seiche.ultrasound.source import Source


def pstd_elastic_2d(  # noqa: D417 (the objects have the meaning of the package)
    kgrid: Any, source: Any, sensor: Any, medium: Any, simulation_options: Any = None, **options: Any
) -> dict[str, npt.NDArray[Any]]:
    """Return the records of an elastic simulation with objects of k-wave-python; no object is changed.

    Series are (n_sensor, n_times). Their rows, and the signals of sources with one for each point, are in the order of
    the package: the first axis varies fastest. "ux" is the velocity on the staggered grid, "ux_non_staggered" that at
    the points of the grid. An initial pressure begins at time zero; the package spreads it over two steps.

    Args:
        kgrid: a kWaveGrid with its time set.
        source: a kSource with p0, or ux, uy with u_mask, or sxx, syy, sxy with s_mask.
        sensor: a kSensor with a binary mask, or Cartesian positions.
        medium: a kWaveMedium with sound_speed_compression, sound_speed_shear and density, and alpha_coeff_compression
            and alpha_coeff_shear in dB/(MHz^2 cm).
        simulation_options: SimulationOptions, of which pml_size, pml_alpha, pml_inside, smooth_p0 and data_cast
            ("single" or double precision) are read.
        device: "cpu" or "cuda".
        num_threads: CPU threads.

    Raises:
        CaseError: an impossible value; names the attribute.
    """
    return _records(2, kgrid, source, sensor, medium, settings=simulation_options, **options)


def pstd_elastic_3d(
    kgrid: Any, source: Any, sensor: Any, medium: Any, simulation_options: Any = None, **options: Any
) -> dict[str, npt.NDArray[Any]]:
    """Return the same as `pstd_elastic_2d` in three dimensions, with uz, szz, sxz and syz.

    Raises:
        CaseError: an impossible value; names the attribute.
    """
    return _records(3, kgrid, source, sensor, medium, settings=simulation_options, **options)


def _records(
    dimensions: int,
    kgrid: Any,
    source: Any,
    sensor: Any,
    medium: Any,
    *,
    settings: Any,
    device: str = "cpu",
    num_threads: int | None = None,
) -> dict[str, npt.NDArray[Any]]:
    grid = grid_of(kgrid)
    if len(grid.shape) != dimensions:
        raise CaseError(f"kgrid: has {len(grid.shape)} axes; pstd_elastic_{dimensions}d needs {dimensions}")
    sensors, order = _sensor_of(sensor, grid)
    size, alpha = getattr(settings, "pml_size", None), getattr(settings, "pml_alpha", None)
    results = simulate(
        grid,
        elastic_medium_of(medium, grid),
        _source_of(source, grid),
        sensors,
        pml_size=None if size is None else tuple(int(n) for n in _one_per_axis("pml_size", size, dimensions)),
        pml_alpha=_one_per_axis("pml_alpha", 2.0 if alpha is None else alpha, dimensions),
        pml_inside=bool(getattr(settings, "pml_inside", True)),
        smooth_p0=bool(getattr(settings, "smooth_p0", True)),
        device=device,
        precision="float32" if getattr(settings, "data_cast", None) == "single" else "float64",
        threads=num_threads,
    )
    if order is None:
        return results
    whole = ("_all", "_final")
    return {name: values if name.endswith(whole) else values[order] for name, values in results.items()}


def _one_per_axis(name: str, value: Any, dimensions: int) -> tuple[float, ...]:
    """Return one number per axis."""
    try:
        values = np.broadcast_to(np.asarray(value, np.float64).ravel(), (dimensions,))
    except ValueError:
        raise CaseError(f"simulation_options.{name}: {value!r} is not a number or {dimensions} numbers") from None
    return tuple(float(number) for number in values)


def elastic_medium_of(medium: Any, grid: Grid) -> Medium:
    """Return the elastic medium of a kWaveMedium."""

    def field(name: str) -> Any:
        return field_of(f"medium.{name}", getattr(medium, name, None), grid.shape)

    values = {name: field(name) for name in ("sound_speed_compression", "sound_speed_shear", "density")}
    for name, value in values.items():
        if value is None:
            raise CaseError(f"medium.{name}: is missing")
    if np.any(getattr(medium, "BonA", None) or 0.0):
        raise CaseError("medium.BonA: elastic media are linear")
    absorption, shear_absorption = field("alpha_coeff_compression"), field("alpha_coeff_shear")
    return Medium(
        values["sound_speed_compression"],
        values["density"],
        shear_speed=values["sound_speed_shear"],
        alpha_coeff=absorption if absorption is not None and np.any(absorption) else None,
        shear_alpha_coeff=shear_absorption if shear_absorption is not None and np.any(shear_absorption) else None,
    )


def _source_of(source: Any, grid: Grid) -> Source:
    """Return the source of a kSource."""
    if is_transducer(source):
        raise CaseError("source: a NotATransducer is not available in elastic media")
    if getattr(source, "p", None) is not None and np.any(source.p):
        raise CaseError("source.p: elastic media have sources of stress; use sxx, syy and szz with the opposite sign")
    arguments: dict[str, Any] = {}
    pressure = getattr(source, "p0", None)
    if pressure is not None and np.any(pressure):
        arguments["p0"] = field_of("source.p0", pressure, grid.shape, as_array=True)
    for kind, names in (("u", [f"u{axis}" for axis in grid.axes]), ("s", list(stress_names(grid.axes)))):
        signals = {name: value for name in names if (value := getattr(source, name, None)) is not None}
        signals = {name: value for name, value in signals.items() if np.any(value)}
        if not signals:
            continue
        mask = getattr(source, f"{kind}_mask", None)
        if mask is None or is_array(mask):
            raise CaseError(f"source.{kind}_mask: is not a binary mask; required for source.{next(iter(signals))}")
        points = np.asarray(field_of(f"source.{kind}_mask", mask, grid.shape, as_array=True)) != 0
        arguments[f"{kind}_mask"] = points
        mode = getattr(source, f"{kind}_mode", None) or "additive"
        arguments[f"{kind}_mode"] = "additive-no-correction" if (kind, mode) == ("u", "additive") else mode
        for name, value in signals.items():
            samples = np.asarray(value, np.float64)
            samples = samples.reshape(-1, samples.shape[-1])
            arguments[name] = samples[rank_in_first_axis_order(points)] if len(samples) > 1 else samples
    return Source(**arguments)


def _sensor_of(sensor: Any, grid: Grid) -> tuple[Sensor, npt.NDArray[np.int64] | None]:
    """Return the sensor of a kSensor, and the order of its points with the first axis varying fastest, if any."""
    mask = getattr(sensor, "mask", None)
    if mask is None or is_transducer(sensor) or is_array(mask):
        raise CaseError("sensor.mask: is not a binary mask or an array of Cartesian positions")
    record = getattr(sensor, "record", None) or ("p",)
    first = getattr(sensor, "record_start_index", 1)
    options: dict[str, Any] = {
        "record": (record,) if isinstance(record, str) else tuple(str(name) for name in record),
        "first": int(1 if first is None else first) - 1,
    }
    if np.ndim(mask) == 2 and np.shape(mask) != grid.shape and np.shape(mask)[0] == len(grid.shape):
        return Sensor(positions=np.asarray(mask, np.float64).T, **options), None
    points = np.asarray(field_of("sensor.mask", mask, grid.shape, as_array=True)) != 0
    return Sensor(mask=points, **options), np.argsort(rank_in_first_axis_order(points))


def rank_in_first_axis_order(mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return for each point of a mask in C order its number among the points with the first axis varying fastest."""
    numbers = np.zeros(mask.shape, np.int64)
    numbers.T[mask.T] = np.arange(np.count_nonzero(mask))
    return numbers[mask]
