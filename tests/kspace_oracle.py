# SPDX-License-Identifier: BSD-3-Clause
"""The k-space scheme in plain NumPy: double precision, complex transforms, whole arrays, one formula per line.

Written from the published equations (Treeby, Jaros, Rendell and Cox 2012, doi 10.1121/1.4712021) for any number of
dimensions, to test the solver against.
"""

from __future__ import annotations

import numpy as np

from seiche.ultrasound.problem import Problem


class Oracle:
    """Fields p, u[i], rho[i] of a problem after `step(t)` for t = 0, 1, ..."""

    def __init__(self, problem: Problem, scheme: str = "exact") -> None:
        self.problem, self.scheme = problem, scheme
        shape, self.axes = problem.shape, range(problem.dimensions)
        as_array = lambda value: np.broadcast_to(np.asarray(value, float), shape).copy()  # noqa: E731
        self.c0, self.rho0 = as_array(problem.sound_speed), as_array(problem.density)
        self.bona = None if problem.BonA is None else as_array(problem.BonA)
        self.rho_sg = []
        for i in self.axes:
            after = np.roll(self.rho0, -1, i)
            last = tuple(-1 if j == i else slice(None) for j in self.axes)
            after[last] = self.rho0[last]
            self.rho_sg.append((self.rho0 + after) / 2)
        if problem.staggered_density is not None:
            self.rho_sg = [as_array(value) for value in problem.staggered_density]
        along = lambda v, i: v.reshape([-1 if j == i else 1 for j in self.axes])  # noqa: E731
        k = [2 * np.pi * np.fft.fftfreq(n, d) for n, d in zip(shape, problem.spacing, strict=True)]
        self.k = [along(value, i) for i, value in enumerate(k)]
        self.magnitude = np.sqrt(sum(value**2 for value in self.k))
        a = problem.reference_speed * problem.dt / 2 * self.magnitude
        self.kappa = np.where(a == 0, 1.0, np.sin(a) / np.where(a == 0, 1.0, a))
        self.source_kappa = np.cos(a)
        if scheme != "exact":
            self.kappa = np.ones(shape)
        self.separable = np.exp(-((2 * a) ** 2) / 12)
        self.pml, self.pml_sg = [], []
        for i in self.axes:
            for shift, where in ((0.0, self.pml), (0.5, self.pml_sg)):
                profile, size = np.zeros(shape[i]), problem.pml[i].size
                for n in range(1, size + 1):
                    profile[n - 1] = ((size + 1 - n - shift) / size) ** 4
                    profile[shape[i] - size + n - 1] = ((n + shift) / size) ** 4
                strength = problem.pml[i].alpha * problem.reference_speed / problem.spacing[i]
                where.append(along(np.exp(-problem.dt / 2 * strength * profile), i))
        self.p = np.zeros(shape)
        self.u, self.rho = [np.zeros(shape) for _ in self.axes], [np.zeros(shape) for _ in self.axes]
        self._absorption()

    def _absorption(self) -> None:
        absorption, relaxation = self.problem.absorption, self.problem.relaxation
        if relaxation is not None:
            h, labels = self.problem.dt / 2 / relaxation.times, relaxation.labels
            self.processes = [
                {"a": relaxation.strengths[labels, m], "h": h[labels, m], "kept": np.zeros(self.problem.shape)}
                for m in range(3)
            ]
        if absorption is None:
            return
        y = absorption.alpha_power
        a0 = np.asarray(absorption.alpha_coeff) * 100 / (20 * np.log10(np.e)) * (1e-6 / (2 * np.pi)) ** y
        self.tau = -2 * a0 * self.c0 ** (y - 1) * absorption.losses
        self.eta = 2 * a0 * self.c0**y * np.tan(np.pi * y / 2) * absorption.dispersion
        with np.errstate(divide="ignore"):
            self.powers = [np.where(self.magnitude > 0, self.magnitude**e, 0.0) for e in (y - 2, y - 1)]
        if absorption.gain_below is not None:
            self.tau = -self.tau
            q = np.clip(2 - (self.magnitude / absorption.gain_below) ** 2, 0, 1)
            self.powers = [power * q**2 * (3 - 2 * q) for power in self.powers]

    def spectral(self, field: np.ndarray, factor: np.ndarray) -> np.ndarray:
        return np.fft.ifftn(np.fft.fftn(field) * factor).real

    def gradient(self, field: np.ndarray, i: int, sign: int) -> np.ndarray:
        k, d = self.k[i], self.problem.spacing[i]
        return self.spectral(field, 1j * k * np.exp(sign * 0.5j * k * d) * self.kappa)

    def corrected(self) -> np.ndarray:
        """Return the pressure whose gradient drives the velocity."""
        if self.scheme == "separable":
            return self.spectral(self.p, self.separable)
        if self.scheme == "local4":
            parts = [self.gradient(self.gradient(self.p, i, 1) / self.rho_sg[i], i, -1) for i in self.axes]
            return self.p + self.problem.dt**2 / 12 * self.c0**2 * self.rho0 * sum(parts)
        return self.p

    def inject(self, fields: list[np.ndarray], source, t: int) -> None:
        if t >= source.steps:
            return
        time = t + (0 if source.delays is None else source.delays)
        has_signals = source.samples.shape[1] > 1
        values = source.samples[time, np.arange(source.points.size) if has_signals else 0]
        values = values * (1 if source.weights is None else source.weights)
        spread = np.zeros(self.problem.points)
        spread[source.points] = values
        if source.mode == "additive":
            spread = self.spectral(spread.reshape(self.problem.shape), self.source_kappa).ravel()
        for field in fields:
            if source.mode == "dirichlet":
                field.ravel()[source.points] = spread[source.points]
            else:
                field += spread.reshape(self.problem.shape)

    def step(self, t: int) -> None:
        problem, dt = self.problem, self.problem.dt
        corrected = self.corrected()
        for i in self.axes:
            slope = self.gradient(corrected, i, 1)
            self.u[i] = self.pml_sg[i] * (self.pml_sg[i] * self.u[i] - dt / self.rho_sg[i] * slope)
        for source in problem.sources:
            if source.quantity != "p":
                self.inject([self.u[problem.axes.index(source.quantity)]], source, t)
        du = [self.gradient(self.u[i], i, -1) for i in self.axes]
        mass = self.rho0 + (2 * sum(self.rho) if self.bona is not None else 0)
        for i in self.axes:
            self.rho[i] = self.pml[i] * (self.pml[i] * self.rho[i] - dt * mass * du[i])
        for source in problem.sources:
            if source.quantity == "p":
                self.inject(self.rho, source, t)
        rho = sum(self.rho)
        inside = rho.copy()
        if self.bona is not None:
            inside += self.bona * rho**2 / (2 * self.rho0)
        absorption = problem.absorption
        if absorption is not None and absorption.stokes:
            inside += self.tau * self.rho0 * sum(du)
        elif absorption is not None:
            inside += self.tau * self.spectral(self.rho0 * sum(du), self.powers[0])
            inside -= self.eta * self.spectral(rho, self.powers[1])
        if problem.relaxation is not None:
            inside -= self.relax(rho)
        self.p = self.c0**2 * inside
        if t == 0 and problem.initial_pressure is not None:
            self.p = np.array(problem.initial_pressure, float)
            self.rho = [self.p / (problem.dimensions * self.c0**2) for _ in self.axes]
            if problem.relaxation is not None:
                for process in self.processes:
                    process["kept"] = process["h"] * sum(self.rho)
            self.u = [dt / (2 * self.rho_sg[i]) * self.gradient(self.corrected(), i, 1) for i in self.axes]

    def relax(self, rho: np.ndarray) -> np.ndarray:
        """Advance tau d xi/dt + xi = rho by the trapezoidal rule and return the sum of a xi."""
        total = np.zeros_like(rho)
        for process in self.processes:
            h = process["h"]
            xi = (process["kept"] + h * rho) / (1 + h)
            process["kept"] = (1 - h) * xi + h * rho
            total += process["a"] * xi
        return total

    def not_staggered(self, i: int) -> np.ndarray:
        return self.spectral(self.u[i], np.exp(-0.5j * self.k[i] * self.problem.spacing[i]))
