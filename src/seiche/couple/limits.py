# SPDX-License-Identifier: BSD-3-Clause
"""The longest stable time step of a membrane in a fluid, and the modulus that sets it (theory/coupling, section 6)."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Backend
from seiche.cells.cells import Cells, slip_mobility
from seiche.cells.energy import RestState
from seiche.cells.model import CellType, MembraneModel
from seiche.couple.immersed import SLIP, Scheme
from seiche.couple.remains import ShearRemains, moved
from seiche.errors import CaseError
from seiche.flow.model import Collision, FlowModel, Newtonian, Trt
from seiche.flow.velocity_set import CS2
from seiche.kernels.registry.ibm import SUPPORT, Delta

Floats = npt.NDArray[np.float64]

#: The product of stiffness and mobility at which a mode begins to grow (eq. 15).
CRITICAL = 2.0
#: What decays within a step still moves vertices in it: one over the least mobility of a wave.
_SUDDEN = 2.0
#: Iterations at most, and the relative change at which they end.
_ITERATIONS, _TOLERANCE = 60, 3e-3
#: Time steps that are tried, how far to go to the next, and when the limit is found (logarithms).
_STEPS, _DAMPED, _CLOSE = 8, 0.6, 0.02
#: A limit is not looked for below this part of the time step: no case means that.
_LEAST = 1e-6
#: A displacement, in sites, over which a membrane is linear and rounding does not show.
_SMALL = 1e-4


@dataclass(frozen=True)
class StepLimit:
    """`ratio` is the longest stable time step over the present one; `shares` how much each modulus sets it, sum 1."""

    ratio: float
    shares: dict[str, float]

    @property
    def modulus(self) -> str:
        """Return the name of the modulus that sets the limit."""
        return max(self.shares, key=lambda name: self.shares[name])


def delta_function(delta: Delta, distance: Floats) -> Floats:
    """Return the smoothed delta function of one coordinate (eqs. 4 to 7) at distances in sites.

    Raises:
        CaseError: an unknown name.
    """
    r = np.abs(distance)
    if delta == "hat":
        return np.asarray(np.maximum(1 - r, 0.0))
    if delta == "roma":
        inner = (1 + np.sqrt(np.maximum(1 - 3 * r**2, 0.0))) / 3
        outer = (5 - 3 * r - np.sqrt(np.maximum(-2 + 6 * r - 3 * r**2, 0.0))) / 6
        return np.where(r <= 0.5, inner, np.where(r <= 1.5, outer, 0.0))
    if delta == "peskin":
        inner = (3 - 2 * r + np.sqrt(np.maximum(1 + 4 * r - 4 * r**2, 0.0))) / 8
        outer = (5 - 2 * r - np.sqrt(np.maximum(-7 + 12 * r - 4 * r**2, 0.0))) / 8
        return np.where(r <= 1, inner, np.where(r <= 2, outer, 0.0))
    if delta == "cosine":
        return np.where(r <= 2, (1 + np.cos(0.5 * np.pi * r)) / 4, 0.0)
    raise CaseError(f"delta function {delta!r} is not one of {', '.join(SUPPORT)}")


class Mobility:
    """Velocities of vertices under forces on them, in an unbounded fluid at rest that takes them up step by step."""

    def __init__(
        self, vertices: Floats, delta: Delta, viscosity: float, collision: Collision, scheme: Scheme = "euler"
    ) -> None:
        """Prepare for `vertices` (n, 3) in lattice units that move by `scheme`, and a kinematic `viscosity`."""
        from scipy.fft import next_fast_len

        #: What vertices move beside the fluid (eq. 18): a sparse matrix (n, n).
        self.beside: Any = None
        margin = SUPPORT[delta] + 6
        low = np.floor(vertices.min(axis=0)) - margin
        self._shape = tuple(next_fast_len(int(n)) for n in np.ceil(vertices.max(axis=0)) + margin - low)
        self._weights = self._spreading(vertices - low, delta)
        each = [2 * np.pi * np.fft.fftfreq(n) for n in self._shape]
        k = np.stack(np.meshgrid(*each, indexing="ij"), axis=-1)[..., : self._shape[2] // 2 + 1, :]
        squared = (2 - 2 * np.cos(k)).sum(axis=-1)
        squared[0, 0, 0] = 1.0
        shear = ShearRemains(FlowModel(Newtonian(viscosity), collision), scheme)(squared)
        # Sound decays twice as fast, or runs away.
        fast, away = np.expm1(np.minimum(2 * viscosity * squared, 30.0)), np.sqrt(CS2 * squared)
        # Its waves that grow first turn back in every step.
        farthest = float(np.abs(moved(scheme, np.array(-1 + 0j))))
        self._sound = farthest / np.minimum(np.maximum(fast, away), _SUDDEN)[..., None]
        self._shear = shear[..., None]
        self._shear[0, 0, 0] = self._sound[0, 0, 0] = 0.0
        self._k, self._k2 = k, np.maximum((k**2).sum(axis=-1), 1e-30)

    def _spreading(self, places: Floats, delta: Delta) -> Any:
        from scipy.sparse import csr_array

        support = SUPPORT[delta]
        first = np.floor(places - 0.5 * support).astype(np.int64) + 1
        steps = np.arange(support + 1)
        sites = first[:, :, None] + steps
        weight = delta_function(delta, sites - places[:, :, None])
        value = np.einsum("ni,nj,nk->nijk", weight[:, 0], weight[:, 1], weight[:, 2])
        _, ny, nz = self._shape
        index = (sites[:, 0, :, None, None] * ny + sites[:, 1, None, :, None]) * nz + sites[:, 2, None, None, :]
        rows = np.broadcast_to(np.arange(len(places))[:, None, None, None], value.shape)
        size = int(np.prod(self._shape))
        return csr_array((value.ravel(), (rows.ravel(), index.ravel())), (len(places), size))

    def __call__(self, forces: Floats) -> Floats:
        """Return velocities (n, 3) for forces (n, 3)."""
        from scipy.fft import irfftn, rfftn

        field = (self._weights.T @ forces).reshape(*self._shape, 3)
        wave = rfftn(field, axes=(0, 1, 2))
        # fftfreq folds the last axis like rfft but for the sign of its Nyquist wave, which the projection does not see.
        along = self._k * ((self._k * wave).sum(axis=-1) / self._k2)[..., None]
        flow = irfftn((wave - along) * self._shear + along * self._sound, s=self._shape, axes=(0, 1, 2))
        velocity = np.asarray(self._weights @ flow.reshape(-1, 3))
        return velocity if self.beside is None else velocity + self.beside @ forces


def step_limit(
    backend: Backend,
    cell: CellType,
    delta: Delta,
    viscosity: float,
    *,
    collision: Collision | None = None,
    scheme: Scheme = "euler",
    slip: float = SLIP,
) -> StepLimit:
    """Return the longest stable time step of one cell of this type in a fluid of this viscosity, lattice units.

    The greatest eigenvalue of stiffness times mobility (eq. 15) is found by iteration, with time steps on the way to
    the limit: moduli in lattice units go with their square, the viscosity with them. `backend` computes the forces of
    the membrane; `collision` is two relaxation times by default; `scheme` is how vertices move, `slip` is what they
    have of it beside the fluid (eq. 18).
    """
    stiffness = _Stiffness(backend, cell)
    if not stiffness.parts:
        return StepLimit(np.inf, {"none": 1.0})
    ratio, motion = 1.0, np.random.default_rng(0).normal(size=stiffness.rest.shape)
    for _ in range(_STEPS):
        mobility = Mobility(stiffness.rest, delta, viscosity * ratio, collision or Trt(), scheme)
        mobility.beside = stiffness.slip(slip / (viscosity * ratio))
        growth, motion = _fastest(stiffness, mobility, motion)
        beyond = CRITICAL / (growth * ratio**2)
        ratio *= beyond**_DAMPED
        if abs(np.log(beyond)) < _CLOSE or ratio < _LEAST:
            break
    shares = {name: max(float((motion * part(motion)).sum()), 0.0) for name, part in stiffness.parts.items()}
    return StepLimit(ratio, {name: share / sum(shares.values()) for name, share in shares.items()})


def _fastest(stiffness: _Stiffness, mobility: Mobility, motion: Floats) -> tuple[float, Floats]:
    """Return the greatest eigenvalue of stiffness times mobility and its motion, beginning with `motion`."""
    before = 0.0
    for _ in range(_ITERATIONS):
        force = stiffness(motion)
        moved = mobility(force)
        value = float((moved * force).sum() / max(float((motion * force).sum()), 1e-300))
        motion = moved / np.linalg.norm(moved)
        if abs(value - before) < _TOLERANCE * value:
            break
        before = value
    return value, motion


class _Stiffness:
    """Forces that resist small displacements of the undeformed cell."""

    def __init__(self, backend: Backend, cell: CellType) -> None:
        self._whole, self._state = _Linear(backend, cell), RestState(cell)
        self.rest = self._whole.rest
        self.parts = {name: _Linear(backend, replace(cell, model=model)) for name, model in _alone(cell.model).items()}

    def __call__(self, motion: Floats) -> Floats:
        return self._whole(motion)

    def slip(self, mobility: float) -> Any:
        """Return the matrix (n, n) of eq. (18)."""
        from scipy.sparse import csr_array, diags_array

        rings = self._state.elements.rings
        counts = np.array([len(ring) for ring in rings])
        begins, others = np.concatenate([[0], np.cumsum(counts)]), np.concatenate(rings)
        joined = csr_array((np.ones(len(others)), others, begins), (len(rings), len(rings)))
        share = diags_array(self._state.vertex_shares)
        return slip_mobility(self._state, mobility) * (share @ (diags_array(counts.astype(float)) - joined) @ share)


class _Linear:
    """Minus the derivative of the forces of one cell, along a displacement."""

    def __init__(self, backend: Backend, cell: CellType) -> None:
        self._cells = Cells(backend, [cell], [np.zeros((1, 3))])
        self.rest = self._cells.vertices()[0]

    def __call__(self, motion: Floats) -> Floats:
        step = _SMALL * motion / max(float(np.abs(motion).max()), 1e-300)
        size = float(np.linalg.norm(step) / max(float(np.linalg.norm(motion)), 1e-300))
        forces = []
        for sign in (1.0, -1.0):
            self._cells.set_vertices((self.rest + sign * step)[None])
            self._cells.forces()
            forces.append(self._cells.vertex_forces()[0])
        return np.asarray((forces[1] - forces[0]) / (2 * size))


def _alone(model: MembraneModel) -> dict[str, MembraneModel]:
    """Return the model with one modulus at a time, by the name of the modulus."""
    zero = replace(model, law=replace(model.law, shear=0.0), bending=0.0, area=0.0, local_area=0.0, volume=0.0)
    found = {name: replace(zero, law=alone) for name, alone in model.law.alone().items()}
    for field in fields(model):
        if field.name in ("bending", "area", "local_area", "volume") and getattr(model, field.name) > 0:
            found[field.name.replace("_", " ")] = replace(zero, **{field.name: getattr(model, field.name)})
    return found
