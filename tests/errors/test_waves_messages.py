# SPDX-License-Identifier: BSD-3-Clause
"""Wrong meshes, materials, sources and steps of the wave solver, and the line that each gets."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from seiche.errors import CaseError, UnstableError
from seiche.waves import Brick, Brune, Forest, Gaussian, Material, Mesh, PointSource, Ricker, SizeField, Solver
from seiche.waves.adjoint import Experiment
from seiche.waves.forest import cuts
from seiche.waves.plane import PlaneWave
from seiche.waves.sizes import Generator, elements_per_wavelength, slabs
from seiche.waves.trees import stretched

FOREST = Forest.uniform(Brick((2, 2), (False, False)), 0)
MESH = Mesh.of_forest(FOREST)
WATER = Material.uniform(4, 1.0, 1.5)
SEA = Material(np.full(4, 2.0), np.full(4, 4.0), np.array([0.0, 0.0, 2.0, 2.0]))
ROCK = Material.uniform(4, 2.0, 4.0, 2.0)
PULSE = Ricker(2.0, 1.0)


def solver(**options: object) -> Solver:
    """Return a small solver with something wrong."""
    return Solver(MESH, options.pop("material", WATER), **{"nodes": 3, **options})  # type: ignore[arg-type]


def one_source(**kind: object) -> list[PointSource]:
    """Return a source in the middle of an element."""
    return [PointSource((0.5, 0.5), PULSE, **kind)]  # type: ignore[arg-type]


def unbalanced() -> Mesh:
    """Return a mesh whose forest was refined twice in one corner."""
    forest = FOREST.refined(np.arange(4) == 0)
    return Mesh.of_forest(forest.refined(np.arange(7) == 3))


CASES: list[tuple[Callable[[], object], str]] = [
    (lambda: solver(nodes=11), "nodes = 11 per direction: must be 2 to 10"),
    (lambda: solver(flux="roe"), "flux: 'roe' is not one of upwind, central"),
    (lambda: solver(precision="float16"), "precision: 'float16' is not one of float64, float32"),
    (lambda: solver(medium="fluid"), "medium: 'fluid' is not one of acoustic, elastic"),
    (lambda: solver(boundaries="open"), "boundaries: 'open' is not one of free, rigid, absorbing"),
    (
        lambda: solver(boundaries=["free"]),
        "boundaries: 1 kinds for the 4 sides of the box; expected one, or one for each",
    ),
    (lambda: solver(material=ROCK, medium="acoustic"), "cs > 0 in some elements requires the elastic medium"),
    (
        lambda: solver(material=Material.uniform(3, 1.0, 1.0)),
        "the mesh of 4 elements with 3 nodes per direction requires",
    ),
    (lambda: solver(dt=1.0), "time step 1: must be positive and at most 0."),
    (lambda: solver(dt=-1.0), "time step -1: must be positive"),
    (
        lambda: solver(receivers=[(3.0, 1.0)]),
        "receiver [3.0, 1.0] is outside the mesh, which extends from [0.0, 0.0]",
    ),
    (lambda: solver(receivers=[(1.0, 1.0)], sample_every=0), "sample interval of 0 steps: must be at least 1"),
    (lambda: solver(sources=[PointSource((0.0, 9.0), PULSE, volume=1.0)]), "source [0.0, 9.0] is outside the mesh"),
    (lambda: solver(sources=one_source()), "expected exactly one of force, moment and volume, got none"),
    (lambda: solver(sources=one_source(force=(1.0,))), "force (1.0,) requires 2 components"),
    (lambda: solver(sources=one_source(moment=np.eye(2))), "moment requires the elastic medium"),
    (lambda: solver(material=ROCK, sources=one_source(volume=1.0)), "volume requires the acoustic medium"),
    (lambda: solver(material=ROCK, sources=one_source(moment=[[1, 2], [3, 4]])), "must be a symmetric 2 x 2 matrix"),
    (
        lambda: solver(material=SEA, sources=one_source(moment=[[0, 1], [1, 0]])),
        "source [0.5, 0.5] is in a fluid, where the moment must be a multiple of the unit matrix",
    ),
    (lambda: solver(material=SEA, sources=one_source(moment=[[1, 0], [0, 2]])), "is in a fluid"),
    (lambda: solver(sources=one_source(volume=np.nan)), "source at [0.5, 0.5]: volume must be finite"),
    (lambda: solver(material=ROCK, sources=one_source(moment=np.inf * np.ones((2, 2)))), "moment must be finite"),
    (lambda: Material(np.ones(4), np.ones(4) * 1j, np.zeros(4)), "material: cp must be an array of real numbers"),
    (lambda: Mesh.of_forest(FOREST, tree_size=np.inf), "sides of a tree [inf, inf] must be positive"),
    (lambda: Mesh.of_forest(FOREST, origin=np.nan), "mesh: origin [nan, nan] must be finite"),
    (
        lambda: Experiment(MESH, 0.1, 2, [], [(1.0, 1.0)], options={"peak_side": 1}),
        "the option peak_side is",
    ),
    (lambda: Experiment(MESH, 0.1, 2, [], [(1.0, 1.0)], options={"attenuation": 1}), "option attenuation is not"),
    (lambda: solver().samples(), "samples require receivers, but there are none"),
    (
        lambda: solver().start_from(np.zeros((4, 3, 8))),
        "initial state of shape (4, 3, 8): the solver requires (4, 3, 9)",
    ),
    (lambda: Solver(Mesh.of_forest(FOREST, ranks=2), Material.uniform(2, 1.0, 1.0)), "2 elements, but the mesh has 4"),
    (lambda: Ricker(0.0, 1.0), "Ricker pulse: frequency = 0 must be positive"),
    (lambda: Gaussian(-1.0, 1.0), "Gaussian pulse: sigma = -1 must be positive"),
    (lambda: Brune(np.inf), "Brune pulse: duration = inf must be positive"),
    (lambda: Material.uniform(4, -1.0, 1.0), "material: density = -1 in element 0: must be finite and > 0"),
    (lambda: Material.uniform(4, 1.0, np.nan), "material: cp = nan in element 0"),
    (lambda: Material.uniform(4, 1.0, 1.0, -0.1), "material: cs = -0.1 in element 0: must be finite and >= 0"),
    (lambda: Material.uniform(4, 1.0, 1.1, 1.0), "cp = 1.1 with cs = 1 in element 0: cp must exceed sqrt(4/3) cs"),
    (lambda: Material(np.ones(4), np.ones(3), np.zeros(4)), "have the shapes (4,), (3,), (4,)"),
    (
        lambda: Material(np.ones((1, 2)), np.full((1, 2), 3.0), np.array([[0.0, 1.0]])),
        "cs is zero at some nodes of element 0 and positive at others",
    ),
    (unbalanced, "elements that share a face differ by more than one level; balance the forest"),
    (lambda: Mesh.of_forest(FOREST, tree_size=(1.0, -1.0)), "sides of a tree [1.0, -1.0] must be positive"),
    (lambda: Mesh.of_forest(FOREST, tree_size=([1.0], 1.0)), "1 widths along axis 0, but the brick has 2 trees"),
    (lambda: Mesh.of_forest(FOREST, tree_size=([1.0, 1.0],)), "sides of trees along 1 axes, but the brick has 2"),
    (lambda: stretched(0, 1.0, (1, 1)), "stretched axis: 0 trees are too few for 1 before and 1 after"),
    (lambda: stretched(2, 1.0, (1, 1), 3.0), "stretched axis: growth 3 must be between 1 and 2"),
    (lambda: Mesh.of_forest(FOREST, tree_size=(1.0, 1.0, 1.0)), "sides of a tree: (1.0, 1.0, 1.0) requires 2 numbers"),
    (lambda: Mesh.of_forest(FOREST, ranks=5), "there are more ranks (5) than mesh elements (4)"),
    (lambda: cuts(np.zeros(3), 2), "weights of elements must be positive"),
    (lambda: Brick((1,), (False,)), "both require two or three entries"),
    (lambda: Brick((0, 1), (False, False)), "trees: 1 to"),
    (lambda: SizeField([[0, 0]], [[1, 1]], [0.0]), "element sizes: 0 is not positive"),
    (lambda: SizeField([[2, 0]], [[1, 1]], [1.0]), "lower corner of a box is above its upper corner"),
    (
        lambda: SizeField([[0, 0]], [[1, 1]], [1.0, 2.0]),
        "the numbers of lower corners, upper corners and sizes of boxes differ",
    ),
    (lambda: slabs([0.0, 0.0], [1.0], 0, 2), "layer boundaries [0.0, 0.0] must increase"),
    (
        lambda: Generator(Brick((1, 1), (False,) * 2), SizeField([[0.3, 0.3]], [[0.3, 0.3]], [1e-9])).leaves(),
        "smaller than 2^-19 of a tree, the finest level",
    ),
    (lambda: elements_per_wavelength(11, 1e-3), "11 nodes per direction, expected 2 to 10"),
    (lambda: elements_per_wavelength(5, 0.5), "error 0.5 per wavelength must be between 1e-5 and 0.1"),
    (lambda: PlaneWave("p", (0.0, 0.0), 1.0, 1.0), "direction [0.0, 0.0] has zero length"),
    (lambda: PlaneWave("s", (1.0, 0.0), 1.0, 2.0, 1.0, (0.0, 0.0)), "polarization [0.0, 0.0] has zero length"),
    (lambda: PlaneWave("s", (1.0, 0.0), 1.0, 1.0), "an s wave requires a solid, cs > 0"),
    (lambda: PlaneWave("s", (1.0, 0.0), 1.0, 2.0, 1.0, (1.0, 0.0)), "is not perpendicular to the direction"),
]


@pytest.mark.parametrize(("wrong", "message"), CASES, ids=[message[:40] for _, message in CASES])
def test_an_error_gives_one_line(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(CaseError) as error:
        wrong()
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_state_that_is_not_finite_is_reported() -> None:
    broken = solver()
    broken.start_from(np.full((4, 3, 9), np.nan))
    with pytest.raises(UnstableError, match="the state is not finite after step 1, time step 0"):
        broken.advance(1)


def test_an_explosion_in_a_fluid_next_to_a_solid_is_a_source() -> None:
    waves = solver(material=SEA, sources=one_source(moment=np.eye(2)))
    waves.advance(2)
    assert waves.energy() > 0


def test_a_layer_needs_room_before_absorbing_sides_only() -> None:
    tall = Mesh.of_forest(Forest.uniform(Brick((1, 6), (True, False)), 0))
    layer = Solver(tall, Material.uniform(6, 1.0, 1.5), nodes=3, sponge=2.0).sponge
    assert layer is not None and layer.items == 4
    with pytest.raises(CaseError, match="sponge of thickness 6: must be below the width of the box, 6"):
        Solver(tall, Material.uniform(6, 1.0, 1.5), nodes=3, sponge=6.0)


def test_media_may_be_whole_numbers() -> None:
    full = Material(np.full(4, 2), [3, 3, 3, 3], np.ones(4, np.int32))  # type: ignore[arg-type]
    waves = Solver(MESH, full, nodes=3)
    assert waves.largest_step == Solver(MESH, Material.uniform(4, 2.0, 3.0, 1.0), nodes=3).largest_step
