# SPDX-License-Identifier: BSD-3-Clause
"""The axisymmetric k-space scheme in plain NumPy, with matrices of cosines and sines along the radius.

Written from the published equations (Treeby, Wise, Kuklis, Jaros and Cox 2020, doi 10.1121/10.0002177). Modes along the
radius are found by inverting the matrices, so no symmetric continuation is used. The exact solution for a Gaussian ball
in an absorbing medium is an integral over wave numbers.
"""

from __future__ import annotations

import numpy as np

from kspace_oracle import Oracle
from seiche.ultrasound.problem import Problem


class AxisymmetricOracle(Oracle):
    """Fields p, u[i], rho[i] of an axisymmetric problem after `step(t)` for t = 0, 1, ..."""

    def __init__(self, problem: Problem) -> None:
        (_, points), (_, d) = problem.shape, problem.spacing
        rigid = problem.outer_end == "rigid"
        mode = np.arange(points) if rigid else np.arange(points) + 0.5
        self.radial = np.pi * mode / (d * (points - 1 if rigid else points))
        at, between = np.arange(points)[:, None] * d, (np.arange(points)[:, None] + 0.5) * d
        self.radius = between.T
        self.cosine, self.between_cosine = np.cos(self.radial * at), np.cos(self.radial * between)
        self.sine = np.sin(self.radial * between)
        self.half = points - 1 if rigid else points  # independent values at half points
        self.parity = "even"
        super().__init__(problem)

    def _absorption(self) -> None:
        problem = self.problem
        size = problem.pml[1].size
        for table in (self.pml[1], self.pml_sg[1]):
            table[:, :size] = 1.0
        self.magnitude = np.sqrt(self.k[0] ** 2 + self.radial**2)
        self.kappa = np.sinc(problem.reference_speed * problem.dt / 2 * self.magnitude / np.pi)
        self.source_kappa = np.cos(problem.reference_speed * problem.dt / 2 * self.magnitude)
        super()._absorption()

    def modes(self, field: np.ndarray, parity: str) -> np.ndarray:
        """Return the amplitudes of a field along the radius."""
        if parity == "even":
            return field @ np.linalg.inv(self.cosine).T
        columns = slice(1, None) if parity == "odd" and self.half < len(self.radial) else slice(0, self.half)
        matrix = (self.sine if parity == "odd" else self.between_cosine)[: self.half, columns]
        amplitudes = np.zeros_like(field)
        amplitudes[:, columns] = field[:, : self.half] @ np.linalg.inv(matrix).T
        return amplitudes

    def spectral(self, field: np.ndarray, factor: np.ndarray) -> np.ndarray:
        matrix = self.cosine if self.parity == "even" else self.sine
        return np.fft.ifft(np.fft.fft(self.modes(field, self.parity), axis=0) * factor, axis=0).real @ matrix.T

    def axial(self, amplitudes: np.ndarray, factor: np.ndarray) -> np.ndarray:
        return np.fft.ifft(np.fft.fft(amplitudes, axis=0) * factor, axis=0).real

    def gradient(self, field: np.ndarray, i: int, sign: int) -> np.ndarray:
        k, d = self.k[0], self.problem.spacing[0]
        if i == 0:
            factor = 1j * k * np.exp(sign * 0.5j * k * d) * self.kappa
            return self.axial(self.modes(field, "even"), factor) @ self.cosine.T
        if sign == 1:
            return -self.axial(self.modes(field, "even"), self.kappa * self.radial) @ self.sine.T
        slope = self.modes(field, "odd") * self.radial + self.modes(field / self.radius, "quotient")
        return self.axial(slope, self.kappa) @ self.cosine.T

    def inject(self, fields: list[np.ndarray], source, t: int) -> None:
        self.parity = "odd" if source.quantity == self.problem.axes[1] else "even"
        super().inject(fields, source, t)
        self.parity = "even"

    def not_staggered(self, i: int) -> np.ndarray:
        if i == 0:
            return super().not_staggered(0)
        return self.modes(self.u[1], "odd") @ np.sin(self.radial * (self.radius.T - 0.5 * self.problem.spacing[1])).T


def gaussian_ball(radius: np.ndarray, width: float, time: float, *, speed: float = 1.0, loss: tuple = (0.0, 0.0, 1.0)):
    """Return the pressure of a ball exp(-R^2/(2 width^2)) at rest at time zero, at distances `radius` from its centre.

    `loss` = (tau, eta, y) of p = c^2 (1 + tau d/dt (-laplacian)^(y/2 - 1) + eta (-laplacian)^((y - 1)/2)) rho.
    """
    tau, eta, y = loss
    k = np.linspace(0, 12 / width, 6001)[1:]
    damping = speed**2 * tau * k**y / 2
    frequency = np.sqrt((speed * k) ** 2 * (1 + eta * k ** (y - 1)) - damping**2 + 0j)
    decay = np.exp(-damping * time)
    rho = (decay * (np.cos(frequency * time) + damping / frequency * np.sin(frequency * time))).real
    rate = -(decay * ((frequency**2 + damping**2) / frequency) * np.sin(frequency * time)).real
    pressure = rho * (1 + eta * k ** (y - 1)) + tau * k ** (y - 2) * rate
    spectrum = np.sqrt(2 / np.pi) * width**3 * k**2 * np.exp(-((k * width) ** 2) / 2) * pressure
    return np.array([np.sum(spectrum * np.sinc(k * r / np.pi)) for r in radius.ravel()]).reshape(radius.shape) * (
        k[1] - k[0]
    )
