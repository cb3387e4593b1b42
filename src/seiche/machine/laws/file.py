# SPDX-License-Identifier: BSD-3-Clause
"""Machine files: measurements of a machine and their fits, as JSON (docs/reference/machine-file.md)."""

from __future__ import annotations

import json
import math
import os
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from seiche.errors import CaseError, FormatError
from seiche.io.files import replacing
from seiche.machine.laws.curve import Curve, Piece
from seiche.machine.laws.models import LOCALITIES, TYPICAL_GAP, TYPICAL_SHARING, Locality, MessageModel
from seiche.machine.laws.strategies import Paths

SCHEMA: Final = "seiche-machine"
VERSION = 1
UNITS = {"time": "s", "size": "B", "rate": "B/s"}

#: Limits of a latency (s), a time per byte (s/B) and a rate (B/s); values beyond them are in another unit.
_MAX_LATENCY, _MAX_BYTE_TIME, _MIN_RATE = 0.5, 1e-2, 1e5
#: Upper limits of the hardware counts that predictions use.
_MAX_COUNTS = {"hosts": 1 << 24, "ranks": 1 << 28, "cores": 1 << 16, "sockets": 1 << 10}

#: Paths between memories.
PathName: TypeAlias = Literal[
    "host",
    "host_exchange",
    "shared_exchange",
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
Seconds: TypeAlias = Annotated[float, Field(ge=0, lt=_MAX_LATENCY, allow_inf_nan=False)]
SecondsPerByte: TypeAlias = Annotated[float, Field(ge=0, lt=_MAX_BYTE_TIME, allow_inf_nan=False)]
Rate: TypeAlias = Annotated[float, Field(gt=_MIN_RATE, allow_inf_nan=False)]
Size: TypeAlias = Annotated[int, Field(ge=0, lt=1 << 62)]
Positive: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Finite: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
Interval: TypeAlias = tuple[Finite, Finite]


def memory_of_path(path: PathName) -> Literal["host", "device"]:
    """Return the memory that limits the rate of a path."""
    return "host" if path in ("host", "host_exchange", "shared_exchange") else "device"


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class FittedPiece(_Section):
    """One protocol: alpha (s) and beta (s/B) from `begin` to `end` bytes with their 95 % intervals."""

    begin: Size
    end: Size
    alpha: Seconds
    beta: SecondsPerByte
    alpha_interval: Interval | None = None
    beta_interval: Interval | None = None
    points: Annotated[int, Field(ge=0)] = 0


class Measured(_Section):
    """One path in one locality class: minima over repetitions and pairs, and their fit."""

    path: PathName
    locality: Locality
    pieces: Annotated[list[FittedPiece], Field(min_length=1)]
    sizes: list[Size] = []
    seconds: list[Positive] = []
    spread: list[float] = []
    reproduced: list[bool] = []
    omitted: Annotated[int, Field(ge=0)] = 0
    repetitions: list[int] = []
    gap: Seconds | None = None
    duplex: Annotated[float, Field(ge=1, le=8)] | None = None
    warnings: list[str] = []

    @model_validator(mode="after")
    def _check_pieces(self) -> Self:
        begins = [piece.begin for piece in self.pieces]
        if begins != sorted(set(begins)):
            raise ValueError(f"pieces begin at {begins} B: expected ascending sizes")
        if len(self.sizes) != len(self.seconds):
            raise ValueError(f"{len(self.sizes)} sizes but {len(self.seconds)} seconds")
        return self

    @property
    def curve(self) -> Curve:
        """Return the fitted curve."""
        return Curve(tuple(Piece(**piece.model_dump()) for piece in self.pieces))


class Injected(_Section):
    """Injection rate of a node (B/s) over a path while several of its processes send.

    `gap` is the latency (s) that each of these processes adds to the messages of the others.
    """

    path: PathName
    locality: Locality = "off-node"
    rate: Rate
    senders: int = 0
    points: int = 0
    gap: Seconds | None = None


class Launch(_Section):
    """Seconds of a kernel launch, a wait between streams, a graph replay, and one additional kernel in a graph."""

    kernel: Seconds
    event: Seconds = 0.0
    graph: Seconds | None = None
    graph_kernel: Seconds | None = None


class StageFactor(_Section):
    """Measured time of a stage over its time at memory bandwidth: best estimate, minimum and maximum.

    `memory` is the memory of a rank in that run, bytes.
    """

    best: Positive
    low: Positive
    high: Positive
    memory: Size | None = None


class Files(_Section):
    """Write speed in the tested folder: bytes per second of all ranks, seconds of one small synchronous write."""

    rate: Rate
    small: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    ranks: int = 1


class Probe(_Section):
    """Whether a feature works here, with the evidence; `works` is None if it cannot be tested."""

    works: bool | None = None
    reason: str


class Machine(_Section):
    """One machine; times in seconds, sizes in bytes."""

    schema_: Annotated[Literal["seiche-machine"], Field(alias="schema")]
    version: int
    units: dict[str, str]
    name: str
    source: str
    date: str = ""
    seiche: str = ""
    commit: str = ""
    hardware: dict[str, Any] = {}
    paths: list[Measured]
    injection: list[Injected] = []
    memory: dict[str, Rate] = {}
    memory_intervals: dict[str, tuple[Rate, Rate]] = {}
    sharing: dict[str, Annotated[float, Field(ge=0, le=1)]] = {}
    launch: dict[str, Launch] = {}
    stages: dict[str, dict[str, dict[str, StageFactor]]] = {}
    files: Files | None = None
    trust: Annotated[float, Field(ge=0, le=1)] | None = None
    probes: dict[str, Probe] = {}
    absent: dict[str, str] = {}
    seconds: float = 0.0

    @model_validator(mode="after")
    def _check_distinct_paths(self) -> Self:
        keys = [(entry.path, entry.locality) for entry in self.paths]
        repeated = [key for key in keys if keys.count(key) > 1]
        if repeated:
            raise ValueError(f"path {repeated[0][0]!r} {repeated[0][1]} occurs twice")
        return self

    @model_validator(mode="after")
    def _check_counts(self) -> Self:
        for name, limit in _MAX_COUNTS.items():
            count = self.hardware.get(name, 1)
            if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= limit:
                raise ValueError(f"hardware.{name}: {str(count)[:40]}: expected a whole number from 1 to {limit}")
        gpus = self.hardware.get("gpus", [])
        if not isinstance(gpus, list) or not all(isinstance(name, str) for name in gpus):
            raise ValueError(f"hardware.gpus: {str(gpus)[:40]}: expected a list of names")
        return self

    @model_validator(mode="after")
    def _check_rate_intervals(self) -> Self:
        for name, (low, high) in self.memory_intervals.items():
            if not low <= self.memory.get(name, 0.0) <= high:
                rate = self.memory.get(name, "missing")
                raise ValueError(
                    f"memory_intervals.{name}: {low:g} to {high:g} B/s must contain memory.{name} ({rate})"
                )
        return self

    def copy_rate(self, memory: str) -> float:
        """Return the copy bandwidth of the "host" or a "device", bytes per second.

        Raises:
            CaseError: the file has no bandwidth for that memory.
        """
        if memory not in self.memory:
            measured = ", ".join(self.memory) or "none"
            raise CaseError(f"machine {self.name!r} has no copy bandwidth for {memory} memory; it has {measured}")
        return self.memory[memory]

    def measured(self, path: PathName, locality: Locality) -> Measured | None:
        """Return the measurement of a path in a locality class, None if missing."""
        return next((entry for entry in self.paths if (entry.path, entry.locality) == (path, locality)), None)

    def curve(self, path: PathName, locality: Locality) -> Curve:
        """Return the fit of a path in a locality class.

        Within a node, on-socket and on-node substitute for each other; the network (off-node) has no substitute.

        Raises:
            CaseError: the file has neither class.
        """
        substitutes: dict[Locality, Locality] = {"on-socket": "on-node", "on-node": "on-socket"}
        entry = self.measured(path, locality)
        if entry is None and locality in substitutes:
            entry = self.measured(path, substitutes[locality])
        if entry is None:
            measured = ", ".join(f"{entry.path} {entry.locality}" for entry in self.paths) or "nothing"
            reason = f" ({self.absent[path]})" if self.absent.get(path) else ""
            raise CaseError(
                f"machine {self.name!r} has no data for {path!r} {locality}{reason}; it has {measured}; measure it "
                "with `seiche bench machine` on ranks that use this path"
            )
        return entry.curve

    def memory_limit(self, path: PathName) -> float | None:
        """Return the bandwidth of the memory that a path uses, B/s, None if it was not measured."""
        return self.memory.get(memory_of_path(path))

    def messages(self, path: PathName, *, both_ways: bool = False) -> MessageModel | None:
        """Return the message model of a path in all its locality classes, None if it has none.

        `both_ways` applies the measured slowdown of simultaneous messages in both directions. For whole exchanges,
        gaps and injection rate are those of the underlying messages.
        """
        present = {entry.locality for entry in self.paths if entry.path == path}
        if not present:
            return None
        base = path.removesuffix("_exchange")
        gaps: dict[str, float] = {e.locality: e.gap for e in self.paths if e.path == base and e.gap is not None}
        curves: dict[str, Curve] = {}
        for name in LOCALITIES:
            if name in present or (name != "off-node" and present - {"off-node"}):
                measured = self.measured(path, name)
                duplex = measured.duplex if measured is not None and both_ways else None
                curves[name] = self.curve(path, name).slower(duplex or 1.0)
        typical = TYPICAL_GAP if base == "host" else 1.0
        return MessageModel(curves, self.node_rate(path), gaps, typical, self._sender_gap(path))

    def node_rate(self, path: PathName) -> float:
        """Return the injection rate limit (B/s) of a node over a path.

        All paths use the same network interfaces. A path without a measured limit has the largest limit of the others.
        Without any limit, a node sends no faster than one process does (theory/movement, section 3): the largest rate
        of a single off-node message on any path, infinite if the file has no off-node messages.
        """
        rates: dict[str, float] = {entry.path: entry.rate for entry in self.injection if entry.locality == "off-node"}
        own_rate = rates.get(path.removesuffix("_exchange").removesuffix("_graph"))
        if own_rate is not None:
            return own_rate
        return max(rates.values(), default=self._single_rate())

    def _sender_gap(self, path: PathName) -> float:
        """Return the latency that each sender of a node adds to messages of the others, 0 if it was not measured."""
        base = path.removesuffix("_exchange").removesuffix("_graph")
        gaps = (entry.gap for entry in self.injection if (entry.path, entry.locality) == (base, "off-node"))
        return next(gaps, None) or 0.0

    @property
    def has_assumed_node_rate(self) -> bool:
        """Whether the file has off-node messages, but no injection rate, so that `node_rate` is an assumption."""
        return math.isfinite(self._single_rate()) and all(entry.locality != "off-node" for entry in self.injection)

    def _single_rate(self) -> float:
        """Return the largest asymptotic rate (B/s) of a single off-node message."""
        betas = [entry.curve.piece(math.inf).beta for entry in self.paths if entry.locality == "off-node"]
        return max((1.0 / beta for beta in betas if beta > 0), default=math.inf)

    def strategy_paths(self, device: PathName = "device_mpi", *, both_ways: bool = False) -> Paths:
        """Return the paths that exchange strategies use; copies are those of the GPU nearest to the process.

        Raises:
            CaseError: the file has no host messages.
        """
        host = self.messages("host", both_ways=both_ways)
        if host is None:
            raise CaseError(
                f"machine {self.name!r} has no data for host messages, which the comparison of strategies requires"
            )
        to_host, to_device = (self.measured(path, "on-socket") for path in ("d2h", "h2d"))
        return Paths(
            host,
            self.messages(device, both_ways=both_ways),
            to_host.curve if to_host else None,
            to_device.curve if to_device else None,
            self.sharing.get("d2h", TYPICAL_SHARING),
        )


def parse_machine(text: str, name: str | os.PathLike[str]) -> Machine:
    """Return the machine in a JSON text read from `name`.

    Raises:
        FormatError: not JSON, not a machine file, a newer schema, other units, or an impossible value.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(name, "text", f"not JSON: {error}") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise FormatError(name, "schema", f"expected {SCHEMA!r}: not a machine file")
    version = document.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise FormatError(name, "version", f"invalid version {version!r}: expected {VERSION}")
    if version > VERSION:
        reason = f"{version} is newer than {VERSION}, the latest version supported; measure the machine again"
        raise FormatError(name, "version", reason)
    if document.get("units") != UNITS:
        raise FormatError(name, "units", f"{document.get('units')!r}: expected {UNITS!r}")
    try:
        return Machine.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "file"
        raise FormatError(name, key, _reason(first)) from error


def _reason(error: Any) -> str:
    value = error["input"]
    prefix = f"{value!r}: " if isinstance(value, int | float | str) else ""
    limit = error["type"] in ("less_than", "greater_than") and isinstance(value, int | float)
    units = " (times are in seconds, rates in bytes per second)" if limit else ""
    return prefix + str(error["msg"]).removeprefix("Value error, ") + units


def read_machine(path: str | os.PathLike[str]) -> Machine:
    """Return the machine of a file, or a built-in one by name ("summit", "lassen").

    Raises:
        FormatError: as `parse_machine`.
        CaseError: the file does not exist or cannot be read.
    """
    name = os.fspath(path)
    if name in known_machines() and not Path(name).exists():
        text = resources.files("seiche.machine").joinpath("known", f"{name}.json").read_text(encoding="utf-8")
        return parse_machine(text, f"machine {name}")
    try:
        return parse_machine(Path(path).read_text(encoding="utf-8"), path)
    except FileNotFoundError:
        raise CaseError(
            f"machine file {path}: does not exist; measure one with `seiche bench machine`, or name one of"
            f" {', '.join(known_machines())}"
        ) from None
    except OSError as error:
        raise CaseError(f"machine file {path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise FormatError(path, f"byte {error.start}", "not UTF-8 text") from error


def known_machines() -> list[str]:
    """Return the names of the built-in machines."""
    folder = resources.files("seiche.machine").joinpath("known")
    return sorted(entry.name.removesuffix(".json") for entry in folder.iterdir() if entry.name.endswith(".json"))


def write_machine(path: str | os.PathLike[str], machine: Machine) -> None:
    """Write a machine file; it replaces an existing file when it is complete.

    Raises:
        OSError: the file cannot be written.
    """
    document = machine.model_dump(by_alias=True, exclude_none=True, mode="json")
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
