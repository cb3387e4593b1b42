# SPDX-License-Identifier: BSD-3-Clause
"""Upper limit of the energy that point sources supply (theory/waves, eq. 40)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from seiche.domain.world import World
from seiche.waves.attenuation import Attenuation
from seiche.waves.energy import products
from seiche.waves.operator import Operator
from seiche.waves.sources import PointSource, share_out

if TYPE_CHECKING:
    from seiche.waves.source_terms import SourceTerms

Floats = npt.NDArray[np.float64]

#: Amplitude, relative to the largest, below which a source with an incident field no longer acts.
SILENT = 1e-9
#: Times in a step, in steps, at which the amplitude of a source is compared.
_TIMES = np.array([0.0, 0.5, 1.0])


class EnergySupply:
    """Largest growth of the square root of the energy due to sources.

    A delta source adds the field b s(t) per unit time, which increases the norm by at most that of b times |s|. The
    supply by an incident field is unknown; it ends when the waves of the source have left its box.
    """

    def __init__(
        self,
        operator: Operator,
        sources: Sequence[PointSource],
        terms: SourceTerms,
        dt: float,
        world: World,
        *,
        attenuation: Attenuation | None = None,
    ) -> None:
        """Compute the norms of the delta sources of `terms`, a solver's sources (collective)."""
        largest = 0.0
        if attenuation is not None:
            largest = max(float(np.sum(shares, 1).max(initial=0.0)) for shares in (attenuation.bulk, attenuation.shear))
        # Stresses change faster than anelastic ones, and the unrelaxed part 1 - shares of a modulus takes all of them.
        gain = (1.0 - float(world.allreduce_max(np.array([largest]))[0])) ** -0.5
        self._sources, self._terms, self._dt = tuple(sources), terms, dt
        deltas = terms.deltas.tolist()
        norms = gain * delta_norms(operator, [sources[number] for number in deltas], world)
        self._norms = dict(zip(deltas, norms.tolist(), strict=True))
        incident = [number for number in range(len(sources)) if number not in self._norms]
        self._travel = int(np.ceil(terms.incident.travel_time / dt)) + 1 if terms.incident is not None else 0
        self._silent = dict.fromkeys(incident, 0.0)

    def __call__(self, first: int, last: int) -> float:
        """Return the largest growth in the steps first + 1 ... last; infinite while an incident field is supplied."""
        factors = np.abs(self._terms.factors)
        total = 0.0
        for number, source in enumerate(self._sources):
            begin = first if number in self._norms else max(0, first - self._travel)
            times = (np.arange(begin, last)[:, None] + _TIMES) * self._dt
            amplitudes = np.abs(np.asarray(source.time(times), np.float64)).max(1) * factors[number]
            if number in self._norms:
                total += self._norms[number] * self._dt * float(amplitudes.sum())
                continue
            largest = float(amplitudes.max(initial=0.0))
            self._silent[number] = max(self._silent[number], SILENT * largest)
            if largest > self._silent[number]:
                return float("inf")
        return total


def delta_norms(operator: Operator, sources: Sequence[PointSource], world: World) -> Floats:
    """Return the square root of the energy of the field of each source as a delta of unit amplitude (collective)."""
    disc, mesh = operator.disc, operator.mesh
    points = share_out(mesh, operator.basis, [source.position for source in sources], "source", world)
    parts: list[tuple[int, int, float]] = []
    for element, point, share, values in zip(points.element, points.point, points.share, points.values, strict=True):
        rows = np.array([element])
        shape = values[0]
        for axis in range(1, mesh.dim):
            shape = np.kron(values[axis], shape)
        field = share * np.outer(sources[point].strengths(disc.medium, mesh.dim), shape / operator.weights[element])
        rho, stiff = (np.asarray(x[element]) for x in (operator.material.density, operator.material.longitudinal))
        if disc.medium == "acoustic":
            field[0] *= stiff
            field[1:] /= rho
        else:
            field[: mesh.dim] /= rho
        energy = 0.5 * float(products(field[None], field[None], operator, rows)[0])
        parts.append((int(point), int(mesh.number[element]), energy))
    total = np.zeros(len(sources))
    for point, _, energy in sorted(part for of_rank in world.allgather(parts) for part in of_rank):
        total[point] += energy
    return np.asarray(np.sqrt(total))
