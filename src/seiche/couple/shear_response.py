# SPDX-License-Identifier: BSD-3-Clause
"""Response of the lattice to past forces, which limits the stable stiffness of a wave (theory/coupling, 6).

With a long relaxation time, short waves decay more slowly than in a viscous fluid of the same viscosity, since
populations travel along the wave before they have relaxed. The sum over all steps is therefore computed with the scheme
itself and not with the exponential decay.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from seiche.couple.immersed import Scheme
from seiche.flow.model import FlowModel, Newtonian, Regularised
from seiche.flow.physics import relaxation_rates
from seiche.flow.velocity_set import CS2, D3Q19

Floats = npt.NDArray[np.float64]
Complex = npt.NDArray[np.complex128]

#: Directions of waves and of forces perpendicular to them.
_WAVES = (((1, 0, 0), (0, 1, 0)), ((1, 1, 0), (0, 0, 1)), ((1, 1, 1), (1, -1, 0)))
#: Wave numbers along an axis, and frequencies (radians per step) at which a wave may begin to grow.
_WAVE_NUMBERS, _FREQUENCIES = np.geomspace(0.05, np.pi, 16), np.geomspace(1e-5, np.pi, 300)
#: Stiffness assigned to waves that are stable at any stiffness.
_MAX_STIFFNESS = 1e3
#: Number of steps that are summed individually.
_STEPS = 400


class ShearResponse:
    """m(kappa), the velocity due to the forces of all previous steps: 2 divided by the critical stiffness of a wave."""

    def __init__(self, model: FlowModel, scheme: Scheme = "euler") -> None:
        """Tabulate m for the collision and the Newtonian viscosity of `model` on D3Q19 (lattice units).

        `scheme` is the time scheme of the vertices.
        """
        assert isinstance(model.rheology, Newtonian)
        table = [_along(model, scheme, np.array(wave, float), np.array(force, float)) for wave, force in _WAVES]
        self._kappa = np.geomspace(table[0][0][0], max(kappa[-1] for kappa, _ in table), 48)
        logarithms = [
            np.interp(np.log(self._kappa), np.log(kappa), np.log(values), right=-np.inf) for kappa, values in table
        ]
        self._log = np.max(logarithms, axis=0)

    def __call__(self, kappa: Floats) -> Floats:
        """Return m for waves with kappa = 2 sum(1 - cos k), the maximum over three directions."""
        values = np.exp(np.interp(np.log(np.maximum(kappa, self._kappa[0])), np.log(self._kappa), self._log))
        return np.asarray(values * np.maximum(self._kappa[0] / np.maximum(kappa, 1e-30), 1.0))


def _along(model: FlowModel, scheme: Scheme, wave: Floats, force: Floats) -> tuple[Floats, Floats]:
    """Return kappa and m of the waves k = q `wave`, for forces along `force`."""
    force = force / np.linalg.norm(force)
    collide, initial = _scheme(model, force)
    k = _WAVE_NUMBERS[:, None] * wave
    phases = np.exp(-1j * (k @ D3Q19.vectors.T))  # (waves, Q): streaming
    momentum = D3Q19.vectors @ force
    populations, velocity = np.broadcast_to(initial, phases.shape), np.full((len(k), _STEPS), 0.5)
    for step in range(1, _STEPS):
        streamed = phases * populations
        velocity[:, step] = (streamed @ momentum).real
        populations = streamed @ collide.T
    # The remaining steps are a viscous decay, which is a geometric series.
    nonzero = np.abs(velocity[:, -1]) > 1e-12
    decay = np.where(nonzero, velocity[:, -1] / np.where(nonzero, velocity[:, -2], 1.0), 0.0)
    turn = np.exp(1j * _FREQUENCIES)[:, None]
    response = _powers() @ velocity.T + velocity[:, -1] * decay * turn**-_STEPS / (1 - decay / turn)
    stiffness = -(turn - 1) / (response * displacement_factor(scheme, turn))
    critical = np.array([min(_critical(row), _MAX_STIFFNESS) for row in stiffness.T])
    return (2 - 2 * np.cos(k)).sum(axis=1), 2.0 / critical


@cache
def _powers() -> Complex:
    """Return the factors of the velocities of all steps in the response, (frequencies, steps); cached."""
    return np.asarray(np.exp(1j * _FREQUENCIES)[:, None] ** -np.arange(_STEPS))


def displacement_factor(scheme: Scheme, turn: Complex) -> Complex | float:
    """Return the ratio of displacement to velocity of a vertex whose velocity is multiplied by `turn` in each step."""
    return 1.0 if scheme == "euler" else 1.5 - 0.5 / turn


def _scheme(model: FlowModel, force: Floats) -> tuple[Floats, Floats]:
    """Return the collision near rest, a matrix (Q, Q), and the populations after a unit force, (Q,)."""
    c, w = D3Q19.vectors.astype(float), D3Q19.weights
    assert isinstance(model.rheology, Newtonian)
    even, odd = relaxation_rates(model.rheology.viscosity, model)
    identity = np.eye(len(c))
    equilibrium = w[:, None] * (1.0 + (c @ c.T) / CS2)
    forced = w * (c @ force) / CS2
    if isinstance(model.collision, Regularised):
        stress = np.einsum("ia,ib->iab", c, c)
        hermite = stress - CS2 * np.eye(3)
        projection = 0.5 / CS2**2 * w[:, None] * np.einsum("iab,jab->ij", hermite, stress)
        return equilibrium + (1 - even) * projection @ (identity - equilibrium), forced
    reflection = identity[D3Q19.opposite]
    relaxed = (0.5 * even * (identity + reflection) + 0.5 * odd * (identity - reflection)) @ (identity - equilibrium)
    return identity - relaxed, forced  # half through the equilibrium, and (1 - odd/2) by eq. (12)


def _critical(stiffness: Complex) -> float:
    """Return the smallest positive real stiffness on a path of complex values, ordered by frequency."""
    real, imaginary = stiffness.real, stiffness.imag
    rows = np.flatnonzero((imaginary[:-1] * imaginary[1:] < 0) & (real[:-1] > 0) & (real[1:] > 0))
    fraction = imaginary[rows] / (imaginary[rows] - imaginary[rows + 1])
    crossings = real[rows] + fraction * (real[rows + 1] - real[rows])
    final = real[-1:] if real[-1] > 0 else np.empty(0)  # a period of two steps
    return float(np.min(np.concatenate([crossings, final]), initial=np.inf))
