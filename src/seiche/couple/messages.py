# SPDX-License-Identifier: BSD-3-Clause
"""Messages of whole cells, with a fixed size including headroom and variable slots (docs/decisions/0019)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend
from seiche.domain.world import World
from seiche.halo.exchange import HaloExchange, Mode
from seiche.halo.plan import plan_of_sizes
from seiche.halo.transports import TransportName
from seiche.kernels.registry import KernelSpec, Real
from seiche.kernels.registry import resident as registry
from seiche.machine.in_use import predicted_transport_times

Numbers = npt.NDArray[np.int64]

#: Ratio of allocated to required size.
HEADROOM = 1.25
#: Number of padding values at the end of a message that one team writes.
_PADDING = 1 << 16


class CellMessages:
    """Exchanges of three values per vertex: `positions` in double precision, `velocities` in that of the flow.

    Both use the same plan. `sent` and `received` are the maximum numbers of values to and from each rank.
    """

    def __init__(
        self, backend: Backend, world: World, real: Real, transport: TransportName, before_closing: Callable[[], None]
    ) -> None:
        """Create messages of size zero; `before_closing` must discard graphs that use messages (collective)."""
        self._backend, self._world, self._real, self._transport = backend, world, real, transport
        self._before_closing = before_closing
        self.sent = self.received = np.zeros(world.size, np.int64)
        self._open()

    def _open(self) -> None:
        peers = np.flatnonzero((self.sent > 0) | (self.received > 0))
        plan = plan_of_sizes(peers.tolist(), self.sent[peers].tolist(), self.received[peers].tolist())
        device, world, transport = self._backend, self._world, self._transport
        self.positions = HaloExchange(device, world, plan, "float64", transport, predict=predicted_transport_times)
        self.velocities = HaloExchange(device, world, plan, self._real, transport, predict=predicted_transport_times)

    def fits(self, sent: Numbers, received: Numbers) -> bool:
        """Return whether the messages to and from each rank are large enough for these numbers of values."""
        return bool((sent <= self.sent).all() and (received <= self.received).all())

    def grow(self, sent: Numbers, received: Numbers) -> None:
        """Enlarge messages that are too small (collective)."""
        self.sent = np.where(sent > self.sent, (sent * HEADROOM).astype(np.int64), self.sent)
        self.received = np.where(received > self.received, (received * HEADROOM).astype(np.int64), self.received)
        self._before_closing()
        self.close()
        self._open()

    def prepare(self, positions: Array, velocity: Array) -> None:
        """Set up the exchanges for arrays (3, stride) (collective after growth)."""
        self.positions.prepare(positions, "gather")
        self.velocities.prepare(velocity, "gather")
        self.velocities.prepare(velocity, "scatter_add")

    def write(
        self,
        exchange: HaloExchange,
        mode: Mode,
        stride: int,
        sources: tuple[Numbers, Numbers, Sequence[Numbers]],
        targets: tuple[Numbers, Numbers, Sequence[Numbers]],
    ) -> None:
        """Set the slots of messages from `sources` to `targets`: first vertices, vertex counts, rows for each rank.

        The padding at the end of a message is read from, and written to, the last column of the first row.
        """
        sizes = (self.sent, self.received) if mode == "gather" else (self.received, self.sent)
        endpoints = (sources, targets)
        for slots, values, (first, vertices, rows_of) in zip(exchange.slots(mode), sizes, endpoints, strict=True):
            entries, offset = [np.zeros((0, 4), np.int64)], 0
            for peer in exchange.plan.peers:
                rows, next_offset = rows_of[peer], offset + int(values[peer])
                counts = 3 * vertices[rows]
                entries.append(
                    np.column_stack([offset + np.cumsum(counts) - counts, counts, first[rows], vertices[rows]])
                )
                padding = np.arange(offset + int(counts.sum()), next_offset, _PADDING)
                zero = np.zeros(len(padding), np.int64)
                size = np.minimum(next_offset - padding, _PADDING)
                entries.append(np.column_stack([padding, size, zero + stride - 1, zero]))
                offset = next_offset
            run_over_cells(self._backend, registry.write_slots(), np.concatenate(entries), slots=slots, stride=stride)

    def close(self) -> None:
        """Free the messages (collective)."""
        self.positions.close()
        self.velocities.close()


def move_cells(backend: Backend, source: Array, target: Array, entries: Numbers, strides: tuple[int, int]) -> None:
    """Copy cells between arrays (3, stride).

    `entries` (n, 3) contain the first vertex in `source`, the first vertex in `target`, and the number of vertices.
    """
    spec = registry.move_cells("float64" if source.dtype == np.float64 else "float32")
    members = {"source": source, "target": target, "source_stride": strides[0], "stride": strides[1]}
    run_over_cells(backend, spec, entries, **members)


def run_over_cells(backend: Backend, spec: KernelSpec, entries: Numbers, **members: Array) -> None:
    """Run a kernel whose items are rows of a table of cells."""
    if not len(entries):
        return
    kernel, listed = backend.load(spec), backend.upload(np.ascontiguousarray(entries, np.int64))
    # The table is freed in stream order, so it is not necessary to wait for the kernel.
    kernel.bind(backend.pack(kernel, entries=listed, **members), 0, len(entries))()
