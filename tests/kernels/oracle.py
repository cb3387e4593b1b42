# SPDX-License-Identifier: BSD-3-Clause
"""The lattice Boltzmann method in plain NumPy, written from the equations alone: what the kernels are compared with.

It keeps its own velocity set in its own order, populations that are not shifted, and a dictionary of sites; only
`to_solver` and `from_solver` know the order and the shift of the solver's states, and match directions by vector.
Sources: Guo, Zheng and Shi 2002, doi:10.1103/PhysRevE.65.046308; Ginzburg, Verhaeghe and d'Humieres 2008 (TRT);
Nash et al. 2014, doi:10.1103/PhysRevE.89.023303; Ladd 1994, doi:10.1017/S0022112094001771.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from seiche.domain.sites import LINK_VECTORS, SiteSet
from seiche.flow import Bgk, CarreauYasuda, FlowModel, PressureIolet, Trt, VelocityIolet
from seiche.flow.velocity_set import C as SOLVER_ORDER

Floats = npt.NDArray[np.float64]

VECTORS = np.array(
    [(x, y, z) for z in (1, 0, -1) for y in (-1, 0, 1) for x in (0, 1, -1) if x * x + y * y + z * z <= 2], np.int64
)
WEIGHTS = np.array([{0: 1 / 3, 1: 1 / 18, 2: 1 / 36}[int(c @ c)] for c in VECTORS])
OPPOSITE = np.array([int(np.flatnonzero((VECTORS == -c).all(axis=1))[0]) for c in VECTORS])
PLACE = np.array([int(np.flatnonzero((VECTORS == c).all(axis=1))[0]) for c in SOLVER_ORDER])


def from_solver(state: Floats) -> Floats:
    """Return whole populations in the order of `VECTORS`."""
    mine = np.empty_like(state, np.float64)
    mine[:, PLACE] = state
    return mine + WEIGHTS


def to_solver(populations: Floats) -> Floats:
    """Return shifted populations in the solver's order."""
    return (populations - WEIGHTS)[:, PLACE]


def equilibrium(rho: Floats, u: Floats) -> Floats:
    cu = u @ VECTORS.T
    return WEIGHTS * rho[:, None] * (1 + 3 * cu + 4.5 * cu**2 - 1.5 * np.sum(u * u, axis=1)[:, None])


@dataclass
class Oracle:
    """Sites and model; `relaxation` (n,) is omega+ of the last step, `inflow` the mass through each iolet in it."""

    sites: SiteSet
    model: FlowModel
    relaxation: Floats = field(init=False)
    inflow: Floats = field(init=False)
    arrived: Floats = field(init=False)
    even_part: Floats = field(init=False)

    def __post_init__(self) -> None:
        """Find the upwind sites and the links through iolets."""
        rheology = self.model.rheology
        rest = rheology.viscosity_zero if isinstance(rheology, CarreauYasuda) else rheology.viscosity
        self.relaxation = np.full(len(self.sites), 1 / (3 * rest + 0.5))
        self.inflow = np.zeros(len(self.sites.iolets))
        self.force = np.array(self.model.body_force)
        index = {tuple(int(v) for v in place): row for row, place in enumerate(self.sites.coords)}
        boundary = {int(site): row for row, site in enumerate(self.sites.boundary)}
        links = {tuple(int(v) for v in vector): row for row, vector in enumerate(LINK_VECTORS)}
        self.upwind = np.full((len(self.sites), 19), -1, np.int64)
        self.iolet_links: list[tuple[int, int, int]] = []
        for place, row in index.items():
            for q, c in enumerate(VECTORS):
                if not c.any():
                    self.upwind[row, q] = row
                    continue
                cut = row in boundary and self.sites.link_kind[boundary[row], links[tuple(int(-v) for v in c)]] != 0
                there = tuple(
                    int((v - d) % extent if wraps else v - d)
                    for v, d, extent, wraps in zip(place, c, self.sites.shape, self.sites.periodic, strict=True)
                )
                if not cut:
                    self.upwind[row, q] = index.get(there, -1)
        for site, row in boundary.items():
            for q, c in enumerate(VECTORS):
                if c.any() and self.sites.link_kind[row, links[tuple(int(v) for v in c)]] >= 2:
                    self.iolet_links.append((site, q, int(self.sites.link_iolet[row, links[tuple(int(v) for v in c)]])))

    def arriving(self, leaving: Floats) -> Floats:
        """Stream: what arrives along c left the site at x - c, or comes back from the wall."""
        return np.where(
            self.upwind >= 0, leaving[self.upwind, np.arange(19)], leaving[np.arange(len(leaving))[:, None], OPPOSITE]
        )

    def moments(self, f: Floats) -> tuple[Floats, Floats]:
        rho = f.sum(axis=1)
        return rho, (f @ VECTORS + 0.5 * self.force) / rho[:, None]

    def momentum_flux(self, f: Floats) -> Floats:
        """Return sum c c (f - feq) + (u g + g u)/2, (n, 3, 3)."""
        rho, u = self.moments(f)
        second = np.einsum("nq,qa,qb->nab", f - equilibrium(rho, u), VECTORS, VECTORS)
        return second + 0.5 * (u[:, :, None] * self.force + self.force[:, None] * u[:, None, :])

    def shear_rate(self, f: Floats) -> Floats:
        strain = -1.5 * (self.relaxation / f.sum(axis=1))[:, None, None] * self.momentum_flux(f)
        return np.sqrt(2 * np.sum(strain**2, axis=(1, 2)))

    def collide(self, f: Floats) -> Floats:
        rho, u = self.moments(f)
        g, rheology = self.force, self.model.rheology
        if isinstance(rheology, CarreauYasuda):
            viscosity = np.array([rheology.viscosity(float(shear)) for shear in self.shear_rate(f)])
            self.relaxation = 1 / (0.5 + 3 * viscosity)
        plus = self.relaxation
        minus = plus
        if isinstance(self.model.collision, Trt):
            minus = 1 / (0.5 + self.model.collision.magic / (1 / plus - 0.5))
        feq, cu, cg = equilibrium(rho, u), u @ VECTORS.T, VECTORS @ g
        if isinstance(self.model.collision, Bgk):
            source = WEIGHTS * (3 * (cg - (u @ g)[:, None]) + 9 * cu * cg)
            return f - plus[:, None] * (f - feq) + (1 - 0.5 * plus)[:, None] * source
        even_source = WEIGHTS * (9 * cu * cg - 3 * (u @ g)[:, None])
        odd_source = WEIGHTS * 3 * cg
        off = f - feq
        even, odd = 0.5 * (off + off[:, OPPOSITE]), 0.5 * (off - off[:, OPPOSITE])
        f = f - plus[:, None] * even - minus[:, None] * odd
        return f + (1 - 0.5 * plus)[:, None] * even_source + (1 - 0.5 * minus)[:, None] * odd_source

    def apply_iolets(self, f: Floats, time: float) -> Floats:
        """Replace what left through the iolets by what comes back; conditions hold at `time`."""
        result = f.copy()
        rho = f.sum(axis=1)
        u = (f @ VECTORS - 0.5 * self.force) / rho[:, None]  # the collision added g to sum c f
        self.inflow[:] = 0.0
        for site, q, number in self.iolet_links:
            condition, plane = self.model.iolets[number], self.sites.iolets[number]
            normal, c = np.array(plane.normal), VECTORS[q]
            if isinstance(condition, PressureIolet) and condition.scheme == "anti-bounce-back":
                # Left and back together: 2 e+ + (2 - omega+) n+, n+ from its second moment (Ginzburg et al. 2008).
                seen = self.moments(self.arrived)[1][site]
                both = equilibrium(np.array([condition.mean]), seen[None])[0]
                back = both[q] + both[OPPOSITE[q]] + self.even_part[site, q] - f[site, q]
            elif isinstance(condition, PressureIolet):
                turn = 2 * np.pi * time / condition.period + condition.phase
                target = np.array([condition.mean + condition.amplitude * np.cos(turn)])
                along = (u[site] @ normal) * normal
                back = equilibrium(target, along[None])[0, OPPOSITE[q]]
            else:
                middle = np.array(self.sites.origin) / self.sites.spacing + self.sites.coords[site] + 0.5 * c
                speed = normal * self.speed(condition, number, middle, time)
                back = f[site, q] - 6 * WEIGHTS[q] * rho[site] * (speed @ c)
            self.inflow[number] += back - f[site, q]
            result[site, q] = back
        return result

    def speed(self, condition: VelocityIolet, number: int, place: Floats, time: float) -> float:
        """Return the velocity along the normal at `place` (lattice units)."""
        from scipy.special import jv

        plane = self.sites.iolets[number]
        radius = plane.radius / self.sites.spacing
        offset = place - np.array(plane.center) / self.sites.spacing
        r = np.linalg.norm(np.cross(offset, plane.normal)) / radius
        if r >= 1:
            return 0.0
        value = 2 * condition.mean * (1 - r**2)
        for k, harmonic in enumerate(condition.harmonics, start=1):
            omega = 2 * np.pi * k / condition.period
            beta = 1j**1.5 * radius * np.sqrt(omega / condition.viscosity)
            profile = (1 - jv(0, beta * r) / jv(0, beta)) / (1 - 2 * jv(1, beta) / (beta * jv(0, beta)))
            value += float((harmonic * profile * np.exp(1j * omega * time)).real)
        return float(value)

    def step(self, leaving: Floats, time_step: int) -> Floats:
        self.arrived = self.arriving(leaving)
        projector = np.einsum("qa,qb->qab", VECTORS, VECTORS) - np.eye(3) / 3
        even = 4.5 * WEIGHTS * np.einsum("qab,nab->nq", projector, self.momentum_flux(self.arrived))
        self.even_part = (2 - self.relaxation)[:, None] * even
        return self.apply_iolets(self.collide(self.arrived), time_step + 0.5)
