# SPDX-License-Identifier: BSD-3-Clause
"""Data created by rank 0 and read by all ranks: results by broadcast, long arrays with one copy per host."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from seiche.domain.set_up_ranks import joined, set_up_world
from seiche.domain.shared_memory import shared_array
from seiche.domain.world import World
from seiche.errors import CaseError, FormatError, SeicheError

if TYPE_CHECKING:
    from seiche.domain.sites import SiteSet
    from seiche.domain.surface import Surface

Result = TypeVar("Result")


def on_root(world: World, work: Callable[[], Result]) -> Result:
    """Return the result of `work()` on rank 0 to every rank; a SeicheError of rank 0 is raised on all (collective)."""
    if world.size == 1:
        return work()
    outcome: tuple[Result | None, type[SeicheError] | None, tuple[object, ...]] = (None, None, ())
    if world.rank == 0:
        try:
            outcome = (work(), None, ())
        except SeicheError as error:
            outcome = (None, type(error), _details(error))
    result, kind, details = world.bcast(outcome)
    if kind is not None:
        raise kind(*details)
    return cast(Result, result)


def on_all(work: Callable[[], Result]) -> Result:
    """Return the result of `work()` on each rank of the present set-up (collective).

    A SeicheError of the lowest rank that has one is raised on all.
    """
    world = set_up_world()
    if world.size == 1:
        return work()
    result: Result | None = None
    failure: tuple[type[SeicheError], tuple[object, ...]] | None = None
    try:
        result = work()
    except SeicheError as error:
        failure = (type(error), _details(error))
    for kind_and_details in world.allgather(failure):
        if kind_and_details is not None:
            kind, details = kind_and_details
            raise kind(*details)
    return cast(Result, result)


def _details(error: SeicheError) -> tuple[object, ...]:
    """Return the arguments from which the error can be created again."""
    return (error.path, error.location, error.reason) if isinstance(error, FormatError) else error.args


@contextlib.contextmanager
def fail_together(world: World, name: str) -> Iterator[None]:
    """Let all ranks fail if the block fails on one of them, which the others would wait for (collective).

    A rank on which the block has succeeded raises a CaseError that begins with `name`.
    """
    failure: Exception | None = None
    try:
        yield
    except Exception as error:
        failure = error
    texts = world.allgather(None if failure is None else f"{type(failure).__name__}: {failure}")
    if failure is not None:
        raise failure
    for rank, text in enumerate(texts):
        if text is not None:
            raise CaseError(f"{name}: failed on rank {rank}: {' '.join(text.split())}")


def joined_sites(part: SiteSet) -> SiteSet:
    """Return the sites of all ranks of the present set-up, in their order, one copy per host (collective).

    `part` are the sites of this rank, whose `boundary` are rows of its own `coords`.
    """
    world = set_up_world()
    before = sum(world.allgather(len(part))[: world.rank])
    whole: dict[str, Any] = {name: joined(array) for name, array in _arrays_of(part).items() if name != "boundary"}
    return replace(part, boundary=joined(part.boundary + before), **whole)


def without_arrays(sites: SiteSet) -> SiteSet:
    """Return the same box and iolets without sites."""
    return replace(sites, **{name: array[:0].copy() for name, array in _arrays_of(sites).items()})


def _arrays_of(sites: SiteSet) -> dict[str, Any]:
    values = {field.name: getattr(sites, field.name) for field in fields(sites)}
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


def shared_from_root(world: World, work: Callable[[], npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Return the array made by `work` on rank 0, on every rank, one copy per host (collective).

    A SeicheError of `work` is raised on every rank.
    """
    arrays: list[npt.NDArray[Any]] = []
    on_root(world, lambda: arrays.append(work()))
    return shared_array(world, arrays[0] if arrays else None)


def shared_surface(make: Callable[[], Surface]) -> Surface:
    """Return the surface made by `make` on rank 0 of the present set-up, one copy per host (collective).

    A SeicheError of `make` is raised on every rank.
    """
    from seiche.domain.surface import Surface

    world = set_up_world()
    surfaces: list[Surface] = []
    on_root(world, lambda: surfaces.append(make()))
    vertices = shared_array(world, surfaces[0].vertices if surfaces else None)
    return Surface(vertices, shared_array(world, surfaces[0].faces if surfaces else None))
