# SPDX-License-Identifier: BSD-3-Clause
"""The tables that all kinds of case share: how to compute, and what every run writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Self

from pydantic import Field, model_validator

from seiche.case.quantities import PositiveTime, StepsOrTime
from seiche.case.tables import FileName, OutputName, Table, TraceName


class RunTable(Table):
    """How and where to compute; nothing here changes the physics."""

    device: str = Field(default="cpu", pattern=r"^(cpu|cuda(:[0-9]{1,3})?)$", description='"cpu", "cuda" or "cuda:1"')
    threads: int | None = Field(
        default=None, ge=1, le=4096, description="threads of each rank; cores / ranks by default"
    )
    transport: Literal["auto", "local", "host", "peer", "nccl", "device_mpi"] = Field(
        default="auto", description="how messages travel between ranks"
    )
    wall_clock: PositiveTime | None = Field(default=None, description="stop with a checkpoint after this time")


class CheckpointOutput(Table):
    """When to write the state from which a run can go on."""

    file: OutputName = Field(default="checkpoint.seiche", description="file in the output folder")
    every: StepsOrTime | None = Field(default=None, description="time or steps between two; only at a stop by default")


class OutputTable(Table):
    """What every run writes."""

    folder: FileName = Field(default="out", description="folder, relative to the case file")
    checkpoint: CheckpointOutput = Field(default=CheckpointOutput(), description="state to go on from")
    summary: OutputName = Field(default="summary.json", description="numbers of the run")
    trace: TraceName = None
    in_flight: int = Field(
        default=2,
        ge=1,
        le=64,
        description="states that may be on their way to the disk; a run that is faster waits, so memory stays bounded",
    )

    def files(self) -> Iterator[tuple[str, str]]:
        """Yield key and name of every file in the folder that a run may write."""
        yield "output.checkpoint.file", self.checkpoint.file
        yield "output.summary", self.summary
        if self.trace is not None:
            yield "output.trace", self.trace

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [name for _, name in self.files()]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice:
            raise ValueError(f'two outputs have the same file name "{twice}"')
        return self
