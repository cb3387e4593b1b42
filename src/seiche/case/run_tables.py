# SPDX-License-Identifier: BSD-3-Clause
"""Tables that all kinds of case share: execution and common outputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from seiche.case.compressed import CompressedTable
from seiche.case.quantities import Interval, PositiveTime
from seiche.case.tables import FileName, OutputName, PictureName, Table, TraceName, first_duplicate
from seiche.errors import CaseError
from seiche.halo.transports import TransportName
from seiche.report.page_size import MAX_DPI, MIN_DPI, PageSize, page_of, parse_size


def _size_of_pictures(value: str) -> str:
    try:
        PageSize(None, parse_size(value))
    except CaseError as error:
        raise ValueError(str(error)) from None
    return value


PictureSize = Annotated[str, AfterValidator(_size_of_pictures)]


class CaseTable(Table):
    """Keys before the first table of every case file; each kind of case has its own solver."""

    solver: str = Field(description="solver, which determines the kind of case")
    title: str = Field(default="", max_length=200, description="title of pictures and summaries, one line")


class RunTable(Table):
    """Device, threads, transport, binding and time limit. These keys do not change the physics."""

    device: str = Field(default="cpu", pattern=r"^(cpu|cuda(:[0-9]{1,3})?)$", description='"cpu", "cuda" or "cuda:1"')
    threads: int | None = Field(default=None, ge=1, le=4096, description="threads per rank; cores / ranks by default")
    transport: TransportName = Field(
        default="auto", description='transport of messages between ranks; in "A+B", A within a host and B between hosts'
    )
    binding: Literal["auto", "none"] = Field(
        default="auto", description="bind each of several ranks to cores beside its GPU or to a share of the cores"
    )
    wall_clock: PositiveTime | None = Field(default=None, description="stop with a checkpoint after this wall time")


class CheckpointOutput(Table):
    """Checkpoints for restarts."""

    file: OutputName = Field(default="checkpoint.seiche", description="file in the output folder")
    every: Interval | None = Field(default=None, description="interval, a time or steps; by default only at a stop")


class SnapshotTable(CompressedTable):
    """A time series of fields for pictures and films."""

    file: OutputName = Field(description="HDF5 file in the output folder")
    every: Interval = Field(description="time or steps between two states")
    points: int = Field(default=200, ge=8, le=4000, description="points along the longer side of the plane")
    picture: PictureName | None = Field(default=None, description="picture of up to four states")
    film: OutputName | None = Field(default=None, pattern=r"\.gif$", description="film of all states, a .gif")


class OutputTable(Table):
    """Outputs of every run."""

    folder: FileName = Field(default="out", description="folder, relative to the case file")
    checkpoint: CheckpointOutput = Field(default=CheckpointOutput(), description="state for a restart")
    summary: OutputName = Field(default="summary.json", description="summary of the run, JSON")
    trace: TraceName = None
    in_flight: int = Field(
        default=2,
        ge=1,
        le=64,
        description="maximum number of states waiting to be written; the run pauses when it is reached",
    )

    picture_dpi: int | None = Field(
        default=None, ge=MIN_DPI, le=MAX_DPI, description="dots per inch of pictures and films; 300 by default"
    )
    picture_size: PictureSize | None = Field(
        default=None, description='width and height of pictures and films in mm, such as "180x100"'
    )

    def page(self) -> PageSize:
        """Return resolution and size of the pictures."""
        return page_of(self.picture_dpi, self.picture_size)

    def files(self) -> Iterator[tuple[str, str]]:
        """Yield key and name of every output file of the run."""
        yield "output.checkpoint.file", self.checkpoint.file
        yield "output.summary", self.summary
        if self.trace is not None:
            yield "output.trace", self.trace

    def intervals(self) -> Iterator[tuple[str, int | float]]:
        """Yield key and value (steps or s) of every interval between states in files."""
        if self.checkpoint.every is not None:
            yield "output.checkpoint.every", self.checkpoint.every

    @model_validator(mode="after")
    def _page_is_valid(self) -> Self:
        try:
            self.page()
        except CaseError as error:
            raise ValueError(f"picture_{error}") from None
        return self

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        if duplicate := first_duplicate([name for _, name in self.files()]):
            raise ValueError(f'two outputs have the same file name "{duplicate}"')
        return self
