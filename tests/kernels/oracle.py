# SPDX-License-Identifier: BSD-3-Clause
"""The lattice Boltzmann method in plain NumPy, written from the equations alone: what the kernels are compared with.

It keeps its own velocity sets in its own order, populations that are not shifted, and a dictionary of sites; only
`to_solver` and `from_solver` know the order and the shift of the solver's states, and match directions by vector.
Sources: Guo, Zheng and Shi 2002, doi:10.1103/PhysRevE.65.046308; Ginzburg, Verhaeghe and d'Humieres 2008 (TRT);
d'Humieres et al. 2002, doi:10.1098/rsta.2001.0955 (MRT: projections on orthogonal polynomials);
Nash et al. 2014, doi:10.1103/PhysRevE.89.023303; Ladd 1994, doi:10.1017/S0022112094001771.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from seiche.domain.sites import LINK_VECTORS, SiteSet
from seiche.flow import Bgk, FlowModel, Mrt, Newtonian, PressureIolet, Regularised, Solver, VelocityIolet
from seiche.flow.state import site_state
from seiche.flow.velocity_set import VELOCITY_SETS

Floats = npt.NDArray[np.float64]

#: Squared lengths of the vectors of each set, with their weights.
SHELLS = {
    "D3Q15": {0: 2 / 9, 1: 1 / 9, 3: 1 / 72},
    "D3Q19": {0: 1 / 3, 1: 1 / 18, 2: 1 / 36},
    "D3Q27": {0: 8 / 27, 1: 2 / 27, 2: 1 / 54, 3: 1 / 216},
}


class Lattice:
    """Vectors, weights and opposite directions; `place` maps the solver's order to this one."""

    def __init__(self, name: str) -> None:
        shells = SHELLS[name]
        cube = [(x, y, z) for z in (1, 0, -1) for y in (-1, 0, 1) for x in (0, 1, -1)]
        self.vectors = np.array([c for c in cube if int(np.dot(c, c)) in shells], np.int64)
        self.weights = np.array([shells[int(c @ c)] for c in self.vectors])
        self.opposite = self.find(-self.vectors)
        self.place = self.find(VELOCITY_SETS[name].vectors)
        x, y, z = self.vectors.T
        self.shear = self.projection(x * y, x * z, y * z, x * x - y * y, x * x + y * y - 2 * z * z)
        self.trace = self.projection(x * x + y * y + z * z - 1)

    def find(self, vectors: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.array([int(np.flatnonzero((self.vectors == c).all(axis=1))[0]) for c in vectors])

    def projection(self, *polynomials: npt.NDArray[np.int64]) -> Floats:
        """Return the matrix (Q, Q) that takes populations to their part in orthogonal polynomials of the vectors."""
        parts = [np.outer(self.weights * p, p) / np.sum(self.weights * p * p) for p in polynomials]
        return np.sum(parts, axis=0)

    def from_solver(self, state: Floats) -> Floats:
        """Return whole populations in this order."""
        own = np.empty_like(state, np.float64)
        own[:, self.place] = state
        return own + self.weights

    def to_solver(self, populations: Floats) -> Floats:
        """Return shifted populations in the solver's order."""
        return (populations - self.weights)[:, self.place]

    def equilibrium(self, rho: Floats, u: Floats) -> Floats:
        cu = u @ self.vectors.T
        return self.weights * rho[:, None] * (1 + 3 * cu + 4.5 * cu**2 - 1.5 * np.sum(u * u, axis=1)[:, None])


LATTICES = {name: Lattice(name) for name in SHELLS}
D3Q19 = LATTICES["D3Q19"]
from_solver, to_solver, equilibrium = D3Q19.from_solver, D3Q19.to_solver, D3Q19.equilibrium


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
        self.lattice = LATTICES[self.model.velocity_set]
        vectors = self.lattice.vectors
        rheology = self.model.rheology
        rest = rheology.viscosity if isinstance(rheology, Newtonian) else rheology.viscosity(0.0)
        self.relaxation = np.full(len(self.sites), 1 / (3 * rest + 0.5))
        self.inflow = np.zeros(len(self.sites.iolets))
        self.force = np.tile(self.model.body_force, (len(self.sites), 1))
        index = {tuple(int(v) for v in position): row for row, position in enumerate(self.sites.coords)}
        boundary = {int(site): row for row, site in enumerate(self.sites.boundary)}
        links = {tuple(int(v) for v in vector): row for row, vector in enumerate(LINK_VECTORS)}
        self.upwind = np.full((len(self.sites), len(vectors)), -1, np.int64)
        self.iolet_links: list[tuple[int, int, int]] = []
        for position, row in index.items():
            for q, c in enumerate(vectors):
                if not c.any():
                    self.upwind[row, q] = row
                    continue
                cut = row in boundary and self.sites.link_kind[boundary[row], links[tuple(int(-v) for v in c)]] != 0
                remote = tuple(
                    int((v - d) % extent if wraps else v - d)
                    for v, d, extent, wraps in zip(position, c, self.sites.shape, self.sites.periodic, strict=True)
                )
                if not cut:
                    self.upwind[row, q] = index.get(remote, -1)
        for site, row in boundary.items():
            for q, c in enumerate(vectors):
                if c.any() and self.sites.link_kind[row, links[tuple(int(v) for v in c)]] >= 2:
                    self.iolet_links.append((site, q, int(self.sites.link_iolet[row, links[tuple(int(v) for v in c)]])))

    def arriving(self, leaving: Floats) -> Floats:
        """Stream: what arrives along c left the site at x - c, or comes back from the wall."""
        here, every = np.arange(len(leaving))[:, None], np.arange(leaving.shape[1])
        return np.where(self.upwind >= 0, leaving[self.upwind, every], leaving[here, self.lattice.opposite])

    def moments(self, f: Floats) -> tuple[Floats, Floats]:
        rho = f.sum(axis=1)
        return rho, (f @ self.lattice.vectors + 0.5 * self.force) / rho[:, None]

    def momentum_flux(self, f: Floats) -> Floats:
        """Return sum c c (f - feq) + (u g + g u)/2, (n, 3, 3)."""
        (rho, u), c = self.moments(f), self.lattice.vectors
        second = np.einsum("nq,qa,qb->nab", f - self.lattice.equilibrium(rho, u), c, c)
        return second + 0.5 * (u[:, :, None] * self.force[:, None, :] + self.force[:, :, None] * u[:, None, :])

    def strain_rate(self, f: Floats) -> Floats:
        """Return the strain rate (n, 3, 3); its trace relaxes with a rate of its own where there is one."""
        flux, rate = self.momentum_flux(f), self.relaxation[:, None, None]
        collision = self.model.collision
        bulk = collision.bulk if isinstance(collision, Mrt) and collision.bulk is not None else rate
        trace = np.trace(flux, axis1=1, axis2=2)[:, None, None] * np.eye(3) / 3
        return -1.5 * (rate * (flux - trace) + bulk * trace) / f.sum(axis=1)[:, None, None]

    def shear_rate(self, f: Floats) -> Floats:
        return np.sqrt(2 * np.sum(self.strain_rate(f) ** 2, axis=(1, 2)))

    def collide(self, f: Floats) -> Floats:
        (rho, u), lattice = self.moments(f), self.lattice
        g, rheology, collision = self.force, self.model.rheology, self.model.collision
        if not isinstance(rheology, Newtonian):
            viscosity = np.array([rheology.viscosity(float(shear)) for shear in self.shear_rate(f)])
            self.relaxation = 1 / (0.5 + 3 * viscosity)
        plus = self.relaxation
        if isinstance(collision, Regularised):  # all but the stress is forgotten (Latt and Chopard 2006)
            minus = np.ones_like(plus)
        else:
            minus = plus if isinstance(collision, Bgk) else 1 / (0.5 + collision.magic / (1 / plus - 0.5))
        off, cu, cg = f - lattice.equilibrium(rho, u), u @ lattice.vectors.T, g @ lattice.vectors.T
        source = lattice.weights * (3 * (cg - np.sum(u * g, axis=1)[:, None]) + 9 * cu * cg)
        if isinstance(collision, Bgk):
            return f - plus[:, None] * off + (1 - 0.5 * plus)[:, None] * source

        def parts(values: Floats) -> list[Floats]:
            even, odd = 0.5 * (values + values[:, lattice.opposite]), 0.5 * (values - values[:, lattice.opposite])
            shear, trace = values @ lattice.shear.T, values @ lattice.trace.T
            return [shear, trace, even - shear - trace, odd]

        bulk, rest = (collision.bulk, collision.even) if isinstance(collision, Mrt) else (None, None)
        rest = 1.0 if isinstance(collision, Regularised) else rest
        rates = [plus, plus if bulk is None else bulk, plus if rest is None else rest, minus]
        for rate, part, force in zip(rates, parts(off), parts(source), strict=True):
            column = np.broadcast_to(rate, len(f))[:, None]
            f = f - column * part + (1 - 0.5 * column) * force
        return f

    def apply_iolets(self, f: Floats, time: float) -> Floats:
        """Replace what left through the iolets by what comes back; conditions hold at `time`."""
        result = f.copy()
        rho = f.sum(axis=1)
        u = (f @ self.lattice.vectors - 0.5 * self.force) / rho[:, None]  # the collision added g to sum c f
        self.inflow[:] = 0.0
        for site, q, number in self.iolet_links:
            condition, plane = self.model.iolets[number], self.sites.iolets[number]
            normal, c = np.array(plane.normal), self.lattice.vectors[q]
            if isinstance(condition, PressureIolet) and condition.scheme == "anti-bounce-back":
                # Left and back together: 2 e+ + (2 - omega+) n+, n+ from its second moment (Ginzburg et al. 2008).
                seen = self.moments(self.arrived)[1][site]
                both = self.lattice.equilibrium(np.array([condition.mean]), seen[None])[0]
                back = both[q] + both[self.lattice.opposite[q]] + self.even_part[site, q] - f[site, q]
            elif isinstance(condition, PressureIolet):
                turn = 2 * np.pi * time / condition.period + condition.phase
                target = np.array([condition.mean + condition.amplitude * np.cos(turn)])
                along = (u[site] @ normal) * normal
                back = self.lattice.equilibrium(target, along[None])[0, self.lattice.opposite[q]]
            else:
                middle = np.array(self.sites.origin) / self.sites.spacing + self.sites.coords[site] + 0.5 * c
                speed = normal * self.speed(condition, number, middle, time)
                back = f[site, q] - 6 * self.lattice.weights[q] * rho[site] * (speed @ c)
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
        projector = np.einsum("qa,qb->qab", self.lattice.vectors, self.lattice.vectors) - np.eye(3) / 3
        even = 4.5 * self.lattice.weights * np.einsum("qab,nab->nq", projector, self.momentum_flux(self.arrived))
        self.even_part = (2 - self.relaxation)[:, None] * even
        return self.apply_iolets(self.collide(self.arrived), time_step + 0.5)


def random_state(sites: SiteSet, velocity_set: str = "D3Q19") -> Floats:
    """Return shifted populations near a random equilibrium: density within 2 %, Mach below 0.1, 10 % off it."""
    random, lattice = np.random.default_rng(1), LATTICES[velocity_set]
    rho, u = 1 + random.uniform(-0.02, 0.02, len(sites)), random.uniform(-0.03, 0.03, (len(sites), 3))
    noise = random.uniform(-2e-3, 2e-3, (len(sites), len(lattice.weights)))
    return lattice.to_solver(lattice.equilibrium(rho, u)) + noise


def fitting(model: FlowModel, layout: str) -> FlowModel:
    """Return the model with a collision that the layout can hold."""
    return replace(model, collision=Regularised()) if layout == "moments" else model


def compare_with_oracle(
    solver: Solver, oracle: Oracle, steps: int, bound: float, *, flow: float | None = None
) -> Floats:
    """Step both from the same random state; return the populations of the oracle.

    After each step they must agree to `bound` a step, and what entered through the iolets to `flow`.
    """
    state = random_state(solver.sites, solver.model.velocity_set)
    solver.set_state(site_state(solver, {"populations": state, "relaxation": oracle.relaxation}))
    if solver.layout == "moments":
        state = solver.state()["populations"]  # what is left of it
    populations = oracle.lattice.from_solver(state)
    for step in range(steps):
        solver.advance()
        populations = oracle.step(populations, step)
        error = np.abs(solver.state()["populations"] - oracle.lattice.to_solver(populations)).max()
        assert error < bound * (step + 1)
        if flow is not None:
            np.testing.assert_allclose(solver.measures.iolet_flow(), oracle.inflow, rtol=0, atol=flow)
    return populations
