# SPDX-License-Identifier: BSD-3-Clause
"""What the lattice keeps of a force, step after step: how stiff a wave of displacements may be (theory/coupling, 6).

A long relaxation time keeps short waves alive, which a viscous fluid of that viscosity would not: what leaves along the
wave comes back before it is forgotten. So the sum over all steps is that of the scheme, not of the exponential decay.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seiche.couple.immersed import Scheme
from seiche.flow.model import FlowModel, Newtonian, Regularised
from seiche.flow.physics import relaxation_rates
from seiche.flow.velocity_set import CS2, D3Q19

Floats = npt.NDArray[np.float64]
Complex = npt.NDArray[np.complex128]

#: Directions of waves and of forces across them.
_WAVES = (((1, 0, 0), (0, 1, 0)), ((1, 1, 0), (0, 0, 1)), ((1, 1, 1), (1, -1, 0)))
#: Wave numbers along an axis, and frequencies (radians a step) at which a wave may begin to grow.
_NUMBERS, _FREQUENCIES = np.geomspace(0.05, np.pi, 16), np.geomspace(1e-5, np.pi, 300)
#: Where no stiffness lets a wave grow.
_STIFFEST = 1e3
#: Steps that are followed one by one.
_STEPS = 400


class ShearRemains:
    """m(kappa): the velocity that forces of all steps before leave, 2 over the stiffness at which a wave grows."""

    def __init__(self, model: FlowModel, scheme: Scheme = "euler") -> None:
        """Tabulate m for the collision of `model`, on D3Q19, and a Newtonian fluid of its viscosity (lattice units).

        `scheme` is how vertices move with the flow.
        """
        assert isinstance(model.rheology, Newtonian)
        table = [_along(model, scheme, np.array(wave, float), np.array(force, float)) for wave, force in _WAVES]
        self._kappa = np.geomspace(table[0][0][0], max(kappa[-1] for kappa, _ in table), 48)
        logarithms = [
            np.interp(np.log(self._kappa), np.log(kappa), np.log(values), right=-np.inf) for kappa, values in table
        ]
        self._log = np.max(logarithms, axis=0)

    def __call__(self, kappa: Floats) -> Floats:
        """Return m for waves of these kappa = 2 sum(1 - cos k), the greatest of three directions."""
        found = np.exp(np.interp(np.log(np.maximum(kappa, self._kappa[0])), np.log(self._kappa), self._log))
        return np.asarray(found * np.maximum(self._kappa[0] / np.maximum(kappa, 1e-30), 1.0))


def _along(model: FlowModel, scheme: Scheme, wave: Floats, force: Floats) -> tuple[Floats, Floats]:
    """Return kappa and m of the waves k = q `wave`, for forces along `force`."""
    force = force / np.linalg.norm(force)
    collide, push = _scheme(model, force)
    k = _NUMBERS[:, None] * wave
    phases = np.exp(-1j * (k @ D3Q19.vectors.T))  # (waves, Q): what streaming does to each population
    momentum = D3Q19.vectors @ force
    populations, velocity = np.broadcast_to(push, phases.shape), np.full((len(k), _STEPS), 0.5)
    for step in range(1, _STEPS):
        arrived = phases * populations
        velocity[:, step] = (arrived @ momentum).real
        populations = arrived @ collide.T
    # After so many steps there is viscous decay alone, a geometric series.
    left = np.abs(velocity[:, -1]) > 1e-12
    decay = np.where(left, velocity[:, -1] / np.where(left, velocity[:, -2], 1.0), 0.0)
    turn = np.exp(1j * _FREQUENCIES)[:, None]
    response = turn ** -np.arange(_STEPS) @ velocity.T + velocity[:, -1] * decay * turn**-_STEPS / (1 - decay / turn)
    stiffness = -(turn - 1) / (response * moved(scheme, turn))
    return (2 - 2 * np.cos(k)).sum(axis=1), np.array([2.0 / min(_critical(path), _STIFFEST) for path in stiffness.T])


def moved(scheme: Scheme, turn: Complex) -> Complex | float:
    """Return how far a vertex moves in a step over its velocity, where that is multiplied by `turn` in every step."""
    return 1.0 if scheme == "euler" else 1.5 - 0.5 / turn


def _scheme(model: FlowModel, force: Floats) -> tuple[Floats, Floats]:
    """Return what a collision does to populations near rest, (Q, Q), and what a unit force leaves in them, (Q,)."""
    c, w = D3Q19.vectors.astype(float), D3Q19.weights
    assert isinstance(model.rheology, Newtonian)
    even, odd = relaxation_rates(model.rheology.viscosity, model)
    one = np.eye(len(c))
    equilibrium = w[:, None] * (1.0 + (c @ c.T) / CS2)
    thrust = w * (c @ force) / CS2
    if isinstance(model.collision, Regularised):
        stress = np.einsum("ia,ib->iab", c, c)
        second = stress - CS2 * np.eye(3)
        filtered = 0.5 / CS2**2 * w[:, None] * np.einsum("iab,jab->ij", second, stress)
        return equilibrium + (1 - even) * filtered @ (one - equilibrium), thrust
    back = one[D3Q19.opposite]
    relaxed = (0.5 * even * (one + back) + 0.5 * odd * (one - back)) @ (one - equilibrium)
    return one - relaxed, thrust  # half of it through the equilibrium, (1 - odd/2) by eq. (12)


def _critical(stiffness: Complex) -> float:
    """Return the least positive real stiffness on a path of complex ones, by frequency."""
    real, imaginary = stiffness.real, stiffness.imag
    place = np.flatnonzero((imaginary[:-1] * imaginary[1:] < 0) & (real[:-1] > 0) & (real[1:] > 0))
    share = imaginary[place] / (imaginary[place] - imaginary[place + 1])
    crossings = real[place] + share * (real[place + 1] - real[place])
    last = real[-1:] if real[-1] > 0 else np.empty(0)  # two steps a period
    return float(np.min(np.concatenate([crossings, last]), initial=np.inf))
