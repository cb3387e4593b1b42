# SPDX-License-Identifier: BSD-3-Clause
"""Open simulations of this process by folder; loading another one into the same folder closes the first one."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol
from weakref import WeakValueDictionary

from seiche.domain.world import World
from seiche.io.files import real_path


class OpenRun(Protocol):
    """A simulation."""

    folder: Path
    world: World

    def close(self) -> None:
        """Close it."""


_OPEN: WeakValueDictionary[Path, OpenRun] = WeakValueDictionary()


def register_open(run: OpenRun) -> None:
    """Add a simulation that has locked its folder."""
    _OPEN[real_path(run.folder)] = run


def close_earlier(folder: Path, world: World) -> None:
    """Close the open simulation of the same ranks in `folder`, if there is one (collective)."""
    earlier = _OPEN.get(real_path(folder))
    if all(world.allgather(earlier is not None and earlier.world.size == world.size)) and earlier is not None:
        earlier.close()
