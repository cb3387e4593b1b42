# SPDX-License-Identifier: BSD-3-Clause
"""Materials of the head from the transcranial benchmarks (Aubry et al. 2022)."""

from __future__ import annotations

from dataclasses import dataclass

#: Frequency of the absorption values, MHz.
_FREQUENCY = 0.5


@dataclass(frozen=True)
class TissueMaterial:
    """Sound speed in m/s, density in kg/m3, absorption in dB/cm at 500 kHz."""

    sound_speed: float
    density: float
    absorption: float

    def alpha_coeff(self, alpha_power: float) -> float:
        """Return the coefficient in dB/(MHz^y cm) for the absorption at 500 kHz and an exponent y."""
        return float(self.absorption / _FREQUENCY**alpha_power)


#: doi 10.1121/10.0013426
MATERIALS = {
    "water": TissueMaterial(1500.0, 1000.0, 0.0),
    "skin": TissueMaterial(1610.0, 1090.0, 0.2),
    "brain": TissueMaterial(1560.0, 1040.0, 0.3),
    "cortical bone": TissueMaterial(2800.0, 1850.0, 4.0),
    "trabecular bone": TissueMaterial(2300.0, 1700.0, 8.0),
}
