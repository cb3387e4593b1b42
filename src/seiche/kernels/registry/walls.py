# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of walls that are not half way or not at rest, of `kernels/flow/walls.hpp`."""

from __future__ import annotations

from collections.abc import Iterator

from .spec import CPP_TYPE, KernelSpec, Members, Real, Store

#: Links (or sites) of a block of walls, and threads that share them (`wall_block`, `wall_lanes` in the header).
WALL_BLOCK, WALL_LANES = 1024, 128
#: Multiples of the unit of mass in which changes at walls are summed (`wall_mass_scale` in the header).
WALL_MASS_SCALE = 2.0**44

_WALL_RETURN: Members = (("f", "ptr"), ("own", "ptr"), ("other", "ptr"), ("share", "ptr"))


def wall_return(real: Real, store: Store) -> KernelSpec:
    """What comes back along the links of walls at rest that do not lie half way."""
    return _summed_change("WallReturn", real, store, _WALL_RETURN)


def wall_kept(real: Real, store: Store) -> KernelSpec:
    """The same into a buffer, for links beside iolets."""
    return _summed_change("WallKept", real, store, (("wall", _WALL_RETURN), ("kept", "ptr")))


def moving_wall_return(real: Real, store: Store) -> KernelSpec:
    """What comes back along the links of moving walls."""
    members: Members = (("wall", _WALL_RETURN), ("push", "ptr"), ("row", "ptr"), ("excess", "ptr"))
    return _summed_change("MovingWallReturn", real, store, members)


def mass_correction(real: Real, store: Store) -> KernelSpec:
    """The mass that walls created, taken back from the populations at rest of wall sites."""
    return _summed_change("MassCorrection", real, store, (("f", "ptr"), ("rest", "ptr"), ("amount", "ptr")))


def _summed_change(rule: str, real: Real, store: Store, members: Members) -> KernelSpec:
    name = f"SummedChange<{rule}<{CPP_TYPE[real]},{CPP_TYPE[store]}>>"
    blocks: Members = (("rule", members), ("first", "ptr"), ("component", "ptr"), ("sums", "ptr"))
    return KernelSpec(name, "flow/walls.hpp", blocks, threads=WALL_LANES, blocks=8, team=True)


def leaving_density(real: Real, store: Store, *, velocity_set: str = "D3Q19") -> KernelSpec:
    """Density of chosen sites from what left them."""
    members: Members = (("f", "ptr"), ("slots", "ptr"), ("excess", "ptr"), ("stride", "int64"))
    name = f"LeavingDensity<{velocity_set},{CPP_TYPE[real]},{CPP_TYPE[store]}>"
    return KernelSpec(name, "flow/walls.hpp", members)


def built_kernels(real: Real, store: Store) -> Iterator[KernelSpec]:
    """Yield the kernels of the CPU table of a precision."""
    yield wall_return(real, store)
    yield wall_kept(real, store)
    yield moving_wall_return(real, store)
    yield mass_correction(real, store)
    yield leaving_density(real, store)
