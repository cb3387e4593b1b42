# SPDX-License-Identifier: BSD-3-Clause
"""Velocity profiles of developed flow in a round tube, with a mean of one over the opening (theory/flow, eq. 17)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

#: Maximum velocity of developed flow relative to the mean.
PARABOLA = 2.0


def parabola(r: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return 2 (1 - r^2), where r is the distance from the axis divided by the radius; zero outside."""
    return np.where(r < 1.0, PARABOLA * (1.0 - r**2), 0.0)


def womersley(r: npt.NDArray[np.float64], alpha: float) -> npt.NDArray[np.complex128]:
    """Return the complex profile of a flow that oscillates as exp(i omega t) with Womersley number `alpha`.

    (1 - J0(L r)/J0(L)) / (1 - 2 J1(L)/(L J0(L))), L = i^(3/2) alpha; Womersley 1955, J. Physiol. 127 553.
    Scaling the Bessel functions by exp(-|Im L|) avoids overflow for any alpha.
    """
    from scipy.special import jve

    argument = 1j**1.5 * alpha
    inside = np.minimum(r, 1.0)
    ratio = jve(0, argument * inside) / jve(0, argument) * np.exp(np.abs(argument.imag) * (inside - 1.0))
    return np.where(r < 1.0, (1.0 - ratio) / womersley_mean(alpha), 0.0)


def womersley_mean(alpha: float) -> complex:
    """Return 1 - 2 J1(L)/(L J0(L)), L = i^(3/2) alpha > 0: the mean over the opening of 1 - J0(L r)/J0(L)."""
    from scipy.special import jve

    argument = 1j**1.5 * alpha
    return complex(1.0 - 2.0 * jve(1, argument) / (argument * jve(0, argument)))
