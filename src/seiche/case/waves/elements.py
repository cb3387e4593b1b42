# SPDX-License-Identifier: BSD-3-Clause
"""Mesh of a case: meshes that are too large are rejected before their generation; for a check, they are sampled."""

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

#: Maximum number of elements, since their faces have 32-bit numbers.
_MAX_ELEMENTS = 2**31 / 6
#: Size of the tables per element while the mesh is generated, bytes.
_BYTES_PER_ELEMENT = 500
#: Number of nodes above which `seiche check` does not generate the mesh.
MAX_GENERATED_NODES = 1_000_000
#: Number of nodes in a sample of elements, and the range of the number of elements in it.
_SAMPLED_NODES, _MIN_SAMPLED, _MAX_SAMPLED = 300_000, 60, 1000
_SAMPLED = "about {0:.3g} elements: sizes, media and time step are those of a sample of them"


def make_mesh(
    case: WaveCase, media: Media, source: str, world: World, sampled: Sequence[Sequence[float]] | None
) -> Mesh:
    """Return the elements of this rank, with the sizes of the mesh table (collective).

    If `sampled` contains the positions of the sources, a large mesh is replaced by a sample of its elements.
    """
    table = case.mesh
    roots = roots_of(case)
    if table.size is not None:
        sizes = SizeField.uniform(table.size / float(roots.sides.max()) * (1 + 1e-9), case.dim)
    else:
        assert table.frequency is not None
        sizes = media.sizes(elements_per_wavelength(table.nodes, table.error), table.frequency, roots)
    brick = roots.brick
    count, nodes = check_element_count(sizes, brick, source), table.nodes**case.dim
    if sampled is not None and count * nodes > MAX_GENERATED_NODES:
        number = min(_MAX_SAMPLED, max(_MIN_SAMPLED, _SAMPLED_NODES // nodes))
        return SampledMesh.sample(
            brick,
            sizes,
            number,
            positions=media.landmarks(np.array(table.lower), np.array(table.upper)),
            sources=np.array(sampled),
            tree_size=roots.widths,
            origin=roots.origin,
        )
    check_table_memory(count, source, world.size)
    return Mesh.generate(brick, sizes, world=world, tree_size=roots.widths, origin=roots.origin)


def sample_notes(mesh: Mesh) -> list[str]:
    """Return a note if a mesh is a sample of its elements."""
    return [_SAMPLED.format(mesh.total)] if isinstance(mesh, SampledMesh) else []


def check_element_count(sizes: SizeField, brick: Brick, source: str) -> float:
    """Return the estimated number of elements; CaseError if there are too many."""
    sides = np.maximum(0.0, np.minimum(sizes.upper, brick.trees) - np.maximum(sizes.lower, 0.0))
    count = max(np.max(np.prod(sides / sizes.size[:, None], axis=1)), np.prod(np.array(brick.trees, float)))
    if count <= _MAX_ELEMENTS:  # `count` is a lower bound; the estimate requires a feasible number of elements
        count = max(count, Generator(brick, sizes).estimated_leaves())
    if count > _MAX_ELEMENTS:
        raise CaseError(
            f"{source}: mesh: has more than {count:.2g} elements; the maximum is {_MAX_ELEMENTS:.2g}; use larger ones"
        )
    return float(count)


def check_table_memory(count: float, source: str, ranks: int) -> None:
    """Raise a CaseError if the tables of `count` elements exceed the free memory."""
    needed, free = table_bytes(count) / ranks, available_memory()
    if needed > free:
        raise CaseError(
            f"{source}: mesh: the tables of about {count:.2g} elements need {needed / 1e9:.3g} GB a rank, but"
            f" {free / 1e9:.3g} GB are free; use larger elements or more ranks"
        )


def table_bytes(count: float) -> float:
    """Return the size of the tables of `count` elements while the mesh is generated, in bytes."""
    return count * _BYTES_PER_ELEMENT
