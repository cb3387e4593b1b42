# SPDX-License-Identifier: BSD-3-Clause
"""Error of the fractional Laplacian for strong power-law absorption (theory/ultrasound, section 3).

The model of eq. (12) follows the power law to first order in the absorption per radian, a0 w^(y-1) c0. Its dispersion
relation gives attenuation and phase speed at any strength.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from seiche.ultrasound.host_fields import reduced
from seiche.ultrasound.medium_arrays import as_double, neper_coefficient
from seiche.ultrasound.problem import Absorption, Field

#: Relative errors of attenuation and phase speed above which the model is unsuitable.
ADVISED_ATTENUATION, ADVISED_SPEED = 0.05, 0.01
_ITERATIONS = 60


@dataclass(frozen=True)
class PowerLawErrors:
    """Relative errors of attenuation and phase speed against the power law, for the strongest absorber."""

    attenuation: float
    speed: float


def power_law_errors(absorption: Absorption, sound_speed: Field, frequency: float) -> PowerLawErrors:
    """Return the errors of the model of `absorption` at a `frequency` (Hz), where absorption is strongest.

    Errors are nan where the model has no decaying wave, or the power law no positive phase speed.
    """
    y, omega = absorption.alpha_power, 2 * np.pi * frequency

    def strength(coefficient: Field, speed: Field) -> Field:
        neper = np.asarray(neper_coefficient(replace(absorption, alpha_coeff=coefficient)))
        return np.asarray(neper * omega ** (y - 1) * np.asarray(as_double(speed)))

    loss = reduced(np.max, strength, absorption.alpha_coeff, sound_speed)  # in nepers per radian
    dispersive = 0.0 if absorption.stokes or not absorption.dispersion else loss * float(np.tan(np.pi * y / 2))
    k = complex_wave_number(loss if absorption.losses else 0.0, dispersive, y)
    speed = (1 + dispersive) / k.real - 1 if 1 + dispersive > 0 else np.nan
    attenuation = k.imag / loss - 1 if absorption.losses and loss > 0 else 0.0
    return PowerLawErrors(attenuation, speed)


def complex_wave_number(loss: float, dispersive: float, y: float) -> complex:
    """Return k c0/w of a wave in the model: k^2 (1 - 2i `loss` k^(y-2) - 2 `dispersive` k^(y-1)) = 1; nan without one.

    `loss` is a0 w^(y-1) c0, `dispersive` the same times tan(pi y/2). The root is continued from that without
    absorption.
    """
    k = complex(1.0)
    for fraction in np.linspace(0.05, 1.0, 20):
        a, b = 2j * fraction * loss, 2 * fraction * dispersive
        for _ in range(_ITERATIONS):
            value = k**2 - a * k**y - b * k ** (y + 1) - 1
            slope = 2 * k - a * y * k ** (y - 1) - b * (y + 1) * k**y
            change = value / slope
            k -= change
            if abs(change) < 1e-14:
                break
        else:
            return complex(np.nan, np.nan)
    return k if k.real > 0 else complex(np.nan, np.nan)
