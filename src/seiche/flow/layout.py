# SPDX-License-Identifier: BSD-3-Clause
"""What a storage layout must tell the solver; `list_layout.py` and `tile_layout.py` are the layouts.

Populations are kept shifted by their weight. A site's state between steps is what *leaves* it: the populations after
the collision, those through iolets already replaced by the ones that come back. Every layout can hand out and take in
that state, which makes checkpoints independent of layout, ranks and device.
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
from seiche.halo.plan import HaloPlan
from seiche.kernels.registry import CPP_TYPE
from seiche.kernels.registry.halo import halo_move

HaloMode = Literal["gather", "scatter"]


class Use(Enum):
    """What a population beside a boundary is wanted for, by a layout that does not store populations.

    IOLET: an iolet writes it after the sweep. RETURNED: a wall replaces it before the sweep. LATE: a wall replaces it
    after the sweep. LEAVING: what left is read. ARRIVING: what arrives is read.
    """

    IOLET = auto()
    RETURNED = auto()
    LATE = auto()
    LEAVING = auto()
    ARRIVING = auto()


#: What a stored half means: the value is the half divided by this (see `f16` in kernels/storage.hpp).
HALF_SCALE = 32768.0


class Leaving:
    """Populations that leave the owned sites, shifted by their weight: rows (n_owned, Q) made when they are asked for.

    An asker far from the solver, such as a thread that writes them, gives the device no work.
    """

    dtype = np.dtype(np.float64)
    _ROWS = 4096

    def __init__(self, columns: list[npt.NDArray[Any]]) -> None:
        """Keep the stored numbers, (n_owned,) for each direction."""
        self._columns = columns
        self.shape = (len(columns[0]), len(columns))

    def __len__(self) -> int:
        """Return n_owned."""
        return self.shape[0]

    def __getitem__(self, rows: slice) -> npt.NDArray[np.float64]:
        """Return the rows of a slice."""
        columns = [column[rows] for column in self._columns]
        state = np.empty((len(columns[0]), len(columns)))
        # A few rows at a time stay in the cache while all their columns are filled.
        for begin in range(0, len(state), self._ROWS):
            block = state[begin : begin + self._ROWS]
            for q, column in enumerate(columns):
                block[:, q] = column[begin : begin + self._ROWS]
        return state / HALF_SCALE if columns[0].dtype == np.float16 else state


class Layout(ABC):
    """Populations of one rank in memory.

    `phases` is the number of kinds of steps that alternate (2: the two directions of two copies, or even and odd).
    `item` (n_owned,) gives the kernel item of each owned site; `items` bounds them. Items [0, interior) need nothing
    from other ranks, items [interior, items) do.
    """

    phases = 2
    #: Sites that one item of the sweep handles.
    sites_per_item = 1
    items: int
    interior: int
    item: npt.NDArray[np.int64]
    plan: HaloPlan
    arrays: list[Array]

    def __init__(self, backend: Backend, store: str, velocity_set: VelocitySet) -> None:
        """Remember where and in which precision which populations live."""
        self.backend, self.store, self.velocity_set = backend, store, velocity_set
        if store not in CPP_TYPE:
            raise ValueError(f"storage {store!r} is not one of {sorted(CPP_TYPE)}")

    @abstractmethod
    def kernel_name(self, phase: int) -> str:
        """Return the layout's name in the kernel registry for a step of this phase."""

    @abstractmethod
    def members(self, phase: int) -> dict[str, Any]:
        """Return the members of the layout's argument struct for a step of this phase."""

    @abstractmethod
    def source(self, phase: int) -> Array:
        """Return the array that a step of this phase reads from neighbours."""

    @abstractmethod
    def halo_mode(self, phase: int) -> HaloMode:
        """Return which way the halo moves before a step of this phase."""

    @abstractmethod
    def leaving_slots(self, phase: int, q: int, rows: npt.NDArray[np.int64] | None = None) -> npt.NDArray[np.uint32]:
        """Return the slots of what left `rows` (m,) of the region, or all, along q before a step of this phase."""

    @abstractmethod
    def arriving_slots(self, phase: int, q: int, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
        """Return where a step of this phase reads what arrives along q at the sites `rows` of the region, (m,).

        Only sites with fluid upwind may be asked for.
        """

    def reserve(self, use: Use, rows: npt.NDArray[np.int64], q: npt.NDArray[Any]) -> None:
        """Say which populations boundaries want, along `q` (n,) at sites `rows` (n,), before any slot is asked for."""
        return  # every population has a slot, except where a layout says so

    def boundary(self, phase: int) -> Array:
        """Return the array in which the slots of populations lie before a step of this phase."""
        return self.source(phase)

    @property
    def boundary_store(self) -> str:
        """Return the precision of that array."""
        return self.store

    def rebuild(self, phase: int, part: Literal["interior", "edge", "late"]) -> Callable[[], None] | None:
        """Return the call that puts populations wanted by boundaries into their slots, if any are not there anyway.

        Before a step of this phase: those that need nothing from another rank, those that do; after one of the phase
        before: those of walls beside iolets.
        """
        return None

    @property
    @abstractmethod
    def addressing_bytes(self) -> int:
        """Return the bytes of tables that a step reads beside what the kernel counts an item."""

    def memory(self) -> int:
        """Return the bytes of the populations."""
        return sum(int(array.nbytes) for array in self.arrays)

    def leaving_distance(self, phase: int, q: int) -> int | None:
        """Return how far `leaving_slots` of q lie behind those of the rest population, None if not all equally far."""
        return None

    def state(self, phase: int) -> dict[str, Leaving | npt.NDArray[np.float64]]:
        """Return the arrays of a checkpoint before a step of this phase: `populations` (n_owned, Q)."""
        return {"populations": self.leaving(phase)}

    def set_state(self, state: dict[str, npt.NDArray[Any]]) -> None:
        """Overwrite the state before a step of phase 0 by what `state()` of any layout returned."""
        for q in range(self.velocity_set.Q):
            self.set_leaving(q, state["populations"][:, q])

    def start(self, density: float, velocity: Sequence[float]) -> None:
        """Set the equilibrium of `density` and `velocity` at every site."""
        if density == 1.0 and not any(velocity):
            return  # the shifted populations of the fluid at rest are the zeros that were allocated
        excess = np.array([density - 1.0])
        self.fill(self.velocity_set.equilibrium(excess, np.array([velocity], np.float64))[0])

    def fill(self, populations: npt.NDArray[np.float64]) -> None:
        """Let every site have the same populations (Q,), before a step of phase 0."""
        for q, value in enumerate(populations):
            self.set_leaving(q, np.full(len(self.item), value))

    def leaving(self, phase: int) -> Leaving | npt.NDArray[np.float64]:
        """Return the state (n_owned, Q) before a step of this phase, in memory of its own."""
        buffer = self.backend.zeros(len(self.item), self.store)
        rest = self.backend.upload(self.leaving_slots(phase, 0))
        columns = []
        for q in range(self.velocity_set.Q):
            distance = self.leaving_distance(phase, q)
            slots = rest if distance is not None else self.backend.upload(self.leaving_slots(phase, q))
            self._move("Pack", phase, slots, buffer, distance or 0)
            columns.append(self.backend.download(buffer))
        return Leaving(columns)

    def set_leaving(self, q: int, values: npt.NDArray[Any]) -> None:
        """Overwrite the populations (n_owned,) that leave along q, as the state before a step of the first kind."""
        if self.store == "float16":
            values = values * HALF_SCALE
        slots = self.backend.upload(self.leaving_slots(0, q))
        self._move("Unpack", 0, slots, self.backend.upload(np.ascontiguousarray(values, self.store)))

    def _move(
        self, action: Literal["Pack", "Unpack"], phase: int, slots: Array, buffer: Array, distance: int = 0
    ) -> None:
        """Move between `buffer` and the slots that lie `distance` behind `slots`."""
        kernel = self.backend.load(halo_move(action, self.store))  # type: ignore[arg-type]
        array = self.backend.pointer(self.source(phase)) + distance * np.dtype(self.store).itemsize
        arguments = self.backend.pack(kernel, array=array, slots=slots, buffer=buffer)
        kernel.bind(arguments, 0, len(self.item))()
        self.backend.synchronize()


def check_slots(count: int) -> None:
    """Refuse more populations than a 32-bit slot number can name.

    Raises:
        ValueError: more than 2^32 populations on one rank.
    """
    if count >= 1 << 32:
        raise ValueError(f"{count} populations on one rank are more than 2^32: use more ranks")
