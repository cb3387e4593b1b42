# SPDX-License-Identifier: BSD-3-Clause
"""Exact pressure of wave packets around a fluid cylinder and a layer; outside, density and speed are 1."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import h1vp, hankel1, jv, jvp

Floats = npt.NDArray[np.float64]
#: Wavelength of packets, and half their width.
WAVELENGTH, WIDTH = 1.0, 0.6
#: Density and speed of the cylinder.
DENSITY, SPEED = 1.4, 1.9 / 1.5


def packet(x: Floats) -> Floats:
    return np.asarray(np.cos(2 * np.pi * x / WAVELENGTH) * np.exp(-(x**2) / (2 * WIDTH**2)))


def cylinder_pressure(points: Floats, times: Floats, start: float) -> Floats:
    """Return the pressure (times, points) of a packet along x scattered by the cylinder, by Bessel functions."""
    count, spacing = 512, 0.05
    x = spacing * (np.arange(count) - 100)
    spectrum = np.fft.rfft(packet(-x - start))  # the packet passes x = 0 at the time -start
    omega = 2 * np.pi * np.fft.rfftfreq(count, spacing)
    r, angle = np.linalg.norm(points, axis=1), np.arctan2(points[:, 1], points[:, 0])
    z, c = DENSITY * SPEED, SPEED
    result = np.zeros((len(times), len(points)))
    for k, weight in zip(omega[1:], spectrum[1:], strict=True):
        if abs(weight) < 1e-6 * abs(spectrum).max():
            continue
        order = np.arange(int(k * max(1.0, r.max())) + 20)
        factor = np.where(order == 0, 1.0, 2.0) * 1j**order
        inner, inner_slope = jv(order, k / c), jvp(order, k / c)
        outgoing, slope = hankel1(order, k), h1vp(order, k)
        scattered = (inner_slope * jv(order, k) - z * inner * jvp(order, k)) / (
            z * inner * slope - inner_slope * outgoing
        )
        passed = (jv(order, k) + scattered * outgoing) / inner
        kr = k * r[:, None]
        outside = jv(order, kr) + scattered * np.nan_to_num(hankel1(order, np.maximum(kr, k)))
        field = np.where(r[:, None] > 1, outside, passed * jv(order, kr / c))
        field = (field * factor * np.cos(order * angle[:, None])).sum(1)
        # A time dependence exp(-i omega t) belongs to waves exp(ikx) along x.
        phase = np.exp(-1j * k * (times - x[0]))[:, None]
        result += 2 / count * (phase * np.conj(weight) * field).real
    return result


def layer_pressure(along: Floats, time: float, start: float, thickness: float) -> Floats:
    """Return the pressure of a packet scattered by a layer of the cylinder's medium in front of which it starts.

    `along` is the distance behind the front of the layer, `start` < 0 that of the packet at time 0. The echoes in the
    layer are summed.
    """
    z = DENSITY * SPEED
    back, transmitted_in, transmitted_out = (z - 1) / (z + 1), 2 * z / (z + 1), 2 / (z + 1)
    before = packet(along - time - start) + back * packet(-along - time - start)
    inside, transmitted = np.zeros_like(along), np.zeros_like(along)
    for echo in range(30):
        # Each further pair of reflections in the layer multiplies the wave by back^2.
        strength, slowness = transmitted_in * back ** (2 * echo), 1 / SPEED
        late = time - 2 * echo * thickness * slowness + start
        inside += strength * packet(late - along * slowness)
        inside -= strength * back * packet(late - (2 * thickness - along) * slowness)
        transmitted += strength * transmitted_out * packet(late - thickness * slowness - (along - thickness))
        before -= strength * back * transmitted_out * packet(late - 2 * thickness * slowness + along)
    return np.where(along < 0, before, np.where(along < thickness, inside, transmitted))
