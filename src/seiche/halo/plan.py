# SPDX-License-Identifier: BSD-3-Clause
"""Which slots of a flat array are copied between which ranks, in an order that both sides know."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from seiche.domain.world import World, raise_together
from seiche.errors import TransportError

Slots: TypeAlias = npt.NDArray[np.uint32]
Keys: TypeAlias = npt.NDArray[np.int64]

#: What a rank needs: for each peer the keys (k,) of the values and the slots (k,) here where their copies live.
Wanted: TypeAlias = Mapping[int, tuple[Keys, Slots]]


@dataclass(frozen=True, eq=False)
class HaloPlan:
    """The slots that a rank shares with its `peers` (ranks, ascending; the own rank may be one of them).

    For peer number k, `owned[k]` are the slots here that the peer holds copies of and `copies[k]` the slots here that
    hold copies of the peer's; element j of `owned[k]` here belongs to element j of the peer's `copies` for this rank.

    - *gather* sends owner to copy,
    - *scatter* sends copy to owner, which replaces its value,
    - *scatter_add* sends copy to owner, which adds; messages are added in ascending order of the peers.

    A slot is the copy of one value only, and a peer holds at most one copy of a value; several peers may hold one each.

    With `sized` the lists only say how long messages are; `HaloExchange.slots` are written before they are used.
    """

    peers: tuple[int, ...]
    owned: tuple[Slots, ...]
    copies: tuple[Slots, ...]
    sized: bool = False

    def __post_init__(self) -> None:
        """Check the rules above.

        Raises:
            TransportError: a rule is broken.
        """
        if list(self.peers) != sorted(set(self.peers)):
            raise TransportError(f"peers of a halo plan must ascend, each once: {self.peers}")
        if not len(self.peers) == len(self.owned) == len(self.copies):
            raise TransportError(f"a halo plan of {len(self.peers)} peers needs as many lists of slots")
        if self.sized:
            return
        for peer, owned in zip(self.peers, self.owned, strict=True):
            if not all_distinct(owned):
                raise TransportError(f"rank {peer} must not hold two copies of one value")
        if not all_distinct(*self.copies):
            raise TransportError("a slot is the copy of two values in the halo plan")

    @property
    def slots(self) -> int:
        """One more than the greatest slot: the elements that an array of this plan must have at least."""
        return max((int(part.max()) + 1 for part in (*self.owned, *self.copies) if len(part)), default=0)


def sized_plan(peers: Sequence[int], sent: Sequence[int], received: Sequence[int]) -> HaloPlan:
    """Return the plan of a *gather* whose messages have so many values, to slots that are not known yet."""
    owned = tuple(np.zeros(count, np.uint32) for count in sent)
    return HaloPlan(tuple(peers), owned, tuple(np.zeros(count, np.uint32) for count in received), sized=True)


def all_distinct(*lists: Slots) -> bool:
    """Return whether no slot occurs twice in all lists together."""
    if not lists:
        return True
    ordered = np.sort(np.concatenate(lists))
    return not bool(np.any(ordered[1:] == ordered[:-1]))


def build_plan(world: World, wanted: Wanted, locate: Callable[[Keys], npt.NDArray[np.integer]]) -> HaloPlan:
    """Return the plan in which every rank gets what it wants; all ranks must call it together.

    The values of a message are in the order of their copies' slots, whatever order they are wanted in: neighbours in
    a message are then neighbours in memory.

    Args:
        world: the ranks. A serial world can only want from itself (rank 0).
        wanted: for each peer the keys of the values (global numbers that both sides use, say site * Q + direction;
            each at most once) and the slots here of their copies, (k,) each.
        locate: turns keys (k,) that others want from this rank into slots (k,), negative where the key is not owned
            here.

    Raises:
        TransportError: on every rank, naming the ranks, when a peer does not exist or does not own a wanted key, or
            when a rule of `HaloPlan` is broken.
    """
    problem = _check(world, wanted)
    raise_together(world, problem)
    wanted = {peer: _in_memory_order(keys, slots) for peer, (keys, slots) in wanted.items()}
    asked = _exchange_keys(world, {peer: keys for peer, (keys, _) in wanted.items()})
    found: dict[int, Slots] = {}
    for peer, keys in asked.items():
        slots = np.asarray(locate(keys)).astype(np.int64)
        lost = np.flatnonzero((slots < 0) | (slots > np.iinfo(np.uint32).max))
        if len(lost):
            problem = problem or (
                f"rank {peer} wants key {int(keys[lost[0]])} ({len(lost)} of {len(keys)} keys) from rank {world.rank},"
                " which does not own it"
            )
        found[peer] = np.where(slots < 0, 0, slots).astype(np.uint32)
    raise_together(world, problem)
    none = np.zeros(0, np.uint32)
    copies = {peer: slots for peer, (_, slots) in wanted.items() if len(slots)}
    peers = tuple(sorted(found.keys() | copies.keys()))
    plan = None
    try:
        plan = HaloPlan(peers, tuple(found.get(p, none) for p in peers), tuple(copies.get(p, none) for p in peers))
    except TransportError as error:
        problem = f"rank {world.rank}: {error}"
    raise_together(world, problem)
    assert plan is not None
    return plan


def _in_memory_order(keys: npt.ArrayLike, slots: npt.ArrayLike) -> tuple[Keys, Slots]:
    order = np.argsort(slots, kind="stable")
    return np.asarray(keys, np.int64)[order], np.asarray(slots, np.uint32)[order]


def _check(world: World, wanted: Wanted) -> str | None:
    for peer, (keys, slots) in wanted.items():
        if not 0 <= peer < world.size:
            return f"rank {world.rank} wants values from rank {peer}, but there are {world.size} ranks"
        if len(keys) != len(slots):
            return f"rank {world.rank} wants {len(keys)} keys from rank {peer} in {len(slots)} slots"
    return None


def _exchange_keys(world: World, keys: Mapping[int, Keys]) -> dict[int, Keys]:
    """Return by rank the keys that it wants from here, in its order; ranks that want none are left out."""
    if world.comm is None:
        return {peer: part for peer, part in keys.items() if len(part)}
    sent = np.array([len(keys.get(peer, ())) for peer in range(world.size)], np.int64)
    received = np.empty_like(sent)
    world.comm.Alltoall(sent, received)
    outgoing = np.concatenate([np.zeros(0, np.int64), *(keys[peer] for peer in sorted(keys))])
    incoming = np.empty(int(received.sum()), np.int64)
    world.comm.Alltoallv([outgoing, sent], [incoming, received])
    parts = np.split(incoming, np.cumsum(received)[:-1])
    return {peer: part for peer, part in enumerate(parts) if len(part)}
