# SPDX-License-Identifier: BSD-3-Clause
"""The halo exchange of a stage (theory/waves, section 6).

- traces: characteristic traces
- half: the same in half precision, scaled by a power of two for every face
- faces: all unknowns at the nodes of the faces
- variables: all unknowns and moduli of the elements
- elements: unknowns, registers and moduli of the elements

The last three compute the traces of ghosts after the exchange. All but `half` give the same bits.
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
from seiche.machine.in_use import predicted_transport_times
from seiche.observe.stage import Messages, Stage
from seiche.observe.timers import StageTimers
from seiche.waves.operator import Operator, interpolated
from seiche.waves.ranks import Pieces, element_plan

#: Channel of all messages of a stage, which have the same order on all ranks.
_CHANNEL = "halo"

GhostKind = Literal["traces", "half", "faces", "variables", "elements"]
_Launch = Callable[[], None]


def check_ghosts(kind: str) -> None:
    """Raise CaseError for an unknown kind."""
    if kind not in get_args(GhostKind):
        raise CaseError(f"ghosts = {kind!r}: must be one of {', '.join(get_args(GhostKind))}")


def _merged(pairs: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return (peer, bytes) with the total bytes of each peer."""
    sums: dict[int, int] = {}
    for peer, size in pairs:
        sums[peer] = sums.get(peer, 0) + size
    return tuple(sums.items())


class Ghosts:
    """The halo exchange of a stage; interior elements may be computed between `start` and `finish`."""

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
        """Set up the exchanges (collective).

        Args:
            operator: the arrays of the right-hand side.
            world: the ranks.
            kind: data of the exchange.
            transport: method of the exchange.
            state: unknowns and registers of owned elements and, for the last three kinds, of ghosts.
            traces: the two buffers.
            timers: timers of the streams of the exchange.
        """
        self._timers = timers
        self.kind, self._operator, self._world, self._transport = kind, operator, world, transport
        disc, backend = operator.disc, operator.backend
        self._arrays: list[tuple[HaloExchange, Array]] = []
        #: Arrays to which launches have pointers.
        self._members: list[dict[str, Any]] = []
        self._pack_launches: dict[int, _Launch] = {}
        self._unpack_launches: dict[int, list[_Launch]] = {}
        pieces = operator.pieces
        if kind == "traces":
            self._trace_exchange = self._exchange(operator.plan, disc.real, *traces)
        elif kind == "half":
            self._set_up_half_precision(traces)
        else:
            size = operator.disc.fields * operator.weights.shape[1]
            u, k = state
            if kind == "faces":
                self._arrays.append((self._exchange(face_plan(operator, pieces), disc.real, u), u))
            else:
                state_plan = element_plan(operator.mesh, np.arange(size), size)
                self._arrays.append((self._exchange(state_plan, disc.real, u), u))
                if kind == "elements":
                    self._arrays.append((self._exchange(state_plan, disc.real, k), k))
                rows = operator.material.moduli(disc.medium).size // operator.mesh.count
                moduli = backend.zeros((operator.mesh.count + operator.mesh.ghosts) * rows, disc.real)
                plan = element_plan(operator.mesh, np.arange(rows), rows)
                self._arrays.append((self._exchange(plan, disc.real, moduli), moduli))
            for trace in traces:
                self._unpack_launches[backend.pointer(trace)] = self._traces_of_ghosts(u[operator.mesh.count :], trace)

    @property
    def exchanges(self) -> list[HaloExchange]:
        """Return all exchanges of a stage."""
        return [self._trace_exchange] if self.kind == "traces" else [exchange for exchange, _ in self._arrays]

    @property
    def bytes(self) -> int:
        """Return the bytes that this rank sends and receives in a stage."""
        return sum(exchange.bytes for exchange in self.exchanges)

    @property
    def transport_name(self) -> str:
        """Return the name of the transport."""
        return self.exchanges[0].transport_name

    def stages(self, trace: Array) -> tuple[Stage, Stage]:
        """Return the stages that send and receive, before and after those of the interior elements."""
        sent = _merged([pair for exchange in self.exchanges for pair in exchange.sent(_CHANNEL).sent])
        received = _merged([pair for exchange in self.exchanges for pair in exchange.received(_CHANNEL).received])
        outgoing, incoming = Messages(_CHANNEL, sent=sent), Messages(_CHANNEL, received=received)
        start, finish = lambda: self.start(trace), lambda: self.finish(trace)
        return (
            Stage("send halo", start, self.bytes, useful=False, messages=outgoing),
            Stage("receive halo", finish, self.bytes, ("send halo",), useful=False, messages=incoming),
        )

    def start(self, trace: Array) -> None:
        """Send the data that other ranks need for the traces `trace`."""
        if self.kind == "traces":
            self._trace_exchange.start(trace)
            return
        if self._pack_launches:
            self._pack_launches[self._operator.backend.pointer(trace)]()
        for exchange, array in self._arrays:
            exchange.start(array)

    def finish(self, trace: Array) -> None:
        """Receive the data and, if needed, compute the traces of ghosts."""
        if self.kind == "traces":
            self._trace_exchange.finish(trace)
            return
        for exchange, array in self._arrays:
            exchange.finish(array)
        for launch in self._unpack_launches[self._operator.backend.pointer(trace)]:
            launch()

    def close(self) -> None:
        """Free the transports (collective)."""
        for exchange in self.exchanges:
            exchange.close()

    def _exchange(self, plan: HaloPlan, store: str, *arrays: Array) -> HaloExchange:
        arguments = (self._operator.backend, self._world, plan, store, self._transport)
        exchange = HaloExchange(*arguments, predict=predicted_transport_times)  # type: ignore[arg-type]
        exchange.overlap_timer = self._timers.overlap
        for array in arrays:
            exchange.prepare(array)
        return exchange

    def _launch(self, spec: KernelSpec, items: int, **members: Any) -> _Launch:
        backend = self._operator.backend
        kernel = backend.load(spec)
        self._members.append(members)
        return kernel.bind(backend.pack(kernel, **members), 0, items)

    def _set_up_half_precision(self, traces: tuple[Array, Array]) -> None:
        operator, backend = self._operator, self._operator.backend
        pieces, words = operator.pieces, operator.disc.slot + 1
        count = len(pieces)
        messages = backend.zeros(2 * count * words, np.uint16)
        received = messages[count * words :]
        plan = pieces.plan(np.arange(count), count + np.arange(count), words)
        self._arrays.append((self._exchange(plan, "float16", messages), messages))
        sent = backend.upload(operator.sent_slots.astype(np.uint32))
        ghost_slots = backend.upload(operator.ghost_slots.astype(np.uint32))
        halve, restore = dg.halve_traces(operator.disc), dg.halve_traces(operator.disc, restore=True)
        for trace in traces:
            address = backend.pointer(trace)
            self._pack_launches[address] = self._launch(halve, count, trace=trace, slots=sent, messages=messages)
            self._unpack_launches[address] = [
                self._launch(restore, count, messages=received, slots=ghost_slots, trace=trace)
            ]

    def _traces_of_ghosts(self, u: Array, trace: Array) -> list[_Launch]:
        """Return the launches that compute the traces of ghosts from their unknowns."""
        operator, pieces = self._operator, self._operator.pieces
        mesh, disc = operator.mesh, operator.disc
        unread = operator.slot_count - 2
        slots = np.full((mesh.ghosts, mesh.faces), unread)
        plain = pieces.is_coarse | (pieces.child_position < 0)
        slots[pieces.ghost[plain], pieces.face[plain] ^ 1] = operator.ghost_slots[plain]
        ghosts = mesh.count + np.arange(mesh.ghosts)
        z = [operator.face_impedances(ghosts, face) for face in range(mesh.faces)]
        coefficients = np.stack([operator.flux.inner_coefficients(impedance, impedance) for impedance in z], 1)
        members = {
            **operator.members,
            "out_slots": operator.backend.upload(slots.astype(np.int32)),
            "faces": operator.real_array(coefficients),
            "count": mesh.ghosts,
        }
        launches = [self._launch(dg.write_traces(disc), mesh.ghosts, scheme=members, u=u, trace=trace)]
        if not plain.all():
            launches.append(self._coarse_ghosts(u, trace, ~plain, z))
        return launches

    def _coarse_ghosts(
        self, u: Array, trace: Array, small: npt.NDArray[np.bool_], z: list[npt.NDArray[np.float64]]
    ) -> _Launch:
        """Return the launch that computes the traces of coarse ghosts at the nodes of `small` neighbours."""
        operator, disc, pieces = self._operator, self._operator.disc, self._operator.pieces
        children = 1 << (operator.mesh.dim - 1)
        pairs = np.stack([pieces.ghost[small], pieces.face[small] ^ 1], 1)
        sides, number = np.unique(pairs, axis=0, return_inverse=True)
        slots = np.full((len(sides), children), operator.slot_count - 2)
        slots[number.reshape(-1), pieces.child_position[small]] = operator.ghost_slots[small]
        z_large = np.stack([z[face][:, ghost] for ghost, face in sides], 1)
        fine = [
            interpolated(z_large, operator.half(c)) if operator.material.by_node else z_large for c in range(children)
        ]
        members = {
            **operator.mortar_matrices,
            "sides": operator.backend.upload(sides.astype(np.int32)),
            "fine_slots": operator.backend.upload(slots.astype(np.int32)),
            "coarse_slots": operator.backend.upload(slots.astype(np.int32)),
            "faces": operator.real_array(np.stack([operator.flux.inner_coefficients(p, p) for p in fine], 1)),
        }
        return self._launch(dg.mortar_traces(disc), len(sides), mortars=members, u=u, trace=trace)


def face_plan(operator: Operator, pieces: Pieces) -> HaloPlan:
    """Return the plan that sends all unknowns at the nodes of faces between ranks to the ghosts."""
    mesh, nodes = operator.mesh, operator.weights.shape[1]
    size = operator.disc.fields * nodes

    def words(elements: npt.NDArray[np.int64], faces: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
        on_face = np.stack(operator.face_nodes)[faces]
        fields = nodes * np.arange(operator.disc.fields)
        return np.asarray((elements[:, None, None] * size + fields[:, None] + on_face[:, None]).ravel(), np.uint32)

    # Edge nodes belong to several faces. Boundary elements and ghosts both follow the curve: the orders agree.
    peers, owned, copies = np.unique(pieces.peer), [], []
    for peer in peers:
        own_rows = pieces.peer == peer
        owned.append(np.unique(words(pieces.element[own_rows], pieces.face[own_rows])))
        copies.append(np.unique(words(mesh.count + pieces.ghost[own_rows], pieces.face[own_rows] ^ 1)))
    return HaloPlan(tuple(int(peer) for peer in peers), tuple(owned), tuple(copies))
