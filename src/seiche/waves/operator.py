# SPDX-License-Identifier: BSD-3-Clause
"""The right-hand side on a device: tables, coefficients and moduli for the kernels (theory/waves, sections 3 and 4).

A trace slot belongs to a face. The owned traces come first, at `element * faces + face`, then those that coarse sides
of hanging faces write for fine ones, then those of ghosts. The last but one is never read. The last one is always zero
and is read by boundary faces.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.halo import HaloPlan
from seiche.kernels.registry import KernelSpec, Real, dg
from seiche.kernels.registry.dg import Discretisation, Medium
from seiche.observe.stage import Stage
from seiche.waves.basis import Basis
from seiche.waves.boundary import Boundary
from seiche.waves.fluxes import Flux
from seiche.waves.material import Material
from seiche.waves.mesh import GHOST, NONE, Mesh
from seiche.waves.ranks import Pieces, with_ghosts

Floats = npt.NDArray[np.float64]
_Halves = tuple[Floats, Floats]

#: Names of the unknowns, in order.
FIELDS = {
    ("acoustic", 2): ("p", "vx", "vy"),
    ("acoustic", 3): ("p", "vx", "vy", "vz"),
    ("elastic", 2): ("vx", "vy", "sxx", "syy", "sxy"),
    ("elastic", 3): ("vx", "vy", "vz", "sxx", "syy", "szz", "syz", "sxz", "sxy"),
}


def face_nodes(n: int, dim: int, face: int) -> npt.NDArray[np.int64]:
    """Return the nodes of an element on a face, in the order of its traces."""
    nodes = np.arange(n**dim).reshape((n,) * dim)
    return np.asarray(np.take(nodes, -(face % 2), axis=dim - 1 - face // 2).ravel())


def interpolated(values: Floats, matrix: Floats) -> Floats:
    """Return matrix times the last axis of values, summed in an order independent of the number of values."""
    result = values[..., :1] * matrix[:, 0]
    for m in range(1, matrix.shape[1]):
        result += values[..., m, None] * matrix[:, m]
    return np.asarray(result)


def _of_child(halves: _Halves, child: int, dim: int) -> Floats:
    """Return the interpolation to a child of a face, from those to the halves of a line."""
    first = halves[child & 1]
    return np.asarray(first if dim == 2 else np.kron(halves[child >> 1 & 1], first), np.float64)


class Operator:
    """The arrays of a mesh, a material and a flux on one device; `disc` is their discretisation."""

    def __init__(
        self,
        backend: Backend,
        mesh: Mesh,
        material: Material,
        nodes: int,
        *,
        medium: Medium,
        flux: Flux,
        boundaries: tuple[Boundary, ...],
        real: Real,
        world: World,
        split_absorption: bool = False,
    ) -> None:
        """Build and upload the arrays (collective).

        With `split_absorption` absorbing sides are treated as free; their impedance is applied separately
        (theory/waves, eq. 26).

        Raises:
            CaseError: a material for another mesh or number of nodes, or an incomplete mesh.
        """
        self.backend, self.mesh, self.material, self.basis = backend, mesh, material, Basis(nodes)
        self.boundaries, self.flux = boundaries, flux
        self._split_absorption = split_absorption
        self._check(nodes, world)
        hanging = any(world.allgather(bool((mesh.child >= 0).any())))
        self.disc = Discretisation(medium, mesh.dim, nodes, flux.kernel, real, material.by_node, hanging)
        self.face_nodes = [face_nodes(nodes, mesh.dim, face) for face in range(mesh.faces)]
        self.impedances = np.stack([with_ghosts(world, mesh, z) for z in material.impedances(medium)])
        self.pieces = Pieces.of(mesh)
        self._slots()
        derivative = self.basis.derivative
        self._arrays = {
            "in_slots": backend.upload(self.in_slots),
            "out_slots": backend.upload(np.arange(mesh.count * mesh.faces, dtype=np.int32)),
            "scales": self.real_array(2.0 / mesh.sizes[: mesh.count]),
            "moduli": self.real_array(np.moveaxis(material.moduli(medium), 0, 1)),
            "faces": self.real_array(self._coefficients()),
            "rows": self.real_array(derivative.T),
            "corrections": backend.zeros(max(self.sides, 1) * 2 * self.disc.waves * self.disc.face_nodes, real),
        }
        self.members: dict[str, Any] = {**self._arrays, "count": mesh.count, "derivative": derivative.ravel()}
        if self.sides:
            self._mortar_arrays = self._mortars()

    def _check(self, nodes: int, world: World) -> None:
        shape = (self.mesh.count, nodes**self.mesh.dim)[: 2 if self.material.by_node else 1]
        problem = None
        if self.material.density.shape != shape:
            problem = (
                f"material: arrays of shape {self.material.density.shape}, but the mesh of {self.mesh.count} elements"
                f" with {nodes} nodes per direction requires {shape}"
            )
        count = sum(world.allgather(self.mesh.count))
        if count != self.mesh.total:
            problem = f"waves: the {world.size} ranks have {count} elements, but the mesh has {self.mesh.total}"
        for text in world.allgather(problem):
            if text is not None:
                raise CaseError(text)
        if len(set(world.allgather(self.material.by_node))) > 1:
            raise CaseError("material: defined by node on some ranks but by element on others")

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the names of the unknowns in the order of the state."""
        return FIELDS[self.disc.medium, self.disc.dim]

    def real_array(self, values: Floats) -> Array:
        """Upload values in the precision of the state."""
        return self.backend.upload(np.ascontiguousarray(values.astype(self.disc.real)))

    def _slots(self) -> None:
        """Find the slot that every face reads, and the coarse sides of hanging faces."""
        mesh = self.mesh
        faces, children = mesh.faces, 1 << (mesh.dim - 1)
        opposite_face = np.arange(faces) ^ 1
        is_coarse = mesh.neighbours[:, :, 1] >= 0
        elements, face = np.nonzero(is_coarse)
        self.sides = len(elements)
        self._sides = np.stack([elements, face], 1).astype(np.int32)
        owned_slots = mesh.count * faces
        self._coarse_slots = owned_slots + np.arange(self.sides * children, dtype=np.int32).reshape(-1, children)
        number = np.full(is_coarse.shape, -1, np.int64)
        number[is_coarse] = np.arange(self.sides)
        self._side_number = number
        pieces = self.pieces
        ghosts = owned_slots + self.sides * children + np.arange(len(pieces))
        self.slot_count = owned_slots + self.sides * children + len(pieces) + 2
        self.ghost_slots = ghosts
        remote = np.full(mesh.kinds.shape, -1, np.int64)
        remote[pieces.element, pieces.face, pieces.child] = ghosts
        fine_slots = np.where(remote >= 0, remote, mesh.neighbours.astype(np.int64) * faces + opposite_face[:, None])
        self._fine_slots = fine_slots[elements, face].astype(np.int32)
        #: Number of coarse sides of elements without neighbours on other ranks; these come first.
        self.inner_sides = int(np.searchsorted(elements, mesh.interior))
        slots = fine_slots[:, :, 0]
        slots[mesh.kinds[:, :, 0] == NONE] = self.slot_count - 1
        is_fine = (mesh.child >= 0) & (mesh.kinds[:, :, 0] != GHOST)
        fine_faces = np.nonzero(is_fine)
        coarse_side = number[mesh.neighbours[:, :, 0][fine_faces], opposite_face[fine_faces[1]]]
        slots[fine_faces] = self._coarse_slots[coarse_side, mesh.child[fine_faces]]
        slots[is_coarse] = -1 - number[is_coarse]
        self.in_slots: npt.NDArray[np.int32] = np.ascontiguousarray(slots, np.int32)
        of_piece = number[pieces.element, pieces.face]
        self.sent_slots = pieces.element * faces + pieces.face
        self.sent_slots[pieces.is_coarse] = self._coarse_slots[
            of_piece[pieces.is_coarse], pieces.child[pieces.is_coarse]
        ]

    def side_number(self, element: int, face: int) -> int:
        """Return the number of a coarse side of a hanging face."""
        return int(self._side_number[element, face])

    @property
    def plan(self) -> HaloPlan:
        """Return the halo plan of the traces."""
        return self.pieces.plan(self.sent_slots, self.ghost_slots, self.disc.slot)

    @property
    def coarse_sides(self) -> npt.NDArray[np.int32]:
        """Return element and face of the coarse sides of hanging faces, (sides, 2)."""
        return self._sides

    @cached_property
    def face_weights(self) -> Floats:
        """Return the quadrature weights of the nodes of a face, without its area, (face nodes,)."""
        product: Floats = np.ones(1)
        for _ in range(self.mesh.dim - 1):
            product = np.asarray(np.kron(self.basis.weights, product), np.float64)
        return product

    def half(self, child: int) -> Floats:
        """Return the interpolation of a large face's values to the nodes of a child, (face nodes, face nodes)."""
        return _of_child(self.basis.halves(), child, self.mesh.dim)

    def face_impedances(self, elements: npt.NDArray[np.int64], face: int) -> Floats:
        """Return impedances on a face of elements, (kinds, n) or (kinds, n, face nodes)."""
        z = self.impedances[:, elements]
        return np.asarray(z[..., self.face_nodes[face]] if self.material.by_node else z)

    def _coefficients(self) -> Floats:
        """Return the flux's coefficients of all faces, (count, faces(, face nodes), record)."""
        mesh, flux = self.mesh, self.flux
        record = flux.kernel.coefficients * len(self.impedances)
        by_node = (self.disc.face_nodes,) if self.material.by_node else ()
        result = np.empty((mesh.count, mesh.faces, *by_node, record))
        elements = np.arange(mesh.count)
        for face in range(mesh.faces):
            z = self.face_impedances(elements, face)
            inside = np.asarray(mesh.kinds[:, face, 0] != NONE)
            z_neighbour = self.face_impedances(mesh.neighbours[inside, face, 0], face ^ 1)
            if self.material.by_node:
                child = mesh.child[inside, face]
                for position in np.unique(child[child >= 0]):
                    z_neighbour[:, child == position] = interpolated(
                        z_neighbour[:, child == position], self.half(int(position))
                    )
            result[inside, face] = flux.inner_coefficients(z[:, inside], z_neighbour)
            kind = self.boundaries[face]
            kind = "free" if self._split_absorption and kind == "absorbing" else kind
            result[~inside, face] = flux.outer_coefficients(kind, z[:, ~inside])
        return result

    def _mortars(self) -> dict[str, Any]:
        """Return the arrays of the hanging faces."""
        children = self._coarse_slots.shape[1]
        by_node = (self.disc.face_nodes,) if self.material.by_node else ()
        record = self.disc.flux.coefficients * len(self.impedances)
        faces = np.empty((self.sides, children, *by_node, record))
        for face in range(self.mesh.faces):
            on_face = self._sides[:, 1] == face
            elements = self._sides[on_face, 0].astype(np.int64)
            z = self.face_impedances(elements, face)
            for child in range(children):
                z_neighbour = self.face_impedances(
                    self.mesh.neighbours[elements, face, child].astype(np.int64), face ^ 1
                )
                fine = interpolated(z, self.half(child)) if self.material.by_node else z
                faces[on_face, child] = self.flux.inner_coefficients(fine, z_neighbour)
        return {
            "sides": self.backend.upload(self._sides),
            "fine_slots": self.backend.upload(self._fine_slots),
            "coarse_slots": self.backend.upload(self._coarse_slots),
            "faces": self.real_array(faces),
            **self.mortar_matrices,
        }

    @cached_property
    def _halves(self) -> tuple[_Halves, _Halves]:
        """Return the interpolations of velocities and of tractions to halves of a line (theory/waves, section 4)."""
        plain, filtered = self.basis.halves(), self.basis.filtered_halves()
        return (filtered, plain) if self.disc.medium == "acoustic" else (plain, filtered)

    @cached_property
    def mortar_matrices(self) -> dict[str, Array]:
        """Return the matrices of the hanging faces' kernels."""
        velocity, traction = self._halves
        adjoints = [*self.basis.adjoints(traction), *self.basis.adjoints(velocity)]
        return {
            "halves": self.real_array(np.stack([*velocity, *traction])),
            "projections": self.real_array(np.stack(adjoints)),
        }

    @property
    def mortar_members(self) -> dict[str, Any]:
        """Return the members of the hanging faces' kernels."""
        return self._mortar_arrays

    @property
    def corrections(self) -> Array:
        """Return the corrections of the coarse sides of hanging faces."""
        return self._arrays["corrections"]

    def launch(self, spec: KernelSpec, begin: int, end: int, **members: Any) -> tuple[Callable[[], None], int]:
        """Return the launch of a kernel for the items begin ... end - 1, and the bytes it moves."""
        kernel = self.backend.load(spec)
        return kernel.bind(self.backend.pack(kernel, **members), begin, end), kernel.bytes_per_item * (end - begin)

    def mortar_stages(self, u: Array, trace: Array, begin: int, end: int) -> list[Stage]:
        """Return the stage that computes the corrections of the coarse sides begin ... end - 1 of hanging faces."""
        if begin == end:
            return []
        members = {"mortars": self.mortar_members, "u": u, "trace": trace, "corrections": self.corrections}
        return [Stage("mortar corrections", *self.launch(dg.mortar_corrections(self.disc), begin, end, **members))]

    def traces(self) -> Array:
        """Allocate the traces of all slots."""
        return self.backend.zeros(self.slot_count * self.disc.slot, self.disc.real)

    def zeros(self, ghosts: int = 0) -> Array:
        """Allocate a state of owned elements followed by `ghosts` elements."""
        shape = self.mesh.count + ghosts, self.disc.fields, self.basis.n**self.mesh.dim
        return self.backend.zeros(shape, self.disc.real)

    @cached_property
    def weights(self) -> Floats:
        """Return the quadrature weights of all nodes, volume included, (count, nodes)."""
        w = self.basis.weights
        product: Floats = w
        for _ in range(self.mesh.dim - 1):
            product = np.asarray(np.kron(w, product), np.float64)
        return np.asarray(np.prod(self.mesh.sizes[: self.mesh.count] / 2, axis=1)[:, None] * product)

    @cached_property
    def positions(self) -> Floats:
        """Return the positions of all nodes, (count, nodes, dim)."""
        dim, unit = self.mesh.dim, (self.basis.nodes + 1) / 2
        grid = np.meshgrid(*(unit,) * dim, indexing="ij")
        local = np.stack([axis.ravel() for axis in reversed(grid)], 1)
        owned = slice(self.mesh.count)
        return np.asarray(self.mesh.lower[owned, None] + self.mesh.sizes[owned, None] * local)
