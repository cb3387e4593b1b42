# SPDX-License-Identifier: BSD-3-Clause
"""Messages of whole cells: their size is fixed and has head room, their slots change (docs/decisions/0019)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend
from seiche.domain.world import World
from seiche.halo.exchange import HaloExchange, Mode
from seiche.halo.plan import sized_plan
from seiche.halo.transports import TransportName
from seiche.kernels.registry import KernelSpec, Real
from seiche.kernels.registry import held as registry
from seiche.machine.in_use import predict_transports

Numbers = npt.NDArray[np.int64]

#: Room is made for this much more than what is there.
GROWTH = 1.25
#: Values that one team fills in at the end of a message.
_REST = 1 << 16


class CellMessages:
    """Exchanges of three numbers a vertex: `places` in double precision, `speeds` in that of the flow.

    Both have owners and copies by the same plan. `sent` and `received` are the values to and from each rank.
    """

    def __init__(
        self, backend: Backend, world: World, real: Real, transport: TransportName, before_closing: Callable[[], None]
    ) -> None:
        """Open messages without any room; `before_closing` must forget graphs that use messages (collective)."""
        self._backend, self._world, self._real, self._transport = backend, world, real, transport
        self._before_closing = before_closing
        self.sent = self.received = np.zeros(world.size, np.int64)
        self._open()

    def _open(self) -> None:
        peers = np.flatnonzero((self.sent > 0) | (self.received > 0))
        plan = sized_plan(peers.tolist(), self.sent[peers].tolist(), self.received[peers].tolist())
        device, world, by = self._backend, self._world, self._transport
        self.places = HaloExchange(device, world, plan, "float64", by, predict=predict_transports)
        self.speeds = HaloExchange(device, world, plan, self._real, by, predict=predict_transports)

    def fits(self, sent: Numbers, received: Numbers) -> bool:
        """Return whether there is room for so many values to and from each rank."""
        return bool((sent <= self.sent).all() and (received <= self.received).all())

    def grow(self, sent: Numbers, received: Numbers) -> None:
        """Make room where there is not enough (collective)."""
        self.sent = np.where(sent > self.sent, (sent * GROWTH).astype(np.int64), self.sent)
        self.received = np.where(received > self.received, (received * GROWTH).astype(np.int64), self.received)
        self._before_closing()
        self.close()
        self._open()

    def prepare(self, place: Array, velocity: Array) -> None:
        """Set up the exchanges for arrays (3, stride) (collective after growth)."""
        self.places.prepare(place, "gather")
        self.speeds.prepare(velocity, "gather")
        self.speeds.prepare(velocity, "scatter_add")

    def write(
        self,
        exchange: HaloExchange,
        mode: Mode,
        stride: int,
        sources: tuple[Numbers, Numbers, Sequence[Numbers]],
        targets: tuple[Numbers, Numbers, Sequence[Numbers]],
    ) -> None:
        """Let messages carry cells from `sources` to `targets`: first vertices, vertices, and which go to each rank.

        The rest of a message comes from and goes to the last column of the first row.
        """
        room = (self.sent, self.received) if mode == "gather" else (self.received, self.sent)
        for slots, values, (first, vertices, parts) in zip(exchange.slots(mode), room, (sources, targets), strict=True):
            entries, begin = [np.zeros((0, 4), np.int64)], 0
            for peer in exchange.plan.peers:
                part, end = parts[peer], begin + int(values[peer])
                counts = 3 * vertices[part]
                ends = begin + np.cumsum(counts)
                entries.append(np.column_stack([ends - counts, counts, first[part], vertices[part]]))
                rest = np.arange(begin + int(counts.sum()), end, _REST)
                nobody = np.zeros(len(rest), np.int64)
                entries.append(np.column_stack([rest, np.minimum(end - rest, _REST), nobody + stride - 1, nobody]))
                begin = end
            run_over_cells(self._backend, registry.write_slots(), np.concatenate(entries), slots=slots, stride=stride)

    def close(self) -> None:
        """Give back the messages' memory (collective)."""
        self.places.close()
        self.speeds.close()


def move_cells(backend: Backend, source: Array, target: Array, entries: Numbers, strides: tuple[int, int]) -> None:
    """Copy cells between arrays (3, stride): first vertex in `source`, first in `target`, vertices of each, (n, 3)."""
    spec = registry.move_cells("float64" if source.dtype == np.float64 else "float32")
    members = {"from": source, "to": target, "from_stride": strides[0], "stride": strides[1]}
    run_over_cells(backend, spec, entries, **members)


def run_over_cells(backend: Backend, spec: KernelSpec, entries: Numbers, **members: Array) -> None:
    """Run a kernel whose items are rows of a table of cells."""
    if not len(entries):
        return
    kernel, listed = backend.load(spec), backend.upload(np.ascontiguousarray(entries, np.int64))
    # A device frees the table in the order of the stream: nothing has to wait for the kernel.
    kernel.bind(backend.pack(kernel, entries=listed, **members), 0, len(entries))()
