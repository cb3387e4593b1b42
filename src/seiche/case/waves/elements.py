# SPDX-License-Identifier: BSD-3-Clause
"""The mesh of a case: impossible ones are refused before they are generated, large ones sampled for a check."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seiche.backend.cpu import available_memory
from seiche.case.waves.layer import roots_of
from seiche.case.waves.media import Media
from seiche.case.waves.schema import WaveCase
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.waves import Brick, Mesh, SizeField
from seiche.waves.sampled_mesh import SampledMesh
from seiche.waves.sizes import Generator, elements_per_wavelength

#: Largest number of elements; their faces have 32-bit numbers.
_MAX_ELEMENTS = 2**31 / 6
#: Bytes of the tables of an element while the mesh is generated.
_BYTES_PER_ELEMENT = 500
#: Number of nodes above which `seiche check` does not generate the mesh.
MAX_GENERATED_NODES = 1_000_000
#: Nodes of the elements of a sample, and the range of their number.
_SAMPLED_NODES, _MIN_SAMPLED, _MAX_SAMPLED = 300_000, 60, 1000
_SAMPLED = "about {0:.3g} elements: sizes, media and time step are those of a sample of them"


def make_mesh(
    case: WaveCase, media: Media, source: str, world: World, sampled: Sequence[Sequence[float]] | None
) -> Mesh:
    """Return this rank's elements, with the sizes of the mesh table (collective).

    If the positions of the sources are given in `sampled`, a large mesh is a sample of its elements.
    """
    table = case.mesh
    roots = roots_of(case)
    if table.size is not None:
        sizes = SizeField.uniform(table.size / float(roots.sides.max()) * (1 + 1e-9), case.dim)
    else:
        assert table.frequency is not None
        sizes = media.sizes(elements_per_wavelength(table.nodes, table.error), table.frequency, roots)
    brick = roots.brick
    count, nodes = refuse_many(sizes, brick, source), table.nodes**case.dim
    if sampled is not None and count * nodes > MAX_GENERATED_NODES:
        number = min(_MAX_SAMPLED, max(_MIN_SAMPLED, _SAMPLED_NODES // nodes))
        return SampledMesh.sample(
            brick,
            sizes,
            number,
            places=media.landmarks(np.array(table.lower), np.array(table.upper)),
            sources=np.array(sampled),
            tree_size=roots.widths,
            origin=roots.origin,
        )
    refuse_large(count, source, world.size)
    return Mesh.generate(brick, sizes, world=world, tree_size=roots.widths, origin=roots.origin)


def sample_notes(mesh: Mesh) -> list[str]:
    """Return a note if a mesh is a sample of its elements."""
    return [_SAMPLED.format(mesh.total)] if isinstance(mesh, SampledMesh) else []


def refuse_many(sizes: SizeField, brick: Brick, source: str) -> float:
    """Return the estimated number of elements; CaseError for too many."""
    sides = np.maximum(0.0, np.minimum(sizes.upper, brick.trees) - np.maximum(sizes.lower, 0.0))
    count = max(np.max(np.prod(sides / sizes.size[:, None], axis=1)), np.prod(np.array(brick.trees, float)))
    if count <= _MAX_ELEMENTS:  # at least so many; the estimate needs elements that are possible
        count = max(count, Generator(brick, sizes).estimated_leaves())
    if count > _MAX_ELEMENTS:
        raise CaseError(
            f"{source}: mesh: has more than {count:.2g} elements; the maximum is {_MAX_ELEMENTS:.2g}; use larger ones"
        )
    return float(count)


def refuse_large(count: float, source: str, ranks: int) -> None:
    """Raise a CaseError for a number of elements whose tables exceed the free memory."""
    needed, free = table_bytes(count) / ranks, available_memory()
    if needed > free:
        raise CaseError(
            f"{source}: mesh: the tables of about {count:.2g} elements need {needed / 1e9:.3g} GB a rank, but"
            f" {free / 1e9:.3g} GB are free; use larger elements or more ranks"
        )


def table_bytes(count: float) -> float:
    """Return the bytes of the tables of elements while the mesh is generated."""
    return count * _BYTES_PER_ELEMENT
