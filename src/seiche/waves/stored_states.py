# SPDX-License-Identifier: BSD-3-Clause
"""States stored for an adjoint run, on the device while it has room, else on the host."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from seiche.backend import Array, Backend

#: Share of its memory that a device keeps free of stored states.
_SPARE = 0.1


class _StoredState(NamedTuple):
    """Memory for a state, on the device or pinned on the host."""

    memory: Array
    on_host: bool


class StoredStates:
    """A stack of copies of a state with their steps."""

    def __init__(self, backend: Backend, state: Array, count: int, on_device: int | None = None) -> None:
        """Create an empty stack of at most `count` copies of `state`; memory is allocated when it is first needed.

        At most `on_device` of them are on the device, by default as many as it has room for.
        """
        self._backend, self._state, self._count = backend, state, count
        self._on_device = count if on_device is None else on_device
        self._spare = _SPARE * backend.free_memory()
        self._free: list[_StoredState] = []
        self._stack: list[tuple[int, _StoredState]] = []
        #: Number of allocated states, and how many of them are on the host.
        self.allocated = self.on_host = 0

    @property
    def room(self) -> int:
        """Return the number of further copies."""
        return self._count - len(self._stack)

    @property
    def step(self) -> int:
        """Return the step of the last copy."""
        return self._stack[-1][0]

    def push(self, step: int) -> None:
        """Store the present state."""
        slot = self._free.pop() if self._free else self._allocate()
        if slot.on_host:
            self._backend.copy_to_host(self._state, slot.memory)
        else:
            slot.memory[...] = self._state
        self._stack.append((step, slot))

    def pop(self) -> None:
        """Discard the last copy."""
        self._free.append(self._stack.pop()[1])

    def restore(self) -> None:
        """Set the state to the last copy."""
        slot = self._stack[-1][1]
        if slot.on_host:
            self._backend.copy_to_device(slot.memory, self._state)
        else:
            self._state[...] = slot.memory

    def last(self) -> Array:
        """Return the last copy on the device; the state itself, if the copy is on the host."""
        slot = self._stack[-1][1]
        if slot.on_host:
            self.restore()
        return self._state if slot.on_host else slot.memory

    def _allocate(self) -> _StoredState:
        backend, shape, dtype = self._backend, self._state.shape, self._state.dtype
        room = backend.free_memory() - self._spare >= self._state.nbytes
        full = not (room or backend.host_memory)
        on_host = full or self.allocated - self.on_host >= self._on_device
        self.allocated += 1
        self.on_host += int(on_host)
        if on_host:
            return _StoredState(backend.pinned(int(np.prod(shape)), dtype).reshape(shape), True)
        return _StoredState(backend.zeros(shape, dtype), False)
