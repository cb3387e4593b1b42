# SPDX-License-Identifier: BSD-3-Clause
"""Surface motion due to a double couple below a layer, by wavenumber integration: the reference for LOH.1 and LOH.3.

With harmonics Y = J_2(kr) sin 2 phi and Y' = J_2(kr) cos 2 phi, a wave of frequency omega has the vertical
motion U Y. Its horizontal motions are V grad Y/k and W curl(e_z Y')/k. Depth z points downwards. In a uniform medium
(U, V) are sums of (nu_p, k) exp(nu_p z), (k, nu_s) exp(nu_s z) and the same with -nu. W is a sum of exp(+-nu_s z), with
nu^2 = k^2 - (omega/c)^2. The waves of the source are those in a full space. Frequencies have a small negative imaginary
part. It moves the poles off the real axis and damps the waves of the periodic image sources of a discrete sum over wave
numbers (Bouchon 1981).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.waves.attenuation import fitted_shares, relaxation

Floats = npt.NDArray[np.float64]
Complex = npt.NDArray[np.complex128]

#: Number of frequencies whose linear systems are solved together.
_BATCH = 16


@dataclass(frozen=True)
class LayerMedium:
    """Density, wave speeds at the frequency `reference`, and quality factors (infinite: lossless) in `band` (Hz)."""

    density: float
    cp: float
    cs: float
    qp: float = np.inf
    qs: float = np.inf
    band: tuple[float, float] = (0.15, 15.0)
    reference: float = 2.5

    def moduli(self, omega: Complex) -> tuple[Complex, Complex]:
        """Return lambda + 2 mu and mu at complex frequencies, with three relaxation mechanisms each.

        Each has its own relaxation and quality factor, whereas the solver relaxes the bulk and shear moduli.
        """
        frequencies = 2 * np.pi * np.geomspace(*self.band, 3)
        moduli = []
        for speed, quality in ((self.cp, self.qp), (self.cs, self.qs)):
            coefficients = fitted_shares(quality, frequencies, self.band)
            at_reference = relaxation(coefficients, frequencies, 2 * np.pi * self.reference)
            unrelaxed = self.density * (speed * np.real(1 / np.sqrt(at_reference))) ** 2
            factors = np.array([1 - np.sum(coefficients * frequencies / (frequencies + 1j * w)) for w in omega])
            moduli.append(unrelaxed * factors)
        return moduli[0], moduli[1]


@dataclass(frozen=True)
class Layered:
    """A layer of `thickness` on a half space with a free surface; a double couple M_xy at `depth` below the layer."""

    layer: LayerMedium
    below: LayerMedium
    thickness: float
    depth: float

    def velocity(self, times: Floats, receivers: Floats, moment: float, sigma: float, delay: float) -> Floats:
        """Return radial, transverse and upward velocities on the surface, (times, receivers, 3).

        Args:
            times: equidistant from zero, with intervals much shorter than `sigma`.
            receivers: x and y of each receiver, relative to the source.
            moment: seismic moment.
            sigma: standard deviation of the Gaussian moment rate.
            delay: time of the maximum of the moment rate.
        """
        step, last = float(times[1] - times[0]), float(times[-1])
        count = 2 * len(times)
        damping = 1.5 * np.pi / last
        max_frequency = 5.5 / sigma
        real = 2 * np.pi * np.fft.rfftfreq(count, step)
        omega: Complex = np.asarray(real[: int(np.searchsorted(real, max_frequency)) + 1] - 1j * damping, np.complex128)
        r = np.linalg.norm(receivers, axis=1)
        spacing = 2 * np.pi / (2 * r.max() + 1.1 * self.below.cp * last)
        max_wavenumber = max(1.3 * max_frequency / min(self.layer.cs, self.below.cs), 15 / self.depth)
        k = spacing * (np.arange(int(max_wavenumber / spacing)) + 0.5)
        angle = np.arctan2(receivers[:, 1], receivers[:, 0])
        parts = [
            self._sum(*self._surface(k[None], omega[first : first + _BATCH]), k, spacing, r=r, angle=angle)
            for first in range(0, len(omega), _BATCH)
        ]
        response = np.concatenate(parts)
        rate = moment * np.exp(-0.5 * (sigma * omega) ** 2 - 1j * omega * delay)
        spectrum = np.zeros((count // 2 + 1, *response.shape[1:]), np.complex128)
        spectrum[: len(omega)] = rate[:, None, None] * response
        signal = np.fft.irfft(spectrum, count, axis=0)[: len(times)] / step
        return np.asarray(signal * np.exp(damping * times)[:, None, None])

    def _surface(self, k: Floats, omegas: Complex) -> tuple[Complex, Complex, Complex]:
        """Return U, V, W at the surface for unit moment, (frequencies, wave numbers)."""
        omega = omegas[:, None]
        shape = np.broadcast_shapes(k.shape, omega.shape)
        parts = []
        for medium in (self.layer, self.below):
            p_modulus, mu = (modulus[:, None] for modulus in medium.moduli(omegas))
            nu = [np.sqrt(k**2 - medium.density * omega**2 / modulus) for modulus in (p_modulus, mu)]
            parts.append((p_modulus, mu, *nu))
        (p_modulus1, mu1, p1, s1), (p_modulus2, mu2, p2, s2) = parts
        decay_p, decay_s = np.exp(-p1 * self.thickness), np.exp(-s1 * self.thickness)
        source_distance = self.depth - self.thickness
        strength = k**2 / (4 * np.pi * self.below.density * omega**2)
        source_p = strength * k / p2 * np.exp(-p2 * source_distance)
        source_s = -strength * np.exp(-s2 * source_distance)

        def wave(p_modulus: Any, mu: Any, nu: Any, shear: bool, sign: int) -> list[Any]:
            """Return U, V and the tractions P, S of a wave exp(sign nu z)."""
            u, v = (k + 0 * nu, sign * nu) if shear else (sign * nu, k + 0 * nu)
            dz_factor = sign * nu
            traction_p = p_modulus * dz_factor * u - k * (p_modulus - 2 * mu) * v
            return [u, v, traction_p, mu * (dz_factor * v + k * u)]

        # Unknowns: P and S amplitudes of upgoing (1 at the interface) and downgoing waves (1 at the surface) in the
        # layer, and of downgoing waves in the half-space.
        columns: list[tuple[list[Any], Any, Any]] = [
            (wave(p_modulus1, mu1, p1, False, 1), decay_p, 1.0),
            (wave(p_modulus1, mu1, s1, True, 1), decay_s, 1.0),
            (wave(p_modulus1, mu1, p1, False, -1), 1.0, decay_p),
            (wave(p_modulus1, mu1, s1, True, -1), 1.0, decay_s),
        ]
        matrix = np.zeros((*shape, 6, 6), np.complex128)
        rhs = np.zeros((*shape, 6, 1), np.complex128)
        for column, (motion, top, bottom) in enumerate(columns):
            for row in range(2):
                matrix[..., row, column] = top * motion[2 + row]
            for row in range(4):
                matrix[..., 2 + row, column] = bottom * motion[row]
        for column, (nu2, shear, source) in enumerate(((p2, False, source_p), (s2, True, source_s))):
            down, up = wave(p_modulus2, mu2, nu2, shear, -1), wave(p_modulus2, mu2, nu2, shear, 1)
            for row in range(4):
                matrix[..., 2 + row, 4 + column] = -down[row]
                rhs[..., 2 + row, 0] += source * up[row]
        scale = np.abs(matrix).max(-1, keepdims=True)
        amplitudes = np.linalg.solve(matrix / scale, rhs / scale)[..., 0]
        u, v = (sum(amplitudes[..., q] * columns[q][0][row] * columns[q][1] for q in range(4)) for row in range(2))
        # W: an upgoing and a downgoing wave in the layer, and the wave reflected into the half-space.
        source = -strength * self.below.density * omega**2 / mu2 / s2 * np.exp(-s2 * source_distance)
        layer_impedance = mu1 * s1 * (1 - decay_s**2) / (1 + decay_s**2)
        reflection = (mu2 * s2 - layer_impedance) / (mu2 * s2 + layer_impedance)
        return u, v, source * (1 + reflection) * 2 * decay_s / (1 + decay_s**2)

    @staticmethod
    def _sum(u: Complex, v: Complex, w: Complex, k: Floats, spacing: float, *, r: Floats, angle: Floats) -> Complex:
        """Return the sums over wave numbers, (frequencies, receivers, 3): radial, transverse, upward."""
        from scipy.special import jv

        x = k[:, None] * r
        j2 = jv(2, x)
        derivative, j2_ratio = (jv(1, x) - jv(3, x)) / 2, 2 * j2 / x
        radial = (v @ derivative - w @ j2_ratio) * np.sin(2 * angle)
        transverse = (v @ j2_ratio - w @ derivative) * np.cos(2 * angle)
        return np.asarray(spacing * np.stack([radial, transverse, -(u @ j2) * np.sin(2 * angle)], -1))
