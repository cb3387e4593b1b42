# SPDX-License-Identifier: BSD-3-Clause
"""What ranks send each other in a stage: traces, or more, from which traces are then made (theory/waves, section 6).

    traces      characteristic traces: what the other side reads
    half        the same in half precision, a power of two for every face
    faces       all unknowns at the nodes of the faces
    variables   all unknowns of the elements, and their moduli
    elements    whole elements: unknowns, registers and moduli

All but `half` give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from seiche.backend import Array
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.halo import HaloExchange, HaloPlan
from seiche.halo.transports import TransportName
from seiche.kernels.registry import KernelSpec, dg
from seiche.machine.in_use import predict_transports
from seiche.observe.stage import Messages, Stage
from seiche.observe.timers import StageTimers
from seiche.waves.operator import Operator, interpolated
from seiche.waves.ranks import Pieces, element_plan

#: All messages of a stage come in the same order on all ranks.
_CHANNEL = "halo"

GhostKind = Literal["traces", "half", "faces", "variables", "elements"]
_Launch = Callable[[], None]


def check_ghosts(kind: str) -> None:
    """Refuse kinds that do not exist.

    Raises:
        CaseError: an unknown kind.
    """
    if kind not in get_args(GhostKind):
        raise CaseError(f"ghosts = {kind!r}: has to be one of {', '.join(get_args(GhostKind))}")


def _together(pairs: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return (peer, bytes) with all bytes of a peer as one message."""
    sums: dict[int, int] = {}
    for peer, size in pairs:
        sums[peer] = sums.get(peer, 0) + size
    return tuple(sums.items())


class Ghosts:
    """The messages of a stage, between `start` and `finish` of which elements inside may be computed."""

    def __init__(
        self,
        operator: Operator,
        world: World,
        kind: GhostKind,
        transport: TransportName,
        *,
        state: tuple[Array, Array],
        traces: tuple[Array, Array],
        timers: StageTimers,
    ) -> None:
        """Set up the messages (collective).

        Args:
            operator: the arrays of the right-hand side.
            world: the ranks.
            kind: what travels.
            transport: how.
            state: unknowns and registers of own elements and, for the last three kinds, of ghosts.
            traces: the two buffers.
            timers: see what goes on in the streams of the messages.
        """
        self._timers = timers
        self.kind, self._operator, self._world, self._transport = kind, operator, world, transport
        of, backend = operator.of, operator.backend
        self._sent: list[tuple[HaloExchange, Array]] = []
        #: Arrays that launches point into.
        self._kept: list[dict[str, Any]] = []
        self._before: dict[int, _Launch] = {}
        self._after: dict[int, list[_Launch]] = {}
        pieces = operator.pieces
        if kind == "traces":
            self._of_traces = self._exchange(operator.plan, of.real, *traces)
        elif kind == "half":
            self._halves(traces)
        else:
            size = operator.of.fields * operator.weights.shape[1]
            u, k = state
            if kind == "faces":
                self._sent.append((self._exchange(face_plan(operator, pieces), of.real, u), u))
            else:
                everything = element_plan(operator.mesh, np.arange(size), size)
                self._sent.append((self._exchange(everything, of.real, u), u))
                if kind == "elements":
                    self._sent.append((self._exchange(everything, of.real, k), k))
                rows = operator.material.moduli(of.medium).size // operator.mesh.count
                moduli = backend.zeros((operator.mesh.count + operator.mesh.ghosts) * rows, of.real)
                plan = element_plan(operator.mesh, np.arange(rows), rows)
                self._sent.append((self._exchange(plan, of.real, moduli), moduli))
            for trace in traces:
                self._after[backend.pointer(trace)] = self._traces_of_ghosts(u[operator.mesh.count :], trace)

    @property
    def exchanges(self) -> list[HaloExchange]:
        """Return all exchanges of a stage."""
        return [self._of_traces] if self.kind == "traces" else [exchange for exchange, _ in self._sent]

    @property
    def bytes(self) -> int:
        """Return the bytes that this rank sends and receives in a stage."""
        return sum(exchange.bytes for exchange in self.exchanges)

    @property
    def transport_name(self) -> str:
        """Return how messages travel."""
        return self.exchanges[0].transport_name

    def stages(self, trace: Array) -> tuple[Stage, Stage]:
        """Return what sends, and what receives: the stages around those of the elements inside."""
        every = self.exchanges
        sent = _together([pair for each in every for pair in each.sent(_CHANNEL).sent])
        received = _together([pair for each in every for pair in each.received(_CHANNEL).received])
        return (
            Stage(
                "send halo", lambda: self.start(trace), self.bytes, useful=False, messages=Messages(_CHANNEL, sent=sent)
            ),
            Stage(
                "receive halo",
                lambda: self.finish(trace),
                self.bytes,
                ("send halo",),
                useful=False,
                messages=Messages(_CHANNEL, received=received),
            ),
        )

    def start(self, trace: Array) -> None:
        """Send what others need to read the traces `trace`, or to make them."""
        if self.kind == "traces":
            self._of_traces.start(trace)
            return
        if self._before:
            self._before[self._operator.backend.pointer(trace)]()
        for exchange, array in self._sent:
            exchange.start(array)

    def finish(self, trace: Array) -> None:
        """Receive it; then the traces of ghosts are there."""
        if self.kind == "traces":
            self._of_traces.finish(trace)
            return
        for exchange, array in self._sent:
            exchange.finish(array)
        for launch in self._after[self._operator.backend.pointer(trace)]:
            launch()

    def close(self) -> None:
        """Free the transports (collective)."""
        for exchange in self.exchanges:
            exchange.close()

    def _exchange(self, plan: HaloPlan, store: str, *arrays: Array) -> HaloExchange:
        given = (self._operator.backend, self._world, plan, store, self._transport)
        exchange = HaloExchange(*given, predict=predict_transports)  # type: ignore[arg-type]
        exchange.beside = self._timers.beside
        for array in arrays:
            exchange.prepare(array)
        return exchange

    def _launch(self, spec: KernelSpec, items: int, **members: Any) -> _Launch:
        backend = self._operator.backend
        kernel = backend.load(spec)
        self._kept.append(members)
        return kernel.bind(backend.pack(kernel, **members), 0, items)

    def _halves(self, traces: tuple[Array, Array]) -> None:
        operator, backend = self._operator, self._operator.backend
        pieces, words = operator.pieces, operator.of.slot + 1
        count = len(pieces)
        messages = backend.zeros(2 * count * words, np.uint16)
        received = messages[count * words :]
        plan = pieces.plan(np.arange(count), count + np.arange(count), words)
        self._sent.append((self._exchange(plan, "float16", messages), messages))
        sent = backend.upload(operator.sent_slots.astype(np.uint32))
        given = backend.upload(operator.ghost_slots.astype(np.uint32))
        for trace in traces:
            at = backend.pointer(trace)
            self._before[at] = self._launch(
                dg.halve_traces(operator.of), count, trace=trace, slots=sent, messages=messages
            )
            restore = dg.halve_traces(operator.of, back=True)
            self._after[at] = [self._launch(restore, count, messages=received, slots=given, trace=trace)]

    def _traces_of_ghosts(self, u: Array, trace: Array) -> list[_Launch]:
        """Return what writes the traces of ghosts from their unknowns."""
        operator, mesh, of, pieces = self._operator, self._operator.mesh, self._operator.of, self._operator.pieces
        unread = operator.slot_count - 2
        slots = np.full((mesh.ghosts, mesh.faces), unread)
        alone = pieces.large | (pieces.place < 0)
        slots[pieces.ghost[alone], pieces.face[alone] ^ 1] = operator.ghost_slots[alone]
        ghosts = mesh.count + np.arange(mesh.ghosts)
        z = [operator.beyond(ghosts, face) for face in range(mesh.faces)]
        coefficients = np.stack([operator.flux.inner_coefficients(own, own) for own in z], 1)
        members = {
            **operator.members,
            "out_slots": operator.backend.upload(slots.astype(np.int32)),
            "faces": operator.real_array(coefficients),
            "count": mesh.ghosts,
        }
        launches = [self._launch(dg.write_traces(of), mesh.ghosts, on=members, u=u, trace=trace)]
        if not alone.all():
            launches.append(self._large_ghosts(u, trace, ~alone, z))
        return launches

    def _large_ghosts(
        self, u: Array, trace: Array, beside: npt.NDArray[np.bool_], z: list[npt.NDArray[np.float64]]
    ) -> _Launch:
        """Return what writes the traces of large ghosts at the nodes of their small neighbours here."""
        operator, of, pieces = self._operator, self._operator.of, self._operator.pieces
        children = 1 << (operator.mesh.dim - 1)
        pairs = np.stack([pieces.ghost[beside], pieces.face[beside] ^ 1], 1)
        sides, number = np.unique(pairs, axis=0, return_inverse=True)
        slots = np.full((len(sides), children), operator.slot_count - 2)
        slots[number.reshape(-1), pieces.place[beside]] = operator.ghost_slots[beside]
        own = np.stack([z[face][:, ghost] for ghost, face in sides], 1)
        fine = [interpolated(own, operator.half(c)) if operator.material.by_node else own for c in range(children)]
        members = {
            **operator.mortar_matrices,
            "sides": operator.backend.upload(sides.astype(np.int32)),
            "small_slots": operator.backend.upload(slots.astype(np.int32)),
            "large_slots": operator.backend.upload(slots.astype(np.int32)),
            "faces": operator.real_array(np.stack([operator.flux.inner_coefficients(p, p) for p in fine], 1)),
        }
        return self._launch(dg.mortar_traces(of), len(sides), mortars=members, u=u, trace=trace)


def face_plan(operator: Operator, pieces: Pieces) -> HaloPlan:
    """Return the plan that carries all unknowns at the nodes of faces between ranks into the ghosts' elements."""
    mesh, nodes = operator.mesh, operator.weights.shape[1]
    size = operator.of.fields * nodes

    def words(elements: npt.NDArray[np.int64], faces: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
        on_face = np.stack(operator.face_nodes)[faces]
        fields = nodes * np.arange(operator.of.fields)
        return np.asarray((elements[:, None, None] * size + fields[:, None] + on_face[:, None]).ravel(), np.uint32)

    # Nodes of edges lie on several faces. Elements beside other ranks, and ghosts, lie along the curve: one order.
    peers, owned, copies = np.unique(pieces.peer), [], []
    for peer in peers:
        mine = pieces.peer == peer
        owned.append(np.unique(words(pieces.element[mine], pieces.face[mine])))
        copies.append(np.unique(words(mesh.count + pieces.ghost[mine], pieces.face[mine] ^ 1)))
    return HaloPlan(tuple(int(peer) for peer in peers), tuple(owned), tuple(copies))
