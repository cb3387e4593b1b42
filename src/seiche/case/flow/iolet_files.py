# SPDX-License-Identifier: BSD-3-Clause
"""Input data of iolets, in SI units: tables of values over time, weights, computed profiles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from seiche.case.flow.schema import FlowCase
from seiche.case.flow.schema_iolet import PressureOpening, VelocityOpening
from seiche.case.quantities import parse_quantity
from seiche.domain.occupancy import SizedSites
from seiche.domain.sites import SiteSet
from seiche.errors import CaseError, FormatError
from seiche.flow.model import SiteProfile
from seiche.flow.section import developed_profile, profile_flow_rate
from seiche.flow.velocity_set import VELOCITY_SETS, VelocitySet
from seiche.io.files import cause_of

Content = TypeVar("Content")


@dataclass(frozen=True, eq=False)
class TimeSeries:
    """Values in Pa or m/s at `times` (s), both (n,).

    `dropped` rows were omitted because the next row has the same time.
    """

    times: npt.NDArray[np.float64]
    values: npt.NDArray[np.float64]
    repeat: bool
    dropped: int = 0

    @property
    def period(self) -> float | None:
        """Return the period (s); None for a series that is not periodic."""
        return float(self.times[-1] - self.times[0]) if self.repeat else None


@dataclass(frozen=True, eq=False)
class IoletInput:
    """Data of one iolet from its files and its section; `area` (m^2) is the flow rate of `profile` at unit velocity."""

    series: TimeSeries | None = None
    profile: SiteProfile | None = None
    area: float | None = None


def iolet_inputs(case: FlowCase, sites: SiteSet, source: str) -> dict[str, IoletInput]:
    """Return the input of each iolet of `case`, by name; files are relative to the folder of `source`.

    Raises CaseError for a file that cannot be read or does not match the geometry, FormatError for an invalid file.
    """
    folder = Path(source).parent
    indices = {plane.name: k for k, plane in enumerate(sites.iolets)}
    result = {}
    for opening in case.iolet:
        series = profile = area = None
        if isinstance(opening, PressureOpening | VelocityOpening) and opening.table is not None:
            series = _series(folder / opening.table, opening, source)
        if isinstance(opening, VelocityOpening) and (opening.weights is not None or opening.profile == "computed"):
            if isinstance(sites, SizedSites):  # the section is not known
                result[opening.name] = IoletInput(series)
                continue
            try:
                lattice, number = VELOCITY_SETS[case.lattice.velocity_set], indices[opening.name]
                path = folder / opening.weights if opening.weights is not None else None
                profile = _profile(path, f'{source}: iolet["{opening.name}"].weights', sites, number, lattice)
                area = profile_flow_rate(sites, number, profile, lattice) * sites.spacing**2
            except CaseError as error:
                raise CaseError(f"{source}: {error}") from None
            if opening.flow_rate is not None and not area > 0:
                raise CaseError(
                    f'{source}: iolet["{opening.name}"].weights: the weights give no inflow; use positive weights'
                )
        result[opening.name] = IoletInput(series, profile, area)
    return result


def notes_of(inputs: dict[str, IoletInput], duration: float) -> tuple[str, ...]:
    """Return lines for tables that end before a run of `duration` seconds, and for tables with equal times."""
    ends = tuple(
        f'iolet["{name}"].table: ends at {entry.series.times[-1]:g} s, before the end of the run at {duration:g} s; '
        "its last value applies from then on (repeat = true repeats the table)"
        for name, entry in inputs.items()
        if entry.series is not None and not entry.series.repeat and entry.series.times[-1] < duration
    )
    return ends + tuple(
        f'iolet["{name}"].table: {entry.series.dropped} rows have the time of the next row; the last row of equal '
        'times is used (equal_times = "last")'
        for name, entry in inputs.items()
        if entry.series is not None and entry.series.dropped
    )


def _series(path: Path, opening: PressureOpening | VelocityOpening, source: str) -> TimeSeries:
    from seiche.io.formats.columns import read_time_table

    last = isinstance(opening, VelocityOpening) and opening.equal_times == "last"
    reader = partial(read_time_table, last_of_equal=last)
    times, values, dropped = _read(path, reader, f'{source}: iolet["{opening.name}"].table')
    if opening.repeat and len(times) < 2:
        raise FormatError(path, "whole file", "one row; a repeated table needs at least two")
    if opening.repeat and abs(values[-1] - values[0]) > 1e-6 * float(np.ptp(values)):
        raise FormatError(
            path,
            "last row",
            f"{values[-1]:g} differs from the first value {values[0]:g}; a repeated table must end with its first "
            "value",
        )
    if isinstance(opening, PressureOpening):
        unit = parse_quantity("1 mmHg", dimension="pressure")
    else:
        unit = 1.0 if opening.table_scale is None else opening.table_scale
    return TimeSeries(times, values * unit, bool(opening.repeat), dropped)


def _profile(path: Path | None, key: str, sites: SiteSet, number: int, lattice: VelocitySet) -> SiteProfile:
    if path is None:
        return developed_profile(sites, number, lattice)
    from seiche.io.formats.columns import read_weights

    return SiteProfile(*_read(path, read_weights, key))


def _read(path: Path, reader: Callable[[Path], Content], key: str) -> Any:
    try:
        return reader(path)
    except OSError as error:
        raise CaseError(f"{key}: cannot read {path}: {cause_of(error)}") from None
