# SPDX-License-Identifier: BSD-3-Clause
"""What predictions of many exchanges read of a machine and of the places of its ranks, computed once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from seiche.machine.laws.curve import Curve
from seiche.machine.laws.file import Launch, Machine, Measured, PathName
from seiche.machine.laws.locality import RankPlacement, locality
from seiche.machine.laws.models import Locality, MessageModel


class MessageLaws:
    """The laws of messages of a machine, which must not change afterwards."""

    def __init__(self, machine: Machine) -> None:
        """Store the machine."""
        self.machine, self.probes, self.launch = machine, machine.probes, machine.launch
        self._messages: dict[tuple[PathName, bool], MessageModel | None] = {}
        self._rates: dict[PathName, float] = {}
        self._curves: dict[tuple[PathName, Locality], Curve | None] = {}

    def messages(self, path: PathName, *, both_ways: bool = False) -> MessageModel | None:
        """Return `Machine.messages`."""
        key = (path, both_ways)
        if key not in self._messages:
            self._messages[key] = self.machine.messages(path, both_ways=both_ways)
        return self._messages[key]

    def node_rate(self, path: PathName) -> float:
        """Return `Machine.node_rate`."""
        if path not in self._rates:
            self._rates[path] = self.machine.node_rate(path)
        return self._rates[path]

    def curve(self, path: PathName, locality_class: Locality) -> Curve | None:
        """Return the fit of a path in a locality class, None if it was not measured."""
        key = (path, locality_class)
        if key not in self._curves:
            entry: Measured | None = self.machine.measured(path, locality_class)
            self._curves[key] = entry.curve if entry is not None else None
        return self._curves[key]

    def has(self, path: PathName) -> bool:
        """Return whether a path was measured."""
        return path in self._paths

    def gaps(self, path: PathName) -> tuple[float, ...]:
        """Return the measured gaps of a path."""
        return tuple(entry.gap for entry in self.machine.paths if entry.path == path and entry.gap is not None)

    def costs(self, *, gpus: bool) -> Launch:
        """Return the launch times of a device or of the host, 0 if they were not measured."""
        return self.launch.get("device" if gpus else "host") or Launch(kernel=0.0)

    @cached_property
    def _paths(self) -> frozenset[PathName]:
        return frozenset(entry.path for entry in self.machine.paths)


class PlacedRanks:
    """Hosts and processors of all ranks.

    Attributes:
        placements: the place of each rank.
        gpus: whether all ranks have a GPU.
        own_gpus: whether no two ranks share a GPU.
        hosts: number of hosts.
    """

    def __init__(self, placements: Sequence[RankPlacement]) -> None:
        """Group the ranks by host."""
        self.placements = placements
        self.gpus = all(placement.gpu for placement in placements)
        self.own_gpus = len({(placement.host, placement.gpu) for placement in placements}) == len(placements)
        self._ranks: dict[str, list[RankPlacement]] = {}
        for placement in placements:
            self._ranks.setdefault(placement.host, []).append(placement)
        self.hosts = len(self._ranks)

    def node_ranks(self, rank: int) -> int:
        """Return the number of ranks on the host of `rank`."""
        return len(self._ranks[self.placements[rank].host])

    def near_class(self, rank: int) -> Locality:
        """Return the class of the farthest rank on the host of `rank`, "on-socket" if it is alone there."""
        own = self.placements[rank]
        others = (other for other in self._ranks[own.host] if other is not own)
        is_far = any(locality(own, other, gpus=self.gpus) == "on-node" for other in others)
        return "on-node" if is_far else "on-socket"
