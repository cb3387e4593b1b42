# SPDX-License-Identifier: BSD-3-Clause
"""Grid, medium and source of Seiche from the attributes of k-wave-python's objects; no object is changed."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.ultrasound.grid import Grid
from seiche.ultrasound.kwave_arrays import emitters_of, is_array, is_transducer, transducer_source
from seiche.ultrasound.medium import Medium
from seiche.ultrasound.source import Source


def grid_of(kgrid: Any) -> Grid:
    """Return the grid of a kWaveGrid; raise CaseError if its time is not set."""
    if "auto" in (str(kgrid.Nt), str(kgrid.dt)):
        raise CaseError("kgrid.Nt, kgrid.dt: are not set; call kgrid.makeTime or kgrid.setTime")
    shape = tuple(int(n) for n in np.atleast_1d(kgrid.N))
    spacing = tuple(float(d) for d in np.atleast_1d(kgrid.spacing))
    return Grid(shape, spacing, float(kgrid.dt), int(kgrid.Nt))


def medium_of(medium: Any, grid: Grid) -> Medium:
    """Return the medium of a kWaveMedium; coefficients that are zero everywhere are omitted."""
    alpha = field_of("medium.alpha_coeff", getattr(medium, "alpha_coeff", None), grid.shape)
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
    bona = field_of("medium.BonA", getattr(medium, "BonA", None), grid.shape)
    density = field_of("medium.density", getattr(medium, "density", None), grid.shape)
    reference = getattr(medium, "sound_speed_ref", None)
    speed = field_of("medium.sound_speed", medium.sound_speed, grid.shape)
    if speed is None:
        raise CaseError("medium.sound_speed: is missing")
    return Medium(
        speed,
        1000.0 if density is None else density,
        BonA=bona if bona is not None and np.any(bona) else None,
        alpha_coeff=alpha,
        alpha_power=None if alpha is None or power is None else field_of("medium.alpha_power", power, grid.shape),
        alpha_mode=None if alpha is None or mode is None else getattr(mode, "value", mode),
        sound_speed_ref=None if reference is None else float(np.max(np.asarray(reference))),
    )


def source_of(source: Any, grid: Grid, sound_speed: npt.ArrayLike) -> Source:
    """Return the source of a kSource or a NotATransducer; its masks may be kWaveArrays."""
    if is_transducer(source):
        return Source(**transducer_source(source, grid, sound_speed))
    dt = grid.dt
    assert dt is not None
    arguments: dict[str, Any] = {}
    pressure = getattr(source, "p0", None)
    if pressure is not None and np.any(pressure):
        arguments["p0"] = field_of("source.p0", pressure, grid.shape, as_array=True)
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
        if is_array(mask):
            if kind == "u":
                raise CaseError("source.u_mask: a kWaveArray is available for source.p_mask only")
            arguments["emitters"] = emitters_of(mask, signals_set["p"], mode, factor)
            continue
        arguments[f"{kind}_mask"] = np.asarray(field_of(f"source.{kind}_mask", mask, grid.shape, as_array=True)) != 0
        arguments[f"{kind}_mode"] = mode
        for name, value in signals_set.items():
            samples = np.asarray(value, np.float64)
            arguments[name] = factor * samples.reshape(-1, samples.shape[-1])
    return Source(**arguments)


def field_of(name: str, value: Any, shape: tuple[int, ...], *, as_array: bool = False) -> Any:
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
