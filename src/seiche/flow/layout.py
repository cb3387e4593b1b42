# SPDX-License-Identifier: BSD-3-Clause
"""Interface of a storage layout; see `list_layout.py`, `tile_layout.py` and `moment_layout.py`.

Populations are stored as differences from their weights. Between steps, the state of a site consists of its *outgoing*
populations: those after the collision, where the populations that leave through iolets have already been replaced by
the returning ones. Every layout can export and import this state, so checkpoints are independent of the layout, the
number of ranks and the device.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend
from seiche.flow.velocity_set import VelocitySet
from seiche.halo.launches import slot_move
from seiche.halo.plan import HaloPlan
from seiche.kernels.registry import CPP_TYPE
from seiche.solver.state import Rows

HaloMode = Literal["gather", "scatter"]


class Use(Enum):
    """How a boundary accesses a population, for layouts that do not store all populations.

    IOLET: an iolet writes it after the sweep. RETURNED: a wall replaces it before the sweep. AFTER_IOLETS: a
    wall next to an iolet replaces it after the sweep and the iolet. OUTGOING: its outgoing value is read. INCOMING: its
    incoming value is read.
    """

    IOLET = auto()
    RETURNED = auto()
    AFTER_IOLETS = auto()
    OUTGOING = auto()
    INCOMING = auto()


#: Scale of stored half-precision numbers: value = half/HALF_SCALE (see `f16` in kernels/storage.hpp).
HALF_SCALE = 32768.0


class StoredColumns:
    """Stored values of the owned sites as rows (n_owned, columns) that are assembled on access.

    Columns are in the storage precision; rows have float64, or float32 where this represents all columns exactly.
    Access does not involve the device, so any thread may write them to a file.
    """

    _ROWS = 4096

    def __init__(self, columns: list[npt.NDArray[Any]]) -> None:
        """Wrap the columns, (n_owned,) each; those in half precision are scaled by HALF_SCALE."""
        self._columns = columns
        self.shape = (len(columns[0]), len(columns))
        wide = any(column.dtype == np.float64 for column in columns)
        self.dtype = np.dtype(np.float64 if wide else np.float32)

    def __len__(self) -> int:
        """Return n_owned."""
        return self.shape[0]

    def __getitem__(self, rows: slice) -> npt.NDArray[Any]:
        """Return the rows of a slice."""
        columns = [column[rows] for column in self._columns]
        state = np.empty((len(columns[0]), len(columns)), self.dtype)
        # A block of rows stays in the cache while its columns are filled.
        for begin in range(0, len(state), self._ROWS):
            block = state[begin : begin + self._ROWS]
            for k, column in enumerate(columns):
                block[:, k] = column[begin : begin + self._ROWS]
        for k, column in enumerate(columns):
            if column.dtype == np.float16:
                state[:, k] /= HALF_SCALE
        return state


class Layout(ABC):
    """Populations of one rank in memory.

    `phases` is the number of kinds of steps, which alternate (2: even and odd steps, or reading from either of two
    copies). `item` (n_owned,) is the kernel item of each owned site, a number below `items`. Items [0, interior) need
    no data from other ranks; items [interior, items) do.
    """

    phases = 2
    #: Sites per item of the sweep.
    sites_per_item = 1
    items: int
    interior: int
    item: npt.NDArray[np.int64]
    plan: HaloPlan
    arrays: list[Array]

    def __init__(self, backend: Backend, store: str, velocity_set: VelocitySet) -> None:
        self.backend, self.store, self.velocity_set = backend, store, velocity_set
        if store not in CPP_TYPE:
            raise ValueError(f"storage {store!r} is not one of {sorted(CPP_TYPE)}")

    @abstractmethod
    def kernel_name(self, phase: int) -> str:
        """Return the layout name in the kernel registry for a step of this phase."""

    @abstractmethod
    def members(self, phase: int) -> dict[str, Any]:
        """Return the members of the layout's argument struct for a step of this phase."""

    @abstractmethod
    def source(self, phase: int) -> Array:
        """Return the array from which a step of this phase reads the values of neighbours."""

    @abstractmethod
    def halo_mode(self, phase: int) -> HaloMode:
        """Return the direction of the halo exchange before a step of this phase."""

    @abstractmethod
    def outgoing_slots(self, phase: int, q: int, rows: npt.NDArray[np.int64] | None = None) -> npt.NDArray[np.uint32]:
        """Return the slots of the populations that leave `rows` (m,), or all, along q before a step of this phase."""

    @abstractmethod
    def incoming_slots(self, phase: int, q: int, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
        """Return the slots (m,) of the populations that arrive along q at `rows` (m,).

        Their upwind sites must be fluid.
        """

    def reserve(self, use: Use, rows: npt.NDArray[np.int64], q: npt.NDArray[Any]) -> None:
        """Reserve slots of populations along `q` (n,) at `rows` (n,), before the first call that returns slots."""
        return  # layouts that store populations have slots for all of them

    def boundary(self, phase: int) -> Array:
        """Return the array that contains the slots, before a step of this phase."""
        return self.source(phase)

    @property
    def boundary_precision(self) -> str:
        """Return the precision of the `boundary` array."""
        return self.store

    def rebuild_call(self, phase: int, part: Literal["interior", "edge", "after iolets"]) -> Callable[[], None] | None:
        """Return the function that fills the slots needed by boundaries; None if there is nothing to fill.

        "interior" and "edge" run before a step of this phase, "after iolets" (for walls next to iolets) after the
        previous step.
        """
        return None

    def addressing_bytes(self, phase: int) -> int:
        """Return the size of the tables that a step of this phase reads and that its kernel does not count, in bytes.

        Negative if the step does not read a table that the kernel counts.
        """
        return 0

    def memory(self) -> int:
        """Return the size of the populations in bytes."""
        return sum(int(array.nbytes) for array in self.arrays)

    def outgoing_distance(self, phase: int, q: int) -> int | None:
        """Return the offset of `outgoing_slots` for q from those for the rest population; None if it is not uniform."""
        return None

    #: Names of the arrays of `state` that follow from the others.
    derived: frozenset[str] = frozenset()

    def state(self, phase: int) -> dict[str, Rows]:
        """Return the arrays of the state before a step of this phase: `populations` (n_owned, Q)."""
        return {"populations": self.outgoing(phase)}

    def set_state(self, state: dict[str, npt.NDArray[Any]]) -> None:
        """Restore the result of `state()` of any layout; the next step must be of phase 0."""
        for q in range(self.velocity_set.Q):
            self.set_leaving(q, state["populations"][:, q])

    def start(self, density: float, velocity: Sequence[float]) -> None:
        """Set all sites to the equilibrium for `density` and `velocity`."""
        if density == 1.0 and not any(velocity):
            return  # at rest, the differences from the weights are zero, as allocated
        excess = np.array([density - 1.0])
        self.fill(self.velocity_set.equilibrium(excess, np.array([velocity], np.float64))[0])

    def fill(self, populations: npt.NDArray[np.float64]) -> None:
        """Set all sites to the same `populations` (Q,); the next step must be of phase 0."""
        for q, value in enumerate(populations):
            self.set_leaving(q, np.full(len(self.item), value))

    def outgoing(self, phase: int) -> Rows:
        """Return a copy of the outgoing populations (n_owned, Q) before a step of this phase."""
        buffer = self.backend.zeros(len(self.item), self.store)
        rest_slots = self.backend.upload(self.outgoing_slots(phase, 0))
        columns = []
        for q in range(self.velocity_set.Q):
            distance = self.outgoing_distance(phase, q)
            slots = rest_slots if distance is not None else self.backend.upload(self.outgoing_slots(phase, q))
            self._move("Pack", phase, slots, buffer, distance or 0)
            columns.append(self.backend.download(buffer))
        return StoredColumns(columns)

    def set_leaving(self, q: int, values: npt.NDArray[Any]) -> None:
        """Overwrite the populations (n_owned,) that leave along q; the next step must be of phase 0."""
        if self.store == "float16":
            values = values * HALF_SCALE
        slots = self.backend.upload(self.outgoing_slots(0, q))
        self._move("Unpack", 0, slots, self.backend.upload(np.ascontiguousarray(values, self.store)))

    def _move(
        self, action: Literal["Pack", "Unpack"], phase: int, slots: Array, buffer: Array, distance: int = 0
    ) -> None:
        """Copy between `buffer` and the slots `slots` + `distance`."""
        kernel = self.backend.load(slot_move(action, self.store, slots))  # type: ignore[arg-type]
        array = self.backend.pointer(self.source(phase)) + distance * np.dtype(self.store).itemsize
        arguments = self.backend.pack(kernel, array=array, slots=slots, buffer=buffer)
        kernel.bind(arguments, 0, slots.size)()
        self.backend.synchronize()


#: Number of values of a rank that 32-bit slot numbers can address.
MAX_SLOTS = 1 << 32


def check_slots(count: int) -> None:
    """Raise ValueError if a rank has more values than 32-bit slot numbers can address."""
    if count >= MAX_SLOTS:
        times = count // MAX_SLOTS + 1
        raise ValueError(f"{count} values on one rank are not below 2^32; use {times} times as many ranks")
