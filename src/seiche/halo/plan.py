# SPDX-License-Identifier: BSD-3-Clause
"""Plan of a halo exchange: slots (indices) of a flat array that ranks copy from each other, in an agreed order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from seiche.domain.world import World, raise_together
from seiche.errors import TransportError

#: Slots are uint32 where all of a rank fit, else int64.
Slots: TypeAlias = npt.NDArray[Any]
Keys: TypeAlias = npt.NDArray[np.int64]

#: Request of a rank: by peer, the keys (k,) of the values and the local slots (k,) of their ghosts.
Request: TypeAlias = Mapping[int, tuple[Keys, Slots]]


@dataclass(frozen=True, eq=False)
class HaloPlan:
    """The slots that a rank shares with its `peers` (ranks, ascending, possibly including itself).

    For peer number k, `owned[k]` are local slots of which the peer has ghosts, and `ghosts[k]` are local ghosts
    (copies) of the peer's slots. Element j of `owned[k]` corresponds to element j of the peer's `ghosts` for this rank.

    - *gather* sends owner to ghost,
    - *scatter* sends ghost to owner, replacing its value,
    - *scatter_add* sends ghost to owner, adding to its value; messages are added in ascending order of the peers.

    A slot is the ghost of at most one value. A value has at most one ghost per peer.

    With `sized`, only the lengths of the lists are meaningful: `HaloExchange.slots` are written before use.
    """

    peers: tuple[int, ...]
    owned: tuple[Slots, ...]
    ghosts: tuple[Slots, ...]
    sized: bool = False

    def __post_init__(self) -> None:
        """Check the rules above.

        Raises:
            TransportError: a rule is broken.
        """
        if list(self.peers) != sorted(set(self.peers)):
            raise TransportError(f"peers of a halo plan must be ascending and unique: {self.peers}")
        if not len(self.peers) == len(self.owned) == len(self.ghosts):
            raise TransportError(
                f"a halo plan of {len(self.peers)} peers requires one list of owned slots and one of copies per peer"
            )
        if self.sized:
            return
        for peer, owned in zip(self.peers, self.owned, strict=True):
            if not all_distinct(owned):
                raise TransportError(f"halo plan: the list for rank {peer} contains a slot twice")
        if not all_distinct(*self.ghosts):
            raise TransportError("internal error: two values of the halo plan would be stored at the same index")

    @property
    def slots(self) -> int:
        """Minimum number of elements of an array of this plan (greatest slot + 1)."""
        return max((int(slots.max()) + 1 for slots in (*self.owned, *self.ghosts) if len(slots)), default=0)


def slot_type(*lists: npt.NDArray[np.integer]) -> type[np.uint32] | type[np.int64]:
    """Return the type of the slots in all `lists`: uint32 if they fit, else int64."""
    return np.uint32 if max((int(slots.max()) for slots in lists if len(slots)), default=0) < 1 << 32 else np.int64


def narrowed(slots: npt.NDArray[np.int64]) -> Slots:
    """Return `slots` as uint32 if they fit, else as they are."""
    return slots.astype(slot_type(slots), copy=False)


def plan_of_sizes(peers: Sequence[int], sent: Sequence[int], received: Sequence[int]) -> HaloPlan:
    """Return the plan of a *gather* whose messages have the given numbers of values; slots are set later."""
    owned, ghosts = (tuple(np.zeros(count, np.uint32) for count in counts) for counts in (sent, received))
    return HaloPlan(tuple(peers), owned, ghosts, sized=True)


def joined_slots(lists: Sequence[Slots]) -> Slots:
    """Return the slots of all `lists`."""
    return np.concatenate(lists) if lists else np.zeros(0, np.uint32)


def all_distinct(*lists: Slots) -> bool:
    """Return whether no slot occurs twice in all lists together."""
    ordered = np.sort(joined_slots(lists))
    return not bool(np.any(ordered[1:] == ordered[:-1]))


def build_plan(world: World, requests: Request, locate: Callable[[Keys], npt.NDArray[np.integer]]) -> HaloPlan:
    """Return the plan that provides every rank with the values it requests (collective).

    The values of a message are ordered by the slots of their ghosts: unpacking then writes memory in ascending order.

    Args:
        world: the ranks. A serial world can request values only from itself (rank 0).
        requests: by peer, the keys of the values (global numbers used by both sides, for example
            site * Q + direction, without repetition) and the local slots of their ghosts, (k,) each.
        locate: returns the slots (k,) of keys (k,) requested from this rank, negative where the key is not owned.

    Raises:
        TransportError: on every rank, naming the ranks, when a peer does not exist or does not own a requested key,
            or when a rule of `HaloPlan` is broken.
    """
    problem = _check_requests(world, requests)
    raise_together(world, problem)
    requests = {peer: _in_memory_order(keys, slots) for peer, (keys, slots) in requests.items()}
    incoming = _exchange_keys(world, {peer: keys for peer, (keys, _) in requests.items()})
    owned: dict[int, Slots] = {}
    for peer, keys in incoming.items():
        slots = np.asarray(locate(keys)).astype(np.int64)
        not_owned = np.flatnonzero(slots < 0)
        if len(not_owned):
            problem = problem or (
                f"rank {peer} requests key {int(keys[not_owned[0]])} ({len(not_owned)} of {len(keys)} keys)"
                f" from rank {world.rank}, which does not own it"
            )
        owned[peer] = np.where(slots < 0, 0, slots)
    raise_together(world, problem)
    empty = np.zeros(0, np.uint32)
    ghosts = {peer: slots for peer, (_, slots) in requests.items() if len(slots)}
    kind = slot_type(*owned.values(), *ghosts.values())
    owned, ghosts = ({peer: slots.astype(kind) for peer, slots in lists.items()} for lists in (owned, ghosts))
    peers = tuple(sorted(owned.keys() | ghosts.keys()))
    plan = None
    try:
        plan = HaloPlan(peers, tuple(owned.get(p, empty) for p in peers), tuple(ghosts.get(p, empty) for p in peers))
    except TransportError as error:
        problem = f"rank {world.rank}: {error}"
    raise_together(world, problem)
    assert plan is not None
    return plan


def _in_memory_order(keys: npt.ArrayLike, slots: npt.ArrayLike) -> tuple[Keys, Slots]:
    order = np.argsort(slots, kind="stable")
    return np.asarray(keys, np.int64)[order], np.asarray(slots)[order]


def _check_requests(world: World, requests: Request) -> str | None:
    for peer, (keys, slots) in requests.items():
        if not 0 <= peer < world.size:
            return f"rank {world.rank} requests values from rank {peer}, but there are {world.size} ranks"
        if len(keys) != len(slots):
            return f"rank {world.rank} requests {len(keys)} keys from rank {peer} for {len(slots)} slots"
    return None


def _exchange_keys(world: World, keys: Mapping[int, Keys]) -> dict[int, Keys]:
    """Return the keys that each rank requests from this one, in its order; ranks without requests are omitted."""
    if world.comm is None:
        return {peer: requested for peer, requested in keys.items() if len(requested)}
    sent = np.array([len(keys.get(peer, ())) for peer in range(world.size)], np.int64)
    received = np.empty_like(sent)
    world.comm.Alltoall(sent, received)
    outgoing = np.concatenate([np.zeros(0, np.int64), *(keys[peer] for peer in sorted(keys))])
    incoming = np.empty(int(received.sum()), np.int64)
    world.comm.Alltoallv([outgoing, sent], [incoming, received])
    lists = np.split(incoming, np.cumsum(received)[:-1])
    return {peer: requested for peer, requested in enumerate(lists) if len(requested)}
