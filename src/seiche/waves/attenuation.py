# SPDX-License-Identifier: BSD-3-Clause
"""Attenuation by bodies of Maxwell beside an elastic one (theory/waves, section 12): Q over a band of frequencies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError
from seiche.kernels.registry import dg
from seiche.observe.stage import Stage
from seiche.waves.basis import LSRK_A
from seiche.waves.material import Material
from seiche.waves.operator import Operator
from seiche.waves.sponge import Sponge

Floats = npt.NDArray[np.float64]

#: Frequencies over the band at which the fit compares Q with what it should be.
_POINTS = 100
#: Smallest quality: below it bodies would have to hold the whole modulus.
LEAST = 3.0
#: Bodies that the solver offers, at most.
MOST = 6


@dataclass(frozen=True)
class Attenuation:
    """Relaxation of a medium whose moduli are those at infinite frequency.

    Attributes:
        frequencies: relaxation frequencies of the bodies, radians a unit of time, (bodies,).
        bulk, shear: shares Y of the bodies in the bulk and in the shear modulus, (elements, bodies) or, by node,
            (elements, bodies, nodes).
    """

    frequencies: Floats
    bulk: Floats
    shear: Floats


def fitted_shares(quality: float, frequencies: Floats, band: tuple[float, float]) -> Floats:
    """Return shares Y of bodies whose Q is nearest to `quality` over a band (theory/waves, eq. 31), none negative."""
    from scipy.optimize import nnls

    if not np.isfinite(quality):
        return np.zeros(len(frequencies))
    omega = 2 * np.pi * np.geomspace(*band, _POINTS)[:, None]
    rows = (frequencies * omega + frequencies**2 / quality) / (frequencies**2 + omega**2)
    return np.asarray(nnls(rows, np.full(_POINTS, 1 / quality))[0], np.float64)


def relaxation(shares: Floats, frequencies: Floats, omega: float) -> npt.NDArray[np.complex128]:
    """Return a modulus at an angular frequency over that at an infinite one (theory/waves, eq. 30), shares (..., L)."""
    return np.asarray(1 - np.sum(shares * frequencies / (frequencies + 1j * omega), axis=-1))


def attenuated(
    material: Material,
    qp: npt.ArrayLike | None,
    qs: npt.ArrayLike,
    *,
    dim: int,
    band: tuple[float, float],
    reference: float | None = None,
    mechanisms: int = 3,
) -> tuple[Material, Attenuation]:
    """Return the medium at infinite frequency and its attenuation.

    Args:
        material: density and the speeds at the frequency `reference`.
        qp: quality of longitudinal waves, one number or one an element (a node); None, or not a number in some
            elements: only shear loses energy there.
        qs: the same of shear waves, infinite for no loss; of no meaning in a fluid.
        dim: of the mesh.
        band: lowest and highest frequency between which Q is constant.
        reference: frequency of the speeds; by default the geometric mean of the band.
        mechanisms: number of bodies, 1 to MOST.

    Raises:
        CaseError: a quality or band that cannot be, or qp so large beside qs that the bulk would have to gain energy.
    """
    low, high = band
    if not (np.isfinite(high) and 0 < low < high):
        raise CaseError(
            f"attenuation: band {low:g} to {high:g}: has to be two positive frequencies, the lower one first"
        )
    if not 1 <= mechanisms <= MOST:
        raise CaseError(f"attenuation: mechanisms = {mechanisms}: 1 to {MOST} are possible")
    middle = float(np.sqrt(low * high))
    reference = middle if reference is None else reference
    if not (np.isfinite(reference) and reference > 0):
        raise CaseError(f"attenuation: reference = {reference:g}: has to be a positive frequency")
    shape = material.density.shape
    qualities = [np.broadcast_to(np.asarray(q, np.float64), shape) for q in (np.nan if qp is None else qp, qs)]
    for name, q in zip(("qp", "qs"), qualities, strict=True):
        bad = ~(q >= LEAST) & ~(np.isnan(q) & (name == "qp"))
        if bad.any():
            element = int(np.argwhere(bad)[0][0])
            raise CaseError(f"attenuation: {name} = {q[bad][0]:g} in element {element}, has to be at least {LEAST:g}")
    frequencies = 2 * np.pi * (np.array([middle]) if mechanisms == 1 else np.geomspace(low, high, mechanisms))
    stiff, mu, part = material.longitudinal, material.mu, 2 - 2 / dim
    of_shear = np.where(mu > 0, part * mu / qualities[1], 0.0)
    inverse = np.where(np.isnan(qualities[0]), 0.0, stiff / qualities[0] - of_shear)
    gains = inverse < -1e-6 * stiff / qualities[0]
    if gains.any():
        place = tuple(np.argwhere(gains)[0])
        most = stiff[place] * qualities[1][place] / (part * mu[place])
        raise CaseError(
            f"attenuation: qp = {qualities[0][place]:g} with qs = {qualities[1][place]:g} in element {int(place[0])},"
            f" qp may be {most:.4g} at most: the bulk modulus would gain energy"
        )
    bulk_loss = np.maximum(inverse, 0.0) / (stiff - part * mu)
    shear_loss = np.where(mu > 0, 1 / qualities[1], 0.0)
    bulk, shear = (_shares(loss, frequencies, band) for loss in (bulk_loss, shear_loss))
    omega = 2 * np.pi * reference
    of_bulk, of_shear = (relaxation(shares, frequencies, omega) for shares in (bulk, shear))
    rho = material.density
    unrelaxed_mu = rho * (material.cs * np.real(1 / np.sqrt(of_shear))) ** 2
    rest = part * unrelaxed_mu * of_shear
    modulus = stiff - part * mu
    for _ in range(20):  # Newton's: the slowness of longitudinal waves at the reference is 1/cp
        whole = modulus * of_bulk + rest
        slowness = np.sqrt(rho / whole)
        modulus = modulus - (np.real(slowness) - 1 / material.cp) / np.real(-0.5 * slowness / whole * of_bulk)
    fast = Material(rho, np.sqrt((modulus + part * unrelaxed_mu) / rho), np.sqrt(unrelaxed_mu / rho))
    return fast, Attenuation(frequencies, np.moveaxis(bulk, -1, 1), np.moveaxis(shear, -1, 1))


def _shares(loss: Floats, frequencies: Floats, band: tuple[float, float]) -> Floats:
    """Return fitted shares of an array of 1/Q, (..., bodies); one fit for all equal ones."""
    values, where = np.unique(loss, return_inverse=True)
    fits = np.stack([fitted_shares(np.inf if value == 0 else 1 / value, frequencies, band) for value in values])
    if fits.sum(1).max() >= 0.999:
        raise CaseError(
            f"attenuation: the bulk or shear modulus alone would need Q = {1 / values[-1]:.2g}: nothing of it would be"
            " left at rest"
        )
    return np.asarray(fits[where.reshape(loss.shape)], np.float64)


class Bodies:
    """The bodies of a solver on its device: their stresses, and the launches that move them."""

    def __init__(self, operator: Operator, attenuation: Attenuation) -> None:
        """Reserve and upload.

        Raises:
            CaseError: attenuation of another mesh than the material's.
        """
        of, mesh = operator.of, operator.mesh
        self.count, self.attenuation, self._operator = len(attenuation.frequencies), attenuation, operator
        nodes = operator.weights.shape[1]
        wanted = (mesh.count, self.count, nodes)[: 3 if of.nodal else 2]
        for shares in (attenuation.bulk, attenuation.shear):
            if shares.shape != wanted:
                raise CaseError(f"attenuation: shares of shape {shares.shape}, the material needs {wanted}")
        self.shape = (mesh.count, self.count * (of.fields - of.dim), nodes)
        self.stress, self._register = (operator.backend.zeros(self.shape, of.real) for _ in range(2))
        self._shares = operator.real_array(np.stack([attenuation.bulk, attenuation.shear], 2))

    def integration(self, position: dg.Position, number: int, **members: Any) -> Stage:
        """Return the integration of a stage with the bodies."""
        operator = self._operator
        launch = operator.launch(
            dg.integrate_attenuated(operator.of, position, self.count),
            0,
            operator.mesh.count,
            on=operator.members,
            memory=self.stress,
            memory_k=self._register,
            shares=self._shares,
            frequencies=self.attenuation.frequencies,
            a=LSRK_A[number],
            **members,
        )
        return Stage("integration", *launch)

    def damping(self, sponge: Sponge) -> Stage:
        """Return what damps the bodies in an absorbing layer."""
        operator = self._operator
        spec = dg.damp_memory(operator.of, self.count)
        launch = operator.launch(spec, 0, sponge.items, memory=self.stress, **sponge.layer)
        return Stage("sponge", *launch)

    def state(self) -> npt.NDArray[Any]:
        """Return the stresses of the bodies, (elements, bodies x stresses, nodes)."""
        return self._operator.backend.download(self.stress)

    def set_state(self, stress: npt.NDArray[Any] | None) -> None:
        """Start from stresses of the bodies, or from rest.

        Raises:
            CaseError: another shape than theirs.
        """
        stress = np.zeros(self.shape) if stress is None else stress
        if np.shape(stress) != self.shape:
            raise CaseError(f"memory of shape {np.shape(stress)}, the solver has {self.shape}")
        self._operator.backend.assign(self.stress, np.asarray(stress).astype(self._operator.of.real))

    def products(self, state: Floats) -> Floats:
        """Return twice the energy of every element, (elements,) (theory/waves, eq. 32)."""
        operator = self._operator
        of, dim = operator.of, operator.mesh.dim
        shape = (-1, operator.weights.shape[1]) if operator.material.by_node else (-1, 1)
        rho, stiff, mu = (
            x.reshape(shape) for x in (operator.material.density, operator.material.longitudinal, operator.material.mu)
        )
        bulk, shear = (
            np.asarray(shares).reshape(shares.shape[0], self.count, -1)
            for shares in (self.attenuation.bulk, self.attenuation.shear)
        )
        bodies = self.state().astype(np.float64).reshape(self.shape[0], self.count, of.fields - dim, -1)
        fluid = of.medium == "acoustic"
        velocity, stress = (slice(1, None), slice(0, 1)) if fluid else (slice(0, dim), slice(dim, None))
        modulus = stiff if fluid else stiff - (2 - 2 / dim) * mu

        def strain(part: Floats, of_bulk: Floats, of_shear: Floats) -> Floats:
            normal = 1 if fluid else dim
            even = part[:, :normal].sum(1) / normal
            odd = ((part[:, :normal] - even[:, None]) ** 2).sum(1) + 2 * (part[:, normal:] ** 2).sum(1)
            return _over(even**2, modulus * of_bulk) + _over(odd, 2 * mu * of_shear)

        density = rho * (state[:, velocity] ** 2).sum(1)
        density = density + strain(state[:, stress] - bodies.sum(1), 1 - bulk.sum(1), 1 - shear.sum(1))
        for body in range(self.count):
            density = density + strain(bodies[:, body], bulk[:, body], shear[:, body])
        return np.asarray((operator.weights * density).sum(1))


def _over(above: Floats, below: Floats) -> Floats:
    """Return a quotient; where nothing is below there is nothing above."""
    return np.divide(above, below, out=np.zeros(np.broadcast_shapes(above.shape, below.shape)), where=below > 0)
