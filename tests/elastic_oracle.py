# SPDX-License-Identifier: BSD-3-Clause
"""The elastic pseudospectral scheme in plain NumPy, with full-size memory of the absorbing layers.

Written from theory/ultrasound, section 20. Stresses have the names of their axes, (0, 0) for sxx and (0, 1) for sxy.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from seiche.ultrasound.problem import Problem

#: Np/m at 1 rad/s for 1 dB/(MHz^2 cm).
NEPER = 100 * (1e-6 / (2 * np.pi)) ** 2 / (20 * np.log10(np.e))
#: Damping along every direction in a layer over that along its axis.
RATIO = 0.1


class ElasticOracle:
    """Fields v[i] and s[i, j] of an elastic problem after `step(t)` for t = 0, 1, ..."""

    def __init__(self, problem: Problem, ratio: float = RATIO) -> None:
        self.ratio = ratio
        self.problem, shape, n = problem, problem.shape, problem.dimensions
        density, speed, shear, loss, shear_loss = (
            np.broadcast_to(np.asarray(0.0 if value is None else value, float), shape)
            for value in (
                problem.density,
                problem.sound_speed,
                problem.elastic.shear_speed,
                None if problem.absorption is None else problem.absorption.alpha_coeff,
                problem.elastic.shear_alpha_coeff,
            )
        )
        self.mu, self.eta = density * shear**2, 2 * density * shear**3 * shear_loss * NEPER
        self.lam = density * speed**2 - 2 * self.mu
        self.chi = 2 * density * speed**3 * loss * NEPER - 2 * self.eta
        self.volume = [1 / mean(density, i) for i in range(n)]
        self.pairs = list(combinations(range(n), 2))
        self.mu_sg, self.eta_sg = ({p: harmonic(f, *p) for p in self.pairs} for f in (self.mu, self.eta))
        self.v = [np.zeros(shape) for _ in range(n)]
        self.s = {key: np.zeros(shape) for key in [(i, i) for i in range(n)] + self.pairs}
        self.memory: dict[tuple, np.ndarray] = {}
        self.decay = [[self._decay(j, shift) for shift in (0.0, 0.5)] for j in range(n)]

    def _decay(self, axis: int, shift: float) -> np.ndarray:
        problem = self.problem
        points, layer = problem.shape[axis], problem.pml[axis]
        table = np.zeros(points)
        for k in range(points):
            before, after = layer.size - (k + shift), k + shift + 1 + layer.size - points
            if k < layer.size:
                table[k] = before / layer.size
            elif k >= points - layer.size:
                table[k] = after / layer.size
        rate = layer.alpha * problem.reference_speed / problem.spacing[axis] * table**4
        shape = [1] * problem.dimensions
        shape[axis] = points
        return np.exp(-rate * problem.dt).reshape(shape)

    def derivative(self, field: np.ndarray, axis: int, forward: bool, key: tuple | None) -> np.ndarray:
        points, d = field.shape[axis], self.problem.spacing[axis]
        k = 2 * np.pi * np.fft.fftfreq(points, d)
        factor = 1j * k * np.exp((0.5j if forward else -0.5j) * k * d)
        shape = [1] * field.ndim
        shape[axis] = points
        slope = np.fft.ifft(np.fft.fft(field, axis=axis) * factor.reshape(shape), axis=axis).real
        if key is None:
            return slope
        decay = self.decay[axis][forward]
        self.memory[key] = decay ** (1 + self.ratio) * self.memory.get(key, 0.0) + (decay - 1) * slope
        return slope + self.memory[key]

    def advance(self, field: np.ndarray, rate: np.ndarray, axis: int, forward: bool, damped: bool) -> np.ndarray:
        factor = self.decay[axis][forward] ** self.ratio if damped else 1.0
        return factor * (field + self.problem.dt * rate)

    def accelerate(self, layers: bool = True) -> list[np.ndarray]:
        n = range(self.problem.dimensions)
        rates = []
        for i in n:
            rate = 0.0
            for j in n:
                key = ("v", i, j) if layers else None
                part = self.volume[i] * self.derivative(self.s[min(i, j), max(i, j)], j, i == j, key)
                self.v[i] = self.advance(self.v[i], part, j, i == j, layers)
                rate = rate + part
            rates.append(rate)
        return rates

    def deform(self, v: list[np.ndarray], lam, mu, mu_sg: dict, name: str) -> None:
        n, damped = range(self.problem.dimensions), name == "s"
        for i in n:
            for j in n:
                slope = self.derivative(v[i], j, i != j, (name, i, j))
                if i != j:
                    key = (min(i, j), max(i, j))
                    self.s[key] = self.advance(self.s[key], mu_sg[key] * slope, j, True, damped)
                    continue
                for k in n:
                    rate = (lam + 2 * mu if k == i else lam) * slope
                    self.s[k, k] = self.advance(self.s[k, k], rate, j, False, damped)

    def step(self, t: int) -> None:
        problem, n = self.problem, range(self.problem.dimensions)
        if t == 0 and problem.initial_pressure is not None:
            for i in n:
                self.s[i, i] = -np.array(problem.initial_pressure, float)
            forces = self.accelerate(layers=False)
            self.v = [-problem.dt / 2 * force for force in forces]
            return
        acceleration = self.accelerate()
        for source in problem.sources:
            if source.quantity in problem.axes:
                self.inject(self.v[problem.axes.index(source.quantity)], source, t, 1.0)
        self.deform(self.v, self.lam, self.mu, self.mu_sg, "s")
        if np.any(self.chi) or np.any(self.eta):
            self.deform(acceleration, self.chi, self.eta, self.eta_sg, "a")
        for source in problem.sources:
            if source.quantity == "p":
                speed = np.broadcast_to(problem.sound_speed, problem.shape).ravel()[source.points]
                for i in n:
                    self.inject(self.s[i, i], source, t, -problem.dimensions * speed**2)
            elif source.quantity[0] == "s":
                i, j = sorted(problem.axes.index(axis) for axis in source.quantity[1:])
                self.inject(self.s[i, j], source, t, 1.0)

    def inject(self, field: np.ndarray, source, t: int, factor) -> None:
        if t >= source.steps:
            return
        times = t + (np.zeros(source.points.size, int) if source.delays is None else source.delays)
        columns = np.arange(source.points.size) if source.samples.shape[1] > 1 else 0
        values = source.samples[times, columns] * (1.0 if source.weights is None else source.weights) * factor
        flat = field.reshape(-1)
        if source.mode == "dirichlet":
            flat[source.points] = values
        else:
            flat[source.points] += values

    @property
    def p(self) -> np.ndarray:
        n = self.problem.dimensions
        return -sum(self.s[i, i] for i in range(n)) / n


def mean(field: np.ndarray, axis: int) -> np.ndarray:
    """Return the mean of each point and the next one along an axis; the last point keeps its value."""
    return (field + following(field, axis)) / 2


def following(field: np.ndarray, axis: int) -> np.ndarray:
    last = np.take(field, [-1], axis)
    return np.concatenate([np.delete(field, 0, axis), last], axis)


def harmonic(field: np.ndarray, i: int, j: int) -> np.ndarray:
    """Return the harmonic mean of four points, zero if one of them is zero."""
    across = following(field, i)
    four = np.stack([field, across, following(field, j), following(across, j)])
    with np.errstate(divide="ignore"):
        return np.where((four > 0).all(axis=0), 4 / np.sum(1 / four, axis=0), 0.0)
