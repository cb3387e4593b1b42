# SPDX-License-Identifier: BSD-3-Clause
"""Machine files: what was measured on a machine and what was fitted to it, as JSON (docs/reference/machine-file.md)."""

from __future__ import annotations

import json
import os
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from seiche.errors import CaseError, FormatError
from seiche.io.files import replacing
from seiche.machine.laws.curve import Curve, Piece
from seiche.machine.laws.models import LOCALITIES, Locality, MessageModel
from seiche.machine.laws.strategies import Paths

SCHEMA: Final = "seiche-machine"
VERSION = 1
UNITS = {"time": "s", "size": "B", "rate": "B/s"}

#: A latency or a time of a byte above, or a rate below these are no machine's: the numbers are in another unit.
_LONGEST, _LONGEST_BYTE, _SLOWEST = 0.5, 1e-2, 1e5
#: No machine has more: predictions count with these.
_MOST = {"hosts": 1 << 24, "ranks": 1 << 28, "cores": 1 << 16, "sockets": 1 << 10}

#: The ways from memory to memory that a file may know.
PathName: TypeAlias = Literal[
    "host",
    "host_exchange",
    "device_mpi",
    "nccl",
    "nccl_graph",
    "peer_copy",
    "peer_store",
    "peer_exchange",
    "h2d",
    "d2h",
    "d2d",
]
Seconds: TypeAlias = Annotated[float, Field(ge=0, lt=_LONGEST, allow_inf_nan=False)]
SecondsPerByte: TypeAlias = Annotated[float, Field(ge=0, lt=_LONGEST_BYTE, allow_inf_nan=False)]
Rate: TypeAlias = Annotated[float, Field(gt=_SLOWEST, allow_inf_nan=False)]
Size: TypeAlias = Annotated[int, Field(ge=0, lt=1 << 62)]
Positive: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Finite: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
Interval: TypeAlias = tuple[Finite, Finite]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class FittedPiece(_Part):
    """One protocol: alpha (s) and beta (s/B) from `begin` to `end` bytes with their 95 % intervals."""

    begin: Size
    end: Size
    alpha: Seconds
    beta: SecondsPerByte
    alpha_interval: Interval | None = None
    beta_interval: Interval | None = None
    points: Annotated[int, Field(ge=0)] = 0


class Measured(_Part):
    """A path between two ends of one class: minima over repetitions and pairs, and the fit."""

    path: PathName
    locality: Locality
    pieces: Annotated[list[FittedPiece], Field(min_length=1)]
    sizes: list[Size] = []
    seconds: list[Positive] = []
    spread: list[float] = []
    repetitions: list[int] = []
    gap: Seconds | None = None
    duplex: Annotated[float, Field(ge=1, le=8)] | None = None
    warnings: list[str] = []

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        begins = [piece.begin for piece in self.pieces]
        if begins != sorted(set(begins)):
            raise ValueError(f"pieces begin at {begins} B: expected ascending sizes")
        if len(self.sizes) != len(self.seconds):
            raise ValueError(f"{len(self.sizes)} sizes but {len(self.seconds)} seconds")
        return self

    @property
    def curve(self) -> Curve:
        """Return the fit."""
        return Curve(tuple(Piece(**piece.model_dump()) for piece in self.pieces))


class Injected(_Part):
    """The bytes a second that a node injects over a path when several of its processes send at once."""

    path: PathName
    locality: Locality = "off-node"
    rate: Rate
    senders: int = 0
    points: int = 0


class Launch(_Part):
    """Seconds of a kernel launch, of a wait between streams, of a graph's replay, of one more kernel in a graph."""

    kernel: Seconds
    event: Seconds = 0.0
    graph: Seconds | None = None
    graph_kernel: Seconds | None = None


class StageFactor(_Part):
    """How long a stage takes against what the rate of the memory says: best, least and most that was seen.

    `memory` is what a rank held then, bytes.
    """

    best: Positive
    low: Positive
    high: Positive
    memory: Size | None = None


class Files(_Part):
    """Writing to the folder that was tried: bytes a second of all ranks, seconds of one small synced write."""

    rate: Rate
    small: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    ranks: int = 1


class Probe(_Part):
    """Whether something works here and how that is known; `works` is None where it cannot be tried."""

    works: bool | None = None
    reason: str


class Machine(_Part):
    """One machine; every time in seconds, every size in bytes."""

    schema_: Annotated[Literal["seiche-machine"], Field(alias="schema")]
    version: int
    units: dict[str, str]
    name: str
    source: str
    date: str = ""
    seiche: str = ""
    hardware: dict[str, Any] = {}
    paths: list[Measured]
    injection: list[Injected] = []
    memory: dict[str, Rate] = {}
    memory_intervals: dict[str, tuple[Rate, Rate]] = {}
    sharing: dict[str, Annotated[float, Field(ge=0, le=1)]] = {}
    launch: dict[str, Launch] = {}
    stages: dict[str, dict[str, dict[str, StageFactor]]] = {}
    files: Files | None = None
    probes: dict[str, Probe] = {}
    absent: dict[str, str] = {}
    seconds: float = 0.0

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        keys = [(each.path, each.locality) for each in self.paths]
        twice = [key for key in keys if keys.count(key) > 1]
        if twice:
            raise ValueError(f"path {twice[0][0]!r} {twice[0][1]} is there twice")
        return self

    @model_validator(mode="after")
    def _counted(self) -> Self:
        for name, most in _MOST.items():
            count = self.hardware.get(name, 1)
            if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= most:
                raise ValueError(f"hardware.{name}: {str(count)[:40]}: expected a whole number from 1 to {most}")
        gpus = self.hardware.get("gpus", [])
        if not isinstance(gpus, list) or not all(isinstance(name, str) for name in gpus):
            raise ValueError(f"hardware.gpus: {str(gpus)[:40]}: expected a list of names")
        return self

    @model_validator(mode="after")
    def _rates_inside(self) -> Self:
        for name, (low, high) in self.memory_intervals.items():
            if not low <= self.memory.get(name, 0.0) <= high:
                known = self.memory.get(name, "no rate")
                raise ValueError(
                    f"memory_intervals.{name}: {low:g} to {high:g} B/s does not hold memory.{name}, {known}"
                )
        return self

    def copy_rate(self, memory: str) -> float:
        """Return the copy bandwidth of the "host" or a "device", bytes a second.

        Raises:
            CaseError: the file has none of that memory.
        """
        if memory not in self.memory:
            there = ", ".join(self.memory) or "none"
            raise CaseError(f"machine {self.name!r} has no copy bandwidth of {memory} memory; it has {there}")
        return self.memory[memory]

    def measured(self, path: PathName, locality: Locality) -> Measured | None:
        """Return what the file has of a path in a class, None if nothing."""
        return next((each for each in self.paths if (each.path, each.locality) == (path, locality)), None)

    def curve(self, path: PathName, locality: Locality) -> Curve:
        """Return the fit of a path in a class.

        Inside a node the other class stands in for one that was not measured; nothing stands in for the network.

        Raises:
            CaseError: the file has neither.
        """
        stands_in: dict[Locality, Locality] = {"on-socket": "on-node", "on-node": "on-socket"}
        found = self.measured(path, locality)
        if found is None and locality in stands_in:
            found = self.measured(path, stands_in[locality])
        if found is None:
            there = ", ".join(f"{each.path} {each.locality}" for each in self.paths) or "nothing"
            why = self.absent.get(path)
            raise CaseError(
                f"machine {self.name!r} has no path {path!r} {locality}{f' ({why})' if why else ''}; it has {there}:"
                " measure it with `seiche bench machine` on ranks that use it"
            )
        return found.curve

    def messages(self, path: PathName, *, both_ways: bool = False) -> MessageModel | None:
        """Return the messages of a path in all classes that it has, None if none.

        `both_ways` slows them down as was measured when both ends sent at once. For whole exchanges, gaps and
        what a node injects are those of their messages.
        """
        found, base = [each for each in self.paths if each.path == path], path.removesuffix("_exchange")
        if not found:
            return None
        have = {each.locality for each in found}
        known: list[Locality] = [
            name for name in LOCALITIES if name in have or (name != "off-node" and have - {"off-node"})
        ]
        rate = next((e.rate for e in self.injection if e.path == base and e.locality == "off-node"), float("inf"))
        alike = [each for each in self.paths if each.path == base]
        gaps: dict[str, float] = {each.locality: each.gap for each in alike if each.gap is not None}
        curves: dict[str, Curve] = {}
        for name in known:
            measured = self.measured(path, name)
            slower = measured.duplex if measured is not None and both_ways else None
            curves[name] = self.curve(path, name).slower(slower or 1.0)
        return MessageModel(curves, rate, gaps)

    def strategy_paths(self, device: PathName = "device_mpi", *, both_ways: bool = False) -> Paths:
        """Return what strategies of an exchange are made of; copies are those of a GPU next to the process.

        Raises:
            CaseError: the file has no host messages.
        """
        host = self.messages("host", both_ways=both_ways)
        if host is None:
            raise CaseError(f"machine {self.name!r} has no host messages: strategies cannot be compared")
        down, up = (self.measured(path, "on-socket") for path in ("d2h", "h2d"))
        return Paths(
            host,
            self.messages(device, both_ways=both_ways),
            down.curve if down else None,
            up.curve if up else None,
            self.sharing.get("d2h", 1.0),
        )


def parse_machine(text: str, name: str | os.PathLike[str]) -> Machine:
    """Return the machine in a JSON text that came from `name`.

    Raises:
        FormatError: no JSON, no machine file, a newer schema, other units, or a value that no machine has.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(name, "text", f"no JSON: {error}") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise FormatError(name, "schema", f"expected {SCHEMA!r}: this is no machine file")
    version = document.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise FormatError(name, "version", f"{version!r} is no version: expected {VERSION}")
    if version > VERSION:
        raise FormatError(
            name, "version", f"{version} is newer than {VERSION}, the newest that this Seiche reads: measure again"
        )
    if document.get("units") != UNITS:
        raise FormatError(name, "units", f"{document.get('units')!r}: expected {UNITS!r}")
    try:
        return Machine.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "file"
        raise FormatError(name, place, _reason(first)) from error


def _reason(error: Any) -> str:
    value = error["input"]
    given = f"{value!r}: " if isinstance(value, int | float | str) else ""
    text = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] in ("less_than", "greater_than") and isinstance(value, int | float):
        return f"{given}{text} (times are seconds, rates bytes a second)"
    return f"{given}{text}"


def read_machine(path: str | os.PathLike[str]) -> Machine:
    """Return the machine of a file, or a built-in one by name ("summit", "lassen").

    Raises:
        FormatError: as `parse_machine`.
        OSError: the file cannot be read.
    """
    known = os.fspath(path)
    if known in known_machines() and not Path(known).exists():
        text = resources.files("seiche.machine").joinpath("known", f"{known}.json").read_text(encoding="utf-8")
        return parse_machine(text, f"machine {known}")
    try:
        return parse_machine(Path(path).read_text(encoding="utf-8"), path)
    except UnicodeDecodeError as error:
        raise FormatError(path, f"byte {error.start}", "no text") from error


def known_machines() -> list[str]:
    """Return the names of the machines that come with Seiche."""
    folder = resources.files("seiche.machine").joinpath("known")
    return sorted(entry.name.removesuffix(".json") for entry in folder.iterdir() if entry.name.endswith(".json"))


def write_machine(path: str | os.PathLike[str], machine: Machine) -> None:
    """Write a machine file; what was there stays until the new one is complete.

    Raises:
        OSError: it cannot be written.
    """
    document = machine.model_dump(by_alias=True, exclude_none=True, mode="json")
    with replacing(path) as part:
        part.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
