# SPDX-License-Identifier: BSD-3-Clause
"""Time line of a run as an OTF2 archive, for Vampir, Scalasca and other tools, by the package `otf2` of Score-P."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from seiche.errors import CaseError, FormatError
from seiche.observe.trace import SCHEMA

#: Name of the archive in its folder.
ARCHIVE = "traces"
_NANOSECONDS = 1_000_000_000

Event = Mapping[str, Any]
#: Nanoseconds, kind ("enter", "leave", "send" or "receive") and its event of the trace.
Mark = tuple[int, str, Event]


def write_otf2(trace: Path, folder: Path) -> Path:
    """Convert the time line `trace` of a run to an archive in the new `folder`, and return its anchor file.

    Every rank is a process with the tracks of the time line as locations. Stages are regions, and messages are sent and
    received in one communicator; their tag is the number of the channel.

    Raises:
        CaseError: the package `otf2` is missing, or the folder exists.
        FormatError: the file is not a trace of Seiche.
        OSError: a file cannot be read or written.
    """
    try:
        otf2: Any = importlib.import_module("otf2")
    except ImportError:
        raise CaseError("report: --otf2 requires the package otf2: pip install otf2") from None
    document = _read(trace)
    if folder.exists():
        raise CaseError(f"report: {folder} exists; choose a new folder with --otf2")
    folder.parent.mkdir(parents=True, exist_ok=True)
    events: list[Event] = document["traceEvents"]
    with otf2.writer.open(str(folder), archive_name=ARCHIVE, timer_resolution=_NANOSECONDS) as archive:
        _Archive(otf2, archive, events).write()
    return folder / f"{ARCHIVE}.otf2"


def find_trace(folder: Path) -> Path:
    """Return the only trace in a folder.

    Raises:
        CaseError: there is none, or there are several.
    """
    found = []
    for path in sorted(folder.glob("*.json")):
        with path.open("rb") as file:
            if file.read(len(SCHEMA) + 20).startswith(f'{{"schema": "{SCHEMA}"'.encode()):
                found.append(path)
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none; run the case with --trace"
        raise CaseError(f"report: {folder}: expected one trace, found {names}")
    return found[0]


def marks_of(events: Sequence[Event]) -> Iterator[Mark]:
    """Yield the marks of one track in the order of time: nested slices, and messages inside them.

    Slices end at the latest with the one around them: rounding to nanoseconds may let them end later. A message is sent
    after the beginning of its slice and received before the end.
    """
    slices = sorted((event for event in events if event["ph"] == "X"), key=lambda e: (e["ts"], -e["dur"]))
    messages = {kind: [_mark(event, kind) for event in _in_time(events, ph)] for ph, kind in _MESSAGES}
    open_slices: list[tuple[int, Event]] = []
    last = 0

    def until(time: int, *kinds: str) -> Iterator[Mark]:
        for kind in kinds:
            while messages[kind] and messages[kind][0][0] <= time:
                yield messages[kind].pop(0)

    def in_order() -> Iterator[Mark]:
        for event in slices:
            begin = _ns(event["ts"])
            while open_slices and open_slices[-1][0] <= begin:
                yield from close()
            yield from until(begin - 1, "send", "receive")
            yield begin, "enter", event
            end = _ns(event["ts"] + event["dur"])
            open_slices.append((min(end, open_slices[-1][0]) if open_slices else end, event))
        while open_slices:
            yield from close()
        yield from until(max((mark[0] for rest in messages.values() for mark in rest), default=0), "send", "receive")

    def close() -> Iterator[Mark]:
        end, event = open_slices.pop()
        yield from until(end, "send", "receive")
        yield end, "leave", event

    for time, kind, event in in_order():
        last = max(last, time)
        yield last, kind, event


_MESSAGES = (("s", "send"), ("f", "receive"))


def _in_time(events: Sequence[Event], ph: str) -> list[Event]:
    return sorted((event for event in events if event["ph"] == ph), key=lambda event: event["ts"])


def _mark(event: Event, kind: str) -> Mark:
    return _ns(event["ts"]), kind, event


class _Archive:
    """Definitions and events of an archive that is being written."""

    def __init__(self, otf2: Any, archive: Any, events: Sequence[Event]) -> None:
        self._otf2, self._archive, self._definitions = otf2, archive, archive.definitions
        self._tracks: dict[tuple[int, int], list[Event]] = {}
        self._names: dict[tuple[int, int | None], str] = {}
        for event in events:
            if event["ph"] == "M":
                if event["name"] in ("process_name", "thread_name"):
                    track = event["tid"] if event["name"] == "thread_name" else None
                    self._names[event["pid"], track] = event["args"]["name"]
            else:
                self._tracks.setdefault((event["pid"], event["tid"]), []).append(event)
        #: Sender, receiver and bytes of each message.
        ends = {event["id"]: event["pid"] for event in events if event["ph"] == "f"}
        self._messages = {
            event["id"]: (event["pid"], ends[event["id"]], event["args"]["bytes"])
            for event in events
            if event["ph"] == "s"
        }
        self._channels = {name: tag for tag, name in enumerate(dict.fromkeys(e["name"] for e in events if "id" in e))}

    def write(self) -> None:
        """Write all tracks."""
        types, nodes, locations = self._otf2.enums, dict[str, Any](), dict[tuple[int, int], Any]()
        root = self._definitions.system_tree_node("machine", class_name="machine")
        ranks = sorted({pid for pid, track in self._names if track is None})
        for rank in ranks:
            name, _, host = self._names[rank, None].partition(" (")
            host = host.rstrip(")") or "host"
            if host not in nodes:
                nodes[host] = self._definitions.system_tree_node(host, class_name="node", parent=root)
            group = self._definitions.location_group(
                f"{name}", location_group_type=types.LocationGroupType.PROCESS, system_tree_parent=nodes[host]
            )
            for (pid, track), title in self._names.items():
                if pid == rank and track is not None:
                    locations[rank, track] = self._definitions.location(
                        title, type=types.LocationType.CPU_THREAD, group=group
                    )
        comm = self._communicator([locations[rank, 0] for rank in ranks])
        for key, location in locations.items():
            self._write_track(self._archive.event_writer_from_location(location), self._tracks.get(key, ()), comm)

    def _communicator(self, locations: Sequence[Any]) -> Any:
        kinds, paradigm = self._otf2.enums.GroupType, self._otf2.enums.Paradigm.MPI
        self._definitions.group("ranks", group_type=kinds.COMM_LOCATIONS, paradigm=paradigm, members=tuple(locations))
        members = self._definitions.group(
            "all ranks", group_type=kinds.COMM_GROUP, paradigm=paradigm, members=tuple(locations)
        )
        return self._definitions.comm("all ranks", group=members)

    def _write_track(self, writer: Any, events: Sequence[Event], comm: Any) -> None:
        step = self._definitions.attribute("step", description="number of the step", type=self._otf2.enums.Type.UINT64)
        for time, kind, event in marks_of(events):
            if kind in ("enter", "leave"):
                number = event.get("args", {}).get("step")
                attributes = {step: number} if number is not None and kind == "enter" else None
                getattr(writer, kind)(time, self._region(event["name"]), attributes=attributes)
            else:
                sender, receiver, size = self._messages[event["id"]]
                tag = self._channels[event["name"]]
                if kind == "send":
                    writer.mpi_send(time, receiver, comm, tag, size)
                else:
                    writer.mpi_recv(time, sender, comm, tag, size)

    def _region(self, name: str) -> Any:
        """Return the region of a slice; all steps are one region, and all graphs of steps another one."""
        if name.startswith("step "):
            name = "step"
        elif name.startswith("steps ") and name.endswith(" as a graph"):
            name = "steps as a graph"
        return self._definitions.region(name, paradigm=self._otf2.enums.Paradigm.USER)


def _ns(microseconds: float) -> int:
    return round(microseconds * 1000)


def _read(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise FormatError(path, "text", f"not a trace of a run (not JSON: {error})") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise FormatError(path, "key 'schema'", f"expected a trace of a run, {SCHEMA!r}")
    return document
