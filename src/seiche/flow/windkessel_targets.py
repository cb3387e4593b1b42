# SPDX-License-Identifier: BSD-3-Clause
"""Parameters of Windkessel outlets from pressures and a flow split, for a vessel without resistance.

All outlets have the resistance R/f and the compliance C f, where f is their share of the flow, so that they act as one
circuit of resistance R and compliance C. A fraction of the resistance is before the compliance (characteristic
impedance). Les et al., Ann. Biomed. Eng. 38 (2010) 1288-1313, used 5.6 % of the total resistance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seiche.errors import CaseError

Floats = npt.NDArray[np.float64]
#: Fraction of the resistance before the compliance.
PROXIMAL_SHARE = 0.056
#: Bisections of the logarithm of the compliance.
_BISECTIONS = 200


@dataclass(frozen=True)
class Circuit:
    """Total resistance (Pa s/m^3) and compliance (m^3/Pa), the proximal fraction, and the distal pressure (Pa)."""

    resistance: float
    compliance: float
    share: float = PROXIMAL_SHARE
    distal: float = 0.0

    def pressure(self, flow: Floats, period: float) -> Floats:
        """Return the periodic pressure (Pa) for samples of the flow rate (m^3/s) at equal times of one period."""
        return self.distal + self.share * self.resistance * flow + self._stored(flow, period)

    def initial(self, flow: Floats, period: float) -> float:
        """Return the periodic pressure (Pa) of the compliance at time 0."""
        return self.distal + float(self._stored(flow, period)[0])

    def _stored(self, flow: Floats, period: float) -> Floats:
        distal = (1.0 - self.share) * self.resistance
        spectrum = np.fft.rfft(flow)
        omega = 2.0 * np.pi * np.arange(len(spectrum)) / period
        return np.asarray(np.fft.irfft(spectrum * distal / (1.0 + 1j * omega * distal * self.compliance), len(flow)))


def circuit_of(
    flow: Floats,
    period: float,
    resistance: float,
    pulse: float,
    *,
    share: float = PROXIMAL_SHARE,
    distal: float = 0.0,
    loss: Floats | None = None,
) -> Circuit:
    """Return the circuit with the pulse pressure `pulse` (Pa), the largest minus the smallest pressure of a period.

    `flow` (m^3/s), and `loss` (Pa), the pressure difference along the vessel before the circuit, are samples at equal
    times of a period (s). Raises CaseError if no compliance gives this pulse.
    """
    extra = np.zeros(len(flow)) if loss is None else loss

    def pulse_of(compliance: float) -> float:
        return float(np.ptp(Circuit(resistance, compliance, share, distal).pressure(flow, period) + extra))

    lowest, highest = float(np.ptp(share * resistance * flow + extra)), pulse_of(0.0)
    if not lowest < pulse < highest:
        raise CaseError(
            f"the pulse pressure of {pulse:g} Pa is not between {lowest:.4g} and {highest:.4g} Pa, the values for an "
            "infinite and no compliance at this flow and mean pressure; change the pressures or --share"
        )
    low, high = 1e-9 * period / resistance, 1e9 * period / resistance
    for _ in range(_BISECTIONS):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if pulse_of(middle) > pulse else (low, middle)
    return Circuit(resistance, float(np.sqrt(low * high)), share, distal)
