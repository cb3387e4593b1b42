# SPDX-License-Identifier: BSD-3-Clause
"""Longest stable time step of a membrane in a fluid, and the modulus that limits it (theory/coupling, section 6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Backend
from seiche.cells.cells import Cells, slip_mobility
from seiche.cells.energy import RestState
from seiche.cells.model import CellType, MembraneModel
from seiche.couple.immersed import SLIP, Scheme
from seiche.couple.shear_response import ShearResponse, displacement_factor
from seiche.errors import CaseError
from seiche.flow.model import Collision, FlowModel, Newtonian, Trt
from seiche.flow.velocity_set import CS2
from seiche.kernels.registry.ibm import SUPPORT, Delta

Floats = npt.NDArray[np.float64]

#: Product of stiffness and mobility at which a mode begins to grow (eq. 15).
CRITICAL = 2.0
#: Inverse of the minimum mobility of a wave, since a mode that decays within a step still moves vertices in that step.
_MAX_DECAY = 2.0
#: Maximum number of iterations for the eigenvalue, and the relative change at which they end.
_ITERATIONS, _TOLERANCE = 60, 3e-3
#: Maximum number of trial time steps, exponent of the damped update, and tolerance (logarithm) of the limit.
_TRIALS, _DAMPING, _CONVERGED = 8, 0.6, 0.02
#: The search ends below this fraction of the time step.
_MIN_RATIO = 1e-6
#: Modulus of the spring in series with surface viscosity, divided by the viscosity of the fluid (lattice units), that
#: is stable with a margin. Without other moduli, the limit is 7.5 (theory/cells, section 8).
SPRING = 1.5
#: Displacement in sites for finite differences: small enough for linearity, and much larger than rounding errors.
_SMALL = 1e-4


@dataclass(frozen=True)
class StepLimit:
    """Limit of the time step: `ratio` of the longest stable to the present time step, and `shares` of the moduli.

    The shares are the contributions of the moduli to the limit; their sum is 1.
    """

    ratio: float
    shares: dict[str, float]

    @property
    def modulus(self) -> str:
        """Return the name of the modulus with the largest share."""
        return max(self.shares, key=lambda name: self.shares[name])


def with_shortest_relaxation(model: MembraneModel, viscosity: float) -> MembraneModel:
    """Return the membrane with the shortest relaxation time that the time step allows (theory/cells, section 8).

    `model` is in lattice units; `viscosity` is the kinematic viscosity of the fluid. Any surface viscosity is stable.
    """
    return replace(model, relaxation=model.viscosity / (SPRING * viscosity))


def delta_function(delta: Delta, distance: Floats) -> Floats:
    """Return the smoothed delta function of one coordinate (eqs. 4 to 7) at distances in sites.

    Raises:
        CaseError: the name is unknown.
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
    """Mobility of vertices: their velocities due to forces on them, in an unbounded lattice fluid at rest."""

    def __init__(
        self, vertices: Floats, delta: Delta, viscosity: float, collision: Collision, scheme: Scheme = "euler"
    ) -> None:
        """Set up the mobility of `vertices` (n, 3) in lattice units, in a fluid of kinematic `viscosity`."""
        from scipy.fft import next_fast_len

        #: Sparse matrix (n, n) from forces to slip velocities (eq. 18).
        self.slip: Any = None
        margin = SUPPORT[delta] + 6
        low = np.floor(vertices.min(axis=0)) - margin
        self._shape = tuple(next_fast_len(int(n)) for n in np.ceil(vertices.max(axis=0)) + margin - low)
        self._weights = self._spreading(vertices - low, delta)
        waves = [2 * np.pi * np.fft.fftfreq(n) for n in self._shape]
        k = np.stack(np.meshgrid(*waves, indexing="ij"), axis=-1)[..., : self._shape[2] // 2 + 1, :]
        squared = (2 - 2 * np.cos(k)).sum(axis=-1)
        squared[0, 0, 0] = 1.0
        shear = ShearResponse(FlowModel(Newtonian(viscosity), collision), scheme)(squared)
        # Sound decays twice as fast as shear, or propagates away.
        decay, propagation = np.expm1(np.minimum(2 * viscosity * squared, 30.0)), np.sqrt(CS2 * squared)
        # The first unstable waves change sign in each step.
        factor = float(np.abs(displacement_factor(scheme, np.array(-1 + 0j))))
        self._sound = factor / np.minimum(np.maximum(decay, propagation), _MAX_DECAY)[..., None]
        self._shear = shear[..., None]
        self._shear[0, 0, 0] = self._sound[0, 0, 0] = 0.0
        self._k, self._k2 = k, np.maximum((k**2).sum(axis=-1), 1e-30)

    def _spreading(self, positions: Floats, delta: Delta) -> Any:
        from scipy.sparse import csr_array

        support = SUPPORT[delta]
        origins = np.floor(positions - 0.5 * support).astype(np.int64) + 1
        offsets = np.arange(support + 1)
        sites = origins[:, :, None] + offsets
        weights = delta_function(delta, sites - positions[:, :, None])
        values = np.einsum("ni,nj,nk->nijk", weights[:, 0], weights[:, 1], weights[:, 2])
        _, ny, nz = self._shape
        columns = (sites[:, 0, :, None, None] * ny + sites[:, 1, None, :, None]) * nz + sites[:, 2, None, None, :]
        rows = np.broadcast_to(np.arange(len(positions))[:, None, None, None], values.shape)
        size = int(np.prod(self._shape))
        return csr_array((values.ravel(), (rows.ravel(), columns.ravel())), (len(positions), size))

    def __call__(self, forces: Floats) -> Floats:
        """Return velocities (n, 3) for forces (n, 3)."""
        from scipy.fft import irfftn, rfftn

        field = (self._weights.T @ forces).reshape(*self._shape, 3)
        wave = rfftn(field, axes=(0, 1, 2))
        # fftfreq and rfft have different signs of the Nyquist wave of the last axis, which cancel in the projection.
        longitudinal = self._k * ((self._k * wave).sum(axis=-1) / self._k2)[..., None]
        flow = irfftn((wave - longitudinal) * self._shear + longitudinal * self._sound, s=self._shape, axes=(0, 1, 2))
        velocity = np.asarray(self._weights @ flow.reshape(-1, 3))
        return velocity if self.slip is None else velocity + self.slip @ forces


def step_limit(
    backend: Backend,
    cell: CellType,
    delta: Delta,
    viscosity: float,
    *,
    collision: Collision | None = None,
    scheme: Scheme = "euler",
    slip: float = SLIP,
    viscosity_contrast: float = 1.0,
) -> StepLimit:
    """Return the longest stable time step of a cell of this type in a fluid of this viscosity, in lattice units.

    The largest eigenvalue of stiffness times mobility (eq. 15) is computed by power iteration, for a sequence of time
    steps that converges to the limit. In lattice units, moduli are proportional to the square of the time step, and the
    viscosity is proportional to the time step. If the fluid inside has another viscosity, the limit is the lower of
    those for the two fluids.

    Args:
        backend: device that computes the membrane forces.
        cell: the type of cell.
        delta: smoothed delta function.
        viscosity: kinematic viscosity of the fluid outside.
        collision: two relaxation times by default.
        scheme: time scheme of the vertices.
        slip: slip mobility of the vertices (eq. 18).
        viscosity_contrast: viscosity inside over that outside.
    """
    stiffness = _Stiffness(backend, cell)
    if not stiffness.by_modulus:
        return StepLimit(np.inf, {"none": 1.0})

    def fluid(contrast: float, ratio: float) -> Mobility:
        mobility = Mobility(stiffness.rest, delta, contrast * viscosity * ratio, collision or Trt(), scheme)
        mobility.slip = stiffness.slip(slip / (viscosity * ratio))
        return mobility

    limits = [_limit_in_fluid(stiffness, partial(fluid, contrast)) for contrast in sorted({1.0, viscosity_contrast})]
    return min(limits, key=lambda limit: limit.ratio)


def _limit_in_fluid(stiffness: _Stiffness, fluid: Callable[[float], Mobility]) -> StepLimit:
    """Return the limit for the mobility `fluid(ratio)`, in which the time step is multiplied by `ratio`."""
    ratio, motion = 1.0, np.random.default_rng(0).normal(size=stiffness.rest.shape)
    for _ in range(_TRIALS):
        mobility = fluid(ratio)
        growth, motion = _fastest_growing_mode(stiffness, mobility, motion)
        ratio_to_limit = CRITICAL / (growth * ratio**2)
        ratio *= ratio_to_limit**_DAMPING
        if abs(np.log(ratio_to_limit)) < _CONVERGED or ratio < _MIN_RATIO:
            break
    shares = {name: max(float((motion * force(motion)).sum()), 0.0) for name, force in stiffness.by_modulus.items()}
    return StepLimit(ratio, {name: share / sum(shares.values()) for name, share in shares.items()})


def _fastest_growing_mode(stiffness: _Stiffness, mobility: Mobility, motion: Floats) -> tuple[float, Floats]:
    """Return the largest eigenvalue of stiffness times mobility and its mode; the iteration begins with `motion`."""
    previous = 0.0
    for _ in range(_ITERATIONS):
        force = stiffness(motion)
        velocity = mobility(force)
        eigenvalue = float((velocity * force).sum() / max(float((motion * force).sum()), 1e-300))
        motion = velocity / np.linalg.norm(velocity)
        if abs(eigenvalue - previous) < _TOLERANCE * eigenvalue:
            break
        previous = eigenvalue
    return eigenvalue, motion


class _Stiffness:
    """Stiffness of the undeformed cell: forces that resist small displacements, in total and `by_modulus`."""

    def __init__(self, backend: Backend, cell: CellType) -> None:
        self._total, self._state = _ForceDerivative(backend, cell), RestState(cell)
        self.rest, models = self._total.rest, _single_moduli(cell.model)
        self.by_modulus = {
            name: _ForceDerivative(backend, replace(cell, model=model)) for name, model in models.items()
        }

    def __call__(self, motion: Floats) -> Floats:
        return self._total(motion)

    def slip(self, mobility: float) -> Any:
        """Return the matrix (n, n) of eq. (18)."""
        from scipy.sparse import csr_array, diags_array

        rings = self._state.elements.rings
        counts = np.array([len(ring) for ring in rings])
        offsets, neighbours = np.concatenate([[0], np.cumsum(counts)]), np.concatenate(rings)
        adjacency = csr_array((np.ones(len(neighbours)), neighbours, offsets), (len(rings), len(rings)))
        share = diags_array(self._state.relative_inverse_areas)
        return slip_mobility(self._state, mobility) * (share @ (diags_array(counts.astype(float)) - adjacency) @ share)


class _ForceDerivative:
    """Minus the derivative of the forces of one cell along a displacement."""

    def __init__(self, backend: Backend, cell: CellType) -> None:
        self._cells = Cells(backend, [cell], [np.zeros((1, 3))])
        self.rest = self._cells.vertices()[0]

    def __call__(self, motion: Floats) -> Floats:
        step = _SMALL * motion / max(float(np.abs(motion).max()), 1e-300)
        size = float(np.linalg.norm(step) / max(float(np.linalg.norm(motion)), 1e-300))
        forces = []
        for sign in (1.0, -1.0):
            self._cells.set_vertices((self.rest + sign * step)[None], relax=False)
            self._cells.compute_forces()
            forces.append(self._cells.vertex_forces()[0])
        return np.asarray((forces[1] - forces[0]) / (2 * size))


def _single_moduli(model: MembraneModel) -> dict[str, MembraneModel]:
    """Return the model with one modulus at a time, by the name of the modulus."""
    moduli = ("bending", "area", "local_area", "volume")
    disabled = dict.fromkeys((*moduli, "viscosity", "relaxation"), 0.0)
    base = replace(model, law=replace(model.law, shear=0.0), **disabled)  # type: ignore[arg-type]
    models = {name: replace(base, law=law) for name, law in model.law.single_moduli().items()}
    if model.viscosity > 0:
        models["surface viscosity"] = replace(base, viscosity=model.viscosity, relaxation=model.relaxation)
    for name in moduli:
        if (modulus := getattr(model, name)) > 0:
            models[name.replace("_", " ")] = replace(base, **{name: modulus})
    return models
