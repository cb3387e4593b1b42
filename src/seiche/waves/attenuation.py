# SPDX-License-Identifier: BSD-3-Clause
"""Constant Q over a frequency band by relaxation mechanisms, a generalised Maxwell body (theory/waves, section 12)."""

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

#: Number of frequencies in the band at which Q is fitted.
_POINTS = 100
#: Minimum quality factor: below it the mechanisms would exceed the modulus.
MIN_QUALITY = 3.0
#: Maximum number of relaxation mechanisms.
MAX_MECHANISMS = 6


@dataclass(frozen=True)
class Attenuation:
    """Relaxation of a medium whose moduli are those at infinite frequency.

    Attributes:
        frequencies: relaxation frequencies of the mechanisms, radians per unit of time, (mechanisms,).
        bulk, shear: shares Y of the mechanisms in the bulk and in the shear modulus, (elements, mechanisms) or, by
            node, (elements, mechanisms, nodes).
    """

    frequencies: Floats
    bulk: Floats
    shear: Floats


def mechanism_frequencies(band: tuple[float, float], mechanisms: int) -> Floats:
    """Return the angular frequencies of the mechanisms (mechanisms,) for a band in Hz."""
    if mechanisms == 1:
        return np.array([2 * np.pi * np.sqrt(band[0] * band[1])])
    return np.asarray(2 * np.pi * np.geomspace(*band, mechanisms))


def fitted_shares(quality: float, frequencies: Floats, band: tuple[float, float]) -> Floats:
    """Return the nonnegative shares Y that fit the Q `quality` best over a band (theory/waves, eq. 31)."""
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
        qp: quality factor of longitudinal waves, one number or one for each element (or node). None, or NaN in some
            elements, means that only shear is attenuated there.
        qs: the same for shear waves, infinite for no loss; ignored in fluids.
        dim: dimension of the mesh.
        band: lowest and highest frequency of constant Q.
        reference: frequency of the speeds; by default the geometric mean of the band.
        mechanisms: number of relaxation mechanisms, 1 to MOST.

    Raises:
        CaseError: an invalid quality factor or band, or qp so large relative to qs that P waves would be amplified.
    """
    low, high = band
    if not (np.isfinite(high) and 0 < low < high):
        raise CaseError(f"attenuation: band {low:g} to {high:g}: must be two positive frequencies in ascending order")
    if not 1 <= mechanisms <= MAX_MECHANISMS:
        raise CaseError(f"attenuation: mechanisms = {mechanisms}: must be 1 to {MAX_MECHANISMS}")
    middle = float(np.sqrt(low * high))
    reference = middle if reference is None else reference
    if not (np.isfinite(reference) and reference > 0):
        raise CaseError(f"attenuation: reference = {reference:g}: must be a positive frequency")
    shape = material.density.shape
    qualities = [np.broadcast_to(np.asarray(q, np.float64), shape) for q in (np.nan if qp is None else qp, qs)]
    for name, q in zip(("qp", "qs"), qualities, strict=True):
        invalid = ~(q >= MIN_QUALITY) & ~(np.isnan(q) & (name == "qp"))
        if invalid.any():
            element = int(np.argwhere(invalid)[0][0])
            raise CaseError(
                f"attenuation: {name} = {q[invalid][0]:g} in element {element}: must be at least {MIN_QUALITY:g}"
            )
    frequencies = mechanism_frequencies(band, mechanisms)
    longitudinal, mu, factor = material.longitudinal, material.mu, 2 - 2 / dim
    shear_part = np.where(mu > 0, factor * mu / qualities[1], 0.0)
    bulk_part = np.where(np.isnan(qualities[0]), 0.0, longitudinal / qualities[0] - shear_part)
    gains_energy = bulk_part < -1e-6 * longitudinal / qualities[0]
    if gains_energy.any():
        index = tuple(np.argwhere(gains_energy)[0])
        largest_qp = longitudinal[index] * qualities[1][index] / (factor * mu[index])
        raise CaseError(
            f"attenuation: qp = {qualities[0][index]:g} with qs = {qualities[1][index]:g} in element "
            f"{int(index[0])}, but qp must be at most {largest_qp:.4g}; otherwise P waves would be amplified"
        )
    bulk_loss = np.maximum(bulk_part, 0.0) / (longitudinal - factor * mu)
    shear_loss = np.where(mu > 0, 1 / qualities[1], 0.0)
    bulk, shear = (_shares(loss, frequencies, band) for loss in (bulk_loss, shear_loss))
    omega = 2 * np.pi * reference
    bulk_relaxation, shear_relaxation = (relaxation(shares, frequencies, omega) for shares in (bulk, shear))
    rho = material.density
    unrelaxed_mu = rho * (material.cs * np.real(1 / np.sqrt(shear_relaxation))) ** 2
    shear_term = factor * unrelaxed_mu * shear_relaxation
    modulus = longitudinal - factor * mu
    for _ in range(20):  # Newton's method for a slowness 1/cp of longitudinal waves at the reference
        complex_modulus = modulus * bulk_relaxation + shear_term
        slowness = np.sqrt(rho / complex_modulus)
        slope = np.real(-0.5 * slowness / complex_modulus * bulk_relaxation)
        modulus = modulus - (np.real(slowness) - 1 / material.cp) / slope
    unrelaxed = Material(rho, np.sqrt((modulus + factor * unrelaxed_mu) / rho), np.sqrt(unrelaxed_mu / rho))
    return unrelaxed, Attenuation(frequencies, np.moveaxis(bulk, -1, 1), np.moveaxis(shear, -1, 1))


def _shares(loss: Floats, frequencies: Floats, band: tuple[float, float]) -> Floats:
    """Return fitted shares of an array of 1/Q, (..., mechanisms), with one fit for each distinct value."""
    values, where = np.unique(loss, return_inverse=True)
    fits = np.stack([fitted_shares(np.inf if value == 0 else 1 / value, frequencies, band) for value in values])
    if fits.sum(1).max() >= 0.999:
        raise CaseError(
            f"attenuation: the quality factors imply Q = {1 / values[-1]:.2g} for the bulk or the shear modulus; at "
            "this value its relaxed (low-frequency) value would not be positive; use larger quality factors qp and qs"
        )
    return np.asarray(fits[where.reshape(loss.shape)], np.float64)


class MemoryVariables:
    """The memory variables of a solver on its device: anelastic stresses, and the launches that update them."""

    def __init__(self, operator: Operator, attenuation: Attenuation) -> None:
        """Allocate and upload; CaseError for an attenuation of another mesh than the material's."""
        disc, mesh = operator.disc, operator.mesh
        self.count, self.attenuation, self._operator = len(attenuation.frequencies), attenuation, operator
        nodes = operator.weights.shape[1]
        shape = (mesh.count, self.count, nodes)[: 3 if disc.nodal else 2]
        for shares in (attenuation.bulk, attenuation.shear):
            if shares.shape != shape:
                raise CaseError(f"attenuation: shares of shape {shares.shape}, but the material requires {shape}")
        self.shape = (mesh.count, self.count * (disc.fields - disc.dim), nodes)
        self.stress, self._register = (operator.backend.zeros(self.shape, disc.real) for _ in range(2))
        self._shares = operator.real_array(np.stack([attenuation.bulk, attenuation.shear], 2))

    def integration(self, position: dg.Position, number: int, **members: Any) -> Stage:
        """Return the integration of a stage with the memory variables."""
        operator = self._operator
        launch = operator.launch(
            dg.integrate_attenuated(operator.disc, position, self.count),
            0,
            operator.mesh.count,
            scheme=operator.members,
            memory=self.stress,
            memory_k=self._register,
            shares=self._shares,
            frequencies=self.attenuation.frequencies,
            a=LSRK_A[number],
            **members,
        )
        return Stage("integration", *launch)

    def damping(self, sponge: Sponge) -> Stage:
        """Return the stage that damps the memory variables in an absorbing layer."""
        operator = self._operator
        spec = dg.damp_memory(operator.disc, self.count)
        launch = operator.launch(spec, 0, sponge.items, memory=self.stress, **sponge.layer)
        return Stage("sponge", *launch)

    def state(self) -> npt.NDArray[Any]:
        """Return the anelastic stresses, (elements, mechanisms x stresses, nodes)."""
        return self._operator.backend.download(self.stress)

    def set_state(self, stress: npt.NDArray[Any] | None) -> None:
        """Set the anelastic stresses, by default zero; CaseError for another shape."""
        stress = np.zeros(self.shape) if stress is None else stress
        if np.shape(stress) != self.shape:
            raise CaseError(f"memory of shape {np.shape(stress)}; the solver requires {self.shape}")
        self._operator.backend.assign(self.stress, np.asarray(stress).astype(self._operator.disc.real))

    def products(self, state: Floats) -> Floats:
        """Return twice the energy of every element, (elements,) (theory/waves, eq. 32)."""
        operator = self._operator
        disc, dim = operator.disc, operator.mesh.dim
        shape = (-1, operator.weights.shape[1]) if operator.material.by_node else (-1, 1)
        rho, longitudinal, mu = (
            x.reshape(shape) for x in (operator.material.density, operator.material.longitudinal, operator.material.mu)
        )
        bulk, shear = (
            np.asarray(shares).reshape(shares.shape[0], self.count, -1)
            for shares in (self.attenuation.bulk, self.attenuation.shear)
        )
        memory = self.state().astype(np.float64).reshape(self.shape[0], self.count, disc.fields - dim, -1)
        fluid = disc.medium == "acoustic"
        velocity, stress = (slice(1, None), slice(0, 1)) if fluid else (slice(0, dim), slice(dim, None))
        modulus = longitudinal if fluid else longitudinal - (2 - 2 / dim) * mu

        def strain_energy(stresses: Floats, bulk_fraction: Floats, shear_fraction: Floats) -> Floats:
            normal = 1 if fluid else dim
            mean = stresses[:, :normal].sum(1) / normal
            deviator = ((stresses[:, :normal] - mean[:, None]) ** 2).sum(1) + 2 * (stresses[:, normal:] ** 2).sum(1)
            return _ratio(mean**2, modulus * bulk_fraction) + _ratio(deviator, 2 * mu * shear_fraction)

        density = rho * (state[:, velocity] ** 2).sum(1)
        density = density + strain_energy(state[:, stress] - memory.sum(1), 1 - bulk.sum(1), 1 - shear.sum(1))
        for k in range(self.count):
            density = density + strain_energy(memory[:, k], bulk[:, k], shear[:, k])
        return np.asarray((operator.weights * density).sum(1))


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Return a quotient, 0 where the denominator is 0."""
    out = np.zeros(np.broadcast_shapes(numerator.shape, denominator.shape))
    return np.divide(numerator, denominator, out=out, where=denominator > 0)
