# SPDX-License-Identifier: BSD-3-Clause
"""The checked tables of the outputs of an ultrasound case."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, model_validator

from seiche.case.compressed import CompressedTable, ErrorTable, WaveErrors
from seiche.case.quantities import Length, PositivePressure
from seiche.case.run_tables import OutputTable, SnapshotTable
from seiche.case.tables import OneOrMore, OutputName, PictureName

Axis = Literal["x", "y", "z"]


class PressureErrors(ErrorTable):
    """Largest absolute error of stored values."""

    pressure: PositivePressure | None = Field(default=None, description="error of the pressure")


class PressureSnapshots(SnapshotTable):
    """A time series of the pressure in a plane (1D and 2D: the whole grid), for `seiche render`."""

    points: int = Field(
        default=400,
        ge=8,
        le=4000,
        description="largest number of points along a side; of more, every n-th is stored",
    )
    normal: Axis | None = Field(default=None, description="axis normal to the plane; that with the fewest points")
    at: Length | None = Field(default=None, description="position of the plane on that axis; the middle by default")
    volume: bool = Field(default=False, description="the whole grid of three axes instead of a plane")
    absolute_error: PressureErrors | None = Field(default=None, description="largest absolute errors")

    @model_validator(mode="after")
    def _plane_or_volume(self) -> PressureSnapshots:
        if self.volume and (self.normal is not None or self.at is not None):
            raise ValueError("volume: stores the whole grid; omit normal and at")
        return self


class UltrasoundOutput(OutputTable, CompressedTable):
    """Output of a run; `compression` and the errors are those of the results in `file`."""

    file: OutputName = Field(default="result.h5", description="records and medium, HDF5 in SI units")
    absolute_error: WaveErrors | None = Field(default=None, description="largest absolute errors")
    picture: PictureName | None = Field(default=None, description="figure of the field, a .png, .pdf or .svg")
    snapshots: Annotated[tuple[PressureSnapshots, ...], OneOrMore] = Field(
        default=(), description="time series of the pressure"
    )

    def files(self) -> Iterator[tuple[str, str]]:
        """Yield key and name of every file in the folder that a run may write."""
        yield "output.file", self.file
        if self.picture is not None:
            yield "output.picture", self.picture
        for table in self.snapshots:
            for name in ("file", "picture", "film"):
                if (file := getattr(table, name)) is not None:
                    yield f'output.snapshots["{table.file}"].{name}', file
        yield from super().files()

    def intervals(self) -> Iterator[tuple[str, int | float]]:
        """Yield key and value (steps or s) of every interval between states."""
        yield from ((f'output.snapshots["{table.file}"].every', table.every) for table in self.snapshots)
        yield from super().intervals()
