# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of walls that are not halfway between sites or that move, `kernels/flow/walls.hpp`."""

from __future__ import annotations

from collections.abc import Iterator

from .spec import CPP_TYPE, KernelSpec, Members, Real, Store, pointers

#: Links (or sites) per block of walls, and the threads that share them (`wall_block`, `wall_lanes` in the header).
WALL_BLOCK, WALL_LANES = 1024, 128
#: Changes of mass at walls are summed in multiples of the unit divided by this (`wall_mass_scale` in the header).
WALL_MASS_SCALE = 2.0**44

_WALL_RETURN = pointers("f outgoing_slots second_slots weight")


def wall_return(real: Real, store: Store) -> KernelSpec:
    """Populations returned along links of resting walls that are not halfway between sites."""
    return _summed_change("WallReturn", real, store, _WALL_RETURN)


def store_wall_return(real: Real, store: Store) -> KernelSpec:
    """The same, stored in a buffer, for links at iolets."""
    return _summed_change("StoreWallReturn", real, store, (("wall", _WALL_RETURN), ("returned", "ptr")))


def moving_wall_return(real: Real, store: Store) -> KernelSpec:
    """Populations returned along links of moving walls."""
    members: Members = (("wall", _WALL_RETURN), *pointers("wall_term row excess"))
    return _summed_change("MovingWallReturn", real, store, members)


def mass_correction(real: Real, store: Store) -> KernelSpec:
    """Subtract the mass created by walls from the rest populations of wall sites."""
    return _summed_change("MassCorrection", real, store, pointers("f rest amount"))


def _summed_change(rule: str, real: Real, store: Store, members: Members) -> KernelSpec:
    name = f"SummedChange<{rule}<{CPP_TYPE[real]},{CPP_TYPE[store]}>>"
    blocks: Members = (("rule", members), *pointers("first component sums"))
    return KernelSpec(name, "flow/walls.hpp", blocks, threads=WALL_LANES, blocks=8, team=True)


def wall_forces(real: Real, store: Store) -> KernelSpec:
    """Force and torque on bodies by the exchange of momentum along their wall links."""
    members: Members = (*pointers("f slots outgoing code lever"), ("links", "int64"), *pointers("first body sums"))
    name = f"WallForces<{CPP_TYPE[real]},{CPP_TYPE[store]}>"
    return KernelSpec(name, "flow/wall_forces.hpp", members, threads=WALL_LANES, blocks=8, team=True)


def outgoing_density(real: Real, store: Store, *, velocity_set: str = "D3Q19") -> KernelSpec:
    """Density of selected sites from their outgoing populations."""
    members: Members = (*pointers("f slots excess"), ("stride", "int64"))
    name = f"OutgoingDensity<{velocity_set},{CPP_TYPE[real]},{CPP_TYPE[store]}>"
    return KernelSpec(name, "flow/walls.hpp", members)


def built_kernels(real: Real, store: Store) -> Iterator[KernelSpec]:
    """Yield the kernels of the CPU table for one precision."""
    yield wall_return(real, store)
    yield store_wall_return(real, store)
    yield moving_wall_return(real, store)
    yield mass_correction(real, store)
    yield outgoing_density(real, store)
