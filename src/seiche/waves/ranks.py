# SPDX-License-Identifier: BSD-3-Clause
"""Halo plans of trace slots and elements, in an order that both ranks derive without communication.

A piece is a part of a face between elements of two ranks: a conforming face, the fine side of a hanging face, or one
child of a coarse side. Each rank sends one slot and receives one slot for it. Both ranks sort the pieces by the
sender's element key, face and child of a coarse side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seiche.backend import open_backend
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.halo import HaloExchange, HaloPlan
from seiche.waves.mesh import GHOST, Mesh

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Pieces:
    """The pieces of faces between this rank and others, in the order in which they are received.

    Attributes:
        element, face, child: the side on this rank, (pieces,); child is 0 except on coarse sides.
        ghost: the neighbour, counted from the first ghost.
        child_position: position on the coarse side of a hanging face, -1 on conforming faces.
        is_coarse: whether the side on this rank is the coarse one.
        peer: rank of the neighbour.
        sends: the pieces in the order in which they are sent.
    """

    element: Indices
    face: Indices
    child: Indices
    ghost: Indices
    child_position: Indices
    is_coarse: npt.NDArray[np.bool_]
    peer: Indices
    sends: Indices

    @staticmethod
    def of(mesh: Mesh) -> Pieces:
        """Return the pieces of a mesh."""
        element, face, child = np.nonzero(mesh.kinds == GHOST)
        ghost = mesh.neighbours[element, face, child].astype(np.int64) - mesh.count
        peer = mesh.ghost_owner[ghost].astype(np.int64)
        is_coarse = np.asarray(mesh.level[mesh.count + ghost] > mesh.level[element], np.bool_)
        child_position = np.where(is_coarse, child, mesh.child[element, face])
        reads = np.lexsort((np.where(is_coarse, -1, child_position), face ^ 1, mesh.keys[mesh.count + ghost], peer))
        element, face, child, ghost = element[reads], face[reads], child[reads], ghost[reads]
        child_position, is_coarse, peer = child_position[reads], is_coarse[reads], peer[reads]
        sends = np.lexsort((np.where(is_coarse, child_position, -1), face, mesh.keys[element], peer))
        return Pieces(element, face, child, ghost, child_position, is_coarse, peer, sends)

    def __len__(self) -> int:
        """Return their number."""
        return len(self.element)

    def plan(self, sent: Indices, received: Indices, words: int) -> HaloPlan:
        """Return the plan in which piece i sends slot sent[i] and receives slot received[i], `words` words each."""
        peers = np.unique(self.peer)
        owned = [_words(sent[self.sends][self.peer[self.sends] == peer], words) for peer in peers]
        copies = [_words(received[self.peer == peer], words) for peer in peers]
        return HaloPlan(tuple(int(peer) for peer in peers), tuple(owned), tuple(copies))


def _words(slots: Indices, words: int) -> npt.NDArray[np.uint32]:
    """Return the indices of the words of slots; CaseError for more than 2^32 words."""
    indices = (slots[:, None] * words + np.arange(words)).ravel()
    if len(indices) and indices.max() > np.iinfo(np.uint32).max:
        raise CaseError(f"waves: {int(indices.max()) + 1} words on one rank; the maximum is {1 << 32}; use more ranks")
    return indices.astype(np.uint32)


def element_plan(mesh: Mesh, words: npt.NDArray[np.int64], size: int) -> HaloPlan:
    """Return the plan for the `words` of elements of `size` words each, owned elements before ghosts."""

    def slots(elements: Indices) -> npt.NDArray[np.uint32]:
        return (elements[:, None] * size + words).ravel().astype(np.uint32)

    peers = np.unique(mesh.ghost_owner)
    ghosts = [mesh.count + np.nonzero(mesh.ghost_owner == peer)[0] for peer in peers]
    owned = [slots(mesh.ghost_copies(int(peer))) for peer in peers]
    return HaloPlan(tuple(int(peer) for peer in peers), tuple(owned), tuple(slots(part) for part in ghosts))


def with_ghosts(world: World, mesh: Mesh, rows: Floats) -> Floats:
    """Return the rows of owned elements (count, ...) followed by those of ghosts (collective)."""
    if world.size == 1:
        return rows
    flat = rows.reshape(mesh.count, -1)
    size = flat.shape[1]
    host = open_backend("cpu", 1)
    array = host.upload(np.concatenate([flat, np.zeros((mesh.ghosts, size))]).ravel())
    exchange = HaloExchange(host, world, element_plan(mesh, np.arange(size), size), "float64", "host")
    exchange.start(array)
    exchange.finish(array)
    exchange.close()
    return np.asarray(host.download(array), np.float64).reshape(-1, *rows.shape[1:])
